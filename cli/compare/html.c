/* html.c - a comparison as one page (cli/page): for each configuration a row for each op, what
 * failed in full, and every node.
 *
 * Bars are on a logarithmic scale: error over bound from 1e-6 to 1 (red beyond), speed-up over the
 * reference from 0.1 to 1000. */
#include <math.h>

#include "cli/page/page.h"
#include "graph/printable.h"
#include "sum.h"
#include "write.h"

static const char *const error_ticks[] = {"1e-6", "1e-3", "1"};
static const char *const speed_ticks[] = {"0.1", "1", "10", "100", "1k"};
static const page_scale error_scale = {1e-6, 1, 1, error_ticks, 3, ""};
static const page_scale speed_scale = {0.1, 1000, 1, speed_ticks, 5, "more"};

static void put_decibels(FILE *f, double sqnr)
{
    if (isinf(sqnr) && sqnr > 0)
        page_cell_text(f, "more", "exact");
    else
        page_cell_number(f, "more", "%.1f", sqnr);
}

/* The columns that sums and nodes share. */
static void put_heads(FILE *f)
{
    page_scale_head(f, "error / bound", &error_scale);
    page_scale_head(f, "speed-up", &speed_scale);
    fputs("<th class=\"more\">&micro;s</th><th class=\"more\">GFLOP/s</th>"
          "<th class=\"more\">SQNR dB</th><th class=\"more\">in the graph</th>"
          "<th class=\"l more\">implementation</th>",
          f);
}

static void put_measures(FILE *f, const op_sum *s)
{
    page_scale_cell(f, &error_scale, "%.2g", s->worst, s->worst > 1 ? "bad" : "one");
    page_scale_cell(f, &speed_scale, "%.3g", s->us > 0 ? s->reference_us / s->us : NAN, "good");
    page_cell_number(f, "more", "%.1f", s->us);
    page_cell_number(f, "more", "%.3g", s->us > 0 ? 1e6 * s->gflop / s->us : NAN);
    put_decibels(f, s->sqnr);
    put_decibels(f, s->sqnr_propagated);
    page_cell_text(f, "l more", s->crash != NULL ? s->crash : s->implementation);
}

static void put_sum(FILE *f, const op_sum *s)
{
    char result[RESULT];
    fputs(s->failed > 0 ? "<tr class=\"bad\">" : "<tr>", f);
    page_cell_name(f, s->op, "");
    page_cell_number(f, "more", "%.0f", s->nodes);
    page_cell_text(f, "l", sum_result(s, result));
    put_measures(f, s);
    fputs("</tr>\n", f);
}

static void put_ops(FILE *f, const adj_comparison *c, int k)
{
    op_sum s;
    page_frame_begin(f, "Ops");
    fputs("<table>\n<thead><tr><th class=\"l\">op</th><th class=\"more\">nodes</th><th "
          "class=\"l\">result</th>",
          f);
    put_heads(f);
    fputs("</tr></thead>\n<tbody>\n", f);
    for (int i = 0; i < adj_comparison_row_count(c); i++)
        if (sum_op(c, k, i, &s))
            put_sum(f, &s);
    fputs("</tbody></table>\n", f);
    page_frame_end(f);
}

/* ---- nodes ---- */

static void put_name(FILE *f, const adj_compare_row *row)
{
    char name[160];
    snprintf(name, sizeof name, "%%%d %s", adj_node_id(row->node), adj_compare_row_name(row));
    page_cell_name(f, name, adj_node_name(row->node));
}

static void put_node(FILE *f, const adj_compare_row *row)
{
    const op_sum s = sum_row(row);
    fputs(s.failed > 0 ? "<tr class=\"bad\">" : "<tr>", f);
    put_name(f, row);
    put_escaped(f, FOR_XML, "<td class=\"l\">%s %s</td>", adj_verdict_name(row->verdict),
                adj_blame_name(row->blame));
    put_measures(f, &s);
    page_cell_number(f, "more", "%.3g", row->isolated.max_abs);
    page_cell_number(f, "more", "%.3g", row->isolated.max_rel);
    page_cell_number(f, "more", "%.3g", row->isolated.max_ulp);
    page_cell_number(f, "more", "%.0f", (double)row->bytes);
    page_cell_number(f, "more", "%.0f", row->reorders);
    page_cell_text(f, "l more", row->origin);
    fputs("</tr>\n", f);
}

static void put_nodes(FILE *f, const adj_comparison *c, int k)
{
    fputs("<details><summary>Every node</summary>\n", f);
    page_frame_begin(f, "Nodes");
    fputs("<table>\n<thead><tr><th class=\"l\">node</th><th class=\"l\">result</th>", f);
    put_heads(f);
    fputs("<th class=\"more\">max abs</th><th class=\"more\">max rel</th>"
          "<th class=\"more\">max ulp</th><th class=\"more\">bytes</th>"
          "<th class=\"more\">reorders</th><th class=\"l more\">bound</th></tr></thead>\n<tbody>\n",
          f);
    for (int i = 0; i < adj_comparison_row_count(c); i++)
        if (adj_comparison_row_at(c, i)->config == k)
            put_node(f, adj_comparison_row_at(c, i));
    fputs("</tbody></table>\n", f);
    page_frame_end(f);
    fputs("</details>\n", f);
}

/* ---- failures ---- */

static void put_failure(FILE *f, const adj_compare_row *row)
{
    const adj_compare_error *e = row->blame == ADJ_BLAME_PLAN ? &row->in_plan : &row->isolated;
    char sentence[200] = "";
    if (e->wrong > 0)
        snprintf(sentence, sizeof sentence,
                 "%lld of %lld wrong; the worst: got %.9g, expected %.9g within %.2g",
                 (long long)e->wrong, (long long)e->n, e->got, e->expected, e->bound);
    fputs("<tr class=\"bad\">", f);
    put_name(f, row);
    put_escaped(f, FOR_XML, "<td class=\"l\">%s %s</td>", adj_verdict_name(row->verdict),
                adj_blame_name(row->blame));
    put_escaped(f, FOR_XML, "<td class=\"l text\">%s%s%s</td></tr>\n", row->reason,
                row->reason[0] != '\0' && sentence[0] != '\0' ? "; " : "", sentence);
}

static int count_failures(const adj_comparison *c, int k)
{
    int n = 0;
    for (int i = 0; i < adj_comparison_row_count(c); i++) {
        const adj_compare_row *row = adj_comparison_row_at(c, i);
        n += row->config == k && row->verdict != ADJ_VERDICT_PASS;
    }
    return n;
}

static void put_failures(FILE *f, const adj_comparison *c, int k, const reproducer *again)
{
    if (count_failures(c, k) > 0) {
        fputs("<h3>What failed</h3>\n", f);
        page_frame_begin(f, "Failures");
        fputs("<table>\n<thead><tr><th class=\"l\">node</th><th class=\"l\">result</th>"
              "<th class=\"l\">what happened</th></tr></thead>\n<tbody>\n",
              f);
        for (int i = 0; i < adj_comparison_row_count(c); i++) {
            const adj_compare_row *row = adj_comparison_row_at(c, i);
            if (row->config == k && row->verdict != ADJ_VERDICT_PASS)
                put_failure(f, row);
        }
        fputs("</tbody></table>\n", f);
        page_frame_end(f);
    }
    if (again->line[0] != '\0') {
        page_note(f, "Fails by itself:");
        page_code(f, again->line);
    }
}

/* ---- the page ---- */

/* also: what the second comparison on the page is of; "": of the first. */
static void put_verdict(FILE *f, const adj_comparison *c, int k, const char *also)
{
    adj_compare_config_result r = adj_comparison_result_at(c, k);
    char id[32], heading[400];
    snprintf(id, sizeof id, "%sconfiguration-%d", also[0] != '\0' ? "also-" : "", k);
    snprintf(heading, sizeof heading, "%s%s%s", adj_comparison_config_at(c, k)->name,
             also[0] != '\0' ? ", " : "", also);
    page_section(f, id, heading);
    if (r.verdict != ADJ_VERDICT_PASS)
        put_escaped(f, FOR_XML, "<p><b class=\"bad\">%s</b> of the whole graph: %s</p>\n",
                    adj_verdict_name(r.verdict), r.reason);
}

static void put_config(FILE *f, const adj_comparison *c, int k, const reproducer *again,
                       const char *also)
{
    adj_compare_config_result r = adj_comparison_result_at(c, k),
                              ref = adj_comparison_result_at(c, 0);
    char arena[PAGE_NUMBER];
    put_verdict(f, c, k, also);
    if (!has_whole_run(&r))
        page_note(f, "Each kind of node alone.");
    else
        page_note(
            f,
            "%.3g ms a step, %.3g times the reference's speed; %d steps, %d of them on naive; %d "
            "reorders; arena %s; twice the same bits: %s.",
            r.ms, r.ms > 0 ? ref.ms / r.ms : 0, r.steps, r.naive_steps, r.reorders,
            page_bytes(arena, (double)r.arena_bytes), r.repeats ? "yes" : "no");
    put_ops(f, c, k);
    put_failures(f, c, k, again);
    put_nodes(f, c, k);
}

static void put_tiles(FILE *f, const adj_comparison *c)
{
    char text[4][PAGE_NUMBER];
    const page_fact tiles[] = {
        {"comparisons", page_whole(text[0], adj_comparison_row_count(c))},
        {"failed", page_whole(text[1], adj_comparison_failed_count(c))},
        {"configurations", page_whole(text[2], adj_comparison_config_count(c) - 1)},
        {"whole graphs failed", page_whole(text[3], adj_comparison_whole_failed_count(c))}};
    page_tiles(f, sizeof tiles / sizeof *tiles, tiles);
}

int write_html(FILE *f, const void *source)
{
    const compare_source *o = source;
    const adj_comparison *c = o->comparison;
    char summary[256], version[64] = "", versions[128];
    snprintf(summary, sizeof summary,
             "Each node and the whole graph, against %s. All configurations share the gradient "
             "rules, which adjoint gradcheck checks.",
             adj_comparison_config_at(c, 0)->name);
    (void)adj_backend_describe("onednn", version, sizeof version);
    snprintf(versions, sizeof versions, "adjoint %s, oneDNN %s", adj_version_text(), version);
    const page_fact facts[] = {{"versions", versions}};
    page_begin(f, "adjoint compare", o->title, summary);
    put_tiles(f, c);
    if (adj_comparison_result_at(c, 0).verdict != ADJ_VERDICT_PASS)
        put_verdict(f, c, 0, "");
    for (int k = 1; k < adj_comparison_config_count(c); k++)
        put_config(f, c, k, &o->again[k], "");
    for (int k = 1; o->also != NULL && k < adj_comparison_config_count(o->also->comparison); k++)
        put_config(f, o->also->comparison, k, &o->also->again[k], o->also->title);
    page_section(f, "run", "This run");
    page_code(f, o->repro);
    page_facts(f, sizeof facts / sizeof *facts, facts);
    page_end(f);
    return ferror(f);
}
