/* test_onnx_train.c - the net of an ONNX file trained further: frozen layers keep every bit, their
 * running statistics too, the last layer is new for the data's classes, and the trained weights are
 * evaluated, predicted with, trained on and resumed. */
#include <criterion/criterion.h>
#include <math.h>

#include "adjoint_onnx.h"
#include "cli/train_log.h"
#include "graph/op.h"
#include "onnx/model_maker.h"
#include "small_data.h"

enum { CHANNELS = 4, FILE_CLASSES = 7, CLASSES = 10 };

static folder f;
static file_name net, out;
static finished r;

/* Values of the file; those of bn are far from the statistics of the data. */
static float filter[CHANNELS * 9], scale[CHANNELS], bias[CHANNELS], mean[CHANNELS];
static float variance[CHANNELS], fc_weight[FILE_CLASSES * CHANNELS], fc_bias[FILE_CLASSES];
static const struct {
    const char *name;
    const float *value;
    int n;
} frozen[] = {{"conv1.weight", filter, CHANNELS * 9},
              {"bn1.weight", scale, CHANNELS},
              {"bn1.bias", bias, CHANNELS},
              {"bn1.running_mean", mean, CHANNELS},
              {"bn1.running_var", variance, CHANNELS}};

static void fill(float value[], int n, float from)
{
    for (int i = 0; i < n; i++)
        value[i] = from + 0.25F * (float)((i * 7 + 3) % 5);
}

/* Writes a convolution of 28 x 28 gray images, batch norm, relu, global pool and a Linear, with
 * biases of bn1 from that number on. */
static void write_net(float from)
{
    static int64_t x[] = {-1, 1, 28, 28}, w[] = {CHANNELS, 1, 3, 3}, channels[] = {CHANNELS};
    static int64_t fc[] = {FILE_CLASSES, CHANNELS}, classes[] = {FILE_CLASSES};
    maker m;
    fill(filter, CHANNELS * 9, -0.5F);
    fill(scale, CHANNELS, 0.5F);
    fill(bias, CHANNELS, from);
    fill(mean, CHANNELS, 0.125F);
    fill(variance, CHANNELS, 3);
    fill(fc_weight, FILE_CLASSES * CHANNELS, -0.5F);
    fill(fc_bias, FILE_CLASSES, 0.75F);
    maker_x_to_y(&m, 17, 4, x);
    maker_floats(&m, "conv1.weight", 4, w, filter);
    maker_floats(&m, "bn1.weight", 1, channels, scale);
    maker_floats(&m, "bn1.bias", 1, channels, bias);
    maker_floats(&m, "bn1.running_mean", 1, channels, mean);
    maker_floats(&m, "bn1.running_var", 1, channels, variance);
    maker_floats(&m, "fc.weight", 2, fc, fc_weight);
    maker_floats(&m, "fc.bias", 1, classes, fc_bias);
    maker_node(&m, "Conv", "x conv1.weight", "a");
    maker_node(&m, "BatchNormalization", "a bn1.weight bn1.bias bn1.running_mean bn1.running_var",
               "b");
    maker_node(&m, "Relu", "b", "c");
    maker_node(&m, "GlobalAveragePool", "c", "d");
    maker_node(&m, "Flatten", "d", "e");
    maker_node(&m, "Gemm", "e fc.weight fc.bias", "y");
    maker_int(&m, "transB", 1);
    maker_write(&m, net.s);
}

static void set_up(void)
{
    f = small_data();
    net = in_folder(&f, "net.onnx");
    out = in_folder(&f, "out.safetensors");
    write_net(0.25F);
}

static void tear_down(void) { folder_remove(&f); }

TestSuite(onnx_train, .init = set_up, .fini = tear_down);

/* Returns the tensor of that name of the trained weights, f32 and of that shape. */
static const float *trained(const adj_tensors *t, const char *name, adj_shape shape)
{
    const int i = adj_tensors_find(t, name);
    cr_assert_geq(i, 0, "%s", name);
    cr_assert(t->tensor[i].elem == ADJ_ELEM_F32 && adj_shape_equal(t->tensor[i].shape, shape), "%s",
              name);
    return t->tensor[i].data;
}

/* The filters stand as [kh, kw, in, out] in the weights. */
static int same_as_file(const adj_tensors *t, int i)
{
    static float ours[CHANNELS * 9];
    const adj_shape list = {1, {frozen[i].n}}, images = {4, {3, 3, 1, CHANNELS}};
    const float *now = trained(t, frozen[i].name, i == 0 ? images : list);
    for (int k = 0; k < frozen[i].n; k++)
        ours[k] = frozen[i].value[i == 0 ? k % CHANNELS * 9 + k / CHANNELS : k];
    return memcmp(now, ours, (size_t)frozen[i].n * sizeof *now) == 0;
}

static adj_tensors *read_weights(void)
{
    adj_tensors *t = NULL;
    cr_assert_eq(adj_tensors_read(out.s, &t), ADJ_OK, "%s", t->message);
    return t;
}

Test(onnx_train, freeze_and_new_head)
{
    json_t *log = train_to(&f,
                           WORDS("--model", net.s, "--head", "new", "--freeze",
                                 "conv1.weight,bn1.*", "--epochs", "4", "--lr", "0.05"),
                           out.s);
    const double first = log_event_number(log, "epoch", 0, "loss");
    const double last = log_event_number(log, "epoch", 3, "loss");
    cr_expect(last < first, "%g, then %g", first, last);
    json_decref(log);

    adj_tensors *t = read_weights();
    for (int i = 0; i < 5; i++)
        cr_expect(same_as_file(t, i), "%s", frozen[i].name);
    const float *w = trained(t, "fc.weight", (adj_shape){2, {CLASSES, CHANNELS}});
    trained(t, "fc.bias", (adj_shape){1, {CLASSES}});
    cr_expect_neq(memcmp(w, fc_weight, sizeof fc_weight), 0);
    adj_tensors_free(t);

    tool(&r, 0, "eval --model %s --weights %s --data %s", net.s, out.s, f.path);
    expect_text(r.out, "net.onnx on ");
}

/* Without --freeze every parameter and both statistics move; with weights of its own the tool says
 * which last layer is new, and that of the same number of classes is, too. */
Test(onnx_train, new_head_alone)
{
    tool(&r, 0, "train --model %s --data %s --head new --epochs 1 --out %s", net.s, f.path, out.s);
    expect_text(r.out, "new last layer of 10 classes: fc.weight, fc.bias\n");
    adj_tensors *t = read_weights();
    for (int i = 0; i < 5; i++)
        cr_expect_not(same_as_file(t, i), "%s", frozen[i].name);
    adj_tensors_free(t);

    /* on, from the trained weights: their last layer is kept, or new again */
    const file_name more = in_folder(&f, "more.safetensors");
    tool(&r, 0, "train --model %s --data %s --weights %s --epochs 1 --out %s", net.s, f.path, out.s,
         more.s);
    expect_text(r.out, "7 parameters and states loaded from");
    tool(&r, 0, "train --model %s --data %s --weights %s --epochs 1 --head new --out %s", net.s,
         f.path, out.s, more.s);
    expect_text(r.out, "  fc.weight: new\n");
    expect_text(r.out, "  conv1.weight: loaded from conv1.weight\n");
    tool(&r, 3, "train --model %s --data %s --weights %s --head new --freeze fc.bias", net.s,
         f.path, out.s);
    expect_text(r.err, "fc.bias would stay random, as it is not loaded (1 such)");
}

Test(onnx_train, refused)
{
    tool(&r, 1, "train --model %s --data %s", net.s, f.path);
    expect_text(r.err, "net.onnx has 7 classes, the data 10 (--head new trains a new "
                       "last layer)");
    tool(&r, 3, "train --model %s --data %s --head new --freeze fc*", net.s, f.path);
    expect_text(r.err, "--freeze fc*: fc.weight would stay random, as the last layer "
                       "is new");
    tool(&r, 3, "train --model %s --data %s --map pytorch", net.s, f.path);
    expect_text(r.err, "--map requires --weights FILE");
}

/* The first step of a range test shows NaN in the file. */
Test(onnx_train, rate_for_weights_of_nan)
{
    write_net(NAN);
    tool(&r, 1, "train --model %s --data %s --head new --lr auto", net.s, f.path);
    expect_text(r.err, "--lr auto: the loss is not finite in the first step");
}

/* A run that is prolonged ends with the bits of one that was as long from the beginning. */
Test(onnx_train, resumed)
{
    const file_name checkpoint = in_folder(&f, "run.ckpt"), whole = in_folder(&f, "w.safetensors");
    const char *const parts[][2] = {{"2", whole.s}, {"1", NULL}, {"2", out.s}};
    for (int i = 0; i < 3; i++) {
        const char *words[ARGUMENTS] = {"--model",    net.s,     "--head",   "new",
                                        "--freeze",   "bn1.*",   "--epochs", parts[i][0],
                                        "--schedule", "constant"};
        int n = 10;
        if (i > 0) {
            words[n++] = "--checkpoint";
            words[n++] = checkpoint.s;
        }
        if (i == 2)
            words[n++] = "--resume";
        json_decref(train_to(&f, words, parts[i][1]));
    }
    cr_expect(same_file(out.s, whole.s));
}
