/* test_operators.c - operators of ONNX files, one a model: values by hand, or by ONNX's reference
 * where a line says so. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "adjoint_nn.h"
#include "adjoint_onnx.h"
#include "model_maker.h"
#include "temporary.h"

static temporary file;
static adj_graph *g;
static adj_onnx_net *net;
static adj_exec *e;
static adj_error error;
static maker m;

static void start(void)
{
    file = temporary_file();
    g = adj_graph_new();
    error = (adj_error){0};
    net = NULL;
    e = NULL;
}

static void end(void)
{
    adj_exec_free(e);
    adj_onnx_free(net);
    adj_graph_free(g);
    remove(file.s);
}

TestSuite(onnx_operators, .init = start, .fini = end);

/* Starts a model of the input x and the result y of one node, whose operands are x and others. */
static void model(int64_t opset, const char *op, const char *operands, int rank,
                  const int64_t sizes[])
{
    maker_start(&m, opset);
    maker_input(&m, "x", rank, sizes);
    maker_output(&m, "y");
    maker_node(&m, op, operands, "y");
}

static adj_status load(const adj_onnx_opts *o)
{
    maker_write(&m, file.s);
    return adj_onnx_load(g, file.s, o, &net, &error);
}

/* Loads and runs the model on x, of x_bytes. */
static void run_with(const adj_onnx_opts *o, const void *x, size_t x_bytes)
{
    cr_assert(load(o) == ADJ_OK, "%s", error.message);
    const adj_exec_opts eo = {.n_fetch = net->n_output, .fetch = net->output};
    cr_assert(adj_exec_new(g, &eo, &e) == ADJ_OK, "%s", adj_exec_message(e));
    cr_assert(adj_set(e, net->input[0], x, x_bytes) == ADJ_OK, "%s", adj_exec_message(e));
    cr_assert(adj_run(e) == ADJ_OK, "%s", adj_exec_message(e));
}

static void get(int output, void *to, size_t bytes)
{
    cr_assert(adj_get(e, net->output[output], to, bytes) == ADJ_OK, "%s", adj_exec_message(e));
}

/* The result y of x, each float within 1e-5. */
static void expect(size_t n_x, const float x[], size_t n_y, const float want[])
{
    float y[64];
    run_with(NULL, x, n_x * sizeof *x);
    get(0, y, n_y * sizeof *y);
    for (size_t i = 0; i < n_y; i++)
        cr_assert(y[i] == want[i] || fabsf(y[i] - want[i]) <= 1e-5F, "%zu: %.8g, expected %.8g", i,
                  (double)y[i], (double)want[i]);
}

static void expect_ints(size_t n_x, const void *x, int output, size_t n_y, const int32_t want[])
{
    int32_t y[64];
    run_with(NULL, x, n_x * sizeof(float));
    get(output, y, n_y * sizeof *y);
    for (size_t i = 0; i < n_y; i++)
        cr_assert_eq(y[i], want[i], "%zu: %d, expected %d", i, y[i], want[i]);
}

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* ---- products ---- */

/* x sigmoid(x) in either order is one node; another product is not. */
static void expect_silu(const char *operands, const float want[], int is_silu)
{
    static char text[4096];
    const float x[] = {0, 1, -2};
    maker_x_to_y(&m, 17, 1, (int64_t[]){3});
    maker_node(&m, "Sigmoid", "x", "gate");
    maker_node(&m, "Sigmoid", "gate", "other");
    maker_node(&m, "Mul", operands, "y");
    expect(3, x, 3, want);
    FILE *out = fmemopen(text, sizeof text, "w");
    adj_print(out, 1, net->output);
    fclose(out);
    cr_expect_eq(strstr(text, "= silu(") != NULL, is_silu, "%s: %s", operands, text);
    cr_expect_eq(strstr(text, "= mul(") != NULL, !is_silu, "%s: %s", operands, text);
    end();
    start();
}

Test(onnx_operators, silu_as_a_product)
{
    const float silu[] = {0, 0.73105858F, -0.23840584F};
    expect_silu("x gate", silu, 1);
    expect_silu("gate x", silu, 1);
    expect_silu("x other", (float[]){0, 0.67503753F, -1.05953100F}, 0);
}

/* ---- volumes ---- */

Test(onnx_operators, max_pool_of_volumes)
{
    const float x[] = {1, 9, 2, 3, 4, 5, 6, 7, 8, 0, -1, 12}, y[] = {9, 12};
    int64_t kernel[] = {2, 2, 2};
    model(17, "MaxPool", "x", 5, (int64_t[]){1, 1, 2, 2, 3});
    maker_list(&m, "kernel_shape", 3, kernel);
    expect(COUNT(x), x, COUNT(y), y);
}

/* Windows along the depth: padding and plane 0, then planes 0 and 1. */
static void mean_model(void)
{
    static int64_t kernel[] = {2, 2, 1}, pads[] = {1, 0, 0, 0, 0, 0};
    model(17, "AveragePool", "x", 5, (int64_t[]){1, 1, 2, 2, 1});
    maker_list(&m, "kernel_shape", 3, kernel);
    maker_list(&m, "pads", 6, pads);
}

Test(onnx_operators, average_pool_of_volumes)
{
    mean_model();
    expect(4, (float[]){1, 2, 3, 4}, 2, (float[]){1.5F, 2.5F});
}

Test(onnx_operators, average_pool_of_volumes_counts_pads)
{
    mean_model();
    maker_int(&m, "count_include_pad", 1);
    expect(4, (float[]){1, 2, 3, 4}, 2, (float[]){0.75F, 2.5F});
}

/* Planes 0 and 2 of three, with weights 1 / 2. */
Test(onnx_operators, average_pool_of_dilated_depth)
{
    int64_t kernel[] = {2, 1, 1}, dilations[] = {2, 1, 1};
    model(19, "AveragePool", "x", 5, (int64_t[]){1, 1, 3, 1, 1});
    maker_list(&m, "kernel_shape", 3, kernel);
    maker_list(&m, "dilations", 3, dilations);
    expect(3, (float[]){1, 100, 4}, 1, (float[]){2.5F});
}

Test(onnx_operators, lp_pool_of_volumes)
{
    int64_t kernel[] = {2, 2, 2};
    model(18, "LpPool", "x", 5, (int64_t[]){1, 1, 2, 2, 2});
    maker_list(&m, "kernel_shape", 3, kernel);
    expect(8, (float[]){1, -1, 1, 1, 3, -3, 3, 3}, 1, (float[]){6.3245553F}); /* sqrt(40) */
}

/* y[d] = 1 x[d-1, 0] + 10 x[d-1, 1] + 100 x[d, 0] + 1000 x[d, 1] + 0.5, with a plane of zeros in
 * front. */
Test(onnx_operators, conv_of_volumes)
{
    int64_t filter[] = {1, 1, 2, 1, 2}, one[] = {1}, pads[] = {1, 0, 0, 0, 0, 0};
    float w[] = {1, 10, 100, 1000}, b[] = {0.5F};
    const float x[] = {1, 2, 3, 4, 5, 6, 7, 8}, y[] = {2100.5F, 4300.5F, 6521.5F, 8743.5F};
    model(17, "Conv", "x w b", 5, (int64_t[]){1, 1, 2, 2, 2});
    maker_floats(&m, "w", 5, filter, w);
    maker_floats(&m, "b", 1, one, b);
    maker_list(&m, "pads", 6, pads);
    expect(COUNT(x), x, COUNT(y), y);
}

/* Planes 0 and 2 of three. */
Test(onnx_operators, conv_of_volumes_in_groups)
{
    int64_t filter[] = {2, 1, 2, 1, 1}, dilations[] = {2, 1, 1};
    float w[] = {1, 10, 2, 20};
    const float x[] = {1, 0, 2, 3, 0, 4, 5, 0, 6, 7, 0, 8}, y[] = {21, 86, 65, 174};
    model(17, "Conv", "x w", 5, (int64_t[]){2, 2, 3, 1, 1});
    maker_floats(&m, "w", 5, filter, w);
    maker_list(&m, "dilations", 3, dilations);
    maker_int(&m, "group", 2);
    expect(COUNT(x), x, COUNT(y), y);
}

/* Planes of 1 and 2 times {1, 10} and {100, 1000}. */
static void transposed_model(void)
{
    static int64_t filter[] = {1, 1, 2, 1, 2};
    static float w[] = {1, 10, 100, 1000};
    model(17, "ConvTranspose", "x w", 5, (int64_t[]){1, 1, 2, 1, 1});
    maker_floats(&m, "w", 5, filter, w);
}

Test(onnx_operators, conv_transpose_of_volumes)
{
    int64_t pads[] = {1, 0, 0, 0, 0, 0};
    transposed_model();
    maker_list(&m, "pads", 6, pads);
    expect(2, (float[]){1, 2}, 4, (float[]){102, 1020, 200, 2000});
}

Test(onnx_operators, conv_transpose_of_volumes_in_steps)
{
    int64_t strides[] = {2, 1, 1}, more[] = {1, 0, 0};
    const float y[] = {1, 10, 100, 1000, 2, 20, 200, 2000, 0, 0};
    transposed_model();
    maker_list(&m, "strides", 3, strides);
    maker_list(&m, "output_padding", 3, more);
    expect(2, (float[]){1, 2}, COUNT(y), y);
}

/* The gradient of a volume's convolution: sum(y) has the sum of each tap's elements as dw, so that
 * w += lr dw can be read. */
Test(onnx_operators, gradient_of_conv_of_volumes)
{
    int64_t filter[] = {1, 1, 2, 1, 1};
    float w[] = {1, 10}, dw[2];
    model(17, "Conv", "x w", 5, (int64_t[]){1, 1, 3, 1, 1});
    maker_floats(&m, "w", 5, filter, w);
    cr_assert(load(NULL) == ADJ_OK, "%s", error.message);
    adj_node *leaf = adj_find(g, "w"), *grad;
    adj_node *sum = adj_reduce_sum(net->output[0], (adj_axes){.n = ADJ_ALL});
    cr_assert(adj_grad(sum, NULL, 1, &leaf, &grad) == ADJ_OK, "%s", adj_graph_message(g));
    const adj_exec_opts o = {.n_fetch = 1, .fetch = &grad};
    cr_assert(adj_exec_new(g, &o, &e) == ADJ_OK, "%s", adj_exec_message(e));
    cr_assert(adj_set(e, net->input[0], (float[]){1, 2, 4}, 12) == ADJ_OK && adj_run(e) == ADJ_OK);
    cr_assert(adj_get(e, grad, dw, sizeof dw) == ADJ_OK && dw[0] == 3 && dw[1] == 6);
}

/* ---- results beside the first, integers ---- */

/* MaxPool of 5 x 5 numbers counted from 1, as in ONNX's example. */
static void indices_model(int order)
{
    static int64_t kernel[] = {2, 2}, strides[] = {2, 2};
    maker_x_to_y(&m, 17, 4, (int64_t[]){1, 1, 5, 5});
    maker_output(&m, "at");
    maker_node(&m, "MaxPool", "x", "y at");
    maker_list(&m, "kernel_shape", 2, kernel);
    maker_list(&m, "strides", 2, strides);
    maker_int(&m, "storage_order", order);
}

static const float counted[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13,
                                14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25};

Test(onnx_operators, max_pool_indices)
{
    indices_model(0);
    expect_ints(COUNT(counted), counted, 1, 4, (int32_t[]){6, 8, 16, 18});
}

Test(onnx_operators, max_pool_indices_by_columns)
{
    indices_model(1);
    expect_ints(COUNT(counted), counted, 1, 4, (int32_t[]){6, 16, 8, 18});
}

/* Equal maxima, and two images: the first place, counted over the whole tensor. */
Test(onnx_operators, max_pool_indices_of_volumes)
{
    int64_t kernel[] = {2, 1, 2};
    maker_x_to_y(&m, 17, 5, (int64_t[]){2, 1, 2, 1, 2});
    maker_output(&m, "at");
    maker_node(&m, "MaxPool", "x", "y at");
    maker_list(&m, "kernel_shape", 3, kernel);
    expect_ints(8, (float[]){1, 5, 5, 2, 3, 1, 4, 0}, 1, 2, (int32_t[]){1, 6});
}

Test(onnx_operators, max_pool_of_integers)
{
    int64_t kernel[] = {2, 2}, pads[] = {1, 1, 0, 0};
    model(17, "MaxPool", "x", 4, (int64_t[]){1, 1, 2, 2});
    m.of[0].elem_type = ONNX__TENSOR_PROTO__DATA_TYPE__INT8;
    maker_list(&m, "kernel_shape", 2, kernel);
    maker_list(&m, "pads", 4, pads);
    expect_ints(4, (int32_t[]){-4, -3, -2, -1}, 0, 4, (int32_t[]){-4, -3, -2, -1});
}

Test(onnx_operators, clip_of_integers)
{
    int64_t n;
    model(17, "Clip", "x low", 1, (int64_t[]){4});
    m.of[0].elem_type = ONNX__TENSOR_PROTO__DATA_TYPE__INT64;
    maker_ints(&m, "low", 1, &n, (int64_t[]){-1})->n_dims = 0;
    expect_ints(4, (int32_t[]){-5, -1, 0, 16777217}, 0, 4, (int32_t[]){-1, -1, 0, 16777217});
}

/* Each element is 0 or twice x, and the mask says which. */
Test(onnx_operators, dropout_mask)
{
    enum { N = 64 };
    float x[N], y[N], mask[N];
    int kept = 0;
    for (int i = 0; i < N; i++)
        x[i] = (float)i + 1;
    maker_x_to_y(&m, 17, 1, (int64_t[]){N});
    maker_output(&m, "mask");
    maker_node(&m, "Dropout", "x", "y mask");
    run_with(&(adj_onnx_opts){.training = 1}, x, sizeof x);
    get(0, y, sizeof y);
    get(1, mask, sizeof mask);
    for (int i = 0; i < N; i++) {
        cr_assert(mask[i] == 0 || mask[i] == 1);
        cr_assert(y[i] == 2 * x[i] * mask[i], "%g of %g", (double)y[i], (double)x[i]);
        kept += mask[i] == 1;
    }
    cr_assert(kept > 16 && kept < 48, "%d", kept);
}

/* ---- reductions of nothing ---- */

static void expect_of_none(const char *op, float want)
{
    int64_t n;
    model(18, op, "x axes", 2, (int64_t[]){2, 0});
    maker_ints(&m, "axes", 1, &n, (int64_t[]){1});
    expect(0, (float[]){0}, 2, (float[]){want, want});
}

Test(onnx_operators, max_of_none) { expect_of_none("ReduceMax", -INFINITY); }
Test(onnx_operators, min_of_none) { expect_of_none("ReduceMin", INFINITY); }
Test(onnx_operators, log_sum_exp_of_none) { expect_of_none("ReduceLogSumExp", -INFINITY); }
Test(onnx_operators, sum_of_none) { expect_of_none("ReduceSum", 0); }

/* ---- quantization ---- */

/* Two blocks of two elements, each with a scale: round(x / scale), limited to 16 bits. */
Test(onnx_operators, quantize_blocks)
{
    int64_t sizes[] = {1, 2};
    float scale[] = {0.5F, 2};
    model(21, "QuantizeLinear", "x scale", 2, (int64_t[]){1, 4});
    maker_floats(&m, "scale", 2, sizes, scale);
    maker_int(&m, "axis", 1);
    maker_int(&m, "block_size", 2);
    maker_int(&m, "output_dtype", ONNX__TENSOR_PROTO__DATA_TYPE__INT16);
    expect(4, (float[]){1.6F, -40000, 3, 5.1F}, 4, (float[]){3, -32768, 2, 3});
}

Test(onnx_operators, quantize_blocks_do_not_fit)
{
    int64_t sizes[] = {1, 3};
    float scale[] = {1, 1, 1};
    model(21, "QuantizeLinear", "x scale", 2, (int64_t[]){1, 4});
    maker_floats(&m, "scale", 2, sizes, scale);
    maker_int(&m, "block_size", 2);
    cr_assert(load(NULL) == ADJ_EARG);
    cr_assert(strstr(error.message, "block_size 2 does not fit 4 elements and 3 scales") != NULL,
              "%s", error.message);
}

/* ---- Resize, by ONNX's reference ---- */

/* Row x resized by a factor along the last of four axes. */
static void resize_model(int64_t n, float factor, const char *mode)
{
    static int64_t four[] = {4};
    static float scales[] = {1, 1, 1, 1};
    scales[3] = factor;
    model(19, "Resize", "x - scales", 4, (int64_t[]){1, 1, 1, n});
    maker_floats(&m, "scales", 1, four, scales);
    maker_word(&m, "mode", mode);
}

Test(onnx_operators, resize_cubic)
{
    const float y[] = {0.89453125F, 1.15625F,   1.5625F,    2.41796875F,
                       3.16015625F, 5.1171875F, 7.1640625F, 8.421875F};
    resize_model(4, 2, "cubic");
    expect(4, (float[]){1, 2, 4, 8}, COUNT(y), y);
}

Test(onnx_operators, resize_cubic_excludes_what_is_outside)
{
    const float y[] = {0.91176468F, 1.1459854F, 1.6412214F, 2.3828125F,
                       3.3359375F,  5.0229006F, 7.2846713F, 8.3529415F};
    resize_model(4, 2, "cubic");
    maker_float(&m, "cubic_coeff_a", -0.5F);
    maker_int(&m, "exclude_outside", 1);
    expect(4, (float[]){1, 2, 4, 8}, COUNT(y), y);
}

Test(onnx_operators, resize_linear_antialias)
{
    resize_model(6, 0.5F, "linear");
    maker_int(&m, "antialias", 1);
    expect(6, (float[]){1, 2, 4, 8, 16, 32}, 3, (float[]){1.75F, 6.75F, 23});
}

Test(onnx_operators, resize_cubic_antialias)
{
    resize_model(6, 0.5F, "cubic");
    maker_int(&m, "antialias", 1);
    expect(6, (float[]){1, 2, 4, 8, 16, 32}, 3, (float[]){1.19921875F, 5.30859375F, 23.83203125F});
}

Test(onnx_operators, resize_beyond_the_image)
{
    int64_t four[] = {4}, n;
    float region[] = {0, -0.5F, 1, 1.5F};
    model(19, "Resize", "x region - sizes", 2, (int64_t[]){1, 4});
    maker_floats(&m, "region", 1, four, region);
    maker_ints(&m, "sizes", 2, &n, (int64_t[]){1, 4});
    maker_word(&m, "mode", "linear");
    maker_word(&m, "coordinate_transformation_mode", "tf_crop_and_resize");
    maker_float(&m, "extrapolation_value", 10);
    expect(4, (float[]){1, 2, 4, 8}, 4, (float[]){10, 1.5F, 6, 10});
}

/* ---- early opsets ---- */

Test(onnx_operators, not_of_opset_1)
{
    model(1, "Not", "x", 1, (int64_t[]){2});
    expect(2, (float[]){0, 1}, 2, (float[]){1, 0});
}

/* Before opset 7 the second operand begins at an axis that is named. */
Test(onnx_operators, add_from_an_axis_on)
{
    int64_t two[] = {2};
    float b[] = {10, 20};
    model(6, "Add", "x b", 3, (int64_t[]){1, 2, 2});
    maker_floats(&m, "b", 1, two, b);
    maker_int(&m, "broadcast", 1);
    maker_int(&m, "axis", 1);
    expect(4, (float[]){1, 2, 3, 4}, 4, (float[]){11, 12, 23, 24});
}

Test(onnx_operators, prelu_of_opset_6_has_a_slope_a_channel)
{
    int64_t two[] = {2};
    float slope[] = {0.5F, 0.25F};
    model(6, "PRelu", "x slope", 3, (int64_t[]){1, 2, 2});
    maker_floats(&m, "slope", 1, two, slope);
    expect(4, (float[]){-1, 2, -4, 8}, 4, (float[]){-0.5F, 2, -1, 8});
}

Test(onnx_operators, cast_of_opset_5)
{
    model(5, "Cast", "x", 1, (int64_t[]){2});
    cr_assert(load(NULL) == ADJ_EARG);
    cr_assert(strstr(error.message, "(Cast, opset 5): the operator in this opset (expected 6 or "
                                    "more)") != NULL,
              "%s", error.message);
}

/* Rows (1, 0), (0, -1) and (1, 2) of x [2, 3, 2]. */
Test(onnx_operators, gather_nd)
{
    static int64_t at[] = {1, 0, 0, -1, 1, 2}, n, sizes[] = {3, 2};
    model(13, "GatherND", "x at", 3, (int64_t[]){2, 3, 2});
    Onnx__TensorProto *t = maker_ints(&m, "at", 6, &n, at);
    t->dims = sizes;
    t->n_dims = 2;
    expect(12, (float[]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 6, (float[]){6, 7, 4, 5, 10, 11});
    const adj_shape s = adj_node_type(net->output[0]).shape;
    cr_expect(s.rank == 2 && s.dim[0] == 3 && s.dim[1] == 2);
}

Test(onnx_operators, gather_nd_out_of_range)
{
    static int64_t at[] = {1, 3}, n;
    model(13, "GatherND", "x at", 3, (int64_t[]){2, 3, 2});
    maker_ints(&m, "at", 2, &n, at);
    cr_assert(load(NULL) != ADJ_OK);
    cr_assert(strstr(error.message, "index 3 is out of range (expected -3 to 2)") != NULL, "%s",
              error.message);
}

/* ---- element types that have no numbers here ---- */

Test(onnx_operators, cast_to_float8)
{
    model(19, "Cast", "x", 1, (int64_t[]){2});
    maker_int(&m, "to", 17);
    cr_assert(load(NULL) == ADJ_EARG);
    cr_assert(strstr(error.message, "a cast to float8e4m3fn") != NULL, "%s", error.message);
}

Test(onnx_operators, input_of_strings)
{
    model(17, "Identity", "x", 1, (int64_t[]){2});
    m.of[0].elem_type = ONNX__TENSOR_PROTO__DATA_TYPE__STRING;
    cr_assert(load(NULL) == ADJ_EDTYPE);
    cr_assert(strstr(error.message, "input \"x\": element type string is not supported") != NULL,
              "%s", error.message);
}

/* ---- numbers in double ---- */

/* Computed in double, a float of the file means the number that it was rounded from: 0.3 as an
 * attribute, 1 / 3 as a constant. A parameter is what it is. */
static void expect_double(double x, double want)
{
    double y;
    run_with(&(adj_onnx_opts){.dtype = ADJ_F64}, &x, sizeof x);
    get(0, &y, sizeof y);
    cr_assert(fabs(y - want) <= 1e-15, "%.17g, expected %.17g", y, want);
}

Test(onnx_operators, decimal_attribute)
{
    model(17, "LeakyRelu", "x", 1, (int64_t[]){1});
    maker_float(&m, "alpha", 0.3F);
    expect_double(-1, -0.3);
}

Test(onnx_operators, constant_third)
{
    float third[] = {-1.0F / 3};
    model(17, "Mul", "x c", 1, (int64_t[]){1});
    maker_floats(&m, "c", 0, (int64_t[]){1}, third);
    expect_double(3, -1);
}

Test(onnx_operators, parameters_are_floats)
{
    int64_t one[] = {1};
    float third[] = {1.0F / 3};
    model(17, "Mul", "x c", 1, (int64_t[]){1});
    maker_floats(&m, "c", 1, one, third);
    expect_double(3, 3 * (double)(1.0F / 3));
}
