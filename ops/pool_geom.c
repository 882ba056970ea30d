/* pool_geom.c - see conv_geom.h; and the public reader of a pool's attribute lists.
 *
 * TensorFlow's rules. ksize has four entries, at least 1, 1 in batch. Only max pooling may have
 * a window over channels, whose stride is its size, which divides the channels, and which is 1x1
 * in space. An explicit pad is smaller than the window, so that no window is empty. */
#include <inttypes.h>
#include <string.h>

#include "conv_geom.h"

/* Checks the entries of ksize or strides: 1 in batch, at least 1 and within int32 elsewhere. */
static adj_status check_entries(const char *name, const int64_t entry[4], adj_format format,
                                adj_error *error)
{
    image_axes ax = axes_of(format);
    for (int i = 0; i < 4; i++) {
        if (entry[i] < 1 || entry[i] > INT32_MAX)
            return adj_error_set(error, ADJ_EARG,
                                 "%s must be at least 1 and within int32 (got %" PRId64
                                 " for dimension %d)",
                                 name, entry[i], i);
        if (i == ax.n && entry[i] != 1)
            return adj_error_set(error, ADJ_EARG, "%s in batch must be 1 (got %" PRId64 ")", name,
                                 entry[i]);
    }
    return ADJ_OK;
}

/* Fills in the default strides and checks the rules that need no shapes. */
static adj_status check_pool(adj_pool *a, adj_error *error)
{
    adj_status status = attr_check_enums(a->padding, a->format, error);
    if (status != ADJ_OK)
        return status;
    if (is_absent(a->ksize))
        return adj_error_set(error, ADJ_EARG, "ksize is missing (expected 4 entries, at least 1)");
    if (is_absent(a->stride))
        memcpy(a->stride, a->ksize, sizeof a->stride);
    status = check_entries("ksize", a->ksize, a->format, error);
    if (status == ADJ_OK)
        status = check_entries("strides", a->stride, a->format, error);
    if (status == ADJ_OK)
        status = attr_check_pads(a->pad, a->padding, a->format, error);
    if (status != ADJ_OK)
        return status;

    image_axes ax = axes_of(a->format);
    int64_t kc = a->ksize[ax.c];
    if (kc != a->stride[ax.c])
        return adj_error_set(error, ADJ_EARG,
                             "ksize and strides in depth must be equal (got %" PRId64
                             " and %" PRId64 ")",
                             kc, a->stride[ax.c]);
    if (kc > 1 && (a->ksize[ax.h] > 1 || a->ksize[ax.w] > 1))
        return adj_error_set(
            error, ADJ_EARG,
            "ksize must be 1 in height and width when it is not 1 in depth (got %" PRId64
            "x%" PRId64 " and %" PRId64 ")",
            a->ksize[ax.h], a->ksize[ax.w], kc);
    for (int i = 0; i < 4; i++)
        if (a->pad[i][0] >= a->ksize[i] || a->pad[i][1] >= a->ksize[i])
            return adj_error_set(error, ADJ_EARG,
                                 "explicit_paddings must be smaller than the window (got %" PRId64
                                 " and %" PRId64 " for dimension %d, ksize %" PRId64 ")",
                                 a->pad[i][0], a->pad[i][1], i, a->ksize[i]);
    return ADJ_OK;
}

adj_status adj_pool_from_attrs(const adj_attr_lists *lists, adj_pool *a, adj_error *error)
{
    adj_conv read = {0};
    if (lists == NULL || a == NULL)
        return adj_error_set(error, ADJ_EARG, "adj_pool_from_attrs: %s is NULL",
                             lists == NULL ? "lists" : "a");
    *a = (adj_pool){0};
    adj_status status = attr_read(lists, &read, a->ksize, error);
    if (status != ADJ_OK)
        return status;
    for (int i = 0; i < 4; i++)
        if (!is_absent(read.dilation) && read.dilation[i] != 1)
            return adj_error_set(error, ADJ_EARG, "dilations of a pool must be 1 (got %" PRId64 ")",
                                 read.dilation[i]);
    a->padding = read.padding;
    a->format = read.format;
    memcpy(a->stride, read.stride, sizeof a->stride);
    memcpy(a->pad, read.pad, sizeof a->pad);
    return check_pool(a, error);
}

adj_status pool_set_input(const adj_node *n, const char *name, adj_shape shape, adj_pool_attrs *a)
{
    conv_sizes s = {.g = n->graph, .op = n->op->name, .image_name = name};
    adj_status status = conv_set_image(&s, shape, a->pool.format);
    a->geom = s.k;
    return status;
}

static adj_status resolve_dim(const adj_node *n, const char *dim, window *v, adj_padding padding,
                              pool_kind kind)
{
    const char *wrong = window_resolve(v, padding);
    int64_t padded = 0;

    if (wrong == NULL && padding != ADJ_SAME && !(kind == POOL_AVERAGE_GRAD && v->out == 0)) {
        padded = v->in + v->before + v->after; /* window_resolve checked the sum */
        if (v->k > padded)
            wrong = "is empty, as the window exceeds the padded input";
        else if (v->in == 0)
            wrong = "has windows without an element";
    }
    if (wrong == NULL)
        return ADJ_OK;
    return adj_fail(n->graph, ADJ_ESHAPE,
                    "%s: output %s %s (got input %" PRId64 ", ksize %" PRId64 ", strides %" PRId64
                    ", padding %" PRId64 "+%" PRId64 ")",
                    n->op->name, dim, wrong, v->in, v->k, v->stride, v->before, v->after);
}

/* Checks windows over channels, which only max pooling allows, and the number of channels. */
static adj_status check_depth(const adj_node *n, pool_kind kind, const adj_pool_attrs *a)
{
    if (kind != POOL_MAX && a->pool.padding == ADJ_EXPLICIT)
        return adj_fail(n->graph, ADJ_EARG,
                        "%s: padding EXPLICIT is for max_pool (expected SAME or VALID)",
                        n->op->name);
    if (kind != POOL_MAX && a->kc != 1)
        return adj_fail(n->graph, ADJ_EARG, "%s: ksize in depth must be 1 (got %" PRId64 ")",
                        n->op->name, a->kc);
    if (a->geom.ic % a->kc != 0)
        return adj_fail(n->graph, ADJ_ESHAPE,
                        "%s: ksize in depth must divide the channels (got %" PRId64 " and %" PRId64
                        ")",
                        n->op->name, a->kc, a->geom.ic);
    return ADJ_OK;
}

adj_status pool_resolve(const adj_node *n, pool_kind kind, adj_pool_attrs *a)
{
    static const int64_t ones[4] = {1, 1, 1, 1};
    adj_error error;
    adj_pool *p = &a->pool;
    adj_conv_geom *k = &a->geom;
    adj_status status = check_pool(p, &error);
    if (status != ADJ_OK)
        return adj_fail(n->graph, status, "%s: %s", n->op->name, error.message);

    image_axes ax = axes_of(p->format);
    a->kc = p->ksize[ax.c];
    window h = window_along(ax.h, k->ih, p->ksize[ax.h], p->stride, ones, p->pad);
    window w = window_along(ax.w, k->iw, p->ksize[ax.w], p->stride, ones, p->pad);
    status = check_depth(n, kind, a);
    if (status == ADJ_OK)
        status = resolve_dim(n, "height", &h, p->padding, kind);
    if (status == ADJ_OK)
        status = resolve_dim(n, "width", &w, p->padding, kind);
    if (status != ADJ_OK)
        return status;
    k->oc = k->groups = k->ic / a->kc;
    geom_set_windows(k, &h, &w);
    k->format = p->format;
    return ADJ_OK;
}

static void show(const void *attrs, FILE *f)
{
    const adj_pool_attrs *a = attrs;
    show_windows(a->pool.padding, &a->geom, a->kc, f);
}

static void set_format(void *attrs, adj_format format)
{
    adj_pool_attrs *a = attrs;
    attr_move_axes(format, a->pool.ksize, a->pool.stride, a->pool.pad);
    a->pool.format = format;
    a->geom.format = format;
}

const adj_schema pool_schema = {
    .size = sizeof(adj_pool_attrs),
    .attr = {{"pool", ADJ_ATTR_POOL, .offset = offsetof(adj_pool_attrs, pool)}},
    .show = show,
    .set_format = set_format,
    .geom = offsetof(adj_pool_attrs, geom)};
