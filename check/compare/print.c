/* print.c - a comparison as text: a line for each row, and below a row that failed why. */
#include "base/c_locale.h"
#include "base/printable.h"
#include "compare.h"

static void print_whole(FILE *f, const adj_comparison *c, int k)
{
    const adj_compare_config_result whole = adj_comparison_result_at(c, k);
    put_text(f, "%s%s: the whole graph: %s%s%s\n", k == 0 ? "reference " : "",
             adj_comparison_config_at(c, k)->name, adj_verdict_name(whole.verdict),
             whole.reason[0] != '\0' ? ": " : "", whole.reason);
}

static void print_row(FILE *f, const adj_compare_row *row)
{
    const adj_compare_error *worst =
        row->in_plan.worst > row->isolated.worst ? &row->in_plan : &row->isolated;
    put_text(f, "  %%%-5d %-32s %5s  %-5s  err/bound %-9.3g  %s\n", adj_node_id(row->node),
             adj_compare_row_name(row), adj_dtype_name(row->type.dtype),
             adj_verdict_name(row->verdict), worst->worst, row->implementation);
    if (row->verdict == ADJ_VERDICT_PASS)
        return;
    if (worst->at >= 0)
        c_fprintf(f, "    %lld of %lld wrong, element %lld: got %.9g, expected %.9g +- %.2g\n",
                  (long long)worst->wrong, (long long)worst->n, (long long)worst->at, worst->got,
                  worst->expected, worst->bound);
    if (row->blame != ADJ_BLAME_NONE)
        fprintf(f, "    to blame: %s\n", adj_blame_name(row->blame));
    if (row->reason[0] != '\0')
        put_text(f, "    %s\n", row->reason);
}

void adj_comparison_print(FILE *f, const adj_comparison *c)
{
    if (c == NULL || f == NULL)
        return;
    for (int k = 0; k < adj_comparison_config_count(c); k++) {
        print_whole(f, c, k);
        for (int i = 0; i < adj_comparison_row_count(c); i++)
            if (adj_comparison_row_at(c, i)->config == k)
                print_row(f, adj_comparison_row_at(c, i));
    }
    if (adj_comparison_message(c)[0] != '\0')
        put_text(f, "comparing failed: %s\n", adj_comparison_message(c));
    fprintf(f, "summary: %d rows, %d failed\n", adj_comparison_row_count(c),
            adj_comparison_failed_count(c));
}
