/* softmax.c - softmax and log_softmax over the last axis, softmax cross-entropy, its gradient for
 * the logits z, and the number of labels that are not ignored. Each row is shifted by its maximum
 * m, so that nothing overflows:
 *   softmax      y[j] = exp(x[j] - m) / sum(exp(x - m))
 *   log_softmax  y[j] = x[j] - m - log(sum(exp(x - m)))
 *
 * With p = softmax(z) and the target t[j] = (1-s) * label[j] + s/k (an integer label: one-hot):
 *   loss = -sum(t[j] * log p[j])      g[j] = p[j] - t[j]
 * A class with t[j] == 0 adds nothing, even where p[j] is 0. An integer label -1 sets its row to
 * 0; any other label outside of 0 to k-1 is an error, detected before a result is written. */
#include <math.h>

#include "kernels.h"

enum { PARALLEL_ROWS = 1 << 10 }; /* exponentials that justify several threads */

typedef struct {
    A maximum, sum; /* sum of exp(x - maximum): at least 1, NaN if the row has a NaN */
} row_sums;

static row_sums row_sums_of(const T *x, ptrdiff_t k)
{
    row_sums s = {ld(x), 0};
    for (ptrdiff_t j = 1; j < k; j++)
        s.maximum = ld(x + j) > s.maximum ? ld(x + j) : s.maximum;
    for (ptrdiff_t j = 0; j < k; j++)
        s.sum += (A)exp(ld(x + j) - s.maximum);
    return s;
}

static adj_status run(const adj_call *c, int is_log)
{
    const T *x = operand(c, 0);
    const adj_shape s = c->group->node[0]->type.shape;
    const ptrdiff_t n = s.dim[s.rank - 1], rows = adj_shape_elems(s) / n; /* y is not empty */
    T *y = c->out[0];

#pragma omp parallel for if (rows * n > PARALLEL_ROWS)
    for (ptrdiff_t i = 0; i < rows; i++) {
        const T *row = x + i * n;
        row_sums r = row_sums_of(row, n);
        A log_sum = (A)log(r.sum);
        for (ptrdiff_t j = 0; j < n; j++)
            st(y + i * n + j, is_log ? ld(row + j) - r.maximum - log_sum
                                     : (A)exp(ld(row + j) - r.maximum) / r.sum);
    }
    return ADJ_OK;
}

adj_status KERNEL(softmax)(const adj_call *c) { return run(c, 0); }
adj_status KERNEL(log_softmax)(const adj_call *c) { return run(c, 1); }

/* ---- cross-entropy ---- */

typedef struct {
    const T *z;
    const T *dense;         /* a label for each class of each row; if NULL: */
    const int32_t *integer; /* one label for each row */
    ptrdiff_t n, k;
    A keep, spread; /* 1-s, s/k */
} losses;

static losses losses_of(const adj_call *c)
{
    const adj_node *y = c->group->node[0];
    const adj_value_attrs *a = y->attrs;
    adj_shape z = y->in[0]->type.shape;
    int is_integer = y->in[1]->type.dtype == ADJ_I32;
    return (losses){.z = operand(c, 0),
                    .dense = is_integer ? NULL : operand(c, 1),
                    .integer = is_integer ? operand(c, 1) : NULL,
                    .n = z.dim[0],
                    .k = z.dim[1],
                    .keep = (A)(1 - a->value),
                    .spread = (A)(a->value / (double)z.dim[1])};
}

static inline int is_left_out(const losses *v, ptrdiff_t i)
{
    return v->integer != NULL && v->integer[i] < 0;
}

/* Returns t[j] of row i. */
static inline A target(const losses *v, ptrdiff_t i, ptrdiff_t j)
{
    if (v->integer != NULL)
        return (j == v->integer[i] ? v->keep : 0) + v->spread;
    return v->keep * ld(v->dense + i * v->k + j) + v->spread;
}

/* Returns -t * log p of one class. */
static inline A term(A z, A t, row_sums s, A log_sum)
{
    return t == 0 ? 0 : t * (log_sum - (z - s.maximum));
}

/* Computes each row's loss, or its gradient for the logits. */
static adj_status cross_entropy(const adj_call *c, int is_grad)
{
    const losses v = losses_of(c);
    T *y = c->out[0];
    adj_status status = adj_call_check_labels(c);
    if (status != ADJ_OK)
        return status;

#pragma omp parallel for if (v.n * v.k > PARALLEL_ROWS)
    for (ptrdiff_t i = 0; i < v.n; i++) {
        const T *row = v.z + i * v.k;
        row_sums s = row_sums_of(row, v.k);
        A log_sum = (A)log(s.sum), loss = 0;
        for (ptrdiff_t j = 0; j < v.k; j++) {
            A t = target(&v, i, j), p = is_grad ? (A)exp(ld(row + j) - s.maximum) / s.sum : 0;
            if (is_grad)
                st(y + i * v.k + j, is_left_out(&v, i) ? 0 : p - t);
            else
                loss += is_left_out(&v, i) ? 0 : term(ld(row + j), t, s, log_sum);
        }
        if (!is_grad)
            st(y + i, loss);
    }
    return ADJ_OK;
}

adj_status KERNEL(softmax_cross_entropy)(const adj_call *c) { return cross_entropy(c, 0); }
adj_status KERNEL(softmax_cross_entropy_grad)(const adj_call *c) { return cross_entropy(c, 1); }

adj_status KERNEL(label_count)(const adj_call *c)
{
    const int32_t *label = operand(c, 0);
    ptrdiff_t n = adj_shape_elems(c->group->node[0]->in[0]->type.shape), count = 0;

    for (ptrdiff_t i = 0; i < n; i++)
        count += label[i] >= 0;
    st(c->out[0], (A)(count > 0 ? count : 1));
    return ADJ_OK;
}
