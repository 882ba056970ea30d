/* test_prolong.c - extended trainings: a step or exponential schedule continues as in a longer run;
 * patience counts from the start of the new schedule; and a tuned training keeps its kernels
 * without timing, and its bits. */
#include <criterion/criterion.h>
#include <math.h>

#include "exec/internal.h"
#include "exec/report.h"
#include "io/folder.h"
#include "train/tiny.h"
#include "train/internal.h"

enum { N = 40, SIDE = 4, CLASSES = 2, BATCH = 8, STEPS = 5, MOST = 64 };

typedef struct {
    int steps;
    double rate[MOST];
} course;

static int on_step(void *user, const adj_fit_progress *p)
{
    course *c = user;
    cr_assert_lt(c->steps, MOST);
    c->rate[c->steps++] = p->lr;
    return 0;
}

/* The probabilities of all images. */
static void train(const adj_fit_opts *o, float probabilities[N * CLASSES])
{
    scoped(release_dataset) adj_dataset *d = tiny_data(N, SIDE, SIDE, 1, CLASSES, 7);
    scoped(release_predictor) adj_predictor *p = tiny_fit(&linear_net, d, d, o);
    cr_assert_eq(adj_predict(p, N, d->images, probabilities, NULL), ADJ_OK);
}

/* Two epochs and then two more, and four at once: the same rates and bits. */
static void expect_as_if_planned(const adj_schedule *s)
{
    static float whole[N * CLASSES], parts[N * CLASSES];
    scoped(folder_remove) folder f = folder_new();
    const file_name file = in_folder(&f, "checkpoint");
    course at_once = {0}, in_parts = {0};
    adj_fit_opts o = {.epochs = 4,
                      .batch = BATCH,
                      .optimizer.lr = 0.1,
                      .schedule = s,
                      .exec.backend = "naive",
                      .exec.threads = 1,
                      .on.step = on_step,
                      .on.user = &at_once};
    train(&o, whole);
    o.on.user = &in_parts;
    o.checkpoint.path = file.s;
    o.epochs = 2;
    train(&o, parts);
    cr_expect_neq(memcmp(whole, parts, sizeof whole), 0);
    o.checkpoint.resume = 1;
    o.epochs = 4;
    train(&o, parts);
    cr_expect_eq(memcmp(whole, parts, sizeof whole), 0);
    cr_expect_eq(at_once.steps, 4 * STEPS);
    cr_expect_eq(in_parts.steps, 4 * STEPS);
    cr_expect_eq(memcmp(at_once.rate, in_parts.rate, sizeof at_once.rate), 0);
    /* step 18: 15 after the warm-up, of which 4 are a period */
    const double fallen = s->kind == ADJ_SCHEDULE_STEP ? 1e-4 : 0.1 * pow(0.1, 3.75);
    cr_expect_float_eq(in_parts.rate[18], fallen, 1e-12);
}

Test(prolong, a_falling_rate_goes_on)
{
    expect_as_if_planned(
        &(adj_schedule){.kind = ADJ_SCHEDULE_STEP, .warmup = 3, .period = 4, .factor = 0.1});
    expect_as_if_planned(
        &(adj_schedule){.kind = ADJ_SCHEDULE_EXPONENTIAL, .warmup = 3, .period = 4, .factor = 0.1});
}

/* At a rate of nearly 0 no epoch is better than the first. */
Test(prolong, patience_is_counted_anew)
{
    static float probabilities[N * CLASSES];
    scoped(folder_remove) folder f = folder_new();
    const file_name file = in_folder(&f, "checkpoint");
    const adj_schedule constant = {.kind = ADJ_SCHEDULE_CONSTANT};
    course c = {0};
    adj_fit_opts o = {.epochs = 3,
                      .batch = BATCH,
                      .optimizer.lr = 1e-12,
                      .schedule = &constant,
                      .exec.backend = "naive",
                      .exec.threads = 1,
                      .checkpoint.path = file.s,
                      .on.step = on_step,
                      .on.user = &c};
    train(&o, probabilities);
    cr_expect_eq(c.steps, 3 * STEPS);
    o.checkpoint.resume = 1;
    o.epochs = 8;
    o.checkpoint.patience = 2;
    train(&o, probabilities);
    cr_expect_eq(c.steps, 5 * STEPS);
}

/* ---- kernels that were timed ---- */

enum { IMAGES = 48, PER_STEP = 16, EPOCHS = 4, HALF = 2 };

static adj_node *two_convolutions(adj_node *x, int64_t classes, int training, void *user)
{
    const adj_conv_layer first = {.filters = 8, .padding = ADJ_SAME},
                         second = {.filters = 16, .padding = ADJ_SAME};
    (void)training;
    (void)user;
    x = adj_relu(adj_layer_conv2d(x, "one", &first));
    x = adj_relu(adj_layer_conv2d(x, "two", &second));
    return adj_layer_dense(x, "logits", classes, NULL);
}

static const adj_net conv_net = {.name = "tiny", .build = two_convolutions};

static void run_epochs(adj_trainer *t, int epochs)
{
    adj_error error = {0};
    for (int e = 0; e < epochs; e++) {
        for (int i = 0; i < IMAGES / PER_STEP; i++)
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
    scoped(folder_remove) folder f = folder_new();
    const file_name file = in_folder(&f, "checkpoint");
    scoped(release_dataset) adj_dataset *d = tiny_data(IMAGES, 16, 16, 1, 4, 5);
    adj_error error = {0};
    const adj_fit_opts timed = {.epochs = EPOCHS,
                                .batch = PER_STEP,
                                .optimizer.lr = 0.05,
                                .exec.threads = 1,
                                .exec.tune = 1},
                       untimed = {.epochs = EPOCHS,
                                  .batch = PER_STEP,
                                  .optimizer.lr = 0.05,
                                  .exec.threads = 1};
    unsetenv("ADJOINT_PLAN");
    unsetenv("ADJOINT_TUNE");

    scoped(release_trainer) adj_trainer *first = tiny_trainer(&conv_net, d, d, &timed);
    cr_assert_str_not_empty(adj_exec_selection(adj_trainer_exec(first)));
    run_epochs(first, HALF);
    cr_assert_eq(adj_trainer_save(first, file.s, &error), ADJ_OK, "%s", error.message);
    run_epochs(first, EPOCHS - HALF);

    scoped(release_trainer) adj_trainer *second = tiny_trainer(&conv_net, d, d, &untimed);
    cr_expect_str_empty(adj_exec_selection(adj_trainer_exec(second)));
    cr_assert_eq(adj_trainer_resume(second, file.s, &error), ADJ_OK, "%s", error.message);
    adj_exec *resumed = adj_trainer_exec(second);
    cr_expect_eq(adj_exec_details(resumed).timed, 0);
    cr_expect_str_eq(adj_exec_selection(resumed), adj_exec_selection(adj_trainer_exec(first)));
    expect_same_steps(adj_trainer_exec(first), resumed);
    run_epochs(second, EPOCHS - HALF);
    expect_same_params(adj_trainer_exec(first), resumed);
    const adj_fit_progress a = adj_trainer_progress(first), b = adj_trainer_progress(second);
    cr_expect(a.best_epoch == b.best_epoch && a.held_out.loss == b.held_out.loss, "%.9g and %.9g",
              a.held_out.loss, b.held_out.loss);

    /* one that was saved again still has them */
    cr_assert_eq(adj_trainer_save(second, file.s, &error), ADJ_OK, "%s", error.message);
    scoped(release_tensors) adj_tensors *t = NULL;
    cr_assert_eq(adj_tensors_read(file.s, &t), ADJ_OK);
    cr_expect_str_eq(adj_tensors_metadata(t, "selection"),
                     adj_exec_selection(adj_trainer_exec(first)));
}
