/* checked.h - runs gradcheck on a node and compare on a graph, for the tests of the checkers, and
 * plants a gradient rule. */
#ifndef TESTS_CHECK_CHECKED_H
#define TESTS_CHECK_CHECKED_H

#include <criterion/criterion.h>

#include "check/inspect.h"
#include "cli/op/args.h"
#include "graph/op.h"
#include "tests/plan.h"

/* The op's node, for a test that is linked with cli/op. */
static inline adj_node *built(adj_graph *g, const op_args *args)
{
    adj_error error;
    adj_node *n = op_args_build(args, g, &error);
    cr_assert_not_null(n, "%s: %s", args->op, error.message);
    return n;
}

typedef void grad_rule(adj_node *y, adj_node *dy, adj_node *dx[]);
typedef void value_domain(const adj_node *n, int i, int64_t count, double v[]);

static const adj_op *sound_op; /* op of the node that with_rule copied */

static inline adj_node *simplify_to_sound(const adj_node *n, adj_node *const in[])
{
    return adj_node_new(in[0]->graph, sound_op, n->n_in, in, n->attrs);
}

/* Returns a copy of n whose op has this gradient rule and domain (NULL: its own), and simplifies to
 * the op of n before it is run; until the next call. */
static inline adj_node *with_rule(const adj_node *n, grad_rule *grad, value_domain *domain)
{
    static adj_op op;
    op = *(sound_op = n->op);
    op.grad = grad != NULL ? grad : op.grad;
    op.domain = domain != NULL ? domain : op.domain;
    op.simplify = simplify_to_sound;
    return adj_node_new(n->graph, &op, n->n_in, n->in, n->attrs);
}

/* The report is the caller's. */
static inline const adj_gradcheck_report *checked(adj_node *n, const adj_gradcheck_opts *o)
{
    const adj_gradcheck_report *r;
    cr_assert_eq(adj_gradcheck_nodes(1, &n, o, &r), ADJ_OK, "%s: %s", adj_node_op(n), r->message);
    return r;
}

/* Returns the report as adj_gradcheck_print writes it; the caller frees. */
static inline char *report_text(const adj_gradcheck_report *r)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    adj_gradcheck_print(f, r);
    fclose(f);
    return text;
}

/* Compares as the options say, with one timed run; on one thread unless they name another number.
 */
static inline const adj_comparison *comparison_with(adj_graph *g, adj_compare_opts o,
                                                    adj_trial_opts trials)
{
    const adj_comparison *c = NULL;
    o.runs = 1;
    o.exec.threads += o.exec.threads == 0;
    cr_assert_eq(adj_compare_with(g, &o, &trials, &c), ADJ_OK, "%s", c->message);
    return c;
}

/* Compares all that the roots depend on under these configurations; more: other options. */
static inline const adj_comparison *comparison_of(int n_root, adj_node *const root[], int n_config,
                                                  const char *const config[], adj_compare_opts more)
{
    more.exec.n_fetch = n_root;
    more.exec.fetch = root;
    more.n_config = n_config;
    more.config = config;
    return comparison_with(adj_node_graph(root[0]), more, (adj_trial_opts){0});
}

/* Compares all that root depends on under naive:f64 and config; more, trials: other options. */
static inline const adj_comparison *compared_with(adj_node *root, const char *config,
                                                  adj_compare_opts more, adj_trial_opts trials)
{
    const char *const configs[] = {"naive:f64", config};
    more.exec.n_fetch = 1;
    more.exec.fetch = &root;
    more.n_config = 2;
    more.config = configs;
    return comparison_with(adj_node_graph(root), more, trials);
}

static inline const adj_comparison *compared(adj_node *root, const char *config,
                                             adj_compare_opts more)
{
    return compared_with(root, config, more, (adj_trial_opts){0});
}

/* Returns the configuration's row for that node or fused group, such as "conv2d+bias_add"; NULL:
 * none.
 */
static inline const compare_row *row_named(const adj_comparison *c, int config, const char *name)
{
    for (int i = 0; i < c->n_row; i++)
        if (adj_comparison_row_at(c, i)->config == config &&
            strcmp(adj_compare_row_name(adj_comparison_row_at(c, i)), name) == 0)
            return adj_comparison_row_at(c, i);
    return NULL;
}

/* Expects every row to pass. */
static inline void expect_all_pass(const adj_comparison *c, const char *label)
{
    for (int i = 0; i < c->n_row; i++) {
        const compare_row *row = adj_comparison_row_at(c, i);
        cr_expect_eq(row->verdict, ADJ_VERDICT_PASS, "%s: %s %s: %s", label,
                     c->config[row->config].name, adj_compare_row_name(row), row->reason);
    }
}

#endif
