/* conv.c - Conv, ConvTranspose and pools on NCHW images. One spatial axis runs as images of
 * height 1. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "graph/op.h"
#include "table.h"

/* Windows of an operator along height and width. */
typedef struct {
    int spatial;   /* number of spatial axes in the file: 1 or 2 */
    int64_t in[2]; /* size of the image */
    int64_t kernel[2], stride[2], dilation[2];
    int64_t pad[4]; /* top, left, bottom, right */
} windows;

/* ---- one spatial axis ---- */

/* x [n, c, w] as [n, c, 1, w]; images stay. */
static adj_node *as_images(adj_node *x)
{
    const adj_shape s = shape_of(x);
    return s.rank == 3 ? adj_reshape(x, (adj_shape){4, {s.dim[0], s.dim[1], 1, s.dim[2]}}) : x;
}

/* The reverse, for an operator of one spatial axis. */
static adj_node *from_images(adj_node *y, int spatial)
{
    if (y == NULL || spatial == 2)
        return y;
    const adj_shape s = shape_of(y);
    return adj_reshape(y, (adj_shape){3, {s.dim[0], s.dim[1], s.dim[3]}});
}

/* ---- attributes ---- */

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
        const int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        const int64_t all = (out - 1) * w->stride[i] + reach - w->in[i];
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

/* Reads kernel_shape (from the filter's shape where it is missing), strides, dilations, pads. */
static int read_windows(call *n, const adj_shape *filter, windows *w)
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

static adj_conv conv_of(const windows *w)
{
    adj_conv a = {.stride = {1, 1, w->stride[0], w->stride[1]},
                  .dilation = {1, 1, w->dilation[0], w->dilation[1]},
                  .format = ADJ_NCHW};
    if (w->pad[0] + w->pad[1] + w->pad[2] + w->pad[3] > 0) {
        a.padding = ADJ_EXPLICIT;
        for (int i = 0; i < 2; i++) {
            a.pad[2 + i][0] = w->pad[i];
            a.pad[2 + i][1] = w->pad[2 + i];
        }
    }
    return a;
}

/* ---- Conv ---- */

/* The filter [out, in / groups, kh, kw] as [kh, kw, in / groups, out]. */
static adj_node *filter_of(call *n, int spatial)
{
    const int from_2d[] = {2, 3, 1, 0}, from_1d[] = {2, 1, 0};
    adj_node *w = in_permuted(n, 1, spatial == 2 ? from_2d : from_1d);
    const adj_shape s = w != NULL ? shape_of(w) : (adj_shape){0};
    return w == NULL || spatial == 2
               ? w
               : adj_reshape(w, (adj_shape){4, {1, s.dim[0], s.dim[1], s.dim[2]}});
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
    adj_node *image = as_images(in_node(n, 0)), *f = filter_of(n, w.spatial);
    const adj_conv a = conv_of(&w);
    adj_node *y;
    if (groups > 1 && filter.dim[1] == 1 && f != NULL) {
        const adj_shape s = {4, {w.kernel[0], w.kernel[1], groups, filter.dim[0] / groups}};
        y = adj_depthwise_conv2d_native(image, adj_reshape(f, s), &a);
    } else {
        y = adj_conv2d(image, f, &a);
    }
    if (has_in(n, 2))
        y = adj_bias_add(y, in_node(n, 2), ADJ_NCHW);
    return give(n, from_images(y, w.spatial));
}

/* ---- ConvTranspose ---- */

/* Sizes of the result along both axes, which output_shape, or pads and output_padding give. */
static int transposed_sizes(call *n, windows *w, int64_t out[2])
{
    const int64_t *shape, *extra;
    const int n_shape = attr_ints(n, "output_shape", &shape);
    const int n_extra = attr_ints(n, "output_padding", &extra);
    if ((n_shape >= 0 && n_shape != w->spatial) || (n_extra >= 0 && n_extra != w->spatial))
        return refuse(n, "output_shape or output_padding has not an entry for each axis");
    const word how = attr_word(n, "auto_pad", "NOTSET");
    const int is_same = strncmp(how.s, "SAME", 4) == 0;
    for (int i = 2 - w->spatial, k = 0; i < 2; i++, k++) {
        const int64_t more = n_extra >= 0 ? extra[k] : 0;
        const int64_t whole =
            (w->in[i] - 1) * w->stride[i] + more + (w->kernel[i] - 1) * w->dilation[i] + 1;
        if (n_shape < 0 && !is_same) {
            out[i] = whole - w->pad[i] - w->pad[2 + i];
            continue;
        }
        out[i] = n_shape >= 0 ? shape[k] : w->in[i] * w->stride[i];
        const int64_t total = whole > out[i] ? whole - out[i] : 0;
        const int is_upper = strcmp(how.s, "SAME_UPPER") == 0;
        w->pad[i] = is_upper ? total / 2 : total - total / 2;
        w->pad[2 + i] = total - w->pad[i];
    }
    if (w->spatial == 1)
        out[0] = 1;
    return (out[0] > 0 && out[1] > 0) || refuse(n, "the result would be empty");
}

int import_conv_transpose(call *n)
{
    windows w = {0};
    const adj_shape filter = in_shape(n, 1), x = in_shape(n, 0);
    int64_t out[2] = {0};
    if (!read_windows(n, &filter, &w) || !transposed_sizes(n, &w, out))
        return 0;
    const int64_t groups = attr_int(n, "group", 1);
    if (groups < 1 || filter.dim[0] != x.dim[1] || filter.dim[0] % groups != 0)
        return refuse(n, "group %" PRId64 " does not fit %" PRId64 " channels and the filter %s",
                      groups, x.dim[1], adj_shape_text(filter).s);
    /* Elements at the end that no window reaches (output_padding) need less padding there. */
    adj_node *image = as_images(in_node(n, 0)), *f = filter_of(n, w.spatial);
    for (int i = 0; i < 2; i++) {
        const int64_t covered = (w.in[i] - 1) * w.stride[i] + (w.kernel[i] - 1) * w.dilation[i] + 1;
        const int64_t end = covered - w.pad[i] - out[i];
        w.pad[2 + i] = end > 0 ? end : 0;
    }
    const adj_conv a = conv_of(&w);
    const adj_shape sizes = {4, {x.dim[0], groups * filter.dim[1], out[0], out[1]}};
    adj_node *y = adj_conv2d_backprop_input(sizes, f, image, &a);
    if (has_in(n, 2))
        y = adj_bias_add(y, in_node(n, 2), ADJ_NCHW);
    return give(n, from_images(y, w.spatial));
}

/* ---- pools ---- */

/* Pads that ceil_mode adds at the end so that a last, partial window fits. */
static void ceil_pads(windows *w)
{
    for (int i = 0; i < 2; i++) {
        const int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        const int64_t size = w->in[i] + w->pad[i] + w->pad[2 + i];
        int64_t out = (size - reach + w->stride[i] - 1) / w->stride[i] + 1;
        if (size < reach)
            continue;
        if ((out - 1) * w->stride[i] >= w->in[i] + w->pad[i])
            out--; /* a window may not start in the padding at the end */
        const int64_t end = (out - 1) * w->stride[i] + reach - w->in[i] - w->pad[i];
        w->pad[2 + i] = end > 0 ? end : 0;
    }
}

static adj_pool pool_of(const windows *w)
{
    return (adj_pool){.ksize = {1, 1, w->kernel[0], w->kernel[1]},
                      .stride = {1, 1, w->stride[0], w->stride[1]},
                      .format = ADJ_NCHW};
}

static int64_t pads_in_all(const windows *w)
{
    return w->pad[0] + w->pad[1] + w->pad[2] + w->pad[3];
}

/* Number of results along an axis of padded images. */
static int64_t results_along(const windows *w, int i)
{
    const int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
    return (w->in[i] + w->pad[i] + w->pad[2 + i] - reach) / w->stride[i] + 1;
}

/* Combines the elements at the same place of all windows, place by place: for dilated windows. x is
 * padded. */
static adj_node *over_places(adj_node *x, const windows *w,
                             adj_node *(*combine)(adj_node *a, adj_node *b))
{
    adj_node *all = NULL;
    for (int64_t i = 0; i < w->kernel[0]; i++)
        for (int64_t j = 0; j < w->kernel[1]; j++) {
            adj_node *rows = strided(x, 2, i * w->dilation[0], results_along(w, 0), w->stride[0]);
            adj_node *place =
                strided(rows, 3, j * w->dilation[1], results_along(w, 1), w->stride[1]);
            all = all != NULL ? combine(all, place) : place;
        }
    return all;
}

static int is_dilated(const windows *w) { return w->dilation[0] != 1 || w->dilation[1] != 1; }

int import_max_pool(call *n)
{
    windows w = {0};
    if (!read_windows(n, NULL, &w))
        return 0;
    if (n->n_out > 1 && n->proto->output[1][0] != '\0')
        return refuse(n, "the result Indices is not supported");
    if (attr_int(n, "ceil_mode", 0) != 0)
        ceil_pads(&w);
    adj_node *x = as_images(in_node(n, 0)), *y;
    adj_pool a = pool_of(&w);
    if (is_dilated(&w)) {
        y = over_places(pad_images(x, w.pad, -INFINITY), &w, adj_maximum);
    } else {
        if (pads_in_all(&w) > 0) {
            a.padding = ADJ_EXPLICIT;
            for (int i = 0; i < 2; i++) {
                a.pad[2 + i][0] = w.pad[i];
                a.pad[2 + i][1] = w.pad[2 + i];
            }
        }
        y = adj_max_pool(x, &a);
    }
    return give(n, from_images(y, w.spatial));
}

/* Elements of each window that count: those of the image and, if `counted` has any, of its padding.
 */
static adj_node *counts(call *n, const adj_node *x, const windows *w, const int64_t counted[4])
{
    const int64_t oh = results_along(w, 0), ow = results_along(w, 1), size[2] = {oh, ow};
    numbers *c = new_numbers(n->f, ELEM_DOUBLE, (adj_shape){4, {1, 1, oh, ow}});
    if (c == NULL)
        return NULL;
    for (int64_t k = 0; k < oh * ow; k++) {
        int64_t product = 1;
        for (int i = 0; i < 2; i++) {
            const int64_t o = i == 0 ? k / ow : k % size[1];
            int64_t inside = 0;
            for (int64_t t = 0; t < w->kernel[i]; t++) {
                const int64_t at = o * w->stride[i] + t * w->dilation[i] - w->pad[i];
                inside += at >= -counted[i] && at < w->in[i] + counted[2 + i];
            }
            product *= inside;
        }
        c->f[k] = 1.0 / (double)(product > 0 ? product : 1);
    }
    return const_node(n->f, c, adj_node_type(x).dtype);
}

/* The sum of each window of padded images. */
static adj_node *window_sums(adj_node *x, const windows *w)
{
    if (is_dilated(w))
        return over_places(x, w, adj_add);
    const adj_pool a = pool_of(w);
    return adj_scale(adj_avg_pool(x, &a), (double)(w->kernel[0] * w->kernel[1]));
}

int import_average_pool(call *n)
{
    windows w = {0};
    if (!read_windows(n, NULL, &w))
        return 0;
    int64_t counted[4] = {0};
    if (attr_int(n, "count_include_pad", 0) != 0)
        memcpy(counted, w.pad, sizeof counted);
    if (attr_int(n, "ceil_mode", 0) != 0)
        ceil_pads(&w);
    adj_node *x = as_images(in_node(n, 0)), *y;
    if (!is_dilated(&w) && (pads_in_all(&w) == 0 || memcmp(counted, w.pad, sizeof counted) == 0)) {
        const adj_pool a = pool_of(&w);
        y = adj_avg_pool(pad_images(x, w.pad, 0), &a);
    } else {
        y = adj_mul(window_sums(pad_images(x, w.pad, 0), &w), counts(n, x, &w, counted));
    }
    return give(n, from_images(y, w.spatial));
}

/* x raised to a whole or fractional power p, of values that are not negative. */
static adj_node *power(adj_node *x, double p)
{
    return p == 1 ? x : p == 2 ? adj_square(x) : adj_pow(x, scalar(x, p));
}

int import_lp_pool(call *n)
{
    windows w = {0};
    const double p = (double)attr_int(n, "p", 2);
    if (!read_windows(n, NULL, &w))
        return 0;
    if (attr_int(n, "ceil_mode", 0) != 0)
        ceil_pads(&w);
    adj_node *x = as_images(in_node(n, 0));
    adj_node *sums = window_sums(pad_images(power(adj_abs(x), p), w.pad, 0), &w);
    adj_node *y = p == 2 ? adj_sqrt(sums) : power(sums, 1 / p);
    return give(n, from_images(y, w.spatial));
}

/* ---- pools over whole images ---- */

static adj_axes spatial_axes(const adj_node *x)
{
    adj_axes a = {.keep_dims = 1};
    for (int i = 2; i < shape_of(x).rank; i++)
        a.axis[a.n++] = i;
    return a;
}

int import_global_average_pool(call *n)
{
    adj_node *x = in_node(n, 0);
    if (x == NULL)
        return 0;
    const adj_shape s = shape_of(x);
    if (s.rank != 4)
        return give(n, adj_reduce_mean(x, spatial_axes(x)));
    const adj_shape kept = {4, {s.dim[0], s.dim[1], 1, 1}};
    return give(n, adj_reshape(adj_global_avg_pool(x, ADJ_NCHW), kept));
}

int import_global_max_pool(call *n)
{
    adj_node *x = in_node(n, 0);
    return x != NULL && give(n, adj_reduce_max(x, spatial_axes(x)));
}

int import_global_lp_pool(call *n)
{
    const double p = (double)attr_int(n, "p", 2);
    adj_node *x = in_node(n, 0);
    if (x == NULL)
        return 0;
    adj_node *sum = adj_reduce_sum(power(adj_abs(x), p), spatial_axes(x));
    return give(n, p == 2 ? adj_sqrt(sum) : power(sum, 1 / p));
}
