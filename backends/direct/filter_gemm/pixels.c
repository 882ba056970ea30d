/* pixels.c - the sums of a 1x1 convolution's dw (filter_gemm.h), over bands of pixels. Compiled
 * once per instruction set and type. */
#include "pixels.h"

#include <string.h>

#include "backends/direct/arith.h"
#include "backends/direct/micro_gemm.h"
#include "pack_outputs.h"
#include "prefetch_next.h"

typedef struct { /* a thread's state in a job */
    const filter_gemm *p;
    const real *x, *dy;       /* dy: from the group's first output on */
    ptrdiff_t outputs, pitch; /* outputs of the group; pitch of its sums, in whole vectors */
    real *packed, *sums;
} worker;

/* Finds the memory of the next band; other groups' outputs are not prefetched. */
static next_band find_next(const worker *s, conv_range next)
{
    const filter_gemm *p = s->p;
    const ptrdiff_t pixels = next.end - next.first;
    next_band b = {.x = s->x + next.first * p->x.c, .of_x = pixels * p->x.c};
    if (p->groups == 1) {
        b.dy = s->dy + next.first * p->y.c;
        b.of_dy = pixels * p->y.c;
    }
    return b;
}

static void add_band(const worker *s, conv_range band, const next_band *next)
{
    const filter_gemm *p = s->p;
    const ptrdiff_t vectors = divide_up(s->outputs, VECTOR);
    const ptrdiff_t products = divide_up(vectors, FILTER_GEMM_VECTORS);
    for (ptrdiff_t v = 0, i = 0; v < vectors; v += FILTER_GEMM_VECTORS, i++) {
        product_outputs o = {.pixels = band.end - band.first,
                             .left = s->outputs - v * VECTOR,
                             .vectors = min(vectors - v, FILTER_GEMM_VECTORS),
                             .b = s->dy + band.first * p->y.c + v * VECTOR,
                             .b_pitch = p->y.c};
        pack_outputs(p, s->packed, &o);
        micro_gemm m = {.a = s->x + band.first * p->x.c,
                        .a_is_transposed = 1,
                        .a_pitch = p->x.c,
                        .rows = p->x.c,
                        .depth = o.pixels,
                        .vectors = o.vectors,
                        .b = o.b,
                        .b_pitch = o.b_pitch,
                        .c = s->sums + v * VECTOR,
                        .c_pitch = s->pitch,
                        .add = 1};
        prefetch_next(next, i, products, &m);
        REAL_TYPED(micro_gemm)(&m);
    }
}

void TYPED(filter_gemm_add_pixels)(const adj_call *call, ptrdiff_t job, int thread)
{
    const filter_gemm *p = call->state;
    char *own = direct_scratch(call, p->thread + p->per_thread * (size_t)thread);
    const ptrdiff_t group = job / p->segments, segment = job % p->segments;
    const ptrdiff_t pitch = p->group * VECTOR;
    const ptrdiff_t first = p->pixels * segment / p->segments;
    const ptrdiff_t n = p->pixels * (segment + 1) / p->segments - first;
    const ptrdiff_t bands = divide_up(n, p->band_pixels);
    const worker s = {.p = p,
                      .x = call->in[p->x_in],
                      .dy = (const real *)call->in[p->dy_in] + group * pitch,
                      .outputs = min(p->y.c - group * pitch, pitch),
                      .pitch = pitch,
                      .packed = (real *)(own + p->packed),
                      .sums = (real *)direct_scratch(call, p->sums) + job * p->elements * pitch};
    memset(s.sums, 0, (size_t)(p->elements * pitch) * sizeof *s.sums);
    for (ptrdiff_t i = 0; i < bands; i++) {
        const conv_range band = {first + n * i / bands, first + n * (i + 1) / bands};
        const next_band next =
            find_next(&s, (conv_range){band.end, min(2 * band.end - band.first, p->pixels)});
        add_band(&s, band, &next);
    }
}
