/* conv.c - Conv and ConvTranspose. */
#include <inttypes.h>
#include <string.h>

#include "graph/op.h"
#include "table.h"
#include "windows.h"

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
        const int64_t whole = (w->in[i] - 1) * w->stride[i] + more + reach_of(w, i);
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
        const int64_t covered = (w.in[i] - 1) * w.stride[i] + reach_of(&w, i);
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
