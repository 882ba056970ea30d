/* test_imported.c - PyTorch's weights for images of other channels than the model's: predict and
 * eval compute what PyTorch does, of pixels as they are and with the mean and deviation that
 * convert adds. The numbers are those of PyTorch in float64: softmax of the outputs, and
 * cross_entropy. */
#include <criterion/criterion.h>
#include <jansson.h>

#include "adjoint_io.h"
#include "cli/child.h"
#include "cli/same_images.h"
#include "tests/plan.h"

static finished r;

/* Writes LeNet-5's weights for 3 channels, by names and shapes of PyTorch: numbers of a generator
 * between -0.25 and 0.25. */
static void put_weights(const char *path)
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
    put_weights(theirs.s);
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
    put_weights(theirs.s);
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
