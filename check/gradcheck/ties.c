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

adj_status judge_ties(subject *s, int leaf, gradcheck_detail *row)
{
    double expected;
    gradcheck_detail failed = *row;
    leaf_check c = {.s = s, .leaf = leaf, .row = &failed};
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
        status = bound_open(s, leaf, &c.bound);
    const int64_t n = leaf_elems(s, leaf);
    for (int64_t i = 0; i < n && status == ADJ_OK; i++)
        failed.wrong += check_element(&c, i, &expected);
    if (status != ADJ_OK || failed.wrong == 0)
        return status;
    adj_gradcheck_fault fault;
    const char *blame = blame_text(s, leaf, 0, &fault);
    failed.index = index_text(s, leaf, c.element);
    failed.origin = c.bound.origin;
    failed.pattern =
        log_text(&s->report->log, "%lld of %lld wrong", (long long)failed.wrong, (long long)n);
    gradcheck_blame(fault, log_text(&s->report->log, "on ties: %s", blame), &failed);
    *row = failed;
    return status;
}
