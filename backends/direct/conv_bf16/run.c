/* run.c - the jobs of conv_bf16.h: packs the filter, then copies and multiplies band by band. */
#include <omp.h>

#include "backends/direct/arith.h"
#include "conv_bf16.h"

enum { LANES = CONV_BF16_LANES, TILE = CONV_BF16_TILE, STEP = CONV_BF16_STEP };

typedef struct { /* what a thread works with */
    const conv_bf16 *p;
    const adj_call *call;
    char *own; /* its part of the scratch */
    int is_finite;
} work;

static ptrdiff_t start_of(ptrdiff_t n, ptrdiff_t parts, ptrdiff_t i) { return n * i / parts; }

/* ---- the filter ---- */

/* Tile i of pass a; returns whether it is finite. */
static int pack_tile(const conv_bf16 *p, const adj_call *call, const conv_bf16_pass *a, ptrdiff_t i)
{
    const ptrdiff_t block = i / a->steps, step = i % a->steps;
    const ptrdiff_t of_segment = a->steps / a->h.taps, row = step / of_segment;
    const conv_bf16_tile t = {.filter = call->in[p->filter_in],
                              .kw = p->kw,
                              .inputs = p->src.c,
                              .outputs = p->dst.c,
                              .channels = p->channels,
                              .row = a->h.filter + row * a->h.forward,
                              .first = step % of_segment * STEP / 2,
                              .output = block * LANES,
                              .is_turned = p->is_turned};
    return p->code->pack(a, &t, (char *)direct_scratch(call, a->filter) + i * TILE);
}

/* ---- a band ---- */

/* The band's tiles in the scratch, and its positions in dst. */
static void list_positions(const work *s, const conv_bf16_pass *a)
{
    const conv_bf16 *p = s->p;
    int32_t *tile_at = (int32_t *)(s->own + a->tiles), *dst_at = (int32_t *)(s->own + a->dst);
    const ptrdiff_t columns = a->w.dst;
    for (ptrdiff_t t = 0; t < a->lines * a->line; t++) {
        const ptrdiff_t line = t / a->line, first = t % a->line * LANES;
        tile_at[t] = (int32_t)(line * a->pitch + first * a->position);
        for (ptrdiff_t i = 0; i < LANES; i++) {
            const ptrdiff_t k = first + i, row = a->is_unrolled ? k / columns : line;
            const ptrdiff_t column = a->is_unrolled ? k % columns : k;
            const ptrdiff_t pixel = row * a->h.step * p->dst.w + a->w.first + column * a->w.step;
            *dst_at++ = column < columns ? (int32_t)(pixel * p->dst.c * 2) : -1;
        }
    }
}

static void run_pass(const work *s, const conv_bf16_pass *a, ptrdiff_t image, ptrdiff_t row)
{
    const conv_bf16 *p = s->p;
    const ptrdiff_t rows = min(p->rows, a->h.dst - row);
    const ptrdiff_t src_pixels = image * p->src.h * p->src.w;
    const ptrdiff_t dst_row = image * p->dst.h + a->h.first + row * a->h.step;
    if (rows <= 0 || a->w.dst == 0)
        return;
    if (a->h.taps > 0 && a->w.taps > 0)
        p->code->copy_rows(&(conv_bf16_rows){
            .pass = a,
            .src = (const char *)s->call->in[p->src_in] + src_pixels * p->src.c * 2,
            .channels = p->src.c,
            .scratch = p->channels,
            .first = row * a->h.stride - a->h.pad,
            .rows = (rows - 1) * a->h.stride + (a->h.taps - 1) * a->h.dilation + 1,
            .dst = s->own + p->image});
    const conv_bf16_product product = {
        .pass = a,
        .tiles = a->is_unrolled ? divide_up(rows * a->w.dst, LANES) : rows * a->line,
        .positions = a->is_unrolled ? rows * a->w.dst : rows * a->line * LANES,
        .blocks = p->blocks,
        .outputs = p->dst.c,
        .src = s->own + p->image,
        .filter = direct_scratch(s->call, a->filter),
        .tile_at = (const int32_t *)(s->own + a->tiles),
        .dst_at = (const int32_t *)(s->own + a->dst),
        .dst = (char *)s->call->out[0] + dst_row * p->dst.w * p->dst.c * 2};
    p->code->multiply(&product);
    if (!s->is_finite && a->has_padding)
        p->code->mend(&product, p->channels, row);
}

static void run_job(const work *s, ptrdiff_t job)
{
    const conv_bf16 *p = s->p;
    const ptrdiff_t end = start_of(p->units, p->jobs, job + 1);
    for (int k = 0; k < p->n_pass; k++)
        list_positions(s, &p->pass[k]);
    for (ptrdiff_t unit = start_of(p->units, p->jobs, job); unit < end; unit++)
        for (int k = 0; k < p->n_pass; k++) {
            p->code->begin(&p->pass[k]);
            run_pass(s, &p->pass[k], unit / p->bands, unit % p->bands * p->rows);
        }
    p->code->end();
}

adj_status conv_bf16_run(const adj_call *call)
{
    const conv_bf16 *p = call->state;
    int is_finite = 1;
#pragma omp parallel num_threads(p->threads) if (p->threads > 1)
    {
        for (int k = 0; k < p->n_pass; k++) {
            const conv_bf16_pass *a = &p->pass[k];
#pragma omp for schedule(static) reduction(& : is_finite)
            for (ptrdiff_t i = 0; i < p->blocks * a->steps; i++)
                is_finite &= pack_tile(p, call, a, i);
        }
        const work s = {.p = p,
                        .call = call,
                        .own = (char *)direct_scratch(call, p->thread) +
                               p->per_thread * (size_t)omp_get_thread_num(),
                        .is_finite = is_finite};
#pragma omp for schedule(static)
        for (ptrdiff_t job = 0; job < p->jobs; job++)
            run_job(&s, job);
    }
    return ADJ_OK;
}
