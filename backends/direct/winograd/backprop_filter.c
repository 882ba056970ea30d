/* backprop_filter.c - dw of winograd.h. Compiled once per instruction set.
 *
 * u[point][c][k] are sums; v[point][tile][c] the windows of x, m[point][tile][k] the tiles of dy.
 * Part number job of the products is point job / panels, panel job % panels. */
#include "tile.h"
#include "transform.h"

static float *windows(const winograd *p, const adj_call *c) { return (float *)c->scratch + p->v; }

static float *tiles(const winograd *p, const adj_call *c)
{
    return windows(p, c) + WINOGRAD_POINTS * p->v_step;
}

static void tile(const winograd *p, const adj_call *c, ptrdiff_t block, ptrdiff_t job)
{
    ptrdiff_t number = block * p->block + job;
    winograd_place at = winograd_place_of(p, number);
    winograd_square s = {p->dst.h, p->dst.w, p->dst.c, at.row, at.column};
    const float *dy = (const float *)c->in[p->other_in] + at.image * s.h * s.w * s.c;
    float *x_points = windows(p, c) + job * p->src.c, *dy_points = tiles(p, c) + job * s.c;
    DIRECT(winograd_read_window)(p, c->in[p->src_in], number, x_points);
    DIRECT(winograd_prefetch)(&s, dy, (p->n - at.image) * s.h * s.w, 0, s.c);
    DIRECT(winograd_read_tile)(&s, dy, dy_points, p->m_step);
}

static void product(const winograd *p, const adj_call *c, ptrdiff_t block, ptrdiff_t job)
{
    ptrdiff_t point = job / p->panels, panel = job % p->panels, first = panel * WINOGRAD_PANEL;
    const micro_gemm sum = {.rows = p->src.c,
                            .depth = winograd_tiles_in(p, block),
                            .a_is_transposed = 1,
                            .a = windows(p, c) + point * p->v_step,
                            .b = tiles(p, c) + point * p->m_step + first,
                            .c = (float *)c->scratch + point * p->u_step + first,
                            .a_pitch = p->src.c,
                            .b_pitch = p->dst.c,
                            .c_pitch = p->dst.c,
                            .add = block > 0};
    winograd_multiply(sum, winograd_width_of(p, panel));
}

/* dw[tap][c][k ..] of a vector of k */
ALWAYS void result_of(const winograd *p, const float *u, float *dw)
{
    const ptrdiff_t tap = p->src.c * p->dst.c;
    vector x[WINOGRAD_WINDOW], half[3 * WINOGRAD_WINDOW], y[3];
#pragma GCC unroll 6
    for (int j = 0; j < WINOGRAD_WINDOW; j++) {
#pragma GCC unroll 6
        for (int i = 0; i < WINOGRAD_WINDOW; i++)
            x[i] = *(const vector *)(u + (i * WINOGRAD_WINDOW + j) * p->u_step);
        winograd_to_kernel(x, half + j, WINOGRAD_WINDOW);
    }
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++) {
        winograd_to_kernel(half + (ptrdiff_t)i * WINOGRAD_WINDOW, y, 1);
#pragma GCC unroll 3
        for (int j = 0; j < 3; j++)
            *(vector *)(dw + (i * 3 + j) * tap) = y[j];
    }
}

static void result(const winograd *p, const adj_call *c, ptrdiff_t job)
{
    ptrdiff_t first = job * WINOGRAD_LANES * p->dst.c, end = first + WINOGRAD_LANES * p->dst.c;
    for (ptrdiff_t at = first; at < end; at += VECTOR)
        result_of(p, (const float *)c->scratch + at, (float *)c->out[0] + at);
}

const winograd_code DIRECT(winograd_filter) = {.tile = tile, .product = product, .result = result};
