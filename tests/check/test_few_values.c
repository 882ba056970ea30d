/* test_few_values.c - group norm over groups of one and of two values: x - mean(x) and the terms of
 * dx cancel, so that a sound kernel's error is as large as dx. Neither checker blames direct's
 * kernels for it, and the bound stays that of a rounded term. */
#include <string.h>

#include "graph/op.h"
#include "ops/grad.h"
#include "tests/check/checked.h"

enum { CHANNELS = 8, SEEDS = 6 };
static const adj_shape shapes[] = {{2, {16, CHANNELS}}, {4, {3, 2, 1, CHANNELS}}};
static const double epsilons[] = {1e-3, 1e-5};

typedef struct {
    adj_graph *g;
    adj_node *y, *dx;
} norm;

static norm build(int i)
{
    norm n = {.g = adj_graph_new()};
    const adj_shape c = {1, {CHANNELS}};
    const int64_t groups = i / 2 % 2 ? CHANNELS : CHANNELS / 2;
    adj_node *x = adj_input(n.g, "x", ADJ_F32, shapes[i % 2]);
    adj_node *dy = adj_input(n.g, "dy", ADJ_F32, shapes[i % 2]);
    adj_node *gamma = adj_input(n.g, "gamma", ADJ_F32, c),
             *beta = adj_input(n.g, "beta", ADJ_F32, c);
    n.y = adj_group_norm(x, gamma, beta, groups, epsilons[i / 4], ADJ_NHWC);
    n.dx = adj_group_norm_grad(x, gamma, dy, groups, epsilons[i / 4], ADJ_NHWC);
    return n;
}

Test(few_values, compare)
{
    static const char *const configs[] = {"naive:f64", "direct", "naive"};
    for (int i = 0; i < 8 * SEEDS; i++) {
        norm n = build(i % 8);
        adj_node *const root[] = {n.y, n.dx};
        const adj_compare_opts o = {.exec.n_fetch = 2,
                                    .exec.fetch = root,
                                    .n_config = 3,
                                    .config = configs,
                                    .runs = 1,
                                    .exec.seed = (uint64_t)(1 + i / 8)};
        const adj_comparison *c;
        cr_assert_eq(adj_compare(n.g, &o, &c), ADJ_OK, "%s", c->message);
        cr_expect_eq(c->n_row, 4);
        cr_expect_eq(c->n_failed, 0, "case %d, seed %d", i % 8, 1 + i / 8);
        cr_expect_eq(c->n_whole_failed, 0);
        for (int k = 0; k < c->n_row; k++) /* |dx| of a term is up to 1e3 */
            cr_expect_lt(adj_comparison_row_at(c, k)->isolated.bound, 5e-3);
        adj_comparison_free(c);
        adj_graph_free(n.g);
    }
}

Test(few_values, gradcheck)
{
    for (int i = 0; i < 8 * SEEDS; i++) {
        norm n = build(i % 8);
        const adj_gradcheck_opts o = {.exec.backend = "direct", .exec.seed = (uint64_t)(1 + i / 8)};
        const adj_gradcheck_report *r = checked(n.y, &o);
        cr_expect_eq(r->verdict, ADJ_GRADCHECK_PASS, "case %d, seed %d", i % 8, 1 + i / 8);
        adj_gradcheck_free(r);
        adj_graph_free(n.g);
    }
}
