/* test_targets.c - nets with a loss of their own on float targets: regression against the normal
 * equations, multi-label decisions against literal numbers; padding, files and what is refused. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "train/tiny.h"

enum { N = 7, FEATURES = 2 };

static const adj_net regression = {.name = "line", .build = linear_build, .loss = adj_loss_mse};

/* Pixels of mean 100 and deviation 50; targets near 3 a - 2 b + 1. */
static const uint8_t pixels[N * FEATURES] = {0,   50, 100, 30, 200, 90, 150,
                                             250, 50, 10,  75, 180, 20, 220};
static const float targets[N] = {-2.5F, 4, 7.5F, -1.5F, 2, -3.5F, -9};
static const adj_dataset points = {.n = N,
                                   .size = {1, FEATURES, 1},
                                   .classes = 1,
                                   .images = pixels,
                                   .targets = targets,
                                   .mean = {100},
                                   .deviation = {50}};

static double feature(int i, int k)
{
    return k < FEATURES ? (pixels[i * FEATURES + k] - 100.0) / 50 : 1;
}

/* Solves the normal equations by Gauss's elimination: weights of the features and of 1. */
static void least_squares(double w[FEATURES + 1])
{
    enum { M = FEATURES + 1 };
    double a[M][M + 1] = {{0}};
    for (int i = 0; i < N; i++)
        for (int r = 0; r < M; r++)
            for (int k = 0; k <= M; k++)
                a[r][k] += feature(i, r) * (k < M ? feature(i, k) : (double)targets[i]);
    for (int p = 0; p < M; p++)
        for (int r = 0; r < M; r++)
            for (int k = M; r != p && k >= p; k--)
                a[r][k] -= a[r][p] / a[p][p] * a[p][k];
    for (int p = 0; p < M; p++)
        w[p] = a[p][M] / a[p][p];
}

static adj_fit_opts options(int64_t epochs, int64_t batch, double lr)
{
    static const adj_schedule constant = {.kind = ADJ_SCHEDULE_CONSTANT};
    return (adj_fit_opts){.epochs = epochs,
                          .batch = batch,
                          .optimizer = {.kind = ADJ_SGD, .lr = lr},
                          .schedule = &constant,
                          .exec = {.backend = "naive", .threads = 1}};
}

Test(targets, regression_reaches_the_least_squares)
{
    const adj_fit_opts o = options(1500, N, 0.2);
    scoped(release_predictor) adj_predictor *p = tiny_fit(&regression, &points, &points, &o);
    float got[N];
    double w[FEATURES + 1], loss = 0;
    adj_score score;
    least_squares(w);
    cr_assert_eq(adj_predict(p, N, pixels, got, NULL), ADJ_OK);
    for (int i = 0; i < N; i++) {
        const double y = w[0] * feature(i, 0) + w[1] * feature(i, 1) + w[2];
        cr_expect_float_eq((double)got[i], y, 2e-5, "image %d: %g, expected %g", i, (double)got[i],
                           y);
        loss += (y - (double)targets[i]) * (y - (double)targets[i]) / N;
    }
    cr_assert_eq(adj_predictor_evaluate(p, &points, &score, NULL, NULL), ADJ_OK);
    cr_expect_float_eq(score.loss, loss, 1e-5);
    cr_expect(score.accuracy == 0 && score.right == 0 && score.count == N);
}

/* The last batch has 3 images and a place for padding; at a rate of nearly 0 the mean over all
 * batches is the loss of the evaluation. */
static void expect_padding_ignored(int64_t shards, int64_t accumulate)
{
    adj_fit_opts o = options(1, 4, 1e-12);
    o.distributed.parallel.shards = shards;
    o.accumulate = accumulate;
    scoped(release_trainer) adj_trainer *t = tiny_trainer(&regression, &points, &points, &o);
    tiny_run(t);
    const adj_fit_progress at = adj_trainer_progress(t);
    cr_expect_float_eq(at.train.loss, at.held_out.loss, 1e-5 * at.train.loss);
    cr_expect_gt(at.train.loss, 1);
}

Test(targets, padding_does_not_count)
{
    expect_padding_ignored(1, 1);
    expect_padding_ignored(2, 1);
    expect_padding_ignored(1, 2);
}

/* A rate beyond the largest: every epoch is worse than the first. */
Test(targets, best_epoch_has_the_least_loss)
{
    adj_fit_opts o = options(20, N, 0.7);
    o.checkpoint.patience = 3;
    scoped(release_trainer) adj_trainer *t = tiny_trainer(&regression, &points, &points, &o);
    tiny_run(t);
    const adj_fit_progress at = adj_trainer_progress(t);
    cr_expect_eq(at.best_epoch, 1);
    cr_expect_eq(at.epoch, 4);
    cr_expect(at.best > 1 && at.held_out.loss > at.best);
}

Test(targets, resumed)
{
    scoped(folder_remove) folder f = folder_new();
    const file_name file = in_folder(&f, "checkpoint");
    adj_fit_opts o = options(4, 3, 0.05);
    adj_net other = regression;
    other.loss = adj_loss_l1;
    o.on.step = course_step;
    o.on.epoch = course_epoch;
    expect_resumed_after_any_step(&regression, &points, &points, o);
    course c = {.stop = 6};
    o.on.user = &c;
    o.checkpoint.path = file.s;
    adj_predictor_free(tiny_fit(&regression, &points, &points, &o));
    o.checkpoint.resume = 1;
    expect_no_fit(&other, &points, &points, &o, ADJ_EARG,
                  "entry net_loss differs (got l1, expected mse)");
}

/* ---- several classes may be right ---- */

enum { IMAGES = 3, LABELS = 2 };

/* The outputs are the images, shifted by a parameter that is 0. */
static adj_node *as_they_are(adj_node *x, int64_t classes, int training, void *user)
{
    const adj_shape shape = adj_node_type(x).shape;
    (void)training, (void)user;
    adj_node *shift = adj_param(adj_node_graph(x), "shift", ADJ_F32, (adj_shape){1, {classes}},
                                adj_init_constant(0));
    return adj_add(adj_reshape(x, (adj_shape){2, {shape.dim[0], classes}}), shift);
}

static const adj_net multi_label = {
    .name = "labels", .build = as_they_are, .loss = adj_loss_binary};

/* Outputs 1, -1; -1, 0; 1, 1 for the targets 1, 0; 1, 0; 0, 1: four decisions of six are right. */
static adj_dataset decisions(void)
{
    static const uint8_t x[IMAGES * LABELS] = {200, 0, 0, 100, 200, 200};
    static const float y[IMAGES * LABELS] = {1, 0, 1, 0, 0, 1};
    return (adj_dataset){.n = IMAGES,
                         .size = {1, LABELS, 1},
                         .classes = LABELS,
                         .images = x,
                         .targets = y,
                         .mean = {100},
                         .deviation = {100}};
}

Test(targets, multi_label)
{
    const adj_dataset d = decisions();
    const adj_fit_opts o = options(1, 2, 1e-12);
    scoped(release_predictor) adj_predictor *p = tiny_fit(&multi_label, &d, &d, &o);
    const float sigmoid[] = {0.7310586F, 0.2689414F, 0.2689414F, 0.5F, 0.7310586F, 0.7310586F};
    float got[IMAGES * LABELS];
    adj_score score;
    cr_assert_eq(adj_predict(p, IMAGES, d.images, got, NULL), ADJ_OK);
    for (int i = 0; i < IMAGES * LABELS; i++)
        cr_expect_float_eq((double)got[i], (double)sigmoid[i], 1e-6, "%d: %g", i, (double)got[i]);
    cr_assert_eq(adj_predictor_evaluate(p, &d, &score, NULL, NULL), ADJ_OK);
    cr_expect_eq(score.right, 4);
    cr_expect_eq(score.count, 3);
    cr_expect_float_eq(score.accuracy, 4.0 / 6, 1e-12);
    /* three times log(1 + 1/e), twice log(1 + e), once log 2 */
    cr_expect_float_eq(score.loss, (3 * 0.3132616875 + 2 * 1.3132616875 + 0.6931471806) / 6, 1e-6);
    cr_expect_float_eq(adj_predictor_card(p)->accuracy, 100 * 4.0 / 6, 1e-6);
}

/* Two threads evaluate 16 images each, and 8 remain. The first output of an image is right, the
 * second one of every third image. */
Test(targets, evaluated_in_slices)
{
    enum { MANY = 40 };
    uint8_t x[MANY * LABELS];
    float y[MANY * LABELS];
    for (int i = 0; i < MANY; i++) {
        x[2 * i] = x[2 * i + 1] = i % 2 != 0 ? 200 : 0;
        y[2 * i] = (float)(i % 2);
        y[2 * i + 1] = (float)(i % 3 == 0 ? i % 2 : 1 - i % 2);
    }
    adj_dataset d = decisions();
    d.n = MANY;
    d.images = x;
    d.targets = y;
    adj_fit_opts o = options(1, MANY, 1e-12);
    o.exec.threads = 2;
    scoped(release_predictor) adj_predictor *p = tiny_fit(&multi_label, &d, &d, &o);
    adj_score score;
    cr_assert_eq(adj_predictor_evaluate(p, &d, &score, NULL, NULL), ADJ_OK);
    cr_expect_eq(score.right, MANY + 14);
    cr_expect_eq(score.count, MANY);
    /* 54 times log(1 + 1/e), 26 times log(1 + e) */
    cr_expect_float_eq(score.loss, (54 * 0.3132616875 + 26 * 1.3132616875) / 80, 1e-6);
}

/* ---- data sets, files, and what is refused ---- */

Test(targets, data_set)
{
    scoped(release_dataset) adj_dataset *d = NULL, *bad = NULL, *none = NULL, *missing = NULL;
    const float wrong[] = {1, 2, 3, NAN};
    float own[] = {1, 2, 3, 4}, x[8];
    int32_t labels[2];
    cr_assert_eq(adj_dataset_new_targets(2, 1, 2, 1, 2, pixels, own, 1, &d), ADJ_OK);
    own[3] = 0;
    cr_expect(d->targets[3] == 4 && d->classes == 2 && d->labels == NULL);
    cr_expect_eq(adj_batch(d, NULL, 1, (adj_shape){4, {2, 1, 2, 1}}, x, labels, NULL), 1);
    cr_expect(labels[0] == 0 && labels[1] == -1);
    cr_expect_eq(adj_dataset_new_targets(2, 1, 2, 1, 2, pixels, wrong, 1, &bad), ADJ_EARG);
    cr_expect_str_eq(bad->message, "data: target 1 of image 1 is out of range (got nan, expected a "
                                   "finite number)");
    cr_expect_eq(adj_dataset_new_targets(2, 1, 2, 1, 0, pixels, own, 0, &none), ADJ_EARG);
    cr_expect_str_eq(none->message,
                     "data: number of targets is out of range (got 0, expected 1 to 100000)");
    cr_expect_eq(adj_dataset_new_targets(2, 1, 2, 1, 1, pixels, NULL, 0, &missing), ADJ_EARG);
    cr_expect_str_eq(missing->message, "data: the targets are missing");
}

Test(targets, files)
{
    scoped(folder_remove) folder f = folder_new();
    const file_name file = in_folder(&f, "weights");
    const adj_fit_opts o = options(3, N, 0.1);
    scoped(release_predictor) adj_predictor *p = tiny_fit(&regression, &points, NULL, &o),
                                            *q = NULL, *r = NULL;
    float a[N], b[N];
    adj_net softmax = regression;
    adj_error error = {0};
    softmax.loss = NULL;
    cr_assert_eq(adj_predictor_save(p, file.s, 0, NULL, &error), ADJ_OK, "%s", error.message);
    cr_assert_eq(adj_predictor_load(file.s, &regression, NULL, &q, &error), ADJ_OK, "%s",
                 error.message);
    cr_assert_eq(adj_predict(p, N, pixels, a, NULL), ADJ_OK);
    cr_assert_eq(adj_predict(q, N, pixels, b, NULL), ADJ_OK);
    for (int i = 0; i < N; i++)
        cr_expect_float_eq((double)a[i], (double)b[i], 1e-5);
    cr_expect_eq(adj_predictor_load(file.s, &softmax, NULL, &r, &error), ADJ_ESHAPE);
    expect_text(error.message, "another adj_net.loss (got mse, expected softmax)");
}

static adj_node *no_loss(adj_node *outputs, adj_node *t, const adj_loss_opts *o)
{
    (void)outputs, (void)t, (void)o;
    return NULL;
}

static adj_node *each_loss(adj_node *outputs, adj_node *t, const adj_loss_opts *o)
{
    return adj_loss_mse(outputs, t,
                        &(adj_loss_opts){.weights = o->weights, .reduction = ADJ_LOSS_EACH});
}

Test(targets, refused)
{
    scoped(release_dataset) adj_dataset *classes = tiny_data(6, 1, 2, 1, 2, 1);
    const adj_net plain = {.name = "line", .build = linear_build},
                  two = {.name = "line",
                         .build = linear_build,
                         .loss = adj_loss_mse,
                         .options.classes = 2},
                  none = {.name = "line", .build = linear_build, .loss = no_loss},
                  each = {.name = "line", .build = linear_build, .loss = each_loss};
    static const float weight[1] = {1};
    adj_fit_opts o = options(1, N, 0.1);
    int64_t confusion[4];
    adj_score score;
    adj_error error = {0};
    expect_no_fit(&plain, &points, NULL, &o, ADJ_EARG,
                  "net line: number of classes is out of range (got 1");
    expect_no_fit(&(adj_net){.name = "line", .build = linear_build, .options.classes = 2}, &points,
                  NULL, &o, ADJ_EARG, "net line: loss is missing (the data have float targets)");
    expect_no_fit(&regression, classes, NULL, &o, ADJ_EARG, "requires data with float targets");
    expect_no_fit(&regression, &points, classes, &o, ADJ_ESHAPE, "number of classes");
    expect_no_fit(&two, &points, NULL, &o, ADJ_ESHAPE,
                  "number of outputs (got 2, expected the data's 1");
    expect_no_fit(&none, &points, NULL, &o, ADJ_EARG, "loss returned no node");
    expect_no_fit(&each, &points, NULL, &o, ADJ_ESHAPE,
                  "got f32 of rank 2, expected an f32 scalar");
    o.loss.smoothing = 0.1;
    expect_no_fit(&regression, &points, NULL, &o, ADJ_EARG, "smoothing requires labels");
    o.loss.smoothing = 0;
    o.loss.class_weights = weight;
    expect_no_fit(&regression, &points, NULL, &o, ADJ_EARG, "class_weights requires labels");
    o.loss.class_weights = NULL;
    o.augment.mixup = 0.2;
    expect_no_fit(&regression, &points, NULL, &o, ADJ_EARG, "mixup requires labels");
    o.augment.mixup = 0;
    scoped(release_predictor) adj_predictor *p = tiny_fit(&regression, &points, NULL, &o);
    cr_expect_eq(adj_predictor_evaluate(p, &points, &score, confusion, &error), ADJ_EARG);
    cr_expect_eq(adj_predictor_evaluate(p, classes, &score, NULL, &error), ADJ_ESHAPE);
}
