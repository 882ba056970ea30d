/* test_normalized.c - arrays of floats that are not pixels: train takes them as normalized, the
 * model card records it, eval reproduces the held-out accuracy, and data that cannot be prepared in
 * the same way are refused. */
#include <criterion/criterion.h>

#include "adjoint_fit.h"
#include "adjoint_io.h"
#include "cli/rows.h"
#include "cli/same_images.h"
#include "cli/small_data.h"
#include "tests/io/scoped.h"

/* Writes NAME/data.npz and trains NAME.safetensors on it. */
static void train(const char *name, npz_kind kind, int h, int w, int c)
{
    folder data;
    snprintf(data.path, sizeof data.path, "%s", name);
    make_folder(name);
    write_npz(&data, h, w, c, kind);
    tool(0,
         "train --data %s/data.npz --model lenet --threads 1 --epochs 2 --batch 8 --out "
         "%s.safetensors",
         name, name);
}

/* Copies the last "test loss 2.3051  test accuracy 10.00 %" that was printed. */
static void held_out(char line[60])
{
    const char *at = NULL;
    for (const char *next = ran.out; (next = strstr(next, "test loss")) != NULL; next++)
        at = next;
    cr_assert_not_null(at, "%s", ran.out);
    snprintf(line, 60, "%.*s", (int)strcspn(at, "%"), at);
}

TestSuite(normalized, .init = enter_empty, .fini = leave, .timeout = 120);

Test(normalized, eval_gives_the_held_out_number)
{
    static const int size[][3] = {{28, 28, 1}, {20, 24, 1}, {30, 26, 3}};
    static const char *const names_of_sizes[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++) {
        const char *name = names_of_sizes[i];
        char line[60], again[60];
        train(name, MINUS_ONE_TO_ONE, size[i][0], size[i][1], size[i][2]);
        expect_text(ran.out, "values below 0 are taken as normalized");
        held_out(line);
        tool(0, "eval --data %s/data.npz --weights %s.safetensors --threads 1", name, name);
        held_out(again);
        cr_expect_str_eq(line, again);
    }
}

Test(normalized, the_card_says_it)
{
    train("floats", MINUS_ONE_TO_ONE, 28, 28, 1);
    train("pixels", ZERO_TO_ONE, 28, 28, 1);
    cr_expect_str_eq(entry_of("floats.safetensors", "adjoint.input"), "normalized");
    cr_expect_str_eq(entry_of("floats.safetensors", "mean"), "[0.0]");
    cr_expect_str_eq(entry_of("floats.safetensors", "deviation"), "[1.0]");
    cr_expect_null(entry_of("pixels.safetensors", "adjoint.input"));
    make_folder("idx");
    make_folder("png");
    write_idx(&(folder){"idx"}, 28, 28, 1);
    write_png(&(folder){"png"}, 28, 28, 1);
    expect_rows("the card says it");
}

/* Writes two images of two pixels, as bytes or floats, with the labels 0 and 1: x.npy and y.npy,
 * with the end of names. */
static void put_values(const folder *f, const char *end, int is_bytes, const float v[4])
{
    uint8_t x[128 + 16], y[128 + 2];
    char name[20];
    npy(is_bytes ? "|u1" : "<f4", 2, 3, 1, 2, 1, x);
    npy("|u1", 2, 1, 0, 0, 0, y);
    memcpy(x + 128, v, 16);
    for (int i = 0; i < 4 && is_bytes; i++)
        x[128 + i] = (uint8_t)v[i];
    y[128] = 0;
    y[129] = 1;
    snprintf(name, sizeof name, "x%s.npy", end);
    put_file(in_folder(f, name).s, x, is_bytes ? 128 + 4 : sizeof x);
    name[0] = 'y';
    put_file(in_folder(f, name).s, y, sizeof y);
}

Test(normalized, the_range_decides)
{
    static const struct {
        float values[4];
        int normalized;
        float factor; /* 0: refused */
    } cases[] = {
        {{0, 0.5f, 0.25f, 1}, 0, 255},    {{0, 0, 0, 0}, 0, 255},
        {{0, 0.5f, 0.25f, 1.002f}, 0, 0}, {{0, 1, 4, 16}, 0, 0},
        {{0, 1, 4, 127.9f}, 0, 0},        {{0, 1, 4, 128}, 0, 1},
        {{0, 1, 254, 255}, 0, 1},         {{-1, 0, 0.5f, 1}, 1, 1},
        {{-1e-6f, 0, 0.5f, 1}, 1, 1},     {{-123.68f, 0, 3, 151}, 1, 1},
        {{-255, 0, 3, 255}, 1, 1},        {{0, 1, 2, 255.01f}, 0, 0},
        {{0, 1, 2, 65535}, 0, 0},         {{-1024, 0, 1, 3000}, 0, 0},
        {{-255.01f, 0, 0, 1}, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scoped(release_dataset) adj_dataset *d = NULL;
        float got[2];
        put_values(&here, "", 0, cases[i].values);
        const adj_status status = adj_dataset_open(".", ADJ_TRAIN, NULL, &d);
        cr_expect_eq(status, cases[i].factor > 0 ? ADJ_OK : ADJ_EIO, "%zu: %s", i, d->message);
        if (status == ADJ_OK) {
            cr_expect_eq(d->normalized, cases[i].normalized, "%zu", i);
            cr_expect_eq(adj_dataset_read(d, 1, got, NULL), ADJ_OK);
            for (int k = 0; k < 2; k++)
                cr_expect_eq(got[k], cases[i].factor * cases[i].values[2 + k], "%zu", i);
            cr_expect(!d->normalized || (d->mean[0] == 0 && d->deviation[0] == 1));
        } else
            expect_text(d->message, "unknown scale of the values (got ");
    }
}

/* A test split has the scale of its training split, which also decides for dark images. */
Test(normalized, the_training_part_decides)
{
    static const struct {
        int is_bytes[2]; /* training, test */
        float values[2][4];
        float factor;     /* factor of the test split; 0: refused */
        const char *says; /* words on the found and expected values */
    } cases[] = {
        {{0, 0}, {{0, 1, 0, 0.5f}, {0, 0.25f, 0.5f, 0.5f}}, 255, NULL},
        {{0, 0},
         {{0, 1, 0, 0.5f}, {0, 1, 128, 255}},
         0,
         "x_test|0 to 255|x_train|0 to 1; divide by 255"},
        {{0, 0},
         {{0, 1, 0, 255}, {0, 0.25f, 0.5f, 1}},
         0,
         "x_test|0 to 1|x_train|0 to 255; multiply by 255"},
        {{0, 0}, {{0, 1, 0, 255}, {0, 1, 2, 100}}, 1, NULL},
        {{0, 0}, {{0, 1, 0, 255}, {0, 0, 0, 0}}, 1, NULL},
        {{0, 0}, {{-1, 1, 0, 1}, {0, 0.5f, 0, 1}}, 0, "x_test|0 to 1|x_train|-1 to 1"},
        {{0, 0}, {{0, 0.5f, 0, 1}, {-1, 1, 0, 1}}, 0, "x_test|-1 to 1|x_train|0 to 1"},
        {{1, 1}, {{0, 1, 2, 3}, {0, 9, 2, 3}}, 1, NULL},
        {{1, 1}, {{0, 1, 0, 0}, {1, 0, 1, 1}}, 255, NULL},
        {{1, 1},
         {{0, 1, 0, 255}, {1, 0, 1, 1}},
         0,
         "x_test|0 to 1|x_train|0 to 255; multiply by 255"},
        {{1, 0},
         {{0, 1, 0, 255}, {1, 0, 0.5f, 1}},
         0,
         "x_test|0 to 1|x_train|0 to 255; multiply by 255"},
        {{1, 0}, {{0, 1, 0, 255}, {1, 0, 2, 100}}, 1, NULL},
        {{0, 1},
         {{0, 1, 0, 0.5f}, {0, 1, 0, 200}},
         0,
         "x_test|0 to 200|x_train|0 to 1; divide by 255"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        adj_dataset *test = NULL;
        float got[2];
        put_values(&here, "_train", cases[i].is_bytes[0], cases[i].values[0]);
        put_values(&here, "_test", cases[i].is_bytes[1], cases[i].values[1]);
        scoped(release_dataset) adj_dataset *d = dataset_of(".", ADJ_TRAIN, NULL);
        const adj_status status =
            adj_dataset_open(".", ADJ_TEST, &(adj_dataset_opts){.like = d}, &test);
        cr_expect_eq(status, cases[i].factor > 0 ? ADJ_OK : ADJ_EIO, "%zu: %s", i, test->message);
        char says[60] = "";
        snprintf(says, sizeof says, "%s", cases[i].says != NULL ? cases[i].says : "");
        const char *at = test->message;
        for (char *word = strtok(says, "|"); word != NULL; word = strtok(NULL, "|")) {
            at = at != NULL ? strstr(at, word) : NULL;
            cr_expect_not_null(at, "%zu: no \"%s\" in: %s", i, word, test->message);
        }
        for (int k = 0; status == ADJ_OK && k < 2; k++) {
            cr_expect_eq(adj_dataset_read(test, 1, got, NULL), ADJ_OK);
            cr_expect_eq(got[k], cases[i].factor * cases[i].values[1][2 + k], "%zu", i);
        }
        adj_dataset_free(test);
    }
}

#define TRAIN "train --data . --model lenet --epochs 1 --out w.safetensors --batch 2 --threads 1"
#define EVAL "eval --data test --weights w.safetensors --threads 1"

/* The card keeps the range of the training split: eval, which does not open that part, decides by
 * it. */
Test(normalized, the_card_keeps_the_range)
{
    static const float black_and_white[4] = {0, 1, 1, 0}, gray[4] = {0, 3, 200, 0},
                       dark[4] = {0, 3, 100, 0};
    const folder test = {"test"};
    cr_assert_eq(mkdir(test.path, 0700), 0);
    put_values(&here, "_train", 1, black_and_white);
    put_values(&here, "_test", 1, black_and_white);
    prints(0, "x_train: values from 0 to 1 are taken as pixels divided by 255", TRAIN);
    cr_expect_str_eq(entry_of("w.safetensors", "adjoint.range"), "[0.0,1.0]");
    cr_expect_str_eq(entry_of("w.safetensors", "mean"), "[127.5]");
    put_values(&test, "_test", 1, gray);
    complains(1, "(got 0 to 200, expected that of the training, 0 to 1; divide by 255)", EVAL);

    put_values(&here, "_train", 0, gray);
    put_values(&here, "_test", 0, dark);
    put_values(&test, "_test", 0, dark);
    tool(0, TRAIN);
    tool(0, EVAL);
    put_values(&test, "_test", 0, black_and_white);
    complains(1, "(got 0 to 1, expected that of the training, 0 to 200; multiply by 255)", EVAL);
}

/* The library refuses pixels for a net of normalized data, and the other way round. */
Test(normalized, the_library_refuses)
{
    const uint8_t pixels[28 * 28] = {0};
    float probability[CLASSES];
    train("floats", MINUS_ONE_TO_ONE, 28, 28, 1);
    scoped(release_predictor) adj_predictor *p = predictor_from("floats.safetensors");
    scoped(release_dataset) adj_dataset *d = dataset_of("floats/data.npz", ADJ_TRAIN, NULL);
    adj_predictor *q = NULL;
    adj_score score;
    adj_error error = {0};
    make_folder("idx");
    write_idx(&(folder){"idx"}, 28, 28, 1);
    cr_expect_eq(adj_predictor_card(p)->normalized, 1);
    cr_expect_eq(adj_predict(p, 1, pixels, probability, &error), ADJ_EARG);
    expect_text(error.message, "adj_predict_floats");
    adj_dataset *other = dataset_of("idx", ADJ_TEST, NULL);
    cr_expect_eq(adj_predictor_evaluate(p, other, &score, NULL, &error), ADJ_ESHAPE);
    expect_text(error.message, "(the data are pixels)");
    const adj_net lenet = {.name = "lenet"};
    cr_expect_eq(adj_fit(&lenet, d, other, NULL, &q, &error), ADJ_ESHAPE);
    expect_text(error.message, "only the training data are already normalized");
    cr_expect_eq(adj_fit(&lenet, other, d, NULL, &q, &error), ADJ_ESHAPE);
    adj_dataset_free(other);
    cr_expect_eq(adj_dataset_open("idx", ADJ_TEST, &(adj_dataset_opts){.like = d}, &other),
                 ADJ_EIO);
    adj_dataset_free(other);
}
