/* windows.c - see windows.h. */
#include "windows.h"

#include <inttypes.h>
#include <string.h>

/* ---- one and three spatial axes ---- */

adj_node *as_images(adj_node *x)
{
    if (x == NULL)
        return NULL;
    const adj_shape s = shape_of(x);
    if (s.rank == 3)
        return adj_reshape(x, (adj_shape){4, {s.dim[0], s.dim[1], 1, s.dim[2]}});
    if (s.rank == 5)
        return adj_reshape(x, (adj_shape){4, {s.dim[0], s.dim[1] * s.dim[2], s.dim[3], s.dim[4]}});
    return x;
}

adj_node *from_images(adj_node *y, int spatial)
{
    if (y == NULL || spatial == 2)
        return y;
    const adj_shape s = shape_of(y);
    return adj_reshape(y, (adj_shape){3, {s.dim[0], s.dim[1], s.dim[3]}});
}

windows along_depth(const windows *w)
{
    return (windows){.spatial = 2,
                     .in = {1, w->in[0], 1},
                     .kernel = {1, w->kernel[0], 1},
                     .stride = {1, w->stride[0], 1},
                     .dilation = {1, w->dilation[0], 1},
                     .pad = {0, w->pad[0], 0, 0, w->pad[3], 0},
                     .counted = {0, w->counted[0], 0, 0, w->counted[3], 0}};
}

/* ---- attributes ---- */

int64_t reach_of(const windows *w, int i) { return (w->kernel[i] - 1) * w->dilation[i] + 1; }

int64_t results_along(const windows *w, int i)
{
    return (w->in[i] + w->pad[i] + w->pad[3 + i] - reach_of(w, i)) / w->stride[i] + 1;
}

int read_list(call *n, const char *name, int spatial, int64_t least, int64_t to[3])
{
    const int64_t *list;
    const int given = attr_ints(n, name, &list);
    if (given >= 0 && given != spatial)
        return refuse(n, "%s has %d entries (expected %d)", name, given, spatial);
    for (int k = 0; k < given; k++) {
        if (list[k] < least || list[k] > INT32_MAX)
            return refuse(
                n, "%s is out of range (got %" PRId64 ", expected %" PRId64 " to %" PRId32 ")",
                name, list[k], least, INT32_MAX);
        to[3 - spatial + k] = list[k];
    }
    return 1;
}

/* Zeros on both sides for results of ceil(in / stride). */
static void same_pads(windows *w, int is_lower)
{
    for (int i = 0; i < 3; i++) {
        const int64_t out = (w->in[i] + w->stride[i] - 1) / w->stride[i];
        const int64_t all = (out - 1) * w->stride[i] + reach_of(w, i) - w->in[i];
        const int64_t total = all > 0 ? all : 0;
        w->pad[i] = is_lower ? total - total / 2 : total / 2;
        w->pad[3 + i] = total - w->pad[i];
    }
}

static int read_pads(call *n, windows *w)
{
    const word how = attr_word(n, "auto_pad", "NOTSET");
    const int64_t *list;
    const int given = attr_ints(n, "pads", &list);
    if (strcmp(how.s, "SAME_UPPER") == 0 || strcmp(how.s, "SAME_LOWER") == 0) {
        same_pads(w, strcmp(how.s, "SAME_LOWER") == 0);
        return 1;
    }
    if (strcmp(how.s, "NOTSET") != 0 && strcmp(how.s, "VALID") != 0)
        return refuse(n, "auto_pad %s is not supported", how.s);
    if (strcmp(how.s, "VALID") == 0 || given < 0)
        return 1;
    if (given != 2 * w->spatial)
        return refuse(n, "pads has %d entries (expected %d)", given, 2 * w->spatial);
    for (int k = 0; k < given; k++)
        if (list[k] < 0 || list[k] > INT32_MAX)
            return refuse(n, "pads is out of range (got %" PRId64 ")", list[k]);
    for (int i = 0; i < w->spatial; i++) {
        w->pad[3 - w->spatial + i] = list[i];
        w->pad[6 - w->spatial + i] = list[w->spatial + i];
    }
    return 1;
}

int read_windows(call *n, const adj_shape *filter, windows *w)
{
    const adj_shape x = in_shape(n, 0);
    *w = (windows){.spatial = (int)x.rank - 2,
                   .in = {1, 1, 1},
                   .kernel = {1, 1, 1},
                   .stride = {1, 1, 1},
                   .dilation = {1, 1, 1}};
    if (x.rank < 3 || x.rank > 5)
        return refuse(n, "%" PRId64 " spatial axes (expected 1 to 3)", x.rank - 2);
    if (filter != NULL && filter->rank != x.rank)
        return refuse(n, "the filter's rank (got %" PRId64 ", expected %" PRId64 ")", filter->rank,
                      x.rank);
    for (int k = 2; k < x.rank; k++) {
        w->in[5 - x.rank + k - 2] = x.dim[k];
        if (filter != NULL)
            w->kernel[5 - x.rank + k - 2] = filter->dim[k];
    }
    int64_t kernel[3] = {w->kernel[0], w->kernel[1], w->kernel[2]};
    if (!read_list(n, "kernel_shape", w->spatial, 1, kernel))
        return 0;
    for (int i = 0; i < 3; i++) {
        if (filter != NULL && kernel[i] != w->kernel[i])
            return refuse(
                n, "kernel_shape is not the filter's (got %" PRId64 ", expected %" PRId64 ")",
                kernel[i], w->kernel[i]);
        w->kernel[i] = kernel[i];
        if (w->in[i] > INT32_MAX || kernel[i] > INT32_MAX || kernel[i] < 1)
            return refuse(n,
                          "the size of a spatial axis is out of range (images %" PRId64
                          ", windows %" PRId64 ")",
                          w->in[i], kernel[i]);
    }
    return read_list(n, "strides", w->spatial, 1, w->stride) &&
           read_list(n, "dilations", w->spatial, 1, w->dilation) && read_pads(n, w);
}
