/* test_own_op.c - an op of the caller's own under gradcheck and compare: softsign, x / (1 + |x|),
 * with its kernel in a backend of the caller's, in the types and with the faults that a test sets.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/check/checked.h"
#include "tests/reference.h"

/* rule: factor of the gradient that the op's rule makes; kernel: of the value in f32. */
static struct {
    double rule, kernel;
    int has_f64, has_f32;
} own;

/* dx = dy / (1 + |x|)^2, times own.rule */
static void softsign_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    adj_node *x = y->in[0], *minus = adj_neg(x);
    adj_node *size = adj_maximum(x, minus), *one = adj_fill_like(x, 1);
    adj_node *below = adj_square(adj_add(one, size)), *right = adj_div(dy, below);
    dx[0] = adj_scale(right, own.rule);
}

static const adj_op op_softsign = {
    .name = "softsign", .n_in = 1, .flags = ADJ_OP_ELEMENTWISE, .grad = softsign_grad};

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    const adj_dtype dtype = g->node[0]->type.dtype;
    const int has = (dtype == ADJ_F64 && own.has_f64) || (dtype == ADJ_F32 && own.has_f32);
    if (g->node[0]->op != &op_softsign || candidate > 0 || !has)
        return ADJ_ENOKERNEL;
    snprintf(p->impl, sizeof p->impl, "softsign:any");
    return ADJ_OK;
}

static adj_status run(const adj_call *c)
{
    const adj_type t = c->group->node[0]->type;
    for (int64_t i = 0; i < adj_shape_elems(t.shape); i++) {
        const double x = adj_load(t.dtype, c->in[0], i);
        const double factor = t.dtype == ADJ_F32 ? own.kernel : 1;
        adj_store(t.dtype, c->out[0], i, factor * x / (1 + fabs(x)));
    }
    return ADJ_OK;
}

static const adj_kernel kernel = {.name = "softsign", .prepare = prepare, .run = run};
static const adj_kernel *const kernels[] = {&kernel, NULL};
static const adj_backend mine = {.name = "mine", .kernels = kernels};

/* scale, softsign, reduce_sum */
static adj_node *build(adj_graph *g, adj_dtype dtype)
{
    adj_node *x = adj_input(g, "x", dtype, (adj_shape){2, {3, 7}});
    adj_node *y = adj_node_new1(&op_softsign, adj_scale(x, 3), NULL);
    return adj_reduce_sum(y, (adj_axes){.n = ADJ_ALL});
}

typedef struct {
    adj_graph *g;
    const adj_gradcheck_report *report;
    const adj_gradcheck_row *row; /* softsign's first */
    adj_gradcheck_result verdict;
    char *text;
} own_check;

static own_check gradcheck(adj_dtype dtype, int order)
{
    own_check c = {.g = adj_graph_new()};
    const adj_gradcheck_opts o = {.order = order, .exec.backends = list_before(mine, adj_backends)};
    adj_node *y = build(c.g, dtype);
    cr_assert_eq(adj_gradcheck(y, &o, &c.report), ADJ_OK, "%s", c.report->message);
    c.text = report_text(c.report);
    for (int i = 0; i < c.report->n_row && c.row == NULL; i++)
        if (strcmp(c.report->row[i].op, "softsign") == 0)
            c.row = &c.report->row[i];
    cr_assert_not_null(c.row, "%s", c.text);
    c.verdict = c.report->verdict;
    return c;
}

static void checked_free(own_check *c)
{
    free(c->text);
    adj_gradcheck_free(c->report);
    adj_graph_free(c->g);
}

static void expect_pass(adj_dtype dtype, const char *reason)
{
    for (int order = 1; order <= 2; order++) {
        scoped(checked_free) own_check c = gradcheck(dtype, order);
        cr_expect_eq(c.verdict, ADJ_GRADCHECK_PASS, "%s", c.text);
        expect_text(c.text, "(gradients only; values are checked by adjoint compare");
        cr_expect_eq(c.row->result, ADJ_GRADCHECK_PASS, "%s", c.text);
        cr_expect_eq(adj_gradcheck_row_at(c.report, (int)(c.row - c.report->row))->elems, 21);
        cr_expect_str_eq(c.row->reason, reason);
    }
}

static void expect_rule_blamed(adj_dtype dtype)
{
    scoped(checked_free) own_check c = gradcheck(dtype, 1);
    cr_expect_eq(c.verdict, ADJ_GRADCHECK_FAIL, "%s", c.text);
    cr_expect_eq(c.row->result, ADJ_GRADCHECK_FAIL, "%s", c.text);
    cr_expect_eq(c.row->fault, ADJ_FAULT_RULE, "%s", c.text);
    expect_text(c.row->blame, "fault is in the gradient rule of softsign");
    cr_expect_float_eq(c.row->analytic / c.row->numeric, own.rule, 1e-4, "%s", c.text);
    cr_expect_eq(c.row->node, 2);
    cr_expect_str_eq(c.row->name, "%2");
    cr_expect_str_eq(c.row->wrt, "x");
    cr_expect_eq(c.row->order, 1);
    cr_expect_eq(c.row->index[0], '[', "%s", c.row->index);
    cr_expect_gt(c.row->tolerance, 0);
}

static const char by_f32[] = "by differences in float32: no backend computes it in float64";

Test(own_op, is_checked_by_differences_of_its_own_forward)
{
    own.rule = own.kernel = own.has_f64 = own.has_f32 = 1;
    expect_pass(ADJ_F64, "");
    expect_pass(ADJ_F32, "");
    own.has_f64 = 0;
    expect_pass(ADJ_F32, by_f32);
}

Test(own_op, a_wrong_gradient_rule_is_blamed)
{
    static const double factors[] = {-1, 2, 0.9, 1.002};
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        own.rule = factors[i];
        own.kernel = own.has_f64 = own.has_f32 = 1;
        expect_rule_blamed(ADJ_F64);
        expect_rule_blamed(ADJ_F32);
        own.has_f64 = 0;
        expect_rule_blamed(ADJ_F32);
    }
}

/* Without a kernel in f64 or f32 the op's row is NOT CHECKED; the other nodes are checked. */
Test(own_op, what_cannot_be_checked_does_not_pass)
{
    own.rule = own.kernel = 1;
    own.has_f64 = own.has_f32 = 0;
    scoped(checked_free) own_check c = gradcheck(ADJ_F32, 2);
    cr_expect_eq(c.verdict, ADJ_GRADCHECK_NOT_CHECKED, "%s", c.text);
    cr_expect_eq(c.row->result, ADJ_GRADCHECK_NOT_CHECKED, "%s", c.text);
    expect_text(c.row->reason, "no backend computes softsign f64");
    cr_expect_eq(c.report->n_result[ADJ_GRADCHECK_NOT_CHECKED], 1);
    cr_expect_gt(c.report->n_result[ADJ_GRADCHECK_PASS], 1);
    expect_text(c.text, "NOT CHECKED (no backend computes softsign f64");
    expect_text(c.text, ", 1 not checked\n");
}

Test(own_op, a_check_that_failed_does_not_pass)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *y = adj_square(adj_input(g, "x", ADJ_F32, (adj_shape){1, {3}}));
    scoped(release_gradcheck) const adj_gradcheck_report *r = NULL;
    cr_expect_eq(adj_gradcheck(y, &(adj_gradcheck_opts){.order = 3}, &r), ADJ_EARG);
    cr_expect_eq(r->verdict, ADJ_GRADCHECK_NOT_CHECKED);
    cr_expect_str_eq(adj_gradcheck_result_name(r->verdict), "NOT CHECKED");
}

/* ---- compare ---- */

static adj_status compare(adj_graph *g, const adj_comparison **c)
{
    adj_node *y = build(g, ADJ_F32);
    const adj_compare_opts o = {.exec.n_fetch = 1,
                                .exec.fetch = &y,
                                .runs = 1,
                                .exec.backends = list_before(mine, adj_backends)};
    return adj_compare(g, &o, c);
}

Test(own_op, is_compared_with_its_own_kernel_in_f64)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    scoped(release_comparison) const adj_comparison *c = NULL;
    own.rule = own.kernel = own.has_f64 = own.has_f32 = 1;
    cr_expect_eq(compare(g, &c), ADJ_OK, "%s", c->message);
    cr_expect_eq(c->n_failed, 0);
    cr_expect_eq(c->n_whole_failed, 0);
    cr_expect_eq(c->n_row, 6); /* scale, softsign, reduce_sum; naive, onednn */
}

Test(own_op, a_kernel_that_is_wrong_in_f32_is_blamed)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    scoped(release_comparison) const adj_comparison *c = NULL;
    own.rule = own.has_f64 = own.has_f32 = 1;
    own.kernel = 1.001;
    int n = 0;
    cr_assert_eq(compare(g, &c), ADJ_OK, "%s", c->message);
    for (int i = 0; i < c->n_row; i++) {
        const adj_compare_row *row = &c->row[i];
        if (strcmp(row->op, "softsign") != 0)
            continue;
        n++;
        cr_expect_eq(row->node, adj_graph_node_at(g, adj_node_id(row->node)));
        cr_expect(row->at >= 0 && row->at < 21);
        cr_expect_float_eq(row->got / row->expected, 1.001, 1e-6);
        cr_expect_float_eq(row->worst, fabs(row->got - row->expected) / row->bound, 1e-3);
        cr_expect_str_eq(adj_comparison_row_at(c, i)->backend, mine.name);
        cr_expect_eq(row->verdict, ADJ_VERDICT_FAIL);
        cr_expect_eq(row->blame, ADJ_BLAME_KERNEL);
    }
    cr_expect_eq(n, 2);
    char text[8192] = "";
    FILE *f = fmemopen(text, sizeof text, "w");
    adj_comparison_print(f, c);
    fclose(f);
    static const char *const lines[] = {"reference naive:f64: the whole graph: pass\n",
                                        "onednn: the whole graph: pass\n",
                                        "softsign",
                                        " wrong, element ",
                                        "    to blame: kernel\n",
                                        "summary: 6 rows, 2 failed\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        cr_expect_not_null(strstr(text, lines[i]), "%s: %s", lines[i], text);
}

Test(own_op, a_comparison_without_a_reference_does_not_pass)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    scoped(release_comparison) const adj_comparison *c = NULL;
    own.rule = own.kernel = own.has_f32 = 1;
    own.has_f64 = 0;
    cr_expect_eq(compare(g, &c), ADJ_ENOKERNEL);
    expect_text(c->message, "no backend computes softsign f64");
    cr_expect_gt(c->n_failed, 0);
}
