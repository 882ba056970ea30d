/* conv2d.c - the convolution and its two gradients:
 *   y[n,oh,ow,o]  = sum over kh, kw, c of  x[n,ih,iw,c] * w[kh,kw,c,o]
 *   dw[kh,kw,c,o] = sum over n, oh, ow of  x[n,ih,iw,c] * dy[n,oh,ow,o]
 *   dx[n,ih,iw,c] = sum over kh, kw, o of  dy[n,oh,ow,o] * w[kh,kw,c,o]
 * with ih = oh*sh + kh*dh - pt and iw = ow*sw + kw*dw - pl. With groups, c counts within o's group.
 * depthwise_conv2d_native is the same with a group for each channel: its filter [kh,kw,c,m] lies in
 * memory as [kh,kw,1,c*M+m].
 *
 * Each computes one block of up to BLOCK results at a time in an array of A on the stack; the inner
 * loop runs over the block, so it vectorizes. Each result is one sequential sum by one thread. */
#include "conv.h"

/* Results that are summed side by side: those of a group; or, if a group has one input channel
 * (depthwise), the same one of every group. Each sum has the same order. Result i of set s is
 * s * set + i * step; what it sums over begins at s * other_set + i * other_step. */
typedef struct {
    ptrdiff_t sets, n, set, step, other_set, other_step;
} lanes;

static lanes lanes_of(const adj_conv_geom *k, ptrdiff_t of_group, ptrdiff_t others)
{
    if (k->ic == k->groups && k->groups > 1)
        return (lanes){of_group, k->groups, 1, of_group, 0, others};
    return (lanes){k->groups, of_group, of_group, 1, others, 0};
}

typedef struct {
    adj_conv_geom k;
    ptrdiff_t channels, outputs; /* channels and outputs of a group */
    strides in, out;             /* strides of the images on the input's and the output's side */
    lanes l;
    const T *x, *w, *dy;
    const A *turned; /* w as [kh,kw,o,c], so that the inner loop of dx runs over contiguous c */
    T *to;
} conv;

/* Returns the call with the lanes of y and dw, outputs, or those of dx, input channels. */
static conv conv_of(const adj_call *c, int is_dx)
{
    const adj_conv_geom k = ((const adj_conv_attrs *)c->group->node[0]->attrs)->geom;
    const ptrdiff_t channels = k.ic / k.groups, outputs = k.oc / k.groups;
    return (conv){.k = k,
                  .channels = channels,
                  .outputs = outputs,
                  .in = strides_of(k.format, k.ih, k.iw, k.ic),
                  .out = strides_of(k.format, k.oh, k.ow, k.oc),
                  .l = is_dx ? lanes_of(&k, channels, outputs) : lanes_of(&k, outputs, channels),
                  .to = c->out[0]};
}

/* Computes results first .. first + count of one set, at three indices of the result. */
typedef void block(const conv *p, const ptrdiff_t at[3], ptrdiff_t set, ptrdiff_t first,
                   ptrdiff_t count);

static adj_status run(const conv *p, block *compute, ptrdiff_t a, ptrdiff_t b, ptrdiff_t c,
                      double multiply_adds)
{
#pragma omp parallel for collapse(3) schedule(static) if (multiply_adds > PARALLEL_ABOVE)
    for (ptrdiff_t i = 0; i < a; i++)
        for (ptrdiff_t j = 0; j < b; j++)
            for (ptrdiff_t k = 0; k < c; k++)
                for (ptrdiff_t set = 0; set < p->l.sets; set++)
                    for (ptrdiff_t first = 0; first < p->l.n; first += BLOCK)
                        compute(p, (ptrdiff_t[]){i, j, k}, set, first,
                                at_most_block(p->l.n - first));
    return ADJ_OK;
}

/* Returns the input position of output position i and filter position j; negative if out of
 * bounds. */
static ptrdiff_t input_at(ptrdiff_t i, ptrdiff_t stride, ptrdiff_t j, ptrdiff_t dilation,
                          ptrdiff_t pad, ptrdiff_t size)
{
    ptrdiff_t p = i * stride + j * dilation - pad;
    return p < size ? p : -1;
}

/* Returns the output position from which filter position j reaches input position p; negative if
 * there is none. */
static ptrdiff_t output_at(ptrdiff_t p, ptrdiff_t stride, ptrdiff_t j, ptrdiff_t dilation,
                           ptrdiff_t pad, ptrdiff_t size)
{
    ptrdiff_t t = p + pad - j * dilation;
    return t >= 0 && t % stride == 0 && t / stride < size ? t / stride : -1;
}

/* Adds a[i * a_step] * b[i * b_step] to sum[i]. One a beside contiguous b, as outputs are in a
 * dense filter, is a loop of its own that vectorizes. */
static inline void add_products(A sum[BLOCK], const T *a, ptrdiff_t a_step, const T *b,
                                ptrdiff_t b_step, ptrdiff_t n)
{
    const A same = ld(a);
    if (a_step == 0 && b_step == 1)
        for (ptrdiff_t i = 0; i < n; i++)
            sum[i] += same * ld(b + i);
    else
        for (ptrdiff_t i = 0; i < n; i++)
            sum[i] += ld(a + i * a_step) * ld(b + i * b_step);
}

/* ---- y ---- */

static void block_of_y(const conv *p, const ptrdiff_t at[3], ptrdiff_t set, ptrdiff_t first,
                       ptrdiff_t count)
{
    const adj_conv_geom *k = &p->k;
    const strides in = p->in, out = p->out;
    const lanes l = p->l;
    const ptrdiff_t o = set * l.set + first * l.step;
    const T *x = p->x + at[0] * in.n + (set * l.other_set + first * l.other_step) * in.c;
    A sum[BLOCK] = {0};

    for (ptrdiff_t kh = 0; kh < k->kh; kh++) {
        const ptrdiff_t ih = input_at(at[1], k->sh, kh, k->dh, k->pt, k->ih);
        for (ptrdiff_t kw = 0; ih >= 0 && kw < k->kw; kw++) {
            const ptrdiff_t iw = input_at(at[2], k->sw, kw, k->dw, k->pl, k->iw);
            for (ptrdiff_t c = 0; iw >= 0 && c < p->channels; c++)
                add_products(sum, x + ih * in.h + iw * in.w + c * in.c, l.other_step * in.c,
                             p->w + ((kh * k->kw + kw) * p->channels + c) * k->oc + o, l.step,
                             count);
        }
    }
    T *y = p->to + at[0] * out.n + at[1] * out.h + at[2] * out.w + o * out.c;
    for (ptrdiff_t i = 0; i < count; i++)
        st(y + i * l.step * out.c, sum[i]);
}

adj_status KERNEL(conv2d)(const adj_call *c)
{
    conv p = conv_of(c, 0);
    const adj_conv_geom k = p.k;
    p.x = operand(c, 0);
    p.w = operand(c, 1);
    return run(&p, block_of_y, k.n, k.oh, k.ow, (double)k.n * k.oh * k.ow * k.oc * k.kh * k.kw);
}

/* ---- dw ---- */

static void block_of_dw(const conv *p, const ptrdiff_t at[3], ptrdiff_t set, ptrdiff_t first,
                        ptrdiff_t count)
{
    const adj_conv_geom *k = &p->k;
    const strides in = p->in, out = p->out;
    const lanes l = p->l;
    const ptrdiff_t o = set * l.set + first * l.step;
    const T *x = p->x + (set * l.other_set + first * l.other_step + at[2]) * in.c;
    const T *dy = p->dy + o * out.c;
    /* none if the output is empty, however large its other sizes */
    const ptrdiff_t images = k->oh > 0 && k->ow > 0 ? k->n : 0;
    A sum[BLOCK] = {0};

    for (ptrdiff_t n = 0; n < images; n++)
        for (ptrdiff_t oh = 0; oh < k->oh; oh++) {
            const ptrdiff_t ih = input_at(oh, k->sh, at[0], k->dh, k->pt, k->ih);
            for (ptrdiff_t ow = 0; ih >= 0 && ow < k->ow; ow++) {
                const ptrdiff_t iw = input_at(ow, k->sw, at[1], k->dw, k->pl, k->iw);
                if (iw >= 0)
                    add_products(sum, x + n * in.n + ih * in.h + iw * in.w, l.other_step * in.c,
                                 dy + n * out.n + oh * out.h + ow * out.w, l.step * out.c, count);
            }
        }
    T *dw = p->to + ((at[0] * k->kw + at[1]) * p->channels + at[2]) * k->oc + o;
    for (ptrdiff_t i = 0; i < count; i++)
        st(dw + i * l.step, sum[i]);
}

adj_status KERNEL(conv2d_backprop_filter)(const adj_call *c)
{
    conv p = conv_of(c, 0);
    const adj_conv_geom k = p.k;
    p.x = operand(c, 0);
    p.dy = operand(c, 1);
    return run(&p, block_of_dw, k.kh, k.kw, p.channels,
               (double)k.n * k.oh * k.ow * k.oc * k.kh * k.kw);
}

/* ---- dx ---- */

size_t KERNEL(conv2d_backprop_input_scratch)(const adj_node *n)
{
    return (size_t)adj_shape_elems(n->in[0]->type.shape) * sizeof(A);
}

static void turn(const conv *p, const T *w, A *turned)
{
    for (ptrdiff_t t = 0; t < p->k.kh * p->k.kw; t++)
        for (ptrdiff_t c = 0; c < p->channels; c++)
            for (ptrdiff_t o = 0; o < p->k.oc; o++)
                turned[(t * p->k.oc + o) * p->channels + c] =
                    ld(w + (t * p->channels + c) * p->k.oc + o);
}

/* Adds one output of each result's group: d is the first one's, w its filter's. */
static inline void add_outputs(const conv *p, A sum[BLOCK], const T *d, const A *w, ptrdiff_t count)
{
    const ptrdiff_t step = p->l.other_step;
    const A same = ld(d);
    if (step == 0)
        for (ptrdiff_t i = 0; i < count; i++)
            sum[i] += same * w[i];
    else
        for (ptrdiff_t i = 0; i < count; i++)
            sum[i] += ld(d + i * step * p->out.c) * w[i * step];
}

static void block_of_dx(const conv *p, const ptrdiff_t at[3], ptrdiff_t set, ptrdiff_t first,
                        ptrdiff_t count)
{
    const adj_conv_geom *k = &p->k;
    const strides in = p->in, out = p->out;
    const lanes l = p->l;
    const ptrdiff_t c = set * l.set + first * l.step;
    const ptrdiff_t output = set * l.other_set + first * l.other_step;
    const ptrdiff_t of_set = l.other_step == 0 ? first : 0; /* channel in its group */
    const T *dy = p->dy + at[0] * out.n + output * out.c;
    A sum[BLOCK] = {0};

    for (ptrdiff_t kh = 0; kh < k->kh; kh++) {
        const ptrdiff_t oh = output_at(at[1], k->sh, kh, k->dh, k->pt, k->oh);
        for (ptrdiff_t kw = 0; oh >= 0 && kw < k->kw; kw++) {
            const ptrdiff_t ow = output_at(at[2], k->sw, kw, k->dw, k->pl, k->ow);
            const A *w = p->turned + ((kh * k->kw + kw) * k->oc + output) * p->channels + of_set;
            for (ptrdiff_t o = 0; ow >= 0 && o < p->outputs; o++)
                add_outputs(p, sum, dy + oh * out.h + ow * out.w + o * out.c, w + o * p->channels,
                            count);
        }
    }
    T *dx = p->to + at[0] * in.n + at[1] * in.h + at[2] * in.w + c * in.c;
    for (ptrdiff_t i = 0; i < count; i++)
        st(dx + i * l.step * in.c, sum[i]);
}

adj_status KERNEL(conv2d_backprop_input)(const adj_call *c)
{
    conv p = conv_of(c, 1);
    const adj_conv_geom k = p.k;
    turn(&p, operand(c, 0), c->scratch);
    p.turned = c->scratch;
    p.dy = operand(c, 1);
    return run(&p, block_of_dx, k.n, k.ih, k.iw, (double)k.n * k.ih * k.iw * k.ic * k.kh * k.kw);
}
