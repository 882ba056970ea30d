/* table.c - a comparison for a terminal: for each configuration a line per op (or per node), then
 * each failure in full. */
#include <math.h>
#include <string.h>

#include "base/printable.h"
#include "compare.h"

/* ---- rows added up: one, or all of an op under a configuration ---- */

typedef struct {
    const char *op, *implementation; /* names of the slowest row */
    const char *crash;               /* the reason of the last crash; NULL: none */
    const char *other_impl;          /* reason of the first row whose implementation differs from
                                        the requested one; NULL if none */
    int nodes, failed, n_other_impl;
    double worst, ulp, rel, sqnr, sqnr_propagated, us, reference_us, gflop;
    double slowest; /* us */
} op_sum;

static const op_sum no_rows = {
    .implementation = "", .worst = NAN, .sqnr = NAN, .sqnr_propagated = NAN};

static void add_row(op_sum *s, const compare_row *row)
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
        s->sqnr = fmin(s->sqnr, row->isolated.sqnr); /* fmin ignores a NaN */
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

/* True if row r belongs to configuration k and this op. */
static int is_of(const adj_comparison *c, int r, int k, const char *op)
{
    const compare_row *row = adj_comparison_row_at(c, r);
    return row->config == k && strcmp(adj_compare_row_name(row), op) == 0;
}

/* Sums up the op of configuration k's row r; returns 0 if r is not the first row of the op. */
static int sum_op(const adj_comparison *c, int k, int r, op_sum *s)
{
    *s = no_rows;
    s->op = adj_compare_row_name(adj_comparison_row_at(c, r));
    for (int i = 0; i < r; i++)
        if (is_of(c, i, k, s->op))
            return 0;
    for (int i = r; i < c->n_row; i++)
        if (is_of(c, i, k, s->op))
            add_row(s, adj_comparison_row_at(c, i));
    return is_of(c, r, k, s->op);
}

/* ---- the lines ---- */

static void print_number(FILE *f, int width, double v)
{
    if (isnan(v))
        fprintf(f, " %*s", width, "-");
    else if (isinf(v))
        fprintf(f, " %*s", width, v > 0 ? "inf" : "-inf");
    else
        fprintf(f, " %*.*g", width, 3, v);
}

static void print_decibels(FILE *f, double v)
{
    if (isnan(v))
        fprintf(f, " %8s", "-");
    else if (isinf(v) && v > 0)
        fprintf(f, " %8s", "exact");
    else
        fprintf(f, " %8.1f", v);
}

static void print_head(FILE *f, const adj_comparison *c, int k)
{
    compare_result r = adj_comparison_result_at(c, k), ref = adj_comparison_result_at(c, 0);
    put_text(f, "\n%s", c->config[k].name);
    if (r.verdict != ADJ_VERDICT_PASS)
        put_text(f, ": the whole graph: %s: %s\n", adj_verdict_name(r.verdict), r.reason);
    else if (!has_whole_run(&r))
        fputs(": each kind of node alone\n", f);
    else
        fprintf(f,
                ": %.3g ms a step, %.3g times the reference's speed; %d steps (%d on naive), %d "
                "reorders, arena %.3g MB; twice the same bits: %s\n",
                r.ms, r.ms > 0 ? ref.ms / r.ms : 0, r.steps, r.naive_steps, r.reorders,
                1e-6 * (double)r.arena_bytes, r.repeats ? "yes" : "NO");
    if (r.differs > 0)
        fprintf(f,
                "  %d results differ in bits from the run that keeps every node: fused or laid "
                "out otherwise\n",
                r.differs);
}

static void print_columns(FILE *f, int all)
{
    if (all)
        fprintf(f, "  %-7s %-36s", "node", "op");
    else
        fprintf(f, "  %-36s %5s", "op", "nodes");
    fprintf(f, " %9s %8s %8s %8s %8s %9s %8s %8s  %-8s %s\n", "err/bound", "max ulp", "max rel",
            "SQNR dB", "in graph", "us", "GFLOP/s", "speed-up", "result", "implementation");
}

static void print_measures(FILE *f, const op_sum *s, const char *result)
{
    print_number(f, 9, s->worst);
    print_number(f, 8, s->ulp);
    print_number(f, 8, s->rel);
    print_decibels(f, s->sqnr);
    print_decibels(f, s->sqnr_propagated);
    fprintf(f, " %9.1f", s->us);
    print_number(f, 8, s->us > 0 ? 1e6 * s->gflop / s->us : NAN);
    print_number(f, 8, s->us > 0 ? s->reference_us / s->us : NAN);
    put_text(f, "  %-8s %s\n", result, s->crash != NULL ? s->crash : s->implementation);
}

static void print_ops(FILE *f, const adj_comparison *c, int k)
{
    op_sum s;
    for (int i = 0; i < c->n_row; i++) {
        char result[24] = "pass";
        if (!sum_op(c, k, i, &s))
            continue;
        fprintf(f, "  %-36s %5d", s.op, s.nodes);
        if (s.failed > 0)
            snprintf(result, sizeof result, "%d %s", s.failed, s.crash != NULL ? "CRASH" : "FAIL");
        print_measures(f, &s, result);
        if (s.other_impl != NULL)
            put_text(f, "    %d of them: %s\n", s.n_other_impl, s.other_impl);
    }
}

static void print_rows(FILE *f, const adj_comparison *c, int k)
{
    for (int i = 0; i < c->n_row; i++) {
        const compare_row *row = adj_comparison_row_at(c, i);
        if (row->config != k)
            continue;
        op_sum s = no_rows;
        add_row(&s, row);
        fprintf(f, "  %%%-6d %-36s", adj_node_id(row->node), adj_compare_row_name(row));
        print_measures(f, &s, adj_verdict_name(row->verdict));
        if (row->other_impl)
            put_text(f, "    %s\n", row->why);
    }
}

/* "[2, 0, 5, 1]" of element i */
static void print_index(FILE *f, adj_shape shape, int64_t i)
{
    int64_t index[ADJ_MAX_RANK] = {0};
    for (int64_t d = shape.rank - 1; d >= 0; d--) {
        index[d] = i % shape.dim[d];
        i /= shape.dim[d];
    }
    fprintf(f, "[");
    for (int64_t d = 0; d < shape.rank; d++)
        fprintf(f, "%s%lld", d > 0 ? ", " : "", (long long)index[d]);
    fprintf(f, "]");
}

static void print_error(FILE *f, const compare_row *row, const char *title,
                        const adj_compare_error *e)
{
    if (isnan(e->worst) && e->n == 0)
        return;
    if (e->at < 0) {
        fprintf(f, "    %s: no difference in %lld values\n", title, (long long)e->n);
        return;
    }
    fprintf(f, "    %s: %lld of %lld wrong, worst at ", title, (long long)e->wrong,
            (long long)e->n);
    print_index(f, row->type.shape, e->at);
    fprintf(f, ": got %.9g, expected %.9g", isnan(e->got) ? NAN : e->got, e->expected);
    if (!isnan(e->worst))
        fprintf(f, " +- %.2g", e->bound);
    if (e == &row->isolated)
        fprintf(f, " (%s)", row->origin);
    if (e->nan + e->inf > 0)
        fprintf(f, "; %lld NaN, %lld Inf", (long long)e->nan, (long long)e->inf);
    if (e->zeros > e->zeros_expected)
        fprintf(f, "; %lld zeros where %lld belong", (long long)e->zeros,
                (long long)e->zeros_expected);
    fprintf(f, "\n");
}

static void print_failure(FILE *f, const adj_comparison *c, const compare_row *row)
{
    const adj_node *n = row->node;
    put_text(f, "  %s: %s %%%d %s", c->config[row->config].name, adj_verdict_name(row->verdict),
             adj_node_id(n), adj_compare_row_name(row));
    if (adj_node_name(n)[0] != '\0')
        put_text(f, " \"%s\"", adj_node_name(n));
    if (row->backend[0] != '\0')
        fprintf(f, " (%s %s)", row->backend, row->implementation);
    fprintf(f, ", to blame: %s\n", adj_blame_name(row->blame));
    if (row->reason[0] != '\0')
        put_text(f, "    %s\n", row->reason);
    print_error(f, row, row->group[0] != '\0' ? "fused, alone" : "alone", &row->isolated);
    print_error(f, row, "on its own operands in the graph", &row->in_plan);
}

static void print_failures(FILE *f, const adj_comparison *c)
{
    enum { MAX = 20 };
    int n = 0;
    for (int i = 0; i < c->n_row; i++) {
        const compare_row *row = adj_comparison_row_at(c, i);
        if (row->verdict == ADJ_VERDICT_PASS)
            continue;
        if (n++ == 0)
            fprintf(f, "\nfailed, the first divergence first:\n");
        if (n <= MAX)
            print_failure(f, c, row);
    }
    if (n > MAX)
        fprintf(f, "  and %d more (--json has all)\n", n - MAX);
}

static void print_again(FILE *f, const adj_comparison *c, const reproducer *again)
{
    for (int k = 0; k < c->n_config; k++) {
        const reproducer *r = &again[k];
        if (r->line[0] == '\0')
            continue;
        put_text(f, "  %s", c->config[k].name);
        if (r->row != NULL)
            fprintf(f, ", %%%d %s", adj_node_id(r->row->node), adj_compare_row_name(r->row));
        if (r->tried > 0)
            fprintf(f, ", after %d trials", r->tried);
        put_text(f, "\n    again: %s\n", r->line);
    }
}

/* True if the first backend has kernels for the op, but none for this node. */
static int is_refused(const compare_row *row, int k)
{
    return row->config == k && row->why[0] != '\0' && !row->other_impl &&
           strstr(row->why, " has no kernel for ") == NULL;
}

/* Prints each op that configuration k's first backend does not support once. */
static void print_refused(FILE *f, const adj_comparison *c, int k)
{
    int n = 0;
    for (int i = 0; i < c->n_row; i++)
        n += is_refused(adj_comparison_row_at(c, i), k);
    if (n == 0)
        return;
    const char *separator = ":";
    const char *name = c->config[k].name;
    put_text(f, "; %.*s refuses %d node%s, which other kernels compute", (int)strcspn(name, ","),
             name, n, n > 1 ? "s" : "");
    for (int i = 0; i < c->n_row; i++) {
        const compare_row *row = adj_comparison_row_at(c, i);
        int is_first = is_refused(row, k);
        for (int j = 0; j < i && is_first; j++)
            is_first = !is_refused(adj_comparison_row_at(c, j), k) ||
                       !is_of(c, j, k, adj_compare_row_name(row));
        if (is_first)
            put_text(f, "%s %s", separator, adj_compare_row_name(row));
        separator = is_first ? "," : separator;
    }
}

void write_table(FILE *f, const compare_run *o)
{
    const adj_comparison *c = o->comparison;
    compare_result ref = adj_comparison_result_at(c, 0);
    put_text(f, "%s\nreference %s", o->title, c->config[0].name);
    if (ref.verdict != ADJ_VERDICT_PASS)
        put_text(f, ": the whole graph: %s: %s\n", adj_verdict_name(ref.verdict), ref.reason);
    else if (!has_whole_run(&ref))
        fputc('\n', f);
    else
        fprintf(f, ": %.3g ms a step\n", ref.ms);
    for (int k = 1; k < c->n_config; k++) {
        print_head(f, c, k);
        print_columns(f, o->all);
        if (o->all)
            print_rows(f, c, k);
        else
            print_ops(f, c, k);
    }
    print_failures(f, c);
    print_again(f, c, o->again);
    const int rows = c->n_row;
    fprintf(f, "\n%d comparison%s, %d failed", rows, rows != 1 ? "s" : "", c->n_failed);
    if (c->n_whole_failed > 0)
        fprintf(f, "; the whole graph fails under %d of %d configurations", c->n_whole_failed,
                c->n_config);
    for (int k = 1; k < c->n_config; k++)
        print_refused(f, c, k);
    fprintf(f, " (gradient rules are checked by adjoint gradcheck)\n");
}
