/* test_operators.c - operators of ONNX files, one a model: values by hand, or by ONNX's reference
 * where a line says so; and what is known while a file is loaded: the branch of an If that its
 * condition says, sequences of tensors, the broadcasting of opset 6. */
#include "loaded.h"

TestSuite(onnx_operators, .init = open_folder, .fini = close_folder);

enum { RESULTS = 10 };

/* A model and the values of its first output y for its input x. */
typedef struct {
    int64_t opset;
    const char *model;
    double x[25], y[RESULTS]; /* zeros after the last result */
} values;

static void expect_models(const values list[], size_t n, double tolerance)
{
    for (size_t i = 0; i < n; i++) {
        load_text(list[i].opset, list[i].model, NULL);
        int64_t count = adj_shape_elems(adj_node_type(net->output[0]).shape);
        cr_assert_leq(count, RESULTS, "%s", list[i].model);
        expect(list[i].x, list[i].y, tolerance);
        while (count < RESULTS && list[i].y[count] == 0)
            count++;
        cr_expect_eq(count, RESULTS, "%s: too few results", list[i].model);
    }
}

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* ---- products ---- */

/* x sigmoid(x) in either order is one node; another product is not. */
Test(onnx_operators, silu_as_a_product)
{
    static const struct {
        const char *product;
        int is_silu;
        double y[3];
    } cases[] = {{"x, gate", 1, {0, 0.73105858, -0.23840584}},
                 {"gate, x", 1, {0, 0.73105858, -0.23840584}},
                 {"x, other", 0, {0, 0.67503753, -1.05953100}}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[4096];
        load_model(model_with(17,
                              "(float[3] x) => (y)"
                              "{ gate = Sigmoid (x)  other = Sigmoid (gate)  y = Mul (%s) }",
                              cases[i].product),
                   NULL);
        expect((double[]){0, 1, -2}, cases[i].y, 1e-5);
        FILE *out = fmemopen(text, sizeof text, "w");
        adj_print(out, 1, net->output);
        fclose(out);
        cr_expect_eq(strstr(text, "= silu(") != NULL, cases[i].is_silu, "%s", text);
        cr_expect_eq(strstr(text, "= mul(") != NULL, !cases[i].is_silu, "%s", text);
    }
}

/* ---- volumes ---- */

Test(onnx_operators, volumes)
{
    static const values list[] = {
        {17,
         "(float[1,1,2,2,3] x) => (y) { y = MaxPool <kernel_shape = [2,2,2]> (x) }",
         {1, 9, 2, 3, 4, 5, 6, 7, 8, 0, -1, 12},
         {9, 12}},
        /* windows along the depth: padding and plane 0, then planes 0 and 1 */
        {17,
         "(float[1,1,2,2,1] x) => (y)"
         "{ y = AveragePool <kernel_shape = [2,2,1], pads = [1,0,0,0,0,0]> (x) }",
         {1, 2, 3, 4},
         {1.5, 2.5}},
        {17,
         "(float[1,1,2,2,1] x) => (y) { y = AveragePool"
         "<kernel_shape = [2,2,1], pads = [1,0,0,0,0,0], count_include_pad = 1> (x) }",
         {1, 2, 3, 4},
         {0.75, 2.5}},
        /* planes 0 and 2 of three, with weights 1 / 2 */
        {19,
         "(float[1,1,3,1,1] x) => (y)"
         "{ y = AveragePool <kernel_shape = [2,1,1], dilations = [2,1,1]> (x) }",
         {1, 100, 4},
         {2.5}},
        {18,
         "(float[1,1,2,2,2] x) => (y) { y = LpPool <kernel_shape = [2,2,2]> (x) }",
         {1, -1, 1, 1, 3, -3, 3, 3},
         {6.3245553}}, /* sqrt(40) */
        /* y[d] = 1 x[d-1, 0] + 10 x[d-1, 1] + 100 x[d, 0] + 1000 x[d, 1] + 0.5, with a plane of
         * zeros in front */
        {17,
         "(float[1,1,2,2,2] x) => (y) <float[1,1,2,1,2] w = {1, 10, 100, 1000}, float[1] b = {0.5}>"
         "{ y = Conv <pads = [1,0,0,0,0,0]> (x, w, b) }",
         {1, 2, 3, 4, 5, 6, 7, 8},
         {2100.5, 4300.5, 6521.5, 8743.5}},
        /* planes 0 and 2 of three */
        {17,
         "(float[2,2,3,1,1] x) => (y) <float[2,1,2,1,1] w = {1, 10, 2, 20}>"
         "{ y = Conv <dilations = [2,1,1], group = 2> (x, w) }",
         {1, 0, 2, 3, 0, 4, 5, 0, 6, 7, 0, 8},
         {21, 86, 65, 174}},
        /* planes of 1 and 2 times {1, 10} and {100, 1000} */
        {17,
         "(float[1,1,2,1,1] x) => (y) <float[1,1,2,1,2] w = {1, 10, 100, 1000}>"
         "{ y = ConvTranspose <pads = [1,0,0,0,0,0]> (x, w) }",
         {1, 2},
         {102, 1020, 200, 2000}},
        {17,
         "(float[1,1,2,1,1] x) => (y) <float[1,1,2,1,2] w = {1, 10, 100, 1000}>"
         "{ y = ConvTranspose <strides = [2,1,1], output_padding = [1,0,0]> (x, w) }",
         {1, 2},
         {1, 10, 100, 1000, 2, 20, 200, 2000, 0, 0}},
    };
    expect_models(list, COUNT(list), 1e-5);
}

/* The gradient of a volume's convolution: sum(y) has the sum of each tap's elements as dw. */
Test(onnx_operators, gradient_of_conv_of_volumes)
{
    load_text(17, "(float[1,1,3,1,1] x) => (y) <float[1,1,2,1,1] w = {1, 10}> { y = Conv (x, w) }",
              NULL);
    adj_node *sum = adj_reduce_sum(net->output[0], (adj_axes){.n = ADJ_ALL});
    adj_node *grad = gradient_of(sum, NULL, adj_find(g, "w"));
    e = plan_of(g, &(adj_exec_opts){.n_fetch = 1, .fetch = &grad});
    set_values(e, net->input[0], (double[]){1, 2, 4});
    cr_assert_eq(adj_run(e), ADJ_OK);
    scoped(release) double *dw = fixture_get(e, grad);
    cr_assert(dw[0] == 3 && dw[1] == 6);
}

/* ---- results beside the first, integers ---- */

/* Places of maxima: counted over the whole tensor, by rows or by columns, the first of equal ones.
 */
Test(onnx_operators, indices_and_integers)
{
    static const values list[] = {
        {17,
         "(float[1,1,5,5] x) => (at) { y, at = MaxPool"
         "<kernel_shape = [2,2], strides = [2,2], storage_order = 0> (x) }",
         {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13,
          14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25},
         {6, 8, 16, 18}},
        {17,
         "(float[1,1,5,5] x) => (at) { y, at = MaxPool"
         "<kernel_shape = [2,2], strides = [2,2], storage_order = 1> (x) }",
         {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13,
          14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25},
         {6, 16, 8, 18}},
        {17,
         "(float[2,1,2,1,2] x) => (at) { y, at = MaxPool <kernel_shape = [2,1,2]> (x) }",
         {1, 5, 5, 2, 3, 1, 4, 0},
         {1, 6}},
        {17,
         "(int8[1,1,2,2] x) => (y) { y = MaxPool <kernel_shape = [2,2], pads = [1,1,0,0]> (x) }",
         {-4, -3, -2, -1},
         {-4, -3, -2, -1}},
        {17,
         "(int64[4] x) => (y) <int64 low = {-1}> { y = Clip (x, low) }",
         {-5, -1, 0, 16777217},
         {-1, -1, 0, 16777217}},
    };
    expect_models(list, COUNT(list), 0);
}

/* Each element is 0 or twice x, and the mask says which. */
Test(onnx_operators, dropout_mask)
{
    enum { N = 64 };
    double x[N];
    int kept = 0;
    for (int i = 0; i < N; i++)
        x[i] = i + 1;
    load_text(17, "(float[64] x) => (y, mask) { y, mask = Dropout (x) }",
              &(adj_onnx_opts){.training = 1});
    run(x);
    scoped(release) double *y = fixture_get(e, net->output[0]),
                           *mask = fixture_get(e, net->output[1]);
    for (int i = 0; i < N; i++) {
        cr_assert(mask[i] == 0 || mask[i] == 1);
        cr_assert_eq(y[i], 2 * x[i] * mask[i], "%g of %g", y[i], x[i]);
        kept += mask[i] == 1;
    }
    cr_assert(kept > 16 && kept < 48, "%d", kept);
}

Test(onnx_operators, reductions_of_none)
{
    static const struct {
        const char *op;
        double want;
    } cases[] = {{"ReduceMax", -INFINITY},
                 {"ReduceMin", INFINITY},
                 {"ReduceLogSumExp", -INFINITY},
                 {"ReduceSum", 0}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        load_model(model_with(18,
                              "(float[2,0] x) => (y) <int64[1] axes = {1}>"
                              "{ y = %s (x, axes) }",
                              cases[i].op),
                   NULL);
        expect(NULL, (double[]){cases[i].want, cases[i].want}, 0);
    }
}

/* ---- quantization, and Resize by ONNX's reference ---- */

Test(onnx_operators, quantized_and_resized)
{
    static const values list[] = {
        /* two blocks of two elements, each with a scale: round(x / scale), limited to 16 bits */
        {21,
         "(float[1,4] x) => (y) <float[1,2] scale = {0.5, 2}>"
         "{ y = QuantizeLinear <axis = 1, block_size = 2, output_dtype = 5> (x, scale) }",
         {1.6, -40000, 3, 5.1},
         {3, -32768, 2, 3}},
        {19,
         "(float[1,1,1,4] x) => (y) <float[4] scales = {1, 1, 1, 2}>"
         "{ y = Resize <mode = cubic> (x, , scales) }",
         {1, 2, 4, 8},
         {0.89453125, 1.15625, 1.5625, 2.41796875, 3.16015625, 5.1171875, 7.1640625, 8.421875}},
        {19,
         "(float[1,1,1,4] x) => (y) <float[4] scales = {1, 1, 1, 2}> { y = Resize"
         "<mode = cubic, cubic_coeff_a = -0.5, exclude_outside = 1> (x, , scales) }",
         {1, 2, 4, 8},
         {0.91176468, 1.1459854, 1.6412214, 2.3828125, 3.3359375, 5.0229006, 7.2846713, 8.3529415}},
        {19,
         "(float[1,1,1,6] x) => (y) <float[4] scales = {1, 1, 1, 0.5}>"
         "{ y = Resize <mode = linear, antialias = 1> (x, , scales) }",
         {1, 2, 4, 8, 16, 32},
         {1.75, 6.75, 23}},
        {19,
         "(float[1,1,1,6] x) => (y) <float[4] scales = {1, 1, 1, 0.5}>"
         "{ y = Resize <mode = cubic, antialias = 1> (x, , scales) }",
         {1, 2, 4, 8, 16, 32},
         {1.19921875, 5.30859375, 23.83203125}},
        {19,
         "(float[1,4] x) => (y) <float[4] region = {0, -0.5, 1, 1.5}, int64[2] sizes = {1, 4}>"
         "{ y = Resize <mode = linear, coordinate_transformation_mode = tf_crop_and_resize,"
         "  extrapolation_value = 10.0> (x, region, , sizes) }",
         {1, 2, 4, 8},
         {10, 1.5, 6, 10}},
    };
    expect_models(list, COUNT(list), 1e-5);
}

/* ---- early opsets, places, signs ---- */

Test(onnx_operators, early_opsets_and_others)
{
    static const values list[] = {
        {1, "(float[2] x) => (y) { y = Not (x) }", {0, 1}, {1, 0}},
        /* before opset 7 the second operand begins at an axis that is named */
        {6,
         "(float[1,2,2] x) => (y) <float[2] b = {10, 20}>"
         "{ y = Add <broadcast = 1, axis = 1> (x, b) }",
         {1, 2, 3, 4},
         {11, 12, 23, 24}},
        {6,
         "(float[2,3] x) => (y) <float[2] b = {10, 20}>"
         "{ y = Add <broadcast = 1, axis = 0> (x, b) }",
         {1, 2, 3, 4, 5, 6},
         {11, 12, 13, 24, 25, 26}},
        /* a slope a channel */
        {6,
         "(float[1,2,2] x) => (y) <float[2] slope = {0.5, 0.25}> { y = PRelu (x, slope) }",
         {-1, 2, -4, 8},
         {-0.5, 2, -1, 8}},
        /* Sign is -1, 0 and 1, Shrink 0 for values up to 1/2; d is -2, 1/4, 2, 0, -5, -6 */
        {17,
         "(float[2,3] x) => (y) <float[2,3] b = {3, 1.75, 1, 4, 10, 12}>"
         "{ d = Sub (x, b)  s = Sign (d)  t = Shrink (d)  y = Add (s, t) }",
         {1, 2, 3, 4, 5, 6},
         {-3, 1, 3, 0, -6, -7}},
    };
    expect_models(list, COUNT(list), 0);
}

/* Rows (1, 0), (0, -1) and (1, 2) of x [2, 3, 2]. */
Test(onnx_operators, gather_nd)
{
    load_text(13,
              "(float[2,3,2] x) => (y) <int64[3,2] at = {1, 0, 0, -1, 1, 2}>"
              "{ y = GatherND (x, at) }",
              NULL);
    expect((double[]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, (double[]){6, 7, 4, 5, 10, 11}, 0);
    const adj_shape s = adj_node_type(net->output[0]).shape;
    cr_expect(s.rank == 2 && s.dim[0] == 3 && s.dim[1] == 2);
}

/* ---- sequences ---- */

Test(onnx_operators, sequences)
{
    static const values list[] = {
        /* the second column before the last: the place is counted from the end */
        {17,
         "(float[2,2] x) => (y) <int64[1] at = {1}, int64[1] end = {-1}>"
         "{ columns = SplitToSequence <axis = 1, keepdims = 0> (x)"
         "  second = SequenceAt (columns, at)"
         "  all = SequenceInsert (columns, second, end)"
         "  y = ConcatFromSequence <axis = 1, new_axis = 1> (all) }",
         {1, 2, 3, 4},
         {1, 2, 2, 3, 4, 4}},
        {17,
         "(float[1,2] x) => (y)"
         "{ z = Neg (x)  both = SequenceConstruct (x, z)"
         "  y = ConcatFromSequence <axis = 0> (both) }",
         {1, 2},
         {1, 2, -1, -2}},
    };
    expect_models(list, COUNT(list), 0);
}

/* ---- If ---- */

/* y = relu(x) + 10 if the condition is not 0, else -x + 20. */
static Onnx__ModelProto *model_of_branches(int is_yes, const char *op)
{
    return model_with(17,
                      "(float[2] x) => (y) <int64[1] is_yes = {%d}>"
                      "{ y = If <"
                      "    then_branch = () => (yes2) <float ten = {10}>"
                      "                  { yes1 = Relu (x)  yes2 = Add (yes1, ten) },"
                      "    else_branch = () => (no2) <float twenty = {20}>"
                      "                  { no1 = %s (x)  no2 = Add (no1, twenty) }> (is_yes) }",
                      is_yes, op);
}

static Onnx__AttributeProto *branch_of(const Onnx__ModelProto *m, int is_else)
{
    return m->graph->node[0]->attribute[is_else];
}

/* The other branch may hold anything. */
Test(onnx_operators, branch_that_the_condition_says)
{
    static const struct {
        int is_yes;
        const char *op;
        double y[2];
    } cases[] = {{1, "Neg", {13, 10}}, {0, "Neg", {17, 25}}, {1, "Unheard", {13, 10}}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        load_model(model_of_branches(cases[i].is_yes, cases[i].op), NULL);
        expect((double[]){3, -5}, cases[i].y, 0);
    }
}

Test(onnx_operators, refused_branches)
{
    expect_refused(model_of_branches(0, "Unheard"),
                   "(Unheard, opset 17): the operator is not supported; \"y\" (If, opset 17): a "
                   "node of its branch is not supported");
    Onnx__ModelProto *m = model_of_branches(1, "Neg");
    strcpy(m->graph->node[0]->input[0], "x");
    expect_refused(m, "\"y\" (If, opset 17): operand 0 must be known when the file is read");
    m = model_of_branches(0, "Neg");
    onnx__graph_proto__free_unpacked(branch_of(m, 1)->g, NULL);
    branch_of(m, 1)->g = NULL;
    expect_refused(m, "its branch is missing, or has another number of results");
    m = model_of_branches(1, "Neg");
    strcpy(branch_of(m, 0)->g->output[0]->name, "no");
    expect_refused(m, "no node computes a result of its branch");
    /* a value of the branch may not have a name that is in use */
    m = model_of_branches(1, "Neg");
    strcpy(branch_of(m, 0)->g->node[0]->output[0], "x");
    expect_refused(m, "two values have the name \"x\"");
}

/* ---- refusals ---- */

Test(onnx_operators, refused)
{
    static const struct {
        int64_t opset;
        const char *model, *message;
        adj_status status;
    } cases[] = {
        {21,
         "(float[1,4] x) => (y) <float[1,3] scale = {1, 1, 1}>"
         "{ y = QuantizeLinear <block_size = 2> (x, scale) }",
         "block_size 2 does not fit 4 elements and 3 scales", ADJ_EARG},
        {5, "(float[2] x) => (y) { y = Cast (x) }",
         "(Cast, opset 5): the operator in this opset (expected 6 or more)", ADJ_EARG},
        {13, "(float[2,3,2] x) => (y) <int64[2] at = {1, 3}> { y = GatherND (x, at) }",
         "index 3 is out of range (expected -3 to 2)", ADJ_EARG},
        {19, "(float[2] x) => (y) { y = Cast <to = 17> (x) }", "a cast to float8e4m3fn", ADJ_EARG},
        {17, "(string[2] x) => (y) { y = Identity (x) }",
         "input \"x\": element type string is not supported", ADJ_EDTYPE},
        {17,
         "(float[2,3] x) => (y) <int64[1] at = {3}>"
         "{ columns = SplitToSequence <axis = 1, keepdims = 0> (x) y = SequenceAt (columns, at) }",
         "position 3 is out of range (expected below 3)", ADJ_EARG},
        {17, "(float[2,3] x) => (y) { y = ConcatFromSequence <axis = 0> (x) }",
         "its operand is not a sequence", ADJ_EARG},
        {6, "(float[2,3] x) => (y) <float[2,3] b> { y = Add <broadcast = 1, axis = 1> (x, b) }",
         "its second operand exceeds the first's axes", ADJ_EARG},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        expect_refused(model_of(cases[i].opset, cases[i].model), cases[i].message);
        cr_expect_eq(error.status, cases[i].status, "%s: %d", cases[i].message, error.status);
    }
}

/* ---- numbers in double ---- */

/* Computed in double, a float of the file means the number that it was rounded from: 0.3 as an
 * attribute, 1 / 3 as a constant. A parameter is what it is. */
Test(onnx_operators, numbers_in_double)
{
    static const struct {
        const char *model;
        double x, y;
    } cases[] = {
        {"(float[1] x) => (y) { y = LeakyRelu <alpha = 0.3> (x) }", -1, -0.3},
        {"(float[1] x) => (y) <float c = {-0.333333333}> { y = Mul (x, c) }", 3, -1},
        {"(float[1] x) => (y) <float[1] c = {0.333333333}> { y = Mul (x, c) }", 3,
         3 * (double)(1.0F / 3)},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        load_text(17, cases[i].model, &(adj_onnx_opts){.dtype = ADJ_F64});
        expect(&cases[i].x, &cases[i].y, 1e-15);
    }
}
