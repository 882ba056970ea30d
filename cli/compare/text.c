/* text.c - a comparison as CSV (a line for every row) and as JUnit (a test case for every
 * row, a suite for every configuration). */
#include <math.h>
#include <string.h>

#include "write.h"
#include "cli/printable.h"
#include "cli/utf8.h"

static void csv_text(FILE *f, const char *s)
{
    char piece[PIECE];
    fputc('"', f);
    while (*s != '\0') {
        if (*s == '"')
            fputc('"', f);
        s += printable(s, piece);
        fputs(piece, f);
    }
    fputs("\",", f);
}

/* NaN and what was not measured are empty. */
static void csv_number(FILE *f, double v)
{
    if (!isnan(v))
        fprintf(f, "%.9g", v);
    fputc(',', f);
}

static void csv_error(FILE *f, const adj_compare_error *e)
{
    const double v[] = {(double)e->wrong, e->max_abs,       e->max_rel,
                        e->max_ulp,       e->nmse,          e->sqnr,
                        e->worst,         (double)e->at,    e->got,
                        e->expected,      e->bound,         (double)e->nan,
                        (double)e->inf,   (double)e->zeros, (double)e->zeros_expected,
                        (double)e->lost,  (double)e->solid};
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        csv_number(f, v[i]);
}

static void csv_head(FILE *f)
{
    static const char *const parts[] = {"isolated", "in_graph", "propagated"};
    fputs("node,op,name,configuration,result,blame,reason,bound_origin,backend,implementation,"
          "why,exact,repeats,canary,elements,",
          f);
    for (int i = 0; i < 3; i++) {
        static const char *const columns[] = {"wrong",
                                              "max_abs",
                                              "max_rel",
                                              "max_ulp",
                                              "nmse",
                                              "sqnr_db",
                                              "error_over_bound",
                                              "at",
                                              "got",
                                              "expected",
                                              "bound",
                                              "nan",
                                              "inf",
                                              "zeros",
                                              "zeros_expected",
                                              "lost",
                                              "solid"};
        for (size_t k = 0; k < sizeof columns / sizeof *columns; k++)
            fprintf(f, "%s_%s,", parts[i], columns[k]);
    }
    fputs("us,reference_us,gflops,bytes,reorders\n", f);
}

int write_csv(FILE *f, const adj_comparison *c)
{
    csv_head(f);
    for (int i = 0; i < adj_comparison_row_count(c); i++) {
        const adj_compare_row *row = adj_comparison_row_at(c, i);
        fprintf(f, "%d,", adj_node_id(row->node));
        csv_text(f, adj_compare_row_name(row));
        csv_text(f, adj_node_name(row->node));
        csv_text(f, adj_comparison_config_at(c, row->config)->name);
        csv_text(f, adj_verdict_name(row->verdict));
        csv_text(f, adj_blame_name(row->blame));
        csv_text(f, row->reason);
        csv_text(f, row->origin);
        csv_text(f, row->backend);
        csv_text(f, row->implementation);
        csv_text(f, row->why);
        fprintf(f, "%d,%d,%d,%lld,", row->exact, row->repeats, row->canary,
                (long long)row->isolated.n);
        csv_error(f, &row->isolated);
        csv_error(f, &row->in_plan);
        csv_error(f, &row->propagated);
        csv_number(f, row->us);
        csv_number(f, row->reference_us);
        csv_number(f, row->gflops);
        fprintf(f, "%zu,%d\n", row->bytes, row->reorders);
    }
    return ferror(f);
}

static void junit_case(FILE *f, const adj_comparison *c, const adj_compare_row *row,
                       const reproducer *again)
{
    const adj_compare_error *e = row->isolated.wrong > 0 ? &row->isolated : &row->in_plan;
    fputs("  <testcase classname=\"", f);
    write_escaped(f, adj_comparison_config_at(c, row->config)->name);
    fprintf(f, "\" name=\"%%%d %s\" time=\"%.9f\"", adj_node_id(row->node),
            adj_compare_row_name(row), 1e-6 * row->us);
    if (row->verdict == ADJ_VERDICT_PASS) {
        fputs("/>\n", f);
        return;
    }
    fprintf(f, "><failure type=\"%s\" message=\"", adj_verdict_name(row->verdict));
    write_escaped(f, row->reason);
    if (row->reason[0] == '\0')
        fprintf(f, "%lld of %lld wrong, worst at %lld: got %.9g, expected %.9g +- %.2g",
                (long long)e->wrong, (long long)e->n, (long long)e->at, e->got, e->expected,
                e->bound);
    fprintf(f, "; to blame: %s", adj_blame_name(row->blame));
    if (again->row == row) {
        fputs("; again: ", f);
        write_escaped(f, again->line);
    }
    fputs("\"/></testcase>\n", f);
}

/* The run of the whole graph, as a test case too. */
static void junit_whole(FILE *f, const adj_comparison *c, int k)
{
    adj_compare_config_result r = adj_comparison_result_at(c, k);
    fputs("  <testcase classname=\"", f);
    write_escaped(f, adj_comparison_config_at(c, k)->name);
    fprintf(f, "\" name=\"the whole graph\" time=\"%.9f\"", 1e-3 * r.ms);
    if (r.verdict != ADJ_VERDICT_PASS) {
        fprintf(f, "><failure type=\"%s\" message=\"", adj_verdict_name(r.verdict));
        write_escaped(f, r.reason);
        fputs("\"/></testcase>\n", f);
    } else {
        fputs("/>\n", f);
    }
}

int write_junit(FILE *f, const adj_comparison *c, const write_opts *o)
{
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"", f);
    write_escaped(f, o->what);
    fputs("\">\n", f);
    for (int k = 1; k < adj_comparison_config_count(c); k++) {
        int n = 1, failed = adj_comparison_result_at(c, k).verdict != ADJ_VERDICT_PASS;
        for (int i = 0; i < adj_comparison_row_count(c); i++) {
            const adj_compare_row *row = adj_comparison_row_at(c, i);
            n += row->config == k;
            failed += row->config == k && row->verdict != ADJ_VERDICT_PASS;
        }
        fputs(" <testsuite name=\"", f);
        write_escaped(f, adj_comparison_config_at(c, k)->name);
        fprintf(f, "\" tests=\"%d\" failures=\"%d\">\n", n, failed);
        junit_whole(f, c, k);
        for (int i = 0; i < adj_comparison_row_count(c); i++)
            if (adj_comparison_row_at(c, i)->config == k)
                junit_case(f, c, adj_comparison_row_at(c, i), &o->again[k]);
        fputs(" </testsuite>\n", f);
    }
    fputs("</testsuites>\n", f);
    return ferror(f);
}
