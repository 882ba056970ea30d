/* image.c - y and dx of winograd.h. Compiled once per instruction set.
 *
 * u[panel][point][c][column]: a panel's matrices follow each other, each as wide as the panel. */
#include "tile.h"
#include "transform.h"

enum { LANES = WINOGRAD_LANES, TAPS = 9 };

/* The filter's taps for channels c .. of src and k .. of dst. dx: tap 8 - i, as [k][c] */
static void read_taps(const winograd *p, const float *w, ptrdiff_t c, ptrdiff_t k,
                      float taps[TAPS][LANES][LANES])
{
    for (int i = 0; i < TAPS; i++)
        for (int row = 0; row < LANES; row++)
            for (int column = 0; column < LANES; column++)
                taps[i][row][column] =
                    p->is_dx ? w[((TAPS - 1 - i) * p->dst.c + k + column) * p->src.c + c + row]
                             : w[(i * p->src.c + c + row) * p->dst.c + k + column];
}

/* u[point*step] for a vector of columns, from taps one `tap` apart. */
ALWAYS void transform_taps(const float *taps, ptrdiff_t tap, float *u, ptrdiff_t step)
{
    vector w[3], half[3 * WINOGRAD_WINDOW], y[WINOGRAD_WINDOW];
#pragma GCC unroll 3
    for (int j = 0; j < 3; j++) {
#pragma GCC unroll 3
        for (int i = 0; i < 3; i++)
            w[i] = *(const vector *)(taps + (i * 3 + j) * tap);
        winograd_kernel(w, half + j, 3);
    }
#pragma GCC unroll 6
    for (int i = 0; i < WINOGRAD_WINDOW; i++) {
        winograd_kernel(half + (ptrdiff_t)i * 3, y, 1);
#pragma GCC unroll 6
        for (int j = 0; j < WINOGRAD_WINDOW; j++)
            *(vector *)(u + (i * WINOGRAD_WINDOW + j) * step) = y[j];
    }
}

/* Where a panel of u begins. */
static ptrdiff_t start_of(const winograd *p, ptrdiff_t panel)
{
    return panel * WINOGRAD_POINTS * p->src.c * WINOGRAD_PANEL;
}

static void filter(const winograd *p, const adj_call *call, ptrdiff_t job)
{
    float taps[TAPS][LANES][LANES], *u = call->scratch;
    ptrdiff_t c = job * LANES;
    for (ptrdiff_t k = 0; k < p->dst.c; k += LANES) {
        ptrdiff_t panel = k / WINOGRAD_PANEL, width = winograd_width_of(p, panel);
        float *dst = u + start_of(p, panel) + c * width + k % WINOGRAD_PANEL;
        read_taps(p, call->in[p->other_in], c, k, taps);
        for (int row = 0; row < LANES; row++)
            for (int column = 0; column < LANES; column += VECTOR)
                transform_taps(&taps[0][row][column], (ptrdiff_t)LANES * LANES,
                               dst + row * width + column, p->src.c * width);
    }
}

static void read_windows(const winograd *p, const float *src, ptrdiff_t block, float *v)
{
    ptrdiff_t tiles = winograd_tiles_in(p, block);
    for (ptrdiff_t t = 0; t < tiles; t++) {
        float *dst = v + t * p->src.c;
        DIRECT(winograd_read_window)(p, src, block * p->block + t, dst);
    }
}

static void write_tiles(const winograd *p, const adj_call *c, ptrdiff_t block, ptrdiff_t panel,
                        const float *m)
{
    ptrdiff_t tiles = winograd_tiles_in(p, block), width = winograd_width_of(p, panel);
    ptrdiff_t first = panel * WINOGRAD_PANEL;
    const float *bias = p->bias_in >= 0 ? (const float *)c->in[p->bias_in] + first : NULL;
    float *dst = c->out[0];
    for (ptrdiff_t t = 0; t < tiles; t++) {
        winograd_place at = winograd_place_of(p, block * p->block + t);
        winograd_square s = {p->dst.h, p->dst.w, p->dst.c, at.row, at.column};
        float *image = dst + at.image * s.h * s.w * s.c;
        DIRECT(winograd_prefetch)(&s, image, (p->n - at.image) * s.h * s.w, first, width);
        DIRECT(winograd_write_tile)(&s, image, first, width, m + t * width, p->m_step, bias);
    }
}

static void block(const winograd *p, const adj_call *c, ptrdiff_t block, int thread)
{
    float *v = (float *)c->scratch + p->v + (size_t)thread * p->thread;
    float *m = v + WINOGRAD_POINTS * p->v_step;
    read_windows(p, c->in[p->src_in], block, v);
    for (ptrdiff_t panel = 0; panel < p->panels; panel++) {
        const float *u = (const float *)c->scratch + start_of(p, panel);
        ptrdiff_t width = winograd_width_of(p, panel);
        for (ptrdiff_t point = 0; point < WINOGRAD_POINTS; point++) {
            const micro_gemm product = {.rows = winograd_tiles_in(p, block),
                                        .depth = p->src.c,
                                        .a = v + point * p->v_step,
                                        .b = u + point * p->src.c * width,
                                        .c = m + point * p->m_step,
                                        .a_pitch = p->src.c,
                                        .b_pitch = width,
                                        .c_pitch = width};
            winograd_multiply(product, width);
        }
        write_tiles(p, c, block, panel, m);
    }
}

const winograd_code DIRECT(winograd_image) = {.filter = filter, .block = block};
