/* witness.c - is the reference wrong? The op's formula in float64 answers, of which no kernel is a
 * part. Both checkers check the reference against it before they blame a kernel, a rule or a plan.
 */
#include <math.h>

#include "check/formula.h"
#include "compare.h"

/* Tolerance as a fraction of the formula's largest result: some results are differences. */
static const double formula_rounding = 1e-8;

adj_status ask_formula(const claim *c, region *p, adj_compare_error *error)
{
    const int64_t n = node_elems(c->node);
    *error = (adj_compare_error){.n = n, .at = -1};
    if (!formula_exists(c->node))
        return ADJ_OK;
    double *value = region_alloc(p, (size_t)n + 1, sizeof *value);
    double *bound = region_alloc(p, (size_t)n + 1, sizeof *bound), max = 0;
    if (value == NULL || bound == NULL)
        return ADJ_ENOMEM;
    formula_value(c->node, c->operand, value, NULL);
    for (int64_t i = 0; i < n; i++)
        max = isfinite(value[i]) ? fmax(max, fabs(value[i])) : max;
    for (int64_t i = 0; i < n; i++)
        bound[i] = (c->bound != NULL ? c->bound[i] : 0) + formula_rounding * max;
    const expectation e = {.dtype = ADJ_F64, .expected = value, .bound = bound};
    *error = judge(c->type, c->value, &e);
    return ADJ_OK;
}
