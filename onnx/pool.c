/* pool.c - MaxPool, AveragePool, LpPool, and pools over whole images.
 *
 * A pool of volumes [n, c, d, h, w] is two pools of images: over height and width of [n, c d, h,
 * w], then over the depth, the height of [n, c, d, oh ow]. */
#include <math.h>
#include <string.h>

#include "import.h"

/* Pads that ceil_mode adds at the end so that a last, partial window fits. */
static void ceil_pads(windows *w)
{
    for (int i = 0; i < 3; i++) {
        const int64_t reach = reach_of(w, i);
        const int64_t size = w->in[i] + w->pad[i] + w->pad[3 + i];
        int64_t out = (size - reach + w->stride[i] - 1) / w->stride[i] + 1;
        if (size < reach)
            continue;
        if ((out - 1) * w->stride[i] >= w->in[i] + w->pad[i])
            out--; /* a window may not start in the padding at the end */
        const int64_t end = (out - 1) * w->stride[i] + reach - w->in[i] - w->pad[i];
        w->pad[3 + i] = end > 0 ? end : 0;
    }
}

static int is_dilated(const windows *w) { return w->dilation[1] != 1 || w->dilation[2] != 1; }

/* Reads the windows of a pool; what is counted is the padding that is given, without ceil_mode's.
 */
static int read_pool(call *n, windows *w)
{
    enum { MAX_PLACES = 4096 }; /* positions in a dilated window, a slice of the image each */
    if (!read_windows(n, NULL, w))
        return 0;
    if (attr_int(n, "count_include_pad", 0) != 0)
        memcpy(w->counted, w->pad, sizeof w->pad);
    if (attr_int(n, "ceil_mode", 0) != 0)
        ceil_pads(w);
    const int is_pairs = n->n_out > 1; /* rows and columns of indices are not independent */
    int64_t places = 1;
    for (int i = 0; i < 3; i++) {
        if (results_along(w, i) < 1 || w->in[i] + w->pad[i] + w->pad[3 + i] < reach_of(w, i))
            return refuse(n, "a window is larger than the padded image");
        places = places > MAX_PLACES     ? places
                 : is_pairs              ? places * w->kernel[i]
                 : w->kernel[i] > places ? w->kernel[i]
                                         : places;
    }
    const int is_slices = is_dilated(w) || w->dilation[0] != 1 || is_pairs;
    return !is_slices || places <= MAX_PLACES ||
           refuse(n, "a dilated window has too many positions (expected at most %d)", MAX_PLACES);
}

/* ---- windows of height and width ---- */

typedef adj_node *pool_fn(call *n, adj_node *x, const windows *w);

static adj_pool pool_of(const windows *w)
{
    return (adj_pool){.ksize = {1, 1, w->kernel[1], w->kernel[2]},
                      .stride = {1, 1, w->stride[1], w->stride[2]},
                      .format = ADJ_NCHW};
}

static adj_node *padded(adj_node *x, const windows *w, double with)
{
    return pad_axis(pad_axis(x, 2, w->pad[1], w->pad[4], with), 3, w->pad[2], w->pad[5], with);
}

/* The elements at place i, j of all windows of padded images. */
static adj_node *place_of(adj_node *x, const windows *w, int64_t i, int64_t j)
{
    adj_node *rows = strided(x, 2, i * w->dilation[1], results_along(w, 1), w->stride[1]);
    return strided(rows, 3, j * w->dilation[2], results_along(w, 2), w->stride[2]);
}

/* Combines the elements at the same place of all windows along one axis of padded images, place by
 * place. */
static adj_node *over_places(adj_node *x, const windows *w, int i,
                             adj_node *(*combine)(adj_node *a, adj_node *b))
{
    adj_node *all = NULL;
    for (int64_t k = 0; k < w->kernel[i]; k++) {
        adj_node *place = strided(x, 1 + i, k * w->dilation[i], results_along(w, i), w->stride[i]);
        all = all != NULL ? combine(all, place) : place;
    }
    return all;
}

/* Combines the elements of each window of padded images, rows first: for dilated windows. */
static adj_node *over_windows(adj_node *x, const windows *w,
                              adj_node *(*combine)(adj_node *a, adj_node *b))
{
    return over_places(over_places(x, w, 1, combine), w, 2, combine);
}

/* Applies a pool of images; to the depth of volumes, too. */
static adj_node *pool_all(call *n, adj_node *x, const windows *w, pool_fn *pool)
{
    adj_node *y = x != NULL ? pool(n, as_images(x), w) : NULL;
    if (y == NULL || w->spatial < 3)
        return from_images(y, w->spatial);
    const adj_shape s = shape_of(x), flat = shape_of(y);
    const int64_t oh = flat.dim[2], ow = flat.dim[3];
    windows depth = along_depth(w);
    depth.in[2] = oh * ow;
    y = pool(n, adj_reshape(y, (adj_shape){4, {s.dim[0], s.dim[1], s.dim[2], oh * ow}}), &depth);
    return adj_reshape(y, (adj_shape){5, {s.dim[0], s.dim[1], results_along(w, 0), oh, ow}});
}

/* ---- MaxPool ---- */

static adj_node *maxima(call *n, adj_node *x, const windows *w)
{
    (void)n;
    if (is_dilated(w))
        return over_windows(padded(x, w, -INFINITY), w, adj_maximum);
    adj_pool a = pool_of(w);
    a.padding = padding_of(w, a.pad);
    return adj_max_pool(x, &a);
}

/* Maxima of images and where they stand, the first one of equal maxima; the indices are channels
 * behind those of the images. */
static adj_node *maxima_and_indices(call *n, adj_node *x, const windows *w)
{
    (void)n;
    const int64_t c = shape_of(x).dim[1] / 2;
    adj_node *value = padded(slice_axis(x, 1, 0, c), w, -INFINITY);
    adj_node *index = padded(slice_axis(x, 1, c, c), w, 0), *most = NULL, *at = NULL;
    for (int64_t i = 0; i < w->kernel[1]; i++)
        for (int64_t j = 0; j < w->kernel[2]; j++) {
            adj_node *v = place_of(value, w, i, j), *k = place_of(index, w, i, j);
            at = most != NULL ? adj_add(at, adj_mul(greater(v, most), adj_sub(k, at))) : k;
            most = most != NULL ? adj_maximum(most, v) : v;
        }
    adj_node *both[] = {most, at};
    return adj_concat(2, both, 1);
}

/* Places of the elements in the flat tensor; with storage_order 1 the first spatial axis is the
 * innermost one. */
static numbers *places(call *n, adj_shape s)
{
    const int is_turned = attr_int(n, "storage_order", 0) != 0;
    numbers *v = new_numbers(n->f, ELEM_INT64, s);
    adj_shape turned = s;
    int perm[ADJ_MAX_RANK] = {0, 1};
    for (int i = 2; i < s.rank; i++) {
        perm[i] = is_turned ? (int)s.rank + 1 - i : i;
        turned.dim[perm[i]] = s.dim[i];
    }
    order o = order_permuted(turned, perm);
    for (int64_t k = 0; v != NULL && k < v->n; k++, order_next(&o))
        v->i[k] = o.from;
    return v;
}

static int give_indices(call *n, adj_node *x, const windows *w)
{
    const adj_shape s = shape_of(x);
    const numbers *index = places(n, s);
    if (index == NULL)
        return 0;
    adj_node *both[] = {adj_cast(x, ADJ_F64), const_node(n->f, index, ADJ_F64)};
    adj_node *y = pool_all(n, adj_concat(2, both, 1), w, maxima_and_indices);
    return give_at(n, 1, adj_cast(slice_axis(y, 1, s.dim[1], s.dim[1]), ADJ_I32), ELEM_INT64);
}

int import_max_pool(call *n)
{
    windows w = {0};
    adj_node *x = in_real(n, 0);
    if (x == NULL || !read_pool(n, &w))
        return 0;
    if (n->n_out > 1 && n->proto->output[1][0] != '\0' && !give_indices(n, x, &w))
        return 0;
    return give_like(n, pool_all(n, x, &w, maxima));
}

/* ---- AveragePool, LpPool ---- */

/* Number of steps t = 0 .. n - 1 with low <= first + t step < high. */
static int64_t steps_inside(int64_t n, int64_t first, int64_t step, int64_t low, int64_t high)
{
    const int64_t from = first < low ? (low - first + step - 1) / step : 0;
    const int64_t to = first < high ? (high - first + step - 1) / step : 0;
    return (to < n ? to : n) > from ? (to < n ? to : n) - from : 0;
}

/* 1 / the number of elements of each window that count: those of the image and of the counted
 * padding. */
static adj_node *shares(call *n, const adj_node *x, const windows *w)
{
    const int64_t oh = results_along(w, 1), ow = results_along(w, 2);
    numbers *share = new_numbers(n->f, ELEM_DOUBLE, (adj_shape){4, {1, 1, oh, ow}});
    for (int64_t k = 0; share != NULL && k < oh * ow; k++) {
        const int64_t o[3] = {0, k / ow, k % ow};
        int64_t count = 1;
        for (int i = 1; i < 3; i++)
            count *= steps_inside(w->kernel[i], o[i] * w->stride[i] - w->pad[i], w->dilation[i],
                                  -w->counted[i], w->in[i] + w->counted[3 + i]);
        share->f[k] = 1.0 / (double)(count > 0 ? count : 1);
    }
    return share != NULL ? const_node(n->f, share, adj_node_type(x).dtype) : NULL;
}

/* The sum of each window. */
static adj_node *window_sums(call *n, adj_node *x, const windows *w)
{
    (void)n;
    x = padded(x, w, 0);
    if (is_dilated(w))
        return over_windows(x, w, adj_add);
    const adj_pool a = pool_of(w);
    return adj_scale(adj_avg_pool(x, &a), (double)(w->kernel[1] * w->kernel[2]));
}

static adj_node *means(call *n, adj_node *x, const windows *w)
{
    int is_counted = !is_dilated(w);
    for (int i = 1; i < 3; i++)
        is_counted &= w->pad[i] == w->counted[i] && w->pad[3 + i] == w->counted[3 + i];
    const adj_pool a = pool_of(w);
    return is_counted ? adj_avg_pool(padded(x, w, 0), &a)
                      : adj_mul(window_sums(n, x, w), shares(n, x, w));
}

int import_average_pool(call *n)
{
    windows w = {0};
    return read_pool(n, &w) && give(n, pool_all(n, in_node(n, 0), &w, means));
}

/* x raised to a whole or fractional power p, of values that are not negative. */
static adj_node *power(adj_node *x, double p)
{
    return p == 1     ? x
           : p == 2   ? adj_square(x)
           : p == 0.5 ? adj_sqrt(x)
                      : adj_pow(x, adj_scalar_like(x, p));
}

int import_lp_pool(call *n)
{
    windows w = {0};
    const double p = (double)attr_int(n, "p", 2);
    if (!read_pool(n, &w))
        return 0;
    adj_node *sums = pool_all(n, power(adj_abs(in_node(n, 0)), p), &w, window_sums);
    return give(n, power(sums, 1 / p));
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
    const adj_shape s = shape_of(x);
    if (s.rank != 4)
        return give(n, adj_reduce_mean(x, spatial_axes(x)));
    const adj_shape kept = {4, {s.dim[0], s.dim[1], 1, 1}};
    return give(n, adj_reshape(adj_global_avg_pool(x, ADJ_NCHW), kept));
}

int import_global_max_pool(call *n)
{
    adj_node *x = in_node(n, 0);
    return give(n, adj_reduce_max(x, spatial_axes(x)));
}

int import_global_lp_pool(call *n)
{
    const double p = (double)attr_int(n, "p", 2);
    adj_node *x = in_node(n, 0);
    adj_node *sum = adj_reduce_sum(power(adj_abs(x), p), spatial_axes(x));
    return give(n, power(sum, 1 / p));
}
