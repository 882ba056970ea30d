/* forward.c - is the reference's forward value right? A fault that all of naive's kernels share,
 * and every backend that falls back to naive, shows in no gradient; it does where the op has a
 * formula.
 */
#include <math.h>

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

double formula_tolerance(const adj_node *n, double max)
{
    return (1e-8 + 64 * terms_of(n) * 0x1p-53) * max;
}

adj_status check_forward(subject *s, adj_gradcheck_row *row)
{
    const adj_node *y = s->reference.y;
    if (s->order != 1 || !formula_exists(y) || !formula_is_cheap(y) || !adj_is_float(y->type.dtype))
        return ADJ_OK;
    double **operand = leaf_operands(s, y), *value = reals(s, s->n_y);
    if (operand == NULL || value == NULL)
        return value == NULL ? ADJ_ENOMEM : ADJ_OK;
    adj_status status = forward_at(s, -1, 0, s->y_mid);
    if (status != ADJ_OK)
        return status;
    formula_value(y, operand, value, NULL);
    const double tolerance = formula_tolerance(y, max_magnitude(value, s->n_y));
    leaf_check c = {.s = s, .row = row};
    for (int64_t i = 0; i < s->n_y; i++)
        if (!(isnan(value[i]) && isnan(s->y_mid[i])) && s->y_mid[i] != value[i])
            row->wrong +=
                check_record(&c, i, s->y_mid[i], (estimate){.value = value[i]}, tolerance);
    if (row->wrong == 0)
        return ADJ_OK;
    s->wrong_forward = 1;
    row->result = ADJ_GRADCHECK_FAIL;
    row->fault = ADJ_FAULT_REFERENCE;
    row->method = "formula";
    row->wrt = "value";
    row->type = y->type;
    row->elems = s->n_y;
    row->origin = "rounding in float64";
    row->index = gradcheck_text(s->report, "[%lld]", (long long)c.element);
    row->pattern = gradcheck_text(s->report, "%lld of %lld wrong", (long long)row->wrong,
                                  (long long)row->elems);
    row->blame = gradcheck_text(s->report,
                                "naive's forward kernel for %s is wrong: its formula in float64 "
                                "gives something else",
                                y->op->name);
    row->repro = gradcheck_repro(s->report, s->node);
    return s->report->status;
}
