/* tiny.h - the data, nets and trainers that the tests of trainings share. */
#ifndef TESTS_TRAIN_TINY_H
#define TESTS_TRAIN_TINY_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_fit.h"
#include "io/folder.h"
#include "tests/io/scoped.h"

/* Images with noise from a counter, in which class k is brighter where a value's number is k modulo
 * the classes; labels in turn. */
static inline adj_dataset *tiny_data(int64_t n, int h, int w, int c, int classes, unsigned seed)
{
    const int64_t each = (int64_t)h * w * c;
    scoped(release) uint8_t *images = malloc((size_t)(n * each));
    scoped(release) int32_t *labels = malloc((size_t)n * sizeof *labels);
    adj_dataset *d;
    for (int64_t i = 0; i < n * each; i++) {
        const int64_t label = labels[i / each] = (int32_t)(i / each * 7 % classes);
        seed = seed * 1103515245u + 12345u;
        images[i] = (uint8_t)((seed >> 16) % 120 + (i % each % classes == label ? 100 : 0));
    }
    cr_assert_eq(adj_dataset_new(n, h, w, c, classes, images, labels, 1, &d), ADJ_OK);
    return d;
}

/* A convolution, with a batch norm, by which the images of a batch depend on each other, or with
 * dropout, which counts images as the batch does; and a matrix. */
static inline adj_node *tiny_layers(adj_node *x, int64_t classes, int training, int has_norm,
                                    int has_dropout)
{
    const adj_conv_layer conv = {.filters = 4, .padding = ADJ_SAME};
    const adj_norm_layer norm = {.training = training};
    x = adj_layer_conv2d(x, "conv", &conv);
    x = adj_relu(has_norm ? adj_layer_batch_norm(x, "bn", &norm) : x);
    x = has_dropout ? adj_layer_dropout(x, "drop", 0.2, training) : x;
    return adj_layer_dense(x, "logits", classes, NULL);
}

static inline adj_node *tiny_build(adj_node *x, int64_t classes, int training, void *user)
{
    (void)user;
    return tiny_layers(x, classes, training, 1, 0);
}
static const adj_net tiny_net = {.name = "tiny", .build = tiny_build};

static inline adj_node *linear_build(adj_node *x, int64_t classes, int training, void *user)
{
    (void)training, (void)user;
    return adj_layer_dense(x, "logits", classes, NULL);
}
static const adj_net linear_net = {.name = "linear", .build = linear_build};

/* Options of most trainings here; a test sets what differs. */
static inline adj_fit_opts tiny_opts(void)
{
    return (adj_fit_opts){.epochs = 3,
                          .batch = 16,
                          .exec.seed = 3,
                          .optimizer.lr = 0.05,
                          .exec.backend = "naive",
                          .exec.threads = 1};
}

static inline adj_trainer *tiny_trainer(const adj_net *net, const adj_dataset *train,
                                        const adj_dataset *held_out, const adj_fit_opts *o)
{
    adj_trainer *t = NULL;
    adj_error error = {0};
    cr_assert_eq(adj_trainer_new(net, train, held_out, o, &t, &error), ADJ_OK, "%s", error.message);
    return t;
}

static inline adj_predictor *tiny_fit(const adj_net *net, const adj_dataset *train,
                                      const adj_dataset *held_out, const adj_fit_opts *o)
{
    adj_predictor *p = NULL;
    adj_error error = {0};
    cr_assert_eq(adj_fit(net, train, held_out, o, &p, &error), ADJ_OK, "%s", error.message);
    return p;
}

static inline void tiny_run(adj_trainer *t)
{
    adj_error error = {0};
    cr_assert_eq(adj_trainer_run(t, &error), ADJ_OK, "%s", error.message);
}

/* Reports of a training's steps; stop: after how many it ends (0: as it is planned). */
enum { COURSE = 64 };
typedef struct {
    int stop, steps, epochs;
    double rate[COURSE], scale[COURSE];
    int64_t skipped[COURSE];
    adj_fit_progress last; /* at the end of an epoch */
} course;

static inline int course_step(void *user, const adj_fit_progress *p)
{
    course *c = user;
    const int64_t i = (p->epoch - 1) * p->steps + p->step - 1;
    cr_assert_lt(i, COURSE);
    c->rate[i] = p->lr;
    c->scale[i] = p->loss_scale;
    c->skipped[i] = p->skipped;
    return ++c->steps == c->stop;
}

static inline int course_epoch(void *user, const adj_fit_progress *p)
{
    course *c = user;
    c->last = *p;
    c->epochs++;
    return 0;
}

/* tiny_opts, whose training is recorded. */
static inline adj_fit_opts tiny_watched(course *c)
{
    adj_fit_opts o = tiny_opts();
    o.on.step = course_step;
    o.on.epoch = course_epoch;
    o.on.user = c;
    return o;
}

/* Probabilities by exp and a sum in double. */
static inline void softmax(int n, const float logits[], double p[])
{
    double sum = 0;
    for (int k = 0; k < n; k++)
        sum += p[k] = exp((double)logits[k]);
    for (int k = 0; k < n; k++)
        p[k] /= sum;
}

/* Both have the same bits for all images. */
static inline void expect_same_predictions(adj_predictor *a, adj_predictor *b, const adj_dataset *d)
{
    const size_t n = (size_t)(d->n * d->classes);
    scoped(release) float *p = malloc(n * sizeof *p), *q = malloc(n * sizeof *q);
    cr_assert_eq(adj_predict(a, d->n, d->images, p, NULL), ADJ_OK);
    cr_assert_eq(adj_predict(b, d->n, d->images, q, NULL), ADJ_OK);
    cr_expect_arr_eq(p, q, n * sizeof *p);
}

/* Stops the training after each of its steps: what goes on from the checkpoint is as if it had
 * never stopped. o: tiny_watched with more. */
static inline void expect_resumed_after_any_step(const adj_net *net, const adj_dataset *train,
                                                 const adj_dataset *test, adj_fit_opts o)
{
    course whole = {0};
    o.on.user = &whole;
    scoped(release_predictor) adj_predictor *expected = tiny_fit(net, train, test, &o);
    cr_assert_gt(whole.steps, 0);
    for (int stop = 1; stop <= whole.steps; stop++) {
        scoped(folder_remove) folder f = folder_new();
        const file_name file = in_folder(&f, "checkpoint");
        course parts = {.stop = stop};
        o.on.user = &parts;
        o.checkpoint.path = file.s;
        o.checkpoint.resume = 0;
        adj_predictor_free(tiny_fit(net, train, test, &o));
        cr_expect_eq(parts.steps, stop);
        o.checkpoint.resume = 1;
        scoped(release_predictor) adj_predictor *p = tiny_fit(net, train, test, &o);
        cr_expect_eq(parts.steps, whole.steps);
        cr_expect_eq(parts.last.held_out.loss, whole.last.held_out.loss);
        cr_expect_eq(parts.last.best_epoch, whole.last.best_epoch);
        cr_expect_arr_eq(parts.rate, whole.rate, sizeof whole.rate, "stopped after %d", stop);
        cr_expect_arr_eq(parts.scale, whole.scale, sizeof whole.scale, "stopped after %d", stop);
        cr_expect_arr_eq(parts.skipped, whole.skipped, sizeof whole.skipped, "stopped after %d",
                         stop);
        expect_same_predictions(p, expected, test);
    }
}

/* adj_fit fails so, with these words in its message, and makes nothing, unless a step fails. */
static inline void expect_no_fit(const adj_net *net, const adj_dataset *train,
                                 const adj_dataset *held_out, const adj_fit_opts *o,
                                 adj_status status, const char *words)
{
    scoped(release_predictor) adj_predictor *p = NULL;
    adj_error error = {0};
    cr_expect_eq(adj_fit(net, train, held_out, o, &p, &error), status, "%s: %s", words,
                 error.message);
    cr_expect(p == NULL || strstr(words, "step") != NULL, "%s", words);
    cr_expect_not_null(strstr(error.message, words), "expected %s, got %s", words, error.message);
}

#endif
