/* test_selection.c - a training whose kernels were timed: what goes on from its checkpoint computes
 * with the same ones, though nothing is timed again, and gets the same bits. */
#include <criterion/criterion.h>
#include <string.h>

#include "adjoint_fit.h"
#include "io/folder.h"

enum { N = 48, SIDE = 16, CLASSES = 4, BATCH = 16, EPOCHS = 4, HALF = 2 };

static uint8_t images[N * SIDE * SIDE];

static adj_dataset *make_data(void)
{
    static int32_t labels[N];
    adj_dataset *d;
    unsigned seed = 5;
    for (int i = 0; i < N; i++)
        labels[i] = i % CLASSES;
    for (int i = 0; i < N * SIDE * SIDE; i++) {
        seed = seed * 1103515245u + 12345u;
        images[i] = (uint8_t)(seed >> 16);
    }
    cr_assert_eq(adj_dataset_new(N, SIDE, SIDE, 1, CLASSES, images, labels, 0, &d), ADJ_OK);
    return d;
}

static adj_node *build(adj_node *x, int64_t classes, int training, void *user)
{
    const adj_conv_layer first = {.filters = 8, .padding = ADJ_SAME},
                         second = {.filters = 16, .padding = ADJ_SAME};
    (void)training;
    (void)user;
    x = adj_relu(adj_layer_conv2d(x, "one", &first));
    x = adj_relu(adj_layer_conv2d(x, "two", &second));
    return adj_layer_dense(x, "logits", classes);
}

static const adj_net net = {.name = "tiny", .build = build};

static adj_trainer *open_training(const adj_dataset *d, const adj_fit_opts *o)
{
    adj_trainer *t = NULL;
    adj_error error = {0};
    cr_assert_eq(adj_trainer_new(&net, d, d, o, &t, &error), ADJ_OK, "%s", error.message);
    return t;
}

static void train(adj_trainer *t, int epochs)
{
    adj_error error = {0};
    for (int e = 0; e < epochs; e++) {
        for (int i = 0; i < N / BATCH; i++)
            cr_assert_eq(adj_trainer_step(t, &error), ADJ_OK, "%s", error.message);
        cr_assert_eq(adj_trainer_end_epoch(t, &error), ADJ_OK, "%s", error.message);
    }
}

static void expect_same_params(adj_exec *a, adj_exec *b)
{
    cr_assert_eq(adj_exec_param_count(a), adj_exec_param_count(b));
    for (int i = 0; i < adj_exec_param_count(a); i++) {
        adj_node *x = adj_exec_param_at(a, i), *y = adj_exec_param_at(b, i);
        const size_t bytes = adj_type_bytes(adj_node_type(x));
        const void *p = adj_data(a, x), *q = adj_data(b, y);
        cr_assert(p != NULL && q != NULL);
        cr_expect_eq(memcmp(p, q, bytes), 0, "%s", adj_node_name(x));
    }
}

static void expect_same_steps(const adj_exec *a, const adj_exec *b)
{
    cr_assert_eq(adj_exec_step_count(a), adj_exec_step_count(b));
    for (int i = 0; i < adj_exec_step_count(a); i++) {
        const adj_step_info x = adj_exec_step_at(a, i), y = adj_exec_step_at(b, i);
        cr_expect(strcmp(x.impl, y.impl) == 0 && strcmp(x.backend, y.backend) == 0,
                  "step %d, %s: %s %s, and %s %s", i, x.op, x.backend, x.impl, y.backend, y.impl);
    }
}

/* Kernels are timed in one training; what goes on from its middle is as if it had never stopped. */
Test(selection, a_checkpoint_keeps_it)
{
    folder f = folder_new();
    const file_name file = in_folder(&f, "checkpoint");
    adj_dataset *d = make_data();
    adj_error error = {0};
    const adj_fit_opts timed = {.epochs = EPOCHS,
                                .batch = BATCH,
                                .lr = 0.05,
                                .threads = 1,
                                .tune = 1},
                       untimed = {.epochs = EPOCHS, .batch = BATCH, .lr = 0.05, .threads = 1};
    unsetenv("ADJOINT_PLAN");
    unsetenv("ADJOINT_TUNE");

    adj_trainer *first = open_training(d, &timed);
    cr_assert_str_not_empty(adj_exec_selection(adj_trainer_exec(first)));
    train(first, HALF);
    cr_assert_eq(adj_trainer_save(first, file.s, &error), ADJ_OK, "%s", error.message);
    train(first, EPOCHS - HALF);

    adj_trainer *second = open_training(d, &untimed);
    cr_expect_str_empty(adj_exec_selection(adj_trainer_exec(second)));
    cr_assert_eq(adj_trainer_resume(second, file.s, &error), ADJ_OK, "%s", error.message);
    adj_exec *resumed = adj_trainer_exec(second);
    cr_expect_eq(adj_exec_stats(resumed).timed, 0);
    cr_expect_str_eq(adj_exec_selection(resumed), adj_exec_selection(adj_trainer_exec(first)));
    expect_same_steps(adj_trainer_exec(first), resumed);
    train(second, EPOCHS - HALF);
    expect_same_params(adj_trainer_exec(first), resumed);
    const adj_fit_progress a = adj_trainer_progress(first), b = adj_trainer_progress(second);
    cr_expect(a.best_epoch == b.best_epoch && a.held_out.loss == b.held_out.loss, "%.9g and %.9g",
              a.held_out.loss, b.held_out.loss);

    /* one that was saved again still has them */
    cr_assert_eq(adj_trainer_save(second, file.s, &error), ADJ_OK, "%s", error.message);
    adj_tensors *t = NULL;
    cr_assert_eq(adj_tensors_read(file.s, &t), ADJ_OK);
    cr_expect_str_eq(adj_tensors_metadata(t, "selection"),
                     adj_exec_selection(adj_trainer_exec(first)));
    adj_tensors_free(t);
    adj_trainer_free(first);
    adj_trainer_free(second);
    adj_dataset_free(d);
    folder_remove(&f);
}
