/* cross_entropy.c - softmax cross-entropy, its gradient for the logits z, and the count of labels.
 *
 * With p = softmax(z) and the target t[j] = (1-s) * label[j] + s/k (an integer label: one-hot):
 *   loss = -sum(t[j] * log p[j])      g[j] = p[j] - t[j]
 * A class with t[j] == 0 adds nothing, even where p[j] is 0. An integer label -1 makes its row 0;
 * any other outside of 0 to k-1 is an error, found before a result is written. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "kernels.h"
#include "row.h"

typedef struct {
    ptrdiff_t n, k;
    A keep, spread; /* 1-s, s/k */
} losses;

static losses losses_of(const adj_call *c)
{
    const adj_node *y = c->group->node[0];
    const adj_value_attrs *a = y->attrs;
    adj_shape z = y->in[0]->type.shape;
    return (losses){z.dim[0], z.dim[1], (A)(1 - a->value), (A)(a->value / (double)z.dim[1])};
}

/* -t * log p of one class. */
static inline A term(A z, A t, row_sums s, A log_sum)
{
    return t == 0 ? 0 : t * (log_sum - (z - s.maximum));
}

adj_status KERNEL(softmax_cross_entropy)(const adj_call *c)
{
    const T *z = operand(c, 0), *labels = operand(c, 1);
    const losses v = losses_of(c);
    T *y = c->out[0];

#pragma omp parallel for if (v.n * v.k > PARALLEL_ROWS)
    for (ptrdiff_t i = 0; i < v.n; i++) {
        const T *row = z + i * v.k, *label = labels + i * v.k;
        row_sums s = row_sums_of(row, v.k);
        A log_sum = (A)log(s.sum), loss = 0;
        for (ptrdiff_t j = 0; j < v.k; j++)
            loss += term(ld(row + j), v.keep * ld(label + j) + v.spread, s, log_sum);
        st(y + i, loss);
    }
    return ADJ_OK;
}

adj_status KERNEL(softmax_cross_entropy_grad)(const adj_call *c)
{
    const T *z = operand(c, 0), *labels = operand(c, 1);
    const losses v = losses_of(c);
    T *g = c->out[0];

#pragma omp parallel for if (v.n * v.k > PARALLEL_ROWS)
    for (ptrdiff_t i = 0; i < v.n; i++) {
        const T *row = z + i * v.k, *label = labels + i * v.k;
        row_sums s = row_sums_of(row, v.k);
        for (ptrdiff_t j = 0; j < v.k; j++)
            st(g + i * v.k + j,
               (A)exp(ld(row + j) - s.maximum) / s.sum - (v.keep * ld(label + j) + v.spread));
    }
    return ADJ_OK;
}

static adj_status labels_in_range(const adj_call *c, const int32_t *label, losses v)
{
    for (ptrdiff_t i = 0; i < v.n; i++)
        if (label[i] < -1 || label[i] >= v.k) {
            snprintf(c->message, ADJ_WHY,
                     "%s: labels is out of range in row %td (got %" PRId32 ", expected -1 to %td)",
                     c->group->node[0]->op->name, i, label[i], v.k - 1);
            return ADJ_EARG;
        }
    return ADJ_OK;
}

adj_status KERNEL(sparse_softmax_cross_entropy)(const adj_call *c)
{
    const T *z = operand(c, 0);
    const int32_t *label = operand(c, 1);
    const losses v = losses_of(c);
    T *y = c->out[0];
    adj_status status = labels_in_range(c, label, v);
    if (status != ADJ_OK)
        return status;

#pragma omp parallel for if (v.n * v.k > PARALLEL_ROWS)
    for (ptrdiff_t i = 0; i < v.n; i++) {
        const T *row = z + i * v.k;
        row_sums s = row_sums_of(row, v.k);
        A log_sum = (A)log(s.sum), loss = 0;
        for (ptrdiff_t j = 0; j < v.k && label[i] >= 0; j++)
            loss += term(ld(row + j), (j == label[i] ? v.keep : 0) + v.spread, s, log_sum);
        st(y + i, loss);
    }
    return ADJ_OK;
}

adj_status KERNEL(sparse_softmax_cross_entropy_grad)(const adj_call *c)
{
    const T *z = operand(c, 0);
    const int32_t *label = operand(c, 1);
    const losses v = losses_of(c);
    T *g = c->out[0];
    adj_status status = labels_in_range(c, label, v);
    if (status != ADJ_OK)
        return status;

#pragma omp parallel for if (v.n * v.k > PARALLEL_ROWS)
    for (ptrdiff_t i = 0; i < v.n; i++) {
        const T *row = z + i * v.k;
        row_sums s = row_sums_of(row, v.k);
        for (ptrdiff_t j = 0; j < v.k; j++) {
            A p = (A)exp(ld(row + j) - s.maximum) / s.sum;
            A t = (j == label[i] ? v.keep : 0) + v.spread;
            st(g + i * v.k + j, label[i] >= 0 ? p - t : 0);
        }
    }
    return ADJ_OK;
}

adj_status KERNEL(label_count)(const adj_call *c)
{
    const int32_t *label = operand(c, 0);
    ptrdiff_t n = adj_shape_elems(c->group->node[0]->in[0]->type.shape), count = 0;

    for (ptrdiff_t i = 0; i < n; i++)
        count += label[i] >= 0;
    st(c->out[0], (A)(count > 0 ? count : 1));
    return ADJ_OK;
}
