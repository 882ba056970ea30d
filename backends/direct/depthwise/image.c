/* image.c - y and dx: rows of an image as sums over the taps of their windows. Compiled per type
 * as in grid.h. */
#include <stdint.h>

#include "rows.h"

/* Packs weights to [chunk][kh][kw][tiled_width], with zeros in lanes beyond the chunk. */
static void lay_out_filter(const adj_call *call)
{
    const depthwise *d = call->state;
    const char *w = call->in[d->other_in];
    for (ptrdiff_t i = 0; i < d->n_chunk; i++) {
        depthwise_chunk c = depthwise_chunk_of(d, i);
        real *dst = (real *)direct_scratch(call, d->filters) + i * d->weights;
        for (ptrdiff_t tap = 0; tap < d->g.kh * d->g.kw; tap++, dst += c.tiled_width) {
            load_reals(d->dtype, c.valid, dst,
                       w + tensor_bytes(d->dtype, tap * d->lanes + c.first));
            for (ptrdiff_t lane = c.valid; lane < c.tiled_width; lane++)
                dst[lane] = d->packed ? dst[lane - c.valid] : 0;
        }
    }
}

typedef struct {
    depthwise_image image;
    const real *filter;
    char *dst;  /* the image written */
    real *rows; /* results that cannot be written in place */
    int straight;
} pass;

/* True if sums can be written to the image directly. */
static int goes_straight(const depthwise *d, const depthwise_chunk *c)
{
    if (d->dtype == ADJ_BF16 || (d->is_dx && d->multiplier > 1))
        return 0;
    if (d->packed)
        return d->phases == 1 && d->dst.w * d->lanes % DEPTHWISE_LANES == 0;
    return c->valid == c->tiled_width;
}

static void clear_pixels(const grid *g)
{
    ptrdiff_t across = g->tiled_width / VECTOR;
    for (ptrdiff_t i = 0; i < g->vectors; i++)
        *(vector *)(g->y + i / across * g->y_step + i % across * VECTOR) = (vector){0};
}

static void compute_row(const pass *s, ptrdiff_t row)
{
    const depthwise *d = s->image.d;
    const depthwise_chunk *c = &s->image.chunk;
    real *dst = (real *)s->dst + row * d->dst.w * d->dst.c + c->first;
    depthwise_window window;
    TYPED(depthwise_look)(&s->image, row, &window);
    TYPED(depthwise_prefetch)(&s->image, s->straight ? (const real *)s->dst : NULL, row + 1);
    for (int i = 0; i < d->n_run; i++) {
        const depthwise_run *r = &d->run[i];
        grid g = {.w = {(real *)s->filter}, .tiled_width = c->tiled_width, .lines = 1};
        g.vectors = ((r->end - r->first) * c->pitch + VECTOR - 1) / VECTOR;
        if (s->straight) {
            g.y = dst + (r->first * d->phases + r->phase) * d->dst.c;
            g.y_step = d->packed ? c->tiled_width : d->phases * d->dst.c;
        } else {
            g.y = s->rows + r->phase * d->buffer + r->first * c->pitch;
            g.y_step = c->tiled_width;
        }
        if (window.n > 0 && r->end_tap > r->tap)
            TYPED(depthwise_run_grids)(&s->image, &window, r, &g);
        else
            clear_pixels(&g);
    }
    if (!s->straight)
        TYPED(depthwise_store)(&s->image, row, s->dst, s->rows);
}

/* Computes rows first .. end of all images' chunks, an image's chunks one after the other. */
static void share(const adj_call *call, ptrdiff_t job, int thread)
{
    const depthwise *d = call->state;
    ptrdiff_t total = d->g.n * d->n_chunk * d->dst.h, before = -1;
    ptrdiff_t first = total * job / d->work.jobs, end = total * (job + 1) / d->work.jobs;
    char *own = direct_scratch(call, d->thread + d->per_thread * (size_t)thread);
    pass s = {.image = {.d = d, .ring = row_ring_at(own + d->ring, d->slots, d->row_size)},
              .rows = (real *)(own + d->rows)};
    for (ptrdiff_t i = first; i < end; i++) {
        ptrdiff_t chunk = i / d->dst.h % d->n_chunk, n = i / d->dst.h / d->n_chunk;
        if (i == first || i % d->dst.h == 0) {
            depthwise_chunk c = depthwise_chunk_of(d, chunk);
            TYPED(depthwise_begin)(&s.image, c, c.pitch != before);
            TYPED(depthwise_begin_image)(&s.image, call, n);
            before = c.pitch;
            s.dst =
                (char *)call->out[0] + tensor_bytes(d->dtype, n * d->dst.h * d->dst.w * d->dst.c);
            s.filter = (real *)direct_scratch(call, d->filters) + chunk * d->weights;
            s.straight = goes_straight(d, &s.image.chunk);
        }
        compute_row(&s, i % d->dst.h);
    }
}

const direct_code TYPED(depthwise_image) = {lay_out_filter, share, NULL};
