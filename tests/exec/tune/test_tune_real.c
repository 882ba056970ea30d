/* test_tune_real.c - tuning of real kernels: a plan from the file computes what the plan that wrote
 * it did; memory running out anywhere. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

#include "adjoint_ext.h"
#include "adjoint_nn.h"
#include "tests/plan.h"
#include "tests/plan.h"
#include "tune_folder.h"
#include "tests/counter.h"

TestSuite(tune_real, .init = plan_as_usual);

/* Some steps of training a small residual network. */
static void train(const adj_exec_opts *tuning, float loss[3], adj_exec_info *info)
{
    adj_model_opts m = {.batch = 2, .training = 1};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *logits = adj_model_logits(g, adj_model_find("resnet8", &m), &m);
    adj_node *labels = adj_input(g, "labels", ADJ_I32, (adj_shape){1, {2}});
    adj_node *lr = adj_input(g, "lr", ADJ_F32, (adj_shape){0});
    adj_node *l = adj_loss_softmax(logits, labels), *images = adj_find(g, "images");
    adj_exec_opts o = *tuning;
    o.n_fetch = 1;
    o.fetch = &l;
    o.updates = adj_training_updates(l, lr, &(adj_optimiser_opts){.momentum = 0.9});
    scoped(release_exec) adj_exec *e = plan_of(g, &o);
    adj_type t = adj_node_type(images);
    size_t bytes = (size_t)adj_shape_elems(t.shape) * sizeof(float);
    float *x = malloc(bytes), rate = 0.01F;
    adj_draw(ADJ_F32, x, adj_shape_elems(t.shape), (adj_init){ADJ_INIT_NORMAL, 0, 1}, 1, 0);
    cr_assert_eq(adj_set(e, images, x, bytes), ADJ_OK);
    cr_assert_eq(adj_set(e, labels, (int32_t[]){1, 7}, 8), ADJ_OK);
    cr_assert_eq(adj_set(e, lr, &rate, sizeof rate), ADJ_OK);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
        cr_assert_eq(adj_get(e, l, &loss[i], sizeof loss[i]), ADJ_OK);
    }
    *info = adj_exec_stats(e);
    free(x);
}

/* One choice, one result: a plan from the file gives the bits of the plan that wrote it. */
Test(tune_real, a_choice_gives_the_same_results)
{
    float first[3], again[3], usual[3];
    adj_exec_info info;
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

/* ---- out of memory at the n-th allocation ---- */

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

/* How much is allocated depends on which candidate wins. */
static void run_out_of_memory(void)
{
    counter c = {0};
    cr_assert_eq(plan_conv(&c), ADJ_OK);
    cr_assert_eq(c.live, 0);
    long total = c.calls;
    for (long n = 1; n <= total; n++) {
        c = (counter){.fail_at = n};
        adj_status status = plan_conv(&c);
        cr_assert(status == ADJ_ENOMEM || (status == ADJ_OK && c.calls < n),
                  "allocation %ld of %ld failed, status: %s", n, total, adj_status_name(status));
        cr_assert_eq(c.live, 0, "allocation %ld of %ld failed, %ld leaked", n, total, c.live);
    }
}

Test(tune_real, out_of_memory)
{
    make_folder();
    file[0] = '\0'; /* timed each time */
    unsetenv("ADJOINT_TUNE");
    run_out_of_memory();
    snprintf(file, sizeof file, "%s/tune", folder);
    counter c = {0};
    cr_assert_eq(plan_conv(&c), ADJ_OK);
    run_out_of_memory();
    remove_folder();
}
