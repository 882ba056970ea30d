/* test_witness.c - both checkers attribute the fault when naive, their reference, is wrong, and
 * blame the plan only if the node is right alone. Backends whose naive calls the real one and
 * spoils the result of one op in every type stand in for a fault in its templates. */
#include <math.h>
#include <string.h>

#include "check/shared.h"
#include "graph/op.h"
#include "tests/check/checked.h"
#include "tests/counter.h"
#include "tests/reference.h"

extern const adj_backend adj_backend_direct, adj_backend_naive, adj_backend_onednn;

/* SLIGHTLY: in every type but f64, by more than it rounds. LOSES_NAN: it becomes 0. */
typedef enum { SCALED, ONE_ROW, OTHER_PADS, UNCORRECTED, SLIGHTLY, LOSES_NAN } fault;

typedef struct {
    op_args args;
    const char *op, *also; /* names; also: NULL, or another that is as wrong */
    fault fault;
} plant;
static const plant *planted; /* NULL: no fault */

static int is_planted(const adj_node *n)
{
    return planted != NULL && (strcmp(n->op->name, planted->op) == 0 ||
                               (planted->also != NULL && strcmp(n->op->name, planted->also) == 0));
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

/* Adam's step at a number so large that its bias correction is 1. */
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
    if (!is_planted(n))
        return adj_backend_naive.kernels[0]->run(c);
    const fault f = planted->fault;
    if (f == UNCORRECTED)
        return run_uncorrected(c);
    if (f == OTHER_PADS)
        return run_with_other_pads(c);
    adj_status status = adj_backend_naive.kernels[0]->run(c);
    const int64_t elems = adj_shape_elems(n->type.shape);
    const double slightly = n->type.dtype == ADJ_F64     ? 1
                            : adj_is_half(n->type.dtype) ? 1.01
                                                         : 1.00001;
    const double factor = f == SLIGHTLY ? slightly : 0.75;
    for (int64_t i = 0; i < elems; i++) {
        const double v = adj_load(n->type.dtype, c->out[0], i);
        const int is_spoiled = f == SCALED || f == SLIGHTLY || (f == ONE_ROW && i < elems / 3);
        const double finite = f == LOSES_NAN && v != v ? 0 : v;
        adj_store(n->type.dtype, c->out[0], i, is_spoiled ? factor * v : finite);
    }
    return status;
}

static const adj_kernel kernel = {.name = "naive", .prepare = prepare, .run = run};
static const adj_kernel *const kernels[] = {&kernel, NULL};
static const adj_backend spoiled_naive = {.version = ADJ_VERSION,
                                          .name = "naive",
                                          .open = open_nothing,
                                          .close = close_nothing,
                                          .kernels = kernels};
const adj_backend *const adj_backends[] = {&adj_backend_onednn, &adj_backend_direct, &spoiled_naive,
                                           NULL};

#define CONV .op = "conv2d", .in = "2,8,8,4", .filter = "3,3,4,6", .attr = "strides=1,2,2,1"
#define DEEP .op = "depthwise_conv2d_native", .in = "2,8,8,4", .filter = "3,3,4,2"
#define NORM .op = "batch_norm", .in = "2,5,6,4"
#define POOL .in = "2,8,8,4", .attr = "ksize=1,2,2,1"

/* ---- out of memory while other backends recompute ---- */

/* Each allocation in turn, and later ones less often. */
static void expect_no_memory(adj_status (*check)(adj_node *y))
{
    static const plant relu = {{.op = "relu"}, "relu", NULL, SCALED};
    counter c = {0};
    adj_allocator allocator = {count_alloc, count_free, &c};
    long total = 0;
    planted = &relu;
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
    cr_assert_gt(total, 40);
}

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
    scoped(release_graph) adj_graph *g = adj_graph_new();
    int failed = 0, said = 0;
    char says[80];
    adj_node *n = built(g, &p->args);
    snprintf(says, sizeof says, "naive's kernel for %s", p->op);
    planted = p;
    scoped(release_gradcheck) const adj_gradcheck_report *r = checked(n, &o);
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
        const char *op = ops[i / 2], *dtype = dtypes[i % 2];
        const plant p = {{.op = op, .dtype = dtype}, op, NULL, SLIGHTLY};
        scoped(release_graph) adj_graph *g = adj_graph_new();
        planted = &p;
        scoped(release_gradcheck) const adj_gradcheck_report *r = checked(built(g, &p.args), &o);
        const gradcheck_detail *row = adj_gradcheck_row_at(r, 0);
        cr_expect_eq(row->fault, ADJ_FAULT_KERNEL, "%s %s: %s", op, dtype, row->blame);
        cr_expect_str_eq(row->method, "formula");
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

Test(gradcheck_witness, blames_the_rule)
{
    const adj_gradcheck_opts o = {.exec.threads = 1, .draws = 1};
    static const op_args args = {CONV};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    scoped(release_gradcheck) const adj_gradcheck_report *r =
        checked(with_rule(built(g, &args), negate, NULL), &o);
    cr_expect_eq(r->row[0].fault, ADJ_FAULT_RULE, "%s", r->row[0].blame);
    cr_expect_eq(r->row[1].fault, ADJ_FAULT_NONE);
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
    scoped(release_graph) adj_graph *g = adj_graph_new();
    scoped(release_gradcheck) const adj_gradcheck_report *r =
        checked(with_rule(built(g, &args), turn, NULL), NULL);
    const gradcheck_detail *row = adj_gradcheck_row_at(r, 0);
    cr_expect_eq(row->result, ADJ_GRADCHECK_FAIL);
    cr_expect_eq(row->fault, ADJ_FAULT_RULE);
    expect_text(row->blame, "got f32 [4, 8, 8, 2], expected f32 [2, 8, 8, 4]");
}

static adj_status check_wrong(adj_node *y)
{
    const adj_gradcheck_opts o = {.exec.backend = "direct", .exec.threads = 1, .draws = 1};
    scoped(release_gradcheck) const adj_gradcheck_report *r = NULL;
    adj_status status = adj_gradcheck_nodes(1, &y, &o, &r);
    if (status == ADJ_OK)
        cr_assert_eq(r->row[0].fault, ADJ_FAULT_REFERENCE);
    return status;
}

Test(gradcheck_witness, out_of_memory) { expect_no_memory(check_wrong); }

static void compare(const plant *p, int n_config, const char *const configs[])
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    int blamed = 0;
    adj_node *n = built(g, &p->args);
    adj_node *x = adj_node_operand_at(n, 0), *dx = NULL;
    if (n->op->grad != NULL)
        cr_assert_eq(adj_grad(n, adj_input(g, "dy", ADJ_F32, n->type.shape), 1, &x, &dx), ADJ_OK);
    adj_node *const roots[] = {n, dx};
    planted = p;
    scoped(release_comparison) const adj_comparison *c = comparison_of(
        dx != NULL ? 2 : 1, roots, n_config, configs, (adj_compare_opts){.exec.seed = 3});
    for (int i = 0; i < c->n_row; i++) {
        const compare_row *row = adj_comparison_row_at(c, i);
        const int is_its = strcmp(adj_node_op(row->node), p->op) == 0 && row->group[0] == '\0';
        if (row->verdict == ADJ_VERDICT_FAIL)
            cr_expect_eq(row->blame, ADJ_BLAME_REFERENCE, "%s: %s (%s %s): %s", p->op,
                         adj_compare_row_name(row), row->backend, row->implementation, row->reason);
        blamed += is_its && row->verdict == ADJ_VERDICT_FAIL;
    }
    cr_expect_gt(blamed, 0, "%s", p->op);
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
    scoped(release_comparison) const adj_comparison *c = NULL;
    adj_status status = adj_compare(adj_node_graph(y), &o, &c);
    if (status == ADJ_OK)
        cr_assert_eq(adj_comparison_row_at(c, 0)->blame, ADJ_BLAME_REFERENCE);
    return status;
}

Test(compare_witness, out_of_memory) { expect_no_memory(compare_wrong); }

/* ---- the plan is blamed only after the node was right alone on the operands that it had ---- */

static char seen[4096]; /* the operand of the kernel's second call */
static int calls;

/* relu, wrong on that operand: the whole graph's, which is run on other values first. */
static adj_status run_on_seen(const adj_call *c)
{
    const adj_node *n = c->group->node[0];
    const size_t bytes = (size_t)adj_shape_elems(n->type.shape) * sizeof(float);
    const float *x = c->in[0];
    float *y = c->out[0];
    cr_assert_leq(bytes, sizeof seen);
    if (++calls == 2)
        memcpy(seen, x, bytes);
    const int is_seen = calls >= 2 && memcmp(seen, x, bytes) == 0;
    for (size_t i = 0; i < bytes / sizeof *y; i++)
        y[i] = x[i] <= 0 ? 0 : (is_seen ? 1.5f : 1) * x[i]; /* a NaN stays one */
    return ADJ_OK;
}

static adj_status prepare_relu(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    return prepare_one(&adj_op_relu, ADJ_F32, "seen", g, candidate, p);
}

Test(compare_witness, a_kernel_that_is_wrong_on_its_own_operands_is_no_fault_of_the_plan)
{
    static const adj_kernel relu = {.name = "seen", .prepare = prepare_relu, .run = run_on_seen};
    const adj_backend *const *backends = before_naive("seen", &relu);
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){2, {8, 16}});
    adj_node *y = adj_relu(adj_square(adj_tanh(x))); /* rounded on the way */
    scoped(release_comparison) const adj_comparison *c =
        compared(y, "seen", (adj_compare_opts){.exec.backends = backends});
    const compare_row *row = adj_comparison_row_at(c, 2);
    cr_assert_eq(row->node, y);
    cr_expect_eq(row->isolated.wrong, 0);
    cr_expect_gt(row->in_plan.wrong, 0);
    cr_expect_eq(row->blame, ADJ_BLAME_KERNEL);
    expect_text(row->reason, "wrong alone as well");
}

/* Ties go to the even number, also among subnormal numbers; too large ones are infinite. */
Test(compare_witness, half_types_are_rounded_to_nearest)
{
    cr_expect_eq(rounded(ADJ_BF16, 1 + 0x1p-8), 1);
    cr_expect_eq(rounded(ADJ_BF16, 1 + 0x3p-8), 1 + 0x1p-6);
    cr_expect_eq(rounded(ADJ_BF16, -1 - 0x1.1p-8), -1 - 0x1p-7);
    cr_expect_eq(rounded(ADJ_F16, 65519), 65504);
    cr_expect_eq(rounded(ADJ_F16, 65520), INFINITY);
    cr_expect_eq(rounded(ADJ_F16, 0x1p-25), 0);
    cr_expect_eq(rounded(ADJ_F16, 0x3p-25), 0x1p-23);
}
