/* test_gradcheck_witness.c - the gradient checker attributes the fault when naive, its reference,
 * is wrong. */
#include "planted_naive.h"

static const plant plants[] = {
    {{CONV}, "conv2d", NULL, SCALED},
    {{CONV}, "conv2d", NULL, ONE_ROW},
    {{CONV}, "conv2d", NULL, OTHER_PADS},
    {{CONV}, "conv2d_backprop_input", NULL, SCALED},
    {{CONV}, "conv2d_backprop_filter", NULL, ONE_ROW},
    {{CONV}, "conv2d_backprop_filter", NULL, OTHER_PADS},
    {{DEEP}, "depthwise_conv2d_native", NULL, SCALED},
    {{DEEP}, "depthwise_conv2d_native_backprop_input", NULL, SCALED},
    {{DEEP}, "depthwise_conv2d_native_backprop_filter", NULL, ONE_ROW},
    {{NORM}, "batch_norm", NULL, SCALED},
    {{NORM}, "batch_norm_stats", NULL, SCALED},
    {{NORM}, "batch_norm_grad", NULL, SCALED},
    {{NORM}, "batch_norm_grad_sums", NULL, SCALED},
    {{.op = "max_pool", POOL}, "max_pool", NULL, SCALED},
    {{.op = "max_pool", POOL}, "max_pool_grad", NULL, ONE_ROW},
    {{.op = "avg_pool", POOL}, "avg_pool_grad", NULL, SCALED},
    {{.op = "avg_pool", POOL},
     "avg_pool",
     "avg_pool_grad",
     SCALED}, /* only onednn has a kernel, so no other backend contradicts it */
    {{.op = "conv2d",
      .in = "2,4,7,9",
      .filter = "2,3,4,6",
      .attr = "dilations=1,1,2,2,padding=VALID,data_format=NCHW"},
     "conv2d",
     "conv2d_backprop_input",
     ONE_ROW},
    {{.op = "group_norm", .in = "2,5,6,4", .attr = "epsilon=0.001,groups=2"},
     "group_norm_grad",
     NULL,
     ONE_ROW},
    {{.op = "group_norm", .in = "2,4,5,6", .attr = "epsilon=0.001,groups=2,data_format=NCHW"},
     "group_norm_grad_sums",
     NULL,
     SCALED},
    {{.op = "bias_add", .in = "2,5,6,4"}, "bias_add", NULL, ONE_ROW},
    {{.op = "elu"}, "elu", NULL, SCALED},
    {{.op = "elu"}, "elu_grad", NULL, ONE_ROW},
    {{.op = "exp"},
     "exp",
     NULL,
     SCALED}, /* exp's gradient is made of its value: only the formula sees it */
    {{.op = "hard_sigmoid_grad"}, "hard_sigmoid_grad", NULL, SCALED},
    {{.op = "reduce_mean"}, "broadcast_to", NULL, ONE_ROW}, /* no other backend has its gradient */
    {{.op = "matmul"}, "matmul", NULL, SCALED},
    {{.op = "resize"}, "resize_grad", NULL, SCALED},
    {{.op = "sparse_softmax_cross_entropy", .in = "24,16"},
     "sparse_softmax_cross_entropy_grad",
     NULL,
     ONE_ROW},
    {{.op = "sgd_step"}, "sgd_step", NULL, ONE_ROW},
    {{.op = "momentum"}, "momentum", NULL, SCALED},
    {{.op = "ema"}, "ema", NULL, SCALED},
    {{.op = "adam_step"}, "adam_step", NULL, SCALED},
    {{.op = "adam_step"}, "adam_step", NULL, UNCORRECTED},
};

static void find(const plant *p, const char *backend)
{
    const adj_gradcheck_opts o = {
        .exec.backend = backend, .exec.threads = 1, .draws = 1, .exec.seed = 3};
    adj_graph *g = adj_graph_new();
    int failed = 0, said = 0;
    char says[80];
    adj_node *n = built(g, &p->args);
    snprintf(says, sizeof says, "naive's kernel for %s", p->op);
    planted.op = p->op;
    planted.also = p->also;
    planted.fault = p->fault;
    const adj_gradcheck_report *r = checked(n, &o);
    for (int i = 0; i < r->n_row; i++) {
        const gradcheck_detail *w = adj_gradcheck_row_at(r, i);
        if (w->result != ADJ_GRADCHECK_FAIL)
            continue;
        failed++;
        said += strstr(w->blame, says) != NULL;
        cr_expect_eq(w->fault, ADJ_FAULT_REFERENCE, "%s under %s, %s: %s", p->op, backend, w->wrt,
                     w->blame);
    }
    cr_expect_gt(said, 0, "%s under %s: %d failed", p->op, backend, failed);
    if (said == 0)
        adj_gradcheck_print(stderr, r);
    adj_gradcheck_free(r);
    adj_graph_free(g);
}

Test(gradcheck_witness, blames_naive)
{
    for (size_t i = 0; i < sizeof plants / sizeof *plants; i++) {
        find(&plants[i], "onednn");
        find(&plants[i], "naive");
    }
}

/* A step that is off in its own type alone, by little: naive's in float64 is right. */
Test(gradcheck_witness, steps_are_bounded_by_their_type)
{
    static const char *const ops[] = {"sgd_step", "momentum", "ema", "adam_step"};
    static const char *const dtypes[] = {"f32", "bf16"};
    const adj_gradcheck_opts o = {.exec.backend = "naive", .exec.threads = 1};
    for (int i = 0; i < 8; i++) {
        const op_args args = {.op = ops[i / 2], .dtype = dtypes[i % 2]};
        adj_graph *g = adj_graph_new();
        planted.op = args.op;
        planted.fault = SLIGHTLY;
        const adj_gradcheck_report *r = checked(built(g, &args), &o);
        const gradcheck_detail *row = adj_gradcheck_row_at(r, 0);
        cr_expect_eq(row->fault, ADJ_FAULT_KERNEL, "%s %s: %s", args.op, args.dtype, row->blame);
        cr_expect_str_eq(row->method, "formula");
        adj_gradcheck_free(r);
        adj_graph_free(g);
    }
}

/* Alike in the forward and the backward kernel: they fit each other, others fit none of them. */
Test(gradcheck_witness, blames_naive_when_its_kernels_are_wrong_alike)
{
    static const plant alike = {{CONV}, "conv2d", "conv2d_backprop_filter", OTHER_PADS};
    find(&alike, "onednn");
}

/* The rule is blamed, not naive, where every backend computes the same. */
static void negate(adj_node *y, adj_node *dy, adj_node *dx[])
{
    adj_op_conv2d.grad(y, dy, dx);
    dx[0] = adj_neg(dx[0]);
}

static adj_node *simplify(const adj_node *n, adj_node *const in[])
{
    return adj_node_new(in[0]->graph, &adj_op_conv2d, n->n_in, in, n->attrs);
}

Test(gradcheck_witness, blames_the_rule)
{
    const adj_gradcheck_opts o = {.exec.threads = 1, .draws = 1};
    static const op_args args = {CONV};
    static adj_op op;
    adj_graph *g = adj_graph_new();
    op = adj_op_conv2d;
    op.grad = negate;
    op.simplify = simplify;
    const adj_node *n = built(g, &args);
    planted.op = NULL;
    const adj_gradcheck_report *r = checked(adj_node_new(g, &op, n->n_in, n->in, n->attrs), &o);
    cr_expect_eq(r->row[0].fault, ADJ_FAULT_RULE, "%s", r->row[0].blame);
    cr_expect_eq(r->row[1].fault, ADJ_FAULT_NONE);
    adj_gradcheck_free(r);
    adj_graph_free(g);
}

/* A gradient that belongs to no function is blamed on the rule as well. */
static void turn(adj_node *y, adj_node *dy, adj_node *dx[])
{
    adj_op_conv2d.grad(y, dy, dx);
    dx[0] = adj_transpose(dx[0], 4, (const int[]){3, 1, 2, 0});
}

Test(gradcheck_witness, a_gradient_of_another_shape)
{
    static const op_args args = {CONV};
    static adj_op op;
    adj_graph *g = adj_graph_new();
    op = adj_op_conv2d;
    op.grad = turn;
    op.simplify = simplify;
    const adj_node *n = built(g, &args);
    planted.op = NULL;
    const adj_gradcheck_report *r = checked(adj_node_new(g, &op, n->n_in, n->in, n->attrs), NULL);
    const gradcheck_detail *row = adj_gradcheck_row_at(r, 0);
    cr_expect_eq(row->result, ADJ_GRADCHECK_FAIL);
    cr_expect_eq(row->fault, ADJ_FAULT_RULE);
    cr_expect_not_null(strstr(row->blame, "got f32 [4, 8, 8, 2], expected f32 [2, 8, 8, 4]"), "%s",
                       row->blame);
    adj_gradcheck_free(r);
    adj_graph_free(g);
}

static adj_status check_wrong(adj_node *y)
{
    const adj_gradcheck_opts o = {.exec.backend = "direct", .exec.threads = 1, .draws = 1};
    const adj_gradcheck_report *r;
    adj_status status = adj_gradcheck_nodes(1, &y, &o, &r);
    if (status == ADJ_OK)
        cr_assert_eq(r->row[0].fault, ADJ_FAULT_REFERENCE);
    adj_gradcheck_free(r);
    return status;
}

Test(gradcheck_witness, out_of_memory) { run_out_of_memory(check_wrong); }
