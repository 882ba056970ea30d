/* test_borders.c - a kernel that is fast in a layout of its own is taken if it is faster with the
 * reorders at its borders: with planted kernels whose times are known. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/report.h"
#include "graph/op.h"
#include "tests/plan.h"
#include "tests/reference.h"
#include "tests/virtual_clock.h"

enum { N = 5 };
struct adj_layout {
    char name[16];
};
static const adj_layout reversed = {"reversed"};
static double reorder_ms;

/* relu writes the layout, sigmoid reads it; candidate 0 does neither. */
static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    static int is_quick[] = {0, 1};
    (void)backend;
    const int is_relu = strcmp(g->node[0]->op->name, "relu") == 0;
    if (candidate > 1 || g->n_node > 1 ||
        (!is_relu && strcmp(g->node[0]->op->name, "sigmoid") != 0))
        return ADJ_ENOKERNEL;
    p->state = &is_quick[candidate];
    p->in[0] = candidate == 1 && !is_relu ? &reversed : NULL;
    p->out[0] = candidate == 1 && is_relu ? &reversed : NULL;
    strcpy(p->impl, candidate == 1 ? "fast" : "slow");
    return ADJ_OK;
}

static adj_status run(const adj_call *c)
{
    const int is_quick = *(const int *)c->state;
    const int is_relu = strcmp(c->group->node[0]->op->name, "relu") == 0;
    const float *x = c->in[0];
    float *y = c->out[0];
    pass_ms(is_quick ? 1 : is_relu ? 3 : 2);
    for (int i = 0; i < N; i++) {
        const float v = x[is_quick && !is_relu ? N - 1 - i : i];
        y[is_quick && is_relu ? N - 1 - i : i] = is_relu ? fmaxf(v, 0) : 1 / (1 + expf(-v));
    }
    return ADJ_OK;
}

static size_t bytes(const adj_layout *l)
{
    (void)l;
    return N * sizeof(float);
}
static const char *name(const adj_layout *l) { return l->name; }
static adj_status reorder_prepare(void *backend, const adj_layout *from, const adj_layout *to,
                                  adj_type type, void **state, size_t *scratch)
{
    (void)backend, (void)from, (void)to, (void)type;
    *state = NULL;
    *scratch = 0;
    return ADJ_OK;
}
static adj_status reorder_run(void *state, const void *in, void *out, void *scratch)
{
    (void)state;
    (void)scratch;
    pass_ms(reorder_ms);
    for (int i = 0; i < N; i++)
        ((float *)out)[i] = ((const float *)in)[N - 1 - i];
    return ADJ_OK;
}
static void reorder_drop(void *backend, void *state)
{
    (void)backend;
    (void)state;
}

static const adj_kernel kernel = {.name = "either", .prepare = prepare, .run = run};
static const adj_kernel *const kernels[] = {&kernel, NULL};
static const adj_backend planted = {.version = ADJ_VERSION,
                                    .name = "planted",
                                    .open = open_nothing,
                                    .close = close_nothing,
                                    .kernels = kernels,
                                    .layout_bytes = bytes,
                                    .layout_name = name,
                                    .reorder_prepare = reorder_prepare,
                                    .reorder_run = reorder_run,
                                    .reorder_drop = reorder_drop};

/* Plans sigmoid(relu(x)), with relu's result fetched on request. */
static void expect_plan(int fetches_relu, const char *impl, int reorders)
{
    const float x[N] = {-1, 0.5F, 2, -3, 0.25F};
    const adj_backend *backends[] = {&planted, adj_backends[0], NULL};
    for (const adj_backend *const *b = adj_backends; *b != NULL; b++)
        backends[1] = *b; /* the last one: naive */
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *in = adj_input(g, "x", ADJ_F32, (adj_shape){1, {N}});
    adj_node *relu = adj_relu(in), *fetch[] = {adj_sigmoid(relu), relu};
    adj_exec_opts o = {.n_fetch = 1 + fetches_relu,
                       .fetch = fetch,
                       .tune = 1,
                       .tune_seconds = 100,
                       .backends = backends};
    float y[N];
    unsetenv("ADJOINT_PLAN");
    scoped(release_exec) adj_exec *e = plan_of(g, &o);
    cr_expect_eq(adj_exec_details(e).reorders, reorders, "%d reorders",
                 adj_exec_details(e).reorders);
    for (int i = 0; i < adj_exec_stats(e).steps; i++) {
        const adj_step_info s = adj_exec_step_at(e, i);
        cr_expect(s.impl[0] == '\0' || strcmp(s.impl, impl) == 0 || s.n_node == 0, "%s", s.impl);
    }
    cr_assert_eq(adj_set(e, in, x, sizeof x), ADJ_OK);
    cr_assert_eq(adj_run(e), ADJ_OK);
    cr_assert_eq(adj_get(e, fetch[0], y, sizeof y), ADJ_OK);
    for (int i = 0; i < N; i++)
        cr_expect_float_eq(y[i], 1 / (1 + expf(-fmaxf(x[i], 0))), 1e-6);
}

/* relu: 1 + 1.5 ms instead of 3; sigmoid, with its operand in its layout, 1 instead of 1.5 + 2. */
Test(borders, a_layout_that_is_there_costs_nothing)
{
    reorder_ms = 1.5;
    expect_plan(0, "fast", 0);
    expect_plan(1, "fast", 1);
}

/* relu: 1 + 2.5 ms instead of 3; sigmoid the same instead of 2. */
Test(borders, a_reorder_may_cost_too_much)
{
    reorder_ms = 2.5;
    expect_plan(0, "slow", 0);
    expect_plan(1, "slow", 0);
}
