/* report.c - a gradient check's report: its rows, and how they are printed. */
#include <math.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/printable.h"
#include "base/limits.h"
#include "gradcheck.h"

gradcheck_detail *gradcheck_row(gradcheck_report *r, const adj_node *n, const char *wrt, int order)
{
    gradcheck_detail *list =
        region_grow(&r->log.region, r->row, r->n_row, &r->capacity, sizeof *list);
    char attrs[256] = "";
    FILE *f = n->op->schema != NULL ? fmemopen(attrs, sizeof attrs - 1, "w") : NULL;
    if (f != NULL) {
        adj_show_attrs(n, f);
        fclose(f);
    }
    if (list == NULL) {
        log_no_memory(&r->log);
        return NULL;
    }
    r->row = list;
    gradcheck_detail *row = &r->row[r->n_row++];
    *row = (gradcheck_detail){.node = (int)n->id,
                              .name = n->name != NULL ? log_text(&r->log, "%s", n->name)
                                                      : log_text(&r->log, "%%%d", (int)n->id),
                              .op = n->op->name,
                              .attrs = log_text(&r->log, "%s", attrs + (attrs[0] == ' ')),
                              .wrt = wrt,
                              .order = order,
                              .method = "",
                              .index = "",
                              .origin = "",
                              .pattern = "",
                              .hint = "",
                              .blame = "",
                              .reason = "",
                              .repeatable = 1};
    return row;
}

void gradcheck_blame(adj_gradcheck_fault fault, const char *sentence, gradcheck_detail *row)
{
    row->result = ADJ_GRADCHECK_FAIL;
    row->fault = fault;
    row->blame = sentence;
}

static void describe_report(gradcheck_report *r)
{
    char name[64], known[128];
    const char *backend = r->opts.exec.backend != NULL ? r->opts.exec.backend : "onednn";
    snprintf(name, sizeof name, "%.*s", (int)strcspn(backend, ","), backend);
    if (r->opts.exec.backends != NULL ||
        adj_backend_describe(name, known, sizeof known) != ADJ_OK || known[0] == '*')
        known[0] = '\0';
    r->report.message = r->log.message;
    r->conditions = (gradcheck_conditions){
        .backend = log_text(&r->log, "%s", backend),
        .version = log_text(&r->log, "%.*s", (int)strcspn(known, " "), known),
        .isa = log_text(&r->log, "%s", known + strcspn(known, " ") + (strchr(known, ' ') != NULL)),
        .reference = "naive float64",
        .threads = r->opts.exec.threads > 0 ? r->opts.exec.threads : adj_default_threads(),
        .repeatable = 1};
}

/* The report of a check for which there is no memory. */
static const gradcheck_report no_memory = {
    .report = {.message = "gradcheck: out of memory", .verdict = ADJ_GRADCHECK_NOT_CHECKED},
    .conditions = {.backend = "", .version = "", .isa = "", .reference = ""},
    .log.status = ADJ_ENOMEM};

static adj_status check_ranges(gradcheck_report *r)
{
    const adj_gradcheck_opts *o = &r->opts;
    const struct {
        const char *name;
        double value, max; /* the least is 0 */
        const char *expected;
    } options[] = {{"order", o->order, 2, "0 to 2"},
                   {"draws", o->draws, 1000, "0 to 1000"},
                   {"method", o->method, ADJ_GRADCHECK_RICHARDSON, "an adj_gradcheck_method"},
                   {"rtol", o->rtol, INFINITY, "0 or more"},
                   {"atol", o->atol, INFINITY, "0 or more"}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (!(options[i].value >= 0 && options[i].value <= options[i].max))
            return log_fail(&r->log, ADJ_EARG,
                            "gradcheck: %s is out of range (got %g, expected %s)", options[i].name,
                            options[i].value, options[i].expected);
    return ADJ_OK;
}

static adj_status check_options(gradcheck_report *r, const adj_node *y)
{
    if (y == NULL)
        return log_fail(&r->log, ADJ_EARG, "gradcheck: no node is given (expected 1 or more)");
    if (y->graph->status != ADJ_OK)
        return log_fail(&r->log, y->graph->status, "gradcheck: the graph has failed: %.400s",
                        y->graph->message);
    if (r->opts.exec.updates != NULL && r->opts.exec.updates->graph != y->graph)
        return log_fail(&r->log, ADJ_EARG, "gradcheck: the updates are of another graph");
    const char *unread = r->opts.exec.n_fetch != 0 ? "fetch" : unread_option(&r->opts.exec);
    if (unread != NULL)
        return log_fail(&r->log, ADJ_EARG, "gradcheck: exec.%s is set (expected 0 or NULL)",
                        unread);
    return check_ranges(r);
}

gradcheck_report *gradcheck_open(const adj_node *y, const adj_gradcheck_opts *opts,
                                 const adj_gradcheck_report **out)
{
    adj_allocator allocator = y != NULL ? y->graph->region.allocator : default_allocator();
    gradcheck_report *r = out != NULL ? adj_alloc(&allocator, sizeof *r) : NULL;
    if (out != NULL)
        *out = r != NULL ? &r->report : &no_memory.report;
    if (r == NULL)
        return NULL;
    r->log = (check_log){.region.allocator = allocator, .name = "gradcheck"};
    if (opts != NULL && y != NULL)
        r->opts = *opts;
    if (r->opts.exec.debug != NULL)
        r->debug = *r->opts.exec.debug;
    r->opts.exec.debug = &r->debug;
    describe_report(r);
    check_options(r, y);
    return r;
}

/* True if no kernel has the implementation that the options name. */
static int is_unmatched(const gradcheck_report *r)
{
    return r->debug.impl != NULL && r->conditions.impl_nodes == 0;
}

/* Fills in the rows that the caller sees. */
static void show_rows(gradcheck_report *r)
{
    adj_gradcheck_row *row = region_alloc(&r->log.region, (size_t)r->n_row, sizeof *row);
    if (row == NULL) {
        log_no_memory(&r->log);
        r->n_row = 0;
    }
    for (int i = 0; i < r->n_row; i++) {
        const gradcheck_detail *w = &r->row[i];
        row[i] = (adj_gradcheck_row){.node = w->node,
                                     .name = w->name,
                                     .op = w->op,
                                     .wrt = w->wrt,
                                     .order = w->order,
                                     .result = w->result,
                                     .fault = w->fault,
                                     .blame = w->blame,
                                     .reason = w->reason,
                                     .index = w->index,
                                     .analytic = w->analytic,
                                     .numeric = w->numeric,
                                     .tolerance = w->tolerance};
    }
    r->report.n_row = r->n_row;
    r->report.row = row;
}

adj_status gradcheck_close(gradcheck_report *r, const adj_gradcheck_report **out)
{
    if (r == NULL)
        return out == NULL ? ADJ_EARG : ADJ_ENOMEM;
    adj_gradcheck_report *o = &r->report;
    const int *n = o->n_result;
    show_rows(r);
    for (int i = 0; i < r->n_row; i++)
        o->n_result[r->row[i].result]++;
    if (n[ADJ_GRADCHECK_FAIL] > 0)
        o->verdict = ADJ_GRADCHECK_FAIL;
    else if (n[ADJ_GRADCHECK_NOT_CHECKED] > 0 || r->log.status != ADJ_OK)
        o->verdict = ADJ_GRADCHECK_NOT_CHECKED;
    else if (n[ADJ_GRADCHECK_INCONCLUSIVE] > 0 || is_unmatched(r) || n[ADJ_GRADCHECK_PASS] == 0)
        o->verdict = ADJ_GRADCHECK_INCONCLUSIVE;
    return r->log.status;
}

const gradcheck_detail *adj_gradcheck_row_at(const adj_gradcheck_report *r, int i)
{
    return i >= 0 && i < r->n_row ? &((const gradcheck_report *)r)->row[i] : NULL;
}

gradcheck_conditions adj_gradcheck_conditions(const adj_gradcheck_report *r)
{
    return ((const gradcheck_report *)r)->conditions;
}

void adj_gradcheck_free(const adj_gradcheck_report *report)
{
    if (report == NULL || report == &no_memory.report)
        return;
    gradcheck_report *r = (gradcheck_report *)report;
    adj_allocator allocator = r->log.region.allocator;
    region_free(&r->log.region);
    adj_release(&allocator, r);
}

const char *adj_gradcheck_result_name(adj_gradcheck_result result)
{
    switch (result) {
    case ADJ_GRADCHECK_PASS: return "PASS";
    case ADJ_GRADCHECK_FAIL: return "FAIL";
    case ADJ_GRADCHECK_INCONCLUSIVE: return "INCONCLUSIVE";
    case ADJ_GRADCHECK_SKIPPED: return "SKIPPED";
    case ADJ_GRADCHECK_NOT_CHECKED: return "NOT CHECKED";
    }
    return "no result";
}

/* ---- printing: names, reasons and repro lines are the caller's and may hold anything ---- */

typedef struct {
    int name, op;
} widths;

static int row_op_width(const gradcheck_detail *w)
{
    return (int)(strlen(w->op) + (w->attrs[0] != '\0') + strlen(w->attrs));
}

static widths widths_of(const gradcheck_report *r)
{
    widths w = {.name = 4, .op = 2};
    for (int i = 0; i < r->n_row; i++) {
        int name = (int)strlen(r->row[i].name), op = row_op_width(&r->row[i]);
        w.name = name > w.name ? name : w.name;
        w.op = op > w.op ? op : w.op;
    }
    return w;
}

/* True if no number was compared. */
static int is_empty(const gradcheck_detail *w)
{
    return w->result == ADJ_GRADCHECK_SKIPPED || w->result == ADJ_GRADCHECK_NOT_CHECKED;
}

static void print_result(FILE *f, const gradcheck_detail *w)
{
    fputs(adj_gradcheck_result_name(w->result), f);
    if (is_empty(w))
        put_text(f, " (%s)", w->reason);
    else if (w->kinks > 0)
        c_fprintf(f, " (%lld at a kink, %.1f %%)", (long long)w->kinks,
                  100.0 * (double)w->kinks / (double)w->considered);
    else if (w->result == ADJ_GRADCHECK_PASS && w->worst_abs == 0)
        fputs(" (bit-exact)", f);
    if (!w->repeatable)
        fputs(" NOT REPEATABLE", f);
    fputc('\n', f);
}

static void print_worst(FILE *f, const gradcheck_detail *w)
{
    put_text(f, "   worst: %s%s  analytic=%+.9g  numeric=%+.9g +- %.2g  ", w->wrt, w->index,
             w->analytic, w->numeric, w->uncertainty);
    if (w->numeric != 0 && isfinite(w->analytic))
        c_fprintf(f, "(ratio %.4g)", w->analytic / w->numeric + 0.0); /* no -0 */
    put_text(f, "\n   tolerance: %.3g = %s\n", w->tolerance, w->origin);
}

/* again: a command line; "". */
static void print_failure(FILE *f, const gradcheck_detail *w, const char *again)
{
    if (w->wrong > 0 || w->repeatable)
        print_worst(f, w);
    if (w->pattern[0] != '\0')
        put_text(f, "   pattern: %s%s%s\n", w->pattern, w->hint[0] != '\0' ? ";  " : "", w->hint);
    if (w->blame[0] != '\0')
        put_text(f, "   blame: %s\n", w->blame);
    if (again[0] != '\0')
        put_text(f, "   repro: %s\n", again);
}

static void print_row(FILE *f, const gradcheck_detail *w, widths width)
{
    put_text(f, " %-*s %s%s%s%*s  %-14s ", width.name, w->name, w->op,
             w->attrs[0] != '\0' ? " " : "", w->attrs, width.op - row_op_width(w), "", w->wrt);
    if (is_empty(w))
        fprintf(f, "%-13s %8s %9s %9s %9s %6s  ", "-", "-", "-", "-", "-", "-");
    else
        c_fprintf(f, "%-13s %8lld %9.2g %9.2g %9.2g %6lld  ", w->method, (long long)w->elems,
                  w->worst_rel, w->worst_abs, w->tolerance, (long long)w->kinks);
    print_result(f, w);
    if (w->result != ADJ_GRADCHECK_FAIL && !is_empty(w) && w->reason[0] != '\0')
        put_text(f, "   %s\n", w->reason);
}

void adj_gradcheck_print(FILE *f, const adj_gradcheck_report *r)
{
    adj_gradcheck_print_with(f, r, NULL, NULL);
}

void adj_gradcheck_print_with(FILE *f, const adj_gradcheck_report *r,
                              void (*repro)(void *user, const gradcheck_detail *row, char *line,
                                            size_t size),
                              void *user)
{
    const gradcheck_report *all = (const gradcheck_report *)r;
    if (r == NULL || f == NULL)
        return;
    widths width = widths_of(all);
    int order = 0;
    for (int i = 0; i < r->n_row; i++) {
        const gradcheck_detail *w = &all->row[i];
        char line[1024] = "";
        if (i == 0 || w->order > order) {
            order = w->order;
            if (order > 1)
                fprintf(f, " second order: (x, dy) -> dx\n");
            fprintf(f, " %-*s %-*s  %-14s %-13s %8s %9s %9s %9s %6s  %s\n", width.name, "node",
                    width.op, "op", "wrt", "method", "elems", "worst rel", "worst abs", "tolerance",
                    "kinks", "result");
        }
        print_row(f, w, width);
        if (w->result == ADJ_GRADCHECK_FAIL && repro != NULL)
            repro(user, w, line, sizeof line);
        if (w->result == ADJ_GRADCHECK_FAIL)
            print_failure(f, w, line);
    }
    if (r->message[0] != '\0')
        put_text(f, " checking failed: %s\n", r->message);
    else if (r->n_row == 0)
        fprintf(f, " nothing to check\n");
    fprintf(f, " repeatability: backward run twice, bit-identical: %s\n",
            all->conditions.repeatable ? "yes" : "NO");
    if (is_unmatched(all))
        put_text(f, " no kernel has a name that contains \"%s\"\n", all->debug.impl);
    const int *n = r->n_result;
    fprintf(
        f, "summary: %d checked, %d pass, %d fail, %d inconclusive, %d skipped, %d not checked%s\n",
        r->n_row - n[ADJ_GRADCHECK_SKIPPED] - n[ADJ_GRADCHECK_NOT_CHECKED], n[ADJ_GRADCHECK_PASS],
        n[ADJ_GRADCHECK_FAIL], n[ADJ_GRADCHECK_INCONCLUSIVE], n[ADJ_GRADCHECK_SKIPPED],
        n[ADJ_GRADCHECK_NOT_CHECKED],
        r->verdict == ADJ_GRADCHECK_PASS
            ? " (gradients only; values are checked by adjoint compare, in C adj_compare)"
            : "");
}
