/* test_predict.c - adjoint predict with weights of which every image has the same probabilities:
 * all zero but the last bias, log(k + 1), so that class k of ten has (k + 1) / 55. And PyTorch's
 * weights for images of other channels than the model's: predict and eval compute what PyTorch does
 * in float64, of pixels as they are and with the mean and deviation that convert adds. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <math.h>
#include <sys/stat.h>

#include "adjoint_fit.h"
#include "adjoint_io.h"
#include "cli/child.h"
#include "cli/same_images.h"
#include "cli/small_data.h"
#include "io/sample.h"
#include "tests/plan.h"

enum { MAX_TENSORS = 32 };
static finished r;

static const char ten_names[] = "[\"n0\",\"n1\",\"n2\",\"n3\",\"n4\",\"n5\",\"n6\",\"n7\",\"n8\","
                                "\"n nine\"]";

enum { NO_SCALE = 2, NO_NAMES = 5, WHOLE = 6 };
/* With so many entries of the card; nan: logits/b of class 0. */
static void put_weights_with(const folder *f, const char *path, int entries, int nan)
{
    static float values[MAX_TENSORS][60000];
    const file_name trained = in_folder(f, "trained.safetensors");
    scoped(release_tensors) adj_tensors *t = NULL;
    adj_tensor tensor[MAX_TENSORS];
    const adj_metadata card[] = {{"model", "lenet5"}, {"input", "[32,32,1]"},
                                 {"mean", "[33.5]"},  {"deviation", "[78.25]"},
                                 {"classes", "10"},   {"class_names", ten_names}};

    tool(&r, 0, "train --model lenet5 --data %s --epochs 1 --out %s", f->path, trained.s);
    cr_assert_eq(adj_tensors_read(trained.s, &t), ADJ_OK);
    int n = t->n;
    cr_assert_leq(n, MAX_TENSORS);
    for (int i = 0; i < n; i++) {
        tensor[i] = t->tensor[i];
        tensor[i].data = values[i];
        cr_assert_leq(adj_shape_elems(tensor[i].shape), 60000);
        for (int k = 0; k < 10 && strcmp(tensor[i].name, "logits/b") == 0; k++)
            values[i][k] = k == 0 && nan ? NAN : (float)log(k + 1);
    }
    cr_assert_eq(adj_tensors_write(path, n, tensor, entries, card, NULL), ADJ_OK);
}

static void put_weights(const folder *f, const char *path, int entries)
{
    put_weights_with(f, path, entries, 0);
}

Test(predict, one_and_many)
{
    scoped(folder_remove) folder f = small_data();
    const file_name weights = in_folder(&f, "weights"), plain = in_folder(&f, "plain"),
                    gray = in_folder(&f, "gray.png"), rgb = in_folder(&f, "rgb.PNG"),
                    bad = in_folder(&f, "bad.png"), none = in_folder(&f, "none.png");
    char line[1000];
    put_weights(&f, weights.s, WHOLE);
    put_weights(&f, plain.s, NO_NAMES);
    put_sample(&f, "gray.png", "gray.png");
    put_sample(&f, "rgb.PNG", "rgb.png");

    tool(&r, 0, "predict --weights %s %s", weights.s, gray.s);
    snprintf(line, sizeof line, "%s: n nine 18.18 %%\n", gray.s);
    cr_expect_str_eq(r.out, line);
    tool(&r, ANY_STATUS, "predict --weights %s --top 3 %s", plain.s, gray.s);
    snprintf(line, sizeof line, "%s: 9 18.18 %%, 8 16.36 %%, 7 14.55 %%\n", gray.s);
    cr_expect_str_eq(r.out, line);

    /* a folder: by name, and only images; both are 3 x 2 pixels */
    put_file(in_folder(&f, "._gray.png").s, "Mac OS X", 8);
    put_sample(&f, "Thumbs.db", "gray.png");
    put_file(in_folder(&f, "scan.bmp").s, "BM", 2);
    tool(&r, 0, "predict --weights %s %s", weights.s, f.path);
    expect_text(r.err, "note: left out ");
    snprintf(line, sizeof line, "%s: n nine 18.18 %%\n%s: n nine 18.18 %%\n", gray.s, rgb.s);
    cr_expect_str_eq(r.out, line);
    expect_text(r.err, "predict: 2 images, 2 of them resized to 32x32: ");

    /* the bad file is reported, the others are classified */
    put_file(bad.s, sample_of("gray.png").bytes, 40);
    tool(&r, 1, "predict --weights %s %s %s %s", weights.s, none.s, bad.s, gray.s);
    snprintf(line, sizeof line, "%s: n nine 18.18 %%\n", gray.s);
    cr_expect_str_eq(r.out, line);
    cr_expect(strstr(r.err, bad.s) != NULL && strstr(r.err, none.s) != NULL, "%s", r.err);
}

Test(predict, json)
{
    scoped(folder_remove) folder f = small_data();
    const file_name weights = in_folder(&f, "weights"), gray = in_folder(&f, "gray.png");
    put_weights(&f, weights.s, WHOLE);
    put_sample(&f, "gray.png", "gray.png");

    tool(&r, 0, "predict --weights %s --json --top 20 %s", weights.s, gray.s);
    json_t *j = json_loads(r.out, 0, NULL);
    cr_assert_not_null(j, "%s", r.out);
    cr_expect_eq(json_object_size(j), 4);
    cr_expect_str_eq(json_string_value(json_object_get(j, "file")), gray.s);
    cr_expect_str_eq(json_string_value(json_object_get(j, "class")), "n nine");
    cr_expect_float_eq(json_real_value(json_object_get(j, "probability")), 10.0 / 55, 1e-6);
    const json_t *top = json_object_get(j, "top");
    cr_expect_eq(json_array_size(top), 10);
    for (size_t i = 0; i < 10; i++)
        cr_expect_float_eq(json_real_value(json_object_get(json_array_get(top, i), "probability")),
                           (double)(10 - i) / 55, 1e-6);
    json_decref(j);
}

Test(predict, standard_input)
{
    scoped(folder_remove) folder f = small_data();
    const file_name weights = in_folder(&f, "weights"), gray = in_folder(&f, "gray.png");
    put_weights(&f, weights.s, WHOLE);
    put_sample(&f, "gray.png", "gray.png");
    cr_assert_not_null(freopen(gray.s, "rb", stdin));
    tool(&r, 0, "predict --weights %s -", weights.s);
    cr_expect_str_eq(r.out, "-: n nine 18.18 %\n");
    cr_assert_not_null(freopen("/dev/null", "rb", stdin));
    tool(&r, 1, "predict --weights %s -", weights.s);
    expect_text(r.err, "standard input");

    /* a folder can be opened, and not be read */
    cr_assert_not_null(freopen(f.path, "rb", stdin));
    tool(&r, 1, "predict --weights %s -", weights.s);
    expect_text(r.err, "standard input: Is a directory");

    /* longer than an image may be: a file with a hole */
    const file_name hole = in_folder(&f, "hole");
    put_sample(&f, "hole", "gray.png");
    cr_assert_eq(truncate(hole.s, ((off_t)1 << 29) + 1), 0);
    cr_assert_not_null(freopen(hole.s, "rb", stdin));
    tool(&r, 1, "predict --weights %s -", weights.s);
    expect_text(r.err, "standard input: too long for an image");
}

Test(predict, what_is_missing)
{
    scoped(folder_remove) folder f = small_data();
    const file_name weights = in_folder(&f, "weights"), empty = in_folder(&f, "empty");
    put_weights(&f, weights.s, WHOLE);
    tool(&r, 3, "predict --weights %s", weights.s);
    expect_text(r.err, "IMAGE is missing");
    tool(&r, 3, "predict x.png");
    expect_text(r.err, "--weights FILE is missing");
    tool(&r, 1, "predict --weights /nowhere/w x.png");
    expect_text(r.err, "/nowhere/w: No such file");
    cr_assert_eq(mkdir(empty.s, 0700), 0);
    tool(&r, 1, "predict --weights %s %s", weights.s, empty.s);
    expect_text(r.err, "no images in this folder (expected files .png, ");
    rmdir(empty.s);
    const file_name bare = in_folder(&f, "bare"), gray = in_folder(&f, "gray.png");
    put_sample(&f, "gray.png", "gray.png");
    put_weights(&f, bare.s, NO_SCALE);
    tool(&r, 0, "predict --weights %s %s", bare.s, gray.s);
    expect_text(r.err, "bare has no mean or deviation");
    tool(&r, ANY_STATUS, "predict --weights %s %s", weights.s, gray.s);
    cr_expect_str_eq(r.err, "");
}

/* Several images are refused before the weights are read. */
Test(predict, saliency_of_one_image)
{
    tool(&r, 3, "predict --weights /nowhere/w --saliency o.png a.png b.png");
    expect_text(r.err, "--saliency takes one image (got 2)");
    tool(&r, 3, "predict --weights /nowhere/w --saliency why.jpg a.png");
    expect_text(r.err, "--saliency: got why.jpg, expected NAME.png");
}

/* The picture may not replace what the command reads. */
Test(predict, saliency_spares_its_inputs)
{
    scoped(folder_remove) folder f = small_data();
    const file_name weights = in_folder(&f, "weights"), gray = in_folder(&f, "gray.png"),
                    link_name = in_folder(&f, "link");
    char sentence[2 * sizeof gray.s];
    put_weights(&f, weights.s, WHOLE);
    put_sample(&f, "gray.png", "gray.png");
    cr_assert_eq(link(gray.s, link_name.s), 0);
    tool(&r, 3, "predict --weights %s --saliency %s %s", weights.s, link_name.s, gray.s);
    snprintf(sentence, sizeof sentence, "--saliency and IMAGE name the same file (%s)", gray.s);
    expect_text(r.err, sentence);
    tool(&r, 3, "predict --weights %s --saliency %s %s", weights.s, weights.s, gray.s);
    expect_text(r.err, "--saliency and --weights name the same file");
    cr_expect_str_empty(r.out);
    cr_expect(same_file(gray.s, "tests/io/files/gray.png"));
}

/* A softmax with a NaN among its logits is NaN for all classes, and so is the loss. */
Test(predict, weights_with_nan)
{
    scoped(folder_remove) folder f = small_data();
    const file_name weights = in_folder(&f, "weights"), gray = in_folder(&f, "gray.png"),
                    rgb = in_folder(&f, "rgb.png");
    const char *const formats[] = {"--top=3", "--json"};
    const uint8_t pixels[3 * 32 * 32] = {0};
    float probability[30];
    scoped(release_predictor) adj_predictor *p = NULL;
    adj_error error = {0};
    put_weights_with(&f, weights.s, WHOLE, 1);
    put_sample(&f, "gray.png", "gray.png");
    put_sample(&f, "rgb.png", "rgb.png");
    for (int i = 0; i < 2; i++) {
        tool(&r, 1, "predict --weights %s %s %s %s", weights.s, formats[i], gray.s, rgb.s);
        cr_expect_str_eq(r.out, "");
        expect_text(r.err, "gray.png: the net's result is not finite");
        expect_text(r.err, "rgb.png: the net's result is not finite");
    }
    tool(&r, 1, "eval --weights %s --data %s", weights.s, f.path);
    expect_text(r.err, "is not finite: its weights or the images hold NaN");
    tool(&r, 1, "train --weights %s --data %s", weights.s, f.path);
    expect_text(r.err, "the loss is not finite in the first step: the weights or ");
    cr_assert_eq(adj_predictor_load(weights.s, NULL, NULL, &p, &error), ADJ_OK);
    cr_expect_eq(adj_predict(p, 3, pixels, probability, &error), ADJ_EARG);
    cr_expect_str_eq(error.message, "predict: the net's result for image 0 is not finite: its "
                                    "weights or the image hold NaN or infinities");
}

/* The library computes the images beside one that holds NaN. */
Test(predict, an_image_with_nan)
{
    scoped(folder_remove) folder f = small_data();
    const file_name weights = in_folder(&f, "weights");
    static float pixels[3 * 32 * 32];
    float probability[30];
    scoped(release_predictor) adj_predictor *p = NULL;
    adj_error error = {0};
    put_weights(&f, weights.s, WHOLE);
    cr_assert_eq(adj_predictor_load(weights.s, NULL, NULL, &p, &error), ADJ_OK);
    for (int i = 0; i < 32 * 32; i++)
        pixels[32 * 32 + i] = NAN;
    const adj_status status = adj_predict_floats(p, 3, pixels, probability, &error);
    if (isfinite(probability[10])) /* an activation or a maximum may stop the NaN */
        cr_expect_eq(status, ADJ_OK);
    else
        cr_expect(status == ADJ_EARG && strstr(error.message, "image 1 is not") != NULL, "%s",
                  error.message);
    cr_expect_float_eq(probability[9], 10.0 / 55, 1e-6);
    cr_expect_float_eq(probability[29], 10.0 / 55, 1e-6);
}

/* ---- PyTorch's weights; numbers are softmax of the outputs, and cross_entropy ---- */

/* Writes LeNet-5's weights for 3 channels, by names and shapes of PyTorch: numbers of a generator
 * between -0.25 and 0.25. */
static void put_color_weights(const char *path)
{
    static const adj_tensor shapes[] = {{.name = "conv1.weight", .shape = {4, {6, 3, 5, 5}}},
                                        {.name = "conv1.bias", .shape = {1, {6}}},
                                        {.name = "conv2.weight", .shape = {4, {16, 6, 5, 5}}},
                                        {.name = "conv2.bias", .shape = {1, {16}}},
                                        {.name = "fc1.weight", .shape = {2, {120, 400}}},
                                        {.name = "fc1.bias", .shape = {1, {120}}},
                                        {.name = "fc2.weight", .shape = {2, {84, 120}}},
                                        {.name = "fc2.bias", .shape = {1, {84}}},
                                        {.name = "fc3.weight", .shape = {2, {10, 84}}},
                                        {.name = "fc3.bias", .shape = {1, {10}}}};
    enum { TENSORS = sizeof shapes / sizeof shapes[0], ELEMS = 62006 };
    static float values[ELEMS];
    const adj_metadata pytorch = {"format", "pt"};
    adj_tensor t[TENSORS];
    uint32_t state = 1;
    int64_t at = 0;
    for (int i = 0; i < TENSORS; i++) {
        t[i] = shapes[i];
        t[i].elem = ADJ_ELEM_F32;
        t[i].data = values + at;
        at += adj_shape_elems(t[i].shape);
    }
    cr_assert_eq(at, ELEMS);
    for (int64_t k = 0; k < at; k++) {
        state = state * 1664525u + 1013904223u;
        values[k] = ((float)(state >> 8) / 0x1p24f - 0.5f) * 0.5f;
    }
    cr_assert_eq(adj_tensors_write(path, TENSORS, t, 1, &pytorch, NULL), ADJ_OK);
}

/* Expects the probabilities of the classes in a line of predict --json --top 10. */
static void expect_probabilities(const char *line, const double expected[CLASSES])
{
    json_t *j = json_loads(line, JSON_DISABLE_EOF_CHECK, NULL);
    const json_t *top = json_object_get(j, "top");
    cr_assert_eq(json_array_size(top), CLASSES, "%s", line);
    for (size_t i = 0; i < CLASSES; i++) {
        const json_t *one = json_array_get(top, i);
        const int class = atoi(json_string_value(json_object_get(one, "class")));
        cr_expect_float_eq(json_number_value(json_object_get(one, "probability")), expected[class],
                           2e-5, "class %d: %s", class, line);
    }
    json_decref(j);
}

static void expect_eval(const char *said)
{
    cr_assert_eq(r.status, 0, "%s", r.err);
    expect_text(r.out, said);
}

static const double raw[2][CLASSES] = {{0.041746, 0.030932, 0.059585, 0.271283, 0.080628, 0.039577,
                                        0.106940, 0.026211, 0.033614, 0.309485},
                                       {0.033504, 0.031831, 0.050945, 0.268030, 0.090312, 0.028077,
                                        0.116717, 0.020575, 0.048056, 0.311954}},
                    normalized[2][CLASSES] = {{0.313790, 0.072832, 0.044818, 0.111720, 0.070915,
                                               0.079005, 0.063551, 0.024531, 0.032585, 0.186253},
                                              {0.144807, 0.038157, 0.039635, 0.138743, 0.030627,
                                               0.116982, 0.063064, 0.044232, 0.033808, 0.349945}};

Test(imported, predict_and_eval_as_pytorch, .timeout = 60)
{
    scoped(folder_remove) const folder f = folder_new();
    const file_name theirs = in_folder(&f, "theirs.safetensors"), data = in_folder(&f, "data.npz"),
                    ours = in_folder(&f, "ours.safetensors"), bare = in_folder(&f, "bare.npz");
    put_color_weights(theirs.s);
    write_npz(&f, 32, 32, 3, BYTES);
    write_png(&f, 32, 32, 3);
    const file_name first = png_name(&f, 1, 0), second = png_name(&f, 1, 7);

    tool(&r, 0, "predict --weights %s --map pytorch --model lenet5 --json --top 10 %s %s", theirs.s,
         first.s, second.s);
    expect_text(r.err, "convert --mean --deviation");
    expect_probabilities(r.out, raw[0]);
    expect_probabilities(strchr(r.out, '\n') + 1, raw[1]);
    tool(&r, ANY_STATUS, "eval --weights %s --map pytorch --model lenet5 --data %s", theirs.s,
         data.s);
    expect_eval("test loss 2.8536  test accuracy 10.00 % (1 of 10)");

    tool(&r, 0, "convert --map pytorch --model lenet5 %s %s", theirs.s, bare.s);
    for (int i = 0; i < 2; i++) { /* with their names, and with ours */
        const char *const words[] = {"convert",
                                     "--model",
                                     "lenet5",
                                     "--mean",
                                     "0.485,0.456,0.406",
                                     "--deviation",
                                     "0.229,0.224,0.225",
                                     i == 0 ? theirs.s : bare.s,
                                     ours.s,
                                     i == 0 ? "--map" : NULL,
                                     "pytorch",
                                     NULL};
        run_tool(words, &r);
        cr_assert_eq(r.status, 0, "%s", r.err);
        tool(&r, 0, "predict --weights %s --json --top 10 %s %s", ours.s, first.s, second.s);
        cr_expect_str_eq(r.err, "");
        expect_probabilities(r.out, normalized[0]);
        expect_probabilities(strchr(r.out, '\n') + 1, normalized[1]);
        tool(&r, ANY_STATUS, "eval --weights %s --data %s", ours.s, data.s);
        expect_eval("test loss 2.6160  test accuracy 10.00 % (1 of 10)");
        cr_expect_str_eq(r.err, "");
        remove(ours.s);
    }
}

Test(imported, refused_moments)
{
    scoped(folder_remove) const folder f = folder_new();
    const file_name theirs = in_folder(&f, "theirs.safetensors"), ours = in_folder(&f, "o.h"),
                    arrays = in_folder(&f, "o.npz");
    const char *const model[] = {"--map", "pytorch", "--model", "lenet5"};
    static const struct {
        const char *mean, *deviation, *says;
    } cases[] = {
        {"0.5,0.5,0.5", NULL, "--deviation is missing (got only --mean)"},
        {NULL, "0.5", "--mean is missing (got only --deviation)"},
        {"0.5", "0.5", "--mean: expected 3 numbers from 0 to 1, one per channel (got 0.5)"},
        {"0.5,0.5,0.5,0.5", "0.5,0.5,0.5", "--mean: expected 3 numbers"},
        {"124,116,104", "58,57,57", "--mean: expected 3 numbers"},
        {"0.5,,0.5", "1,1,1", "--mean: expected 3 numbers"},
        {"0,0,0", "1,0,1", "--deviation: expected 3 numbers from 1e-06 to 1"},
        {"0,0,0", "1,nan,1", "--deviation: expected 3 numbers"},
    };
    put_color_weights(theirs.s);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *words[ARGUMENTS] = {"convert", theirs.s, ours.s};
        int n = 3;
        for (int k = 0; k < 4; k++)
            words[n++] = model[k];
        if (cases[i].mean != NULL) {
            words[n++] = "--mean";
            words[n++] = cases[i].mean;
        }
        if (cases[i].deviation != NULL) {
            words[n++] = "--deviation";
            words[n++] = cases[i].deviation;
        }
        run_tool(words, &r);
        cr_expect_eq(r.status, 3, "%zu: %d", i, r.status);
        cr_expect_not_null(strstr(r.err, cases[i].says), "%zu: %s", i, r.err);
    }
    tool(&r, ANY_STATUS, "convert %s %s --mean 0 --deviation 1", theirs.s, arrays.s);
    expect_text(r.err, "OUT holds arrays only");
    tool(&r, ANY_STATUS, "convert %s %s --mean 0 --deviation 1", theirs.s, ours.s);
    expect_text(r.err, "does not name its model");
    tool(&r, ANY_STATUS, "convert --map pytorch --to-theirs %s %s --mean 0 --deviation 1", theirs.s,
         ours.s);
    expect_text(r.err, "--mean cannot be combined with --to-theirs");
}
