/* junit.c - a comparison as JUnit: a test case for every row, a suite for every configuration. */
#include "base/printable.h"
#include "write.h"

static void junit_case(FILE *f, const adj_comparison *c, const compare_row *row,
                       const reproducer *again)
{
    const adj_compare_error *e = row->isolated.wrong > 0 ? &row->isolated : &row->in_plan;
    put_escaped(f, FOR_XML, "  <testcase classname=\"%s\" name=\"%%%d %s\" time=\"%.9f\"",
                c->config[row->config].name, adj_node_id(row->node), adj_compare_row_name(row),
                1e-6 * row->us);
    if (row->verdict == ADJ_VERDICT_PASS) {
        fputs("/>\n", f);
        return;
    }
    put_escaped(f, FOR_XML, "><failure type=\"%s\" message=\"%s", adj_verdict_name(row->verdict),
                row->reason);
    if (row->reason[0] == '\0')
        fprintf(f, "%lld of %lld wrong, worst at %lld: got %.9g, expected %.9g +- %.2g",
                (long long)e->wrong, (long long)e->n, (long long)e->at, e->got, e->expected,
                e->bound);
    fprintf(f, "; to blame: %s", adj_blame_name(row->blame));
    if (again->row == row)
        put_escaped(f, FOR_XML, "; again: %s", again->line);
    fputs("\"/></testcase>\n", f);
}

/* The run of the whole graph, as a test case too. */
static void junit_whole(FILE *f, const adj_comparison *c, int k)
{
    compare_result r = adj_comparison_result_at(c, k);
    put_escaped(f, FOR_XML, "  <testcase classname=\"%s\" name=\"the whole graph\" time=\"%.9f\"",
                c->config[k].name, 1e-3 * r.ms);
    if (r.verdict != ADJ_VERDICT_PASS)
        put_escaped(f, FOR_XML, "><failure type=\"%s\" message=\"%s\"/></testcase>\n",
                    adj_verdict_name(r.verdict), r.reason);
    else
        fputs("/>\n", f);
}

/* before: prefix of the suites' names. */
static void junit_suites(FILE *f, const compare_source *o, const char *before)
{
    const adj_comparison *c = o->comparison;
    for (int k = 0; k < c->n_config; k++) { /* the reference has rows where it is wrong */
        int n = 1, failed = adj_comparison_result_at(c, k).verdict != ADJ_VERDICT_PASS;
        for (int i = 0; i < c->n_row; i++) {
            const compare_row *row = adj_comparison_row_at(c, i);
            n += row->config == k;
            failed += row->config == k && row->verdict != ADJ_VERDICT_PASS;
        }
        put_escaped(f, FOR_XML, " <testsuite name=\"%s%s%s\" tests=\"%d\" failures=\"%d\">\n",
                    before, before[0] != '\0' ? ": " : "", c->config[k].name, n, failed);
        junit_whole(f, c, k);
        for (int i = 0; i < c->n_row; i++)
            if (adj_comparison_row_at(c, i)->config == k)
                junit_case(f, c, adj_comparison_row_at(c, i), &o->again[k]);
        fputs(" </testsuite>\n", f);
    }
}

int write_junit(FILE *f, const void *source)
{
    const compare_source *o = source;
    put_escaped(f, FOR_XML,
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"%s\">\n", o->title);
    junit_suites(f, o, "");
    if (o->also != NULL)
        junit_suites(f, o->also, o->also->title);
    fputs("</testsuites>\n", f);
    return ferror(f);
}
