/* test_training.c - files exported for training, imported for inference and for training; and
 * losses of more axes than a shape has here. */
#include "loaded.h"

TestSuite(onnx_training, .init = open_folder, .fini = close_folder);

static const adj_onnx_opts training = {.training = 1};

/* A batch norm with mean 3, variance 4 and no epsilon, as training writes it. */
static Onnx__ModelProto *trained_norm(const char *outputs)
{
    return model_with(15,
                      "(float[2,1] x) => (%s) <float[1] scale = {1}, float[1] bias = {0},"
                      "                        float[1] mean = {3}, float[1] variance = {4}>"
                      "{ y, mean2, variance2 = BatchNormalization"
                      "  <training_mode = 1, epsilon = 0.0> (x, scale, bias, mean, variance) }",
                      outputs);
}

/* In training the batch has mean 2 and variance 9. Without it a batch norm computes no new
 * statistics. */
Test(onnx_training, batch_norm)
{
    load_model(trained_norm("y"), NULL);
    expect((double[]){5, -1}, (double[]){1, -2}, 0);
    load_model(trained_norm("y"), &training);
    expect((double[]){5, -1}, (double[]){1, -1}, 0);
    expect_refused(trained_norm("y, mean2"),
                   "output \"mean2\" is a sequence, or depends on results of training");
}

/* Dropout drops in training alone, if it is the file that says so. */
Test(onnx_training, dropout_for_inference)
{
    load_text(15,
              "(float[2,1] x) => (y) <float ratio = {0.75}, float training = {1}>"
              "{ y = Dropout (x, ratio, training) }",
              NULL);
    expect((double[]){5, -1}, (double[]){5, -1}, 0);
}

static double value_of(const char *name)
{
    scoped(release) double *value = fixture_get(e, adj_find(g, name));
    return value[0];
}

static const double batch[] = {1, 2, 5, 8}; /* mean 4 and, unbiased, variance 10 */

/* Batch norms before training: PyTorch stores their ones and zeros once. */
static Onnx__ModelProto *initial_norms(const char *norms)
{
    return model_with(17,
                      "(float[4,1] x) => (y) <float[1] scale = {1}, float[1] bias = {0}>"
                      "{ mean = Identity (bias)  variance = Identity (scale)  %s }",
                      norms);
}

/* The momentum is 0.9. */
Test(onnx_training, equal_initial_values_are_parameters_of_their_own)
{
    load_model(initial_norms("y = BatchNormalization (x, scale, bias, mean, variance)"), &training);
    cr_expect_eq(net->n_param, 4);
    run(batch);
    cr_expect_float_eq(value_of("mean"), 0.4, 1e-6);
    cr_expect_float_eq(value_of("variance"), 1.9, 1e-6);
    cr_expect(value_of("bias") == 0 && value_of("scale") == 1);
}

/* A batch norm that is applied twice moves its statistics twice: from 0 and 1 by a tenth to the
 * batch's mean and variance, then to the 0 and nearly 4 / 3 of the normalized batch. */
Test(onnx_training, batch_norm_applied_twice)
{
    load_model(initial_norms("u = BatchNormalization (x, scale, bias, mean, variance)"
                             "y = BatchNormalization (u, scale, bias, mean, variance)"),
               &training);
    run(batch);
    cr_expect_float_eq(value_of("mean"), 0.9F * 0.4, 1e-6);
    cr_expect_float_eq(value_of("variance"), 0.9 * 1.9 + 0.1 * 4 / 3, 1e-5);
}

Test(onnx_training, statistics_that_are_a_parameter)
{
    write_model(initial_norms("y = BatchNormalization (x, scale, bias, bias, scale)"), path);
    expect_file_refused(&training, "running statistics that are a parameter as well");
    cr_expect_eq(load_file(NULL), ADJ_OK, "%s", error.message);
}

/* ---- seven axes ---- */

/* A loss of 16 labels, each 0, 1 or 2, among three equal numbers; another node. */
static Onnx__ModelProto *loss(const char *reduction, const char *node)
{
    return model_with(
        17,
        "(float[2,3,1,2,1,2,2] x) => (y, log_p)"
        "<int64[2,1,2,1,2,2] labels = {0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0}>"
        "{ y, log_p = SoftmaxCrossEntropyLoss <reduction = %s> (x, labels)  %s }",
        reduction, node);
}

/* Each element is log(2 + e), less 1 where the label is 1: 5 of 16. x has 1 in channel 1, else 0.
 * The last axes of log_p are one. */
Test(onnx_training, loss_of_seven_axes)
{
    const double all = 1.5514447, mean = all - 5.0 / 16;
    double x[48], y[16];
    for (int i = 0; i < 48; i++)
        x[i] = i / 8 % 3 == 1;
    for (int i = 0; i < 16; i++)
        y[i] = all - (i % 3 == 1);
    load_model(loss("none", ""), NULL);
    expect(x, y, 1e-6);
    scoped(release) double *log_p = fixture_get(e, net->output[1]);
    for (int i = 0; i < 48; i++)
        cr_expect_float_eq(log_p[i], x[i] - all, 1e-6);
    const adj_shape s = adj_node_type(net->output[1]).shape;
    cr_expect(s.rank == 6 && s.dim[4] == 1 && s.dim[5] == 4);
    load_model(loss("mean", ""), NULL);
    expect(x, &mean, 1e-6);
}

/* Other operators, of inputs and of log-probabilities, would see other axes. */
Test(onnx_training, other_operators_of_seven_axes)
{
    static const char message[] = "(Relu, opset 17): an operand of more than 6 axes";
    expect_refused(loss("none", "z = Relu (log_p)"), message);
    expect_refused(model_of(17, "(float[2,3,1,2,1,2,2] x) => (y) { y = Relu (x) }"), message);
    expect_refused(
        model_of(17, "(float[1,1,1,1,1,4611686018427387903,3,1] x) => (y) { y = Relu (x) }"),
        "input \"x\": too many elements");
}

/* A net of f16: statistics are computed in f32 and stored in f16; a given f32 node is cast. The
 * bits 15360 are 1. The batch's mean 4 moves a mean of 0 to 0.4, in f16 0x3666. */
Test(onnx_training, norms_in_half)
{
    uint16_t mean = 0;
    write_model(model_of(17, "(float16[4,1] x) => (y)"
                             "<float16[1] scale = {15360}, float16[1] bias = {0},"
                             " float16[1] mean = {0}, float16[1] variance = {15360}>"
                             "{ u = BatchNormalization (x, scale, bias, mean, variance)"
                             "  y = LayerNormalization (u, scale, bias) }"),
                path);
    adj_node *given = adj_input(g, "images", ADJ_F32, (adj_shape){2, {4, 1}});
    const adj_onnx_opts o = {.training = 1, .n_given = 1, .given = &given};
    cr_assert_eq(adj_onnx_load(g, path, &o, &net, &error), ADJ_OK, "%s", error.message);
    cr_expect_eq(adj_node_type(net->output[0]).dtype, ADJ_F16);
    e = plan_of(
        g, &(adj_exec_opts){.n_fetch = 1, .fetch = net->output, .updates = adj_layer_updates(g)});
    set_values(e, given, batch);
    cr_assert_eq(adj_run(e), ADJ_OK);
    cr_assert_eq(adj_get(e, adj_find(g, "mean"), &mean, sizeof mean), ADJ_OK);
    cr_expect_eq(mean, 0x3666, "got %x", mean);
    cr_assert_eq(load_file(NULL), ADJ_OK, "%s", error.message);
}
