/* test_emit.c - adjoint emit: the file of a trained net predicts as the net does, from pixels; an
 * ONNX file as well; what is wrong is refused, and an old file stays. */
#include <dlfcn.h>
#include <math.h>

#include "adjoint_fit.h"
#include "cli/child.h"
#include "cli/small_data.h"
#include "tests/plan.h"

static finished r;

static void compile(const char *source, const char *library)
{
    char command[1024];
    snprintf(command, sizeof command,
             "cc -std=c99 -Wall -Wextra -Wpedantic -Wconversion -Werror -O1 -shared -fPIC %s -o %s "
             "-lm",
             source, library);
    cr_assert_eq(system(command), 0, "%s", command); /* NOLINT(cert-env33-c) */
}

/* Softmax of a written net's output for an image, beside the probabilities of the library. */
static void expect_probabilities(const char *library, const uint8_t pixels[784],
                                 const float want[10])
{
    float input[784], output[10], sum = 0;
    void *net = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void (*normalize)(const uint8_t *, float *);
    int (*predict)(const float *, float *);
    cr_assert_not_null(net, "%s", dlerror());
    *(void **)&normalize = dlsym(net, "digits_normalize");
    *(void **)&predict = dlsym(net, "digits_predict");
    cr_assert(normalize != NULL && predict != NULL);
    normalize(pixels, input);
    cr_assert_eq(predict(input, output), 0);
    for (int i = 0; i < 10; i++)
        sum += expf(output[i]);
    for (int i = 0; i < 10; i++)
        cr_expect_float_eq((double)(expf(output[i]) / sum), (double)want[i], 1e-5);
    dlclose(net);
}

Test(emit, a_trained_net)
{
    scoped(folder_remove) folder f = small_data();
    const file_name w = in_folder(&f, "w.safetensors"), c = in_folder(&f, "net.c"),
                    so = in_folder(&f, "net.so");
    tool(&r, 0,
         "train --model lenet5 --data %s --epochs 1 --batch 30 --size 28 --threads 1 --out %s",
         f.path, w.s);
    tool(&r, 0, "emit --weights %s --prefix digits --out %s", w.s, c.s);
    expect_text(r.out, "bytes of C written to");
    compile(c.s, so.s);

    scoped(release_dataset) adj_dataset *d = NULL;
    adj_predictor *p = NULL;
    float probabilities[10];
    adj_error error = {0};
    cr_assert_eq(adj_dataset_digits(ADJ_TEST, 3, 5, &d), ADJ_OK);
    cr_assert_eq(adj_predictor_load(w.s, NULL, NULL, &p, &error), ADJ_OK, "%s", error.message);
    for (ptrdiff_t i = 0; i < 3; i++) {
        cr_assert_eq(adj_predict(p, 1, d->images + 784 * i, probabilities, &error), ADJ_OK);
        expect_probabilities(so.s, d->images + 784 * i, probabilities);
    }
    adj_predictor_free(p);

    /* An ONNX file of this network, which has no mean. */
    const file_name onnx = in_folder(&f, "net.onnx"), c2 = in_folder(&f, "onnx.c"),
                    so2 = in_folder(&f, "onnx.so");
    tool(&r, 0, "convert %s %s", w.s, onnx.s);
    tool(&r, ANY_STATUS, "emit --model %s --prefix digits --out %s", onnx.s, c2.s);
    cr_assert(r.status == 0 && r.err[0] == '\0', "%s", r.err);
    compile(c2.s, so2.s);
    tool(&r, ANY_STATUS, "emit --model %s --train --accumulate --out %s", onnx.s, c2.s);
    cr_assert(r.status == 0 && r.err[0] == '\0', "%s", r.err);
    float input[784], output[2][10];
    void *nets[] = {dlopen(so.s, RTLD_NOW | RTLD_LOCAL), dlopen(so2.s, RTLD_NOW | RTLD_LOCAL)};
    void (*normalize)(const uint8_t *, float *);
    *(void **)&normalize = dlsym(nets[0], "digits_normalize");
    normalize(d->images, input);
    for (int i = 0; i < 2; i++) {
        int (*predict)(const float *, float *);
        *(void **)&predict = dlsym(nets[i], "digits_predict");
        cr_assert_eq(predict(input, output[i]), 0);
        dlclose(nets[i]);
    }
    for (int i = 0; i < 10; i++)
        cr_expect_float_eq((double)output[0][i], (double)output[1][i], 1e-5);
}

/* Counts the digits that a written net classifies correctly. */
static int count_right(const char *library)
{
    adj_dataset *d = NULL;
    void *net = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    cr_assert_not_null(net, "%s", dlerror());
    void (*normalize)(const uint8_t *, float *);
    int (*predict)(const float *, float *), right = 0;
    *(void **)&normalize = dlsym(net, "net_normalize");
    *(void **)&predict = dlsym(net, "net_predict");
    cr_assert_eq(adj_dataset_open(NULL, ADJ_TEST, NULL, &d), ADJ_OK);
    for (ptrdiff_t i = 0; i < d->n; i++) {
        float input[784], output[10];
        int best = 0;
        normalize(d->images + 784 * i, input);
        predict(input, output);
        for (int k = 1; k < 10; k++)
            best = output[k] > output[best] ? k : best;
        right += best == d->labels[i];
    }
    adj_dataset_free(d);
    dlclose(net);
    return right;
}

/* The printed accuracies are those of the written files. */
Test(emit, int8_weights)
{
    scoped(folder_remove) folder f = folder_new();
    const file_name w = in_folder(&f, "w.safetensors"), c = in_folder(&f, "net.c"),
                    so[] = {in_folder(&f, "f32.so"), in_folder(&f, "int8.so")};
    tool(&r, 0, "train --model lenet5 --epochs 1 --limit 2000 --size 28 --threads 1 --out %s", w.s);
    tool(&r, 0, "emit --weights %s --out %s", w.s, c.s);
    cr_expect_null(strstr(r.out, "accuracy"));
    compile(c.s, so[0].s);
    tool(&r, 0, "emit --weights %s --weights-type int8 --out %s", w.s, c.s);
    compile(c.s, so[1].s);
    const int right[] = {count_right(so[0].s), count_right(so[1].s)};
    char want[160];
    snprintf(want, sizeof want,
             "accuracy on embedded digits: %.2f %% in f32, %.2f %% with int8 weights (%d and %d of "
             "2000)\n",
             right[0] / 20.0, right[1] / 20.0, right[0], right[1]);
    cr_expect_not_null(strstr(r.out, want), "got %s, expected %s", r.out, want);
    tool(&r, 1, "emit --weights %s --weights-type int8 --data no-such --out %s", w.s, c.s);
    expect_text(r.err, "no-such: ");
}

/* Writes a weights file that names its model. */
static void put_weights(const char *path, const char *model)
{
    const adj_tensor t = {"w", ADJ_ELEM_F32, {1, {1}}, &(float){0}};
    const adj_metadata m = {"model", model};
    cr_assert_eq(adj_tensors_write(path, 1, &t, 1, &m, NULL), ADJ_OK);
}

/* emit and predict refuse a file of another model, or of one that is not built in, alike. */
Test(emit, another_model)
{
    scoped(folder_remove) folder f = folder_new();
    const file_name w = in_folder(&f, "w.safetensors");
    put_weights(w.s, "mine");
    tool(&r, ANY_STATUS, "emit --weights %s", w.s);
    cr_expect(r.status == 1 && strstr(r.err, "w.safetensors: model mine is not built in; in C, ") &&
                  strstr(r.err, "adj_emit (libadjoint_emit)"),
              "%d: %s", r.status, r.err);
    put_weights(w.s, "mine.onnx");
    tool(&r, ANY_STATUS, "emit --weights %s", w.s);
    cr_expect(r.status == 1 && strstr(r.err, "mine.onnx is not built in; in C, ") &&
                  strstr(r.err, "(set --model to that ONNX file)"),
              "%d: %s", r.status, r.err);
    const char *const words[] = {"emit", "predict"}, *const images[] = {"", "\ndigits"};
    for (int i = 0; i < 2; i++) {
        tool(&r, ANY_STATUS, "%s --weights %s --model lenet5%s", words[i], w.s, images[i]);
        cr_expect(r.status == 1 && strstr(r.err, "w.safetensors: holds another model (got "
                                                 "mine.onnx, expected lenet5)"),
                  "%s %d: %s", words[i], r.status, r.err);
    }
}

/* A step lowers the loss of its images. */
Test(emit, training)
{
    scoped(folder_remove) folder f = folder_new();
    const file_name c = in_folder(&f, "net.c"), so = in_folder(&f, "net.so");
    tool(&r, 0, "emit --model lenet5 --train --batch 2 --freeze conv?/*,fc1/* --out %s", c.s);
    compile(c.s, so.s);
    void *net = dlopen(so.s, RTLD_NOW | RTLD_LOCAL);
    cr_assert_not_null(net, "%s", dlerror());
    int (*step)(const float *, const int32_t *, float, float *);
    *(void **)&step = dlsym(net, "net_train_step");
    cr_assert_not_null(step);
    static float x[2 * 1024];
    float loss[30];
    for (int i = 0; i < 2 * 1024; i++)
        x[i] = (float)(i * 7 % 31) / 31;
    for (int i = 0; i < 30; i++)
        cr_assert_eq(step(x, (int32_t[]){3, 8}, 0.01F, &loss[i]), 0);
    cr_expect_lt(loss[29], loss[0] / 2, "%g to %g", (double)loss[0], (double)loss[29]);
    dlclose(net);
}

/* The last layer alone is trained, as with all others frozen by name: [84, 10] and [10] with their
 * momentum. The batch norms of ds_cnn keep their statistics. */
Test(emit, head_only)
{
    scoped(folder_remove) folder f = folder_new();
    const file_name head = in_folder(&f, "head.c"), frozen = in_folder(&f, "frozen.c");
    char command[3 * sizeof head.s + 80];
    tool(&r, 0, "emit --model lenet5 --train --head-only --out %s", head.s);
    tool(&r, 0, "emit --model lenet5 --train --freeze conv*,fc* --out %s", frozen.s);
    snprintf(command, sizeof command, "cmp %s %s && grep -q 'NET_STATE_BYTES = 6816,' %s", head.s,
             frozen.s, head.s);
    cr_expect_eq(system(command), 0); /* NOLINT(cert-env33-c) */
    tool(&r, 0, "emit --model ds_cnn --train --head-only --out %s", head.s);
    snprintf(command, sizeof command,
             "! grep -q batch_norm_stats %s && grep -q 'STATE_BYTES = 6256,' %s", head.s, head.s);
    cr_expect_eq(system(command), 0); /* NOLINT(cert-env33-c) */
}

static const struct {
    const char *words, *line;
} refused[] = {
    {"--weights FILE is missing, or --model NAME", "emit"},
    {"unknown model lenett (did you mean lenet?)", "emit --model lenett"},
    {"--prefix: not an identifier (got \"a b\"", "emit --model lenet5 --prefix 'a b'"},
    {"--batch: out of range", "emit --model lenet5 --batch 0"},
    {"no-such-file", "emit --weights no-such-file"},
    {"no-such.onnx", "emit --model no-such.onnx"},
    {"--freeze requires --train", "emit --model lenet5 --freeze conv1/*"},
    {"--head-only requires --train", "emit --model lenet5 --head-only"},
    {"--head-only: the last layer has no parameter to train",
     "emit --model lenet5 --train --head-only --freeze logits/*"},
    {"matches no parameter", "emit --model lenet5 --train --freeze nothing"},
    {"matches every parameter", "emit --model lenet5 --train --freeze *"},
    {"--data requires --weights-type int8", "emit --model lenet5 --data digits"},
    {"--data requires --weights, or", "emit --model lenet5 --weights-type int8 --data digits"},
    {"--weights-type: ", "emit --model lenet5 --weights-type int4"},
    {"--out: ", "emit --model lenet5 --out /no/such/folder/net.c"},
};

Test(emit, refused)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        run_line(&r, refused[i].line);
        cr_expect(r.status == 1 || r.status == 3, "%s: %d", refused[i].words, r.status);
        expect_text(r.err, refused[i].words);
        cr_expect_eq(r.out[0], '\0', "%s", r.out);
    }
}

/* Weights of another net: nothing is written, and what was there stays. */
Test(emit, an_old_file_stays)
{
    scoped(folder_remove) folder f = folder_new();
    const file_name w = in_folder(&f, "w.safetensors"), c = in_folder(&f, "net.c");
    const float one[1] = {1};
    const adj_tensor t = {"conv1/w", ADJ_ELEM_F32, {1, {1}}, one};
    cr_assert_eq(adj_tensors_write(w.s, 1, &t, 0, NULL, NULL), ADJ_OK);
    FILE *file = fopen(c.s, "w");
    fputs("old", file);
    fclose(file);
    tool(&r, 1, "emit --weights %s --out %s", w.s, c.s);
    expect_text(r.err, "set --model");
    tool(&r, 1, "emit --weights %s --model lenet5 --out %s", w.s, c.s);
    expect_text(r.err, "conv1/w");
    char text[8] = "";
    file = fopen(c.s, "r");
    cr_assert_eq(fread(text, 1, 7, file), 3);
    fclose(file);
    cr_expect_str_eq(text, "old");
}

/* Without a file the text goes to standard output, whole or not at all. */
Test(emit, standard_output)
{
    tool(&r, 0, "emit --model ds_cnn --prefix kws");
    cr_expect_eq(strncmp(r.out, "/* ds_cnn, written by adjoint", 29), 0, "%.80s", r.out);
    expect_text(r.err, "note: parameters have their initial values");
}

Test(emit, sums)
{
    scoped(folder_remove) folder f = folder_new();
    const file_name c = in_folder(&f, "net.c");
    const char *const words[] = {"f32", "double"};
    for (int i = 0; i < 2; i++) {
        tool(&r, 0, "emit --model lenet5 --sums %s --out %s", words[i], c.s);
        char line[256];
        int has_double = 0;
        FILE *file = fopen(c.s, "r");
        cr_assert_not_null(file);
        while (fgets(line, sizeof line, file) != NULL)
            has_double |= strstr(line, "double sum0[") != NULL;
        fclose(file);
        cr_expect_eq(has_double, i, "%s", words[i]);
    }
}
