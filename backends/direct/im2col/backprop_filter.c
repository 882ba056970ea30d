/* backprop_filter.c - dw: see im2col.h. Compiled for f32, which takes bf16 as well,
 * and for f64.
 *
 * A job is a segment of all images' pixels. Sums have three levels: a chunk's in registers, those
 * of FLUSH chunks as reals, a segment's in double; segments are added in order. Their number does
 * not depend on the threads, so neither do the results. */
#include <string.h>

#include "backends/direct/arith.h"
#include "rows.h"

enum { FLUSH = 16 };

typedef struct {
    im2col_window window;
    const char *dy; /* all images */
    real *cols, *outputs, *sums;
    double *totals;
} pass;

static void flush(const pass *s)
{
    flush_sums(s->window.d->taps * s->window.d->o_pitch, s->sums, s->totals);
}

/* n pixels of dy, each in whole vectors. */
static const real *outputs_of(const pass *s, ptrdiff_t first, ptrdiff_t n)
{
    const im2col *d = s->window.d;
    ptrdiff_t outputs = d->g.oc;
    const char *dy = s->dy + tensor_bytes(d->dtype, first * outputs);
    if (d->o_pitch == outputs && d->dtype != ADJ_BF16)
        return (const real *)(const void *)dy;
    if (d->o_pitch == outputs)
        load_reals(d->dtype, n * outputs, s->outputs, dy);
    else
        for (ptrdiff_t i = 0; i < n; i++)
            load_reals(d->dtype, outputs, s->outputs + i * d->o_pitch,
                       dy + tensor_bytes(d->dtype, i * outputs));
    return s->outputs;
}

/* n whole vectors of them; an infinity or a NaN times zero is NaN. */
static int is_finite(const real *x, ptrdiff_t n)
{
    vector sum = {0};
    for (ptrdiff_t i = 0; i < n; i++)
        sum += ((const vector *)x)[i] * 0;
    for (int lane = 0; lane < VECTOR; lane++)
        if (sum[lane] != 0) /* NaN */
            return 0;
    return 1;
}

/* A pixel's products with one tap's channels of x. */
static void add_tap(const pass *s, ptrdiff_t tap, ptrdiff_t x_pixel, const real *dy)
{
    const im2col *d = s->window.d;
    const ptrdiff_t channels = d->g.ic;
    real x[IM2COL_CHANNELS];
    load_reals(d->dtype, channels, x, s->window.x + tensor_bytes(d->dtype, x_pixel * channels));
    for (ptrdiff_t c = 0; c < channels; c++) {
        real *sums = s->sums + (tap * channels + c) * d->o_pitch;
        for (ptrdiff_t o = 0; o < d->g.oc; o++)
            sums[o] += x[c] * dy[o];
    }
}

/* For dy with infinities or NaN, which zeros of the padding would make NaN: taps within x alone. */
static void add_within(const pass *s, ptrdiff_t first, ptrdiff_t n, const real *dy)
{
    const adj_conv_geom *g = &s->window.d->g;
    for (ptrdiff_t at = first; at < first + n; at++, dy += s->window.d->o_pitch) {
        const ptrdiff_t image = at / (g->oh * g->ow), oh = at / g->ow % g->oh, ow = at % g->ow;
        for (ptrdiff_t tap = 0; tap < g->kh * g->kw; tap++) {
            const ptrdiff_t ih = oh * g->sh + tap / g->kw - g->pt;
            const ptrdiff_t iw = ow * g->sw + tap % g->kw - g->pl;
            if (ih >= 0 && ih < g->ih && iw >= 0 && iw < g->iw)
                add_tap(s, tap, (image * g->ih + ih) * g->iw + iw, dy);
        }
    }
}

static void add_chunk(const pass *s, ptrdiff_t first, ptrdiff_t n)
{
    const im2col *d = s->window.d;
    const adj_conv_geom *g = &d->g;
    const real *dy = outputs_of(s, first, n);
    if (!is_finite(dy, n * d->o_pitch / VECTOR)) {
        add_within(s, first, n, dy);
        return;
    }
    ptrdiff_t next = first + d->chunk;
    int is_more = next + n <= g->n * g->oh * g->ow;
    const char *prefetch = is_more ? s->dy + tensor_bytes(d->dtype, next * g->oc) : NULL;
    TYPED(im2col_gather)(&s->window, first, n, s->cols, prefetch);
    const micro_gemm p = {.rows = d->taps,
                          .depth = n,
                          .a_is_transposed = 1,
                          .a = s->cols,
                          .b = dy,
                          .c = s->sums,
                          .a_pitch = d->pitch,
                          .b_pitch = d->o_pitch,
                          .c_pitch = d->o_pitch,
                          .add = 1};
    TYPED(im2col_multiply)(p, d->o_pitch / VECTOR);
}

static void add_segment(const adj_call *call, ptrdiff_t job, int thread)
{
    const im2col *d = call->state;
    ptrdiff_t total = d->g.n * d->g.oh * d->g.ow, sums = d->taps * d->o_pitch, unflushed = 0;
    ptrdiff_t first = total * job / d->work.jobs, end = total * (job + 1) / d->work.jobs;
    char *own = direct_scratch(call, d->thread + d->per_thread * (size_t)thread);
    pass s = {.window = {.d = d,
                         .x = call->in[d->other_in],
                         .ring = row_ring_at(own + d->ring, d->slots, d->row)},
              .dy = call->in[d->dy_in]};
    s.cols = (real *)(own + d->cols);
    s.outputs = (real *)(own + d->outputs);
    s.sums = (real *)(own + d->sums);
    s.totals = (double *)direct_scratch(call, d->totals) + job * sums;
    memset(s.sums, 0, (size_t)sums * sizeof(real));
    memset(s.totals, 0, (size_t)sums * sizeof(double));
    memset(s.outputs, 0, (size_t)(d->chunk * d->o_pitch) * sizeof(real));
    row_ring_clear(&s.window.ring); /* of which only the inside of rows is written */
    row_ring_forget(&s.window.ring);
    for (ptrdiff_t i = first; i < end; i += d->chunk) {
        add_chunk(&s, i, end - i < d->chunk ? end - i : d->chunk);
        if (++unflushed == FLUSH) {
            flush(&s);
            unflushed = 0;
        }
    }
    flush(&s);
}

/* dw[tap][output], over the segments. */
static void add_up(const adj_call *call)
{
    const im2col *d = call->state;
    double *total = (double *)direct_scratch(call, d->totals);
    ptrdiff_t sums = d->taps * d->o_pitch, outputs = d->g.oc;
    add_segments(total, sums, sums, d->work.jobs);
    for (ptrdiff_t tap = 0; tap < d->taps; tap++)
        for (ptrdiff_t o = 0; o < outputs; o++)
            adj_store(d->dtype, call->out[0], tap * outputs + o, total[tap * d->o_pitch + o]);
}

const direct_code TYPED(im2col_filter) = {NULL, add_segment, add_up};
