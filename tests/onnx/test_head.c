/* test_head.c - a new last layer for another number of classes, and frozen batch norms; parameters
 * that a file stores once, leaves out or lists as buffers, by the notes of PyTorch's newer
 * exporter, and those of the older one. */
#include <criterion/criterion.h>
#include <math.h>

#include "adjoint_nn.h"
#include "graph/op.h"
#include "loaded.h"
#include "onnx/details.h"
#include "tests/plan.h"

TestSuite(onnx_head, .init = open_folder, .fini = close_folder);

/* Loads the model with another number of classes. */
static adj_status load_for(const maker *m, int64_t classes)
{
    maker_write(m, path);
    adj_graph_free(g);
    g = adj_graph_new();
    return adj_onnx_load(g, path, &(adj_onnx_opts){.batch = 2, .classes = classes}, &net, &error);
}

/* Asserts the shapes of weights and bias, and the result's; the weights are drawn at random with a
 * variance of 2 / fan_in, the bias is 0. */
static void expect_head(const char *weight, adj_shape shape, const char *bias, int64_t classes,
                        double fan_in)
{
    const adj_shape y = adj_node_type(net->output[0]).shape;
    adj_node *w = adj_find(g, weight), *b = adj_find(g, bias);
    cr_assert(y.rank == 2 && y.dim[0] == 2 && y.dim[1] == classes &&
              adj_onnx_details(net).classes == classes);
    cr_assert(adj_onnx_details(net).n_head == 2 && adj_onnx_details(net).head[0] == w &&
              adj_onnx_details(net).head[1] == b);
    cr_assert(adj_shape_equal(adj_node_type(w).shape, shape));
    cr_assert_eq(adj_shape_elems(adj_node_type(b).shape), classes);

    const int64_t n = adj_shape_elems(shape);
    static float value[4096];
    cr_assert_leq(n, 4096);
    scoped(release_exec) adj_exec *e =
        plan_of(g, &(adj_exec_opts){.n_fetch = 1, .fetch = net->output});
    cr_assert_eq(adj_get(e, w, value, (size_t)n * sizeof *value), ADJ_OK);
    double squares = 0;
    for (int64_t i = 0; i < n; i++)
        squares += (double)value[i] * (double)value[i];
    const double variance = squares / (double)n, expected = 2 / fan_in;
    cr_assert(variance > 0.8 * expected && variance < 1.25 * expected, "%g, expected %g", variance,
              expected);
    cr_assert_eq(adj_get(e, b, value, (size_t)classes * sizeof *value), ADJ_OK);
    for (int64_t i = 0; i < classes; i++)
        cr_assert_eq(value[i], 0);
}

/* 64 inputs, weights w of that shape, and biases b of 3 classes. */
static void dense_model(maker *m, int64_t weight[2])
{
    static int64_t bias[] = {3};
    static float w[3 * 64], b[3] = {1, 2, 3};
    maker_x_to_y(m, 17, 2, (int64_t[]){-1, 64});
    maker_floats(m, "w", 2, weight, w);
    maker_floats(m, "b", 1, bias, b);
}

/* A Linear of PyTorch: its weights are [out, in]. */
Test(onnx_head, gemm)
{
    static int64_t weight[] = {3, 64};
    maker m;
    dense_model(&m, weight);
    maker_node(&m, "Gemm", "x w b", "y");
    maker_int(&m, "transB", 1);
    cr_assert_eq(load_for(&m, 50), ADJ_OK, "%s", error.message);
    expect_head("w", (adj_shape){2, {50, 64}}, "b", 50, 64);
}

/* A Dense of Keras: MatMul, Add and Softmax. */
Test(onnx_head, matmul)
{
    static int64_t weight[] = {64, 3};
    maker m;
    dense_model(&m, weight);
    maker_node(&m, "MatMul", "x w", "product");
    maker_node(&m, "Add", "b product", "sum");
    maker_node(&m, "Softmax", "sum", "y");
    cr_assert_eq(load_for(&m, 40), ADJ_OK, "%s", error.message);
    expect_head("w", (adj_shape){2, {64, 40}}, "b", 40, 64);
}

/* SqueezeNet ends in a convolution, whose classes a reshape counts. */
Test(onnx_head, conv)
{
    static int64_t x[] = {-1, 16, 5, 5}, filter[] = {3, 16, 2, 2}, bias[] = {3};
    static int64_t n_shape, shape[] = {-1, 3};
    static float w[3 * 16 * 4], b[3];
    maker m;
    maker_x_to_y(&m, 17, 4, x);
    maker_floats(&m, "w", 4, filter, w);
    maker_floats(&m, "b", 1, bias, b);
    maker_ints(&m, "shape", 2, &n_shape, shape);
    maker_node(&m, "Conv", "x w b", "maps");
    maker_node(&m, "Relu", "maps", "positive");
    maker_node(&m, "GlobalAveragePool", "positive", "pooled");
    maker_node(&m, "Reshape", "pooled shape", "y");
    cr_assert_eq(load_for(&m, 20), ADJ_OK, "%s", error.message);
    expect_head("w", (adj_shape){4, {2, 2, 16, 20}}, "b", 20, 2 * 2 * 16);
}

static void expect_no_head(const maker *m, int64_t classes, const char *part)
{
    cr_assert(load_for(m, classes) != ADJ_OK && net == NULL);
    cr_assert(strstr(error.message, part) != NULL, "%s", error.message);
}

Test(onnx_head, no_last_layer)
{
    static int64_t x[] = {-1, 3}, weight[] = {3, 3};
    static float w[9];
    maker m;
    maker_x_to_y(&m, 17, 2, x);
    maker_floats(&m, "w", 2, weight, w);
    maker_node(&m, "MatMul", "x w", "a");
    maker_node(&m, "Add", "a x", "y"); /* a shortcut around the layer */
    expect_no_head(
        &m, 4,
        "the last layer cannot be replaced: the output is computed by Add \"y\" (expected Gemm, "
        "MatMul or Conv)");
    maker_x_to_y(&m, 17, 2, x);
    maker_node(&m, "MatMul", "x x", "y");
    expect_no_head(&m, 4, "its weights are not an initializer");
    expect_no_head(&m, -1, "classes (got -1, expected 0 or more)");
}

/* A file whose nodes compute each other's operands. */
Test(onnx_head, cycle)
{
    maker m;
    maker_x_to_y(&m, 17, 2, (int64_t[]){-1, 3});
    maker_node(&m, "Relu", "a", "y");
    maker_node(&m, "Relu", "y", "a");
    expect_no_head(&m, 4, "its weights are not an initializer");
}

/* A frozen batch norm uses mean 1 and variance 4 of the file in training, too, and keeps them; one
 * of which only the bias is frozen does not. */
Test(onnx_head, frozen_batch_norm)
{
    static int64_t one[] = {1}, sizes[] = {3, 1, 1, 1};
    static float gamma[] = {2}, beta[] = {1}, mean[] = {1}, variance[] = {4};
    maker m;
    maker_x_to_y(&m, 17, 4, sizes);
    maker_floats(&m, "bn.weight", 1, one, gamma);
    maker_floats(&m, "bn.bias", 1, one, beta);
    maker_floats(&m, "bn.running_mean", 1, one, mean);
    maker_floats(&m, "bn.running_var", 1, one, variance);
    maker_node(&m, "BatchNormalization", "x bn.weight bn.bias bn.running_mean bn.running_var", "y");
    maker_write(&m, path);
    adj_onnx_opts o = {.training = 1, .freeze = "conv*,bn.*"};
    cr_assert_eq(adj_onnx_load(g, path, &o, &net, &error), ADJ_OK, "%s", error.message);
    cr_assert_eq(adj_updates_count(adj_layer_updates(g)), 0);

    const float x[] = {1, 3, 5}, expected[] = {1, 3, 5}; /* 2 (x - 1) / 2 + 1 */
    float y[3];
    adj_exec *e = plan_of(g, &(adj_exec_opts){.n_fetch = 1, .fetch = net->output});
    cr_assert(adj_set(e, net->input[0], x, sizeof x) == ADJ_OK && adj_run(e) == ADJ_OK);
    cr_assert_eq(adj_get(e, net->output[0], y, sizeof y), ADJ_OK);
    for (int i = 0; i < 3; i++)
        cr_assert_float_eq(y[i], expected[i], 1e-4F);
    adj_exec_free(e);

    adj_onnx_free(net);
    adj_graph_free(g);
    g = adj_graph_new();
    o.freeze = "bn.bias";
    cr_assert_eq(adj_onnx_load(g, path, &o, &net, &error), ADJ_OK, "%s", error.message);
    cr_assert_eq(adj_updates_count(adj_layer_updates(g)), 2);
}

TestSuite(onnx_origin, .init = open_folder, .fini = close_folder);

static maker m;
static Onnx__StringStringEntryProto notes[16], *note[16];
static int n_note;
static int64_t two[] = {2}, square[] = {2, 2};
static float one_two[] = {1, 2}, ones[] = {1, 1}, zeros[] = {0, 0}, eye[] = {1, 0, 0, 1};

static void add_note(Onnx__StringStringEntryProto ***list, size_t *n, const char *key,
                     const char *text)
{
    Onnx__StringStringEntryProto *e = &notes[n_note];
    onnx__string_string_entry_proto__init(e);
    e->key = (char *)key;
    e->value = (char *)text;
    if ((*n)++ == 0)
        *list = &note[n_note];
    note[n_note++] = e;
}

static void start(const char *signature)
{
    n_note = 0;
    maker_x_to_y(&m, 18, 2, (int64_t[]){4, 2});
    if (signature != NULL)
        add_note(&m.graph.metadata_props, &m.graph.n_metadata_props,
                 "pkg.torch.export.ExportedProgram.graph_signature", signature);
}

/* A node that was made from a call with these arguments. */
static Onnx__NodeProto *node(const char *op, const char *in, const char *out, const char *call)
{
    Onnx__NodeProto *n = maker_node(&m, op, in, out);
    add_note(&n->metadata_props, &n->n_metadata_props, "pkg.torch.onnx.fx_node", call);
    return n;
}

static void load(void)
{
    const adj_onnx_opts training = {.training = 1};
    maker_write(&m, path);
    cr_assert_eq(adj_onnx_load(g, path, &training, &net, &error), ADJ_OK, "%s", error.message);
}

static const char *const params = "\n# inputs\np_a_weight: PARAMETER target='a.weight'\n"
                                  "p_a_bias: PARAMETER target='a.bias'\n"
                                  "p_b_weight: PARAMETER target='b.weight'\n"
                                  "p_b_bias: PARAMETER target='b.bias'\nx: USER_INPUT\n";

/* Three norms of equal values: a's, b's, and a's again. */
Test(onnx_origin, equal_parameters_are_separate)
{
    start(params);
    maker_floats(&m, "a.weight", 1, two, ones);
    maker_floats(&m, "a.bias", 1, two, zeros);
    node("LayerNormalization", "x a.weight a.bias", "u",
         "%u = ln(args = (%x, [2], %p_a_weight, %p_a_bias), kwargs = {})");
    node("LayerNormalization", "u a.weight a.bias", "v",
         "%v = ln(args = (%u, [2], %p_b_weight, %p_b_bias), kwargs = {})");
    node("LayerNormalization", "v a.weight a.bias", "y",
         "%y = ln(args = (%v, [2], %p_a_weight, %p_a_bias), kwargs = {})");
    load();
    cr_expect_eq(net->n_param, 4);
    cr_expect(adj_find(g, "b.weight") != NULL && adj_find(g, "b.bias") != NULL);
}

/* A matrix that the exporter transposed has no name of its own; the sum's bias is b's. */
Test(onnx_origin, bias_of_a_product)
{
    start(params);
    maker_floats(&m, "a.bias", 1, two, zeros);
    maker_floats(&m, "val_1", 2, square, eye);
    node("Add", "x a.bias", "u", "%u = linear(args = (%x, %p_a_weight, %p_a_bias), kwargs = {})");
    node("MatMul", "u val_1", "v", "%v = linear(args = (%u, %p_b_weight, %p_b_bias), kwargs = {})");
    node("Add", "v a.bias", "y", "%v = linear(args = (%u, %p_b_weight, %p_b_bias), kwargs = {})");
    load();
    cr_expect_eq(net->n_param, 3);
    cr_expect(adj_find(g, "b.bias") != NULL && adj_find(g, "b.weight") == NULL);
}

/* Operands of a batch norm are distinguished by their places; statistics are states. */
Test(onnx_origin, statistics_that_equal_parameters)
{
    start("p_weight: PARAMETER target='n.weight'\np_bias: PARAMETER target='n.bias'\n"
          "b_mean: BUFFER target='n.mean' persistent=True\n"
          "b_var: BUFFER target='n.var' persistent=True\n"
          "b_m: BUFFER target='folded.running_var' persistent=True\n");
    maker_floats(&m, "n.weight", 1, two, ones);
    maker_floats(&m, "n.bias", 1, two, zeros);
    node("BatchNormalization", "x n.weight n.bias n.bias n.weight", "y",
         "%y = batch_norm(args = (%x, %p_weight, %p_bias, %b_mean, %b_var, 0.1), kwargs = {})");
    load();
    cr_expect_eq(net->n_param, 4);
    cr_expect(adj_node_is_param(adj_find(g, "n.bias")));
    cr_expect_eq(adj_onnx_details(net).n_folded, 1);
    cr_expect(adj_node_is_state(adj_find(g, "n.mean")) && adj_node_is_state(adj_find(g, "n.var")));
}

/* A convolution with its norm folded in has the norm's call. */
Test(onnx_origin, call_of_another_operator)
{
    start(params);
    maker_floats(&m, "a.weight", 2, square, eye);
    node("MatMul", "x a.weight", "y",
         "%y = batch_norm(args = (%z, %p_b_weight, %p_b_bias), kwargs = {})");
    load();
    cr_expect_eq(net->n_param, 1);
    cr_expect(adj_find(g, "a.weight") != NULL);
}

Test(onnx_origin, buffers_are_not_trained)
{
    start("b_scale: BUFFER target='scale' persistent=True\nc_0: CONSTANT_TENSOR target='term'\n"
          "p_a: PARAMETER target='a'\n");
    maker_floats(&m, "scale", 1, two, one_two);
    maker_floats(&m, "term", 1, two, one_two);
    maker_floats(&m, "a", 0, NULL, one_two);
    maker_node(&m, "Mul", "x scale", "u");
    maker_node(&m, "Add", "u term", "v");
    maker_node(&m, "Mul", "v a", "y");
    load();
    cr_assert_eq(net->n_param, 1);
    cr_expect_str_eq(adj_node_name(net->param[0]), "a");
}

Test(onnx_origin, zero_bias_is_added_again)
{
    start(params);
    maker_floats(&m, "a.weight", 2, square, eye);
    Onnx__NodeProto *n =
        node("Gemm", "x a.weight", "y", "%y = linear(args = (%x, %p_a_weight, %p_a_bias))");
    maker_int(&m, "transB", 1);
    add_note(&n->metadata_props, &n->n_metadata_props, "pkg.onnxscript.rewriter.rule_name",
             "RemoveOptionalBiasFromGemm");
    load();
    cr_expect_eq(net->n_param, 2);
    cr_expect_eq(adj_node_type(adj_find(g, "a.bias")).shape.dim[0], 2);
}

/* An Identity of the older exporter is a parameter of its own; in other files values are tied. */
static void two_layers(const char *producer)
{
    start(NULL);
    m.model.producer_name = (char *)producer;
    maker_floats(&m, "a", 1, two, one_two);
    maker_floats(&m, "s", 0, NULL, one_two);
    maker_node(&m, "Identity", "a", "b");
    maker_node(&m, "Mul", "x a", "u");
    maker_node(&m, "Mul", "u b", "v");
    maker_node(&m, "Mul", "v s", "y");
    load();
}

Test(onnx_origin, older_exporter)
{
    two_layers("pytorch");
    cr_expect_eq(net->n_param, 3);
}

Test(onnx_origin, other_producer)
{
    two_layers("tf2onnx");
    cr_expect_eq(net->n_param, 1);
}
