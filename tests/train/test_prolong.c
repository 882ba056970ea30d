/* test_prolong.c - trainings that go on after their end: a rate that falls by a period goes on
 * falling, as in one that was planned so long; patience is counted from where the schedule begins
 * anew. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "adjoint_fit.h"
#include "io/folder.h"

enum { N = 40, SIDE = 4, CLASSES = 2, BATCH = 8, STEPS = 5, MOST = 64 };

static uint8_t images[N * SIDE * SIDE];

static adj_dataset *make_data(void)
{
    static int32_t labels[N];
    adj_dataset *d;
    unsigned seed = 7;

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
    (void)training;
    (void)user;
    return adj_layer_dense(x, "logits", classes);
}

static const adj_net net = {.name = "dense", .build = build};

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
    adj_dataset *d = make_data();
    adj_predictor *p = NULL;
    adj_error error = {0};
    cr_assert_eq(adj_fit(&net, d, d, o, &p, &error), ADJ_OK, "%s", error.message);
    cr_assert_eq(adj_predict(p, N, images, probabilities, NULL), ADJ_OK);
    adj_predictor_free(p);
    adj_dataset_free(d);
}

/* Two epochs and then two more, and four at once: the same rates and bits. */
static void expect_as_if_planned(const adj_schedule *s)
{
    static float whole[N * CLASSES], parts[N * CLASSES];
    folder f = folder_new();
    const file_name file = in_folder(&f, "checkpoint");
    course at_once = {0}, in_parts = {0};
    adj_fit_opts o = {.epochs = 4,
                      .batch = BATCH,
                      .lr = 0.1,
                      .schedule = s,
                      .backend = "naive",
                      .threads = 1,
                      .on_step = on_step,
                      .user = &at_once};
    train(&o, whole);
    o.user = &in_parts;
    o.checkpoint = file.s;
    o.epochs = 2;
    train(&o, parts);
    cr_expect_neq(memcmp(whole, parts, sizeof whole), 0);
    o.resume = 1;
    o.epochs = 4;
    train(&o, parts);
    cr_expect_eq(memcmp(whole, parts, sizeof whole), 0);
    cr_expect_eq(at_once.steps, 4 * STEPS);
    cr_expect_eq(in_parts.steps, 4 * STEPS);
    cr_expect_eq(memcmp(at_once.rate, in_parts.rate, sizeof at_once.rate), 0);
    /* step 18: 15 after the warm-up, of which 4 are a period */
    const double fallen = s->kind == ADJ_SCHEDULE_STEP ? 1e-4 : 0.1 * pow(0.1, 3.75);
    cr_expect_float_eq(in_parts.rate[18], fallen, 1e-12);
    folder_remove(&f);
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
    folder f = folder_new();
    const file_name file = in_folder(&f, "checkpoint");
    const adj_schedule constant = {.kind = ADJ_SCHEDULE_CONSTANT};
    course c = {0};
    adj_fit_opts o = {.epochs = 3,
                      .batch = BATCH,
                      .lr = 1e-12,
                      .schedule = &constant,
                      .backend = "naive",
                      .threads = 1,
                      .checkpoint = file.s,
                      .on_step = on_step,
                      .user = &c};
    train(&o, probabilities);
    cr_expect_eq(c.steps, 3 * STEPS);
    o.resume = 1;
    o.epochs = 8;
    o.patience = 2;
    train(&o, probabilities);
    cr_expect_eq(c.steps, 5 * STEPS);
    folder_remove(&f);
}
