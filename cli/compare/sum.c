/* sum.c - see write.h. */
#include <math.h>
#include <string.h>

#include "write.h"

/* Is this the first row of its op under its configuration? */
static int is_first(const adj_comparison *c, int i)
{
    const adj_compare_row *row = adj_comparison_row_at(c, i);
    for (int k = 0; k < i; k++) {
        const adj_compare_row *other = adj_comparison_row_at(c, k);
        if (other->config == row->config &&
            strcmp(adj_compare_row_name(other), adj_compare_row_name(row)) == 0)
            return 0;
    }
    return 1;
}

static void add(op_sum *s, const adj_compare_row *row, double *slowest)
{
    if (row->verdict == ADJ_VERDICT_CRASH)
        s->crash = row->reason;
    s->nodes++;
    s->failed += row->verdict != ADJ_VERDICT_PASS;
    s->exact += row->exact;
    s->not_repeated += !row->repeats;
    s->worst = fmax(s->worst, fmax(row->isolated.worst, row->in_plan.worst));
    s->ulp = fmax(s->ulp, row->isolated.max_ulp);
    s->rel = fmax(s->rel, row->isolated.max_rel);
    if (row->isolated.n > 0)
        s->sqnr = fmin(s->sqnr, row->isolated.sqnr); /* of a NaN: the other */
    if (row->propagated.n > 0)
        s->sqnr_propagated = fmin(s->sqnr_propagated, row->propagated.sqnr);
    s->us += row->us;
    s->reference_us += row->reference_us;
    s->gflop += 1e-6 * row->gflops * row->us;
    s->bytes += row->bytes;
    s->reorders += row->reorders;
    if (row->us >= *slowest) {
        *slowest = row->us;
        s->implementation = row->implementation;
    }
}

int sum_op(const adj_comparison *c, int k, int i, op_sum *s)
{
    double slowest = 0;
    *s = (op_sum){.implementation = "", .worst = NAN, .sqnr = NAN, .sqnr_propagated = NAN};
    for (int r = 0; r < adj_comparison_row_count(c) && s->op == NULL; r++)
        if (adj_comparison_row_at(c, r)->config == k && is_first(c, r) && i-- == 0)
            s->op = adj_compare_row_name(adj_comparison_row_at(c, r));
    for (int r = 0; r < adj_comparison_row_count(c) && s->op != NULL; r++) {
        const adj_compare_row *row = adj_comparison_row_at(c, r);
        if (row->config == k && strcmp(adj_compare_row_name(row), s->op) == 0)
            add(s, row, &slowest);
    }
    return s->op != NULL;
}
