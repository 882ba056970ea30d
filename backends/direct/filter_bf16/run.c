/* run.c - the jobs of filter_bf16.h: packs chunks, multiplies them, adds up the segments. Compiled
 * for AVX-512 only. */
#include "filter_bf16.h"

#if HAS_BF16_PRODUCTS

#include <string.h>

#include "backends/direct/arith.h"
#include "backends/direct/half.h"

enum {
    LANES = FILTER_BF16_LANES,
    STEP = FILTER_BF16_STEP,
    ENTRY = FILTER_BF16_ENTRY,
    TILE = FILTER_BF16_TILE,
    STRIP = 64 /* pixels packed for all blocks at a time, to stay in the first cache */
};

static ptrdiff_t start_of(ptrdiff_t n, ptrdiff_t chunks, ptrdiff_t i) { return n * i / chunks; }

/* ---- packing ---- */

static const char *x_of(const filter_bf16_work *s, filter_bf16_chunk c)
{
    const filter_bf16 *p = s->p;
    return s->x + (c.image * p->h.a.src * p->w.a.src * p->ic + s->first_input) * p->element;
}

static const char *dy_of(const filter_bf16_work *s, filter_bf16_chunk c)
{
    const filter_bf16 *p = s->p;
    return s->dy + (c.image * p->h.a.dst * p->w.a.dst * p->oc + s->first_output) * p->element;
}

static int pack_x(const filter_bf16_work *s, filter_bf16_chunk c, ptrdiff_t entries, char *pairs)
{
    int is_finite = 1;
    for (ptrdiff_t i = 0; i < entries; i += STRIP)
        for (ptrdiff_t b = 0; b < s->input_blocks; b++) {
            const filter_bf16_pixels pixels = {x_of(s, c) + b * LANES * s->p->element, s->x_at + i,
                                               min(s->inputs - b * LANES, LANES), s->p->pairs_term};
            is_finite &= filter_bf16_pack_pairs(&pixels, min(entries - i, STRIP),
                                                pairs + (b * s->p->entries + i) * ENTRY);
        }
    return is_finite;
}

static int pack_dy(const filter_bf16_work *s, filter_bf16_chunk c, ptrdiff_t steps)
{
    int (*const pack)(const filter_bf16_pixels *, ptrdiff_t, char *) =
        s->p->is_dense ? filter_bf16_pack_dense : filter_bf16_pack_outputs;
    int is_finite = 1;
    for (ptrdiff_t i = 0; i < steps; i += STRIP / STEP)
        for (ptrdiff_t b = 0; b < s->output_blocks; b++) {
            const filter_bf16_pixels pixels = {
                dy_of(s, c) + b * LANES * s->p->element, s->dy_at + i * STEP,
                min(s->outputs - b * LANES, LANES), s->p->tiles_term};
            is_finite &=
                pack(&pixels, min(steps - i, STRIP / STEP), s->tiles + (b * steps + i) * TILE);
        }
    return is_finite;
}

/* ---- products ---- */

/* Appends the columns of block b for the taps in a phase, after the first n; returns n with
 * them. pairs: offset of the block's pairs. */
static ptrdiff_t add_columns(const filter_bf16_work *s, ptrdiff_t n, filter_bf16_tap phase,
                             ptrdiff_t b, ptrdiff_t pairs)
{
    const filter_bf16_axis *h = &s->p->h, *w = &s->p->w;
    for (ptrdiff_t kh = 0; kh < h->a.taps; kh++)
        for (ptrdiff_t kw = 0; kw < w->a.taps; kw++) {
            const ptrdiff_t tap = kh * w->a.taps + kw;
            const ptrdiff_t shift = filter_bf16_shift(h, kh) * w->pitch + filter_bf16_shift(w, kw);
            if (filter_bf16_phase(h, kh) == phase.kh && filter_bf16_phase(w, kw) == phase.kw)
                s->column[n++] = (filter_bf16_column){.pairs = pairs + shift * ENTRY,
                                                      .sums = (tap * s->p->inputs + b) * TILE};
        }
    return n;
}

/* Multiplies n columns; the spare ones after them write to the spare tile. */
static void multiply_columns(const filter_bf16_work *s, ptrdiff_t steps, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < FILTER_BF16_SPARE; i++)
        s->column[n + i] = (filter_bf16_column){.pairs = 0, .sums = s->p->columns * TILE};
    filter_bf16_multiply(s, steps, n);
}

/* Adds every tap of a chunk of finite numbers. Returns 0, adding nothing, if one is not finite. */
static int add_chunk(const filter_bf16_work *s, filter_bf16_chunk c, ptrdiff_t steps)
{
    const filter_bf16 *p = s->p;
    const ptrdiff_t block = p->entries * ENTRY;
    const ptrdiff_t entries = round_up(filter_bf16_positions(p, c), STEP) + p->shift;
    ptrdiff_t n = 0, pairs = 0;
    filter_bf16_list_dy(p, c, s->dy_at);
    if (p->is_dense)
        filter_bf16_list_pairs(p, c, s->pair_at);
    int is_finite = pack_dy(s, c, steps);
    for (ptrdiff_t i = 0; i < p->h.a.stride * p->w.a.stride; i++) {
        const filter_bf16_tap phase = {i / p->w.a.stride, i % p->w.a.stride};
        const ptrdiff_t before = n;
        for (ptrdiff_t b = 0; b < s->input_blocks; b++)
            n = add_columns(s, n, phase, b, pairs + b * block);
        if (n == before)
            continue; /* the phase has no tap */
        filter_bf16_list_x(p, c, phase, s->x_at);
        is_finite &= pack_x(s, c, entries, s->pairs + pairs);
        pairs += s->input_blocks * block;
    }
    if (is_finite)
        multiply_columns(s, steps, n);
    return is_finite;
}

/* Adds dy[o] * x[c] of a pixel in f32. */
static void add_pixel(const filter_bf16_work *s, ptrdiff_t tap, const float *x, const float *dy)
{
    for (ptrdiff_t o = 0; o < s->outputs; o++)
        for (ptrdiff_t c = 0; c < s->inputs; c++) {
            char *tile =
                s->sums + o / LANES * s->p->sums_row + (tap * s->p->inputs + c / LANES) * TILE;
            ((float *)(void *)tile)[o % LANES * LANES + c % LANES] += dy[o] * x[c];
        }
}

/* Adds the n pixels listed for the tap. */
static void add_pixels(const filter_bf16_work *s, filter_bf16_chunk c, ptrdiff_t tap, ptrdiff_t n)
{
    for (ptrdiff_t k = 0; k < n; k++)
        add_pixel(s, tap, (const float *)(const void *)(x_of(s, c) + s->x_at[k]),
                  (const float *)(const void *)(dy_of(s, c) + s->dy_at[k]));
}

/* Adds a chunk of any numbers tap by tap, from the pixels inside x only. */
static void add_chunk_of_any(const filter_bf16_work *s, filter_bf16_chunk c)
{
    const filter_bf16 *p = s->p;
    for (ptrdiff_t i = 0; p->is_dense && i < p->steps * STEP / 2; i++)
        s->pair_at[i] = (int32_t)(i * 2 * ENTRY);
    for (ptrdiff_t i = 0; i < p->taps; i++) {
        const filter_bf16_tap tap = {i / p->w.a.taps, i % p->w.a.taps};
        const ptrdiff_t n = filter_bf16_list_tap(p, c, tap, s->x_at, s->dy_at);
        const ptrdiff_t steps = divide_up(n, STEP);
        if (p->terms > 1) {
            add_pixels(s, c, i, n);
            continue;
        }
        (void)pack_dy(s, c, steps);
        (void)pack_x(s, c, steps * STEP, s->pairs);
        for (ptrdiff_t b = 0; b < s->input_blocks; b++)
            s->column[b] = (filter_bf16_column){.pairs = b * p->entries * ENTRY,
                                                .sums = (i * p->inputs + b) * TILE};
        multiply_columns(s, steps, s->input_blocks);
    }
}

/* ---- jobs ---- */

/* Adds units `first` to `end`: images, or rows of one. */
static void add_units(const filter_bf16_work *s, ptrdiff_t first, ptrdiff_t end)
{
    const filter_bf16 *p = s->p;
    for (ptrdiff_t i = first; i < end; i += p->images) {
        const ptrdiff_t row = i % p->per_image * p->rows;
        const filter_bf16_chunk c = {.image = i / p->per_image,
                                     .images = min(p->images, end - i),
                                     .row = row,
                                     .rows = min(p->rows, p->h.a.dst - row)};
        if (!add_chunk(s, c, filter_bf16_steps(p, c)))
            add_chunk_of_any(s, c);
    }
}

static void run_job(const adj_call *call, ptrdiff_t job, int thread)
{
    const filter_bf16 *p = call->state;
    char *own = direct_scratch(call, p->thread + p->per_thread * (size_t)thread);
    const ptrdiff_t units = p->n * p->per_image, segment = job % p->segments;
    const ptrdiff_t group = job / p->segments;
    const ptrdiff_t input = group % p->input_groups * p->inputs * LANES;
    const ptrdiff_t output = group / p->input_groups * p->outputs * LANES;
    filter_bf16_work s = {.p = p,
                          .x = call->in[p->x_in],
                          .dy = call->in[p->dy_in],
                          .first_input = input,
                          .inputs = min(p->ic - input, p->inputs * LANES),
                          .first_output = output,
                          .outputs = min(p->oc - output, p->outputs * LANES),
                          .x_at = (int32_t *)(own + p->x_at),
                          .dy_at = (int32_t *)(own + p->dy_at),
                          .pair_at = (int32_t *)(own + p->pair_at),
                          .column = (filter_bf16_column *)(own + p->column),
                          .pairs = own + p->pairs,
                          .tiles = own + p->tiles};
    s.input_blocks = divide_up(s.inputs, LANES);
    s.output_blocks = divide_up(s.outputs, LANES);
    s.sums = (char *)direct_scratch(call, p->sums) + job * p->outputs * p->sums_row;
    memset(s.sums, 0, (size_t)(p->outputs * p->sums_row));
    if (!p->is_dense)
        filter_bf16_begin();
    add_units(&s, start_of(units, p->segments, segment), start_of(units, p->segments, segment + 1));
    if (!p->is_dense)
        filter_bf16_end();
}

/* ---- the result ---- */

/* Stores dw[tap][c][o] = tile[c][o]. */
static void store_tile(const filter_bf16 *p, const float *tile, void *dw, ptrdiff_t first,
                       ptrdiff_t inputs, ptrdiff_t outputs)
{
    for (ptrdiff_t c = 0; c < inputs; c++, tile += LANES, first += p->oc)
        for (ptrdiff_t o = 0; o < outputs; o++)
            if (p->dtype == ADJ_BF16)
                ((uint16_t *)dw)[first + o] = round_bf16(tile[o]);
            else
                ((float *)dw)[first + o] = tile[o];
}

/* Adds a tile over the segments of its group. */
static void add_up(const adj_call *call, ptrdiff_t job)
{
    const filter_bf16 *p = call->state;
    const ptrdiff_t group = job / (p->outputs * p->columns);
    const ptrdiff_t row = job / p->columns % p->outputs, column = job % p->columns;
    const ptrdiff_t tap = column / p->inputs;
    const ptrdiff_t c = (group % p->input_groups * p->inputs + column % p->inputs) * LANES;
    const ptrdiff_t o = (group / p->input_groups * p->outputs + row) * LANES;
    if (c >= p->ic || o >= p->oc)
        return;
    const ptrdiff_t pitch = p->outputs * p->sums_row;
    const char *sums = (const char *)direct_scratch(call, p->sums) + group * p->segments * pitch +
                       row * p->sums_row + column * TILE;
    _Alignas(64) float tile[LANES * LANES];
    filter_bf16_add_up(sums, pitch, p->segments, tile);
    store_tile(p, tile, call->out[0], (tap * p->ic + c) * p->oc + o, min(p->ic - c, LANES),
               min(p->oc - o, LANES));
}

static const direct_code code = {.job = run_job, .end = add_up};
const direct_code *const filter_bf16_code_avx512 = &code;

#elif defined(ISA_avx512)
const direct_code *const filter_bf16_code_avx512;
#endif
