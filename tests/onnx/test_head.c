/* test_head.c - a new last layer for another number of classes, and frozen batch norms; parameters
 * that a file stores once, leaves out or lists as buffers, by the notes of PyTorch's newer
 * exporter, and those of the older one. */
#include "graph/op.h"
#include "loaded.h"
#include "onnx/details.h"

TestSuite(onnx_head, .init = open_folder, .fini = close_folder);

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
    e = plan_of(g, &(adj_exec_opts){.n_fetch = 1, .fetch = net->output});
    scoped(release) double *value = fixture_get(e, w), *terms = fixture_get(e, b);
    double squares = 0;
    for (int64_t i = 0; i < n; i++)
        squares += value[i] * value[i];
    const double variance = squares / (double)n, expected = 2 / fan_in;
    cr_assert(variance > 0.8 * expected && variance < 1.25 * expected, "%g, expected %g", variance,
              expected);
    for (int64_t i = 0; i < classes; i++)
        cr_assert_eq(terms[i], 0);
}

/* Loads a model with another number of classes. */
static void load_for(int64_t classes, const char *text)
{
    load_text(17, text, &(adj_onnx_opts){.batch = 2, .classes = classes});
}

/* A Linear of PyTorch: its weights are [out, in]. */
Test(onnx_head, gemm)
{
    load_for(50, "(float[batch,64] x) => (y) <float[3,64] w, float[3] b = {1, 2, 3}>"
                 "{ y = Gemm <transB = 1> (x, w, b) }");
    expect_head("w", (adj_shape){2, {50, 64}}, "b", 50, 64);
}

/* A Dense of Keras: MatMul, Add and Softmax. */
Test(onnx_head, matmul)
{
    load_for(40, "(float[batch,64] x) => (y) <float[64,3] w, float[3] b = {1, 2, 3}>"
                 "{ product = MatMul (x, w)  sum = Add (b, product)  y = Softmax (sum) }");
    expect_head("w", (adj_shape){2, {64, 40}}, "b", 40, 64);
}

/* SqueezeNet ends in a convolution, whose classes a reshape counts. */
Test(onnx_head, conv)
{
    load_for(20, "(float[batch,16,5,5] x) => (y)"
                 "<float[3,16,2,2] w, float[3] b, int64[2] shape = {-1, 3}>"
                 "{ maps = Conv (x, w, b)  positive = Relu (maps)"
                 "  pooled = GlobalAveragePool (positive)  y = Reshape (pooled, shape) }");
    expect_head("w", (adj_shape){4, {2, 2, 16, 20}}, "b", 20, 2 * 2 * 16);
}

Test(onnx_head, no_last_layer)
{
    static const struct {
        int64_t classes;
        const char *model, *message;
    } cases[] = {
        /* a shortcut around the layer */
        {4, "(float[batch,3] x) => (y) <float[3,3] w> { a = MatMul (x, w)  y = Add (a, x) }",
         "the last layer cannot be replaced: the output is computed by Add \"y\" (expected Gemm, "
         "MatMul or Conv)"},
        {4, "(float[batch,3] x) => (y) { y = MatMul (x, x) }",
         "its weights are not an initializer"},
        {-1, "(float[batch,3] x) => (y) { y = MatMul (x, x) }",
         "classes (got -1, expected 0 or more)"},
        /* nodes that compute each other's operands */
        {4, "(float[batch,3] x) => (y) { y = Relu (a)  a = Relu (y) }",
         "its weights are not an initializer"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_model(model_of(17, cases[i].model), path);
        expect_file_refused(&(adj_onnx_opts){.batch = 2, .classes = cases[i].classes},
                            cases[i].message);
    }
}

/* A frozen batch norm uses mean 1 and variance 4 of the file in training, too, and keeps them; one
 * of which only the bias is frozen does not. */
Test(onnx_head, frozen_batch_norm)
{
    adj_onnx_opts o = {.training = 1, .freeze = "conv*,bn.*"};
    load_text(17,
              "(float[3,1,1,1] x) => (y) <float[1] bn.weight = {2}, float[1] bn.bias = {1},"
              " float[1] bn.running_mean = {1}, float[1] bn.running_var = {4}>"
              "{ y = BatchNormalization (x, bn.weight, bn.bias, bn.running_mean, bn.running_var) }",
              &o);
    cr_assert_eq(adj_updates_count(adj_layer_updates(g)), 0);
    expect((double[]){1, 3, 5}, (double[]){1, 3, 5}, 1e-4); /* 2 (x - 1) / 2 + 1 */
    o.freeze = "bn.bias";
    cr_assert_eq(load_file(&o), ADJ_OK, "%s", error.message);
    cr_assert_eq(adj_updates_count(adj_layer_updates(g)), 2);
}

/* ---- origins ---- */

TestSuite(onnx_origin, .init = open_folder, .fini = close_folder);

static void add_note(Onnx__StringStringEntryProto ***list, size_t *n, const char *key,
                     const char *text)
{
    Onnx__StringStringEntryProto *e = malloc(sizeof *e);
    onnx__string_string_entry_proto__init(e);
    e->key = strdup(key);
    e->value = strdup(text);
    *list = realloc(*list, (*n + 1) * sizeof **list);
    (*list)[(*n)++] = e;
}

/* A model with the exporter's notes: the signature, and the calls that its nodes were made from. */
static Onnx__ModelProto *model_with_notes(const char *signature, const char *text,
                                          const char *const calls[])
{
    Onnx__ModelProto *m = model_of(18, text);
    add_note(&m->graph->metadata_props, &m->graph->n_metadata_props,
             "pkg.torch.export.ExportedProgram.graph_signature", signature);
    for (size_t i = 0; i < m->graph->n_node && calls != NULL; i++) {
        Onnx__NodeProto *n = m->graph->node[i];
        add_note(&n->metadata_props, &n->n_metadata_props, "pkg.torch.onnx.fx_node", calls[i]);
    }
    return m;
}

static const adj_onnx_opts training = {.training = 1};

static const char *const params = "\n# inputs\np_a_weight: PARAMETER target='a.weight'\n"
                                  "p_a_bias: PARAMETER target='a.bias'\n"
                                  "p_b_weight: PARAMETER target='b.weight'\n"
                                  "p_b_bias: PARAMETER target='b.bias'\nx: USER_INPUT\n";

/* The network has so many parameters, and of b's those that are named. */
Test(onnx_origin, parameters_by_calls)
{
    static const struct {
        const char *model, *calls[3];
        int n_param, has_weight, has_bias;
    } cases[] = {
        /* three norms of equal values: a's, b's, and a's again */
        {"(float[4,2] x) => (y) <float[2] a.weight = {1, 1}, float[2] a.bias = {0, 0}>"
         "{ u = LayerNormalization (x, a.weight, a.bias)"
         "  v = LayerNormalization (u, a.weight, a.bias)"
         "  y = LayerNormalization (v, a.weight, a.bias) }",
         {"%u = ln(args = (%x, [2], %p_a_weight, %p_a_bias), kwargs = {})",
          "%v = ln(args = (%u, [2], %p_b_weight, %p_b_bias), kwargs = {})",
          "%y = ln(args = (%v, [2], %p_a_weight, %p_a_bias), kwargs = {})"},
         4,
         1,
         1},
        /* a matrix that the exporter transposed has no name of its own; the sum's bias is b's */
        {"(float[4,2] x) => (y) <float[2] a.bias = {0, 0}, float[2,2] val_1 = {1, 0, 0, 1}>"
         "{ u = Add (x, a.bias)  v = MatMul (u, val_1)  y = Add (v, a.bias) }",
         {"%u = linear(args = (%x, %p_a_weight, %p_a_bias), kwargs = {})",
          "%v = linear(args = (%u, %p_b_weight, %p_b_bias), kwargs = {})",
          "%v = linear(args = (%u, %p_b_weight, %p_b_bias), kwargs = {})"},
         3,
         0,
         1},
        /* a convolution with its norm folded in has the norm's call, of another operator */
        {"(float[4,2] x) => (y) <float[2,2] a.weight = {1, 0, 0, 1}> { y = MatMul (x, a.weight) }",
         {"%y = batch_norm(args = (%z, %p_b_weight, %p_b_bias), kwargs = {})"},
         1,
         0,
         0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        load_model(model_with_notes(params, cases[i].model, cases[i].calls), &training);
        cr_expect_eq(net->n_param, cases[i].n_param, "%zu: %d", i, net->n_param);
        cr_expect_eq(adj_find(g, "b.weight") != NULL, cases[i].has_weight, "%zu", i);
        cr_expect_eq(adj_find(g, "b.bias") != NULL, cases[i].has_bias, "%zu", i);
    }
    cr_expect(adj_find(g, "a.weight") != NULL);
}

/* Operands of a batch norm are distinguished by their places; statistics are states. */
Test(onnx_origin, statistics_that_equal_parameters)
{
    static const char *const call =
        "%y = batch_norm(args = (%x, %p_weight, %p_bias, %b_mean, %b_var, 0.1), kwargs = {})";
    load_model(model_with_notes(
                   "p_weight: PARAMETER target='n.weight'\np_bias: PARAMETER target='n.bias'\n"
                   "b_mean: BUFFER target='n.mean' persistent=True\n"
                   "b_var: BUFFER target='n.var' persistent=True\n"
                   "b_m: BUFFER target='folded.running_var' persistent=True\n",
                   "(float[4,2] x) => (y) <float[2] n.weight = {1, 1}, float[2] n.bias>"
                   "{ y = BatchNormalization (x, n.weight, n.bias, n.bias, n.weight) }",
                   &call),
               &training);
    cr_expect_eq(net->n_param, 4);
    cr_expect(adj_node_is_param(adj_find(g, "n.bias")));
    cr_expect_eq(adj_onnx_details(net).n_folded, 1);
    cr_expect(adj_node_is_state(adj_find(g, "n.mean")) && adj_node_is_state(adj_find(g, "n.var")));
}

Test(onnx_origin, buffers_are_not_trained)
{
    load_model(model_with_notes("b_scale: BUFFER target='scale' persistent=True\n"
                                "c_0: CONSTANT_TENSOR target='term'\np_a: PARAMETER target='a'\n",
                                "(float[4,2] x) => (y)"
                                "<float[2] scale = {1, 2}, float[2] term = {1, 2}, float a = {1}>"
                                "{ u = Mul (x, scale)  v = Add (u, term)  y = Mul (v, a) }",
                                NULL),
               &training);
    cr_assert_eq(net->n_param, 1);
    cr_expect_str_eq(adj_node_name(net->param[0]), "a");
}

Test(onnx_origin, zero_bias_is_added_again)
{
    static const char *const call = "%y = linear(args = (%x, %p_a_weight, %p_a_bias))";
    Onnx__ModelProto *m =
        model_with_notes(params,
                         "(float[4,2] x) => (y) <float[2,2] a.weight = {1, 0, 0, 1}>"
                         "{ y = Gemm <transB = 1> (x, a.weight) }",
                         &call);
    Onnx__NodeProto *n = m->graph->node[0];
    add_note(&n->metadata_props, &n->n_metadata_props, "pkg.onnxscript.rewriter.rule_name",
             "RemoveOptionalBiasFromGemm");
    load_model(m, &training);
    cr_expect_eq(net->n_param, 2);
    cr_expect_eq(adj_node_type(adj_find(g, "a.bias")).shape.dim[0], 2);
}

/* An Identity of the older exporter is a parameter of its own; in other files values are tied. */
Test(onnx_origin, producers)
{
    static const struct {
        const char *producer;
        int n_param;
    } cases[] = {{"pytorch", 3}, {"tf2onnx", 1}};
    for (int i = 0; i < 2; i++) {
        Onnx__ModelProto *m =
            model_of(18, "(float[4,2] x) => (y) <float[2] a = {1, 2}, float s = {1}>"
                         "{ b = Identity (a)  u = Mul (x, a)  v = Mul (u, b)  y = Mul (v, s) }");
        m->producer_name = strdup(cases[i].producer);
        load_model(m, &training);
        cr_expect_eq(net->n_param, cases[i].n_param, "%s", cases[i].producer);
    }
}
