/* write.c - see write.h. */
#include <math.h>
#include <string.h>

#include "write.h"
#include "cli/output.h"
#include "cli/utf8.h"

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
    json_t *shape = json_array();
    for (int i = 0; i < w->type.shape.rank; i++)
        json_array_append_new(shape, json_integer(w->type.shape.dim[i]));
    json_t *o = json_pack(
        "{s:i, s:s, s:s, s:s, s:s, s:s, s:i, s:s, s:o, s:s, s:I, s:I, s:I, s:I, s:b}", "node",
        w->node, "name", w->name, "op", w->op, "attrs", w->attrs, "wrt", w->wrt, "method",
        w->method, "order", w->order, "dtype", adj_dtype_name(w->type.dtype), "shape", shape,
        "result", adj_gradcheck_result_name(w->result), "elems", (json_int_t)w->elems, "wrong",
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

int write_gradcheck_json(FILE *f, const adj_gradcheck_report *r, const gradcheck_title *title)
{
    json_t *rows = json_array();
    for (int i = 0; i < adj_gradcheck_row_count(r); i++)
        json_array_append_new(rows, row_json(adj_gradcheck_row_at(r, i)));
    adj_gradcheck_info about = adj_gradcheck_about(r);
    json_t *all =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:b, s:o, s:I, s:s, s:o}", "what", title->what,
                  "backend", about.backend, "version", about.version, "isa", about.isa, "reference",
                  about.reference, "threads", about.threads, "repeatable", about.repeatable,
                  "thread_ulp", real(about.thread_ulp), "seed", (json_int_t)title->seed, "result",
                  adj_gradcheck_result_name(adj_gradcheck_verdict(r)), "rows", rows);
    int ok = all != NULL && json_dumpf(all, f, JSON_INDENT(1)) == 0 && fputc('\n', f) != EOF;
    json_decref(all);
    return ok;
}

static void put_case(FILE *f, const adj_gradcheck_row *w)
{
    fputs("  <testcase classname=\"gradcheck.", f);
    write_escaped(f, w->op);
    fputs("\" name=\"", f);
    write_escaped(f, w->name);
    fputs(w->attrs[0] != '\0' ? " " : "", f);
    write_escaped(f, w->attrs);
    fputs(" wrt ", f);
    write_escaped(f, w->wrt);
    fputs("\">", f);
    if (w->result == ADJ_GRADCHECK_FAIL) {
        fputs("\n    <failure message=\"", f);
        write_escaped(f, w->blame);
        fprintf(f, "\">worst: ");
        write_escaped(f, w->wrt);
        write_escaped(f, w->index);
        fprintf(f, " analytic=%.9g numeric=%.9g tolerance=%.3g; ", w->analytic, w->numeric,
                w->tolerance);
        write_escaped(f, w->pattern);
        fputs("; ", f);
        write_escaped(f, w->hint);
        fputs("; ", f);
        write_escaped(f, w->repro);
        fputs("</failure>\n  ", f);
    } else if (w->result != ADJ_GRADCHECK_PASS) {
        fputs("<skipped message=\"", f);
        write_escaped(f, w->note);
        fputs("\"/>", f);
    }
    fputs("</testcase>\n", f);
}

int write_gradcheck_junit(FILE *f, const adj_gradcheck_report *r, const gradcheck_title *title)
{
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"adjoint gradcheck ", f);
    write_escaped(f, title->what);
    fprintf(f, "\" tests=\"%d\" failures=\"%d\" skipped=\"%d\">\n", adj_gradcheck_row_count(r),
            adj_gradcheck_result_count(r, ADJ_GRADCHECK_FAIL),
            adj_gradcheck_result_count(r, ADJ_GRADCHECK_SKIPPED) +
                adj_gradcheck_result_count(r, ADJ_GRADCHECK_INCONCLUSIVE));
    for (int i = 0; i < adj_gradcheck_row_count(r); i++)
        put_case(f, adj_gradcheck_row_at(r, i));
    return fputs("</testsuite>\n", f) != EOF;
}

int write_gradcheck(const char *path, const adj_gradcheck_report *r, const gradcheck_title *title,
                    int (*write)(FILE *f, const adj_gradcheck_report *r,
                                 const gradcheck_title *title))
{
    if (is_stdout(path))
        return write(stdout, r, title) && fflush(stdout) == 0;
    FILE *f = fopen(path, "w");
    if (f == NULL)
        return 0;
    int ok = write(f, r, title);
    return fclose(f) == 0 && ok;
}
