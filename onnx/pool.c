/* pool.c - MaxPool, AveragePool, LpPool, and pools over whole images. */
#include <math.h>
#include <string.h>

#include "graph/op.h"
#include "table.h"
#include "windows.h"

/* Pads that ceil_mode adds at the end so that a last, partial window fits. */
static void ceil_pads(windows *w)
{
    for (int i = 0; i < 2; i++) {
        const int64_t reach = reach_of(w, i);
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
    return (w->in[i] + w->pad[i] + w->pad[2 + i] - reach_of(w, i)) / w->stride[i] + 1;
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

/* Reads the windows of a pool, with the padding of ceil_mode; *given has the padding without it. */
static int read_pool(call *n, windows *w, int64_t given[4])
{
    enum { MAX_PLACES = 4096 }; /* of a dilated window, a slice of the image each */
    if (!read_windows(n, NULL, w))
        return 0;
    memcpy(given, w->pad, sizeof w->pad);
    if (attr_int(n, "ceil_mode", 0) != 0)
        ceil_pads(w);
    for (int i = 0; i < 2; i++)
        if (results_along(w, i) < 1 || w->in[i] + w->pad[i] + w->pad[2 + i] < reach_of(w, i))
            return refuse(n, "a window is larger than the padded image");
    return !is_dilated(w) ||
           (w->kernel[0] <= MAX_PLACES && w->kernel[1] <= MAX_PLACES &&
            w->kernel[0] * w->kernel[1] <= MAX_PLACES) ||
           refuse(n, "a dilated window has too many places (expected at most %d)", MAX_PLACES);
}

int import_max_pool(call *n)
{
    windows w = {0};
    int64_t given[4];
    if (!read_pool(n, &w, given))
        return 0;
    if (n->n_out > 1 && n->proto->output[1][0] != '\0')
        return refuse(n, "the result Indices is not supported");
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

/* Number of steps t = 0 .. n - 1 with low <= first + t step < high. */
static int64_t steps_inside(int64_t n, int64_t first, int64_t step, int64_t low, int64_t high)
{
    const int64_t from = first < low ? (low - first + step - 1) / step : 0;
    const int64_t to = first < high ? (high - first + step - 1) / step : 0;
    return (to < n ? to : n) > from ? (to < n ? to : n) - from : 0;
}

/* 1 / the number of elements of each window that count: those of the image and of the counted
 * padding. */
static adj_node *shares(call *n, const adj_node *x, const windows *w, const int64_t counted[4])
{
    const int64_t oh = results_along(w, 0), ow = results_along(w, 1);
    numbers *share = new_numbers(n->f, ELEM_DOUBLE, (adj_shape){4, {1, 1, oh, ow}});
    for (int64_t k = 0; share != NULL && k < oh * ow; k++) {
        const int64_t o[2] = {k / ow, k % ow};
        int64_t count = 1;
        for (int i = 0; i < 2; i++)
            count *= steps_inside(w->kernel[i], o[i] * w->stride[i] - w->pad[i], w->dilation[i],
                                  -counted[i], w->in[i] + counted[2 + i]);
        share->f[k] = 1.0 / (double)(count > 0 ? count : 1);
    }
    return share != NULL ? const_node(n->f, share, adj_node_type(x).dtype) : NULL;
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
    int64_t counted[4];
    if (!read_pool(n, &w, counted))
        return 0;
    if (attr_int(n, "count_include_pad", 0) == 0)
        memset(counted, 0, sizeof counted);
    adj_node *x = as_images(in_node(n, 0)), *y;
    if (!is_dilated(&w) && (pads_in_all(&w) == 0 || memcmp(counted, w.pad, sizeof counted) == 0)) {
        const adj_pool a = pool_of(&w);
        y = adj_avg_pool(pad_images(x, w.pad, 0), &a);
    } else {
        y = adj_mul(window_sums(pad_images(x, w.pad, 0), &w), shares(n, x, &w, counted));
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
    int64_t given[4];
    const double p = (double)attr_int(n, "p", 2);
    if (!read_pool(n, &w, given))
        return 0;
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
