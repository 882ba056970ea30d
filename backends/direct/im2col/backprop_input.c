/* backprop_input.c - dx: see im2col.h. Compiled for f32, which takes bf16 as well,
 * and for f64.
 *
 * The order of an element's sum is fixed: over outputs in the product, then over kernel rows, then
 * over planes; so any number of threads gives the same bits. */
#include <string.h>

#include "backends/direct/arith.h"
#include "rows.h"

typedef struct { /* some of an image's columns */
    const im2col *d;
    const real *panels;
    const char *dy; /* the image's */
    char *dx;
    ptrdiff_t first, end;    /* columns of dx; */
    ptrdiff_t pixel, pixels; /* of dy: the first that they read; how many */
    row_ring ring;           /* of dy's rows times the filter */
    real *planes, *wide;     /* wide: a row of dy, or of dx, that is bf16 in memory */
    real *sums;
} column_tile;

static const char *pixels_of(const column_tile *s, ptrdiff_t oh)
{
    return s->dy + tensor_bytes(s->d->dtype, (oh * s->d->g.ow + s->pixel) * s->d->g.oc);
}

/* dy's row oh times the filter, which the ring has after this. */
static const real *im2col_row(const column_tile *s, ptrdiff_t oh)
{
    const im2col *d = s->d;
    ptrdiff_t count = s->pixels * d->g.oc;
    int is_cached;
    real *row = row_ring_slot(&s->ring, oh % d->slots, oh, &is_cached);
    if (is_cached)
        return row;
    const void *dy = pixels_of(s, oh);
    if (d->dtype == ADJ_BF16)
        load_reals(d->dtype, count, s->wide, dy);
    const micro_gemm p = {.rows = s->pixels,
                          .depth = d->g.oc,
                          .a = d->dtype == ADJ_BF16 ? s->wide : dy,
                          .b = s->panels,
                          .c = row,
                          .a_pitch = d->g.oc,
                          .c_pitch = d->pitch,
                          .prefetch = oh + 1 < d->g.oh ? pixels_of(s, oh + 1) : NULL,
                          .prefetch_bytes = tensor_bytes(d->dtype, d->g.oc)};
    TYPED(im2col_multiply)(p, d->pitch / VECTOR);
    return row;
}

/* n elements, from element `at` of the planes on. */
static void add_planes(const column_tile *s, ptrdiff_t at, ptrdiff_t n, real *dst)
{
    const im2col *d = s->d;
    const real *src = s->planes + at;
    ptrdiff_t i = 0, planes = d->planes;
    for (; i + VECTOR <= n; i += VECTOR) {
        vector sum = *(const vector *)(src + i);
        for (ptrdiff_t k = 1; k < planes; k++)
            sum += *(const vector *)(src + k * d->plane + i);
        *(vector *)(dst + i) = sum;
    }
    for (; i < n; i++) {
        real sum = src[i];
        for (ptrdiff_t k = 1; k < planes; k++)
            sum += src[k * d->plane + i];
        dst[i] = sum;
    }
}

static void compute_row(const column_tile *s, ptrdiff_t ih)
{
    const im2col *d = s->d;
    const adj_conv_geom *g = &d->g;
    ptrdiff_t n = (s->end - s->first) * g->ic;
    void *dst = s->dx + tensor_bytes(d->dtype, (ih * g->iw + s->first) * g->ic);
    im2col_sum sum = {.pixels = s->pixels, .planes = s->planes};
    ptrdiff_t bottom = min((ih + g->pt) / g->sh, g->oh - 1);
    for (ptrdiff_t oh = bottom; oh >= 0 && s->pixels > 0; oh--) {
        ptrdiff_t kh = ih + g->pt - oh * g->sh;
        if (kh >= g->kh)
            break;
        sum.src[sum.rows++] = im2col_row(s, oh) + kh * d->span;
    }
    if (sum.rows == 0) {
        memset(dst, 0, (size_t)tensor_bytes(d->dtype, n));
        return;
    }
    TYPED(col2im)(d, &sum);
    ptrdiff_t at = (s->first + g->pl - s->pixel * g->sw) * g->ic;
    if (d->dtype == ADJ_BF16) {
        add_planes(s, at, n, s->sums);
        store_reals(d->dtype, n, dst, s->sums);
    } else
        add_planes(s, at, n, dst);
}

/* Column tile number i of all images: where it is, and which pixels of dy reach it. */
static void enter(column_tile *s, const adj_call *call, ptrdiff_t i)
{
    const im2col *d = s->d;
    const adj_conv_geom *g = &d->g;
    ptrdiff_t n = i / d->n_column_tile;
    s->first = i % d->n_column_tile * d->column_tile;
    s->end = min(s->first + d->column_tile, g->iw);
    s->pixel = max((s->first + g->pl) / g->sw - (d->planes - 1), 0);
    s->pixels = max(min((s->end - 1 + g->pl) / g->sw + 1, g->ow) - s->pixel, 0);
    s->dy = (const char *)call->in[d->dy_in] + tensor_bytes(d->dtype, n * g->oh * g->ow * g->oc);
    s->dx = (char *)call->out[0] + tensor_bytes(d->dtype, n * g->ih * g->iw * g->ic);
    memset(s->planes, 0, (size_t)(d->planes * d->plane) * sizeof(real));
    row_ring_forget(&s->ring);
}

/* A part of the rows of all images' column tiles. */
static void share(const adj_call *call, ptrdiff_t job, int thread)
{
    const im2col *d = call->state;
    ptrdiff_t rows = d->g.ih, total = d->g.n * d->n_column_tile * rows;
    ptrdiff_t first = total * job / d->work.jobs, end = total * (job + 1) / d->work.jobs;
    char *own = direct_scratch(call, d->thread + d->per_thread * (size_t)thread);
    column_tile s = {.d = d, .panels = direct_scratch(call, d->panels)};
    s.ring = row_ring_at(own + d->ring, d->slots, d->row);
    s.planes = (real *)(own + d->cols);
    s.wide = (real *)(own + d->outputs);
    s.sums = (real *)(own + d->sums);
    for (ptrdiff_t i = first; i < end; i++) {
        if (i == first || i % rows == 0)
            enter(&s, call, i / rows);
        if (s.first < s.end)
            compute_row(&s, i % rows);
    }
}

static void begin(const adj_call *call)
{
    const im2col *d = call->state;
    TYPED(im2col_panels)
    (d, direct_scratch(call, d->panels), call->in[d->other_in]);
}

const direct_code TYPED(im2col_input) = {begin, share, NULL};
