/* softmax_reference.h - softmax, its logarithm, and cross-entropy with dense and integer labels and
 * its gradient, by definition in long double. */
#ifndef TESTS_SOFTMAX_REFERENCE_H
#define TESTS_SOFTMAX_REFERENCE_H

#include <math.h>

#include "ops/grad.h"
#include "tests/harness.h"

typedef enum { SOFTMAX, LOG_SOFTMAX, DENSE, DENSE_GRAD, SPARSE, SPARSE_GRAD, N_OP } softmax_op;
typedef struct {
    softmax_op op;
    adj_dtype dtype;
    int64_t n, k;
    double smoothing;
} softmax_problem;

static inline int has_labels(softmax_op o) { return o >= DENSE; }
static inline int is_loss(softmax_op o) { return o == DENSE || o == SPARSE; }
static inline int is_sparse(softmax_op o) { return o >= SPARSE; }

static inline adj_node *softmax_build(const softmax_problem *p, adj_node *z, adj_node *labels)
{
    switch (p->op) {
    case SOFTMAX: return adj_softmax(z);
    case LOG_SOFTMAX: return adj_log_softmax(z);
    case DENSE: return adj_softmax_cross_entropy(z, labels, p->smoothing);
    case DENSE_GRAD: return adj_softmax_cross_entropy_grad(z, labels, p->smoothing);
    case SPARSE: return adj_sparse_softmax_cross_entropy(z, labels, p->smoothing);
    default: return adj_sparse_softmax_cross_entropy_grad(z, labels, p->smoothing);
    }
}

/* ---- the definitions ---- */

/* A result, and what it was summed from in absolute values. */
typedef struct {
    long double v, size;
} softmax_value;

static inline softmax_value plus(softmax_value a, long double v)
{
    return (softmax_value){a.v + v, a.size + fabsl(v)};
}

/* Label j of row i, smoothed. */
static inline long double target_of(const softmax_problem *p, const double *label, int64_t i,
                                    int64_t j)
{
    const long double s = p->smoothing;
    const long double hot =
        is_sparse(p->op) ? label[i] == (double)j : (long double)label[i * p->k + j];
    return (1 - s) * hot + s / (long double)p->k;
}

typedef struct {
    long double max, sum; /* maximum of a row; sum of exp(z - max) */
} softmax_sums;

static inline softmax_sums softmax_sums_of(const double *row, int64_t k)
{
    softmax_sums s = {-INFINITY, 0};
    for (int64_t c = 0; c < k; c++)
        s.max = fmaxl(s.max, row[c]);
    for (int64_t c = 0; c < k; c++)
        s.sum += expl(row[c] - s.max);
    return s;
}

/* Returns the expected element j of row i, or loss of the row. */
static inline softmax_value softmax_want(const softmax_problem *p, const double *z,
                                         const double *label, softmax_sums s, int64_t i, int64_t j)
{
    const double *row = z + i * p->k;
    const long double m = s.max, sum = s.sum;
    if (is_sparse(p->op) && label[i] < 0)
        return (softmax_value){0, 0};
    const softmax_value log_p = plus((softmax_value){row[j] - m, fabsl(row[j] - m)}, -logl(sum)),
                        none = {0, 0};
    if (p->op == LOG_SOFTMAX)
        return log_p;
    softmax_value v = plus(none, expl(row[j] - m) / sum);
    if (!has_labels(p->op))
        return v;
    if (!is_loss(p->op))
        return plus(v, -target_of(p, label, i, j));
    v = none;
    for (int64_t c = 0; c < p->k; c++) {
        const long double t = target_of(p, label, i, c);
        v = t == 0 ? v : plus(v, t * (logl(sum) - (row[c] - m)));
    }
    return v;
}

/* Labels from -1, or in [0, 1); NULL for ops without. */
static inline adj_node *softmax_labels(fixture *f, const softmax_problem *p)
{
    if (is_sparse(p->op))
        return given_integers(f, ADJ_I32, (adj_shape){1, {p->n}}, -1, (int)p->k - 1);
    return has_labels(p->op) ? given_random(f, p->dtype, (adj_shape){2, {p->n, p->k}}, 0, 1) : NULL;
}

#endif
