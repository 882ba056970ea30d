/* ties.c - one more draw: halves, among which many are equal and many are 0, and values at kinks.
 *
 * There is no derivative at a kink, so differences say nothing; but the ops say where a gradient
 * goes (to the first maximum of a window, in equal shares to reduce_max's), and the kernels under
 * test have to do what the reference does, and the reference what the op's formula says. */
#include <math.h>

#include "gradcheck.h"

enum { EVERY = 3 }; /* a value at a kink among so many */

static void draw_ties(subject *s)
{
    draw_values(s, 0, 0);
    for (int leaf = 0; leaf < s->n_leaf; leaf++)
        for (int64_t i = 0; i < leaf_elems(s, leaf) && leaf_is_float(s, leaf); i++) {
            const adj_dtype dtype = s->tested.leaf[leaf]->type.dtype;
            const double v = rounded(dtype, special_value(s->node, i / EVERY, 0));
            double *x = &s->x[leaf][i];
            *x = i % EVERY == leaf % EVERY && isfinite(v) ? v : nearbyint(2 * *x) / 2;
        }
}

/* An element at which the reference has no number of its type is not wrong without one. */
static double excess_of(const subject *s, int leaf, const bound *b, int64_t i)
{
    const double got = s->dx[leaf][i], expected = s->dx_ref[leaf][i];
    const double stored = rounded(s->tested.leaf[leaf]->type.dtype, expected);
    if (got == stored || (isnan(got) && isnan(stored)))
        return 0;
    return check_excess(fabs(got - expected), bound_at(b, i, expected));
}

adj_status judge_ties(subject *s, int leaf, gradcheck_detail *row)
{
    bound b;
    int64_t wrong = 0, worst = 0;
    double excess = 1;
    if ((!s->kinks[leaf] && !(s->node->op->flags & ADJ_OP_ELEMENTWISE)) ||
        s->tested.dx[leaf] == NULL || row->result != ADJ_GRADCHECK_PASS)
        return ADJ_OK;
    draw_ties(s);
    adj_status status = backward(s);
    const char *refuted = status == ADJ_OK ? check_reference(s) : NULL;
    if (refuted != NULL) {
        gradcheck_blame(ADJ_FAULT_REFERENCE, log_text(&s->report->log, "on ties: %s", refuted),
                        row);
        return status;
    }
    if (status == ADJ_OK)
        status = bound_open(s, leaf, &b);
    for (int64_t i = 0; i < leaf_elems(s, leaf) && status == ADJ_OK; i++) {
        const double e = excess_of(s, leaf, &b, i);
        wrong += e > 1;
        if (e > excess) {
            excess = e;
            worst = i;
        }
    }
    if (status != ADJ_OK || wrong == 0)
        return status;
    adj_gradcheck_fault fault;
    const char *blame = blame_text(s, leaf, 0, &fault);
    blame = log_text(&s->report->log,
                     "on ties: %lld of %lld wrong, worst %s: got %.9g, expected %.9g -> %s",
                     (long long)wrong, (long long)leaf_elems(s, leaf), index_text(s, leaf, worst),
                     s->dx[leaf][worst], s->dx_ref[leaf][worst], blame);
    gradcheck_blame(fault, blame, row);
    return status;
}
