/* forward.c - whether the reference's forward value is right. A fault that all of naive's kernels
 * share, and every backend that falls back to naive, shows in no gradient; it does where the op has
 * a formula.
 */
#include "check/compare/compare.h"
#include "check/formula.h"
#include "gradcheck.h"

double **leaf_operands(subject *s, const adj_node *y)
{
    double **v = region_alloc(&s->region, (size_t)y->n_in + 1, sizeof *v);
    for (int k = 0; v != NULL && k < y->n_in; k++) {
        for (int leaf = 0; leaf < s->n_leaf; leaf++)
            if (s->reference.leaf[leaf] == y->in[k])
                v[k] = s->x[leaf];
        if (y->in[k] == s->reference.dy)
            v[k] = s->dy;
        if (v[k] == NULL)
            return NULL;
    }
    return v;
}

adj_status check_forward(subject *s, adj_gradcheck_row *row)
{
    const adj_node *y = s->reference.y;
    if (s->order != 1 || !formula_exists(y) || !formula_is_cheap(y) || !adj_is_float(y->type.dtype))
        return ADJ_OK;
    const claim c = {.node = y,
                     .operand = leaf_operands(s, y),
                     .type = {ADJ_F64, y->type.shape},
                     .value = s->y_mid};
    adj_compare_error e = {0};
    adj_status status = c.operand != NULL ? forward_at(s, -1, 0, s->y_mid) : ADJ_OK;
    if (status == ADJ_OK && c.operand != NULL)
        status = ask_formula(&c, &s->region, &e);
    if (status != ADJ_OK || e.wrong == 0)
        return status;
    s->wrong_forward = 1;
    gradcheck_blame(s->report, s->node, ADJ_FAULT_REFERENCE,
                    gradcheck_text(s->report, WRONG_REFERENCE, y->op->name), row);
    row->wrong = e.wrong;
    row->analytic = e.got;
    row->numeric = e.expected;
    row->tolerance = e.bound;
    row->worst_abs = e.max_abs;
    row->worst_rel = e.max_rel;
    row->method = "formula";
    row->type = y->type;
    row->elems = s->n_y;
    row->origin = "rounding in float64";
    row->index = gradcheck_text(s->report, "[%lld]", (long long)e.at);
    row->pattern = gradcheck_text(s->report, "%lld of %lld wrong", (long long)row->wrong,
                                  (long long)row->elems);
    return s->report->status;
}
