/* print.c - a comparison as text: a line for each row, and below a row that failed why. */
#include "base/c_locale.h"
#include "base/printable.h"
#include "compare.h"

static void print_row(FILE *f, const compare_row *row)
{
    const adj_compare_error *e = compare_larger_error(row);
    put_text(f, "  %%%-5d %-32s %5s  %-5s  err/bound %-9.3g  %s\n", adj_node_id(row->node),
             adj_compare_row_name(row), adj_dtype_name(row->type.dtype),
             adj_verdict_name(row->verdict), e->worst, row->implementation);
    if (row->verdict == ADJ_VERDICT_PASS)
        return;
    if (e->at >= 0)
        c_fprintf(f, "    %lld of %lld wrong, element %lld: got %.9g, expected %.9g +- %.2g\n",
                  (long long)e->wrong, (long long)e->n, (long long)e->at, e->got, e->expected,
                  e->bound);
    if (row->blame != ADJ_BLAME_NONE)
        fprintf(f, "    to blame: %s\n", adj_blame_name(row->blame));
    if (row->reason[0] != '\0')
        put_text(f, "    %s\n", row->reason);
}

void adj_comparison_print(FILE *f, const adj_comparison *c)
{
    if (c == NULL || f == NULL)
        return;
    for (int k = 0; k < c->n_config; k++) {
        const adj_compare_config_result *whole = &c->config[k];
        put_text(f, "%s%s: the whole graph: %s%s%s\n", k == 0 ? "reference " : "", whole->name,
                 adj_verdict_name(whole->verdict), whole->reason[0] != '\0' ? ": " : "",
                 whole->reason);
        for (int i = 0; i < c->n_row; i++)
            if (c->row[i].config == k)
                print_row(f, adj_comparison_row_at(c, i));
    }
    if (c->message[0] != '\0')
        put_text(f, "comparing failed: %s\n", c->message);
    fprintf(f, "summary: %d rows, %d failed\n", c->n_row, c->n_failed);
}
