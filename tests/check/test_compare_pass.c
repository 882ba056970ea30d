/* test_compare_pass.c - a pass that changes what the graph computes is named, though every
 * configuration, the reference too, runs what it has made. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "adjoint_check.h"
#include "adjoint_ext.h"

static void plan_as_usual(void) { unsetenv("ADJOINT_PLAN"); }
TestSuite(compare_pass, .init = plan_as_usual);

static adj_node *square_and_more(const adj_node *n, adj_node *const in[])
{
    (void)n;
    return adj_scale(adj_mul(in[0], in[0]), 1.05);
}

/* The op's own rule, where the library reads it: no list of ops can be given. */
static void plant_rule(void)
{
    const union {
        const adj_op *read;
        adj_op *written;
    } op = {.read = &adj_op_square};
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), in_page = (uintptr_t)op.read % page;
    adj_op planted = adj_op_square;
    planted.simplify = square_and_more;
    cr_assert_eq(
        mprotect((char *)op.written - in_page, in_page + sizeof planted, PROT_READ | PROT_WRITE),
        0);
    memcpy(op.written, &planted, sizeof planted);
}

static void compare(const char *says)
{
    static const char *const configs[] = {"naive:f64", "direct"};
    adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){1, {40}});
    adj_node *y = adj_add(adj_square(x), x);
    adj_comparison *c;
    const adj_compare_opts o = {.n_root = 1,
                                .root = &y,
                                .n_config = 2,
                                .config = configs,
                                .seed = 1,
                                .runs = 1,
                                .threads = 1};
    cr_assert_eq(adj_compare(g, &o, &c), ADJ_OK, "%s", adj_comparison_message(c));
    const adj_compare_config_result r = adj_comparison_result_at(c, 1);
    cr_expect_eq(r.verdict, says[0] != '\0' ? ADJ_VERDICT_FAIL : ADJ_VERDICT_PASS);
    cr_expect_eq(strncmp(r.reason, says, strlen(says)), 0, "%s", r.reason);
    cr_expect_eq(adj_comparison_failed_count(c), 0);
    adj_comparison_free(c);
    adj_graph_free(g);
}

Test(compare_pass, is_named)
{
    compare("");
    plant_rule();
    compare("pass simplify changes %2 add by 0.0");
}
