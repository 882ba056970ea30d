/* test_origin.c - parameters that a file stores once, leaves out or lists as buffers, by the notes
 * of PyTorch's newer exporter; and those of the older one. */
#include "adjoint_nn.h"
#include "loaded.h"
#include "onnx/details.h"

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
    maker_start(&m, 18);
    maker_input(&m, "x", 2, (int64_t[]){4, 2});
    maker_output(&m, "y");
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
