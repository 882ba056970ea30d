/* ties.c - one more draw for what has kinks: halves, among which many are equal and many are 0.
 *
 * There is no derivative there, so differences say nothing; but the ops say where a gradient goes
 * (to the first maximum of a window, in equal shares to reduce_max's), and the kernels under test
 * have to do what the reference does. */
#include <math.h>

#include "gradcheck.h"

static void draw_ties(subject *s)
{
    draw_values(s, 0, 0);
    for (int leaf = 0; leaf < s->n_leaf; leaf++)
        for (int64_t i = 0; i < leaf_elems(s, leaf) && leaf_is_float(s, leaf); i++)
            s->x[leaf][i] = nearbyint(2 * s->x[leaf][i]) / 2;
}

adj_status judge_ties(subject *s, int leaf, adj_gradcheck_row *row)
{
    bound b;
    int64_t wrong = 0, worst = 0;
    double excess = 1;
    if (!s->kinks[leaf] || s->tested.dx[leaf] == NULL || s->node->op->domain != NULL ||
        row->result != ADJ_GRADCHECK_PASS)
        return ADJ_OK;
    draw_ties(s);
    adj_status status = backward(s);
    if (status == ADJ_OK)
        status = bound_open(s, leaf, &b);
    for (int64_t i = 0; i < leaf_elems(s, leaf) && status == ADJ_OK; i++) {
        const double reference = s->dx_ref[leaf][i];
        const double e = check_excess(fabs(s->dx[leaf][i] - reference), bound_at(&b, i, reference));
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
    blame = gradcheck_text(
        s->report, "on ties: %lld of %lld wrong, worst %s: got %.9g, expected %.9g -> %s",
        (long long)wrong, (long long)leaf_elems(s, leaf), index_text(s, leaf, worst),
        s->dx[leaf][worst], s->dx_ref[leaf][worst], blame);
    gradcheck_blame(s->report, s->node, fault, blame, row);
    return status;
}
