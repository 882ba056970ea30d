/* grow_conv.c - convolutions, their gradients and pools with arbitrary attributes. */
#include "fuzz/grow.h"
#include "ops/grad.h"

typedef struct {
    int h, w, c; /* axes */
} axes;

static axes axes_of(adj_format format)
{
    return format == ADJ_NCHW ? (axes){2, 3, 1} : (axes){1, 2, 3};
}

static void bend(garden *t, int64_t *list, int n)
{
    if (t->wild && pick(&t->in, 3) == 0)
        list[pick(&t->in, n)] = any_number(&t->in);
}

static adj_conv any_conv(garden *t)
{
    unsigned choice = take(&t->in);
    adj_conv a = {.format = choice & 1 ? ADJ_NCHW : ADJ_NHWC,
                  .padding = choice & 2   ? ADJ_SAME
                             : choice & 4 ? ADJ_EXPLICIT
                                          : ADJ_VALID};
    axes x = axes_of(a.format);
    if (choice & 8) {
        for (int i = 0; i < 4; i++)
            a.stride[i] = a.dilation[i] = 1;
        a.stride[x.h] = 1 + pick(&t->in, 3);
        a.stride[x.w] = 1 + pick(&t->in, 3);
        a.dilation[x.h] = 1 + pick(&t->in, 3);
        a.dilation[x.w] = 1 + pick(&t->in, 2);
    }
    if (a.padding == ADJ_EXPLICIT)
        for (int i = 0; i < 2; i++) {
            a.pad[x.h][i] = pick(&t->in, 5);
            a.pad[x.w][i] = pick(&t->in, 4);
        }
    bend(t, a.stride, 4);
    bend(t, a.dilation, 4);
    bend(t, a.pad[0], 8);
    return a;
}

/* A filter that fits x: sometimes for groups. */
static adj_node *filter_for(garden *t, const adj_node *x, const adj_conv *a, int depthwise)
{
    adj_type type = adj_node_type(x);
    int64_t c = type.shape.dim[axes_of(a->format).c];
    int64_t groups =
        !depthwise && c > 0 && c % 2 == 0 && pick(&t->in, 2) ? pick(&t->in, 2) ? c : 2 : 1;
    adj_shape w = {
        4, {1 + pick(&t->in, 3), 1 + pick(&t->in, 3), c / groups, groups * (1 + pick(&t->in, 3))}};
    if (depthwise)
        w.dim[3] = 1 + pick(&t->in, 3);
    bend(t, w.dim, 4);
    return new_leaf(t, type.dtype, w);
}

static adj_shape sizes(garden *t, adj_shape s)
{
    bend(t, s.dim, 4);
    if (t->wild && pick(&t->in, 8) == 0)
        s.rank = any_number(&t->in);
    return s;
}

void grow_conv(garden *t)
{
    adj_conv a = any_conv(t);
    int kind = pick(&t->in, 4), depthwise = kind == 1;
    adj_node *x = value_of(t, -1, 4), *w;
    if (t->wild && pick(&t->in, 4) == 0)
        x = any_value(t);
    w = filter_for(t, x, &a, depthwise);
    adj_shape xs = sizes(t, adj_node_type(x).shape), ws = sizes(t, adj_node_type(w).shape);
    adj_node *y = depthwise ? adj_depthwise_conv2d_native(x, w, &a) : adj_conv2d(x, w, &a);
    adj_node *dy = t->wild && pick(&t->in, 2) ? value_of(t, -1, 4) : y;
    keep(t, y);
    if (kind == 2) {
        keep(t, adj_conv2d_transpose(y, w, xs, &a));
        return;
    }
    if (kind == 3) {
        adj_node *d = filter_for(t, x, &a, 1);
        adj_shape ds = adj_node_type(d).shape;
        adj_shape p = {4, {1, 1, ds.dim[2] * (ds.dim[3] % 64), 2}};
        keep(t, adj_separable_conv2d(x, d, new_leaf(t, adj_node_type(x).dtype, p), &a));
        return;
    }
    if (pick(&t->in, 2))
        keep(t, depthwise ? adj_depthwise_conv2d_native_backprop_input(xs, w, dy, &a)
                          : adj_conv2d_backprop_input(xs, w, dy, &a));
    else
        keep(t, depthwise ? adj_depthwise_conv2d_native_backprop_filter(x, ws, dy, &a)
                          : adj_conv2d_backprop_filter(x, ws, dy, &a));
}

void grow_block(garden *t)
{
    unsigned choice = take(&t->in);
    adj_conv a = {.format = choice & 1 ? ADJ_NCHW : ADJ_NHWC, .padding = ADJ_SAME};
    adj_node *x = value_of(t, -1, 4);
    adj_type type = adj_node_type(x);
    int64_t c = type.shape.dim[axes_of(a.format).c], k = choice & 2 ? 3 : 1;
    int64_t o = choice & 4 ? c : choice & 8 ? 16 : 8;
    if (c > 16 || o > 16)
        return;
    adj_node *y = adj_conv2d(x, new_leaf(t, type.dtype, (adj_shape){4, {k, k, c, o}}), &a);
    if (choice & 16)
        keep(t, y);
    adj_node *sum = y;
    if (choice & 32)
        y = adj_bias_add(y, new_leaf(t, type.dtype, (adj_shape){1, {o}}), a.format);
    if (choice & 64)
        y = adj_relu(y);
    if (choice & 128) /* a shortcut, or a second reader of the convolution */
        y = adj_add(o == c && choice & 2 ? x : sum, y);
    keep(t, y);
}

static adj_pool any_pool(garden *t)
{
    unsigned choice = take(&t->in);
    adj_pool a = {.format = choice & 1 ? ADJ_NCHW : ADJ_NHWC,
                  .padding = choice & 2   ? ADJ_SAME
                             : choice & 4 ? ADJ_EXPLICIT
                                          : ADJ_VALID};
    axes x = axes_of(a.format);
    for (int i = 0; i < 4; i++)
        a.ksize[i] = 1;
    a.ksize[x.h] = 1 + pick(&t->in, 3);
    a.ksize[x.w] = 1 + pick(&t->in, 3);
    if (choice & 8) {
        for (int i = 0; i < 4; i++)
            a.stride[i] = 1;
        a.stride[x.h] = 1 + pick(&t->in, 3);
        a.stride[x.w] = 1 + pick(&t->in, 3);
    }
    if (a.padding == ADJ_EXPLICIT)
        for (int i = 0; i < 2; i++) {
            a.pad[x.h][i] = pick(&t->in, (int)a.ksize[x.h]);
            a.pad[x.w][i] = pick(&t->in, (int)a.ksize[x.w]);
        }
    bend(t, a.ksize, 4);
    bend(t, a.stride, 4);
    bend(t, a.pad[0], 8);
    return a;
}

void grow_pool(garden *t)
{
    adj_pool a = any_pool(t);
    adj_node *x = value_of(t, -1, 4), *y;
    if (t->wild && pick(&t->in, 4) == 0)
        x = any_value(t);
    int kind = pick(&t->in, 4);
    if (kind == 3) {
        keep(t, adj_global_avg_pool(x, a.format));
        return;
    }
    if (kind == 0) {
        if (a.padding == ADJ_EXPLICIT && !t->wild)
            a = (adj_pool){.ksize = {1, 2, 2, 1}, .padding = ADJ_SAME};
        y = keep(t, adj_avg_pool(x, &a));
        keep(t, adj_avg_pool_grad(sizes(t, adj_node_type(x).shape), y, &a));
        return;
    }
    y = keep(t, adj_max_pool(x, &a));
    adj_node *dy = t->wild && pick(&t->in, 2) ? value_of(t, -1, 4) : y;
    keep(t, kind == 1 ? adj_max_pool_grad(x, y, dy, &a) : adj_max_pool_grad_grad(x, y, x, &a));
}
