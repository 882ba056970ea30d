/* test_emit.c - adjoint emit: the file of a trained net predicts as the net does, from pixels; an
 * ONNX file as well; what is wrong is refused, and an old file stays. */
#include <dlfcn.h>
#include <math.h>

#include "adjoint_fit.h"
#include "cli/rows.h"
#include "cli/small_data.h"
#include "tests/plan.h"

/* Compiles net.c of the working folder to a library, which is opened. */
static void *compile(const char *library)
{
    char path[64];
    cr_assert_eq(shell("cc -std=c99 -Wall -Wextra -Wpedantic -Wconversion -Werror -O1 -shared "
                       "-fPIC net.c -o %s -lm",
                       library),
                 0, "%s", ran.err);
    snprintf(path, sizeof path, "./%s", library);
    void *net = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    cr_assert_not_null(net, "%s", dlerror());
    return net;
}

typedef struct {
    void (*normalize)(const uint8_t *, float *);
    int (*predict)(const float *, float *);
} functions;

/* The functions of an open library, whose names begin with net. */
static functions functions_of(void *library)
{
    functions f;
    *(void **)&f.normalize = dlsym(library, "net_normalize");
    *(void **)&f.predict = dlsym(library, "net_predict");
    cr_assert(f.normalize != NULL && f.predict != NULL);
    return f;
}

/* Softmax of a written net's output for an image, beside the probabilities of the library. */
static void expect_probabilities(functions net, const uint8_t pixels[784], const float want[10])
{
    float input[784], output[10], sum = 0;
    net.normalize(pixels, input);
    cr_assert_eq(net.predict(input, output), 0);
    for (int i = 0; i < 10; i++)
        sum += expf(output[i]);
    for (int i = 0; i < 10; i++)
        cr_expect_float_eq((double)(expf(output[i]) / sum), (double)want[i], 1e-5);
}

TestSuite(emit, .init = enter_small_data, .fini = leave);

Test(emit, a_trained_net)
{
    tool(0, "train --model lenet5 --data . --epochs 1 --batch 30 --size 28 --threads 1 --out "
            "w.safetensors");
    prints(0, "bytes of C written to", "emit --weights w.safetensors --out net.c");
    const functions net = functions_of(compile("net.so"));

    scoped(release_dataset) adj_dataset *d = NULL;
    scoped(release_predictor) adj_predictor *p = predictor_from("w.safetensors");
    float probabilities[10];
    adj_error error = {0};
    cr_assert_eq(adj_dataset_digits(ADJ_TEST, 3, 5, &d), ADJ_OK);
    for (ptrdiff_t i = 0; i < 3; i++) {
        cr_assert_eq(adj_predict(p, 1, d->images + 784 * i, probabilities, &error), ADJ_OK);
        expect_probabilities(net, d->images + 784 * i, probabilities);
    }

    /* An ONNX file of this network, which has no mean. */
    tool(0, "convert w.safetensors net.onnx");
    tool(0, "emit --model net.onnx --out net.c");
    cr_assert_str_empty(ran.err);
    const functions of_onnx = functions_of(compile("onnx.so"));
    tool(0, "emit --model net.onnx --train --accumulate --out net.c");
    cr_assert_str_empty(ran.err);
    float input[784], output[2][10];
    net.normalize(d->images, input);
    cr_assert_eq(net.predict(input, output[0]), 0);
    cr_assert_eq(of_onnx.predict(input, output[1]), 0);
    for (int i = 0; i < 10; i++)
        cr_expect_float_eq((double)output[0][i], (double)output[1][i], 1e-5);
}

/* Counts the digits that a written net classifies correctly. */
static int count_right(functions net)
{
    scoped(release_dataset) adj_dataset *d = dataset_of(NULL, ADJ_TEST, NULL);
    int right = 0;
    for (ptrdiff_t i = 0; i < d->n; i++) {
        float input[784], output[10];
        int best = 0;
        net.normalize(d->images + 784 * i, input);
        net.predict(input, output);
        for (int k = 1; k < 10; k++)
            best = output[k] > output[best] ? k : best;
        right += best == d->labels[i];
    }
    return right;
}

/* The printed accuracies are those of the written files. */
Test(emit, int8_weights)
{
    tool(0,
         "train --model lenet5 --epochs 1 --limit 2000 --size 28 --threads 1 --out w.safetensors");
    tool(0, "emit --weights w.safetensors --out net.c");
    cr_expect_null(strstr(ran.out, "accuracy"));
    const int in_f32 = count_right(functions_of(compile("f32.so")));
    tool(0, "emit --weights w.safetensors --weights-type int8 --out net.c");
    static char printed[PRINTED];
    memcpy(printed, ran.out, sizeof printed);
    const int in_int8 = count_right(functions_of(compile("int8.so")));
    char want[160];
    snprintf(want, sizeof want,
             "accuracy on embedded digits: %.2f %% in f32, %.2f %% with int8 weights (%d and %d of "
             "2000)\n",
             in_f32 / 20.0, in_int8 / 20.0, in_f32, in_int8);
    expect_text(printed, want);
    complains(1, "no-such: ",
              "emit --weights w.safetensors --weights-type int8 --data no-such --out net.c");
}

/* Writes w.safetensors, which names its model. */
static void put_weights(const char *model)
{
    const adj_tensor t = {"w", ADJ_ELEM_F32, {1, {1}}, &(float){0}};
    const adj_metadata m = {"model", model};
    cr_assert_eq(adj_tensors_write("w.safetensors", 1, &t, 1, &m, NULL), ADJ_OK);
}

/* emit and predict refuse a file of another model, or of one that is not built in, alike. */
Test(emit, another_model)
{
    static const char other[] =
        "w.safetensors: holds another model (got mine.onnx, expected lenet5)";
    put_weights("mine");
    complains(1, "w.safetensors: model mine is not built in; in C, ",
              "emit --weights w.safetensors");
    expect_text(ran.err, "adj_emit (libadjoint_emit)");
    put_weights("mine.onnx");
    complains(1, "mine.onnx is not built in; in C, ", "emit --weights w.safetensors");
    expect_text(ran.err, "(set --model to that ONNX file)");
    complains(1, other, "emit --weights w.safetensors --model lenet5");
    complains(1, other, "predict --weights w.safetensors --model lenet5 digits");
}

/* A step lowers the loss of its images. */
Test(emit, training)
{
    tool(0, "emit --model lenet5 --train --batch 2 --freeze conv?/*,fc1/* --out net.c");
    int (*step)(const float *, const int32_t *, float, float *);
    *(void **)&step = dlsym(compile("net.so"), "net_train_step");
    cr_assert_not_null(step);
    static float x[2 * 1024];
    float loss[30];
    for (int i = 0; i < 2 * 1024; i++)
        x[i] = (float)(i * 7 % 31) / 31;
    for (int i = 0; i < 30; i++)
        cr_assert_eq(step(x, (int32_t[]){3, 8}, 0.01F, &loss[i]), 0);
    cr_expect_lt(loss[29], loss[0] / 2, "%g to %g", (double)loss[0], (double)loss[29]);
}

/* The last layer alone is trained, as with all others frozen by name: [84, 10] and [10] with their
 * momentum. The batch norms of ds_cnn keep their statistics. */
Test(emit, head_only) { expect_rows("head only"); }

Test(emit, refused) { expect_rows("refused"); }

/* Weights of another net: nothing is written, and what was there stays. */
Test(emit, an_old_file_stays)
{
    const float one[1] = {1};
    const adj_tensor t = {"conv1/w", ADJ_ELEM_F32, {1, {1}}, one};
    cr_assert_eq(adj_tensors_write("w.safetensors", 1, &t, 0, NULL, NULL), ADJ_OK);
    expect_rows("an old file stays");
}

/* Without a file the text goes to standard output, whole or not at all. */
Test(emit, standard_output)
{
    expect_rows("standard output");
    cr_expect_eq(strncmp(ran.out, "/* ds_cnn, written by adjoint", 29), 0, "%.80s", ran.out);
}

Test(emit, sums) { expect_rows("sums"); }
