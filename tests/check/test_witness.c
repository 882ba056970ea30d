/* test_witness.c - whose fault it is when naive, the reference of both checkers, is wrong itself:
 * in every type, as a fault of its templates is.
 *
 * The list of backends is this file's own: its naive calls the real one and spoils what comes out
 * of one op. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_check.h"
#include "adjoint_ext.h"
#include "cli/op/build.h"

extern const adj_backend adj_backend_direct, adj_backend_naive, adj_backend_onednn;

typedef enum { SCALED, ONE_ROW, OTHER_PADS, UNCORRECTED } fault;

static struct {
    const char *op, *also; /* names; also: NULL, or another that is as wrong */
    fault fault;
} planted;

static int is_planted(const adj_node *n)
{
    return planted.op != NULL && (strcmp(n->op->name, planted.op) == 0 ||
                                  (planted.also != NULL && strcmp(n->op->name, planted.also) == 0));
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    return adj_backend_naive.kernels[0]->prepare(backend, g, candidate, p);
}

/* The pads before and after change places. */
static adj_status run_with_other_pads(const adj_call *c)
{
    adj_node n = *c->group->node[0];
    const adj_node *const node[] = {&n};
    adj_group g = *c->group;
    adj_call call = *c;
    adj_conv_attrs a = *(const adj_conv_attrs *)n.attrs;
    a.geom.pt = a.geom.pb;
    n.attrs = &a;
    g.node = node;
    call.group = &g;
    return adj_backend_naive.kernels[0]->run(&call);
}

/* Adam's step so late that its bias correction is none. */
static adj_status run_uncorrected(const adj_call *c)
{
    const int32_t late = 1000000000;
    const void *in[] = {c->in[0], c->in[1], c->in[2], &late, c->in[4]};
    adj_call call = *c;
    call.in = in;
    return adj_backend_naive.kernels[0]->run(&call);
}

static adj_status run(const adj_call *c)
{
    const adj_node *n = c->group->node[0];
    if (is_planted(n) && planted.fault == UNCORRECTED)
        return run_uncorrected(c);
    if (is_planted(n) && planted.fault == OTHER_PADS)
        return run_with_other_pads(c);
    adj_status status = adj_backend_naive.kernels[0]->run(c);
    const int64_t elems = adj_shape_elems(n->type.shape);
    for (int64_t i = 0; is_planted(n) && i < elems; i++) {
        const double v = adj_load(n->type.dtype, c->out[0], i);
        const int is_spoiled =
            planted.fault == SCALED || (planted.fault == ONE_ROW && i < elems / 3);
        adj_store(n->type.dtype, c->out[0], i, is_spoiled ? 0.75 * v : v);
    }
    return status;
}

static adj_status open_nothing(const adj_backend_opts *opts, void **backend)
{
    (void)opts;
    *backend = NULL;
    return ADJ_OK;
}

static void close_nothing(void *backend) { (void)backend; }

static const adj_kernel kernel = {.name = "naive", .prepare = prepare, .run = run};
static const adj_kernel *const kernels[] = {&kernel, NULL};
static const adj_backend spoiled_naive = {.version = ADJ_VERSION,
                                          .name = "naive",
                                          .open = open_nothing,
                                          .close = close_nothing,
                                          .kernels = kernels};
const adj_backend *const adj_backends[] = {&adj_backend_onednn, &adj_backend_direct, &spoiled_naive,
                                           NULL};

/* ---- gradcheck ---- */

typedef struct {
    op_args args;
    const char *op, *also;
    fault fault;
    const char *says;
} plant;

#define CONV .op = "conv2d", .in = "2,8,8,4", .filter = "3,3,4,6", .strides = "1,2,2,1"
#define DEEP .op = "depthwise_conv2d_native", .in = "2,8,8,4", .filter = "3,3,4,2"
#define NORM .op = "batch_norm", .in = "2,5,6,4"
#define POOL .in = "2,8,8,4", .ksize = "1,2,2,1", .strides = "1,2,2,1"

static const plant plants[] = {
    {{CONV}, "conv2d", NULL, SCALED, "naive's forward kernel for conv2d is wrong"},
    {{CONV}, "conv2d", NULL, ONE_ROW, "naive's forward kernel for conv2d is wrong"},
    {{CONV}, "conv2d", NULL, OTHER_PADS, "as with pads on the other side: one more at the top"},
    {{CONV},
     "conv2d_backprop_input",
     NULL,
     SCALED,
     "naive's kernel for conv2d_backprop_input is wrong: differences and onednn"},
    {{CONV},
     "conv2d_backprop_filter",
     NULL,
     ONE_ROW,
     "naive's kernel for conv2d_backprop_filter is wrong: differences and onednn"},
    {{CONV},
     "conv2d_backprop_filter",
     NULL,
     OTHER_PADS,
     "as with pads on the other side: one more at the top"},
    {{DEEP},
     "depthwise_conv2d_native",
     NULL,
     SCALED,
     "naive's forward kernel for depthwise_conv2d_native is wrong"},
    {{DEEP},
     "depthwise_conv2d_native_backprop_input",
     NULL,
     SCALED,
     "naive's kernel for depthwise_conv2d_native_backprop_input is wrong"},
    {{DEEP},
     "depthwise_conv2d_native_backprop_filter",
     NULL,
     ONE_ROW,
     "naive's kernel for depthwise_conv2d_native_backprop_filter is wrong"},
    {{NORM}, "batch_norm", NULL, SCALED, "naive's forward kernel for batch_norm is wrong"},
    {{NORM},
     "batch_norm_stats",
     NULL,
     SCALED,
     "naive's forward kernel for batch_norm_stats is wrong"},
    {{NORM}, "batch_norm_grad", NULL, SCALED, "naive's kernel for batch_norm_grad is wrong"},
    {{NORM},
     "batch_norm_grad_sums",
     NULL,
     SCALED,
     "naive's kernel for batch_norm_grad_sums is wrong"},
    {{.op = "max_pool", POOL},
     "max_pool",
     NULL,
     SCALED,
     "naive's forward kernel for max_pool is wrong"},
    {{.op = "max_pool", POOL},
     "max_pool_grad",
     NULL,
     ONE_ROW,
     "naive's kernel for max_pool_grad is wrong"},
    {{.op = "avg_pool", POOL},
     "avg_pool_grad",
     NULL,
     SCALED,
     "naive's kernel for avg_pool_grad is wrong"},
    {{.op = "elu"}, "elu", NULL, SCALED, "naive's forward kernel for elu is wrong"},
    {{.op = "elu"},
     "elu_grad",
     NULL,
     ONE_ROW,
     "naive's kernel for elu_grad is wrong: differences and its formula"},
    {{.op = "exp"}, /* exp's gradient is made of its value: only the formula sees it */
     "exp",
     NULL,
     SCALED,
     "naive's forward kernel for exp is wrong: its formula"},
    {{.op = "hard_sigmoid_grad"},
     "hard_sigmoid_grad",
     NULL,
     SCALED,
     "naive's forward kernel for hard_sigmoid_grad is wrong: its formula"},
    {{.op = "reduce_mean"},
     "broadcast_to",
     NULL,
     ONE_ROW,
     "naive's kernel for broadcast_to is wrong"},
    {{.op = "matmul"}, "matmul", NULL, SCALED, "naive's"},
    {{.op = "resize"}, "resize_grad", NULL, SCALED, "naive's kernel for resize_grad is wrong"},
    {{.op = "sparse_softmax_cross_entropy"},
     "sparse_softmax_cross_entropy_grad",
     NULL,
     ONE_ROW,
     "naive's kernel for sparse_softmax_cross_entropy_grad is wrong"},
    {{.op = "sgd_step"},
     "sgd_step",
     NULL,
     ONE_ROW,
     "fault is in backend naive's kernel for sgd_step"},
    {{.op = "momentum"},
     "momentum",
     NULL,
     SCALED,
     "fault is in backend naive's kernel for momentum"},
    {{.op = "ema"}, "ema", NULL, SCALED, "fault is in backend naive's kernel for ema"},
    {{.op = "adam_step"}, "adam_step", NULL, SCALED, "fault is in backend naive's kernel"},
    {{.op = "adam_step"},
     "adam_step",
     NULL,
     UNCORRECTED,
     "which computes it without bias correction"},
};

static void find(const plant *p, const char *backend)
{
    const adj_gradcheck_opts o = {.backend = backend, .threads = 1, .draws = 1, .seed = 3};
    adj_error error;
    adj_graph *g = adj_graph_new();
    adj_gradcheck_report *r;
    int failed = 0, said = 0;
    adj_node *n = op_args_build(&p->args, g, &error);
    cr_assert_not_null(n, "%s", error.message);
    planted.op = p->op;
    planted.also = p->also;
    planted.fault = p->fault;
    cr_assert_eq(adj_gradcheck_node(n, &o, &r), ADJ_OK, "%s", adj_gradcheck_message(r));
    for (int i = 0; i < adj_gradcheck_row_count(r); i++) {
        const adj_gradcheck_row *w = adj_gradcheck_row_at(r, i);
        if (w->result != ADJ_GRADCHECK_FAIL)
            continue;
        failed++;
        said += strstr(w->blame, p->says) != NULL;
        cr_expect_eq(w->fault, ADJ_FAULT_REFERENCE, "%s under %s, %s: %s", p->op, backend, w->wrt,
                     w->blame);
    }
    cr_expect_gt(said, 0, "%s under %s: %d failed", p->op, backend, failed);
    if (said == 0)
        adj_gradcheck_print(stderr, r);
    adj_gradcheck_free(r);
    adj_graph_free(g);
}

Test(witness, gradcheck_blames_naive)
{
    for (size_t i = 0; i < sizeof plants / sizeof *plants; i++) {
        find(&plants[i], "onednn");
        find(&plants[i], "naive");
    }
}

/* Alike in the forward and the backward kernel: they fit each other, others fit none of them. */
Test(witness, gradcheck_blames_naive_when_its_kernels_are_wrong_alike)
{
    static const plant alike = {{CONV},
                                "conv2d",
                                "conv2d_backprop_filter",
                                OTHER_PADS,
                                "agree with each other; as with pads on the other side"};
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

Test(witness, gradcheck_blames_the_rule)
{
    const adj_gradcheck_opts o = {.threads = 1, .draws = 1};
    static const op_args args = {CONV};
    static adj_op op;
    adj_error error;
    adj_graph *g = adj_graph_new();
    adj_gradcheck_report *r;
    op = adj_op_conv2d;
    op.grad = negate;
    op.simplify = simplify;
    adj_node *n = op_args_build(&args, g, &error);
    planted.op = NULL;
    n = adj_node_new(g, &op, n->n_in, n->in, n->attrs);
    cr_assert_eq(adj_gradcheck_node(n, &o, &r), ADJ_OK, "%s", adj_gradcheck_message(r));
    cr_expect_eq(adj_gradcheck_row_at(r, 0)->fault, ADJ_FAULT_RULE, "%s",
                 adj_gradcheck_row_at(r, 0)->blame);
    cr_expect_eq(adj_gradcheck_row_at(r, 1)->fault, ADJ_FAULT_NONE);
    adj_gradcheck_free(r);
    adj_graph_free(g);
}

/* ---- compare ---- */

static void compare(const plant *p, adj_blame blame)
{
    static const char *const configs[] = {"naive:f64", "onednn", "direct"};
    adj_error error;
    adj_graph *g = adj_graph_new();
    adj_comparison *c;
    int blamed = 0;
    adj_node *n = op_args_build(&p->args, g, &error);
    cr_assert_not_null(n, "%s", error.message);
    adj_node *x = adj_node_operand_at(n, 0), *dx = NULL;
    cr_assert_eq(adj_grad(n, adj_input(g, "dy", ADJ_F32, n->type.shape), 1, &x, &dx), ADJ_OK);
    adj_node *const roots[] = {n, dx};
    planted.op = p->op;
    planted.also = p->also;
    planted.fault = p->fault;
    const adj_compare_opts o = {.n_root = 2,
                                .root = roots,
                                .n_config = 3,
                                .config = configs,
                                .runs = 1,
                                .threads = 1,
                                .seed = 3};
    cr_assert_eq(adj_compare(g, &o, &c), ADJ_OK, "%s", adj_comparison_message(c));
    for (int i = 0; i < adj_comparison_row_count(c); i++) {
        const adj_compare_row *row = adj_comparison_row_at(c, i);
        const int is_its = strcmp(adj_node_op(row->node), p->op) == 0 && row->group[0] == '\0';
        if (row->verdict == ADJ_VERDICT_FAIL)
            cr_expect_eq(row->blame, blame, "%s: %s (%s %s): %s", p->op, adj_compare_row_name(row),
                         row->backend, row->implementation, row->reason);
        blamed += is_its && row->verdict == ADJ_VERDICT_FAIL;
    }
    cr_expect_gt(blamed, 0, "%s", p->op);
    adj_comparison_free(c);
    adj_graph_free(g);
}

Test(witness, compare_blames_naive)
{
    static const plant wrong[] = {
        {{CONV}, "conv2d", NULL, SCALED, ""},
        {{CONV}, "conv2d", NULL, OTHER_PADS, ""},
        {{CONV}, "conv2d_backprop_input", NULL, ONE_ROW, ""},
        {{DEEP}, "depthwise_conv2d_native_backprop_input", NULL, SCALED, ""},
        {{NORM}, "batch_norm_grad", NULL, SCALED, ""}, /* direct alone: by its gradient */
        {{.op = "max_pool", POOL}, "max_pool", "max_pool_grad", SCALED, ""},
        {{.op = "relu"}, "relu", NULL, ONE_ROW, ""}, /* by its formula */
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        compare(&wrong[i], ADJ_BLAME_REFERENCE);
}

/* ---- out of memory while witnesses are asked ---- */

typedef struct {
    long calls, fail_at, live;
} counter;

static void *counted_alloc(void *user, size_t bytes)
{
    counter *c = user;
    void *p = ++c->calls == c->fail_at ? NULL : malloc(bytes);
    c->live += p != NULL;
    return p;
}

static void counted_free(void *user, void *p)
{
    ((counter *)user)->live -= p != NULL;
    free(p);
}

static adj_status check_wrong(adj_node *y)
{
    const adj_gradcheck_opts o = {.backend = "direct", .threads = 1, .draws = 1};
    adj_gradcheck_report *r;
    adj_status status = adj_gradcheck_node(y, &o, &r);
    if (status == ADJ_OK)
        cr_assert_eq(adj_gradcheck_row_at(r, 0)->fault, ADJ_FAULT_REFERENCE);
    adj_gradcheck_free(r);
    return status;
}

static adj_status compare_wrong(adj_node *y)
{
    static const char *const configs[] = {"naive:f64", "direct"};
    const adj_compare_opts o = {
        .n_root = 1, .root = &y, .n_config = 2, .config = configs, .runs = 1, .threads = 1};
    adj_comparison *c;
    adj_status status = adj_compare(adj_node_graph(y), &o, &c);
    if (status == ADJ_OK)
        cr_assert_eq(adj_comparison_row_at(c, 0)->blame, ADJ_BLAME_REFERENCE);
    adj_comparison_free(c);
    return status;
}

/* Each allocation in turn, and later ones less often. */
static void run_out_of_memory(adj_status (*check)(adj_node *y))
{
    counter c = {0};
    adj_allocator allocator = {counted_alloc, counted_free, &c};
    long total = 0;
    planted.op = "relu";
    planted.also = NULL;
    planted.fault = SCALED;
    for (long n = 0; n <= total; n += 1 + n / 40) {
        adj_graph *g = adj_graph_new_with(ADJ_VERSION, &(adj_graph_opts){.allocator = &allocator});
        adj_node *y = adj_relu(adj_input(g, "x", ADJ_F32, (adj_shape){2, {2, 3}}));
        const long before = c.live;
        c.calls = 0;
        c.fail_at = n;
        adj_status status = check(y);
        total = n == 0 ? c.calls : total;
        cr_assert_eq(status, n == 0 ? ADJ_OK : ADJ_ENOMEM, "allocation %ld of %ld: %s", n, total,
                     adj_status_name(status));
        cr_assert_eq(c.live, before, "allocation %ld of %ld: %ld leaked", n, total,
                     c.live - before);
        c.fail_at = 0;
        adj_graph_free(g);
    }
    cr_assert_gt(total, 100);
}

Test(witness, out_of_memory_gradcheck) { run_out_of_memory(check_wrong); }
Test(witness, out_of_memory_compare) { run_out_of_memory(compare_wrong); }

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
        y[i] = x[i] > 0 ? (is_seen ? 1.5f : 1) * x[i] : 0;
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

Test(witness, a_kernel_that_is_wrong_on_its_own_operands_is_no_fault_of_the_plan)
{
    static const adj_kernel relu = {.name = "seen", .prepare = prepare_relu, .run = run_on_seen};
    static const adj_kernel *const list[] = {&relu, NULL};
    static const adj_backend backend = {.version = ADJ_VERSION,
                                        .name = "seen",
                                        .open = open_nothing,
                                        .close = close_nothing,
                                        .kernels = list};
    const adj_backend *const backends[] = {&backend, &adj_backend_naive, NULL};
    static const char *const configs[] = {"naive:f64", "seen"};
    adj_graph *g = adj_graph_new();
    adj_comparison *c;
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){2, {8, 16}});
    adj_node *y = adj_relu(adj_square(adj_tanh(x))); /* rounded on the way */
    const adj_compare_opts o = {.n_root = 1,
                                .root = &y,
                                .n_config = 2,
                                .config = configs,
                                .runs = 1,
                                .threads = 1,
                                .debug.backends = backends};
    planted.op = NULL;
    cr_assert_eq(adj_compare(g, &o, &c), ADJ_OK, "%s", adj_comparison_message(c));
    const adj_compare_row *row = adj_comparison_row_at(c, 2);
    cr_assert_eq(row->node, y);
    cr_expect_eq(row->isolated.wrong, 0);
    cr_expect_gt(row->in_plan.wrong, 0);
    cr_expect_eq(row->blame, ADJ_BLAME_KERNEL);
    cr_expect_not_null(strstr(row->reason, "wrong alone as well"), "%s", row->reason);
    adj_comparison_free(c);
    adj_graph_free(g);
}
