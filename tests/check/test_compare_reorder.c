/* test_compare_reorder.c - a reorder that changes values is named, and no kernel beside it. */
#include <math.h>
#include <string.h>

#include "adjoint_ext.h"
#include "tests/check/checked.h"
#include "tests/reference.h"

enum { ELEMS = 48 };

struct adj_layout {
    int unused;
};
static const adj_layout backwards = {0};
static double factor; /* of what is brought to the layout */

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    if (g->node[0]->op != &adj_op_exp || g->node[0]->type.dtype != ADJ_F32 || candidate > 0)
        return ADJ_ENOKERNEL;
    p->in[0] = p->out[0] = &backwards;
    strcpy(p->impl, "backwards:exp");
    return ADJ_OK;
}

static adj_status run(const adj_call *c)
{
    for (int i = 0; i < ELEMS; i++)
        ((float *)c->out[0])[i] = expf(((const float *)c->in[0])[i]);
    return ADJ_OK;
}

static size_t bytes_of(const adj_layout *l)
{
    (void)l;
    return ELEMS * sizeof(float);
}

static const char *name_of(const adj_layout *l)
{
    (void)l;
    return "backwards";
}

static char to_layout, to_plain; /* states */

static adj_status prepare_reorder(const adj_reorder *r, void **state, size_t *scratch)
{
    *scratch = 0;
    *state = r->to != NULL ? &to_layout : &to_plain;
    return ADJ_OK;
}

static adj_status run_reorder(void *state, const void *in, void *out, void *scratch)
{
    (void)scratch;
    for (int i = 0; i < ELEMS; i++)
        ((float *)out)[ELEMS - 1 - i] =
            (float)((state == &to_layout ? factor : 1) * ((const float *)in)[i]);
    return ADJ_OK;
}

static void drop_reorder(void *backend, void *state) { (void)backend, (void)state; }

static const adj_kernel kernel = {.name = "backwards", .prepare = prepare, .run = run};
static const adj_kernel *const kernels[] = {&kernel, NULL};
static const adj_backend backend = {.version = ADJ_VERSION,
                                    .name = "backwards",
                                    .open = open_nothing,
                                    .close = close_nothing,
                                    .kernels = kernels,
                                    .layout_bytes = bytes_of,
                                    .layout_name = name_of,
                                    .reorder_prepare = prepare_reorder,
                                    .reorder_run = run_reorder,
                                    .reorder_drop = drop_reorder};

static const char says[] = "from plain to backwards by backwards is wrong";

static adj_node *exponential(adj_graph *g)
{
    return adj_exp(adj_input(g, "x", ADJ_F32, (adj_shape){4, {1, 4, 4, 3}}));
}

Test(compare_reorder, is_named)
{
    const adj_backend *const backends[] = {&backend, naive_backend(), NULL};
    for (factor = 1; factor < 1.1; factor += 0.05) {
        adj_graph *g = adj_graph_new();
        adj_comparison *c =
            compared(exponential(g), "backwards", (adj_compare_opts){.debug.backends = backends});
        const adj_compare_row *row = adj_comparison_row_at(c, 0);
        const adj_compare_config_result whole = adj_comparison_result_at(c, 1);
        cr_expect_str_eq(row->implementation, "backwards:exp");
        cr_expect_eq(row->verdict, factor > 1 ? ADJ_VERDICT_FAIL : ADJ_VERDICT_PASS);
        cr_expect_eq(strstr(row->reason, says) != NULL, factor > 1, "%s", row->reason);
        cr_expect_eq(strstr(whole.reason, says) != NULL, factor > 1, "%s", whole.reason);
        adj_comparison_free(c);
        adj_graph_free(g);
    }
}

Test(compare_reorder, is_named_by_gradcheck)
{
    const adj_backend *const backends[] = {&backend, naive_backend(), NULL};
    const adj_gradcheck_opts o = {.backend = "backwards", .threads = 1, .debug.backends = backends};
    for (factor = 1; factor < 1.1; factor += 0.05) {
        adj_graph *g = adj_graph_new();
        adj_gradcheck_report *r = checked(exponential(g), &o);
        const adj_gradcheck_row *row = adj_gradcheck_row_at(r, 0);
        cr_expect_eq(row->result, factor > 1 ? ADJ_GRADCHECK_FAIL : ADJ_GRADCHECK_PASS);
        cr_expect_eq(row->fault, factor > 1 ? ADJ_FAULT_KERNEL : ADJ_FAULT_NONE);
        cr_expect_eq(strstr(row->blame, says) != NULL, factor > 1, "%s", row->blame);
        adj_gradcheck_free(r);
        adj_graph_free(g);
    }
}
