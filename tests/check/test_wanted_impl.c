/* test_wanted_impl.c - an implementation requested by name is found at any position among
 * candidates and backends; if it does not exist, the report says so. Each planted implementation
 * writes its own number, so the values show which one ran. */
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include "graph/op.h"
#include "tests/check/checked.h"
#include "tests/reference.h"

/* The candidates of a backend's relu, the quickest by its own estimate first. */
typedef struct {
    const char *impl;
    float leaves;
} planted;
static const planted first[] = {{"first:one", 11}, {"first:two", 12}, {"first:three", 13}};
static const planted second[] = {{"second:one", 21}, {"second:two", 22}};

static adj_status offer(const planted list[], int n, double seconds, const adj_group *g,
                        int candidate, adj_prep *p)
{
    if (g->n_node > 1 || g->node[0]->op != &adj_op_relu || candidate >= n ||
        g->node[0]->type.dtype != ADJ_F32)
        return ADJ_ENOKERNEL;
    p->in[0] = p->out[0] = NULL;
    p->seconds = seconds * (candidate + 1);
    p->state = (void *)&list[candidate];
    snprintf(p->impl, sizeof p->impl, "%s", list[candidate].impl);
    return ADJ_OK;
}

static adj_status offer_first(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    return offer(first, 3, 1e-9, g, candidate, p);
}

static adj_status offer_second(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    return offer(second, 2, 1e-3, g, candidate, p);
}

static adj_status leave_number(const adj_call *c)
{
    const planted *p = c->state;
    for (int64_t i = 0; i < adj_shape_elems(c->group->node[0]->type.shape); i++)
        ((float *)c->out[0])[i] = p->leaves;
    return ADJ_OK;
}

static const adj_kernel first_kernel = {
    .name = "relu", .prepare = offer_first, .run = leave_number};
static const adj_kernel second_kernel = {
    .name = "relu", .prepare = offer_second, .run = leave_number};
static const adj_kernel *const first_kernels[] = {&first_kernel, NULL};
static const adj_kernel *const second_kernels[] = {&second_kernel, NULL};
static const adj_backend first_backend = {.version = ADJ_VERSION,
                                          .name = "first",
                                          .open = open_nothing,
                                          .close = close_nothing,
                                          .kernels = first_kernels};
static const adj_backend second_backend = {.version = ADJ_VERSION,
                                           .name = "second",
                                           .open = open_nothing,
                                           .close = close_nothing,
                                           .kernels = second_kernels};

static const adj_backend *const *backends(void)
{
    static const adj_backend *list[4] = {&first_backend, &second_backend};
    list[2] = naive_backend();
    return list;
}

static const adj_comparison *compare_relu(adj_graph *g, const char *config)
{
    return compared(adj_relu(adj_input(g, "x", ADJ_F32, (adj_shape){1, {6}})), config,
                    (adj_compare_opts){.exec.backends = backends()});
}

/* got: 0 where the result is right, as naive's. */
static const struct {
    const char *config, *implementation;
    double got;
    int other;
} cases[] = {
    {"first", "first:one", 11, 0},
    {"first:impl=two", "first:two", 12, 0}, /* not the second backend's: the first that has it */
    {"first:impl=three", "first:three", 13, 0},
    {"first:impl=second", "second:one", 21, 0},
    {"first:impl=naive", "naive:f32", 0, 0},
    {"second:impl=two", "second:two", 22, 0},
    {"first:impl=xyz", "first:one", 11, 1},
};

/* Plans are looked at here: no other ones, whatever all tests are run with. */
static void plan_as_usual(void) { unsetenv("ADJOINT_PLAN"); }
TestSuite(wanted_impl, .init = plan_as_usual);

Test(wanted_impl, is_reached)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        adj_graph *g = adj_graph_new();
        const adj_comparison *c = compare_relu(g, cases[i].config);
        const compare_row *row = adj_comparison_row_at(c, 0);
        cr_expect_str_eq(row->implementation, cases[i].implementation, "%s", cases[i].config);
        cr_expect_eq(row->isolated.got, cases[i].got, "%s: %g", cases[i].config, row->isolated.got);
        cr_expect_eq(row->other_impl, cases[i].other, "%s", cases[i].config);
        if (cases[i].other)
            cr_expect_str_eq(row->why,
                             "no implementation's name contains \"xyz\"; ran first first:one");
        adj_comparison_free(c);
        adj_graph_free(g);
    }
}

/* The gradient is naive's. */
Test(wanted_impl, gradcheck_says_what_ran)
{
    static const struct {
        const char *impl, *reason;
        adj_gradcheck_result verdict;
        int nodes;
    } checks[] = {
        {NULL, "", ADJ_GRADCHECK_PASS, 0},
        {"naive", "", ADJ_GRADCHECK_PASS, 1},
        {"xyz", "no implementation's name contains \"xyz\"; ran naive naive:f32",
         ADJ_GRADCHECK_INCONCLUSIVE, 0},
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        adj_graph *g = adj_graph_new();
        adj_node *y = adj_relu(adj_input(g, "x", ADJ_F32, (adj_shape){1, {6}}));
        const adj_gradcheck_opts o = {.exec.backend = "naive",
                                      .exec.threads = 1,
                                      .exec.backends = backends(),
                                      .exec.debug = &(adj_exec_debug){.impl = checks[i].impl}};
        const adj_gradcheck_report *r = checked(y, &o);
        cr_expect_str_eq(r->row[0].reason, checks[i].reason);
        cr_expect_eq(r->verdict, checks[i].verdict);
        cr_expect_eq(adj_gradcheck_conditions(r).impl_nodes, checks[i].nodes);
        adj_gradcheck_free(r);
        adj_graph_free(g);
    }
}
