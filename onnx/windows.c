/* windows.c - see windows.h. */
#include "windows.h"

#include <inttypes.h>
#include <string.h>

/* ---- one spatial axis ---- */

adj_node *as_images(adj_node *x)
{
    const adj_shape s = shape_of(x);
    return s.rank == 3 ? adj_reshape(x, (adj_shape){4, {s.dim[0], s.dim[1], 1, s.dim[2]}}) : x;
}

adj_node *from_images(adj_node *y, int spatial)
{
    if (y == NULL || spatial == 2)
        return y;
    const adj_shape s = shape_of(y);
    return adj_reshape(y, (adj_shape){3, {s.dim[0], s.dim[1], s.dim[3]}});
}

/* ---- attributes ---- */

int64_t reach_of(const windows *w, int i) { return (w->kernel[i] - 1) * w->dilation[i] + 1; }

/* Reads a list with an entry for each spatial axis, 1 or more; missing ones are 1. */
static int read_list(call *n, const char *name, int spatial, int64_t to[2])
{
    const int64_t *list;
    const int given = attr_ints(n, name, &list);
    if (given >= 0 && given != spatial)
        return refuse(n, "%s has %d entries (expected %d)", name, given, spatial);
    const int64_t entry[2] = {given < 0 || spatial == 1 ? 1 : list[0],
                              given < 0 ? 1 : list[spatial - 1]};
    for (int i = 0; i < 2; i++) {
        if (entry[i] < 1 || entry[i] > INT32_MAX)
            return refuse(n, "%s is out of range (got %" PRId64 ", expected 1 or more)", name,
                          entry[i]);
        to[i] = entry[i];
    }
    return 1;
}

/* Zeros on both sides for results of ceil(in / stride). */
static void same_pads(windows *w, int is_lower)
{
    for (int i = 0; i < 2; i++) {
        const int64_t out = (w->in[i] + w->stride[i] - 1) / w->stride[i];
        const int64_t all = (out - 1) * w->stride[i] + reach_of(w, i) - w->in[i];
        const int64_t total = all > 0 ? all : 0;
        w->pad[i] = is_lower ? total - total / 2 : total / 2;
        w->pad[2 + i] = total - w->pad[i];
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
        w->pad[2 - w->spatial + i] = list[i];
        w->pad[4 - w->spatial + i] = list[w->spatial + i];
    }
    return 1;
}

int read_windows(call *n, const adj_shape *filter, windows *w)
{
    const adj_shape x = in_shape(n, 0);
    *w = (windows){
        .spatial = (int)x.rank - 2, .kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}};
    if (x.rank != 3 && x.rank != 4)
        return refuse(n, "%" PRId64 " spatial axes are not supported (1 and 2 are)", x.rank - 2);
    w->in[0] = w->spatial == 2 ? x.dim[2] : 1;
    w->in[1] = x.dim[x.rank - 1];
    const int64_t *list;
    if (filter != NULL && filter->rank != x.rank)
        return refuse(n, "the filter's rank (got %" PRId64 ", expected %" PRId64 ")", filter->rank,
                      x.rank);
    if (attr_ints(n, "kernel_shape", &list) < 0 && filter != NULL) {
        w->kernel[0] = w->spatial == 2 ? filter->dim[2] : 1;
        w->kernel[1] = filter->dim[filter->rank - 1];
    } else if (!read_list(n, "kernel_shape", w->spatial, w->kernel)) {
        return 0;
    }
    return read_list(n, "strides", w->spatial, w->stride) &&
           read_list(n, "dilations", w->spatial, w->dilation) && read_pads(n, w);
}
