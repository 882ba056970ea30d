/* test_compare_witness.c - adj_compare reports a wrong reference, and blames the plan only if the
 * node is right alone. */
#include "planted_naive.h"

static void compare(const plant *p, int n_config, const char *const configs[])
{
    adj_graph *g = adj_graph_new();
    const adj_comparison *c;
    int blamed = 0;
    adj_node *n = built(g, &p->args);
    adj_node *x = adj_node_operand_at(n, 0), *dx = NULL;
    if (n->op->grad != NULL)
        cr_assert_eq(adj_grad(n, adj_input(g, "dy", ADJ_F32, n->type.shape), 1, &x, &dx), ADJ_OK);
    adj_node *const roots[] = {n, dx};
    planted.op = p->op;
    planted.also = p->also;
    planted.fault = p->fault;
    const adj_compare_opts o = {.exec.n_fetch = dx != NULL ? 2 : 1,
                                .exec.fetch = roots,
                                .n_config = n_config,
                                .config = configs,
                                .runs = 1,
                                .exec.threads = 1,
                                .exec.seed = 3};
    cr_assert_eq(adj_compare(g, &o, &c), ADJ_OK, "%s", c->message);
    for (int i = 0; i < c->n_row; i++) {
        const compare_row *row = adj_comparison_row_at(c, i);
        const int is_its = strcmp(adj_node_op(row->node), p->op) == 0 && row->group[0] == '\0';
        if (row->verdict == ADJ_VERDICT_FAIL)
            cr_expect_eq(row->blame, ADJ_BLAME_REFERENCE, "%s: %s (%s %s): %s", p->op,
                         adj_compare_row_name(row), row->backend, row->implementation, row->reason);
        blamed += is_its && row->verdict == ADJ_VERDICT_FAIL;
    }
    cr_expect_gt(blamed, 0, "%s", p->op);
    adj_comparison_free(c);
    adj_graph_free(g);
}

Test(compare_witness, blames_naive)
{
    static const plant wrong[] = {
        {{CONV}, "conv2d", NULL, SCALED},
        {{CONV}, "conv2d", NULL, OTHER_PADS},
        {{CONV}, "conv2d_backprop_input", NULL, ONE_ROW},
        {{DEEP}, "depthwise_conv2d_native_backprop_input", NULL, SCALED},
        {{NORM}, "batch_norm_grad", NULL, SCALED}, /* direct alone has it, and the formula */
        {{.op = "avg_pool", POOL}, "avg_pool", "avg_pool_grad", SCALED},
        {{.op = "group_norm", .in = "2,5,6,4"}, "group_norm_grad", NULL, ONE_ROW},
        {{.op = "max_pool", POOL}, "max_pool", "max_pool_grad", SCALED},
        {{.op = "adam_step"}, "adam_step", NULL, UNCORRECTED},
        {{.op = "relu"}, "relu", NULL, ONE_ROW},   /* by its formula */
        {{.op = "relu"}, "relu", NULL, LOSES_NAN}, /* on values that are never drawn */
        {{.op = "max_pool", POOL}, "max_pool", NULL, LOSES_NAN},
        {{.op = "elu"}, "elu", NULL, LOSES_NAN},
        {{.op = "dropout"}, "dropout", NULL, SCALED}, /* direct's own draws */
        /* those that only naive has, by their formulas */
        {{.op = "log"}, "log", NULL, LOSES_NAN},
        {{.op = "minimum"}, "minimum", NULL, LOSES_NAN},
        {{.op = "reduce_max"}, "reduce_max", NULL, LOSES_NAN},
        {{.op = "resize", .in = "2,4,4,3"}, "resize", NULL, SCALED},
        {{.op = "all_finite"}, "all_finite", NULL, SCALED},
        {{.op = "label_count"}, "label_count", NULL, SCALED},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        compare(&wrong[i], 3, (const char *const[]){"naive:f64", "onednn", "direct"});
        compare(&wrong[i], 2, (const char *const[]){"naive:f64", "naive"});
    }
}

static adj_status compare_wrong(adj_node *y)
{
    static const char *const configs[] = {"naive:f64", "direct"};
    const adj_compare_opts o = {.exec = {.n_fetch = 1, .fetch = &y, .threads = 1},
                                .n_config = 2,
                                .config = configs,
                                .runs = 1};
    const adj_comparison *c;
    adj_status status = adj_compare(adj_node_graph(y), &o, &c);
    if (status == ADJ_OK)
        cr_assert_eq(adj_comparison_row_at(c, 0)->blame, ADJ_BLAME_REFERENCE);
    adj_comparison_free(c);
    return status;
}

Test(compare_witness, out_of_memory) { run_out_of_memory(compare_wrong); }

/* ---- the plan is blamed only after the node was right alone on the operands that it had ---- */

static char seen[4096]; /* the first operand that the kernel below was given */
static size_t n_seen;

/* relu, wrong on the operand that it saw first: that of the whole graph. */
static adj_status run_on_seen(const adj_call *c)
{
    const adj_node *n = c->group->node[0];
    const size_t bytes = (size_t)adj_shape_elems(n->type.shape) * sizeof(float);
    const float *x = c->in[0];
    float *y = c->out[0];
    cr_assert_leq(bytes, sizeof seen);
    if (n_seen == 0)
        memcpy(seen, x, n_seen = bytes);
    const int is_seen = memcmp(seen, x, bytes) == 0;
    for (size_t i = 0; i < bytes / sizeof *y; i++)
        y[i] = x[i] <= 0 ? 0 : (is_seen ? 1.5f : 1) * x[i]; /* a NaN stays one */
    return ADJ_OK;
}

static adj_status prepare_relu(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    if (g->node[0]->op != &adj_op_relu || g->node[0]->type.dtype != ADJ_F32 || candidate > 0)
        return ADJ_ENOKERNEL;
    p->in[0] = p->out[0] = NULL;
    strcpy(p->impl, "seen");
    return ADJ_OK;
}

Test(compare_witness, a_kernel_that_is_wrong_on_its_own_operands_is_no_fault_of_the_plan)
{
    static const adj_kernel relu = {.name = "seen", .prepare = prepare_relu, .run = run_on_seen};
    static const adj_kernel *const list[] = {&relu, NULL};
    static const adj_backend backend = {.version = ADJ_VERSION,
                                        .name = "seen",
                                        .open = open_nothing,
                                        .close = close_nothing,
                                        .kernels = list};
    const adj_backend *const backends[] = {&backend, &adj_backend_naive, NULL};
    adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){2, {8, 16}});
    adj_node *y = adj_relu(adj_square(adj_tanh(x))); /* rounded on the way */
    planted.op = NULL;
    const adj_comparison *c = compared(y, "seen", (adj_compare_opts){.exec.backends = backends});
    const compare_row *row = adj_comparison_row_at(c, 2);
    cr_assert_eq(row->node, y);
    cr_expect_eq(row->isolated.wrong, 0);
    cr_expect_gt(row->in_plan.wrong, 0);
    cr_expect_eq(row->blame, ADJ_BLAME_KERNEL);
    cr_expect_not_null(strstr(row->reason, "wrong alone as well"), "%s", row->reason);
    adj_comparison_free(c);
    adj_graph_free(g);
}
