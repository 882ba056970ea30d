/* reduce.c - reductions over any set of axes: sum, mean, maximum, index of the maximum; whether all
 * elements are finite.
 *
 * Results are computed LANES at a time if the innermost axis that is not reduced is contiguous
 * in x, so that rows of x are read in order; each result is accumulated in A by one thread, in
 * x's order. */
#include <math.h>

#include "channels.h"
#include "kernels.h"
#include "walk.h"

enum { LANES = 16 };

/* Accumulates x[i * step + l] into acc[l], for i < n and l < lanes. */
typedef void accumulate_rows(A acc[], const T *x, int64_t lanes, int64_t n, int64_t step);

static void sum_rows(A acc[], const T *x, int64_t lanes, int64_t n, int64_t step)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t l = 0; l < lanes; l++)
            acc[l] += ld(&x[i * step + l]);
}

/* Sets y to the accumulated x / divisor; bit d of axes is set if axis d of shape is reduced. */
static void reduce(const T *x, adj_shape shape, int64_t axes, A start, accumulate_rows *accumulate,
                   A divisor, T *y)
{
    walk kept = walk_new(), reduced = walk_new();
    int64_t elems = adj_shape_elems(shape), step = 1;

    for (int64_t d = shape.rank - 1; d >= 0; d--) {
        walk_add(axes >> d & 1 ? &reduced : &kept, shape.dim[d], (int64_t[WALKED]){step});
        step *= shape.dim[d];
    }
    int64_t width = kept.step[0][0] == 1 ? LANES : 1;
    int64_t row_parts = (kept.dim[0] + width - 1) / width, rows = walk_rows(&kept);
    int64_t rounds = elems > 0 ? walk_rows(&reduced) : 0; /* no elements: start */

#pragma omp parallel for if (elems >= NAIVE_PARALLEL)
    for (int64_t u = 0; u < rows * row_parts; u++) {
        int64_t row = u / row_parts, first = u % row_parts * width, at[WALKED], from[WALKED];
        int64_t lanes = kept.dim[0] - first < width ? kept.dim[0] - first : width;
        A acc[LANES];
        for (int64_t l = 0; l < lanes; l++)
            acc[l] = start;
        walk_offset(&kept, row, at);
        for (int64_t r = 0; r < rounds; r++) {
            walk_offset(&reduced, r, from);
            accumulate(acc, x + at[0] + first * kept.step[0][0] + from[0], lanes, reduced.dim[0],
                       reduced.step[0][0]);
        }
        for (int64_t l = 0; l < lanes; l++)
            st(&y[row * kept.dim[0] + first + l], acc[l] / divisor);
    }
}

/* Reduces over the axes of the node's attributes. */
static adj_status reduce_axes(const adj_call *c, A start, accumulate_rows *accumulate, int is_mean)
{
    const adj_node *y = c->group->node[0];
    const adj_reduce_attrs *a = y->attrs;
    const adj_shape x = y->in[0]->type.shape;
    const int64_t count = is_mean ? adj_shape_elems(x) / adj_shape_elems(y->type.shape) : 1;

    reduce(operand(c, 0), x, a->axes, start, accumulate, (A)count, c->out[0]);
    return ADJ_OK;
}

adj_status KERNEL(reduce_sum)(const adj_call *c) { return reduce_axes(c, 0, sum_rows, 0); }
adj_status KERNEL(reduce_mean)(const adj_call *c) { return reduce_axes(c, 0, sum_rows, 1); }

/* NaN stays NaN: no comparison replaces it. */
static void max_rows(A acc[], const T *x, int64_t lanes, int64_t n, int64_t step)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t l = 0; l < lanes; l++) {
            A v = ld(&x[i * step + l]);
            acc[l] = v > acc[l] || v != v ? v : acc[l];
        }
}

adj_status KERNEL(reduce_max)(const adj_call *c)
{
    return reduce_axes(c, -(A)INFINITY, max_rows, 0);
}

/* The sum of dy over all axes but the channels. */
adj_status KERNEL(bias_add_grad)(const adj_call *c)
{
    const adj_node *db = c->group->node[0];
    adj_shape dy = db->in[0]->type.shape;
    int64_t all = ((int64_t)1 << dy.rank) - 1;
    int64_t format = ((const adj_format_attrs *)db->attrs)->format;
    int64_t others = all & ~((int64_t)1 << channel_axis(dy, format));

    reduce(operand(c, 0), dy, others, 0, sum_rows, 1, c->out[0]);
    return ADJ_OK;
}

/* The sum of dy x where x <= 0, by channel; a single slope is one channel. One thread computes each
 * sum, in the order of the elements. */
adj_status KERNEL(prelu_grad_slope)(const adj_call *c)
{
    const adj_node *node = c->group->node[0];
    const adj_prelu_attrs *a = node->attrs;
    const adj_shape shape = node->in[0]->type.shape;
    const int64_t n = adj_shape_elems(shape);
    const channels v = a->slopes == 1 ? (channels){1, 1, n} : channels_of(shape, a->format);
    const T *dy = operand(c, 0), *x = operand(c, 1);
    T *ds = c->out[0];

#pragma omp parallel for if (n >= NAIVE_PARALLEL)
    for (int64_t k = 0; k < v.c; k++) {
        A sum = 0;
        for (int64_t o = 0; o < v.outer; o++)
            for (int64_t i = (o * v.c + k) * v.inner, end = i + v.inner; i < end; i++) {
                A at = ld(&x[i]);
                sum += at > 0 ? 0 : ld(&dy[i]) * at;
            }
        st(&ds[k], sum);
    }
    return ADJ_OK;
}

/* Returns the index of the largest of n elements that are `step` apart; a NaN is the largest. */
static int32_t largest(const T *x, int64_t n, int64_t step)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++) {
        const A v = ld(&x[i * step]), max = ld(&x[best * step]);
        if (max == max && (v > max || v != v))
            best = i;
    }
    return (int32_t)best;
}

adj_status KERNEL(argmax)(const adj_call *c)
{
    const adj_node *y = c->group->node[0];
    const adj_shape s = y->in[0]->type.shape;
    const int64_t axis = ((const adj_axis_attrs *)y->attrs)->axis, n = s.dim[axis];
    const T *x = c->in[0];
    int32_t *index = c->out[0];
    int64_t inner = 1;

    for (int64_t d = axis + 1; d < s.rank; d++)
        inner *= s.dim[d];
    const int64_t results = adj_shape_elems(y->type.shape);
#pragma omp parallel for if (results * n >= NAIVE_PARALLEL)
    for (int64_t i = 0; i < results; i++)
        index[i] = largest(x + i / inner * n * inner + i % inner, n, inner);
    return ADJ_OK;
}

/* Sums x - x over the elements: 0 for a number, NaN for NaN and infinities, so the sum is 0 or NaN
 * in any order. */
adj_status KERNEL(all_finite)(const adj_call *c)
{
    const adj_node *node = c->group->node[0];
    A rest = 0;

    for (int k = 0; k < node->n_in; k++) {
        const T *x = operand(c, k);
        int64_t n = adj_shape_elems(node->in[k]->type.shape);
#if defined(__clang__) /* clang cannot vectorize half types and warns, which is an error */
#pragma omp parallel for reduction(+ : rest) if (n >= NAIVE_PARALLEL)
#else
#pragma omp parallel for simd reduction(+ : rest) if (parallel : n >= NAIVE_PARALLEL)
#endif
        for (int64_t i = 0; i < n; i++) {
            A v = ld(x + i);
            rest += v - v;
        }
    }
    st(c->out[0], rest == 0);
    return ADJ_OK;
}
