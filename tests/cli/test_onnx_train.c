/* test_onnx_train.c - the net of an ONNX file trained further: frozen layers keep every bit, their
 * running statistics too, the last layer is new for the data's classes, and the trained weights are
 * evaluated, predicted with, trained on and resumed. */
#include <criterion/criterion.h>
#include <math.h>

#include "adjoint_onnx.h"
#include "cli/rows.h"
#include "cli/train_log.h"
#include "graph/op.h"
#include "onnx/model_text.h"
#include "small_data.h"

enum { CHANNELS = 4, CLASSES = 10 };

/* Values of the file: numbers from one on; those of bn are far from the statistics of the data. The
 * first five leaves can be frozen. */
static struct {
    const char *name;
    float from, value[CHANNELS * 9];
    int n;
} leaf[] = {{.name = "conv1.weight", -0.5F}, {.name = "bn1.weight", 0.5F},
            {.name = "bn1.bias", 0.25F},     {.name = "bn1.running_mean", 0.125F},
            {.name = "bn1.running_var", 3},  {.name = "fc.weight", -0.5F},
            {.name = "fc.bias", 0.75F}};
enum { BN_BIAS = 2, N_FROZEN = 5, FC_WEIGHT = 5, N_LEAF = 7 };

/* Writes a convolution of gray images of that height and width, "28,28", batch norm, relu, global
 * pool and a Linear. */
static void write_net(const char *sides)
{
    Onnx__ModelProto *m = model_with(
        17,
        "(float[batch,1,%s] x) => (y)"
        "<float[4,1,3,3] conv1.weight, float[4] bn1.weight, float[4] bn1.bias,"
        " float[4] bn1.running_mean, float[4] bn1.running_var, float[7,4] fc.weight,"
        " float[7] fc.bias>"
        "{ a = Conv (x, conv1.weight)"
        "  b = BatchNormalization (a, bn1.weight, bn1.bias, bn1.running_mean, bn1.running_var)"
        "  c = Relu (b)  d = GlobalAveragePool (c)  e = Flatten (d)"
        "  y = Gemm <transB = 1> (e, fc.weight, fc.bias) }",
        sides);
    for (int i = 0; i < N_LEAF; i++) {
        const Onnx__TensorProto *t = initializer_of(m, leaf[i].name);
        leaf[i].n = (int)t->n_float_data;
        for (int k = 0; k < leaf[i].n; k++)
            t->float_data[k] = leaf[i].value[k] = leaf[i].from + 0.25F * (float)((k * 7 + 3) % 5);
    }
    write_model(m, "net.onnx");
}

static void set_up(void)
{
    enter_small_data();
    write_net("28,28");
}

TestSuite(onnx_train, .init = set_up, .fini = leave);

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
    const adj_shape list = {1, {leaf[i].n}}, images = {4, {3, 3, 1, CHANNELS}};
    const float *now = trained(t, leaf[i].name, i == 0 ? images : list);
    for (int k = 0; k < leaf[i].n; k++)
        ours[k] = leaf[i].value[i == 0 ? k % CHANNELS * 9 + k / CHANNELS : k];
    return memcmp(now, ours, (size_t)leaf[i].n * sizeof *now) == 0;
}

Test(onnx_train, freeze_and_new_head)
{
    json_t *log = train_log(0, "--model net.onnx --head new --freeze conv1.weight,bn1.* --epochs 4 "
                               "--lr 0.05 --out out.safetensors");
    const double first = log_event_number(log, "epoch", 0, "loss");
    const double last = log_event_number(log, "epoch", 3, "loss");
    cr_expect(last < first, "%g, then %g", first, last);

    scoped(release_tensors) adj_tensors *t = tensors_of("out.safetensors");
    for (int i = 0; i < N_FROZEN; i++)
        cr_expect(same_as_file(t, i), "%s", leaf[i].name);
    const float *w = trained(t, "fc.weight", (adj_shape){2, {CLASSES, CHANNELS}});
    trained(t, "fc.bias", (adj_shape){1, {CLASSES}});
    cr_expect_neq(memcmp(w, leaf[FC_WEIGHT].value, (size_t)leaf[FC_WEIGHT].n * sizeof *w), 0);

    prints(0, "net.onnx on ", "eval --model net.onnx --weights out.safetensors --data .");
}

/* Without --freeze every parameter and both statistics move; with weights of its own the tool says
 * which last layer is new, and that of the same number of classes is, too. */
Test(onnx_train, new_head_alone)
{
    prints(0, "new last layer of 10 classes: fc.weight, fc.bias\n",
           "train --model net.onnx --data . --head new --epochs 1 --out out.safetensors");
    scoped(release_tensors) adj_tensors *t = tensors_of("out.safetensors");
    for (int i = 0; i < N_FROZEN; i++)
        cr_expect_not(same_as_file(t, i), "%s", leaf[i].name);

    expect_rows("on from the trained weights");
}

Test(onnx_train, refused) { expect_rows("refused"); }

/* The first step of a range test shows NaN in the file. */
Test(onnx_train, rate_for_weights_of_nan)
{
    leaf[BN_BIAS].from = NAN;
    write_net("28,28");
    complains(1, "--lr auto: the loss is not finite in the first step",
              "train --model net.onnx --data . --head new --lr auto");
}

/* The height and the width are those of --size, then those in the weights file. */
Test(onnx_train, symbolic_size)
{
    write_net("batch,batch");
    complains(1,
              "the size of axis 2 (\"batch\") is not known (expected a fixed size in the file, or "
              "--size HxW of train and compare",
              "train --model net.onnx --data . --head new");
    expect_rows("symbolic size");
}

/* A run that is prolonged ends with the bits of one that was as long from the beginning. */
Test(onnx_train, resumed) { expect_rows("resumed"); }
