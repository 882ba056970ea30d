/* image.c - y and dx of winograd.h. Compiled once per instruction set, for f32 and bf16.
 *
 * u[panel][point][c][column]: a panel's matrices are contiguous, each as wide as the panel. */
#include "tile.h"
#include "transform.h"

enum { LANES = WINOGRAD_LANES, MAX_KERNEL = WINOGRAD_MAX_KERNEL, MAX_WINDOW = WINOGRAD_MAX_WINDOW };

/* Reads the filter's taps for channels c .. of src and k .. of dst. dx: the last tap first, as
 * [k][c]. */
static void read_taps(const winograd *p, const T *w, ptrdiff_t c, ptrdiff_t k,
                      float taps[][LANES][LANES])
{
    const ptrdiff_t n = p->kernel * p->kernel;
    for (ptrdiff_t i = 0; i < n; i++)
        for (int row = 0; row < LANES; row++)
            for (int column = 0; column < LANES; column++)
                taps[i][row][column] =
                    ld(p->is_dx ? w[((n - 1 - i) * p->dst.c + k + column) * p->src.c + c + row]
                                : w[(i * p->src.c + c + row) * p->dst.c + k + column]);
}

/* Computes u[point*step] for a vector of columns, from taps `tap` elements apart. */
ALWAYS void transform_taps(const int size, const float *taps, ptrdiff_t tap, float *u,
                           ptrdiff_t step)
{
    const int window = WINOGRAD_TILE + size - 1;
    vector w[MAX_KERNEL], half[MAX_KERNEL * MAX_WINDOW], y[MAX_WINDOW];
#pragma GCC unroll 5
    for (int j = 0; j < size; j++) {
#pragma GCC unroll 5
        for (int i = 0; i < size; i++)
            w[i] = *(const vector *)(taps + (i * size + j) * tap);
        winograd_kernel(window, size, w, half + j, size);
    }
#pragma GCC unroll 8
    for (int i = 0; i < window; i++) {
        winograd_kernel(window, size, half + (ptrdiff_t)i * size, y, 1);
#pragma GCC unroll 8
        for (int j = 0; j < window; j++, u += step)
            *(vector *)u = y[j];
    }
}

/* Returns the offset of a panel of u. */
static ptrdiff_t start_of(const winograd *p, ptrdiff_t panel)
{
    return panel * p->points * p->src.c * WINOGRAD_PANEL;
}

static void filter(const winograd *p, const adj_call *call, ptrdiff_t job)
{
    float taps[MAX_KERNEL * MAX_KERNEL][LANES][LANES], *u = call->scratch;
    const ptrdiff_t c = job * LANES, tap = (ptrdiff_t)LANES * LANES;
    for (ptrdiff_t k = 0; k < p->dst.c; k += LANES) {
        ptrdiff_t panel = k / WINOGRAD_PANEL, width = winograd_width_of(p, panel);
        float *dst = u + start_of(p, panel) + c * width + k % WINOGRAD_PANEL;
        read_taps(p, call->in[p->other_in], c, k, taps);
        for (int row = 0; row < LANES; row++)
            for (int column = 0; column < LANES; column += VECTOR) {
                const float *src = &taps[0][row][column];
                float *at = dst + row * width + column;
                if (p->kernel == 3)
                    transform_taps(3, src, tap, at, p->src.c * width);
                else
                    transform_taps(5, src, tap, at, p->src.c * width);
            }
    }
}

/* Returns the memory that the tiles of a panel are written to. */
static winograd_prefetch dst_of(const winograd *p, const adj_call *c, ptrdiff_t block,
                                ptrdiff_t panel)
{
    const winograd_squares tiles = {.tensor = c->out[0], .image = p->dst, .size = WINOGRAD_TILE};
    winograd_prefetch f =
        TYPED(winograd_prefetch_of)(p, &tiles, block * p->block, winograd_tiles_in(p, block));
    f.at += panel * WINOGRAD_PANEL;
    f.columns = winograd_width_of(p, panel);
    return f;
}

/* Multiplies a panel of a block into m; meanwhile prefetches some of src's pixels, and dst. */
static void multiply_panel(const winograd *p, const adj_call *c, ptrdiff_t block, ptrdiff_t panel,
                           const winograd_prefetch *src, float *v)
{
    const float *u = (const float *)(p->by_reorder ? c->in[p->other_in] : c->scratch);
    const ptrdiff_t width = winograd_width_of(p, panel);
    const winograd_prefetch dst = dst_of(p, c, block, panel);
    for (ptrdiff_t point = 0; point < p->points; point++) {
        const micro_gemm product = {.rows = winograd_tiles_in(p, block),
                                    .depth = p->src.c,
                                    .a = v + point * p->v_step,
                                    .b = u + start_of(p, panel) + point * p->src.c * width,
                                    .c = v + p->points * p->v_step + point * p->m_step,
                                    .a_pitch = p->src.c,
                                    .b_pitch = width,
                                    .c_pitch = width};
        winograd_prefetch_job(src, panel * p->points + point, p->panels * p->points);
        winograd_prefetch_job(&dst, point, p->points);
        winograd_multiply(product, width);
    }
}

static void blocks(const winograd *p, const adj_call *c, ptrdiff_t first, ptrdiff_t end, int thread)
{
    const winograd_squares windows = winograd_windows(p, c, thread);
    float *v = (float *)c->scratch + p->v_at + (size_t)thread * p->v_floats;
    const float *m = v + p->points * p->v_step;
    for (ptrdiff_t block = first; block < end; block++) {
        const ptrdiff_t tile = block * p->block, tiles = winograd_tiles_in(p, block);
        const ptrdiff_t next = block + 1 < end ? winograd_tiles_in(p, block + 1) : 0;
        const winograd_prefetch src = TYPED(winograd_prefetch_of)(p, &windows, tile + tiles, next);
        TYPED(winograd_read)(p, &windows, tile, tiles, v);
        for (ptrdiff_t panel = 0; panel < p->panels; panel++) {
            multiply_panel(p, c, block, panel, &src, v);
            for (ptrdiff_t t = 0; t < tiles; t++)
                TYPED(winograd_write)(p, c, tile + t, panel, m + t * winograd_width_of(p, panel));
        }
    }
}

const winograd_code TYPED(winograd_image) = {.filter = filter, .blocks = blocks};
