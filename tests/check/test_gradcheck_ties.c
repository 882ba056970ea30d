/* test_gradcheck_ties.c - gradients at ties: the documented rule, by numbers worked out by hand,
 * and a kernel and a gradient rule that are wrong only there. */
#include <math.h>
#include <string.h>

#include "graph/op.h"
#include "tests/check/checked.h"
#include "tests/reference.h"

enum { SIDE = 8, OUT = SIDE / 2 };

/* ---- a max_pool_grad that takes the last maximum ---- */

static int takes_last;

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend;
    if (candidate > 0 || g->n_node > 1 || strcmp(g->node[0]->op->name, "max_pool_grad") != 0 ||
        g->node[0]->type.dtype != ADJ_F32)
        return ADJ_ENOKERNEL;
    strcpy(p->impl, "2x2");
    return ADJ_OK;
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
static const adj_kernel *const kernels[] = {&kernel, NULL};
static const adj_backend planted = {.version = ADJ_VERSION,
                                    .name = "planted",
                                    .open = open_nothing,
                                    .close = close_nothing,
                                    .kernels = kernels};

Test(gradcheck_ties, the_last_maximum_is_wrong)
{
    const adj_backend *const backends[] = {&planted, naive_backend(), NULL};
    const adj_gradcheck_opts o = {
        .exec.backend = "planted", .exec.threads = 1, .exec.backends = backends};
    for (takes_last = 0; takes_last < 2; takes_last++) {
        adj_graph *g = adj_graph_new();
        adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {1, SIDE, SIDE, 1}});
        adj_node *y = adj_max_pool(x, &(adj_pool){.ksize = {1, 2, 2, 1}});
        const adj_gradcheck_report *r = checked(y, &o);
        const gradcheck_detail *row = adj_gradcheck_row_at(r, 0);
        cr_expect_eq(row->result, takes_last ? ADJ_GRADCHECK_FAIL : ADJ_GRADCHECK_PASS);
        if (takes_last)
            cr_expect(strncmp(row->blame, "on ties: ", 9) == 0 &&
                          strstr(row->blame, "max_pool_grad (2x2)") != NULL,
                      "%s", row->blame);
        adj_gradcheck_free(r);
        adj_graph_free(g);
    }
}

/* ---- a maximum of rows whose rule gives each of equal elements the whole gradient ---- */

enum { ROWS = 6, COLUMNS = 5 };

static int shares;

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
    adj_node *share = shares ? adj_div(dy, adj_reduce_sum(is_max, rows)) : dy;
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
static const adj_kernel *const row_kernels[] = {&row_kernel, NULL};
static const adj_backend own = {.version = ADJ_VERSION,
                                .name = "own",
                                .open = open_nothing,
                                .close = close_nothing,
                                .kernels = row_kernels};

Test(gradcheck_ties, shares_add_up_to_the_gradient)
{
    const adj_backend *const backends[] = {&own, naive_backend(), NULL};
    const adj_gradcheck_opts o = {.exec.threads = 1, .exec.backends = backends};
    for (shares = 0; shares < 2; shares++) {
        adj_graph *g = adj_graph_new();
        adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){2, {ROWS, COLUMNS}});
        const adj_gradcheck_report *r = checked(adj_node_new1(&op_row_max, x, NULL), &o);
        const gradcheck_detail *row = adj_gradcheck_row_at(r, 0);
        cr_expect_eq(row->result, shares ? ADJ_GRADCHECK_PASS : ADJ_GRADCHECK_FAIL);
        if (!shares)
            cr_expect(row->fault == ADJ_FAULT_RULE && strncmp(row->blame, "on ties: ", 9) == 0 &&
                          strstr(row->blame, "row_max") != NULL &&
                          strcmp(row->index, " along equal steps of all elements") == 0,
                      "%s%s", row->blame, row->index);
        adj_gradcheck_free(r);
        adj_graph_free(g);
    }
}

/* ---- the rule ---- */

static void expect_gradient(adj_graph *g, adj_node *y, adj_node *x, const float *value,
                            const float *dy, const float *want, int n)
{
    adj_node *seed = adj_input(g, "dy", ADJ_F32, adj_node_type(y).shape), *dx = NULL;
    float got[16];
    adj_exec *e;
    adj_grad(y, seed, 1, &x, &dx);
    cr_assert_eq(adj_exec_new(g, &(adj_exec_opts){.n_fetch = 1, .fetch = &dx}, &e), ADJ_OK);
    adj_set(e, x, value, (size_t)n * sizeof *value);
    adj_set(e, seed, dy, adj_type_bytes(adj_node_type(y)));
    cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    adj_get(e, dx, got, (size_t)n * sizeof *got);
    for (int i = 0; i < n; i++)
        cr_expect_eq(got[i], want[i], "%d: got %g, expected %g", i, (double)got[i],
                     (double)want[i]);
    adj_exec_free(e);
}

Test(gradcheck_ties, reduce_max_shares_and_max_pool_takes_the_first)
{
    static const float v[] = {1, 3, 3, 2, 5, 5, 5, 5}, of_rows[] = {8, 12};
    static const float shared[] = {0, 4, 4, 0, 3, 3, 3, 3};
    static const float first[] = {0, 8, 0, 0, 12, 0, 0, 0};
    adj_graph *g = adj_graph_new(), *h = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){2, {2, 4}});
    expect_gradient(g, adj_reduce_max(x, (adj_axes){.n = 1, .axis = {1}}), x, v, of_rows, shared,
                    8);
    x = adj_input(h, "x", ADJ_F32, (adj_shape){4, {1, 2, 4, 1}});
    expect_gradient(h, adj_max_pool(x, &(adj_pool){.ksize = {1, 1, 4, 1}}), x, v, of_rows, first,
                    8);
    adj_graph_free(g);
    adj_graph_free(h);
}
