/* test_gradcheck_kinks.c - kinks are excluded and counted: a few pass, more than one in twenty are
 * inconclusive. Gradients at ties follow the documented rule, by numbers worked out by hand; a
 * kernel and a gradient rule that are wrong only there are found. */
#include <math.h>
#include <string.h>

#include "graph/op.h"
#include "tests/check/checked.h"
#include "tests/reference.h"

enum { N = 400 };

static int at_kink; /* elements, from the first on */
static double kink; /* where they are put */

/* Operand 0 away from 0 and 6, and some on the kink, where the other operand is. */
static void near_kink(const adj_node *n, int i, int64_t count, double v[])
{
    (void)n;
    for (int64_t k = 0; k < count; k++)
        v[k] = i > 0 || k < at_kink ? kink : kink + (v[k] < 0 ? v[k] - 0.25 : v[k] + 0.25);
}

/* Checks a copy of the node's op whose values are near a kink. */
static void expect_kinks(const adj_node *n, const char *label, double where, int kinks,
                         adj_gradcheck_result result, adj_gradcheck_method method)
{
    const adj_gradcheck_opts o = {.draws = 1, .method = method, .exec.threads = 1};
    at_kink = kinks;
    kink = where;
    scoped(release_gradcheck) const adj_gradcheck_report *r =
        checked(with_rule(n, NULL, near_kink), &o);
    const gradcheck_detail *w = adj_gradcheck_row_at(r, 0);
    cr_expect_eq(w->result, result, "%s, %d at %g, method %d: %s", label, kinks, where, (int)method,
                 adj_gradcheck_result_name(w->result));
    cr_expect_eq(w->kinks, kinks, "%s, %d at %g, method %d: counted %d", label, kinks, where,
                 (int)method, (int)w->kinks);
    cr_expect_eq(w->considered, N, "%s", label);
    cr_expect_eq(r->verdict, result, "%s, %d at %g", label, kinks, where);
}

/* 5 % of 400 are 20. */
static const struct {
    int kinks;
    adj_gradcheck_result result;
} shares[] = {{0, ADJ_GRADCHECK_PASS},
              {1, ADJ_GRADCHECK_PASS},
              {20, ADJ_GRADCHECK_PASS},
              {21, ADJ_GRADCHECK_INCONCLUSIVE},
              {N, ADJ_GRADCHECK_INCONCLUSIVE}};

static void expect_shares(const adj_node *n, const char *label, double where)
{
    static const adj_gradcheck_method methods[] = {
        ADJ_GRADCHECK_DIRECTIONAL, ADJ_GRADCHECK_ELEMENTWISE, ADJ_GRADCHECK_RICHARDSON};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        for (int m = 0; m < 3; m++)
            expect_kinks(n, label, where, shares[i].kinks, shares[i].result, methods[m]);
}

Test(gradcheck_kinks, ops_of_one_operand)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){1, {N}});
    expect_shares(adj_relu(x), "relu", 0);
    expect_shares(adj_relu6(x), "relu6", 0);
    expect_shares(adj_relu6(x), "relu6", 6);
    expect_shares(adj_leaky_relu(x, 0.25), "leaky_relu", 0);
    cr_expect_eq(adj_graph_status(g), ADJ_OK);
}

/* The first operand is at the second's value, which is the same everywhere. */
Test(gradcheck_kinks, maximum_and_minimum)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *a = adj_input(g, "a", ADJ_F32, (adj_shape){1, {N}});
    adj_node *b = adj_input(g, "b", ADJ_F32, (adj_shape){1, {N}});
    const adj_node *ops[] = {adj_maximum(a, b), adj_minimum(a, b)};
    kink = 0.5;
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < sizeof shares / sizeof *shares; k++) {
            at_kink = shares[k].kinks;
            scoped(release_gradcheck) const adj_gradcheck_report *r =
                checked(with_rule(ops[i], NULL, near_kink), &(adj_gradcheck_opts){.draws = 1});
            for (int w = 0; w < 2; w++) {
                cr_expect_eq(r->row[w].result, shares[k].result, "%s %d of %d", ops[i]->op->name, w,
                             shares[k].kinks);
                cr_expect_eq(adj_gradcheck_row_at(r, w)->kinks, shares[k].kinks, "%s %d: %d",
                             ops[i]->op->name, w, (int)adj_gradcheck_row_at(r, w)->kinks);
            }
        }
}

/* Windows of two, all apart by 1; in some both elements are equal. */
static void ties(const adj_node *n, int i, int64_t count, double v[])
{
    (void)n, (void)i;
    for (int64_t k = 0; k < count; k++)
        v[k] = k / 2 < at_kink ? 0.5 : k % 2 ? 1 : 0;
}

Test(gradcheck_kinks, ties_in_max_pool_and_reduce_max)
{
    const adj_pool pair = {.ksize = {1, 1, 2, 1}};
    const adj_axes last = {.n = 1, .axis = {-1}};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *image = adj_input(g, "image", ADJ_F32, (adj_shape){4, {1, N, 2, 1}});
    adj_node *rows = adj_input(g, "rows", ADJ_F32, (adj_shape){2, {N, 2}});
    const adj_node *ops[] = {adj_max_pool(image, &pair), adj_reduce_max(rows, last)};
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < sizeof shares / sizeof *shares; k++) {
            at_kink = shares[k].kinks;
            scoped(release_gradcheck) const adj_gradcheck_report *r =
                checked(with_rule(ops[i], NULL, ties), &(adj_gradcheck_opts){.draws = 1});
            const gradcheck_detail *w = adj_gradcheck_row_at(r, 0);
            cr_expect_eq(w->result, shares[k].result, "%s: %d of %d, %s", ops[i]->op->name,
                         shares[k].kinks, N, adj_gradcheck_result_name(w->result));
            cr_expect_eq(w->kinks, shares[k].kinks, "%s: %d", ops[i]->op->name, (int)w->kinks);
            cr_expect_eq(w->considered, N);
        }
}

enum { SIDE = 8, OUT = SIDE / 2 };

/* ---- a max_pool_grad that takes the last maximum ---- */

static int takes_last;

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    return prepare_one(&adj_op_max_pool_grad, ADJ_F32, "2x2", g, candidate, p);
}

static adj_status run(const adj_call *c)
{
    const adj_node *n = c->group->node[0];
    const float *x = c->in[adj_group_in(c->group, n->in[0])];
    const float *dy = c->in[adj_group_in(c->group, n->in[2])];
    float *dx = c->out[0];
    memset(dx, 0, SIDE * SIDE * sizeof *dx);
    for (int o = 0; o < OUT * OUT; o++) {
        int corner = o / OUT * 2 * SIDE + o % OUT * 2, best = corner;
        for (int i = 1; i < 4; i++) {
            int at = corner + i / 2 * SIDE + i % 2;
            best = x[at] > x[best] || (takes_last && x[at] == x[best]) ? at : best;
        }
        dx[best] = dy[o];
    }
    return ADJ_OK;
}

static const adj_kernel kernel = {.name = "2x2", .prepare = prepare, .run = run};

Test(gradcheck_ties, the_last_maximum_is_wrong)
{
    const adj_backend *const *backends = before_naive("planted", &kernel);
    const adj_gradcheck_opts o = {
        .exec.backend = "planted", .exec.threads = 1, .exec.backends = backends};
    for (takes_last = 0; takes_last < 2; takes_last++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {1, SIDE, SIDE, 1}});
        adj_node *y = adj_max_pool(x, &(adj_pool){.ksize = {1, 2, 2, 1}});
        scoped(release_gradcheck) const adj_gradcheck_report *r = checked(y, &o);
        const gradcheck_detail *row = adj_gradcheck_row_at(r, 0);
        cr_expect_eq(row->result, takes_last ? ADJ_GRADCHECK_FAIL : ADJ_GRADCHECK_PASS);
        if (takes_last)
            cr_expect(strncmp(row->blame, "on ties: ", 9) == 0 &&
                          strstr(row->blame, "max_pool_grad (2x2)") != NULL,
                      "%s", row->blame);
    }
}

/* ---- a maximum of rows whose rule gives each of equal elements the whole gradient ---- */

enum { ROWS = 6, COLUMNS = 5 };

static int is_shared;

static adj_status row_infer(const adj_node *n, void *attrs, adj_type *out)
{
    (void)attrs;
    *out = (adj_type){n->in[0]->type.dtype, {2, {ROWS, 1}}};
    return ADJ_OK;
}

static void row_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    const adj_axes rows = {.n = 1, .axis = {1}, .keep_dims = 1};
    adj_node *is_max = adj_equal(y->in[0], y);
    adj_node *share = is_shared ? adj_div(dy, adj_reduce_sum(is_max, rows)) : dy;
    dx[0] = adj_mul(is_max, share);
}

static const adj_op op_row_max = {
    .name = "row_max", .n_in = 1, .flags = ADJ_OP_KINKS, .infer = row_infer, .grad = row_grad};

static adj_status row_prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend, (void)p;
    return g->node[0]->op == &op_row_max && candidate == 0 ? ADJ_OK : ADJ_ENOKERNEL;
}

static adj_status row_run(const adj_call *c)
{
    const adj_dtype dtype = c->group->node[0]->type.dtype;
    for (int i = 0; i < ROWS; i++) {
        double max = -INFINITY;
        for (int j = 0; j < COLUMNS; j++)
            max = fmax(max, adj_load(dtype, c->in[0], i * COLUMNS + j));
        adj_store(dtype, c->out[0], i, max);
    }
    return ADJ_OK;
}

static const adj_kernel row_kernel = {.name = "row_max", .prepare = row_prepare, .run = row_run};

Test(gradcheck_ties, shares_add_up_to_the_gradient)
{
    const adj_backend *const *backends = before_naive("own", &row_kernel);
    const adj_gradcheck_opts o = {.exec.threads = 1, .exec.backends = backends};
    for (is_shared = 0; is_shared < 2; is_shared++) {
        scoped(release_graph) adj_graph *g = adj_graph_new();
        adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){2, {ROWS, COLUMNS}});
        scoped(release_gradcheck) const adj_gradcheck_report *r =
            checked(adj_node_new1(&op_row_max, x, NULL), &o);
        const gradcheck_detail *row = adj_gradcheck_row_at(r, 0);
        cr_expect_eq(row->result, is_shared ? ADJ_GRADCHECK_PASS : ADJ_GRADCHECK_FAIL);
        if (!is_shared)
            cr_expect(row->fault == ADJ_FAULT_RULE && strncmp(row->blame, "on ties: ", 9) == 0 &&
                          strstr(row->blame, "row_max") != NULL &&
                          strcmp(row->index, " along equal steps of all elements") == 0,
                      "%s%s", row->blame, row->index);
    }
}

/* Right but where the operand is 0. */
static void sigmoid_by_division(adj_node *y, adj_node *dy, adj_node *dx[])
{
    adj_node *x = y->in[0], *slope = adj_sub(y, adj_square(y));
    dx[0] = adj_mul(dy, adj_div(adj_mul(slope, x), x));
}

Test(gradcheck_ties, a_rule_divides_by_zero)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){2, {ROWS, COLUMNS}});
    scoped(release_gradcheck) const adj_gradcheck_report *r =
        checked(with_rule(adj_sigmoid(x), sigmoid_by_division, NULL), &(adj_gradcheck_opts){0});
    const gradcheck_detail *row = adj_gradcheck_row_at(r, 0);
    cr_expect(row->result == ADJ_GRADCHECK_FAIL && row->fault == ADJ_FAULT_RULE &&
                  isnan(row->analytic) && isfinite(row->numeric),
              "%s: %g, %g", row->blame, row->analytic, row->numeric);
}

/* ---- the rule ---- */

static void expect_gradient(adj_graph *g, adj_node *y, adj_node *x, const float *value,
                            const float *dy, const float *want, int n)
{
    adj_node *seed = adj_input(g, "dy", ADJ_F32, adj_node_type(y).shape), *dx = NULL;
    float got[16];
    scoped(release_exec) adj_exec *e = NULL;
    adj_grad(y, seed, 1, &x, &dx);
    cr_assert_eq(adj_exec_new(g, &(adj_exec_opts){.n_fetch = 1, .fetch = &dx}, &e), ADJ_OK);
    adj_set(e, x, value, (size_t)n * sizeof *value);
    adj_set(e, seed, dy, adj_type_bytes(adj_node_type(y)));
    cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    adj_get(e, dx, got, (size_t)n * sizeof *got);
    for (int i = 0; i < n; i++)
        cr_expect_eq(got[i], want[i], "%d: got %g, expected %g", i, (double)got[i],
                     (double)want[i]);
}

Test(gradcheck_ties, reduce_max_shares_and_max_pool_takes_the_first)
{
    static const float v[] = {1, 3, 3, 2, 5, 5, 5, 5}, of_rows[] = {8, 12};
    static const float shared[] = {0, 4, 4, 0, 3, 3, 3, 3};
    static const float first[] = {0, 8, 0, 0, 12, 0, 0, 0};
    scoped(release_graph) adj_graph *g = adj_graph_new(), *h = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){2, {2, 4}});
    expect_gradient(g, adj_reduce_max(x, (adj_axes){.n = 1, .axis = {1}}), x, v, of_rows, shared,
                    8);
    x = adj_input(h, "x", ADJ_F32, (adj_shape){4, {1, 2, 4, 1}});
    expect_gradient(h, adj_max_pool(x, &(adj_pool){.ksize = {1, 1, 4, 1}}), x, v, of_rows, first,
                    8);
}
