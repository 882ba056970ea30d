/* test_tune_real.c - tuning of real kernels: a plan from the file computes what the plan that wrote
 * it did; memory running out anywhere. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "graph/op.h"
#include "tests/counter.h"
#include "tests/training.h"
#include "tune_folder.h"

TestSuite(tune_real, .init = plan_as_usual);

/* Some steps of training a small residual network. */
static void train(const adj_exec_opts *tuning, float loss[3], exec_details *info)
{
    scoped(training_free) training t =
        training_of("resnet8", (adj_model_opts){.batch = 2}, &with_momentum);
    adj_exec_opts o = *tuning;
    o.n_fetch = 1;
    o.fetch = &t.loss;
    o.updates = t.updates;
    scoped(release_exec) adj_exec *e = plan_of(t.g, &o);
    for (int i = 0; i < 3; i++)
        loss[i] = training_step(&t, e, 0);
    *info = adj_exec_details(e);
}

/* One choice, one result: a plan from the file gives the bits of the plan that wrote it. */
Test(tune_real, a_choice_gives_the_same_results)
{
    float first[3], again[3], usual[3];
    exec_details info;
    make_folder();
    adj_exec_opts o = tuned();
    o.tune_seconds = 100;
    train(&(adj_exec_opts){.threads = 1}, usual, &info);
    train(&o, first, &info);
    cr_assert(info.timed > 20, "%d", info.timed);
    for (int i = 0; i < 2; i++) {
        train(&o, again, &info);
        cr_assert(info.timed == 0 && info.cached > 10, "%d timed, %d cached", info.timed,
                  info.cached);
        cr_assert_arr_eq(first, again, sizeof first);
    }
    for (int i = 0; i < 3; i++)
        cr_assert(first[i] - usual[i] < 1e-3 && usual[i] - first[i] < 1e-3, "%g %g", first[i],
                  usual[i]);
    remove_folder();
}

/* ---- out of memory at the n-th allocation: how many there are depends on which candidate wins
 * ----
 */

static adj_status plan_conv(counter *c)
{
    adj_allocator a = {count_alloc, count_free, c};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){4, {1, 8, 8, 16}});
    adj_node *w = adj_param(g, "w", ADJ_F32, (adj_shape){4, {3, 3, 16, 16}}, (adj_init){0});
    adj_node *y = adj_relu(adj_conv2d(x, w, NULL));
    adj_exec_opts o = tuned();
    scoped(release_exec) adj_exec *e = NULL;
    o.n_fetch = 1;
    o.fetch = &y;
    o.allocator = &a;
    adj_status status = adj_exec_new(g, &o, &e);
    cr_assert(status == ADJ_OK || e == NULL || adj_exec_message(e)[0] != '\0');
    return status;
}

Test(tune_real, out_of_memory)
{
    make_folder();
    file[0] = '\0'; /* timed each time */
    unsetenv("ADJOINT_TUNE");
    run_out_of_memory(plan_conv);
    snprintf(file, sizeof file, "%s/tune", folder);
    counter c = {0};
    cr_assert_eq(plan_conv(&c), ADJ_OK);
    run_out_of_memory(plan_conv);
    remove_folder();
}
