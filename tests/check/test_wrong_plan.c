/* test_wrong_plan.c - gradcheck and compare blame the plan for a refused plan, not a kernel, as
 * none has run, nor the caller. */
#include <string.h>

#include "graph/op.h"
#include "ops/grad.h"
#include "tests/check/checked.h"
#include "tests/plan.h"
#include "tests/reference.h"

/* A layout whose size grows with each call, so that no slot has the right size. */
struct adj_layout {
    int unused;
};
static const adj_layout growing;
static size_t told = 1024;

static size_t more_bytes(const adj_layout *l)
{
    (void)l;
    return told += 64;
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    const char *op = g->node[0]->op->name;
    const int is_one =
        strcmp(op, "relu") == 0 || strcmp(op, "relu_grad") == 0 || strcmp(op, "sgd_step") == 0;
    if (!is_one || g->node[0]->type.dtype != ADJ_F32 || candidate > 0)
        return ADJ_ENOKERNEL;
    p->in[0] = &growing;
    strcpy(p->impl, "never run");
    return ADJ_OK;
}

static adj_status run(const adj_call *c)
{
    cr_assert_null(c, "a refused plan was run");
    return ADJ_OK;
}

static adj_status prepare_reorder(void *backend, const adj_layout *from, const adj_layout *to,
                                  adj_type type, void **state, size_t *scratch)
{
    (void)backend, (void)from, (void)to, (void)type;
    *state = NULL;
    *scratch = 0;
    return ADJ_OK;
}

static const adj_kernel kernel = {.name = "planted", .prepare = prepare, .run = run};
static const adj_kernel *const kernels[] = {&kernel, NULL};
static const adj_backend planted = {.version = ADJ_VERSION,
                                    .name = "planted",
                                    .open = open_nothing,
                                    .close = close_nothing,
                                    .kernels = kernels,
                                    .layout_bytes = more_bytes,
                                    .reorder_prepare = prepare_reorder};

static const char wrong[] = "plan: step 0 (reorder of input \"in0\") finds a slot of another size "
                            "for input \"in0\" in packed";

static void list_backends(const adj_backend *list[3])
{
    list[0] = &planted;
    list[1] = naive_backend();
    list[2] = NULL;
}

static void expect_gradcheck(adj_node *n)
{
    const adj_backend *list[3];
    list_backends(list);
    const adj_gradcheck_opts o = {
        .exec.backend = "planted", .exec.threads = 1, .exec.backends = list};
    const adj_gradcheck_report *r = checked(n, &o);
    const gradcheck_detail *row = adj_gradcheck_row_at(r, 0);
    cr_assert_not_null(row);
    cr_expect_eq(r->n_row, 1);
    cr_expect_eq(r->verdict, ADJ_GRADCHECK_FAIL);
    cr_expect_eq(row->fault, ADJ_FAULT_PLAN, "%s: %s", adj_node_op(n), row->blame);
    cr_expect_eq(strncmp(row->blame, wrong, sizeof wrong - 1), 0, "%s", row->blame);
    adj_gradcheck_free(r);
}

TestSuite(wrong_plan, .init = plan_as_usual);

Test(wrong_plan, gradcheck)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    expect_gradcheck(adj_relu(adj_input(g, "x", ADJ_F32, (adj_shape){1, {24}})));
}

Test(wrong_plan, gradcheck_of_an_update)
{
    const adj_shape s = {1, {24}};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *p = adj_param(g, "p", ADJ_F32, s, (adj_init){0});
    adj_node *lr = adj_input(g, "lr", ADJ_F32, (adj_shape){0});
    expect_gradcheck(adj_sgd_step(p, adj_input(g, "d", ADJ_F32, s), lr, 0));
}

Test(wrong_plan, compare)
{
    const adj_backend *list[3];
    list_backends(list);
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *y = adj_relu(adj_input(g, "x", ADJ_F32, (adj_shape){1, {24}}));
    const adj_comparison *c = compared(y, "planted", (adj_compare_opts){.exec.backends = list});
    const compare_result whole = adj_comparison_result_at(c, 1);
    cr_expect_eq(whole.verdict, ADJ_VERDICT_FAIL);
    cr_expect_not_null(strstr(whole.reason, "finds a slot of another size"), "%s", whole.reason);
    cr_assert_eq(c->n_row, 1);
    const compare_row *row = adj_comparison_row_at(c, 0);
    cr_expect_eq(row->verdict, ADJ_VERDICT_FAIL);
    cr_expect_eq(row->blame, ADJ_BLAME_PLAN, "%s", row->reason);
    cr_expect_eq(strncmp(row->reason, wrong, sizeof wrong - 1), 0, "%s", row->reason);
    adj_comparison_free(c);
}
