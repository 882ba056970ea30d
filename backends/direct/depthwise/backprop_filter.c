/* backprop_filter.c - dw: sums over all pixels of x's window times dy. Compiled per type as in
 * grid.h.
 *
 * A job is a segment of the rows of all images, for one chunk. Sums have three levels: a few
 * rows in registers, an image (about FLUSH rows) in reals, a segment in double; segments are
 * added in order. Their number does not depend on the threads, so neither do the results. */
#include <stdint.h>
#include <string.h>

#include "backends/direct/arith.h"
#include "rows.h"

enum { FLUSH = 128 };

typedef struct {
    depthwise_image image;
    const real *dy; /* dy of the image, if it is not bf16 */
    real *rows;     /* a row of dy converted to reals */
    real *sums;
    double *totals;
} pass;

static void flush(const pass *s)
{
    const adj_conv_geom *g = &s->image.d->g;
    flush_sums(g->kh * g->kw * s->image.chunk.tiled_width, s->sums, s->totals);
}

/* True if rows of dy can be read in place. */
static int is_ready(const depthwise *d, const depthwise_chunk *c)
{
    return d->dtype != ADJ_BF16 && !d->packed && c->valid == c->tiled_width;
}

/* Returns how many of the rows row .. end are summed at a time: rows whose whole kernel is
 * inside the image load and store the sums only once. */
static int lines_at(const pass *s, ptrdiff_t row, ptrdiff_t end)
{
    const depthwise *d = s->image.d;
    int lines = 0, max = is_ready(d, &s->image.chunk) ? d->lines_at_once : 1;
    while (lines < max && row + lines < end && depthwise_src_row(d, row + lines, 0) >= 0 &&
           depthwise_src_row(d, row + lines, d->g.kh - 1) >= 0)
        lines++;
    return lines > 1 ? lines : 1;
}

static void add_rows(const pass *s, ptrdiff_t row, int lines, const char *dy)
{
    const depthwise *d = s->image.d;
    const depthwise_chunk *c = &s->image.chunk;
    int ready = is_ready(d, c);
    const real *src = s->rows;
    if (ready)
        src = (const real *)(const void *)dy + c->first;
    else
        TYPED(depthwise_load)(&s->image, s->rows, dy);
    depthwise_window window[GRID_LINES];
    for (int line = 0; line < lines; line++)
        TYPED(depthwise_look)(&s->image, row + line, &window[line]);
    TYPED(depthwise_prefetch)(&s->image, ready ? s->dy : NULL, row + lines);
    for (int i = 0; i < d->n_run; i++) {
        const depthwise_run *r = &d->run[i];
        grid g = {.correlate = 1, .w = {s->sums}, .tiled_width = c->tiled_width, .lines = lines};
        g.y_line = d->dst.w * d->dst.c;
        const ptrdiff_t lanes = (r->end - r->first) * c->pitch;
        g.vectors = divide_up(lanes, VECTOR);
        g.rest = lanes - (g.vectors - 1) * VECTOR;
        g.y_step = ready ? d->dst.c : c->tiled_width;
        g.y = (real *)src + r->first * (ready ? d->dst.c : c->pitch);
        TYPED(depthwise_run_grids)(&s->image, window, r, &g);
    }
}

static void add_segment(const adj_call *call, ptrdiff_t job, int thread)
{
    const depthwise *d = call->state;
    ptrdiff_t total = d->g.n * d->dst.h, segment = job / d->n_chunk, unflushed = 0;
    ptrdiff_t first = total * segment / d->segments, end = total * (segment + 1) / d->segments;
    char *own = direct_scratch(call, d->thread + d->per_thread * (size_t)thread);
    pass s = {.image = {.d = d, .ring = row_ring_at(own + d->ring, d->slots, d->row_size)}};
    s.rows = (real *)(own + d->rows);
    s.sums = (real *)(own + d->sums);
    s.totals = (double *)direct_scratch(call, d->filters) + job * d->weights;
    memset(s.sums, 0, (size_t)d->weights * sizeof(real));
    memset(s.totals, 0, (size_t)d->weights * sizeof(double));
    memset(s.rows, 0, (size_t)d->buffer * sizeof(real));
    TYPED(depthwise_begin)(&s.image, depthwise_chunk_of(d, job % d->n_chunk), 1);
    int lines = 1;
    for (ptrdiff_t i = first; i < end; i += lines) {
        ptrdiff_t n = i / d->dst.h, row = i % d->dst.h;
        if (i == first || row == 0 || unflushed >= FLUSH) {
            flush(&s);
            unflushed = 0;
        }
        if (i == first || row == 0) {
            s.dy = (const real *)call->in[d->other_in] + n * d->dst.h * d->dst.w * d->dst.c;
            TYPED(depthwise_begin_image)(&s.image, call, n);
        }
        lines = lines_at(&s, row, min(d->dst.h, row + end - i));
        add_rows(&s, row, lines,
                 (const char *)call->in[d->other_in] +
                     tensor_bytes(d->dtype, i * d->dst.w * d->dst.c));
        unflushed += lines;
    }
    flush(&s);
}

/* Sums dw[tap][lane] over the segments, and over the positions of the lane in a tiled vector. */
static void add_up(const adj_call *call, ptrdiff_t job)
{
    const depthwise *d = call->state;
    (void)job;
    double *sums = (double *)direct_scratch(call, d->filters);
    for (ptrdiff_t i = 0; i < d->n_chunk; i++) {
        depthwise_chunk c = depthwise_chunk_of(d, i);
        double *total = sums + i * d->weights;
        add_segments(total, d->g.kh * d->g.kw * c.tiled_width, d->n_chunk * d->weights,
                     d->segments);
        for (ptrdiff_t tap = 0; tap < d->g.kh * d->g.kw; tap++, total += c.tiled_width)
            for (ptrdiff_t lane = 0; lane < c.valid; lane++) {
                for (ptrdiff_t k = lane + c.valid; d->packed && k < c.tiled_width; k += c.valid)
                    total[lane] += total[k];
                adj_store(d->dtype, call->out[0], tap * d->lanes + c.first + lane, total[lane]);
            }
    }
}

const direct_code TYPED(depthwise_filter) = {NULL, add_segment, add_up};
