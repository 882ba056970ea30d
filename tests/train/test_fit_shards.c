/* test_fit_shards.c - a training whose batches are cut into shards, or accumulated, by one process:
 * what the whole batch gives, but for rounding; and what checkpoints and options make of it. More
 * processes are in tests/mpi. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_fit.h"
#include "io/folder.h"

enum { N = 70, H = 6, W = 5, C = 2, CLASSES = 3, BATCH = 16, EPOCHS = 3, VALUES = 2000 };

static adj_dataset *make_data(void)
{
    static uint8_t images[N * H * W * C];
    static int32_t labels[N];
    unsigned seed = 1;
    adj_dataset *d;
    for (int64_t i = 0; i < N; i++) {
        labels[i] = (int32_t)(i * 7 % CLASSES);
        for (int k = 0; k < H * W * C; k++) {
            seed = seed * 1103515245u + 12345u;
            images[i * H * W * C + k] =
                (uint8_t)((seed >> 16) % 120 + (k % CLASSES == labels[i] ? 100 : 0));
        }
    }
    cr_assert_eq(adj_dataset_new(N, H, W, C, CLASSES, images, labels, 1, &d), ADJ_OK);
    return d;
}

/* An image knows no other; dropout counts images as the batch does. */
static adj_node *build(adj_node *x, int64_t classes, int training, void *user)
{
    const adj_conv_layer conv = {.filters = 4, .padding = ADJ_SAME};
    (void)user;
    x = adj_relu(adj_layer_conv2d(x, "conv", &conv));
    return adj_layer_dense(adj_layer_dropout(x, "drop", 0.2, training), "logits", classes);
}

static const adj_net net = {.name = "tiny", .build = build};

static adj_fit_opts usual(void)
{
    return (adj_fit_opts){
        .epochs = EPOCHS, .batch = BATCH, .seed = 3, .lr = 0.05, .backend = "naive", .threads = 1};
}

/* Tuning may choose other kernels for each of two plans whose bits are compared. */
static void plan_as_usual(void) { unsetenv("ADJOINT_PLAN"); }
TestSuite(fit_shards, .init = plan_as_usual);

/* All parameters after the training, and how it went. */
static adj_fit_progress train(const adj_dataset *d, const adj_fit_opts *o, float values[VALUES])
{
    adj_trainer *t = NULL;
    adj_error error = {0};
    size_t n = 0;
    cr_assert_eq(adj_trainer_new(&net, d, d, o, &t, &error), ADJ_OK, "%s", error.message);
    cr_assert_eq(adj_trainer_run(t, &error), ADJ_OK, "%s", error.message);
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
    const adj_fit_progress at = adj_trainer_progress(t);
    adj_trainer_free(t);
    return at;
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
    cr_expect_float_eq(p.loss, q.loss, 1e-5);
    cr_expect_eq(p.images, q.images);
    cr_expect_float_eq(p.accuracy, q.accuracy, 1e-12);
    cr_expect_eq(q.n_rank, 1);
}

/* The last batch of an epoch has 6 images, in shards of 4 as 4, 2, 0 and 0: they count by these. */
Test(fit_shards, of_a_batch)
{
    adj_dataset *d = make_data();
    const adj_fit_opts whole = usual();
    adj_fit_opts cut = usual();
    for (cut.shards = 2; cut.shards <= BATCH; cut.shards *= 2)
        expect_close(d, &whole, &cut);
    adj_dataset_free(d);
}

Test(fit_shards, class_weights)
{
    static const float weights[CLASSES] = {0.5F, 2, 1};
    adj_dataset *d = make_data();
    adj_fit_opts whole = usual(), cut = usual();
    whole.class_weights = cut.class_weights = weights;
    cut.shards = 4;
    expect_close(d, &whole, &cut);
    adj_dataset_free(d);
}

/* Two batches of 8 are one of 16. */
Test(fit_shards, accumulated)
{
    adj_dataset *d = make_data();
    const adj_fit_opts whole = usual();
    adj_fit_opts cut = usual();
    cut.batch = 8;
    cut.accumulate = 2;
    expect_close(d, &whole, &cut);
    cut.shards = 2;
    expect_close(d, &whole, &cut);
    adj_dataset_free(d);
}

/* oneDNN's filter gradients and matrix products, which add up by threads, are left out. */
Test(fit_shards, same_bits_for_any_number_of_threads)
{
    static float one[VALUES], more[VALUES];
    adj_dataset *d = make_data();
    adj_fit_opts o = usual();
    o.backend = "onednn";
    o.shards = 2;
    o.same_bits = 1;
    train(d, &o, one);
    for (o.threads = 2; o.threads <= 4; o.threads++) {
        train(d, &o, more);
        cr_expect_arr_eq((char *)more, (char *)one, sizeof one, "%d threads", (int)o.threads);
    }
    adj_dataset_free(d);
}

static int stop_at_4(void *user, const adj_fit_progress *now)
{
    (void)user;
    return now->epoch == 2 && now->step == 2;
}

Test(fit_shards, resumed)
{
    static float whole[VALUES], halves[VALUES];
    adj_dataset *d = make_data();
    folder f = folder_new();
    const file_name path = in_folder(&f, "c.ckpt");
    adj_fit_opts o = usual();
    adj_trainer *t = NULL;
    adj_error error = {0};
    o.shards = 4;
    train(d, &o, whole);
    o.checkpoint = path.s;
    o.on_step = stop_at_4;
    train(d, &o, halves);
    o.on_step = NULL;
    cr_assert_eq(adj_trainer_new(&net, d, d, &o, &t, &error), ADJ_OK, "%s", error.message);
    cr_assert_eq(adj_trainer_resume(t, path.s, &error), ADJ_OK, "%s", error.message);
    cr_assert_eq(adj_trainer_run(t, &error), ADJ_OK, "%s", error.message);
    adj_exec *e = adj_trainer_exec(t);
    const adj_node *p = adj_exec_param_at(e, 0);
    cr_assert_eq(adj_get(e, p, halves, adj_type_bytes(adj_node_type(p))), ADJ_OK);
    cr_expect_arr_eq((char *)whole, (char *)halves, adj_type_bytes(adj_node_type(p)));
    adj_trainer_free(t);
    o.shards = 2;
    cr_assert_eq(adj_trainer_new(&net, d, d, &o, &t, &error), ADJ_OK, "%s", error.message);
    cr_expect_eq(adj_trainer_resume(t, path.s, &error), ADJ_EARG);
    cr_expect_not_null(strstr(error.message, "its entry shards differs (got 2, expected 4)"), "%s",
                       error.message);
    adj_trainer_free(t);
    folder_remove(&f);
    adj_dataset_free(d);
}

Test(fit_shards, refused)
{
    adj_dataset *d = make_data();
    static const struct {
        int64_t shards, accumulate;
        const char *why;
    } cases[] = {{3, 0, "batch (got 16, expected a multiple of 3 shards)"},
                 {-1, 0, "shards (got -1"},
                 {0, -1, "accumulate (got -1"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        adj_fit_opts o = usual();
        adj_trainer *t = NULL;
        adj_error error = {0};
        o.shards = cases[i].shards;
        o.accumulate = cases[i].accumulate;
        cr_expect_eq(adj_trainer_new(&net, d, d, &o, &t, &error), ADJ_EARG);
        cr_expect_not_null(strstr(error.message, cases[i].why), "%s", error.message);
        cr_expect_null(t);
    }
    adj_dataset_free(d);
}
