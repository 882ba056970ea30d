/* formula_array.c - ops that move, sum or mask elements, by their definitions in float64:
 * index by index, without regard to speed. See formula.h. */
#include <math.h>
#include <string.h>

#include "formula.h"
#include "shared.h"

/* ---- indices ---- */

typedef struct {
    int64_t i[ADJ_MAX_RANK];
} place;

static place place_of(adj_shape s, int64_t element)
{
    place p = {{0}};
    for (int64_t a = s.rank - 1; a >= 0; a--) {
        p.i[a] = element % s.dim[a];
        element /= s.dim[a];
    }
    return p;
}

static int64_t element_at(adj_shape s, place p)
{
    int64_t element = 0;
    for (int64_t a = 0; a < s.rank; a++)
        element = element * s.dim[a] + p.i[a];
    return element;
}

int64_t broadcast_element(adj_shape from, adj_shape to, int64_t element)
{
    if (adj_shape_equal(from, to))
        return element;
    if (from.rank == 0)
        return 0;
    const place at = place_of(to, element);
    place p = {{0}};
    for (int64_t a = 0; a < from.rank; a++)
        p.i[a] = from.dim[a] == 1 ? 0 : at.i[a + to.rank - from.rank];
    return element_at(from, p);
}

int can_broadcast(adj_shape from, adj_shape to)
{
    if (from.rank > to.rank)
        return 0;
    for (int64_t a = 0; a < from.rank; a++)
        if (from.dim[a] != 1 && from.dim[a] != to.dim[a + to.rank - from.rank])
            return 0;
    return 1;
}

/* ---- moving ---- */

static void fill(const adj_node *n, double *const in[], double *y)
{
    (void)in;
    for (int64_t i = 0; i < node_elems(n); i++)
        y[i] = rounded((adj_dtype)((const adj_fill_attrs *)n->attrs)->dtype,
                       ((const adj_fill_attrs *)n->attrs)->value);
}

static void broadcast_to(const adj_node *n, double *const in[], double *y)
{
    for (int64_t i = 0; i < node_elems(n); i++)
        y[i] = in[0][broadcast_element(n->in[0]->type.shape, n->type.shape, i)];
}

static void transpose(const adj_node *n, double *const in[], double *y)
{
    const adj_transpose_attrs *a = n->attrs;
    for (int64_t i = 0; i < node_elems(n); i++) {
        const place at = place_of(n->type.shape, i);
        place from = {{0}};
        for (int64_t k = 0; k < n->type.shape.rank; k++)
            from.i[a->perm[k]] = at.i[k];
        y[i] = in[0][element_at(n->in[0]->type.shape, from)];
    }
}

/* Returns the element of `to` that is by[axis] beyond element i of `from` along each axis. */
static int64_t moved_element(adj_shape from, int64_t i, const int64_t by[], adj_shape to)
{
    place p = place_of(from, i);
    for (int64_t a = 0; a < from.rank; a++)
        p.i[a] += by[a];
    return element_at(to, p);
}

static void concat(const adj_node *n, double *const in[], double *y)
{
    int64_t begin[ADJ_MAX_RANK] = {0}, *along = &begin[((const adj_axis_attrs *)n->attrs)->axis];
    int64_t size = 0;
    for (int k = 0; k < n->n_in; k++)
        size += n->in[k]->type.shape.dim[along - begin];
    const int has_size = size == n->type.shape.dim[along - begin] || formula_no_value(n, y);
    for (int k = 0; k < n->n_in && has_size; k++) {
        for (int64_t i = 0; i < node_elems(n->in[k]); i++)
            y[moved_element(n->in[k]->type.shape, i, begin, n->type.shape)] = in[k][i];
        *along += n->in[k]->type.shape.dim[along - begin];
    }
}

static void pad(const adj_node *n, double *const in[], double *y)
{
    const adj_range_attrs *a = n->attrs;
    const adj_shape x = n->in[0]->type.shape;
    int has_size = 1;
    for (int64_t k = 0; k < x.rank; k++)
        has_size &= n->type.shape.dim[k] == a->a.dim[k] + x.dim[k] + a->b.dim[k];
    has_size = has_size || formula_no_value(n, y);
    for (int64_t i = 0; has_size && i < node_elems(n->in[0]); i++)
        y[moved_element(x, i, a->a.dim, n->type.shape)] = in[0][i];
}

static void slice(const adj_node *n, double *const in[], double *y)
{
    for (int64_t i = 0; i < node_elems(n); i++)
        y[i] = in[0][moved_element(n->type.shape, i, ((const adj_range_attrs *)n->attrs)->a.dim,
                                   n->in[0]->type.shape)];
}

static void copy(const adj_node *n, double *const in[], double *y)
{
    for (int64_t i = 0; i < node_elems(n); i++)
        y[i] = in[0][i];
}

static void choose(const adj_node *n, double *const in[], double *y)
{
    for (int64_t i = 0; i < node_elems(n); i++)
        y[i] = in[in[0][0] != 0 ? 1 : 2][i];
}

/* ---- summing ---- */

/* Returns the result element that element i of x is reduced to. */
static int64_t reduced_element(const adj_node *n, int64_t i)
{
    const adj_reduce_attrs *a = n->attrs;
    const adj_shape x = n->in[0]->type.shape;
    const place at = place_of(x, i);
    int64_t element = 0;
    for (int64_t k = 0; k < x.rank; k++)
        if (!(a->axes >> k & 1))
            element = element * x.dim[k] + at.i[k];
    return element;
}

static void reduce_sum(const adj_node *n, double *const in[], double *y)
{
    for (int64_t i = 0; i < node_elems(n->in[0]); i++)
        y[reduced_element(n, i)] += in[0][i];
}

static void reduce_mean(const adj_node *n, double *const in[], double *y)
{
    reduce_sum(n, in, y);
    for (int64_t i = 0; i < node_elems(n); i++)
        y[i] /= (double)node_elems(n->in[0]) / (double)node_elems(n);
}

/* A NaN is the maximum. */
static void reduce_max(const adj_node *n, double *const in[], double *y)
{
    for (int64_t i = 0; i < node_elems(n); i++)
        y[i] = -INFINITY;
    for (int64_t i = 0; i < node_elems(n->in[0]); i++) {
        double *max = &y[reduced_element(n, i)];
        *max = in[0][i] > *max || isnan(in[0][i]) ? in[0][i] : *max;
    }
}

static double matmul(const adj_node *n, double *const in[], int64_t i)
{
    const adj_matmul_attrs *t = n->attrs;
    const adj_shape a = n->in[0]->type.shape, b = n->in[1]->type.shape, s = n->type.shape;
    const int64_t inner = t->transpose_a ? a.dim[0] : a.dim[1];
    const int64_t row = i / s.dim[1], column = i % s.dim[1];
    double sum = 0;
    for (int64_t k = 0; k < inner; k++)
        sum += in[0][t->transpose_a ? k * a.dim[1] + row : row * a.dim[1] + k] *
               in[1][t->transpose_b ? column * b.dim[1] + k : k * b.dim[1] + column];
    return sum;
}

/* ---- rows ---- */

/* Returns log softmax of a class; the maximum is subtracted first to keep precision. */
static double log_probability(const double *row, int64_t n, int64_t class)
{
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        max = fmax(max, row[i]);
    for (int64_t i = 0; i < n; i++)
        sum += exp(row[i] - max);
    return row[class] - max - (sum != 0 ? log(sum) : 0); /* 0 without classes */
}

static int64_t row_length(const adj_node *n)
{
    const adj_shape s = n->in[0]->type.shape;
    return s.rank > 0 ? s.dim[s.rank - 1] : 1;
}

static void log_softmax(const adj_node *n, double *const in[], double *y)
{
    const int64_t k = row_length(n);
    for (int64_t i = 0; i < node_elems(n); i++)
        y[i] = log_probability(in[0] + i / k * k, k, i % k);
}

static void softmax(const adj_node *n, double *const in[], double *y)
{
    log_softmax(n, in, y);
    for (int64_t i = 0; i < node_elems(n); i++)
        y[i] = exp(y[i]);
}

/* The target of class j in row i, smoothed; a label -1 leaves its row out. */
static double target(const adj_node *n, const double *labels, int64_t i, int64_t j)
{
    const double s = ((const adj_value_attrs *)n->attrs)->value;
    const int64_t k = row_length(n);
    const int is_integer = n->in[1]->type.dtype == ADJ_I32;
    if (is_integer && labels[i] < 0)
        return 0;
    return (1 - s) * (is_integer ? labels[i] == (double)j : labels[i * k + j]) + s / (double)k;
}

static void cross_entropy(const adj_node *n, double *const in[], double *y)
{
    const int64_t k = row_length(n);
    for (int64_t i = 0; i < node_elems(n); i++)
        for (int64_t j = 0; j < k; j++)
            if (target(n, in[1], i, j) != 0)
                y[i] -= target(n, in[1], i, j) * log_probability(in[0] + i * k, k, j);
}

static void cross_entropy_grad(const adj_node *n, double *const in[], double *y)
{
    const int64_t k = row_length(n);
    for (int64_t i = 0; i < node_elems(n); i++) {
        const int is_left_out = n->in[1]->type.dtype == ADJ_I32 && in[1][i / k] < 0;
        const double p = exp(log_probability(in[0] + i / k * k, k, i % k));
        y[i] = is_left_out ? 0 : p - target(n, in[1], i / k, i % k);
    }
}

/* ---- slopes by channel ---- */

int64_t formula_channel(adj_shape x, int64_t format, int64_t i)
{
    for (int64_t a = 2; format == ADJ_NCHW && a < x.rank; a++)
        i /= x.dim[a];
    return i % x.dim[format == ADJ_NCHW ? 1 : x.rank - 1];
}

/* Operands: (x, slope), or (dy, x, slope). */
static void prelu(const adj_node *n, double *const in[], double *y)
{
    const adj_format_attrs *a = n->attrs;
    const double *slope = in[n->n_in - 1], *x = in[n->n_in - 2];
    const int is_one = node_elems(n->in[n->n_in - 1]) == 1;
    for (int64_t i = 0; i < node_elems(n); i++)
        y[i] = (x[i] > 0 ? 1 : slope[is_one ? 0 : formula_channel(n->type.shape, a->format, i)]) *
               in[0][i];
}

static void prelu_grad_slope(const adj_node *n, double *const in[], double *y)
{
    const adj_prelu_attrs *a = n->attrs;
    for (int64_t i = 0; i < node_elems(n->in[0]); i++)
        y[a->slopes == 1 ? 0 : formula_channel(n->in[0]->type.shape, a->format, i)] +=
            in[1][i] > 0 ? 0 : in[0][i] * in[1][i];
}

/* ---- masks and counts ---- */

/* Philox4x32-10 of Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3. */
static void philox(uint32_t c[4], uint32_t key, uint32_t next_key)
{
    for (int round = 0; round < 10; round++) {
        const uint64_t a = 0xd2511f53ull * c[0], b = 0xcd9e8d57ull * c[2];
        const uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ key, (uint32_t)b,
                                  (uint32_t)(a >> 32) ^ c[3] ^ next_key, (uint32_t)a};
        memcpy(c, next, sizeof next);
        key += 0x9e3779b9u;
        next_key += 0xbb67ae85u;
    }
}

/* Keeps elements as ops/dropout.c says. */
static void dropout(const adj_node *n, double *const in[], double *y)
{
    const adj_dropout_attrs *a = n->attrs;
    for (int64_t i = 0; i < node_elems(n); i++) {
        const uint64_t at = (uint64_t)(a->first + i);
        uint32_t word[4] = {(uint32_t)(at / 4), (uint32_t)(at / 4 >> 32),
                            (uint32_t)(int32_t)in[1][0], 0};
        philox(word, (uint32_t)a->seed, (uint32_t)(a->seed >> 32));
        y[i] = ldexp(word[at % 4], -32) >= a->rate ? in[0][i] / (1 - a->rate) : 0;
    }
}

static void argmax(const adj_node *n, double *const in[], double *y)
{
    const adj_shape s = n->in[0]->type.shape;
    const int64_t axis = ((const adj_axis_attrs *)n->attrs)->axis, size = s.dim[axis];
    int64_t inner = 1;
    for (int64_t d = axis + 1; d < s.rank; d++)
        inner *= s.dim[d];
    for (int64_t i = 0; i < node_elems(n); i++) {
        const double *x = in[0] + i / inner * size * inner + i % inner;
        int64_t best = size - 1;
        for (int64_t k = size - 2; k >= 0; k--) /* the first of equal elements, and of NaNs */
            if (isnan(x[k * inner]) || x[k * inner] >= x[best * inner])
                best = k;
        y[i] = (double)best;
    }
}

static void all_finite(const adj_node *n, double *const in[], double *y)
{
    y[0] = 1;
    for (int k = 0; k < n->n_in; k++)
        for (int64_t i = 0; i < node_elems(n->in[k]); i++)
            if (!isfinite(in[k][i]))
                y[0] = 0;
}

static void label_count(const adj_node *n, double *const in[], double *y)
{
    for (int64_t i = 0; i < node_elems(n->in[0]); i++)
        y[0] += in[0][i] >= 0;
    y[0] = fmax(y[0], 1);
}

const formula array_formulas[] = {
    {&adj_op_fill, .whole = fill},
    {&adj_op_broadcast_to, .whole = broadcast_to},
    {&adj_op_transpose, .whole = transpose},
    {&adj_op_concat, .whole = concat},
    {&adj_op_pad, .whole = pad},
    {&adj_op_slice, .whole = slice},
    {&adj_op_cast, .whole = copy},
    {&adj_op_select, .whole = choose},
    {&adj_op_reduce_sum, .whole = reduce_sum},
    {&adj_op_reduce_mean, .whole = reduce_mean},
    {&adj_op_reduce_max, .whole = reduce_max},
    {&adj_op_argmax, .whole = argmax},
    {&adj_op_matmul, .element = matmul},
    {&adj_op_softmax, .whole = softmax},
    {&adj_op_log_softmax, .whole = log_softmax},
    {&adj_op_softmax_cross_entropy, .whole = cross_entropy},
    {&adj_op_softmax_cross_entropy_grad, .whole = cross_entropy_grad},
    {&adj_op_sparse_softmax_cross_entropy, .whole = cross_entropy},
    {&adj_op_sparse_softmax_cross_entropy_grad, .whole = cross_entropy_grad},
    {&adj_op_prelu, .whole = prelu},
    {&adj_op_prelu_grad, .whole = prelu},
    {&adj_op_prelu_grad_slope, .whole = prelu_grad_slope},
    {&adj_op_dropout, .whole = dropout},
    {&adj_op_all_finite, .whole = all_finite},
    {&adj_op_label_count, .whole = label_count},
    {.op = NULL},
};
