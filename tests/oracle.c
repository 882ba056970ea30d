/* oracle.c - see oracle.h. */
#include <stdlib.h>

#include "oracle.h"

/* How many positions of the window there are in a padded row: as long as its last tap is inside. */
static int count_positions(int padded, int k, int stride, int dilation)
{
    int n = 0;
    while (n * stride + (k - 1) * dilation < padded)
        n++;
    return n;
}

/* SAME has ceil(size / stride) positions. The pads are the least that make room for the last
 * window, with the odd one behind. */
static int resolve(int in, int k, int stride, int dilation, adj_padding padding, int pad[2])
{
    if (padding == ADJ_VALID)
        pad[0] = pad[1] = 0;
    if (padding != ADJ_SAME)
        return count_positions(pad[0] + in + pad[1], k, stride, dilation);
    int out = 0;
    while (out * stride < in)
        out++;
    pad[0] = pad[1] = 0;
    while (count_positions(pad[0] + in + pad[1], k, stride, dilation) < out) {
        if (pad[0] < pad[1])
            pad[0]++;
        else
            pad[1]++;
    }
    return out;
}

static adj_shape four(adj_format format, int n, int h, int w, int c)
{
    if (format == ADJ_NCHW)
        return (adj_shape){4, {n, c, h, w}};
    return (adj_shape){4, {n, h, w, c}};
}

oracle_sizes oracle_sizes_of(oracle_conv a)
{
    oracle_sizes s = {.attrs = {.padding = a.padding, .format = a.format}};
    int h = a.format == ADJ_NCHW ? 2 : 1;
    a.in += a.in == 0 ? a.c : 0;
    a.sh += a.sh == 0;
    a.sw += a.sw == 0;
    a.dh += a.dh == 0;
    a.dw += a.dw == 0;
    for (int i = 0; i < 4; i++)
        s.attrs.stride[i] = s.attrs.dilation[i] = 1;
    s.attrs.stride[h] = a.sh;
    s.attrs.stride[h + 1] = a.sw;
    s.attrs.dilation[h] = a.dh;
    s.attrs.dilation[h + 1] = a.dw;
    for (int i = 0; i < 4 && a.padding == ADJ_EXPLICIT; i++)
        s.attrs.pad[h + i / 2][i % 2] = a.pad[i];
    s.oh = resolve(a.h, a.kh, a.sh, a.dh, a.padding, a.pad);
    s.ow = resolve(a.w, a.kw, a.sw, a.dw, a.padding, a.pad + 2);
    s.oc = a.depthwise ? a.c * a.last : a.last;
    s.a = a;
    s.x = four(a.format, a.n, a.h, a.w, a.c);
    s.w = (adj_shape){4, {a.kh, a.kw, a.in, a.last}};
    s.y = four(a.format, a.n, s.oh, s.ow, s.oc);
    return s;
}

static int64_t image_index(adj_format format, const adj_shape *shape, int n, int h, int w, int c)
{
    const int64_t *d = shape->dim;
    if (format == ADJ_NCHW)
        return ((n * d[1] + c) * d[2] + h) * d[3] + w;
    return ((n * d[1] + h) * d[2] + w) * d[3] + c;
}

typedef struct {
    int64_t x, w, y;
} term;

/* The elements that meet in output (n, oh, ow, o) and tap (kh, kw) in the filter's first channel;
 * 0: the tap is in the padding. Output channel o belongs to group o / (outputs of a group). */
static int meet(const oracle_sizes *s, const int at[6], term *t)
{
    const oracle_conv *a = &s->a;
    int n = at[0], oh = at[1], ow = at[2], o = at[3], kh = at[4], kw = at[5];
    int h = oh * a->sh + kh * a->dh - a->pad[0], w = ow * a->sw + kw * a->dw - a->pad[2];
    if (h < 0 || h >= a->h || w < 0 || w >= a->w)
        return 0;
    int groups = a->depthwise ? a->c : a->c / a->in;
    int group = o / (s->oc / groups);
    int c = a->depthwise ? group : group * a->in;
    t->x = image_index(a->format, &s->x, n, h, w, c);
    t->y = image_index(a->format, &s->y, n, oh, ow, o);
    t->w = a->depthwise ? ((kh * a->kw + kw) * a->c + c) * a->last + o % a->last
                        : (kh * a->kw + kw) * a->in * a->last + o;
    return 1;
}

/* The last place first, as a counter of kilometres does. */
static void next(const int size[6], int at[6])
{
    int i = 5;
    while (i >= 0 && ++at[i] == size[i])
        at[i--] = 0;
}

double *oracle_convolve(const oracle_sizes *s, enum oracle_result wanted, const double *x,
                        const double *w, const double *dy)
{
    const oracle_conv *a = &s->a;
    adj_shape shape = wanted == ORACLE_Y ? s->y : wanted == ORACLE_DX ? s->x : s->w;
    double *result = calloc((size_t)adj_shape_elems(shape) + 1, sizeof *result);
    int size[6] = {a->n, s->oh, s->ow, s->oc, a->kh, a->kw}, at[6] = {0};
    const int channels = a->depthwise ? 1 : a->in;
    const int64_t next_x = a->format == ADJ_NCHW ? (int64_t)a->h * a->w : 1, next_w = a->last;
    int64_t total = 1;
    for (int i = 0; i < 6; i++)
        total *= size[i];
    for (int64_t k = 0; k < total; k++, next(size, at)) {
        term t;
        if (!meet(s, at, &t))
            continue;
        for (int i = 0; i < channels; i++, t.x += next_x, t.w += next_w)
            if (wanted == ORACLE_Y)
                result[t.y] += x[t.x] * w[t.w];
            else if (wanted == ORACLE_DX)
                result[t.x] += dy[t.y] * w[t.w];
            else
                result[t.w] += x[t.x] * dy[t.y];
    }
    return result;
}
