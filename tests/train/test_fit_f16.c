/* test_fit_f16.c - adj_fit in f16: its dynamic loss scale is reported, stored in checkpoints, and
 * replaced by a fixed one if given. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "io/folder.h"
#include "train/tiny.h"

enum { N = 70, SIDE = 5, CLASSES = 3, BATCH = 16, STEPS = 5, EPOCHS = 3 };

static adj_dataset *make_data(void) { return tiny_data(N, SIDE, SIDE, 1, CLASSES, 1); }

/* Record of a training, and the number of steps after which to stop. */
typedef struct {
    int stop, steps;
    double scale[STEPS * EPOCHS];
    int64_t skipped[STEPS * EPOCHS];
} watched;

static int on_step(void *user, const adj_fit_progress *at)
{
    watched *w = user;
    const int64_t i = (at->epoch - 1) * at->steps + at->step - 1;
    w->scale[i] = at->loss_scale;
    w->skipped[i] = at->skipped;
    return ++w->steps == w->stop;
}

static adj_fit_opts watching(watched *w)
{
    return (adj_fit_opts){.epochs = EPOCHS,
                          .batch = BATCH,
                          .exec.seed = 3,
                          .optimizer.lr = 0.05,
                          .exec.threads = 1,
                          .exec.precision = ADJ_PRECISION_F16,
                          .on.step = on_step,
                          .on.user = w};
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
    scoped(release_dataset) adj_dataset *train = make_data();
    watched w = {0}, usual = {0};
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

static void expect_same(adj_predictor *a, adj_predictor *b, const adj_dataset *d)
{
    float of_a[N * CLASSES], of_b[N * CLASSES];
    cr_assert_eq(adj_predict(a, N, d->images, of_a, NULL), ADJ_OK);
    cr_assert_eq(adj_predict(b, N, d->images, of_b, NULL), ADJ_OK);
    cr_expect_arr_eq(of_a, of_b, sizeof of_a);
}

/* Whatever has been skipped until then, and however near the next growth is. */
Test(fit_f16, resumed_after_any_step)
{
    scoped(release_dataset) adj_dataset *train = make_data();
    watched w = {0};
    adj_fit_opts o = watching(&w);
    o.optimizer = with_large;
    scoped(release_predictor) adj_predictor *whole = fit(train, &o);
    for (int stop = 1; stop < STEPS * EPOCHS; stop++) {
        scoped(folder_remove) folder f = folder_new();
        const file_name file = in_folder(&f, "checkpoint");
        watched both = {.stop = stop};
        adj_fit_opts part = watching(&both);
        part.optimizer = with_large;
        part.checkpoint.path = file.s;
        adj_predictor_free(fit(train, &part));
        part.checkpoint.resume = 1;
        scoped(release_predictor) adj_predictor *p = fit(train, &part);
        cr_expect_eq(both.steps, STEPS * EPOCHS);
        cr_expect_arr_eq(both.scale, w.scale, sizeof w.scale, "stopped after %d", stop);
        cr_expect_arr_eq(both.skipped, w.skipped, sizeof w.skipped, "stopped after %d", stop);
        expect_same(p, whole, train);
    }
}

/* A weights file has no scale: it begins as it is given, as momenta begin with 0. */
Test(fit_f16, begins_anew_from_weights)
{
    scoped(release_dataset) adj_dataset *train = make_data();
    scoped(folder_remove) folder f = folder_new();
    const file_name file = in_folder(&f, "weights.safetensors");
    watched w = {0}, none = {0};
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
    scoped(release_dataset) adj_dataset *train = make_data();
    scoped(folder_remove) folder f = folder_new();
    const file_name file = in_folder(&f, "checkpoint");
    watched w = {.stop = 4}, bf16 = {.stop = 2};
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
    o = watching(&(watched){0});
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
    scoped(release_dataset) adj_dataset *train = make_data();
    watched w = {0};
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
