/* test_op_neighbors.c - a kernel that is wrong for more than eight images, or for channels that
 * fill no block of eight, is right for an op's own shape and found by the shapes around it. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_check.h"
#include "cli/op/variants.h"
#include "graph/op.h"
#include "tests/reference.h"

static enum { MANY_IMAGES, ODD_CHANNELS } planted;

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    if (g->node[0]->type.dtype != ADJ_F32)
        return ADJ_ENOKERNEL;
    return naive_backend()->kernels[0]->prepare(backend, g, candidate, p);
}

static adj_status run(const adj_call *c)
{
    const adj_shape s = c->group->node[0]->type.shape;
    adj_status status = naive_backend()->kernels[0]->run(c);
    float *y = c->out[0];
    if (planted == MANY_IMAGES ? s.dim[0] > 8 : s.dim[s.rank - 1] % 8 != 0)
        y[adj_shape_elems(s) - 1] += 1;
    return status;
}

static const adj_kernel kernel = {.name = "edges", .prepare = prepare, .run = run};
static const adj_kernel *const kernels[] = {&kernel, NULL};
static const adj_backend edges = {.version = ADJ_VERSION,
                                  .name = "edges",
                                  .open = open_nothing,
                                  .close = close_nothing,
                                  .kernels = kernels};

static void plan_as_usual(void) { unsetenv("ADJOINT_PLAN"); }
TestSuite(op_neighbors, .init = plan_as_usual);

static int is_right(adj_graph *g, adj_node *y)
{
    static const char *const configs[] = {"naive:f64", "edges"};
    const adj_backend *const backends[] = {&edges, naive_backend(), NULL};
    const adj_compare_opts o = {.exec.n_fetch = 1,
                                .exec.fetch = &y,
                                .n_config = 2,
                                .config = configs,
                                .runs = 1,
                                .exec.threads = 1,
                                .exec.backends = backends};
    const adj_comparison *c = NULL;
    cr_assert_eq(adj_compare(g, &o, &c), ADJ_OK, "%s", c->message);
    const int failed = c->n_failed;
    adj_comparison_free(c);
    return failed == 0;
}

static void expect_found(const op_args *args)
{
    adj_error error;
    op_text text;
    int found = 0;
    adj_graph *g = adj_graph_new();
    adj_node *y = op_args_build(args, g, &error);
    cr_assert_not_null(y, "%s", error.message);
    cr_expect(is_right(g, y), "%s", args->op);
    for (int i = 0; op_neighbor(y, i, &text) && !found; i++)
        if (op_is_possible(&text.args))
            found = !is_right(g, op_args_build(&text.args, g, NULL));
    cr_expect(found, "%s, fault %d", args->op, (int)planted);
    adj_graph_free(g);
}

Test(op_neighbors, find_what_is_wrong_beside_an_ops_own_shape)
{
    static const op_args ops[] = {{.op = "conv2d", .in = "2,6,6,8", .filter = "3,3,8,16"},
                                  {.op = "max_pool", .in = "2,6,6,8", .attr = "ksize=1,2,2,1"},
                                  {.op = "relu", .in = "2,6,6,8"}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        planted = MANY_IMAGES;
        expect_found(&ops[i]);
        planted = ODD_CHANNELS;
        expect_found(&ops[i]);
    }
}
