/* run.c - the jobs of conv_bf16.h: packs the filter, then copies and multiplies band by band.
 * Compiled for AVX-512 only. */
#include "tiles.h"

#if HAS_TILES

#include <omp.h>

enum {
    LANES = CONV_BF16_LANES,
    TILE = CONV_BF16_TILE,
    SPLITS = 16 /* jobs for splitting a filter */
};

static ptrdiff_t start_of(ptrdiff_t n, ptrdiff_t parts, ptrdiff_t i) { return n * i / parts; }

/* ---- the filter ---- */

/* Splits one of SPLITS portions of the filter into parts; returns whether all numbers can be
 * split. */
static int split(const conv_bf16 *p, const adj_call *call, ptrdiff_t i)
{
    const ptrdiff_t n = p->kh * p->kw * p->src.c * p->dst.c;
    const ptrdiff_t first = start_of(n, SPLITS, i), end = start_of(n, SPLITS, i + 1);
    char *parts = direct_scratch(call, p->split);
    return conv_bf16_split((const char *)call->in[p->filter_in] + first * p->element, end - first,
                           parts + first * 2, parts + (n + first) * 2);
}

/* ---- a band ---- */

/* Lists a line's tiles in the scratch and its positions in dst: several rows, without the last
 * tile's unused positions. */
static void list_line(const conv_bf16 *p, const conv_bf16_pass *a, ptrdiff_t line, ptrdiff_t rows,
                      int32_t *tile_at, int32_t *dst_at)
{
    const ptrdiff_t pixel = p->dst.c * p->element;
    ptrdiff_t k = 0;
    for (ptrdiff_t t = 0; t < a->line; t++)
        tile_at[t] = (int32_t)(line * a->pitch + t * LANES * a->position);
    for (ptrdiff_t row = line; row < line + rows; row++)
        for (ptrdiff_t column = 0; column < a->w.dst; column++)
            dst_at[k++] =
                (int32_t)((row * a->h.step * p->dst.w + a->w.first + column * a->w.step) * pixel);
    while (k < a->line * LANES)
        dst_at[k++] = -1;
}

/* Lists the tiles and positions of a band. */
static void list_positions(const conv_bf16_work *s, const conv_bf16_pass *a)
{
    int32_t *tile_at = (int32_t *)(s->own + a->tiles), *dst_at = (int32_t *)(s->own + a->dst);
    const ptrdiff_t rows = a->is_unrolled ? min(s->p->rows, a->h.dst) : 1;
    for (ptrdiff_t line = 0; line < a->lines; line++)
        list_line(s->p, a, line, rows, tile_at + line * a->line, dst_at + line * a->line * LANES);
}

/* Returns how many lines are multiplied before the next are copied, so that memory reads overlap
 * with products. */
static ptrdiff_t lines_at_once(const conv_bf16 *p, const conv_bf16_pass *a)
{
    if (a->is_unrolled || p->parts * p->group * a->steps > CONV_BF16_CACHED)
        return a->lines;
    return max(CONV_BF16_TILES / a->line, 1);
}

/* Computes by the definition, in double, all positions of a band, or those alone whose windows
 * reach padding. */
static void compute_plainly(const conv_bf16_work *s, const conv_bf16_pass *a,
                            const conv_bf16_band *b, int is_border)
{
    const conv_bf16 *p = s->p;
    const adj_call *c = s->call;
    const ptrdiff_t pixel = p->dst.c * p->element, image = p->src.h * p->src.w * p->src.c;
    conv_plain plain = {.pass = {a->h, a->w},
                        .dtype = p->parts > 1 ? ADJ_F32 : ADJ_BF16,
                        .kw = p->kw,
                        .inputs = p->src.c,
                        .src = (const char *)c->in[p->src_in] + b->image * image * p->element,
                        .bias = p->bias_in >= 0 ? c->in[p->bias_in] : NULL};
    conv_plain_set_filter(&plain, c->in[p->filter_in], p->dst.c, p->is_turned);
    for (ptrdiff_t row = b->row; row < min(b->row + p->rows, a->h.dst); row++) {
        const int is_inside = conv_is_whole(&a->h, conv_taps_inside(&a->h, row));
        const ptrdiff_t y = b->image * p->dst.h + a->h.first + row * a->h.step;
        for (ptrdiff_t column = 0; column < a->w.dst; column++) {
            const ptrdiff_t x = a->w.first + column * a->w.step;
            if (!is_border || !is_inside || !conv_is_whole(&a->w, conv_taps_inside(&a->w, column)))
                conv_plain_position(&plain, row, column, b->output, b->output + b->outputs,
                                    (char *)c->out[0] + (y * p->dst.w + x) * pixel);
        }
    }
}

static void run_pass(const conv_bf16_work *s, const conv_bf16_pass *a, const conv_bf16_band *b)
{
    const conv_bf16 *p = s->p;
    const ptrdiff_t rows = min(p->rows, a->h.dst - b->row);
    const ptrdiff_t dst_row = b->image * p->dst.h + a->h.first + b->row * a->h.step;
    const ptrdiff_t output = b->output * p->element;
    const int has_taps = a->h.taps > 0 && a->w.taps > 0;
    if (rows <= 0 || a->w.dst == 0)
        return;
    conv_bf16_product product = {
        .pass = a,
        .positions = a->is_unrolled ? rows * a->w.dst : rows * a->line * LANES,
        .blocks = divide_up(b->outputs, LANES),
        .outputs = b->outputs,
        .element = p->element,
        .src = s->own + p->image,
        .filter = (char *)direct_scratch(s->call, a->filter) + b->output / LANES * a->steps * TILE,
        .src_part = p->part,
        .filter_part = p->blocks * a->steps * TILE,
        .tile_at = (const int32_t *)(s->own + a->tiles),
        .dst_at = (const int32_t *)(s->own + a->dst),
        .bias = p->bias_in >= 0 ? (const char *)s->call->in[p->bias_in] + output : NULL,
        .dst = (char *)s->call->out[0] + dst_row * p->dst.w * p->dst.c * p->element + output};
    if (p->parts > 1 && !s->is_finite) {
        compute_plainly(s, a, b, 0);
        return;
    }
    const ptrdiff_t tiles = divide_up(product.positions, LANES);
    const ptrdiff_t lines = a->is_unrolled ? 1 : rows, step = lines_at_once(p, a);
    ptrdiff_t copied = 0;
    int have_parts = 1;
    for (ptrdiff_t line = 0; line < lines; line += step) {
        const ptrdiff_t end = a->is_unrolled ? rows : min(line + step, rows);
        const ptrdiff_t needed = (end - 1) * a->h.stride + (a->h.taps - 1) * a->h.dilation + 1;
        if (has_taps)
            have_parts &= conv_bf16_copy_rows(s, a, b, copied, needed);
        copied = needed;
        product.first = line * a->line;
        product.end = a->is_unrolled ? tiles : end * a->line;
        conv_bf16_multiply(&product);
    }
    if (!have_parts)
        compute_plainly(s, a, b, 0);
    else if (!s->is_finite && a->has_padding)
        compute_plainly(s, a, b, 1);
}

static void run_job(const conv_bf16_work *s, ptrdiff_t job)
{
    const conv_bf16 *p = s->p;
    const ptrdiff_t end = start_of(p->units, p->jobs, job + 1);
    for (ptrdiff_t unit = start_of(p->units, p->jobs, job); unit < end; unit++) {
        const ptrdiff_t output = unit / (p->n * p->bands) * p->group * LANES;
        const conv_bf16_band b = {.image = unit / p->bands % p->n,
                                  .row = unit % p->bands * p->rows,
                                  .output = output,
                                  .outputs = min(p->group * LANES, p->dst.c - output)};
        for (int k = 0; k < p->n_pass; k++) {
            conv_bf16_begin(&p->pass[k]);
            run_pass(s, &p->pass[k], &b);
        }
    }
    conv_bf16_end();
}

static adj_status run(const adj_call *call)
{
    const conv_bf16 *p = call->state;
    int is_finite = 1;
    job_shares jobs;
    share_jobs(&jobs, p->jobs, p->threads);
#pragma omp parallel num_threads(p->threads) if (p->threads > 1)
    {
        if (p->parts > 1) {
#pragma omp for schedule(static) reduction(& : is_finite)
            for (ptrdiff_t i = 0; i < SPLITS; i++)
                is_finite &= split(p, call, i);
        }
        for (int k = 0; k < p->n_pass; k++) {
            const conv_bf16_pass *a = &p->pass[k];
#pragma omp for schedule(static) reduction(& : is_finite)
            for (ptrdiff_t i = 0; i < p->parts * p->blocks * a->steps; i++)
                is_finite &= conv_bf16_pack(p, call, a, i);
        }
        const conv_bf16_work s = {.p = p,
                                  .call = call,
                                  .own = (char *)direct_scratch(call, p->thread) +
                                         p->per_thread * (size_t)omp_get_thread_num(),
                                  .is_finite = is_finite};
        for (int k = 0; k < p->n_pass; k++)
            list_positions(&s, &p->pass[k]);
        for (job_range r; take_jobs(&jobs, omp_get_thread_num(), &r);)
            for (ptrdiff_t job = r.first; job < r.end; job++)
                run_job(&s, job);
    }
    return ADJ_OK;
}

adj_status (*const conv_bf16_run_amx_avx512)(const adj_call *c) = run;

#elif defined(ISA_avx512)
adj_status (*const conv_bf16_run_amx_avx512)(const adj_call *c);
#endif
