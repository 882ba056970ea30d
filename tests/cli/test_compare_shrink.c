/* test_compare_shrink.c - minimization of failures, with a backend of planted faults whose smallest
 * case is known. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "cli/compare/compare.h"
#include "cli/op/args.h"
#include "graph/op.h"
#include "tests/reference.h"
#include "tests/plan.h"

/* ---- a backend that is wrong for some shapes, and computes nothing else ---- */

typedef enum {
    WIDE_RELU,
    CONV,
    GRAD_OF_POOL,
    NOT_A_LEAF,
    SCALE,
    PRODUCT,
    PAIR,
    BY_SIXTEEN,
    FUSED
} fault;
static fault planted;

static int is_wrong(const adj_node *n)
{
    const int64_t *d = n->type.shape.dim;
    const adj_conv_attrs *a = n->attrs;
    switch (planted) {
    case WIDE_RELU: return n->op == &adj_op_relu && d[1] >= 5 && d[3] >= 3;
    case CONV:
        return n->op == &adj_op_conv2d && a->geom.kw >= 2 && a->geom.ic / a->geom.groups >= 3 &&
               a->geom.dh >= 2 && a->geom.groups >= 2;
    case GRAD_OF_POOL: return n->op == &adj_op_avg_pool_grad && d[1] >= 7; /* the height */
    case SCALE:
        return n->op == &adj_op_scale && ((const adj_value_attrs *)n->attrs)->value < 0 &&
               d[1] >= 2;
    case PRODUCT:
        return n->op == &adj_op_matmul && ((const adj_matmul_attrs *)n->attrs)->transpose_a &&
               n->in[0]->type.shape.dim[0] >= 3 && d[1] >= 2;
    case PAIR: return n->op == &adj_op_mul && d[1] >= 3;
    case NOT_A_LEAF: return n->op == &adj_op_relu && !(n->in[0]->op->flags & ADJ_OP_LEAF);
    default: return n->op == &adj_op_relu && d[3] % 16 == 0;
    }
}

static int match(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    const adj_uses *u = &uses[root->id];
    if (planted != FUSED || max < 2 || u->n_user != 1 || u->is_root ||
        root->op != &adj_op_batch_norm || u->user[0]->op != &adj_op_relu)
        return 0;
    group[0] = root;
    group[1] = u->user[0];
    return 2;
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    int takes = planted == FUSED ? g->n_node > 1 : is_wrong(g->node[0]);
    if (!takes || candidate > 0)
        return ADJ_ENOKERNEL;
    for (int k = 0; k < g->n_in; k++)
        p->in[k] = NULL;
    p->out[0] = NULL;
    return ADJ_OK;
}

static adj_status run(const adj_call *c)
{
    const adj_node *n = c->group->out[0];
    for (int64_t i = 0; i < adj_shape_elems(n->type.shape); i++)
        adj_store(n->type.dtype, c->out[0], i, 1000);
    return ADJ_OK;
}

static const adj_kernel kernel = {.name = "any", .match = match, .prepare = prepare, .run = run};
static const char *const two[] = {"naive:f64", "crooked"};

static adj_compare_opts options(void)
{
    return (adj_compare_opts){.n_config = 2,
                              .config = two,
                              .exec.backends = before_naive("crooked", &kernel),
                              .runs = 1,
                              .exec.threads = 1,
                              .exec.seed = 1};
}

/* The lines that reproducers finds for what is described. */
static void lines_for(compare_opts *o, char line[LINE])
{
    compared g;
    const adj_comparison *c;
    adj_compare_opts opts = options();
    cr_assert_eq(compared_open(&g, &o->graph), ADJ_OK, "%s", g.m.error.message);
    adj_leaf_value labels;
    compared_compute(&g, &labels, &opts);
    cr_assert_eq(adj_compare(g.m.graph, &opts, &c), ADJ_OK, "%s", c->message);
    cr_assert_gt(c->n_failed, 0);
    reproducer *r = reproducers(o, &opts, NULL, c);
    cr_assert_not_null(r);
    cr_assert_str_empty(r[0].line);
    memcpy(line, r[1].line, LINE);
    free(r);
    adj_comparison_free(c);
    compared_close(&g);
}

static const compare_opts usual = {
    .seconds = 10, .shrink = 100, .seed = 1, .runs = 5, .also_batch = 17};

TestSuite(compare_shrink, .init = plan_as_usual);

Test(compare_shrink, to_the_smallest)
{
    static const struct {
        fault planted;
        op_args op;
        const char *line; /* by hand, from is_wrong */
    } cases[] = {
        {WIDE_RELU,
         {.op = "relu", .in = "3,17,9,20"},
         "adjoint compare --op relu --in 1,5,1,3 --neighbors 0 --configs naive:f64,crooked --seed "
         "1"},
        {CONV,
         {.op = "conv2d",
          .in = "2,12,13,12",
          .filter = "3,3,4,9",
          .attr = "strides=1,2,2,1,dilations=1,3,2,1,padding=EXPLICIT,explicit_paddings=0,0,3,1,2,"
                  "2,0,0"},
         "adjoint compare --op conv2d --in 1,1,1,6 --filter 1,2,3,2 --attr "
         "dilations=1,2,1,1,padding=EXPLICIT,explicit_paddings=0,0,0,0,0,1,0,0 --neighbors 0 "
         "--configs naive:f64,crooked --seed 1"},
        {GRAD_OF_POOL,
         {.op = "avg_pool", .in = "2,5,12,4", .attr = "ksize=1,1,2,2,data_format=NCHW"},
         "adjoint compare --op avg_pool_grad --in 1,1,7,1 --attr "
         "ksize=1,1,1,1,strides=1,1,1,1,data_format=NCHW --neighbors 0 --configs "
         "naive:f64,crooked --seed 1"},
        {SCALE,
         {.op = "scale", .in = "3,4", .attr = "-2.5"},
         "adjoint compare --op scale --in 1,2 --attr factor=-2.5 --neighbors 0 --configs "
         "naive:f64,crooked --seed 1"},
        {PRODUCT,
         {.op = "matmul", .in = "5,4", .filter = "5,6", .attr = "transpose_a=1,transpose_b=0"},
         "adjoint compare --op matmul --in 3,1 --filter 3,2 --attr transpose_a=1,transpose_b=0 "
         "--neighbors 0 --configs "
         "naive:f64,crooked --seed 1"},
        {PAIR,
         {.op = "mul", .in = "2,9", .filter = "2,9"},
         "adjoint compare --op mul --in 1,3 --filter 1,3 --neighbors 0 --configs "
         "naive:f64,crooked --seed 1"},
        {BY_SIXTEEN,
         {.op = "relu", .in = "2,3,4,48", .dtype = "bf16"},
         "adjoint compare --op relu --in 1,1,1,16 --dtype bf16 --neighbors 0 --configs "
         "naive:f64,crooked "
         "--seed 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        compare_opts o = usual;
        char line[LINE];
        o.graph.op = cases[i].op;
        planted = cases[i].planted;
        lines_for(&o, line);
        cr_expect_str_eq(line, cases[i].line);
    }
}

/* A fault that needs the rest of the graph stays with the model, up to the node; so does a fused
 * group. */
static void expect_up_to_a_node(fault f)
{
    char line[LINE], again[LINE];
    compare_opts o = usual;
    o.graph = (compared_opts){.model = "resnet8", .batch = 2, .size = "8"};
    planted = f;
    lines_for(&o, line);
    char *node = strstr(line, "--model resnet8 --node ");
    cr_assert_not_null(node, "%s", line);
    expect_text(line, " --batch 2 --size 8 --configs naive:f64,crooked");
    char id[16];
    snprintf(id, sizeof id, "%.*s", (int)strcspn(node + 23, " "), node + 23);
    o.graph.node = id;
    lines_for(&o, again); /* still fails, and at the same node */
    cr_assert_str_eq(again, line);
    o.graph.node = NULL;
    o.shrink = 0;
    lines_for(&o, line);
    cr_assert_null(strstr(line, "--node"), "%s", line);
}

Test(compare_shrink, what_one_op_does_not_show)
{
    expect_up_to_a_node(NOT_A_LEAF);
    expect_up_to_a_node(FUSED);
}

/* No more trials than the limit; and a passing case is not minimized. */
Test(compare_shrink, bounded)
{
    const adj_compare_opts opts = options();
    const compared_opts subject = {.op = {.op = "relu", .in = "8,9,8,9"}};
    compared g;
    op_line l;
    cr_assert_eq(compared_open(&g, &subject), ADJ_OK);
    cr_assert(op_line_write(g.root[0], &l));
    compared_close(&g);
    shrinking s = {&opts, NULL, ADJ_VERDICT_FAIL, ADJ_BLAME_KERNEL, 100, 4, 0};
    planted = WIDE_RELU;
    cr_assert_eq(shrink(&s, &l), 1);
    cr_assert_leq(s.tried, 8);
    cr_assert_gt(adj_shape_elems(l.in), 15);
    s.blame = ADJ_BLAME_PLAN;
    cr_assert_eq(shrink(&s, &l), 0);
    s.blame = ADJ_BLAME_KERNEL;
    s.verdict = ADJ_VERDICT_CRASH;
    cr_assert_eq(shrink(&s, &l), 0);
    l.in.dim[1] = 4;
    s.verdict = ADJ_VERDICT_FAIL;
    cr_assert_eq(shrink(&s, &l), 0);
    cr_assert_eq(l.in.dim[1], 4);
}

Test(compare_shrink, lines_are_quoted)
{
    char line[LINE];
    compare_opts o = usual;
    const compared_opts relu = {.op = {.op = "relu"}};
    setenv("ADJOINT_QUARANTINE", "off", 1);
    o.guard = 1;
    o.threads = 2;
    o.runs = 1;
    o.seconds = 0.5;
    o.exact = 1;
    char pair[160];
    compare_pair("naive", "onednn,relu=naive", pair, sizeof pair);
    compare_line(&o, &relu, pair, line);
    cr_assert_str_eq(
        line,
        "ADJOINT_QUARANTINE=off adjoint compare --op relu --neighbors 0 --configs "
        "'naive;onednn,relu=naive' --seed 1 --runs 1 --threads 2 --exact --guard --timeout 0.5");
}
