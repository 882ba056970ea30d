/* test_compare_pass.c - a pass that changes the graph's values is named and blamed for the wrong
 * nodes. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "adjoint_nn.h"
#include "graph/op.h"
#include "tests/check/checked.h"

static void plan_as_usual(void) { unsetenv("ADJOINT_PLAN"); }
TestSuite(compare_pass, .init = plan_as_usual);

static adj_node *square_and_more(const adj_node *n, adj_node *const in[])
{
    (void)n;
    return adj_scale(adj_mul(in[0], in[0]), 1.05);
}

/* batch norm's own. */
static adj_node *(*fold)(const adj_node *n, adj_node *const in[]);

static adj_node *fold_and_more(const adj_node *n, adj_node *const in[])
{
    adj_node *folded = fold(n, in);
    return folded != NULL ? adj_scale(folded, 1.05) : NULL;
}

/* An op's own rules, where the library reads them: no list of ops can be given. */
static void plant(const adj_op *op, adj_op planted)
{
    const union {
        const adj_op *read;
        adj_op *written;
    } place = {.read = op};
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), in_page = (uintptr_t)op % page;
    cr_assert_eq(
        mprotect((char *)place.written - in_page, in_page + sizeof planted, PROT_READ | PROT_WRITE),
        0);
    memcpy(place.written, &planted, sizeof planted);
}

static adj_node *squares(adj_graph *g)
{
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){1, {40}});
    return adj_add(adj_square(x), x);
}

/* Returns a convolution and an inference batch norm, whose fixed statistics are folded into the
 * filter. */
static adj_node *convolution_and_norm(adj_graph *g)
{
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {2, 5, 5, 3}});
    adj_node *w = adj_param(g, "w", ADJ_F32, (adj_shape){4, {3, 3, 3, 4}}, adj_init_normal(0, 1));
    adj_node *stats = adj_state(g, "stats", ADJ_F32, (adj_shape){2, {2, 4}}, adj_init_constant(1));
    adj_node *gamma = adj_param(g, "gamma", ADJ_F32, (adj_shape){1, {4}}, adj_init_constant(1));
    adj_node *beta = adj_param(g, "beta", ADJ_F32, (adj_shape){1, {4}}, adj_init_constant(0));
    const adj_conv same = {.padding = ADJ_SAME};
    return adj_batch_norm(adj_conv2d(x, w, &same), stats, gamma, beta, 1e-3, ADJ_NHWC);
}

static void compare(adj_node *(*build)(adj_graph *g), const char *says)
{
    adj_graph *g = adj_graph_new();
    const adj_comparison *c = compared(build(g), "direct", (adj_compare_opts){.exec.seed = 1});
    const compare_result r = adj_comparison_result_at(c, 1);
    cr_expect_eq(r.verdict, says[0] != '\0' ? ADJ_VERDICT_FAIL : ADJ_VERDICT_PASS);
    cr_expect_eq(strncmp(r.reason, says, strlen(says)), 0, "%s", r.reason);
    for (int i = 0; i < c->n_row; i++) {
        const compare_row *row = adj_comparison_row_at(c, i);
        cr_expect(row->verdict == ADJ_VERDICT_PASS || row->blame == ADJ_BLAME_PLAN, "%s: %s",
                  adj_compare_row_name(row), row->reason);
    }
    adj_comparison_free(c);
    adj_graph_free(g);
}

Test(compare_pass, is_named)
{
    adj_op planted = adj_op_square;
    planted.simplify = square_and_more;
    compare(squares, "");
    plant(&adj_op_square, planted);
    compare(squares, "pass simplify changes %2 add by 0.0");
}

/* The graph of compare --infer. */
Test(compare_pass, folding_is_named)
{
    adj_op planted = adj_op_batch_norm;
    fold = planted.fold;
    planted.fold = fold_and_more;
    compare(convolution_and_norm, "");
    plant(&adj_op_batch_norm, planted);
    compare(convolution_and_norm, "pass fold changes ");
}
