/* test_all_reduce.c - a process by itself: all_reduce is its value, in every type and by every
 * backend, and so is the gradient's; a run is one whether parameters have changed or not. More
 * processes are in tests/mpi. */
#include "expect.h"
#include "exec/internal.h"
#include "exec/report.h"
#include "graph/op.h"

static const adj_exec_internal profiled = {.profile = 1};

static const double x[] = {1, -2, 0.5, 0, 1024, -0.25};

Test(all_reduce, of_one)
{
    for (int t = 0; t < N_PRECISIONS; t++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *v = given(&f, dtypes[t], (adj_shape){2, {2, 3}}, x);
        adj_node *dy = given(&f, dtypes[t], (adj_shape){2, {2, 3}}, x);
        adj_node *y = adj_all_reduce(v, ADJ_REDUCE_SUM), *dx = gradient_of(y, dy, v);
        cr_expect_str_eq(adj_node_op(dx), "all_reduce");
        expect_exact(&f, y, x);
        expect_values(&f, dx, "onednn", x, 0, 0);
    }
}

/* An all_reduce of a parameter runs in every run, although it is invariant, since the other
 * processes take part. */
Test(all_reduce, in_every_run)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *p = adj_param(g, "p", ADJ_F32, (adj_shape){1, {4}}, (adj_init){0});
    adj_node *once = adj_exp(p), *always = adj_all_reduce(p, ADJ_REDUCE_SUM);
    for (int i = 0; i < 2; i++) {
        adj_node *y = i == 0 ? adj_neg(once) : adj_neg(always);
        const adj_exec_opts o = {.n_fetch = 1,
                                 .fetch = &y,
                                 .backend = "naive",
                                 .debug = &(adj_exec_debug){.internal = &profiled}};
        scoped(release_exec) adj_exec *e = plan_of(g, &o);
        cr_assert(adj_run(e) == ADJ_OK && adj_run(e) == ADJ_OK, "%s", adj_exec_message(e));
        const adj_step_info first = adj_exec_step_at(e, 0);
        cr_expect_eq(first.seconds > 0, i == 1, "%s: %g s", first.op, first.seconds);
    }
}

/* Plans split all_reduce into a start and a wait, also on a backend without other processes. */
Test(all_reduce, in_two_steps)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *v = given(&f, ADJ_F32, (adj_shape){2, {2, 3}}, x);
    adj_node *start =
        adj_node_new1(&adj_op_all_reduce_start, v, &(adj_reduction_attrs){ADJ_REDUCE_SUM});
    adj_node *wait = adj_node_new1(&adj_op_all_reduce_wait, start, NULL), *dx;
    expect_exact(&f, wait, x);
    cr_expect_eq(adj_grad(wait, v, 1, &v, &dx), ADJ_ENOGRAD);
}

Test(all_reduce, refusals)
{
    expect_refused(adj_all_reduce(of_type("i32[3]"), ADJ_REDUCE_SUM), ADJ_EDTYPE, "all_reduce");
    expect_refused(adj_all_reduce(of_type("f32[3]"), (adj_reduction)7), ADJ_EARG, "all_reduce");
    cr_assert_null(adj_all_reduce(NULL, ADJ_REDUCE_SUM));
}
