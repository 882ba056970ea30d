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
#include "cli/rows.h"
#include "cli/same_images.h"
#include "cli/small_data.h"
#include "io/sample.h"
#include "tests/plan.h"

enum { MAX_TENSORS = 32 };
static const char ten_names[] = "[\"n0\",\"n1\",\"n2\",\"n3\",\"n4\",\"n5\",\"n6\",\"n7\",\"n8\","
                                "\"n nine\"]";

enum { NO_SCALE = 2, NO_NAMES = 5, WHOLE = 6 };
/* With so many entries of the card; first: logits/b of class 0. */
static void put_weights(const char *path, int entries, float first)
{
    static float values[MAX_TENSORS][60000];
    adj_tensor tensor[MAX_TENSORS];
    const adj_metadata card[] = {{"model", "lenet5"}, {"input", "[32,32,1]"},
                                 {"mean", "[33.5]"},  {"deviation", "[78.25]"},
                                 {"classes", "10"},   {"class_names", ten_names}};

    tool(0, "train --model lenet5 --data . --epochs 1 --out trained.safetensors");
    scoped(release_tensors) adj_tensors *t = tensors_of("trained.safetensors");
    int n = t->n;
    cr_assert_leq(n, MAX_TENSORS);
    for (int i = 0; i < n; i++) {
        tensor[i] = t->tensor[i];
        tensor[i].data = values[i];
        cr_assert_leq(adj_shape_elems(tensor[i].shape), 60000);
        for (int k = 0; k < 10 && strcmp(tensor[i].name, "logits/b") == 0; k++)
            values[i][k] = k == 0 ? first : (float)log(k + 1);
    }
    cr_assert_eq(adj_tensors_write(path, n, tensor, entries, card, NULL), ADJ_OK);
}

/* Digits to train on, two images of 3 x 2 pixels, and weights. */
static void enter_images(void)
{
    const folder f = small_data();
    put_sample(&f, "gray.png", "gray.png");
    put_sample(&f, "rgb.PNG", "rgb.png");
    put_sample(&f, "Thumbs.db", "gray.png");
    enter(f);
    put_weights("weights", WHOLE, 0);
}

TestSuite(predict, .init = enter_images, .fini = leave);
TestSuite(imported, .init = enter_empty, .fini = leave);

Test(predict, one_and_many)
{
    put_weights("plain", NO_NAMES, 0);
    put_file("._gray.png", "Mac OS X", 8);
    put_file("scan.bmp", "BM", 2);
    cr_assert_eq(shell("head -c 40 gray.png >bad"), 0);
    expect_rows("one and many");
}

Test(predict, json)
{
    tool(0, "predict --weights weights --json --top 20 gray.png");
    json_t *j = json_of(ran.out);
    cr_expect_eq(json_object_size(j), 4);
    cr_expect_str_eq(word_in(j, "file"), "gray.png");
    cr_expect_str_eq(word_in(j, "class"), "n nine");
    cr_expect_float_eq(number_in(j, "probability"), 10.0 / 55, 1e-6);
    const json_t *top = json_object_get(j, "top");
    cr_expect_eq(json_array_size(top), 10);
    for (size_t i = 0; i < 10; i++)
        cr_expect_float_eq(number_in(json_array_get(top, i), "probability"), (double)(10 - i) / 55,
                           1e-6);
}

/* An image; a folder, which can be opened and not be read; longer than an image may be: a file with
 * a hole. */
Test(predict, standard_input)
{
    cr_assert_eq(truncate("Thumbs.db", ((off_t)1 << 29) + 1), 0);
    expect_rows("standard input");
}

Test(predict, what_is_missing)
{
    cr_assert_eq(mkdir("empty", 0700), 0);
    put_weights("bare", NO_SCALE, 0);
    expect_rows("what is missing");
}

/* Several images are refused before the weights are read; the picture may not replace what the
 * command reads. */
Test(predict, saliency)
{
    cr_assert_eq(link("gray.png", "link"), 0);
    expect_rows("saliency");
    cr_expect(same_file("gray.png", "Thumbs.db"));
}

/* A softmax with a NaN among its logits is NaN for all classes, and so is the loss. */
Test(predict, weights_with_nan)
{
    const uint8_t pixels[3 * 32 * 32] = {0};
    float probability[30];
    adj_error error = {0};
    put_weights("weights", WHOLE, NAN);
    expect_rows("weights with nan");
    scoped(release_predictor) adj_predictor *p = predictor_from("weights");
    cr_expect_eq(adj_predict(p, 3, pixels, probability, &error), ADJ_EARG);
    cr_expect_str_eq(error.message, "predict: the net's result for image 0 is not finite: its "
                                    "weights or the image hold NaN or infinities");
}

/* The library computes the images beside one that holds NaN. */
Test(predict, an_image_with_nan)
{
    static float pixels[3 * 32 * 32];
    float probability[30];
    scoped(release_predictor) adj_predictor *p = predictor_from("weights");
    adj_error error = {0};
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

/* Expects the probabilities of two images in the lines of predict --json --top 10. */
static void expect_probabilities(const double expected[2][CLASSES])
{
    const char *at = ran.out;
    for (int i = 0; i < 2; i++) {
        double got[CLASSES];
        at = read_probabilities(at, got);
        for (int k = 0; k < CLASSES; k++)
            cr_expect_float_eq(got[k], expected[i][k], 2e-5, "class %d: %s", k, ran.out);
    }
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
    const file_name first = png_name(&here, 1, 0), second = png_name(&here, 1, 7);
    put_color_weights("theirs.safetensors");
    write_npz(&here, 32, 32, 3, BYTES);
    write_png(&here, 32, 32, 3);

    complains(
        0, "convert --mean --deviation",
        "predict --weights theirs.safetensors --map pytorch --model lenet5 --json --top 10 %s %s",
        first.s, second.s);
    expect_probabilities(raw);
    prints(0, "test loss 2.8536  test accuracy 10.00 % (1 of 10)",
           "eval --weights theirs.safetensors --map pytorch --model lenet5 --data data.npz");

    tool(0, "convert --map pytorch --model lenet5 theirs.safetensors bare.npz");
    for (int i = 0; i < 2; i++) { /* with their names, and with ours */
        tool(0,
             "convert --model lenet5 --mean 0.485,0.456,0.406 --deviation 0.229,0.224,0.225 %s "
             "ours.safetensors %s",
             i == 0 ? "theirs.safetensors" : "bare.npz", i == 0 ? "--map=pytorch" : "");
        tool(0, "predict --weights ours.safetensors --json --top 10 %s %s", first.s, second.s);
        cr_expect_str_eq(ran.err, "");
        expect_probabilities(normalized);
        prints(0, "test loss 2.6160  test accuracy 10.00 % (1 of 10)",
               "eval --weights ours.safetensors --data data.npz");
        cr_expect_str_eq(ran.err, "");
        remove("ours.safetensors");
    }
}

Test(imported, refused_moments)
{
    put_color_weights("theirs");
    expect_rows("refused moments");
}
