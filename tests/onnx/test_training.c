/* test_training.c - files exported for training, imported for inference and for training; and
 * losses of more axes than a shape has here. */
#include <math.h>

#include "adjoint_nn.h"
#include "loaded.h"
#include "tests/plan.h"

TestSuite(onnx_training, .init = open_folder, .fini = close_folder);

static maker m;

/* A batch norm of x [2, 1] with mean 3, variance 4 and no epsilon, as training writes it. */
static void batch_norm(void)
{
    static float one[] = {1}, zero[] = {0}, three[] = {3}, four[] = {4};
    static int64_t size[] = {1};
    maker_x_to_y(&m, 15, 2, (int64_t[]){2, 1});
    maker_floats(&m, "scale", 1, size, one);
    maker_floats(&m, "bias", 1, size, zero);
    maker_floats(&m, "mean", 1, size, three);
    maker_floats(&m, "variance", 1, size, four);
    maker_node(&m, "BatchNormalization", "x scale bias mean variance", "y mean2 variance2");
    maker_int(&m, "training_mode", 1);
    maker_float(&m, "epsilon", 0);
}

/* Loads and runs the file on x [2, 1]. */
static void expect(const adj_onnx_opts *o, const float x[2], const float want[2])
{
    float y[2];
    maker_write(&m, path);
    cr_assert_eq(adj_onnx_load(g, path, o, &net, &error), ADJ_OK, "%s", error.message);
    scoped(release_exec) adj_exec *e =
        plan_of(g, &(adj_exec_opts){.n_fetch = 1, .fetch = net->output});
    cr_assert(adj_set(e, net->input[0], x, 8) == ADJ_OK && adj_run(e) == ADJ_OK);
    cr_assert_eq(adj_get(e, net->output[0], y, sizeof y), ADJ_OK);
    cr_expect(y[0] == want[0] && y[1] == want[1], "%g %g", (double)y[0], (double)y[1]);
}

Test(onnx_training, batch_norm_for_inference)
{
    batch_norm();
    expect(NULL, (float[]){5, -1}, (float[]){1, -2});
}

/* The batch has mean 2 and variance 9. */
Test(onnx_training, batch_norm_in_training)
{
    batch_norm();
    expect(&(adj_onnx_opts){.training = 1}, (float[]){5, -1}, (float[]){1, -1});
}

/* A batch norm of x [4, 1] before training: PyTorch stores its ones and zeros once. */
static void initial_batch_norm(const char *operands)
{
    static float one[] = {1}, zero[] = {0};
    static int64_t size[] = {1};
    maker_x_to_y(&m, 17, 2, (int64_t[]){4, 1});
    maker_floats(&m, "scale", 1, size, one);
    maker_floats(&m, "bias", 1, size, zero);
    maker_node(&m, "Identity", "bias", "mean");
    maker_node(&m, "Identity", "scale", "variance");
    maker_node(&m, "BatchNormalization", operands, "y");
    maker_write(&m, path);
}

static float value_of(adj_exec *e, const char *name)
{
    float value = NAN;
    cr_assert_eq(adj_get(e, adj_find(g, name), &value, sizeof value), ADJ_OK, "%s", name);
    return value;
}

/* The batch has mean 4 and, unbiased, variance 10; the momentum is 0.9. */
Test(onnx_training, equal_initial_values_are_parameters_of_their_own)
{
    static const float x[] = {1, 2, 5, 8};
    const adj_onnx_opts training = {.training = 1};
    initial_batch_norm("x scale bias mean variance");
    cr_assert_eq(adj_onnx_load(g, path, &training, &net, &error), ADJ_OK, "%s", error.message);
    cr_expect_eq(net->n_param, 4);
    const adj_exec_opts o = {.n_fetch = 1, .fetch = net->output, .updates = adj_layer_updates(g)};
    scoped(release_exec) adj_exec *e = plan_of(g, &o);
    cr_assert(adj_set(e, net->input[0], x, sizeof x) == ADJ_OK && adj_run(e) == ADJ_OK);
    cr_expect_float_eq(value_of(e, "mean"), 0.4F, 1e-6);
    cr_expect_float_eq(value_of(e, "variance"), 1.9F, 1e-6);
    cr_expect(value_of(e, "bias") == 0 && value_of(e, "scale") == 1);
}

/* A batch norm that is applied twice moves its statistics twice: from 0 and 1 by a tenth to the
 * batch's mean 4 and variance 10, then to the 0 and nearly 4 / 3 of the normalized batch. */
Test(onnx_training, batch_norm_applied_twice)
{
    static const float x[] = {1, 2, 5, 8};
    const adj_onnx_opts training = {.training = 1};
    initial_batch_norm("x scale bias mean variance");
    m.node[2].output[0] = (char *)"u";
    maker_node(&m, "BatchNormalization", "u scale bias mean variance", "y");
    maker_write(&m, path);
    cr_assert_eq(adj_onnx_load(g, path, &training, &net, &error), ADJ_OK, "%s", error.message);
    const adj_exec_opts o = {.n_fetch = 1, .fetch = net->output, .updates = adj_layer_updates(g)};
    scoped(release_exec) adj_exec *e = plan_of(g, &o);
    cr_assert(adj_set(e, net->input[0], x, sizeof x) == ADJ_OK && adj_run(e) == ADJ_OK);
    cr_expect_float_eq(value_of(e, "mean"), 0.9F * 0.4F, 1e-6);
    cr_expect_float_eq(value_of(e, "variance"), 0.9F * 1.9F + 0.1F * 4 / 3, 1e-5);
}

Test(onnx_training, statistics_that_are_a_parameter)
{
    const adj_onnx_opts training = {.training = 1};
    initial_batch_norm("x scale bias bias scale");
    cr_assert(adj_onnx_load(g, path, &training, &net, &error) != ADJ_OK && net == NULL);
    cr_expect(strstr(error.message, "running statistics that are a parameter as well") != NULL,
              "%s", error.message);
    adj_graph_free(g);
    g = adj_graph_new();
    cr_expect_eq(adj_onnx_load(g, path, NULL, &net, &error), ADJ_OK, "%s", error.message);
}

/* Without training a batch norm computes no new statistics. */
Test(onnx_training, statistics_of_no_training)
{
    batch_norm();
    maker_output(&m, "mean2");
    expect_refused(&m, "output \"mean2\" is a sequence, or depends on results of training");
}

/* Dropout drops in training alone, if it is the file that says so. */
Test(onnx_training, dropout_for_inference)
{
    static float ratio[] = {0.75F};
    static int64_t size[] = {1};
    maker_x_to_y(&m, 15, 2, (int64_t[]){2, 1});
    maker_floats(&m, "ratio", 0, size, ratio);
    maker_floats(&m, "training", 0, size, (float[]){1});
    maker_node(&m, "Dropout", "x ratio training", "y");
    expect(NULL, (float[]){5, -1}, (float[]){5, -1});
}

/* ---- seven axes ---- */

static const int64_t x_sizes[] = {2, 3, 1, 2, 1, 2, 2};

/* A loss of 16 labels, each 0, 1 or 2, among three equal numbers. */
static void loss(const char *reduction)
{
    static int64_t labels[16], n, sizes[] = {2, 1, 2, 1, 2, 2};
    for (int i = 0; i < 16; i++)
        labels[i] = i % 3;
    maker_x_to_y(&m, 17, 7, x_sizes);
    Onnx__TensorProto *t = maker_ints(&m, "labels", 16, &n, labels);
    t->dims = sizes;
    t->n_dims = 6;
    maker_node(&m, "SoftmaxCrossEntropyLoss", "x labels", "y log_p");
    maker_word(&m, "reduction", reduction);
    maker_output(&m, "log_p");
}

/* Runs the file on x, of which 1 is added to the elements of channel 1. */
static void run_loss(float y[16], float log_p[48])
{
    float x[48] = {0};
    for (int i = 0; i < 48; i++)
        x[i] = (float)(i / 8 % 3 == 1);
    maker_write(&m, path);
    cr_assert_eq(adj_onnx_load(g, path, NULL, &net, &error), ADJ_OK, "%s", error.message);
    scoped(release_exec) adj_exec *e =
        plan_of(g, &(adj_exec_opts){.n_fetch = 2, .fetch = net->output});
    cr_assert(adj_set(e, net->input[0], x, sizeof x) == ADJ_OK && adj_run(e) == ADJ_OK);
    const size_t bytes = adj_type_bytes(adj_node_type(net->output[0]));
    cr_assert(bytes <= 64 && adj_get(e, net->output[0], y, bytes) == ADJ_OK);
    cr_assert_eq(adj_get(e, net->output[1], log_p, 48 * sizeof *log_p), ADJ_OK);
}

/* Each element is log(2 + e), less 1 where the label is 1: 5 of 16. The last axes of log_p are one.
 */
Test(onnx_training, loss_of_seven_axes)
{
    static float y[16], log_p[48];
    const float all = 1.5514447F;
    loss("none");
    run_loss(y, log_p);
    for (int i = 0; i < 16; i++)
        cr_expect_float_eq(y[i], all - (float)(i % 3 == 1), 1e-6, "%d: %g", i, (double)y[i]);
    for (int i = 0; i < 48; i++)
        cr_expect_float_eq(log_p[i], (float)(i / 8 % 3 == 1) - all, 1e-6);
    const adj_shape s = adj_node_type(net->output[1]).shape;
    cr_expect(s.rank == 6 && s.dim[4] == 1 && s.dim[5] == 4);
}

Test(onnx_training, mean_loss_of_seven_axes)
{
    static float y[16], log_p[48];
    loss("mean");
    run_loss(y, log_p);
    cr_expect_float_eq(y[0], 1.5514447F - 5.0F / 16, 1e-6, "%g", (double)y[0]);
}

/* Other operators, of inputs and of log-probabilities, would see other axes. */
Test(onnx_training, other_operators_of_seven_axes)
{
    loss("none");
    maker_node(&m, "Relu", "log_p", "z");
    expect_refused(&m, "(Relu, opset 17): an operand of more than 6 axes");
    adj_graph_free(g);
    g = adj_graph_new();
    maker_x_to_y(&m, 17, 7, x_sizes);
    maker_node(&m, "Relu", "x", "y");
    expect_refused(&m, "(Relu, opset 17): an operand of more than 6 axes");
}

Test(onnx_training, merged_sizes_overflow)
{
    maker_x_to_y(&m, 17, 8, (int64_t[]){1, 1, 1, 1, 1, INT64_MAX / 2, 3, 1});
    maker_node(&m, "Relu", "x", "y");
    expect_refused(&m, "input \"x\": too many elements");
}

static void in_half(Onnx__TensorProto *t, int32_t *bits)
{
    t->data_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16;
    t->n_float_data = 0;
    t->n_int32_data = 1;
    t->int32_data = bits;
}

/* A net of f16: statistics are computed in f32 and stored in f16; a given f32 node is cast. The
 * batch's mean 4 moves a mean of 0 to 0.4, in f16 0x3666. */
Test(onnx_training, norms_in_half)
{
    static float none[1];
    static const float x[] = {1, 2, 5, 8};
    static int32_t one[] = {0x3c00}, zero[] = {0};
    static int64_t size[] = {1};
    static const char *const names[] = {"scale", "bias", "mean", "variance"};
    uint16_t mean = 0;
    maker_start(&m, 17);
    maker_input(&m, "x", 2, (int64_t[]){4, 1});
    m.of[0].elem_type = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16;
    maker_output(&m, "y");
    for (int i = 0; i < 4; i++)
        in_half(maker_floats(&m, names[i], 1, size, none), i % 3 == 0 ? one : zero);
    maker_node(&m, "BatchNormalization", "x scale bias mean variance", "u");
    maker_node(&m, "LayerNormalization", "u scale bias", "y");
    maker_write(&m, path);
    adj_node *given = adj_input(g, "images", ADJ_F32, (adj_shape){2, {4, 1}});
    const adj_onnx_opts training = {.training = 1, .n_given = 1, .given = &given};
    cr_assert_eq(adj_onnx_load(g, path, &training, &net, &error), ADJ_OK, "%s", error.message);
    cr_expect_eq(adj_node_type(net->output[0]).dtype, ADJ_F16);
    const adj_exec_opts o = {.n_fetch = 1, .fetch = net->output, .updates = adj_layer_updates(g)};
    adj_exec *e = plan_of(g, &o);
    cr_assert(adj_set(e, given, x, sizeof x) == ADJ_OK && adj_run(e) == ADJ_OK);
    cr_assert_eq(adj_get(e, adj_find(g, "mean"), &mean, sizeof mean), ADJ_OK);
    cr_expect_eq(mean, 0x3666, "got %x", mean);
    adj_exec_free(e);
    adj_onnx_free(net);
    adj_graph_free(g);
    g = adj_graph_new();
    cr_assert_eq(adj_onnx_load(g, path, NULL, &net, &error), ADJ_OK, "%s", error.message);
}
