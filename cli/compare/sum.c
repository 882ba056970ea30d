/* sum.c - see sum.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sum.h"

static const op_sum no_rows = {
    .implementation = "", .worst = NAN, .sqnr = NAN, .sqnr_propagated = NAN};

static void add_row(op_sum *s, const adj_compare_row *row)
{
    if (row->verdict == ADJ_VERDICT_CRASH)
        s->crash = row->reason;
    s->nodes++;
    s->n_other_impl += row->other_impl;
    if (row->other_impl && s->other_impl == NULL)
        s->other_impl = row->why;
    s->failed += row->verdict != ADJ_VERDICT_PASS;
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
    if (row->us >= s->slowest) {
        s->slowest = row->us;
        s->implementation = row->implementation;
    }
}

op_sum sum_row(const adj_compare_row *row)
{
    op_sum s = no_rows;
    s.op = adj_compare_row_name(row);
    add_row(&s, row);
    return s;
}

/* Is row r of configuration k, and of this op? */
static int is_of(const adj_comparison *c, int r, int k, const char *op)
{
    const adj_compare_row *row = adj_comparison_row_at(c, r);
    return row->config == k && strcmp(adj_compare_row_name(row), op) == 0;
}

int sum_op(const adj_comparison *c, int k, int r, op_sum *s)
{
    *s = no_rows;
    s->op = adj_compare_row_name(adj_comparison_row_at(c, r));
    for (int i = 0; i < r; i++)
        if (is_of(c, i, k, s->op))
            return 0;
    for (int i = r; i < adj_comparison_row_count(c); i++)
        if (is_of(c, i, k, s->op))
            add_row(s, adj_comparison_row_at(c, i));
    return is_of(c, r, k, s->op);
}

const char *sum_result(const op_sum *s, char text[RESULT])
{
    if (s->failed > 0)
        snprintf(text, RESULT, "%d %s", s->failed, s->crash != NULL ? "CRASH" : "FAIL");
    else
        snprintf(text, RESULT, "pass");
    return text;
}
