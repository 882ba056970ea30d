/* formula_mask.c - dropout, and what counts elements, by their definitions; see formula.h. Dropout
 * is that of ops/dropout.c: Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1,
 * 2, 3 (Philox), decides what is kept; the words themselves are adj_philox's. */
#include <math.h>

#include "formula.h"

static void dropout(const adj_node *n, double *const in[], double *y)
{
    const adj_dropout_attrs *a = n->attrs;
    const uint32_t key[2] = {(uint32_t)a->seed, (uint32_t)(a->seed >> 32)};
    for (int64_t i = 0; i < node_elems(n); i++) {
        const uint64_t at = (uint64_t)(a->first + i);
        const uint32_t counter[4] = {(uint32_t)(at / 4), (uint32_t)(at / 4 >> 32),
                                     (uint32_t)(int32_t)in[1][0], 0};
        uint32_t word[4];
        adj_philox(counter, key, word);
        y[i] = ldexp(word[at % 4], -32) >= a->rate ? in[0][i] / (1 - a->rate) : 0;
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
    y[0] = 0;
    for (int64_t i = 0; i < node_elems(n->in[0]); i++)
        y[0] += in[0][i] >= 0;
    y[0] = fmax(y[0], 1);
}

definition *mask_definition_of(const adj_op *op)
{
    if (op == &adj_op_dropout)
        return dropout;
    if (op == &adj_op_all_finite)
        return all_finite;
    return op == &adj_op_label_count ? label_count : NULL;
}
