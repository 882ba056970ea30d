/* rows.c - rows of output pixels: see gemm.h. Compiled once per instruction set. */
#include <string.h>

#include "backends/direct/micro_gemm.h"
#include "backends/direct/row_ring.h"
#include "gemm.h"

typedef struct { /* a thread's */
    const gemm *p;
    const real *x; /* the image's */
    const real *w, *panel, *bias;
    real *windows, *product;
    row_ring ring;
} worker;

/* Row ih of x from column -pl on. */
static const real *row_of(const worker *s, ptrdiff_t ih)
{
    const adj_conv_geom *g = &s->p->g;
    const real *from = s->x + ih * g->iw * g->ic;
    if (!s->p->is_padded)
        return from;
    int is_cached;
    real *row = row_ring_slot(&s->ring, ih % s->p->slots, ih, &is_cached);
    if (is_cached)
        return row;
    const ptrdiff_t before = min(g->pl * g->ic, s->p->row);
    const ptrdiff_t n = min(g->iw * g->ic, s->p->row - before);
    memset(row, 0, (size_t)before * sizeof *row);
    memcpy(row + before, from, (size_t)n * sizeof *row);
    memset(row + before + n, 0, (size_t)(s->p->row - before - n) * sizeof *row);
    return row;
}

/* Adds the products of one kernel row to those of the block's columns, w being theirs. */
static int add_kernel_row(const worker *s, const real *x, const real *w, micro_gemm m)
{
    const adj_conv_geom *g = &s->p->g;
    const ptrdiff_t runs = g->dw == 1 ? 1 : g->kw;
    m.depth = g->kw / runs * g->ic;
    for (ptrdiff_t k = 0; k < runs; k++) {
        m.a = x + k * g->dw * g->ic;
        m.b = w + k * m.depth * m.b_pitch;
        TYPED(micro_gemm)(&m);
        m.add = 1;
    }
    return 1;
}

/* The columns of a block of w, for all kernel rows that reach into x. */
static void sum_rows(const worker *s, ptrdiff_t oh, const real *w, micro_gemm m)
{
    const adj_conv_geom *g = &s->p->g;
    m.a_pitch = g->sw * g->ic;
    for (ptrdiff_t kh = 0; kh < g->kh; kh++) {
        const ptrdiff_t ih = oh * g->sh - g->pt + kh * g->dh;
        if (ih >= 0 && ih < g->ih)
            m.add = add_kernel_row(s, row_of(s, ih), w + kh * s->p->span * m.b_pitch, m);
    }
    if (!m.add)
        for (ptrdiff_t i = 0; i < m.rows; i++)
            memset(m.c + i * m.c_pitch, 0, (size_t)(m.vectors * VECTOR) * sizeof *m.c);
}

/* The taps of kernel row kh to the windows of a row of pixels. */
static void gather_row(const worker *s, ptrdiff_t oh, ptrdiff_t kh, real *windows)
{
    const gemm *p = s->p;
    const adj_conv_geom *g = &p->g;
    const ptrdiff_t ih = oh * g->sh - g->pt + kh * g->dh;
    const int is_inside = ih >= 0 && ih < g->ih;
    const real *row = is_inside ? row_of(s, ih) : NULL;
    const ptrdiff_t runs = g->dw == 1 ? 1 : g->kw, run = p->span / runs;

    for (ptrdiff_t i = 0; i < g->ow; i++, windows += p->taps)
        for (ptrdiff_t k = 0; k < runs; k++)
            for (ptrdiff_t t = 0; t < run; t++)
                windows[k * run + t] = is_inside ? row[(i * g->sw + k * g->dw) * g->ic + t] : 0;
}

static void gather(const worker *s, ptrdiff_t oh, ptrdiff_t rows)
{
    const gemm *p = s->p;
    for (ptrdiff_t i = 0; i < rows; i++)
        for (ptrdiff_t kh = 0; kh < p->g.kh; kh++)
            gather_row(s, oh + i, kh, s->windows + i * p->g.ow * p->taps + kh * p->span);
}

static void block(const worker *s, ptrdiff_t oh, const real *w, micro_gemm m)
{
    if (!s->p->is_gathered) {
        sum_rows(s, oh, w, m);
        return;
    }
    m.depth = m.a_pitch = s->p->taps;
    m.a = s->windows;
    m.b = w;
    TYPED(micro_gemm)(&m);
}

static void add_bias(const worker *s, ptrdiff_t pixels, real *y)
{
    const ptrdiff_t n = s->p->g.oc;
    const real *restrict bias = s->bias;
    for (ptrdiff_t i = 0; i < pixels; i++) {
        real *restrict row = y + i * n;
#pragma omp simd
        for (ptrdiff_t o = 0; o < n; o++)
            row[o] += bias[o];
    }
}

/* So many pixels from row oh on. */
static void band(const worker *s, ptrdiff_t oh, ptrdiff_t pixels, real *y)
{
    const gemm *p = s->p;
    micro_gemm m = {.rows = pixels, .b_pitch = p->g.oc, .c_pitch = p->g.oc};
    if (p->is_gathered)
        gather(s, oh, pixels / p->g.ow);
    for (ptrdiff_t o = 0; o < p->whole; o += m.vectors * VECTOR) {
        m.vectors = min((p->whole - o) / VECTOR, MICRO_GEMM_VECTORS);
        m.c = y + o;
        block(s, oh, s->w + o, m);
    }
    if (p->rest > 0) {
        const micro_gemm rest = {
            .rows = pixels, .vectors = 1, .b_pitch = VECTOR, .c_pitch = VECTOR, .c = s->product};
        block(s, oh, s->panel, rest);
        for (ptrdiff_t i = 0; i < pixels; i++)
            for (ptrdiff_t o = 0; o < p->rest; o++)
                y[i * p->g.oc + p->whole + o] = s->product[i * VECTOR + o];
    }
    if (s->bias != NULL)
        add_bias(s, pixels, y);
}

/* A part of the bands of all images. */
static void share(const adj_call *c, ptrdiff_t job, int thread)
{
    const gemm *p = c->state;
    const adj_conv_geom *g = &p->g;
    const ptrdiff_t total = g->n * p->bands;
    const ptrdiff_t first = total * job / p->work.jobs, end = total * (job + 1) / p->work.jobs;
    char *own = direct_scratch(c, p->thread + p->per_thread * (size_t)thread);
    worker s = {.p = p,
                .w = c->in[p->w_in],
                .panel = direct_scratch(c, p->panel),
                .bias = p->bias_in >= 0 ? c->in[p->bias_in] : NULL,
                .windows = (real *)(own + p->windows),
                .product = (real *)(own + p->product)};
    s.ring = row_ring_at(own + p->ring, p->slots, p->row);
    for (ptrdiff_t i = first; i < end; i++) {
        const ptrdiff_t n = i / p->bands, oh = i % p->bands * p->band;
        if (i == first || oh == 0) {
            s.x = (const real *)c->in[p->x_in] + n * g->ih * g->iw * g->ic;
            row_ring_forget(&s.ring);
        }
        const ptrdiff_t pixels =
            p->is_flat ? min(g->ow, p->pixels - oh * g->ow) : min(p->band, g->oh - oh) * g->ow;
        band(&s, oh, pixels, (real *)c->out[0] + (n * g->oh + oh) * g->ow * g->oc);
    }
}

/* The columns of w that fill no vector, and zeros. */
static void begin(const adj_call *c)
{
    const gemm *p = c->state;
    const real *w = (const real *)c->in[p->w_in] + p->whole;
    real *panel = direct_scratch(c, p->panel);
    for (ptrdiff_t t = 0; p->rest > 0 && t < p->taps; t++)
        for (ptrdiff_t o = 0; o < VECTOR; o++)
            panel[t * VECTOR + o] = o < p->rest ? w[t * p->g.oc + o] : 0;
}

const direct_code DIRECT(gemm) = {begin, share, NULL};
