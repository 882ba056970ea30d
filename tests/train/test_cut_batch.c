/* test_cut_batch.c - a batch larger than the training data is cut to them: the training is that
 * with a batch of all images, bit for bit, and no step computes fillers. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_fit.h"
#include "io/folder.h"

enum { N = 10, SIDE = 4, CLASSES = 2 };

static adj_dataset *make_data(void)
{
    static uint8_t images[N * SIDE * SIDE];
    static int32_t labels[N];
    adj_dataset *d = NULL;

    for (int i = 0; i < N; i++) {
        labels[i] = i % CLASSES;
        for (int k = 0; k < SIDE * SIDE; k++)
            images[i * SIDE * SIDE + k] = (uint8_t)(37 * k + 11 * i + 90 * (i % 2));
    }
    cr_assert_eq(adj_dataset_new(N, SIDE, SIDE, 1, CLASSES, images, labels, 1, &d), ADJ_OK);
    return d;
}

/* Batch norm: a filler would count in its statistics. */
static adj_node *build(adj_node *x, int64_t classes, int training, void *user)
{
    const adj_conv_layer conv = {.filters = 3, .padding = ADJ_SAME};
    const adj_batch_norm_layer norm = {.training = training};
    (void)user;
    x = adj_relu(adj_layer_batch_norm(adj_layer_conv2d(x, "conv", &conv), "bn", &norm));
    return adj_layer_dense(x, "logits", classes);
}

static const adj_net net = {.name = "tiny", .build = build};

static adj_fit_opts options(int64_t batch, int64_t accumulate, int64_t shards)
{
    return (adj_fit_opts){.epochs = 3,
                          .batch = batch,
                          .accumulate = accumulate,
                          .shards = shards,
                          .seed = 3,
                          .lr = 0.05,
                          .backend = "naive",
                          .threads = 1};
}

static adj_trainer *open_trainer(const adj_dataset *d, const adj_fit_opts *o)
{
    adj_trainer *t = NULL;
    adj_error error = {0};
    cr_assert_eq(adj_trainer_new(&net, d, NULL, o, &t, &error), ADJ_OK, "%s", error.message);
    return t;
}

/* Trains and writes the weights to path. Returns the last loss. */
static double train(const adj_dataset *d, const adj_fit_opts *o, int64_t batch, int64_t accumulate,
                    int64_t per_shard, const char *path)
{
    adj_error error = {0};
    adj_trainer *t = open_trainer(d, o);
    const adj_node *images = adj_find(adj_node_graph(adj_trainer_loss(t)), "images");

    cr_expect_eq(adj_trainer_progress(t).batch, batch);
    cr_expect_eq(adj_trainer_progress(t).accumulate, accumulate);
    cr_expect_eq(adj_node_type(images).shape.dim[0], per_shard);
    cr_assert_eq(adj_trainer_run(t, &error), ADJ_OK, "%s", error.message);
    const double loss = adj_trainer_progress(t).step_loss;
    cr_assert_eq(adj_predictor_save(adj_trainer_predictor(t, NULL), path, 0, NULL, &error), ADJ_OK);
    adj_trainer_free(t);
    return loss;
}

static void expect_same_file(const char *a, const char *b)
{
    char command[900];
    snprintf(command, sizeof command, "cmp '%s' '%s'", a, b);
    cr_expect_eq(system(command), 0); // NOLINT(cert-env33-c): the test's own words
}

Test(cut_batch, as_if_it_had_been_asked_for)
{
    /* batch, accumulate and shards given; as cut; images of a shard */
    static const int64_t cases[][6] = {{100000, 1, 1, 10, 1, 10}, {11, 1, 1, 10, 1, 10},
                                       {64, 4, 1, 10, 1, 10},     {4, 7, 1, 4, 3, 4},
                                       {400, 1, 4, 12, 1, 3},     {10, 1, 1, 10, 1, 10}};
    adj_dataset *d = make_data();
    folder f = folder_new();
    const file_name got = in_folder(&f, "got"), want = in_folder(&f, "want");

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int64_t *c = cases[i];
        const adj_fit_opts given = options(c[0], c[1], c[2]), asked = options(c[3], c[4], c[2]);
        const double loss = train(d, &given, c[3], c[4], c[5], got.s);
        cr_expect_eq(loss, train(d, &asked, c[3], c[4], c[5], want.s));
        expect_same_file(got.s, want.s);
    }
    folder_remove(&f);
    adj_dataset_free(d);
}

/* A checkpoint has the batch as cut, so that both ways to ask for it go on. */
Test(cut_batch, resumed)
{
    adj_dataset *d = make_data();
    folder f = folder_new();
    const file_name path = in_folder(&f, "checkpoint");
    const adj_fit_opts large = options(500, 1, 1), cut = options(10, 1, 1), less = options(5, 1, 1);
    adj_error error = {0};
    adj_tensors *file = NULL;
    adj_trainer *t = open_trainer(d, &large);

    cr_assert_eq(adj_trainer_step(t, &error), ADJ_OK);
    cr_assert_eq(adj_trainer_save(t, path.s, &error), ADJ_OK);
    adj_trainer_free(t);
    cr_assert_eq(adj_tensors_read(path.s, &file), ADJ_OK);
    cr_expect_str_eq(adj_tensors_metadata(file, "batch"), "10");
    adj_tensors_free(file);
    t = open_trainer(d, &large);
    cr_expect_eq(adj_trainer_resume(t, path.s, &error), ADJ_OK, "%s", error.message);
    adj_trainer_free(t);
    t = open_trainer(d, &cut);
    cr_expect_eq(adj_trainer_resume(t, path.s, &error), ADJ_OK, "%s", error.message);
    adj_trainer_free(t);
    t = open_trainer(d, &less);
    cr_expect_neq(adj_trainer_resume(t, path.s, &error), ADJ_OK);
    cr_expect_not_null(strstr(error.message, "its entry batch differs (got 5, expected 10)"), "%s",
                       error.message);
    adj_trainer_free(t);
    folder_remove(&f);
    adj_dataset_free(d);
}
