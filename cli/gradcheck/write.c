/* write.c - see write.h. */
#include <math.h>
#include <string.h>

#include "write.h"
#include "cli/json.h"
#include "graph/printable.h"

/* JSON has no NaN and no infinity: these are strings. */
static json_t *real(double v)
{
    if (isfinite(v))
        return json_real(v);
    return json_string(isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity");
}

static json_t *pairs_json(const adj_gradcheck_row *w)
{
    json_t *pairs = json_array();
    for (int i = 0; i < w->n_pair; i++)
        json_array_append_new(pairs, json_pack("{s:o, s:o, s:o, s:o}", "reference",
                                               real(w->pair[i].reference), "numeric",
                                               real(w->pair[i].numeric), "uncertainty",
                                               real(w->pair[i].uncertainty), "tolerance",
                                               real(w->pair[i].tolerance)));
    return pairs;
}

static json_t *row_json(const adj_gradcheck_row *w)
{
    json_t *o =
        json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:i, s:s, s:o, s:s, s:I, s:I, s:I, s:I, s:b}",
                  "node", w->node, "name", w->name, "op", w->op, "attrs", w->attrs, "wrt", w->wrt,
                  "method", w->method, "order", w->order, "dtype", adj_dtype_name(w->type.dtype),
                  "shape", json_sizes(w->type.shape.rank, w->type.shape.dim), "result",
                  adj_gradcheck_result_name(w->result), "elems", (json_int_t)w->elems, "wrong",
                  (json_int_t)w->wrong, "kinks", (json_int_t)w->kinks, "considered",
                  (json_int_t)w->considered, "repeatable", w->repeatable);
    const struct {
        const char *key;
        double value;
    } reals[] = {{"worst_rel", w->worst_rel},     {"worst_abs", w->worst_abs},
                 {"analytic", w->analytic},       {"numeric", w->numeric},
                 {"uncertainty", w->uncertainty}, {"tolerance", w->tolerance}};
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        json_object_set_new(o, reals[i].key, real(reals[i].value));
    json_object_set_new(o, "pairs", pairs_json(w));
    const struct {
        const char *key, *value;
    } texts[] = {{"index", w->index}, {"origin", w->origin}, {"pattern", w->pattern},
                 {"hint", w->hint},   {"blame", w->blame},   {"repro", w->repro},
                 {"note", w->note}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].value[0] != '\0')
            json_object_set_new(o, texts[i].key, json_text(texts[i].value));
    return o;
}

int write_gradcheck_json(FILE *f, const void *source)
{
    const gradcheck_source *o = source;
    const adj_gradcheck_report *r = o->report;
    json_t *rows = json_array();
    for (int i = 0; i < adj_gradcheck_row_count(r); i++)
        json_array_append_new(rows, row_json(adj_gradcheck_row_at(r, i)));
    adj_gradcheck_info about = adj_gradcheck_about(r);
    json_t *all =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:b, s:o, s:I, s:s, s:o}", "what", o->title,
                  "backend", about.backend, "version", about.version, "isa", about.isa, "reference",
                  about.reference, "threads", about.threads, "repeatable", about.repeatable,
                  "thread_ulp", real(about.thread_ulp), "seed", (json_int_t)o->seed, "result",
                  adj_gradcheck_result_name(adj_gradcheck_verdict(r)), "rows", rows);
    return json_write(f, all, JSON_INDENT(1), 0);
}

static void put_case(FILE *f, const adj_gradcheck_row *w)
{
    put_escaped(f, FOR_XML, "  <testcase classname=\"gradcheck.%s\" name=\"%s%s%s wrt %s\">", w->op,
                w->name, w->attrs[0] != '\0' ? " " : "", w->attrs, w->wrt);
    if (w->result == ADJ_GRADCHECK_FAIL)
        put_escaped(f, FOR_XML,
                    "\n    <failure message=\"%s\">worst: %s%s analytic=%.9g numeric=%.9g "
                    "tolerance=%.3g; %s; %s; %s</failure>\n  ",
                    w->blame, w->wrt, w->index, w->analytic, w->numeric, w->tolerance, w->pattern,
                    w->hint, w->repro);
    else if (w->result != ADJ_GRADCHECK_PASS)
        put_escaped(f, FOR_XML, "<skipped message=\"%s\"/>", w->note);
    fputs("</testcase>\n", f);
}

int write_gradcheck_junit(FILE *f, const void *source)
{
    const gradcheck_source *o = source;
    const adj_gradcheck_report *r = o->report;
    put_escaped(f, FOR_XML,
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"adjoint gradcheck "
                "%s\" tests=\"%d\" failures=\"%d\" skipped=\"%d\">\n",
                o->title, adj_gradcheck_row_count(r),
                adj_gradcheck_result_count(r, ADJ_GRADCHECK_FAIL),
                adj_gradcheck_result_count(r, ADJ_GRADCHECK_SKIPPED) +
                    adj_gradcheck_result_count(r, ADJ_GRADCHECK_INCONCLUSIVE));
    for (int i = 0; i < adj_gradcheck_row_count(r); i++)
        put_case(f, adj_gradcheck_row_at(r, i));
    return fputs("</testsuite>\n", f) == EOF;
}
