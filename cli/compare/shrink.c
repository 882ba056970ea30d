/* shrink.c - see compare.h.
 *
 * A node that --op can describe is made smaller. One that it cannot describe, or that does not fail
 * alone, becomes the model up to the node, or else the whole model, with the failing configuration.
 *
 * Each number of the op line is reduced in turn: 1, 2, 4 and 8 are tried first, then the interval
 * between the largest passing and the smallest failing value is halved. Failures are not monotone,
 * so the result is small but not minimal; it has failed twice. */
#include <string.h>

#include "base/clock.h"
#include "cli/command.h"
#include "compare.h"

enum { MAX_TRIALS = 400 };

/* True if a row of the op or group fails with this verdict and blame. */
static int has_failure(const adj_comparison *c, const char *op, adj_verdict verdict,
                       adj_blame blame)
{
    for (int i = 0; i < c->n_row; i++) {
        const compare_row *row = adj_comparison_row_at(c, i);
        if (strcmp(adj_compare_row_name(row), op) == 0 && row->verdict == verdict &&
            row->blame == blame)
            return 1;
    }
    return 0;
}

/* True if the described graph fails with the verdict and blame. whole: run as by the command line;
 * else its first root alone. */
static int graph_fails(const compared_opts *described, const shrinking *s, int whole,
                       const char *op)
{
    compared g;
    const adj_comparison *c = NULL;
    int fails = 0;
    if (compared_open(&g, described) == ADJ_OK) {
        adj_leaf_value labels;
        adj_compare_opts opts = *s->opts;
        compared_compute(&g, &labels, &opts);
        opts.exec.n_fetch = whole ? g.n_root : 1;
        opts.runs = whole ? opts.runs : 1;
        fails = adj_compare_with(g.m.graph, &opts, s->trials, &c) == ADJ_OK &&
                has_failure(c, op, s->verdict, s->blame);
    }
    adj_comparison_free(c);
    compared_close(&g);
    return fails;
}

/* ---- an op ---- */

static int fails_once(shrinking *s, op_line *l, int whole)
{
    const compared_opts described = {.op = op_line_args(l)};
    s->tried++;
    return graph_fails(&described, s, whole, l->args.op);
}

static int fails_twice(shrinking *s, op_line *l)
{
    int fails = fails_once(s, l, 0);
    return fails ? fails_once(s, l, 0) : 0;
}

/* True if there is time for another trial. */
static int has_time(const shrinking *s, double end)
{
    return s->tried < s->max && seconds_now() < end;
}

static int fails_with(shrinking *s, op_line *l, int64_t *number, int64_t value)
{
    const op_line before = *l;
    *number = value;
    op_line_settle(l);
    if (fails_twice(s, l))
        return 1;
    *l = before;
    return 0;
}

/* Reduces a number of the line; returns 1 if it became smaller. */
static int shrink_number(shrinking *s, op_line *l, op_number number, double end)
{
    const int64_t before = *number.value;
    int64_t passes = number.min - 1, step = 1;
    while (passes + step < before && has_time(s, end) &&
           !fails_with(s, l, number.value, passes + step)) {
        passes += step;
        step = passes > 0 ? passes : 1;
    }
    while (*number.value - passes > 1 && has_time(s, end)) {
        int64_t middle = passes + (*number.value - passes) / 2;
        if (!fails_with(s, l, number.value, middle))
            passes = middle;
    }
    return *number.value < before;
}

int shrink(shrinking *s, op_line *l)
{
    const op_line whole = *l;
    op_number number[MAX_NUMBERS];
    double end = seconds_now() + s->seconds;
    s->tried = 0;
    if (!fails_twice(s, l))
        return 0;
    for (int changed = 1; changed && has_time(s, end);) {
        changed = 0;
        int n = op_line_numbers(l, number);
        for (int i = 0; i < n; i++)
            changed |= shrink_number(s, l, number[i], end);
    }
    if (fails_once(s, l, 1))
        return 1;
    *l = whole;
    return fails_once(s, l, 1);
}

/* ---- what is run again ---- */

/* Returns the first failed row whose operands were right. */
static const compare_row *first_divergence(const adj_comparison *c, int k)
{
    for (int i = 0; i < c->n_row; i++) {
        const compare_row *row = adj_comparison_row_at(c, i);
        if (row->config == k && row->verdict != ADJ_VERDICT_PASS &&
            (row->blame == ADJ_BLAME_KERNEL || row->blame == ADJ_BLAME_PLAN ||
             row->blame == ADJ_BLAME_REFERENCE))
            return row;
    }
    return NULL;
}

static void find(const compare_opts *o, shrinking *s, const char *pair, reproducer *r)
{
    op_line l;
    char id[16];
    compared_opts described = o->graph;
    if (r->row != NULL && r->row->group[0] == '\0' && o->shrink > 0 &&
        adj_node_operand_count(r->row->node) > 0 && op_line_write(r->row->node, &l)) {
        int found = shrink(s, &l);
        r->tried = s->tried;
        if (found) {
            described = (compared_opts){.op = op_line_args(&l)};
            compare_line(o, &described, pair, r->line);
            return;
        }
    }
    if (r->row != NULL && o->graph.model != NULL) {
        snprintf(id, sizeof id, "%d", adj_node_id(r->row->node));
        described.node = id;
        if (o->shrink <= 0 || !graph_fails(&described, s, 1, adj_compare_row_name(r->row)))
            described.node = o->graph.node;
    }
    compare_line(o, &described, pair, r->line);
}

reproducer *reproducers(const compare_opts *o, const adj_compare_opts *opts,
                        const adj_trial_opts *trials, const adj_comparison *c)
{
    int n = c->n_config;
    reproducer *r = allocate(n, sizeof *r);
    for (int k = 0; k < n; k++) {
        const char *names[] = {c->config[0].name, c->config[k > 0 ? k : 1].name};
        char pair[160];
        adj_compare_opts two = *opts;
        two.n_config = 2;
        two.config = names;
        r[k].row = first_divergence(c, k);
        shrinking s = {.opts = &two, .trials = trials, .seconds = o->shrink, .max = MAX_TRIALS};
        if (r[k].row != NULL) {
            s.verdict = r[k].row->verdict;
            s.blame = r[k].row->blame;
        }
        compare_pair(names[0], names[1], pair, sizeof pair);
        if (r[k].row != NULL || adj_comparison_result_at(c, k).verdict != ADJ_VERDICT_PASS)
            find(o, &s, pair, &r[k]);
    }
    return r;
}
