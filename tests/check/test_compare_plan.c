/* test_compare_plan.c - the plan of a run in another process is returned whole or refused, so that
 * fused nodes are compared there as in this process. */
#include <stdlib.h>

#include "tests/check/checked.h"

typedef struct {
    int calls, is_cut;
    size_t left, whole; /* bytes of the second response: of the plain run */
} wire;

static adj_status elsewhere(void *user, const char *isa, const void *request, size_t bytes,
                            void **response, size_t *response_bytes, adj_error *error)
{
    wire *w = user;
    (void)isa;
    (void)error;
    adj_status status = adj_trial_run(request, bytes, NULL, NULL, response, response_bytes);
    if (++w->calls == 2) {
        w->whole = *response_bytes;
        *response_bytes = w->is_cut ? w->left : w->whole;
    }
    return status;
}

static const adj_comparison *compare_elsewhere(adj_graph *g, const char *config, wire *w)
{
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {1, 3, 3, 4}});
    adj_node *b = adj_const(g, ADJ_F32, (adj_shape){1, {4}}, (const float[]){1, -1, 0.5F, 2});
    adj_node *y = adj_mul(adj_relu(adj_bias_add(x, b, ADJ_NHWC)), x);
    return compared_with(y, config, (adj_compare_opts){.exec.seed = 1},
                         (adj_trial_opts){.guard = w != NULL, .elsewhere = elsewhere, .user = w});
}

/* Makes default plans even if ADJOINT_PLAN is set, since fused groups are inspected. */
static void plan_as_usual(void) { unsetenv("ADJOINT_PLAN"); }
TestSuite(compare_plan, .init = plan_as_usual);

/* The plan comes back: the same groups as here, in the types of that process. */
Test(compare_plan, comes_back)
{
    static const char *const configs[] = {"direct", "direct:bf16", "direct:f16", "onednn:f16"};
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        wire w = {0};
        adj_graph *g = adj_graph_new(), *h = adj_graph_new();
        const adj_comparison *here = compare_elsewhere(g, configs[i], NULL);
        const adj_comparison *there = compare_elsewhere(h, configs[i], &w);
        int n = here->n_row, n_group = 0;
        cr_assert_eq(there->n_row, n, "%s", configs[i]);
        cr_assert_eq(here->n_failed + there->n_failed, 0);
        for (int k = 0; k < n; k++) {
            const compare_row *a = adj_comparison_row_at(here, k);
            const compare_row *b = adj_comparison_row_at(there, k);
            n_group += a->group[0] != '\0';
            cr_assert_str_eq(a->group, b->group);
            cr_assert_str_eq(a->implementation, b->implementation);
            cr_assert_eq(adj_node_id(a->node), adj_node_id(b->node));
            cr_assert_float_eq(a->isolated.worst, b->isolated.worst, 0);
        }
        if (i < 2)
            cr_assert_gt(n_group, 0, "%s", configs[i]);
        adj_comparison_free(here);
        adj_comparison_free(there);
        adj_graph_free(g);
        adj_graph_free(h);
    }
}

Test(compare_plan, cut_off)
{
    for (wire w = {.is_cut = 1}; w.whole == 0 || w.left < w.whole; w.left += 13, w.calls = 0) {
        adj_graph *g = adj_graph_new();
        const adj_comparison *c = compare_elsewhere(g, "direct", &w);
        cr_assert_eq(adj_comparison_result_at(c, 1).verdict, ADJ_VERDICT_CRASH, "%zu", w.left);
        cr_assert_str_eq(adj_comparison_result_at(c, 1).reason, "the response is cut off");
        for (int i = 0; i < c->n_row; i++)
            cr_assert_str_empty(adj_comparison_row_at(c, i)->group);
        adj_comparison_free(c);
        adj_graph_free(g);
    }
}
