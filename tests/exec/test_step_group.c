/* test_step_group.c - groups of a plan's steps: nodes of the executor's graph, and layouts of
 * operands and results. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "exec/report.h"
#include "graph/op.h"
#include "tests/plan.h"

/* relu(conv2d(x, w)) on 8x6 images in NCHW. */
static adj_exec *plan(adj_graph *g, const char *backend)
{
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {2, 16, 8, 6}});
    adj_node *w = adj_input(g, "w", ADJ_F32, (adj_shape){4, {3, 3, 16, 32}});
    adj_node *y = adj_relu(adj_conv2d(x, w, &(adj_conv){.format = ADJ_NCHW}));
    const adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .backend = backend, .threads = 1};
    return plan_of(g, &o);
}

TestSuite(step_group, .init = plan_as_usual);

/* The convolution's step; -1: there is none. */
static int conv_step(const adj_exec *e)
{
    int i = adj_exec_step_count(e) - 1;
    while (i >= 0 && strcmp(adj_exec_step_at(e, i).op, "conv2d") != 0)
        i--;
    return i;
}

Test(step_group, as_the_executor_computes_it)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    scoped(release_exec) adj_exec *e = plan(g, "naive");
    int step = conv_step(e);
    const adj_group *group = adj_exec_step_group(e, step);
    cr_assert_not_null(group);
    cr_assert_eq(group->n_node, adj_exec_step_at(e, step).n_node);
    const adj_node *conv = group->node[0];
    cr_expect_str_eq(conv->op->name, "conv2d");
    cr_expect_neq(conv->graph, g);
    cr_expect_str_eq(adj_exec_step_layout(e, step, conv->in[0]), "plain");
    cr_expect_str_eq(adj_exec_step_layout(e, step, conv->in[1]), "plain");
    cr_expect_str_eq(adj_exec_step_layout(e, step, group->out[0]), "plain");
}

/* oneDNN lays out the filter as it likes: in a layout of its own after a reorder, or plain. */
Test(step_group, layouts)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    scoped(release_exec) adj_exec *e = plan(g, "onednn");
    int step = conv_step(e);
    const adj_group *group = adj_exec_step_group(e, step);
    cr_assert_not_null(group);
    cr_expect(adj_shape_equal(group->node[0]->in[0]->type.shape, (adj_shape){4, {2, 8, 6, 16}}),
              "images are NHWC there");
    const char *filter = adj_exec_step_layout(e, step, group->node[0]->in[1]);
    cr_expect_str_not_empty(filter);
    cr_expect_eq(strcmp(filter, "plain") != 0, adj_exec_details(e).reorders > 0, "%s, %d reorders",
                 filter, adj_exec_details(e).reorders);
}

Test(step_group, nothing)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    scoped(release_exec) adj_exec *e = plan(g, "naive");
    int step = conv_step(e), n = adj_exec_step_count(e);
    const adj_node *elsewhere = adj_graph_node_at(g, 0);
    cr_expect_null(adj_exec_step_group(e, -1));
    cr_expect_null(adj_exec_step_group(e, n));
    cr_expect_null(adj_exec_step_group(NULL, 0));
    cr_expect_str_empty(adj_exec_step_layout(e, step, elsewhere));
    cr_expect_str_empty(adj_exec_step_layout(e, n, elsewhere));
}
