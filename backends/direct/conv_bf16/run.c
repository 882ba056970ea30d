/* run.c - the jobs of conv_bf16.h: packs the filter, then copies and multiplies chunk by chunk.
 * Compiled for AVX-512 only; functions that need more name their target. */
#include "backends/direct/arith.h"
#include "conv_bf16.h"

#if HAS_TILES

#include <immintrin.h>
#include <omp.h>

enum {
    LANES = CONV_BF16_LANES,
    ROW = CONV_BF16_STEP,
    TILE = CONV_BF16_TILE,
    TILES = CONV_BF16_TILES, /* tiles of positions that use one loaded tile of the filter */
    AHEAD = 4 << 10,         /* bytes by which dst is prefetched ahead of the stores */
    SPLITS = 16              /* jobs for splitting a filter */
};

/* ---- products ---- */

/* Positions of a pass in a chunk, computed from its scratch. */
typedef struct {
    const conv_bf16_pass *pass;
    ptrdiff_t first, end; /* tiles */
    ptrdiff_t positions, blocks, outputs;
    ptrdiff_t element;               /* bytes of an element of dst and bias */
    const char *src;                 /* the scratch */
    const char *filter;              /* tiles */
    ptrdiff_t src_term, filter_term; /* f32: bytes to the second terms; else 0 */
    const int32_t *tile_at, *dst_at; /* bytes: where tiles begin in src, positions in dst */
    const char *bias;                /* by output; NULL if none */
    char *dst;
} product;

/* Configures the tiles: accumulators are 0 to 3; operands are 4 and 5, or 6 and 7 in a segment's
 * last step. */
__attribute__((target("amx-tile"))) static void configure_tiles(const conv_bf16_pass *p)
{
    _tile_loadconfig(p->shapes);
}

/* Releases the tiles, so that other code starts in the initial state. */
__attribute__((target("amx-tile"))) static void release_tiles(void) { _tile_release(); }

/* Adds to accumulator i a tile of positions, from `src[i] + term` on, times a block of outputs. */
__attribute__((target("amx-tile,amx-bf16"))) static inline void
add_product(const conv_bf16_pass *p, const char *const src[TILES], ptrdiff_t term,
            const char *filter)
{
    const size_t position = (size_t)p->position;
    for (ptrdiff_t i = 0; i < p->h.taps; i++) {
        ptrdiff_t at = p->segment_at[i] + term;
        for (ptrdiff_t k = 0; k < p->whole; k++, at += ROW, filter += TILE) {
            _tile_loadd(5, filter, ROW);
            _tile_loadd(4, src[0] + at, position);
            _tile_dpbf16ps(0, 4, 5);
            _tile_loadd(4, src[1] + at, position);
            _tile_dpbf16ps(1, 4, 5);
            _tile_loadd(4, src[2] + at, position);
            _tile_dpbf16ps(2, 4, 5);
            _tile_loadd(4, src[3] + at, position);
            _tile_dpbf16ps(3, 4, 5);
        }
        if (p->rest > 0) {
            _tile_loadd(7, filter, ROW);
            _tile_loadd(6, src[0] + at, position);
            _tile_dpbf16ps(0, 6, 7);
            _tile_loadd(6, src[1] + at, position);
            _tile_dpbf16ps(1, 6, 7);
            _tile_loadd(6, src[2] + at, position);
            _tile_dpbf16ps(2, 6, 7);
            _tile_loadd(6, src[3] + at, position);
            _tile_dpbf16ps(3, 6, 7);
            filter += TILE;
        }
    }
}

/* Sets sums[i] to the product of a tile of positions, from src[i] on, and a block of outputs:
 * one product for bf16, three partial products for f32, without that of the second terms. */
__attribute__((target("amx-tile,amx-bf16"))) static void multiply_4(const product *p,
                                                                    const char *const src[TILES],
                                                                    const char *filter,
                                                                    char sums[TILES][TILE])
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    add_product(p->pass, src, 0, filter);
    if (p->src_term != 0) {
        add_product(p->pass, src, p->src_term, filter);
        add_product(p->pass, src, 0, filter + p->filter_term);
    }
    _tile_stored(0, sums[0], ROW);
    _tile_stored(1, sums[1], ROW);
    _tile_stored(2, sums[2], ROW);
    _tile_stored(3, sums[3], ROW);
}

/* Rounds to nearest even; NaN stays NaN, as in round_bf16. Tile sums are never subnormal; this
 * instruction would flush subnormal inputs to 0. */
__attribute__((target("avx512bf16"))) static inline __m256i rounded(const char *sum)
{
    return (__m256i)_mm512_cvtneps_pbh(_mm512_load_ps(sum));
}

/* Rounds any number: the sum of a tile's result and a bias may be subnormal. */
static inline __m256i rounded_any(__m512 v)
{
    const __m512i bits = _mm512_castps_si512(v);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_mask_mov_epi32(up, nan, quiet), 16));
}

static inline __m512 bias_of(const product *p, ptrdiff_t block, __mmask16 some)
{
    if (p->bias == NULL)
        return _mm512_setzero_ps();
    if (p->src_term != 0)
        return _mm512_maskz_loadu_ps(some, p->bias + block * LANES * 4);
    const __m256i half = _mm256_maskz_loadu_epi16(some, p->bias + block * LANES * 2);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

typedef enum { BF16, BF16_WITH_BIAS, F32 } result;

/* Computes block `block` of the outputs of positions from `first` on; compiled for each output
 * type. */
__attribute__((always_inline, target("avx512bf16,prfchw"))) static inline void
store_as(result kind, const product *p, ptrdiff_t first, ptrdiff_t block, char sums[TILES][TILE])
{
    const ptrdiff_t left = (p->positions < p->end * LANES ? p->positions : p->end * LANES) - first;
    const ptrdiff_t all = (ptrdiff_t)TILES * LANES, n = left < all ? left : all;
    const ptrdiff_t outputs = p->outputs - block * LANES;
    const __mmask16 some = outputs < LANES ? (__mmask16)((1U << outputs) - 1) : 0xffff;
    const __m512 bias = bias_of(p, block, some);
    const int32_t *at = p->dst_at + first;
    char *dst = p->dst + block * LANES * p->element;
    for (ptrdiff_t i = 0; i < n; i++) {
        const char *sum = sums[0] + i * ROW;
        if (at[i] < 0)
            continue;
        __builtin_prefetch(dst + at[i] + AHEAD, 1, 3);
        if (kind == F32)
            _mm512_mask_storeu_ps(dst + at[i], some, _mm512_add_ps(_mm512_load_ps(sum), bias));
        else if (kind == BF16)
            _mm256_mask_storeu_epi16(dst + at[i], some, rounded(sum));
        else
            _mm256_mask_storeu_epi16(dst + at[i], some,
                                     rounded_any(_mm512_add_ps(_mm512_load_ps(sum), bias)));
    }
}

__attribute__((target("avx512bf16,prfchw"))) static void
store(const product *p, ptrdiff_t first, ptrdiff_t block, char sums[TILES][TILE])
{
    if (p->src_term != 0)
        store_as(F32, p, first, block, sums);
    else if (p->bias != NULL)
        store_as(BF16_WITH_BIAS, p, first, block, sums);
    else
        store_as(BF16, p, first, block, sums);
}

static void multiply_tiles(const product *p, ptrdiff_t tile, ptrdiff_t block)
{
    _Alignas(64) char sums[TILES][TILE];
    const char *src[TILES];
    for (ptrdiff_t i = 0; i < TILES; i++)
        src[i] = p->src + p->tile_at[tile + i < p->end ? tile + i : tile];
    multiply_4(p, src, p->filter + block * p->pass->steps * TILE, sums);
    store(p, tile * LANES, block, sums);
}

/* Loops over positions outside if the filter stays in the first cache, else over blocks of the
 * filter. */
static void multiply(const product *p)
{
    const ptrdiff_t terms = p->src_term != 0 ? 2 : 1;
    if (terms * p->blocks * p->pass->steps <= CONV_BF16_CACHED)
        for (ptrdiff_t tile = p->first; tile < p->end; tile += TILES)
            for (ptrdiff_t block = 0; block < p->blocks; block++)
                multiply_tiles(p, tile, block);
    else
        for (ptrdiff_t block = 0; block < p->blocks; block++)
            for (ptrdiff_t tile = p->first; tile < p->end; tile += TILES)
                multiply_tiles(p, tile, block);
}

static ptrdiff_t start_of(ptrdiff_t n, ptrdiff_t chunks, ptrdiff_t i) { return n * i / chunks; }

/* ---- the filter ---- */

/* Splits one of SPLITS portions of the filter into terms; returns whether all numbers can be
 * split. */
static int split(const conv_bf16 *p, const adj_call *call, ptrdiff_t i)
{
    const ptrdiff_t n = p->kh * p->kw * p->src.c * p->dst.c;
    const ptrdiff_t first = start_of(n, SPLITS, i), end = start_of(n, SPLITS, i + 1);
    char *terms = direct_scratch(call, p->split);
    return conv_bf16_split((const char *)call->in[p->filter_in] + first * p->element, end - first,
                           terms + first * 2, terms + (n + first) * 2);
}

/* ---- a chunk ---- */

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

/* Lists the tiles and positions of a chunk. */
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
    if (a->is_unrolled || p->terms * p->group * a->steps > CONV_BF16_CACHED)
        return a->lines;
    return max(CONV_BF16_TILES / a->line, 1);
}

/* Computes by the definition, in double, all positions of a chunk, or those alone whose windows
 * reach padding. */
static void compute_plainly(const conv_bf16_work *s, const conv_bf16_pass *a,
                            const conv_bf16_chunk *b, int is_border)
{
    const conv_bf16 *p = s->p;
    const adj_call *c = s->call;
    const ptrdiff_t pixel = p->dst.c * p->element, image = p->src.h * p->src.w * p->src.c;
    conv_plain plain = {.pass = {a->h, a->w},
                        .dtype = p->terms > 1 ? ADJ_F32 : ADJ_BF16,
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

static void run_pass(const conv_bf16_work *s, const conv_bf16_pass *a, const conv_bf16_chunk *b)
{
    const conv_bf16 *p = s->p;
    const ptrdiff_t rows = min(p->rows, a->h.dst - b->row);
    const ptrdiff_t dst_row = b->image * p->dst.h + a->h.first + b->row * a->h.step;
    const ptrdiff_t output = b->output * p->element;
    const int has_taps = a->h.taps > 0 && a->w.taps > 0;
    if (rows <= 0 || a->w.dst == 0)
        return;
    product all = {
        .pass = a,
        .positions = a->is_unrolled ? rows * a->w.dst : rows * a->line * LANES,
        .blocks = divide_up(b->outputs, LANES),
        .outputs = b->outputs,
        .element = p->element,
        .src = s->own + p->image,
        .filter = (char *)direct_scratch(s->call, a->filter) + b->output / LANES * a->steps * TILE,
        .src_term = p->term,
        .filter_term = p->blocks * a->steps * TILE,
        .tile_at = (const int32_t *)(s->own + a->tiles),
        .dst_at = (const int32_t *)(s->own + a->dst),
        .bias = p->bias_in >= 0 ? (const char *)s->call->in[p->bias_in] + output : NULL,
        .dst = (char *)s->call->out[0] + dst_row * p->dst.w * p->dst.c * p->element + output};
    if (p->terms > 1 && !s->is_finite) {
        compute_plainly(s, a, b, 0);
        return;
    }
    const ptrdiff_t tiles = divide_up(all.positions, LANES);
    const ptrdiff_t lines = a->is_unrolled ? 1 : rows, step = lines_at_once(p, a);
    ptrdiff_t copied = 0;
    int have_terms = 1;
    for (ptrdiff_t line = 0; line < lines; line += step) {
        const ptrdiff_t end = a->is_unrolled ? rows : min(line + step, rows);
        const ptrdiff_t needed = (end - 1) * a->h.stride + (a->h.taps - 1) * a->h.dilation + 1;
        if (has_taps)
            have_terms &= conv_bf16_copy_rows(s, a, b, copied, needed);
        copied = needed;
        all.first = line * a->line;
        all.end = a->is_unrolled ? tiles : end * a->line;
        multiply(&all);
    }
    if (!have_terms)
        compute_plainly(s, a, b, 0);
    else if (!s->is_finite && a->has_padding)
        compute_plainly(s, a, b, 1);
}

static void run_job(const conv_bf16_work *s, ptrdiff_t job)
{
    const conv_bf16 *p = s->p;
    const ptrdiff_t end = start_of(p->units, p->jobs, job + 1);
    for (ptrdiff_t unit = start_of(p->units, p->jobs, job); unit < end; unit++) {
        const ptrdiff_t output = unit / (p->n * p->chunks) * p->group * LANES;
        const conv_bf16_chunk b = {.image = unit / p->chunks % p->n,
                                   .row = unit % p->chunks * p->rows,
                                   .output = output,
                                   .outputs = min(p->group * LANES, p->dst.c - output)};
        for (int k = 0; k < p->n_pass; k++) {
            configure_tiles(&p->pass[k]);
            run_pass(s, &p->pass[k], &b);
        }
    }
    release_tiles();
}

static adj_status run(const adj_call *call)
{
    const conv_bf16 *p = call->state;
    int is_finite = 1;
    job_shares jobs;
    share_jobs(&jobs, p->jobs, p->threads);
#pragma omp parallel num_threads(p->threads) if (p->threads > 1)
    {
        if (p->terms > 1) {
#pragma omp for schedule(static) reduction(& : is_finite)
            for (ptrdiff_t i = 0; i < SPLITS; i++)
                is_finite &= split(p, call, i);
        }
        for (int k = 0; k < p->n_pass; k++) {
            const conv_bf16_pass *a = &p->pass[k];
#pragma omp for schedule(static) reduction(& : is_finite)
            for (ptrdiff_t i = 0; i < p->terms * p->blocks * a->steps; i++)
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
