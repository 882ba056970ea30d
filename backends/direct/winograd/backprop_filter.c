/* backprop_filter.c - dw of winograd.h. Compiled once per instruction set, for f32 and bf16.
 *
 * u[segment][point][c][k] holds the sums, v[point][tile][c] the windows of x, m[point][tile][k]
 * the tiles of dy. */
#include "backends/direct/arith.h"
#include "tile.h"
#include "transform.h"

enum { MAX_KERNEL = WINOGRAD_MAX_KERNEL, MAX_WINDOW = WINOGRAD_MAX_WINDOW };

/* The tiles that products sum over, and the location of their points. */
typedef struct {
    ptrdiff_t first, n;
    float *v, *m;
} tile_range;

/* Returns the range in a thread's memory, or in shared memory. */
static tile_range range_of(const winograd *p, const adj_call *c, ptrdiff_t first, ptrdiff_t n,
                           int thread)
{
    float *v = (float *)c->scratch + p->v_at + (size_t)thread * p->v_floats;
    return (tile_range){first, n, v, v + p->points * p->v_step};
}

static void read_tiles(const winograd *p, const adj_call *c, const tile_range *t, int thread)
{
    const winograd_squares x = winograd_windows(p, c, thread), dy = winograd_tiles(p, c, thread);
    TYPED(winograd_read)(p, &x, t->first, t->n, t->v);
    TYPED(winograd_read)(p, &dy, t->first, t->n, t->m);
}

static void multiply(const winograd *p, const tile_range *t, ptrdiff_t point, ptrdiff_t panel,
                     float *u, int add)
{
    const ptrdiff_t first = panel * WINOGRAD_PANEL;
    const micro_gemm sum = {.rows = p->src.c,
                            .depth = t->n,
                            .a_is_transposed = 1,
                            .a = t->v + point * p->v_step,
                            .b = t->m + point * p->m_step + first,
                            .c = u + point * p->u_step + first,
                            .a_pitch = p->src.c,
                            .b_pitch = p->dst.c,
                            .c_pitch = p->dst.c,
                            .add = add};
    winograd_multiply(sum, winograd_width_of(p, panel));
}

/* ---- by all threads: product number job is of point job / panels and panel job % panels */

static tile_range range_of_block(const winograd *p, const adj_call *c, ptrdiff_t block)
{
    return range_of(p, c, block * p->block, winograd_tiles_in(p, block), 0);
}

static void transform(const winograd *p, const adj_call *c, ptrdiff_t block, int thread)
{
    const tile_range t = range_of_block(p, c, block);
    const ptrdiff_t first = t.n * thread / p->threads, end = t.n * (thread + 1) / p->threads;
    const tile_range own = {t.first + first, end - first, t.v + first * p->src.c,
                            t.m + first * p->dst.c};
    read_tiles(p, c, &own, thread);
}

static void product(const winograd *p, const adj_call *c, ptrdiff_t block, ptrdiff_t job)
{
    const tile_range t = range_of_block(p, c, block);
    multiply(p, &t, job / p->panels, job % p->panels, c->scratch, block > 0);
}

/* ---- each segment by one thread */

static void segment(const winograd *p, const adj_call *c, ptrdiff_t segment, int thread)
{
    const ptrdiff_t first = p->tiles * segment / p->segments,
                    end = p->tiles * (segment + 1) / p->segments;
    const winograd_squares x = winograd_windows(p, c, thread), dy = winograd_tiles(p, c, thread);
    float *u = (float *)c->scratch + segment * p->points * p->u_step;
    for (ptrdiff_t at = first; at < end; at += p->block) {
        const tile_range t = range_of(p, c, at, min(p->block, end - at), thread);
        const ptrdiff_t next = at + t.n, n = min(p->block, end - next);
        const winograd_prefetch next_x = TYPED(winograd_prefetch_of)(p, &x, next, n);
        const winograd_prefetch next_dy = TYPED(winograd_prefetch_of)(p, &dy, next, n);
        read_tiles(p, c, &t, thread);
        for (ptrdiff_t point = 0; point < p->points; point++) {
            winograd_prefetch_job(&next_x, point, p->points);
            winograd_prefetch_job(&next_dy, point, p->points);
            for (ptrdiff_t panel = 0; panel < p->panels; panel++)
                multiply(p, &t, point, panel, u, at > first);
        }
    }
}

/* Stores one tap of a vector of k in the result's type: bf16, or that of the sums. */
ALWAYS void store_tap(const winograd *p, void *dw, ptrdiff_t at, vector_value v)
{
    if (p->dtype == ADJ_F32)
        *(vector *)((float *)dw + at) = v;
    else
        store_vector((T *)dw + at, v);
}

/* Adds all segments' sums, in order. */
ALWAYS vector_value sum_of(const winograd *p, const float *u)
{
    vector sum = *(const vector *)u;
    for (ptrdiff_t i = 1; i < p->segments; i++)
        sum += *(const vector *)(u + i * p->points * p->u_step);
    return sum;
}

/* Computes dw[tap][c][k ..] for a vector of k. */
ALWAYS void result_of(const int size, const winograd *p, const float *u, void *dw, ptrdiff_t at)
{
    const int window = WINOGRAD_TILE + size - 1;
    const ptrdiff_t tap = p->src.c * p->dst.c;
    vector x[MAX_WINDOW], half[MAX_KERNEL * MAX_WINDOW], y[MAX_KERNEL];
#pragma GCC unroll 8
    for (int j = 0; j < window; j++) {
#pragma GCC unroll 8
        for (int i = 0; i < window; i++)
            x[i] = sum_of(p, u + (i * window + j) * p->u_step + at);
        winograd_to_kernel(window, size, x, half + j, window);
    }
#pragma GCC unroll 5
    for (int i = 0; i < size; i++) {
        winograd_to_kernel(window, size, half + (ptrdiff_t)i * window, y, 1);
#pragma GCC unroll 5
        for (int j = 0; j < size; j++)
            store_tap(p, dw, (i * size + j) * tap + at, y[j]);
    }
}

static void result(const winograd *p, const adj_call *c, ptrdiff_t job)
{
    for (ptrdiff_t at = job * p->dst.c; at < (job + 1) * p->dst.c; at += VECTOR)
        if (p->kernel == 3)
            result_of(3, p, c->scratch, c->out[0], at);
        else
            result_of(5, p, c->scratch, c->out[0], at);
}

const winograd_code TYPED(winograd_filter) = {
    .transform = transform, .product = product, .segment = segment, .result = result};
