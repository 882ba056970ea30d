/* html.c - a comparison as one page: no script, no network, bars as inline SVG.
 *
 * Bars are on a logarithmic scale: error over bound from 1e-6 to 1 (red from there on), speed-up
 * over the reference from 0.1 to 1000. */
#include <math.h>

#include "graph/printable.h"
#include "write.h"

static const char style[] =
    "body{font:14px system-ui,sans-serif;margin:2em;color:#222;background:#fff}"
    "table{border-collapse:collapse;margin:.5em 0 2em}"
    "th,td{padding:2px 8px;text-align:right;border-bottom:1px solid #ddd;white-space:nowrap}"
    "th{position:sticky;top:0;background:#f4f4f4}td.l,th.l{text-align:left}"
    "tr.bad{background:#fde8e8}.quiet{color:#666}"
    "@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}th{background:#2a2a2a}"
    "td,th{border-color:#3a3a3a}tr.bad{background:#4a2020}}";

static void cell(FILE *f, const char *format, double v)
{
    fputs("<td>", f);
    if (isinf(v))
        fputs(v > 0 ? "&infin;" : "&minus;&infin;", f);
    else if (!isnan(v))
        fprintf(f, format, v);
    fputs("</td>", f);
}

/* A bar for v between low and high. */
static void bar(FILE *f, double v, double low, double high, const char *colour)
{
    double part = v > 0 ? log(v / low) / log(high / low) : 0;
    part = isnan(part) || part < 0 ? 0 : part > 1 ? 1 : part;
    fprintf(f,
            "<td><svg width=\"100\" height=\"10\" role=\"img\"><title>%.2g</title><rect "
            "width=\"100\" height=\"10\" "
            "fill=\"#8884\"/><rect width=\"%.0f\" height=\"10\" fill=\"%s\"/></svg></td>",
            v, 100 * part, colour);
}

static void write_row(FILE *f, const adj_compare_row *row)
{
    double worst = fmax(row->isolated.worst, row->in_plan.worst);
    double speed_up = row->us > 0 ? row->reference_us / row->us : NAN;
    fputs(row->verdict != ADJ_VERDICT_PASS ? "<tr class=\"bad\">" : "<tr>", f);
    put_escaped(f, FOR_XML,
                "<td>%d</td><td class=\"l\">%s</td><td class=\"l\">%s</td>"
                "<td class=\"l\">%s %s</td>",
                adj_node_id(row->node), adj_compare_row_name(row), adj_node_name(row->node),
                adj_verdict_name(row->verdict), adj_blame_name(row->blame));
    cell(f, "%.2g", worst);
    bar(f, worst, 1e-6, 1, worst > 1 ? "#c33" : "#39c");
    cell(f, "%.3g", row->isolated.max_abs);
    cell(f, "%.3g", row->isolated.max_rel);
    cell(f, "%.3g", row->isolated.max_ulp);
    cell(f, "%.1f", row->isolated.sqnr);
    cell(f, "%.1f", row->propagated.sqnr);
    cell(f, "%.1f", row->us);
    cell(f, "%.3g", row->gflops);
    cell(f, "%.3g", speed_up);
    bar(f, isnan(speed_up) ? 0 : speed_up, 0.1, 1000, "#5a5");
    put_escaped(f, FOR_XML,
                "<td>%zu</td><td>%d</td><td class=\"l\">%s</td><td class=\"l\">%s</td></tr>\n",
                row->bytes, row->reorders, row->implementation,
                row->reason[0] != '\0' ? row->reason : row->origin);
}

static void write_config(FILE *f, const adj_comparison *c, int k, const reproducer *again)
{
    adj_compare_config_result r = adj_comparison_result_at(c, k);
    put_escaped(f, FOR_XML,
                "<h2>%s</h2>\n<p>%.3g ms a step; %d steps, %d of them on naive, %d reorders; arena "
                "%zu bytes; twice the same bits: %s. ",
                adj_comparison_config_at(c, k)->name, r.ms, r.steps, r.naive_steps, r.reorders,
                r.arena_bytes, r.repeats ? "yes" : "no");
    if (r.verdict != ADJ_VERDICT_PASS)
        fprintf(f, "<b>%s</b> ", adj_verdict_name(r.verdict));
    put_escaped(f, FOR_XML, "%s", r.reason);
    if (again->line[0] != '\0')
        put_escaped(f, FOR_XML, "</p>\n<p>Fails by itself: <code>%s</code>", again->line);
    fputs("</p>\n<table><tr><th>node</th><th class=\"l\">op</th><th class=\"l\">name</th>"
          "<th class=\"l\">result</th><th colspan=\"2\">error / bound</th><th>max abs</th>"
          "<th>max rel</th><th>max ulp</th><th>SQNR dB</th><th>in the graph</th><th>&micro;s</th>"
          "<th>GFLOP/s</th><th colspan=\"2\">speed-up</th><th>bytes</th><th>reorders</th>"
          "<th class=\"l\">implementation</th><th class=\"l\">bound, or what happened</th></tr>\n",
          f);
    for (int i = 0; i < adj_comparison_row_count(c); i++)
        if (adj_comparison_row_at(c, i)->config == k)
            write_row(f, adj_comparison_row_at(c, i));
    fputs("</table>\n", f);
}

int write_html(FILE *f, const void *source)
{
    const compare_source *o = source;
    const adj_comparison *c = o->comparison;
    put_escaped(
        f, FOR_XML,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>%s</title>\n"
        "<style>%s</style></head>\n<body><h1>%s</h1>\n<p>%d comparisons with %s, <b>%d "
        "failed</b>; the whole graph fails under %d of %d configurations.</p>\n"
        "<p class=\"quiet\">%s</p>\n",
        o->title, style, o->title, adj_comparison_row_count(c),
        adj_comparison_config_at(c, 0)->name, adj_comparison_failed_count(c),
        adj_comparison_whole_failed_count(c), adj_comparison_config_count(c) - 1, o->repro);
    for (int k = 1; k < adj_comparison_config_count(c); k++)
        write_config(f, c, k, &o->again[k]);
    fputs("</body></html>\n", f);
    return ferror(f);
}
