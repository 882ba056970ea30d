/* resize.c - y[oh,ow] = sum over ih,iw of h(oh,ih) w(ow,iw) x[ih,iw], and its adjoint dx[ih,iw]
 * = sum over oh,ow of h(oh,ih) w(ow,iw) dy[oh,ow]. The weights h and w are one function, so the
 * second is the first's exact adjoint. One thread computes each sum, in a fixed order. */
#include "conv.h"

typedef struct {
    int64_t in, out, mode, coordinates;
} axis;

/* An output reads input `at` with weight 1 - next, and the one after it with weight next. */
typedef struct {
    int64_t at;
    double next;
} sample;

/* Returns the position num / den as adjoint.h defines it; den is even. */
static sample sample_of(const axis *k, int64_t o)
{
    int64_t num = 2 * o * k->in, den = 2 * k->out;
    if (k->coordinates == ADJ_HALF_PIXEL) {
        num = (2 * o + 1) * k->in - k->out;
    } else if (k->coordinates == ADJ_ALIGN_CORNERS) {
        num = 2 * o * (k->in - 1);
        den = k->out > 1 ? 2 * (k->out - 1) : 2;
    }
    if (k->mode == ADJ_NEAREST)
        return (sample){(k->coordinates == ADJ_ASYMMETRIC ? num : num + den / 2) / den, 0};
    if (num < 0)
        num = 0;
    sample s = {num / den, (double)(num % den) / (double)den};
    if (s.at == k->in - 1) /* there is none after it */
        s.next = 0;
    return s;
}

static double weight(const axis *k, int64_t o, int64_t i)
{
    const sample s = sample_of(k, o);
    return i == s.at ? 1 - s.next : i == s.at + 1 ? s.next : 0;
}

typedef struct {
    int64_t from, to; /* from <= i < to */
} span;

static span inputs_of(const axis *k, int64_t o)
{
    const sample s = sample_of(k, o);
    return (span){s.at, s.at + (s.next > 0 ? 2 : 1)};
}

/* Returns the first output whose first input is i or a later one. */
static int64_t first_from(const axis *k, int64_t i)
{
    int64_t from = 0, to = k->out;
    while (from < to) {
        int64_t o = from + (to - from) / 2;
        if (sample_of(k, o).at < i)
            from = o + 1;
        else
            to = o;
    }
    return from;
}

static span outputs_of(const axis *k, int64_t i)
{
    return (span){first_from(k, i - 1), first_from(k, i + 1)};
}

typedef struct {
    axis h, w;
    int adjoint;
    int64_t channels;
    const T *src; /* one image */
    strides from, to;
} image;

/* Computes the sums for up to BLOCK channels at row i, column j of the result. */
static void sum_pixel(const image *m, int64_t i, int64_t j, int64_t first, T *y)
{
    const span rows = m->adjoint ? outputs_of(&m->h, i) : inputs_of(&m->h, i);
    const span cols = m->adjoint ? outputs_of(&m->w, j) : inputs_of(&m->w, j);
    ptrdiff_t lanes = at_most_block(m->channels - first);
    A acc[BLOCK] = {0};

    for (int64_t r = rows.from; r < rows.to; r++) {
        double h = m->adjoint ? weight(&m->h, r, i) : weight(&m->h, i, r);
        for (int64_t s = cols.from; s < cols.to; s++) {
            A each = (A)(h * (m->adjoint ? weight(&m->w, s, j) : weight(&m->w, j, s)));
            const T *x = m->src + r * m->from.h + s * m->from.w + first * m->from.c;
            for (ptrdiff_t l = 0; each != 0 && l < lanes; l++)
                acc[l] += each * ld(x + l * m->from.c);
        }
    }
    for (ptrdiff_t l = 0; l < lanes; l++)
        st(y + (first + l) * m->to.c, acc[l]);
}

static adj_status run(const adj_call *c, int adjoint)
{
    const adj_node *node = c->group->node[0];
    const adj_resize_attrs *a = node->attrs;
    const int64_t *dim = node->type.shape.dim;
    const int64_t channels = dim[a->format == ADJ_NCHW ? 1 : 3];
    const strides in = strides_of(a->format, a->ih, a->iw, channels);
    const strides out = strides_of(a->format, a->oh, a->ow, channels);
    const int64_t h = adjoint ? a->ih : a->oh, w = adjoint ? a->iw : a->ow, rows = dim[0] * h;
    const T *x = operand(c, 0);
    T *y = c->out[0];

#pragma omp parallel for if (rows * w * channels >= PARALLEL_ABOVE)
    for (int64_t r = 0; r < rows; r++) {
        image m = {.h = {a->ih, a->oh, a->mode, a->coordinates},
                   .w = {a->iw, a->ow, a->mode, a->coordinates},
                   .adjoint = adjoint,
                   .channels = channels,
                   .from = adjoint ? out : in,
                   .to = adjoint ? in : out};
        m.src = x + r / h * m.from.n;
        for (int64_t j = 0; j < w; j++)
            for (int64_t first = 0; first < channels; first += BLOCK)
                sum_pixel(&m, r % h, j, first, y + r / h * m.to.n + r % h * m.to.h + j * m.to.w);
    }
    return ADJ_OK;
}

adj_status KERNEL(resize)(const adj_call *c) { return run(c, 0); }
adj_status KERNEL(resize_grad)(const adj_call *c) { return run(c, 1); }
