/* conv2d_backprop_input.c - dx[n,ih,iw,c] = sum over kh, kw, o of dy[n,oh,ow,o] * w[kh,kw,c,o]
 * for the oh, ow from which kh, kw reaches ih, iw; with groups, o runs over those of c's group.
 *
 * The filter is first transposed to [kh,kw,o,c] of A in the scratch, so that the inner loop runs
 * over contiguous c. */
#include "conv.h"

typedef struct {
    conv_call v;
    const T *dy;
    const A *turned; /* [kh, kw, o, channels of a group] */
    T *dx;
} operands;

size_t KERNEL(conv2d_backprop_input_scratch)(const adj_node *n)
{
    return (size_t)adj_shape_elems(n->in[0]->type.shape) * sizeof(A);
}

static void turn(const adj_conv_geom *k, const T *w, A *turned)
{
    ptrdiff_t channels = k->ic / k->groups, taps = k->kh * k->kw;

    for (ptrdiff_t t = 0; t < taps; t++)
        for (ptrdiff_t c = 0; c < channels; c++)
            for (ptrdiff_t o = 0; o < k->oc; o++)
                turned[(t * k->oc + o) * channels + c] = ld(w + (t * channels + c) * k->oc + o);
}

/* Channels that are summed side by side: those of a group, over each of its outputs in order;
 * or, if a group has one channel (depthwise), those of all groups, over the same output of each. */
typedef struct {
    ptrdiff_t sets, n;       /* channel i of set s is s * n + i */
    ptrdiff_t o_set, o_step; /* the first output of its group is s * o_set + i * o_step */
} channel_lanes;

static channel_lanes channel_lanes_of(const adj_conv_geom *k)
{
    ptrdiff_t of_group = k->oc / k->groups;
    if (k->ic == k->groups)
        return (channel_lanes){1, k->ic, 0, of_group};
    return (channel_lanes){k->groups, k->ic / k->groups, of_group, 0};
}

/* Computes results first .. first+count of one pixel and set. */
static void block(const operands *p, const ptrdiff_t pixel[3], ptrdiff_t set, ptrdiff_t first,
                  ptrdiff_t count)
{
    const adj_conv_geom *k = &p->v.k;
    strides in = p->v.in, out = p->v.out;
    const channel_lanes l = channel_lanes_of(k);
    ptrdiff_t channels = k->ic / k->groups, of_group = k->oc / k->groups;
    ptrdiff_t output = set * l.o_set + first * l.o_step;
    const T *dy = p->dy + pixel[0] * out.n + output * out.c;
    A sum[BLOCK] = {0};

    for (ptrdiff_t kh = 0; kh < k->kh; kh++) {
        ptrdiff_t oh = output_at(pixel[1], k->sh, kh, k->dh, k->pt, k->oh);
        if (oh < 0)
            continue;
        for (ptrdiff_t kw = 0; kw < k->kw; kw++) {
            ptrdiff_t ow = output_at(pixel[2], k->sw, kw, k->dw, k->pl, k->ow);
            if (ow < 0)
                continue;
            const A *w = p->turned + ((kh * k->kw + kw) * k->oc + output) * channels;
            for (ptrdiff_t o = 0; o < of_group; o++) {
                const T *d = dy + oh * out.h + ow * out.w + o * out.c;
                A same = ld(d);
                if (l.o_step == 0)
                    for (ptrdiff_t i = 0; i < count; i++)
                        sum[i] += same * w[o * channels + first + i];
                else
                    for (ptrdiff_t i = 0; i < count; i++)
                        sum[i] += ld(d + i * l.o_step * out.c) * w[o + i * l.o_step];
            }
        }
    }
    T *dx =
        p->dx + pixel[0] * in.n + pixel[1] * in.h + pixel[2] * in.w + (set * l.n + first) * in.c;
    for (ptrdiff_t i = 0; i < count; i++)
        st(dx + i * in.c, sum[i]);
}

adj_status KERNEL(conv2d_backprop_input)(const adj_call *c)
{
    operands p = {conv_call_of(c), operand(c, 1), c->scratch, c->out[0]};
    const adj_conv_geom k = p.v.k;
    const channel_lanes l = channel_lanes_of(&k);

    turn(&k, operand(c, 0), c->scratch);
#pragma omp parallel for collapse(3)                                                               \
    schedule(static) if ((double)k.n * k.ih * k.iw * k.ic * k.kh * k.kw > PARALLEL_ABOVE)
    for (ptrdiff_t n = 0; n < k.n; n++)
        for (ptrdiff_t ih = 0; ih < k.ih; ih++)
            for (ptrdiff_t iw = 0; iw < k.iw; iw++)
                for (ptrdiff_t set = 0; set < l.sets; set++)
                    for (ptrdiff_t first = 0; first < l.n; first += BLOCK)
                        block(&p, (ptrdiff_t[]){n, ih, iw}, set, first, at_most_block(l.n - first));
    return ADJ_OK;
}
