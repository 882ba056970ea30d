/* conv.c - the windows of convolutions and pools; Conv and ConvTranspose.
 *
 * Volumes [n, c, d, h, w] are convolved as images whose channels are those of the planes that a
 * window covers. */
#include <inttypes.h>
#include <string.h>

#include "import.h"

/* ---- one and three spatial axes ---- */

adj_node *as_images(adj_node *x)
{
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

adj_padding padding_of(const windows *w, int64_t pad[4][2])
{
    for (int i = 1; i < 3; i++) {
        pad[1 + i][0] = w->pad[i];
        pad[1 + i][1] = w->pad[3 + i];
    }
    return w->pad[1] + w->pad[2] + w->pad[4] + w->pad[5] > 0 ? ADJ_EXPLICIT : ADJ_VALID;
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

/* ---- Conv ---- */

static adj_conv conv_of(const windows *w)
{
    adj_conv a = {.stride = {1, 1, w->stride[1], w->stride[2]},
                  .dilation = {1, 1, w->dilation[1], w->dilation[2]},
                  .format = ADJ_NCHW};
    a.padding = padding_of(w, a.pad);
    return a;
}

/* The filter [out, in / groups, kh, kw] as [kh, kw, in / groups, out]; of volumes
 * [kh, kw, in / groups kd, out]. */
static adj_node *filter_of(call *n, int spatial)
{
    static const int perm[4][5] = {{0}, {2, 1, 0}, {2, 3, 1, 0}, {3, 4, 1, 2, 0}};
    adj_node *w = spatial < 3 ? in_permuted(n, 1, perm[spatial]) : in_node(n, 1);
    if (w != NULL && spatial == 3)
        w = permute(w, perm[3]);
    if (w == NULL || spatial == 2)
        return w;
    const adj_shape s = shape_of(w);
    return adj_reshape(
        w, spatial == 1 ? (adj_shape){4, {1, s.dim[0], s.dim[1], s.dim[2]}}
                        : (adj_shape){4, {s.dim[0], s.dim[1], s.dim[2] * s.dim[3], s.dim[4]}});
}

static const int planes_first[] = {0, 2, 1, 3, 4}; /* [n, c, d, h, w] as [n, d, c, h, w] */

/* Volumes as images [n od, c kd, h, w]: for each result along the depth the planes of its window.
 */
static adj_node *planes_of(call *n, adj_node *x, const windows *w)
{
    enum { MAX_PLANES = 1024 }; /* planes of a window, a node each */
    adj_node *plane[MAX_PLANES];
    const int64_t od = results_along(w, 0);
    if (w->kernel[0] > MAX_PLANES || w->in[0] + w->pad[0] + w->pad[3] < reach_of(w, 0))
        refuse(n,
               "depth of the window is out of range (got %" PRId64 ", expected at most %d and the "
               "depth of the padded image)",
               w->kernel[0], MAX_PLANES);
    if (x == NULL || n->reason[0] != '\0')
        return NULL;
    x = pad_axis(permute(x, planes_first), 1, w->pad[0], w->pad[3], 0);
    const adj_shape s = shape_of(x);
    const adj_shape one = {4, {s.dim[0] * od, s.dim[2], 1, s.dim[3] * s.dim[4]}};
    for (int64_t k = 0; k < w->kernel[0]; k++)
        plane[k] = adj_reshape(strided(x, 1, k * w->dilation[0], od, w->stride[0]), one);
    return adj_reshape(adj_concat((int)w->kernel[0], plane, 2),
                       (adj_shape){4, {one.dim[0], s.dim[2] * w->kernel[0], s.dim[3], s.dim[4]}});
}

/* Images [n d, c, h, w] as volumes. */
static adj_node *volumes_of(adj_node *y, int64_t d)
{
    if (y == NULL)
        return NULL;
    const adj_shape s = shape_of(y);
    y = adj_reshape(y, (adj_shape){5, {s.dim[0] / d, d, s.dim[1], s.dim[2], s.dim[3]}});
    return permute(y, planes_first);
}

int import_conv(call *n)
{
    windows w = {0};
    const adj_shape filter = in_shape(n, 1), x = in_shape(n, 0);
    if (!read_windows(n, &filter, &w))
        return 0;
    const int64_t groups = attr_int(n, "group", 1);
    if (groups < 1 || filter.dim[1] < 1 || x.dim[1] != groups * filter.dim[1] ||
        filter.dim[0] % groups != 0)
        return refuse(n, "group %" PRId64 " does not fit %" PRId64 " channels and the filter %s",
                      groups, x.dim[1], adj_shape_text(filter).s);
    adj_node *image = w.spatial == 3 ? planes_of(n, in_node(n, 0), &w) : as_images(in_node(n, 0));
    adj_node *f = filter_of(n, w.spatial), *y;
    const adj_conv a = conv_of(&w);
    if (groups > 1 && filter.dim[1] == 1 && w.spatial < 3 && f != NULL) {
        const adj_shape s = {4, {w.kernel[1], w.kernel[2], groups, filter.dim[0] / groups}};
        y = adj_depthwise_conv2d_native(image, adj_reshape(f, s), &a);
    } else {
        y = adj_conv2d(image, f, &a);
    }
    if (has_in(n, 2))
        y = adj_bias_add(y, in_node(n, 2), ADJ_NCHW);
    return give(n,
                w.spatial == 3 ? volumes_of(y, results_along(&w, 0)) : from_images(y, w.spatial));
}

/* ---- ConvTranspose ---- */

/* Sizes of the result along all axes, which output_shape, or pads and output_padding give. */
static int transposed_sizes(call *n, windows *w, int64_t out[3])
{
    int64_t shape[3] = {0}, extra[3] = {0};
    if (!read_list(n, "output_shape", w->spatial, 1, shape) ||
        !read_list(n, "output_padding", w->spatial, 0, extra))
        return 0;
    const word how = attr_word(n, "auto_pad", "NOTSET");
    const int is_same = strncmp(how.s, "SAME", 4) == 0;
    for (int i = 3 - w->spatial; i < 3; i++) {
        const int64_t whole = (w->in[i] - 1) * w->stride[i] + extra[i] + reach_of(w, i);
        if (shape[i] == 0 && !is_same) {
            out[i] = whole - w->pad[i] - w->pad[3 + i];
            continue;
        }
        out[i] = shape[i] > 0 ? shape[i] : w->in[i] * w->stride[i];
        const int64_t total = whole > out[i] ? whole - out[i] : 0;
        const int is_upper = strcmp(how.s, "SAME_UPPER") == 0;
        w->pad[i] = is_upper ? total / 2 : total - total / 2;
        w->pad[3 + i] = total - w->pad[i];
    }
    return (out[0] > 0 && out[1] > 0 && out[2] > 0) || refuse(n, "the result would be empty");
}

/* Sums planes [n d, c kd, h, w] where they meet in volumes [n, c, out, h, w]: the gradient of a
 * convolution along the depth, whose filter picks plane k of a window as channel k. */
static adj_node *stacked(call *n, adj_node *y, const windows *w, int64_t out)
{
    if (y == NULL)
        return NULL;
    const int by_channel[] = {0, 2, 1, 3};
    const adj_shape s = shape_of(y);
    const int64_t kd = w->kernel[0], d = w->in[0], c = s.dim[1] / kd, area = s.dim[2] * s.dim[3];
    numbers *one_hot = new_numbers(n->f, ELEM_DOUBLE, (adj_shape){4, {kd, 1, 1, c * kd}});
    for (int64_t i = 0; one_hot != NULL && i < one_hot->n; i++)
        one_hot->f[i] = i / (c * kd) == i % kd;
    if (one_hot == NULL)
        return NULL;
    y = adj_reshape(y, (adj_shape){4, {s.dim[0] / d, d, s.dim[1], area}});
    const windows depth = along_depth(w);
    const adj_conv a = conv_of(&depth);
    const adj_shape sizes = {4, {s.dim[0] / d, c, out, area}};
    y = adj_conv2d_backprop_input(sizes, const_node(n->f, one_hot, adj_node_type(y).dtype),
                                  permute(y, by_channel), &a);
    return adj_reshape(y, (adj_shape){5, {s.dim[0] / d, c, out, s.dim[2], s.dim[3]}});
}

int import_conv_transpose(call *n)
{
    windows w = {0};
    const adj_shape filter = in_shape(n, 1), x = in_shape(n, 0);
    int64_t out[3] = {1, 1, 1};
    if (!read_windows(n, &filter, &w) || !transposed_sizes(n, &w, out))
        return 0;
    const int64_t groups = attr_int(n, "group", 1);
    if (groups < 1 || filter.dim[0] != x.dim[1] || filter.dim[0] % groups != 0)
        return refuse(n, "group %" PRId64 " does not fit %" PRId64 " channels and the filter %s",
                      groups, x.dim[1], adj_shape_text(filter).s);
    /* Elements at the end that no window reaches (output_padding) need less padding there. */
    adj_node *image = in_node(n, 0), *f = filter_of(n, w.spatial);
    for (int i = 0; i < 3; i++) {
        const int64_t covered = (w.in[i] - 1) * w.stride[i] + reach_of(&w, i);
        const int64_t end = covered - w.pad[i] - out[i];
        w.pad[3 + i] = end > 0 ? end : 0;
    }
    const windows plane = {
        .in = {w.in[0]}, .kernel = {1}, .stride = {1}, .dilation = {1}}; /* volumes as images */
    image = w.spatial == 3 ? planes_of(n, image, &plane) : as_images(image);
    const adj_conv a = conv_of(&w);
    const int64_t channels = groups * filter.dim[1], rows = x.dim[0] * w.in[0];
    adj_node *y = adj_conv2d_backprop_input(
        (adj_shape){4, {rows, channels * w.kernel[0], out[1], out[2]}}, f, image, &a);
    if (w.spatial == 3)
        y = stacked(n, y, &w, out[0]);
    if (has_in(n, 2))
        y = adj_bias_add(y, in_node(n, 2), ADJ_NCHW);
    return give(n, w.spatial == 3 ? y : from_images(y, w.spatial));
}
