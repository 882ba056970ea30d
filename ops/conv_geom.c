/* conv_geom.c - see conv_geom.h: pads (SAME, VALID, EXPLICIT) and output sizes. Checks run in this
 * order: rank, each dimension, divisibility, sizes with overflow checks. Every divisor is checked
 * first. */
#include <inttypes.h>
#include <stdio.h>

#include "conv_geom.h"
#include "graph/op.h"

static const char too_large[] = "is too large", negative[] = "is negative";

const char *window_resolve(window *v, adj_padding padding)
{
    int64_t k_eff, padded, covered;

    if (__builtin_mul_overflow(v->k - 1, v->dilation, &k_eff) ||
        __builtin_add_overflow(k_eff, 1, &k_eff))
        return too_large;
    if (padding == ADJ_SAME) {
        v->out = v->in / v->stride + (v->in % v->stride != 0);
        covered = 0;
        if (v->out > 0 && (__builtin_mul_overflow(v->out - 1, v->stride, &covered) ||
                           __builtin_add_overflow(covered, k_eff, &covered)))
            return too_large;
        int64_t pad = covered > v->in ? covered - v->in : 0;
        v->before = pad / 2;
        v->after = pad - v->before;
        return NULL;
    }
    if (padding == ADJ_VALID)
        v->before = v->after = 0;
    if (__builtin_add_overflow(v->in, v->before, &padded) ||
        __builtin_add_overflow(padded, v->after, &padded) ||
        __builtin_add_overflow(padded, v->stride, &padded))
        return too_large;
    v->out = (padded - k_eff) / v->stride;
    return v->out < 0 ? negative : NULL;
}

window window_along(int axis, int64_t in, int64_t k, const int64_t stride[4],
                    const int64_t dilation[4], int64_t (*pad)[2])
{
    return (window){in, k, stride[axis], dilation[axis], pad[axis][0], pad[axis][1], 0};
}

void geom_set_windows(adj_conv_geom *k, const window *h, const window *w)
{
    k->oh = h->out, k->ow = w->out;
    k->kh = h->k, k->kw = w->k;
    k->sh = h->stride, k->sw = w->stride;
    k->dh = h->dilation, k->dw = w->dilation;
    k->pt = h->before, k->pb = h->after, k->pl = w->before, k->pr = w->after;
}

/* Returns [n, h, w, c] in the format's order. */
static adj_shape image_shape(adj_format format, int64_t n, int64_t h, int64_t w, int64_t c)
{
    image_axes ax = axes_of(format);
    adj_shape s = {.rank = 4};
    s.dim[ax.n] = n;
    s.dim[ax.h] = h;
    s.dim[ax.w] = w;
    s.dim[ax.c] = c;
    return s;
}

adj_shape conv_input_shape(const adj_conv_geom *k)
{
    return image_shape((adj_format)k->format, k->n, k->ih, k->iw, k->ic);
}

adj_shape conv_output_shape(const adj_conv_geom *k)
{
    return image_shape((adj_format)k->format, k->n, k->oh, k->ow, k->oc);
}

static adj_status check_four(const conv_sizes *s, const char *name, adj_shape shape)
{
    if (shape.rank != 4)
        return adj_fail(s->g, ADJ_ESHAPE, "%s: %s must be 4-D (got rank %" PRId64 ")", s->op, name,
                        shape.rank);
    for (int i = 0; i < 4; i++)
        if (shape.dim[i] < 0)
            return adj_fail(s->g, ADJ_ESHAPE, "%s: %s must not be negative (got %s)", s->op, name,
                            adj_shape_text(shape).s);
    return ADJ_OK;
}

adj_status conv_set_image(conv_sizes *s, adj_shape image, adj_format format)
{
    image_axes ax = axes_of(format);
    adj_status status = check_four(s, s->image_name, image);
    if (status != ADJ_OK)
        return status;
    s->k.n = image.dim[ax.n];
    s->k.ih = image.dim[ax.h];
    s->k.iw = image.dim[ax.w];
    s->k.ic = image.dim[ax.c];
    return ADJ_OK;
}

adj_status conv_set_filter(conv_sizes *s, adj_shape filter)
{
    adj_status status = check_four(s, s->filter_name, filter);
    if (status != ADJ_OK)
        return status;
    s->k.kh = filter.dim[0];
    s->k.kw = filter.dim[1];
    s->in = filter.dim[2];
    s->last = filter.dim[3];
    return ADJ_OK;
}

/* Checks the channels: 1 <= in divides c; for a depthwise filter in == c. Sets groups and oc. */
static adj_status check_channels(const conv_sizes *s, adj_conv_geom *k)
{
    adj_shape filter = {4, {s->k.kh, s->k.kw, s->in, s->last}};
    if (s->k.kh < 1 || s->k.kw < 1 || s->in < 1 || (s->last < 1 && !s->may_be_empty))
        return adj_fail(s->g, ADJ_ESHAPE,
                        "%s: %s must not be empty (got %s, expected every dimension >= 1)", s->op,
                        s->filter_name, adj_shape_text(filter).s);
    if (s->k.ic < 1)
        return adj_fail(s->g, ADJ_ESHAPE, "%s: %s must have channels (got depth %" PRId64 ")",
                        s->op, s->image_name, s->k.ic);
    if (s->depthwise ? s->k.ic != s->in : s->k.ic % s->in != 0)
        return adj_fail(s->g, ADJ_ESHAPE,
                        "%s: depth of %s must %s the depth of %s (got %" PRId64 " and %" PRId64 ")",
                        s->op, s->filter_name, s->depthwise ? "equal" : "divide", s->image_name,
                        s->in, s->k.ic);
    if (s->depthwise) {
        k->groups = s->k.ic;
        if (__builtin_mul_overflow(s->k.ic, s->last, &k->oc))
            return adj_fail(s->g, ADJ_ESHAPE, "%s: %s gives too many channels (got %s)", s->op,
                            s->filter_name, adj_shape_text(filter).s);
        return ADJ_OK;
    }
    k->groups = s->k.ic / s->in;
    k->oc = s->last;
    if (k->oc % k->groups != 0)
        return adj_fail(s->g, ADJ_ESHAPE,
                        "%s: out channels of %s must be a multiple of the %" PRId64
                        " groups that the depth of %s makes (got %" PRId64 ")",
                        s->op, s->filter_name, k->groups, s->image_name, k->oc);
    return ADJ_OK;
}

static adj_status resolve_dim(const conv_sizes *s, const char *dim, window *v, adj_padding padding)
{
    const char *wrong = window_resolve(v, padding);
    if (wrong == NULL)
        return ADJ_OK;
    return adj_fail(s->g, ADJ_ESHAPE,
                    "%s: computed output %s %s (got %s %" PRId64 ", %s %" PRId64
                    ", strides %" PRId64 ", dilations %" PRId64 ", padding %" PRId64 "+%" PRId64
                    ")",
                    s->op, dim, wrong, s->image_name, v->in, s->filter_name, v->k, v->stride,
                    v->dilation, v->before, v->after);
}

adj_status conv_resolve(const conv_sizes *s, adj_conv_attrs *a)
{
    adj_error error;
    adj_conv *conv = &a->conv;
    adj_status status = attr_check_conv(conv, &error);
    if (status != ADJ_OK)
        return adj_fail(s->g, status, "%s: %s", s->op, error.message);

    a->geom = s->k;
    a->geom.format = conv->format;
    status = check_channels(s, &a->geom);
    if (status != ADJ_OK)
        return status;

    image_axes ax = axes_of(conv->format);
    window h = window_along(ax.h, s->k.ih, s->k.kh, conv->stride, conv->dilation, conv->pad);
    window w = window_along(ax.w, s->k.iw, s->k.kw, conv->stride, conv->dilation, conv->pad);
    status = resolve_dim(s, "height", &h, conv->padding);
    if (status == ADJ_OK)
        status = resolve_dim(s, "width", &w, conv->padding);
    if (status != ADJ_OK)
        return status;
    geom_set_windows(&a->geom, &h, &w);
    return ADJ_OK;
}

adj_status conv_check_out(const conv_sizes *s, const adj_conv_geom *k, adj_shape dy,
                          const char *name)
{
    adj_shape want = conv_output_shape(k);
    adj_status status = check_four(s, name, dy);
    if (status != ADJ_OK)
        return status;
    if (!adj_shape_equal(dy, want))
        return adj_fail(s->g, ADJ_ESHAPE,
                        "%s: %s does not have the size that %s, %s and the attributes give "
                        "(got %s, expected %s)",
                        s->op, name, s->image_name, s->filter_name, adj_shape_text(dy).s,
                        adj_shape_text(want).s);
    return ADJ_OK;
}

/* ---- the attributes ---- */

void show_windows(adj_padding padding, const adj_conv_geom *k, int64_t kc, FILE *f)
{
    fprintf(f, " %s", padding_word(padding));
    if (kc > 0)
        fprintf(f, " k%" PRId64 "x%" PRId64, k->kh, k->kw);
    if (kc > 1)
        fprintf(f, "x%" PRId64, kc);
    fprintf(f, " s%" PRId64 "x%" PRId64, k->sh, k->sw);
    if (k->dh != 1 || k->dw != 1)
        fprintf(f, " d%" PRId64 "x%" PRId64, k->dh, k->dw);
    if (padding == ADJ_EXPLICIT)
        fprintf(f, " p%" PRId64 "+%" PRId64 "x%" PRId64 "+%" PRId64, k->pt, k->pb, k->pl, k->pr);
    if (kc == 0 && k->groups > 1 && k->groups != k->ic)
        fprintf(f, " g%" PRId64, k->groups);
    fputs(k->format == ADJ_NCHW ? " NCHW" : "", f);
}

static void show(const void *attrs, FILE *f)
{
    const adj_conv_attrs *a = attrs;
    show_windows(a->conv.padding, &a->geom, 0, f);
}

static void set_format(void *attrs, adj_format format)
{
    adj_conv_attrs *a = attrs;
    attr_move_axes(format, a->conv.stride, a->conv.dilation, a->conv.pad);
    a->conv.format = format;
    a->geom.format = format;
}

const adj_schema conv_schema = {
    .size = sizeof(adj_conv_attrs),
    .attr = {{"conv", ADJ_ATTR_CONV, .offset = offsetof(adj_conv_attrs, conv)}},
    .show = show,
    .set_format = set_format,
    .geom = offsetof(adj_conv_attrs, geom)};
