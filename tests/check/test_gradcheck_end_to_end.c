/* test_gradcheck_end_to_end.c - faults that no single node shows: rules that inspect the producer
 * of an operand, and gradients that are wrong end to end.
 *
 * The faults are in the rule of a planted op, y = 2 x, which simplifies to a scale before it is
 * run: for a chain of that many of these ops, it gives 3. */
#include <math.h>
#include <string.h>

#include "tests/check/checked.h"

static int fault_depth; /* 0: the rule is right */

static int chain_of(const adj_node *n)
{
    return n->n_in > 0 && n->in[0]->op == n->op ? 1 + chain_of(n->in[0]) : 0;
}

static void twice_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    const int is_wrong = fault_depth > 0 && chain_of(y) >= fault_depth;
    dx[0] = adj_scale(dy, is_wrong ? 3 : 2);
}

static adj_node *twice_simplify(const adj_node *n, adj_node *const in[])
{
    (void)n;
    return adj_scale(in[0], 2);
}

static const adj_op op_twice = {.name = "twice",
                                .n_in = 1,
                                .flags = ADJ_OP_ELEMENTWISE,
                                .linear_in = ADJ_IN(0),
                                .grad = twice_grad,
                                .simplify = twice_simplify};

static adj_node *twice(adj_node *x) { return adj_node_new1(&op_twice, x, NULL); }

static adj_node *sum(adj_node *x) { return adj_reduce_sum(x, (adj_axes){.n = ADJ_ALL}); }

static adj_node *param(adj_graph *g, const char *name, int64_t n)
{
    return adj_param(g, name, ADJ_F32, (adj_shape){1, {n}},
                     (adj_init){.kind = ADJ_INIT_UNIFORM, .a = 0.5, .b = 1});
}

static const adj_gradcheck_report *checked_with_seed(adj_node *y, uint64_t seed)
{
    const adj_gradcheck_opts o = {.exec.threads = 1, .exec.seed = seed};
    const adj_gradcheck_report *r;
    cr_assert_eq(adj_gradcheck(y, &o, &r), ADJ_OK, "%s", r->message);
    return r;
}

static const adj_gradcheck_report *checked_whole(adj_node *y) { return checked_with_seed(y, 0); }

static const gradcheck_detail *row_of(const adj_gradcheck_report *r, const char *name,
                                      const char *wrt)
{
    for (int i = 0; i < r->n_row; i++) {
        const gradcheck_detail *row = adj_gradcheck_row_at(r, i);
        if (strcmp(row->name, name) == 0 && strcmp(row->wrt, wrt) == 0)
            return row;
    }
    return NULL;
}

/* A value that is read twice, one that is stopped, statistics of another tensor. */
Test(gradcheck_whole, a_row_for_each_leaf)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    const adj_shape shape = {4, {2, 5, 4, 3}};
    adj_node *x = adj_input(g, "x", ADJ_F32, shape), *z = adj_input(g, "z", ADJ_F32, shape);
    adj_node *k = adj_relu(x), *stats = adj_batch_norm_stats(z, ADJ_NHWC);
    adj_node *gamma = param(g, "gamma", 3), *beta = param(g, "beta", 3);
    adj_node *y = adj_batch_norm(k, stats, gamma, beta, 1e-3, ADJ_NHWC);
    adj_node *loss = sum(adj_mul(adj_square(y), adj_stop_gradient(adj_sigmoid(y))));
    scoped(release_gradcheck) const adj_gradcheck_report *r = checked_whole(loss);
    static const char *const leaves[] = {"x", "z", "gamma", "beta"};
    for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++) {
        const gradcheck_detail *row = row_of(r, leaves[i], "end to end");
        cr_assert_not_null(row, "%s", leaves[i]);
        cr_expect_eq(row->result, ADJ_GRADCHECK_PASS, "%s", leaves[i]);
        cr_expect_lt(row->worst_rel, 1e-6, "%s: %g", leaves[i], row->worst_rel);
    }
    char name[16];
    snprintf(name, sizeof name, "%%%d", adj_node_id(y));
    cr_expect_not_null(row_of(r, name, "batch_norm_stats/x"));
    cr_expect_eq(r->verdict, ADJ_GRADCHECK_PASS);
}

/* The gradient of x s, s = stop(x^2), is s: the difference of the whole would be 3 x^2. One node
 * alone has no row from end to end. */
Test(gradcheck_whole, what_is_stopped_stays)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = param(g, "x", 5);
    scoped(release_gradcheck)
        const adj_gradcheck_report *r = checked_whole(
                                       sum(adj_mul(x, adj_stop_gradient(adj_square(x))))),
                                   *alone = checked_whole(adj_square(x));
    const gradcheck_detail *row = row_of(r, "x", "end to end");
    cr_assert_not_null(row);
    cr_expect_eq(row->result, ADJ_GRADCHECK_PASS);
    cr_expect_null(row_of(alone, "x", "end to end"));
}

static const adj_gradcheck_report *check_chain(adj_graph *g, int length, int depth)
{
    adj_node *y = param(g, "w", 4);
    for (int i = 0; i < length; i++)
        y = twice(y);
    fault_depth = depth;
    const adj_gradcheck_report *r = checked_whole(sum(adj_square(y)));
    fault_depth = 0;
    return r;
}

/* A rule that looks at its operands' producers: the node's own rows find it, and it is checked
 * though an equal node over leaves was. */
Test(gradcheck_whole, rules_that_look_at_producers)
{
    for (int depth = 0; depth <= 2; depth++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        scoped(release_gradcheck) const adj_gradcheck_report *r = check_chain(g, depth + 1, depth);
        const gradcheck_detail *whole = row_of(r, "w", "end to end");
        int wrong = 0;
        for (int i = 0; i < r->n_row; i++) {
            const gradcheck_detail *row = adj_gradcheck_row_at(r, i);
            if (row->result == ADJ_GRADCHECK_FAIL && strcmp(row->op, "twice") == 0) {
                cr_expect_eq(row->fault, ADJ_FAULT_RULE);
                wrong++;
            }
        }
        cr_expect_eq(wrong, depth > 0, "depth %d", depth);
        cr_assert_not_null(whole);
        cr_expect_eq(whole->result, depth > 0 ? ADJ_GRADCHECK_FAIL : ADJ_GRADCHECK_PASS);
        cr_expect_eq(whole->fault, depth > 0 ? ADJ_FAULT_RULE : ADJ_FAULT_NONE);
    }
}

/* Deeper than the closure of a node: the whole fails, and the first wrong gradient names the rule.
 */
Test(gradcheck_whole, the_first_wrong_gradient_names_the_rule)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    scoped(release_gradcheck) const adj_gradcheck_report *r = check_chain(g, 5, 4);
    const gradcheck_detail *whole = row_of(r, "w", "end to end");
    cr_assert_not_null(whole);
    cr_expect_eq(whole->result, ADJ_GRADCHECK_FAIL);
    cr_expect_eq(whole->fault, ADJ_FAULT_RULE);
    expect_text(whole->blame, "from the result down");
    expect_text(whole->blame, "rule of twice (%5)");
    cr_expect_float_eq(whole->analytic / whole->numeric, 1.5, 1e-5);
    cr_expect_eq(r->n_result[ADJ_GRADCHECK_FAIL], 1);
}

/* x / s rounded to an integer, plus 0 or 1: values lie exactly at clip's kink at 0, where slopes of
 * both signs cancel. Gradients pass through the rounding, which is stopped. A wrong rule of a leaf
 * without kinks is found beside them. */
static adj_node *at_kinks(adj_graph *g)
{
    const adj_shape shape = {2, {6, 3}}, row = {2, {1, 3}};
    adj_node *x = adj_input(g, "x", ADJ_F64, shape), *s = adj_input(g, "s", ADJ_F64, row);
    adj_node *ratio = adj_div(x, s), *large = adj_fill_like(ratio, 0x1.8p52);
    adj_node *whole = adj_sub(adj_add(ratio, large), large);
    adj_node *passed = adj_add(ratio, adj_stop_gradient(adj_sub(whole, ratio)));
    adj_node *shift = adj_cast(adj_input(g, "z", ADJ_I32, row), ADJ_F64);
    double weight[18];
    for (int i = 0; i < 18; i++)
        weight[i] = cos(i + 1.0);
    return sum(
        adj_mul(adj_clip(adj_add(passed, shift), 0, 255), adj_const(g, ADJ_F64, shape, weight)));
}

Test(gradcheck_whole, values_at_kinks)
{
    int n_reason = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        adj_node *y = at_kinks(g), *wrong = param(g, "w", 4);
        fault_depth = 4;
        for (int i = 0; i < 5; i++)
            wrong = twice(wrong);
        scoped(release_gradcheck) const adj_gradcheck_report *r =
            checked_with_seed(adj_add(y, adj_cast(sum(adj_square(wrong)), ADJ_F64)), seed);
        fault_depth = 0;
        const gradcheck_detail *x = row_of(r, "x", "end to end");
        cr_expect_neq(x->result, ADJ_GRADCHECK_FAIL, "%d: %s", (int)seed, x->blame);
        n_reason += strcmp(x->reason, "values lie exactly at kinks") == 0;
        const gradcheck_detail *found = row_of(r, "w", "end to end");
        cr_expect(found->result == ADJ_GRADCHECK_FAIL &&
                      strstr(found->blame, "rule of twice") != NULL,
                  "%d: %s", (int)seed, found->blame);
    }
    cr_expect_gt(n_reason, 0);
}
