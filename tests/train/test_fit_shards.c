/* test_fit_shards.c - a training whose batches are cut into shards, or accumulated, by one process:
 * the results of the whole batch, up to rounding; with checkpoints and options. More processes are
 * in tests/mpi. A batch larger than the training data is cut to them: the training is that with a
 * batch of all images, bit for bit, and no step computes fillers. And adj_fit in f16: its dynamic
 * loss scale is reported, stored in checkpoints, and replaced by a fixed one if given. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "train/internal.h"
#include "train/tiny.h"

enum { N = 70, H = 6, W = 5, C = 2, CLASSES = 3, BATCH = 16, EPOCHS = 3, VALUES = 2000 };

static adj_dataset *make_data(void) { return tiny_data(N, H, W, C, CLASSES, 1); }

/* An image knows no other. */
static adj_node *build(adj_node *x, int64_t classes, int training, void *user)
{
    (void)user;
    return tiny_layers(x, classes, training, 0, 1);
}

static const adj_net net = {.name = "tiny", .build = build};

/* Tuning may choose other kernels for each of two plans whose bits are compared. */
TestSuite(fit_shards, .init = plan_as_usual);

/* All parameters after the training, and how it went. */
static adj_fit_progress train(const adj_dataset *d, const adj_fit_opts *o, float values[VALUES])
{
    scoped(release_trainer) adj_trainer *t = tiny_trainer(&net, d, d, o);
    size_t n = 0;
    tiny_run(t);
    adj_exec *e = adj_trainer_exec(t);
    for (int i = 0; i < adj_exec_param_count(e); i++) {
        const adj_node *p = adj_exec_param_at(e, i);
        const size_t bytes = adj_type_bytes(adj_node_type(p));
        if (adj_node_type(p).dtype != ADJ_F32)
            continue;
        cr_assert_leq(n + bytes / sizeof *values, VALUES);
        cr_assert_eq(adj_get(e, p, values + n, bytes), ADJ_OK);
        n += bytes / sizeof *values;
    }
    const trainer_details details = adj_trainer_details(t);
    cr_expect_float_eq(details.images_per_second * adj_trainer_progress(t).seconds,
                       (double)adj_trainer_progress(t).train.count, 1e-6);
    cr_expect(details.n_rank == 1 && details.waited >= 0 &&
              details.waited <= adj_trainer_progress(t).seconds);
    return adj_trainer_progress(t);
}

static void expect_close(const adj_dataset *d, const adj_fit_opts *a, const adj_fit_opts *b)
{
    static float x[VALUES], y[VALUES];
    memset(x, 0, sizeof x);
    memset(y, 0, sizeof y);
    const adj_fit_progress p = train(d, a, x), q = train(d, b, y);
    double moved = 0;
    for (int i = 0; i < VALUES; i++) {
        cr_assert_float_eq(x[i], y[i], 2e-5, "value %d: %g, %g", i, (double)x[i], (double)y[i]);
        moved += fabs((double)x[i]);
    }
    cr_expect_gt(moved, 1);
    cr_expect_float_eq(p.train.loss, q.train.loss, 1e-5);
    cr_expect_eq(p.train.count, q.train.count);
    cr_expect_float_eq(p.train.accuracy, q.train.accuracy, 1e-12);
    cr_expect_eq(q.epoch, p.epoch);
}

/* The last batch of an epoch has 6 images, in shards of 4 as 4, 2, 0 and 0: they count by these. */
Test(fit_shards, of_a_batch)
{
    scoped(release_dataset) adj_dataset *d = make_data();
    const adj_fit_opts whole = tiny_opts();
    adj_fit_opts cut = tiny_opts();
    for (cut.distributed.parallel.shards = 2; cut.distributed.parallel.shards <= BATCH;
         cut.distributed.parallel.shards *= 2)
        expect_close(d, &whole, &cut);
}

/* The loss of a step is the weighted mean of its images, however they are cut. */
Test(fit_shards, class_weights)
{
    static const float weights[CLASSES] = {0.5F, 8, 1};
    scoped(release_dataset) adj_dataset *d = make_data();
    adj_fit_opts whole = tiny_opts(), cut = tiny_opts();
    whole.loss.class_weights = cut.loss.class_weights = weights;
    cut.distributed.parallel.shards = 4;
    expect_close(d, &whole, &cut);
    cut.batch = 4;
    cut.accumulate = 4;
    cut.distributed.parallel.shards = 1;
    expect_close(d, &whole, &cut);
}

/* Two batches of 8 are one of 16. */
Test(fit_shards, accumulated)
{
    scoped(release_dataset) adj_dataset *d = make_data();
    const adj_fit_opts whole = tiny_opts();
    adj_fit_opts cut = tiny_opts();
    cut.batch = 8;
    cut.accumulate = 2;
    expect_close(d, &whole, &cut);
    cut.distributed.parallel.shards = 2;
    expect_close(d, &whole, &cut);
}

/* oneDNN's filter gradients and matrix products, which add up by threads, are left out. */
Test(fit_shards, same_bits_for_any_number_of_threads)
{
    static float one[VALUES], more[VALUES];
    scoped(release_dataset) adj_dataset *d = make_data();
    adj_fit_opts o = tiny_opts();
    o.exec.backend = "onednn";
    o.distributed.parallel.shards = 2;
    o.exec.same_bits = 1;
    train(d, &o, one);
    for (o.exec.threads = 2; o.exec.threads <= 4; o.exec.threads++) {
        train(d, &o, more);
        cr_expect_arr_eq((char *)more, (char *)one, sizeof one, "%d threads", (int)o.exec.threads);
    }
}

Test(fit_shards, resumed)
{
    scoped(release_dataset) adj_dataset *d = make_data();
    scoped(folder_remove) folder f = folder_new();
    const file_name path = in_folder(&f, "c.ckpt");
    course c = {.stop = 7};
    adj_fit_opts o = tiny_watched(&c);
    o.distributed.parallel.shards = 4;
    expect_resumed_after_any_step(&net, d, d, o);
    o.checkpoint.path = path.s;
    adj_predictor_free(tiny_fit(&net, d, d, &o));
    o.checkpoint.resume = 1;
    o.distributed.parallel.shards = 2;
    expect_no_fit(&net, d, d, &o, ADJ_EARG, "entry shards differs (got 2, expected 4)");
}

Test(fit_shards, refused)
{
    scoped(release_dataset) adj_dataset *d = make_data();
    static const struct {
        int64_t shards, accumulate;
        const char *why;
    } cases[] = {{3, 0, "batch cannot be divided into shards (got 16, expected a multiple of 3)"},
                 {-1, 0, "shards is out of range (got -1"},
                 {0, -1, "accumulate is out of range (got -1"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        adj_fit_opts o = tiny_opts();
        adj_trainer *t = NULL;
        adj_error error = {0};
        o.distributed.parallel.shards = cases[i].shards;
        o.accumulate = cases[i].accumulate;
        cr_expect_eq(adj_trainer_new(&net, d, d, &o, &t, &error), ADJ_EARG);
        expect_text(error.message, cases[i].why);
        cr_expect_null(t);
    }
}

/* ---- a batch larger than the data ---- */

static adj_fit_opts options(int64_t batch, int64_t accumulate, int64_t shards)
{
    adj_fit_opts o = tiny_opts();
    o.batch = batch;
    o.accumulate = accumulate;
    o.distributed.parallel.shards = shards;
    return o;
}

static adj_dataset *few_data(void) { return tiny_data(10, 4, 4, 1, 2, 1); }

/* Trains and writes the weights to path. Returns the last loss. */
static double train_file(const adj_dataset *d, const adj_fit_opts *o, int64_t batch,
                         int64_t accumulate, int64_t per_shard, const char *path)
{
    adj_error error = {0};
    scoped(release_trainer) adj_trainer *t = tiny_trainer(&tiny_net, d, NULL, o);
    const adj_node *images = adj_find(adj_node_graph(adj_trainer_loss(t)), "images");

    cr_expect_eq(adj_trainer_details(t).batch, batch);
    cr_expect_eq(adj_trainer_details(t).accumulate, accumulate);
    cr_expect_eq(adj_node_type(images).shape.dim[0], per_shard);
    tiny_run(t);
    const double loss = adj_trainer_progress(t).step_loss;
    cr_assert_eq(adj_predictor_save(adj_trainer_predictor(t, NULL), path, 0, NULL, &error), ADJ_OK);
    return loss;
}

Test(cut_batch, as_if_it_had_been_asked_for)
{
    /* batch, accumulate and shards given; as cut; images of a shard */
    static const int64_t cases[][6] = {{100000, 1, 1, 10, 1, 10}, {11, 1, 1, 10, 1, 10},
                                       {64, 4, 1, 10, 1, 10},     {4, 7, 1, 4, 3, 4},
                                       {400, 1, 4, 12, 1, 3},     {10, 1, 1, 10, 1, 10}};
    scoped(release_dataset) adj_dataset *d = few_data();
    scoped(folder_remove) folder f = folder_new();
    const file_name got = in_folder(&f, "got"), want = in_folder(&f, "want");

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int64_t *c = cases[i];
        const adj_fit_opts given = options(c[0], c[1], c[2]), asked = options(c[3], c[4], c[2]);
        const double loss = train_file(d, &given, c[3], c[4], c[5], got.s);
        cr_expect_eq(loss, train_file(d, &asked, c[3], c[4], c[5], want.s));
        cr_expect(same_file(got.s, want.s));
    }
}

/* A checkpoint has the batch as cut, so that both ways to ask for it go on. */
Test(cut_batch, resumed)
{
    scoped(release_dataset) adj_dataset *d = few_data();
    scoped(folder_remove) folder f = folder_new();
    const file_name path = in_folder(&f, "checkpoint");
    const adj_fit_opts large = options(500, 1, 1), cut = options(10, 1, 1), less = options(5, 1, 1);
    const adj_fit_opts *const next[] = {&large, &cut, &less};
    adj_error error = {0};
    scoped(release_tensors) adj_tensors *file = NULL;
    scoped(release_trainer) adj_trainer *first = tiny_trainer(&tiny_net, d, NULL, &large);
    cr_assert_eq(adj_trainer_step(first, &error), ADJ_OK);
    cr_assert_eq(adj_trainer_save(first, path.s, &error), ADJ_OK);
    cr_assert_eq(adj_tensors_read(path.s, &file), ADJ_OK);
    cr_expect_str_eq(adj_tensors_metadata(file, "batch"), "10");
    for (int i = 0; i < 3; i++) {
        scoped(release_trainer) adj_trainer *t = tiny_trainer(&tiny_net, d, NULL, next[i]);
        adj_status status = adj_trainer_resume(t, path.s, &error);
        cr_expect_eq(status == ADJ_OK, i < 2, "%s", error.message);
    }
    expect_text(error.message, "entry batch differs (got 5, expected 10)");
}

/* ---- f16 ---- */

enum { SIDE = 5, STEPS = 5 };

static adj_dataset *gray_data(void) { return tiny_data(N, SIDE, SIDE, 1, CLASSES, 1); }

static adj_fit_opts watching(course *c)
{
    adj_fit_opts o = tiny_watched(c);
    o.exec.backend = NULL;
    o.exec.precision = ADJ_PRECISION_F16;
    return o;
}

static adj_predictor *fit(const adj_dataset *train, const adj_fit_opts *o)
{
    return tiny_fit(&tiny_net, train, train, o);
}

/* The gradient of the logits is stored as scale / 16 times 1 - p, of which one is at least 2/3 at
 * first: more than f16 holds from 2^21 on. So the first four steps are skipped, and 2^24 comes down
 * to 2^20; what is far smaller overflows no more. Three good steps double it again. */
static const adj_loss_scale large = {.initial = 0x1p24, .interval = 3};
static const adj_optimizer_opts with_large = {.momentum = 0.9, .loss_scale = &large};

Test(fit_f16, scale_follows_the_gradients)
{
    scoped(release_dataset) adj_dataset *train = gray_data();
    course w = {0}, usual = {0};
    adj_fit_opts o = watching(&w);
    o.optimizer = with_large;
    adj_predictor_free(fit(train, &o));
    for (int i = 0; i < STEPS * EPOCHS; i++) {
        const double before = i > 0 ? w.scale[i - 1] : 0x1p24;
        const int64_t skipped = w.skipped[i] - (i > 0 ? w.skipped[i - 1] : 0);
        cr_expect(skipped == 0 || skipped == 1);
        cr_expect(skipped ? w.scale[i] == before / 2
                          : w.scale[i] == before || w.scale[i] == before * 2,
                  "step %d: %g after %g", i, w.scale[i], before);
        cr_expect(i > 3 || skipped, "step %d was not skipped", i);
    }
    cr_expect_lt(w.skipped[STEPS * EPOCHS - 1], STEPS * EPOCHS - 5);

    o = watching(&usual);
    adj_predictor_free(fit(train, &o));
    for (int i = 0; i < STEPS * EPOCHS; i++) /* PyTorch's defaults: 65536 for 2,000 steps */
        cr_expect(usual.scale[i] == 65536 && usual.skipped[i] == 0, "step %d: %g, %d", i,
                  usual.scale[i], (int)usual.skipped[i]);
}

/* Tuning may choose other kernels for each of two plans whose bits are compared. */
TestSuite(fit_f16, .init = plan_as_usual);

/* Whatever has been skipped until then, and however near the next growth is. */
Test(fit_f16, resumed_after_any_step)
{
    scoped(release_dataset) adj_dataset *train = gray_data();
    course c = {0};
    adj_fit_opts o = watching(&c);
    o.optimizer = with_large;
    expect_resumed_after_any_step(&tiny_net, train, train, o);
}

/* A weights file has no scale: it begins as it is given, as momenta begin with 0. */
Test(fit_f16, begins_anew_from_weights)
{
    scoped(release_dataset) adj_dataset *train = gray_data();
    scoped(folder_remove) folder f = folder_new();
    const file_name file = in_folder(&f, "weights.safetensors");
    course w = {0}, none = {0};
    adj_fit_opts o = watching(&w), more = watching(&none);
    adj_error error = {0};
    scoped(release_predictor) adj_predictor *p = fit(train, &o);
    cr_assert_eq(adj_predictor_save(p, file.s, 0, NULL, NULL), ADJ_OK);
    more.optimizer = with_large;
    scoped(release_trainer) adj_trainer *t = tiny_trainer(&tiny_net, train, NULL, &more);
    cr_assert_eq(adj_trainer_step(t, &error), ADJ_OK, "%s", error.message);
    cr_expect_eq(adj_trainer_progress(t).loss_scale, 0x1p23);
    cr_assert_eq(adj_trainer_load(t, file.s, NULL, &error), ADJ_OK, "%s", error.message);
    cr_expect_eq(adj_trainer_progress(t).loss_scale, 0x1p24);
    cr_expect_eq(adj_trainer_progress(t).skipped, 0);
}

Test(fit_f16, fixed_scale)
{
    scoped(release_dataset) adj_dataset *train = gray_data();
    scoped(folder_remove) folder f = folder_new();
    const file_name file = in_folder(&f, "checkpoint");
    course w = {.stop = 4}, bf16 = {.stop = 2};
    adj_fit_opts o = watching(&w);
    o.exec.loss_scale = 512;
    o.checkpoint.path = file.s;
    adj_predictor_free(fit(train, &o));
    for (int i = 0; i < 4; i++)
        cr_expect(w.scale[i] == 512 && w.skipped[i] == 0);
    o.checkpoint.resume = 1;
    o.exec.loss_scale = 256;
    expect_no_fit(&tiny_net, train, NULL, &o, ADJ_EARG,
                  "entry loss_scale differs (got 256, expected 512)");
    o.exec.loss_scale = 0;
    expect_no_fit(&tiny_net, train, NULL, &o, ADJ_EARG,
                  "entry loss_scale differs (got 0, expected 512)");

    /* it is taken: the first gradients overflow, and no step is skipped */
    o = watching(&(course){0});
    o.exec.loss_scale = 0x1p24;
    expect_no_fit(&tiny_net, train, NULL, &o, ADJ_EARG,
                  "the loss is not finite in step 2 of epoch 1");

    o = watching(&bf16);
    o.exec.precision = ADJ_PRECISION_BF16;
    adj_predictor_free(fit(train, &o));
    cr_expect(bf16.scale[1] == 0 && bf16.skipped[1] == 0);
}

/* The slope of a square root is infinite at 0, and 0 times that no number; the loss is one. */
static adj_node *broken(adj_node *x, int64_t classes, int training, void *user)
{
    adj_node *logits = tiny_build(x, classes, training, user);
    return adj_add(logits, adj_sqrt(adj_scale(logits, 0)));
}

Test(fit_f16, refused)
{
    scoped(release_dataset) adj_dataset *train = gray_data();
    course w = {0};
    adj_fit_opts o = watching(&w);
    o.exec.loss_scale = 8;
    o.optimizer = with_large;
    expect_no_fit(&tiny_net, train, NULL, &o, ADJ_EARG,
                  "loss_scale (got 8) cannot be combined with the optimizer's");
    o.optimizer = (adj_optimizer_opts){0};
    o.exec.precision = ADJ_PRECISION_BF16;
    expect_no_fit(&tiny_net, train, NULL, &o, ADJ_EARG,
                  "loss_scale (got 8) requires precision f16");
    o.exec.precision = ADJ_PRECISION_F16;
    o.exec.loss_scale = -1;
    expect_no_fit(&tiny_net, train, NULL, &o, ADJ_EARG,
                  "loss_scale is out of range (got -1, expected 0 to");
    o.exec.loss_scale = NAN;
    expect_no_fit(&tiny_net, train, NULL, &o, ADJ_EARG, "loss_scale is out of range (got nan");
    const adj_loss_scale negative = {.interval = -5};
    o.exec.loss_scale = 0;
    o.optimizer.loss_scale = &negative;
    expect_no_fit(&tiny_net, train, NULL, &o, ADJ_EARG,
                  "loss_scale_interval is out of range (got -5, expected 0 to");

    /* 65536 is down at the least scale, 2^-24, after 40 steps */
    o = (adj_fit_opts){.epochs = 20, .batch = BATCH, .exec.precision = ADJ_PRECISION_F16};
    expect_no_fit(&(adj_net){.build = broken}, train, NULL, &o, ADJ_EARG,
                  "50 steps up to step 5 of epoch 10 were skipped: their gradients are not finite, "
                  "whatever the loss scale (now 5.96046e-08)");
}
