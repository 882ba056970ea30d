/* test_compare_memory.c - a kernel that is right alone but wrong in place: the whole graph's
 * results differ from a run without shared memory, and compare names the values; compare also finds
 * it on the node alone, where it tries each in-place claim. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "tests/check/checked.h"
#include "tests/reference.h"

enum { N = 24 };
static int is_claimed;
static int leaves_unwritten; /* the last, where the operand is no leaf */

/* ---- relu that clears its result first ---- */

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    if (candidate > 0 || g->n_node > 1 || strcmp(g->node[0]->op->name, "relu") != 0 ||
        g->node[0]->type.dtype != ADJ_F32)
        return ADJ_ENOKERNEL;
    p->alias[0] = (adj_alias){.out = 0, .operands = is_claimed ? 1U : 0U};
    strcpy(p->impl, "clears");
    return ADJ_OK;
}

static adj_status run(const adj_call *c)
{
    const float *x = c->in[0];
    float *y = c->out[0];
    const int n = N - (leaves_unwritten && c->group->node[0]->in[0]->n_in > 0);
    memset(y, 0, (size_t)n * sizeof *y);
    for (int i = 0; i < n; i++)
        y[i] = x[i] > 0 || isnan(x[i]) ? x[i] : 0;
    return ADJ_OK;
}

static const adj_kernel kernel = {.name = "relu", .prepare = prepare, .run = run};
static const adj_kernel *const kernels[] = {&kernel, NULL};
static const adj_backend planted = {.version = ADJ_VERSION,
                                    .name = "planted",
                                    .open = open_nothing,
                                    .close = close_nothing,
                                    .kernels = kernels};

static void plan_as_usual(void) { unsetenv("ADJOINT_PLAN"); }
TestSuite(compare_memory, .init = plan_as_usual);

static const adj_comparison *compare(adj_graph *g)
{
    const adj_backend *const backends[] = {&planted, naive_backend(), NULL};
    const adj_shape one = {1, {N}}, none = {1, {0}};
    adj_node *x = adj_input(g, "x", ADJ_F32, one), *sum = adj_add(x, x);
    if (leaves_unwritten) /* "bent" then lies over a value that is no longer needed */
        sum = adj_slice(adj_pad(sum, none, one), one, one);
    adj_node *y = adj_mul(adj_label(adj_relu(adj_label(sum, "sum")), "bent"), x);
    return compared(y, "planted", (adj_compare_opts){.exec.seed = 1, .exec.backends = backends});
}

/* The node is right alone, but not in place, which is tried; what reads it is fed wrong numbers. */
static void expect_row(const compare_row *row)
{
    const char *op = adj_node_op(row->node);
    const int is_relu = is_claimed && strcmp(op, "relu") == 0;
    const int is_fed = is_claimed && strcmp(op, "mul") == 0;
    cr_expect_eq(row->verdict, is_relu ? ADJ_VERDICT_FAIL : ADJ_VERDICT_PASS, "%s", op);
    cr_expect_eq(row->blame,
                 is_relu  ? ADJ_BLAME_KERNEL
                 : is_fed ? ADJ_BLAME_UPSTREAM
                          : ADJ_BLAME_NONE,
                 "%s", op);
    cr_expect_str_eq(row->reason, !is_relu
                                      ? ""
                                      : "memory: relu by clears computed in place of operand 0 "
                                        "differs from its result in separate memory");
    cr_expect(row->isolated.wrong == 0 && row->repeats, "%s", op);
}

Test(compare_memory, a_false_claim_to_work_in_place)
{
    for (is_claimed = 0; is_claimed < 2; is_claimed++) {
        adj_graph *g = adj_graph_new();
        const adj_comparison *c = compare(g);
        const compare_result reference = adj_comparison_result_at(c, 0),
                             r = adj_comparison_result_at(c, 1);
        cr_expect_eq(reference.verdict, ADJ_VERDICT_PASS, "%s", reference.reason);
        cr_expect_eq(r.verdict, is_claimed ? ADJ_VERDICT_FAIL : ADJ_VERDICT_PASS, "%s", r.reason);
        cr_expect_str_eq(r.reason, !is_claimed
                                       ? ""
                                       : "memory: relu \"bent\" computed in place of add \"sum\" "
                                         "differs from its result in separate memory");
        for (int i = 0; i < c->n_row; i++)
            expect_row(adj_comparison_row_at(c, i));
        adj_comparison_free(c);
        adj_graph_free(g);
    }
}

/* Nothing is written over: what is left is what the memory held, in which plans differ. */
Test(compare_memory, a_kernel_that_leaves_some_unwritten)
{
    leaves_unwritten = 1;
    adj_graph *g = adj_graph_new();
    const adj_comparison *c = compare(g);
    const compare_result r = adj_comparison_result_at(c, 1);
    cr_expect_eq(r.verdict, ADJ_VERDICT_FAIL);
    cr_expect_str_eq(r.reason, "relu \"bent\" depends on what its memory held before: its kernel "
                               "leaves some of it unwritten, or reads uninitialized memory");
    adj_comparison_free(c);
    adj_graph_free(g);
}
