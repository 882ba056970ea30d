/* test_predictor.c - any number of images through a predictor of any number of threads:
 * probabilities, loss and right answers of a net of one matrix, by their formulas in f64; and a
 * built-in model's weights as other programs write them: without a card, and of other channels and
 * classes than the model's own three and ten. */
#include <criterion/criterion.h>
#include <math.h>

#include "io/folder.h"
#include "train/tiny.h"

enum { MAX_N = 100, CLASSES = 3 };
static const float w[CLASSES] = {0.5F, -0.25F, 0.125F}, b[CLASSES] = {-1, 2, 0.5F};

static const adj_net net = {
    .build = linear_build, .name = "line", .options.size = {1, 1, 1}, .options.classes = 3};

static adj_predictor *predictor_of(const folder *f, int threads)
{
    const adj_tensor tensors[] = {
        {.name = "logits/w", .elem = ADJ_ELEM_F32, .shape = {2, {1, CLASSES}}, .data = w},
        {.name = "logits/b", .elem = ADJ_ELEM_F32, .shape = {1, {CLASSES}}, .data = b}};
    const file_name path = in_folder(f, "line.safetensors");
    adj_predictor *p = NULL;
    adj_error error = {0};
    cr_assert_eq(adj_tensors_write(path.s, 2, tensors, 0, NULL, NULL), ADJ_OK);
    cr_assert_eq(adj_predictor_load(path.s, &net, &(adj_predictor_opts){.exec.threads = threads},
                                    &p, &error),
                 ADJ_OK, "%s", error.message);
    return p;
}

static uint8_t pixel(int i) { return (uint8_t)(i * 5 % 13); }

/* Sets the probabilities of a pixel. */
static void softmax(double x, double p[CLASSES])
{
    double sum = 0;
    for (int k = 0; k < CLASSES; k++)
        sum += p[k] = exp((double)w[k] * x + (double)b[k]);
    for (int k = 0; k < CLASSES; k++)
        p[k] /= sum;
}

static void expect_probabilities(adj_predictor *p, int n, const uint8_t pixels[])
{
    float got[MAX_N * CLASSES];
    adj_error error = {0};
    cr_assert_eq(adj_predict(p, n, pixels, got, &error), ADJ_OK, "%s", error.message);
    for (int i = 0; i < n; i++) {
        double want[CLASSES];
        softmax(pixels[i], want);
        for (int k = 0; k < CLASSES; k++)
            cr_expect_float_eq((double)got[i * CLASSES + k], want[k], 1e-6, "%d of %d: class %d", i,
                               n, k);
    }
}

static void expect_score(adj_predictor *p, int n, const uint8_t pixels[], const int32_t labels[])
{
    const adj_dataset d = {.n = n,
                           .size = {1, 1, 1},
                           .classes = CLASSES,
                           .images = pixels,
                           .labels = labels,
                           .deviation = {1}};
    int64_t confusion[CLASSES * CLASSES] = {0}, expected[CLASSES * CLASSES] = {0};
    adj_score s;
    adj_error error = {0};
    double loss = 0;
    for (int i = 0; i < n; i++) {
        double p_i[CLASSES];
        softmax(pixels[i], p_i);
        int best = 0;
        for (int k = 1; k < CLASSES; k++)
            best = p_i[k] > p_i[best] ? k : best;
        expected[labels[i] * CLASSES + best]++;
        loss -= log(p_i[labels[i]]) / n;
    }
    cr_assert_eq(adj_predictor_evaluate(p, &d, &s, confusion, &error), ADJ_OK, "%s", error.message);
    cr_expect_eq(s.count, n);
    cr_expect_eq(s.right, expected[0] + expected[4] + expected[8]);
    cr_expect_float_eq(s.loss, loss, 1e-6, "%d images: %.9g", n, s.loss);
    cr_expect_arr_eq(confusion, expected, sizeof expected);
}

Test(many, any_number_on_any_threads)
{
    static const int counts[] = {1, 2, 15, 16, 31, 32, 33, 48, 63, 100};
    scoped(folder_remove) folder f = folder_new();
    uint8_t pixels[MAX_N];
    int32_t labels[MAX_N];
    for (int i = 0; i < MAX_N; i++) {
        pixels[i] = pixel(i);
        labels[i] = i * i % CLASSES;
    }
    for (int threads = 1; threads <= 3; threads++) {
        scoped(release_predictor) adj_predictor *whole = predictor_of(&f, threads);
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
            scoped(release_predictor) adj_predictor *p = predictor_of(&f, threads);
            expect_probabilities(whole, counts[k], pixels);
            expect_probabilities(p, counts[k], pixels);
            expect_score(p, counts[k], pixels, labels);
            expect_score(whole, counts[k], pixels, labels);
        }
    }
}

/* ---- weights of other programs ---- */

enum { CHANNELS = 1, FOREIGN_CLASSES = 4, ROOM = 128 };
static const adj_net foreign = {.name = "resnet8"};

/* Initial weights of resnet8 for gray images of four classes, in a file that says nothing of them
 * but that PyTorch wrote it; theirs: with PyTorch's names and layouts. */
static void put_weights(const char *path, int theirs)
{
    const adj_metadata note = {"format", "pt"};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *logits =
        adj_model_logits(g, adj_model_find(foreign.name, NULL),
                         &(adj_model_opts){.size.c = CHANNELS, .classes = FOREIGN_CLASSES});
    scoped(release_tensors) adj_tensors *file = NULL, *converted = NULL;
    adj_tensor tensor[ROOM];

    scoped(release_exec) adj_exec *e = plan_of(g, &(adj_exec_opts){.n_fetch = 1, .fetch = &logits});
    cr_assert_eq(adj_weights_save(e, path, 1, &note, NULL), ADJ_OK);
    if (theirs) {
        cr_assert_eq(adj_tensors_read(path, &file), ADJ_OK);
        cr_assert_eq(adj_weights_convert(file, g, "pytorch", 1, &converted, NULL), ADJ_OK);
        const int n = converted->n;
        cr_assert_leq(n, ROOM);
        for (int i = 0; i < n; i++)
            tensor[i] = converted->tensor[i];
        cr_assert_eq(adj_tensors_write(path, n, tensor, 1, &note, NULL), ADJ_OK);
    }
}

Test(foreign_weights, tell_their_channels_and_classes)
{
    scoped(folder_remove) folder f = folder_new();
    const file_name path = in_folder(&f, "pt.safetensors");
    for (int theirs = 0; theirs < 2; theirs++) {
        const adj_weights_opts load = {.map = theirs ? "pytorch" : NULL};
        const adj_predictor_opts o = {.weights = &load};
        adj_predictor *p = NULL;
        adj_error error = {0};
        put_weights(path.s, theirs);
        cr_assert_eq(adj_predictor_load(path.s, &foreign, &o, &p, &error), ADJ_OK, "%s",
                     error.message);
        cr_expect_eq(adj_predictor_card(p)->options.classes, FOREIGN_CLASSES);
        cr_expect_eq(adj_predictor_card(p)->options.size.c, CHANNELS);
        adj_predictor_free(p);
        p = NULL;
        cr_expect_eq(adj_predictor_load(path.s, &(adj_net){.name = "resnet8", .options.classes = 5},
                                        &o, &p, &error),
                     ADJ_ESHAPE);
        cr_expect_null(p);
        cr_expect_not_null(strstr(error.message, "4 classes (expected "), "%s", error.message);
        cr_expect_eq(adj_predictor_load(path.s, &(adj_net){.name = "lenet"}, &o, &p, &error),
                     ADJ_ESHAPE);
        cr_expect_not_null(strstr(error.message, "[5, 5, 1, 32]"), "%s", error.message);
    }
}
