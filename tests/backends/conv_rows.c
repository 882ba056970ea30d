/* conv_rows.c - see conv_rows.h. */
#include <criterion/criterion.h>

#include "conv_rows.h"

static int or_one(int v) { return v == 0 ? 1 : v; }
static int kernel_width(const conv_row *r) { return r->kw == 0 ? r->kh : r->kw; }

static adj_conv attributes(const conv_row *r, adj_format format)
{
    int h = format == ADJ_NCHW ? 2 : 1, w = h + 1;
    adj_conv a = {.stride = {1, 1, 1, 1}, .dilation = {1, 1, 1, 1}, .padding = r->padding};
    a.format = format;
    a.stride[h] = or_one(r->sh);
    a.stride[w] = r->sw == 0 ? or_one(r->sh) : r->sw;
    a.dilation[h] = or_one(r->dh);
    a.dilation[w] = r->dw == 0 ? or_one(r->dh) : r->dw;
    if (r->padding == ADJ_EXPLICIT) {
        a.pad[h][0] = r->pt, a.pad[h][1] = r->pb;
        a.pad[w][0] = r->pl, a.pad[w][1] = r->pr;
    }
    return a;
}

static adj_node *filled(fixture *f, adj_dtype dtype, adj_shape shape, conv_fill fill)
{
    return fill == INTEGERS ? given_integers(f, dtype, shape, -3, 3)
                            : given_random(f, dtype, shape, -1, 1);
}

adj_node *conv_node(fixture *f, const conv_row *r, conv_direction direction, adj_format format,
                    adj_dtype dtype, conv_fill fill)
{
    adj_conv a = attributes(r, format);
    adj_shape xs = format == ADJ_NCHW ? (adj_shape){4, {r->n, r->ic, r->h, r->w}}
                                      : (adj_shape){4, {r->n, r->h, r->w, r->ic}};
    adj_shape ws = {4, {r->kh, kernel_width(r), r->ic / or_one(r->groups), r->oc}};
    adj_node *x = filled(f, dtype, xs, fill), *w = filled(f, dtype, ws, fill);
    adj_node *y = r->depthwise ? adj_depthwise_conv2d_native(x, w, &a) : adj_conv2d(x, w, &a);
    cr_assert_not_null(y, "%s", adj_graph_message(f->g));
    if (direction == FORWARD)
        return y;
    adj_node *dy = filled(f, dtype, y->type.shape, fill);
    if (direction == BACKPROP_INPUT)
        return r->depthwise ? adj_depthwise_conv2d_native_backprop_input(xs, w, dy, &a)
                            : adj_conv2d_backprop_input(xs, w, dy, &a);
    return r->depthwise ? adj_depthwise_conv2d_native_backprop_filter(x, ws, dy, &a)
                        : adj_conv2d_backprop_filter(x, ws, dy, &a);
}

void conv_text(const conv_row *r, const adj_node *y, adj_format format, char *text, size_t size)
{
    snprintf(text, size, "%s %s %s n%d h%d w%d %d->%d k%dx%d s%dx%d d%dx%d g%d pad %d", y->op->name,
             adj_dtype_name(y->type.dtype), format == ADJ_NCHW ? "NCHW" : "NHWC", r->n, r->h, r->w,
             r->ic, r->oc, r->kh, kernel_width(r), or_one(r->sh), r->sw, or_one(r->dh), r->dw,
             or_one(r->groups), (int)r->padding);
}

double conv_terms(const conv_row *r, conv_direction direction)
{
    double taps = (double)r->kh * kernel_width(r);
    if (direction == FORWARD)
        return taps * (r->depthwise ? 1 : r->ic / or_one(r->groups));
    if (direction == BACKPROP_INPUT)
        return taps * r->oc;
    return (double)r->n * (r->h + r->pt + r->pb) * (r->w + r->pl + r->pr);
}
