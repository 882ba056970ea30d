/* table.c - the ops that have a C function, one row each. */
#include "emit.h"
#include "ops/grad.h"

/* ---- what a row refuses ---- */

static const char *of_planes(const adj_node *n)
{
    return adj_format_of(n) == ADJ_NCHW && n->in[0]->type.shape.rank > 2
               ? "its channels are not last (NCHW)"
               : NULL;
}
static const char *of_pool(const adj_node *n)
{
    return ((const adj_pool_attrs *)n->attrs)->kc > 1 ? "its windows cover several channels"
                                                      : of_planes(n);
}
static const char *of_clip(const adj_node *n)
{
    const adj_clip_attrs *a = n->attrs;
    return a->min > a->max ? "its bounds are reversed" : NULL;
}
static const char *of_gelu(const adj_node *n)
{
    return ((const adj_gelu_attrs *)n->attrs)->form == ADJ_GELU_ERF ? NULL : "it is of form tanh";
}
static const char *of_dropout(const adj_node *n)
{
    const adj_dropout_attrs *a = n->attrs;
    return a->first != 0                   ? "it is a shard's"
           : a->rate * 0x1p32 > UINT32_MAX ? "its rate is 1 for words of 32 bits"
                                           : NULL;
}
static const char *of_resize(const adj_node *n)
{
    const adj_resize_attrs *a = n->attrs;
    const int64_t most = INT32_MAX / 4; /* see resize.c */
    return a->ih > most / a->oh || a->iw > most / a->ow ? "its coordinates exceed an int"
                                                        : of_planes(n);
}
static const char *of_cast(const adj_node *n)
{
    return n->type.dtype == ADJ_F32 ? NULL : "the result is not f32";
}

/* ---- the rows ---- */

static const writer writers[] = {
    {&adj_op_fill, write_fill, .operands = "", .formula = "a constant"},
    {&adj_op_conv2d, write_conv2d, .operands = "x w", .has_chain = 1, .suffix = "forward",
     .formula = "sum of x[%h][%w][c] * w[kh][kw][c][o] over kh, kw, c", .refuses = of_planes},
    {&adj_op_depthwise_conv2d_native, write_conv2d, .operands = "x w", .has_chain = 1,
     .suffix = "forward", .formula = "sum of x[%h][%w][c] * w[kh][kw][c] over kh, kw",
     .refuses = of_planes},
    {&adj_op_conv2d_backprop_input, write_conv2d_backprop_input, .operands = "w dy", .result = "dx",
     .suffix = "backprop_input", .refuses = of_planes,
     .formula = "dx[%h][%w][c] += dy[oh][ow][o] * w[kh][kw][c][o] for all oh, ow, kh, kw, o"},
    {&adj_op_depthwise_conv2d_native_backprop_input, write_conv2d_backprop_input,
     .operands = "w dy", .result = "dx", .suffix = "backprop_input", .refuses = of_planes,
     .formula = "dx[%h][%w][c] += dy[oh][ow][c] * w[kh][kw][c] for all oh, ow, kh, kw"},
    {&adj_op_conv2d_backprop_filter, write_conv2d_backprop_filter, .operands = "x dy",
     .result = "dw", .suffix = "backprop_filter", .refuses = of_planes,
     .formula = "sum of x[%h][%w][c] * dy[oh][ow][o] over images, oh, ow"},
    {&adj_op_depthwise_conv2d_native_backprop_filter, write_conv2d_backprop_filter,
     .operands = "x dy", .result = "dw", .suffix = "backprop_filter", .refuses = of_planes,
     .formula = "sum of x[%h][%w][c] * dy[oh][ow][c] over images, oh, ow"},
    {&adj_op_matmul, write_matmul, .operands = "x w", .has_chain = 1,
     .formula = "sum of x[i][k] * w[k][j] over k"},
    {&adj_op_max_pool, write_max_pool, .operands = "x", .has_chain = 1, .refuses = of_pool,
     .formula = "maximum of each window"},
    {&adj_op_max_pool_grad, write_max_pool_grad, .operands = "x y dy", .result = "dx",
     .refuses = of_pool, .formula = "dy at the first maximum of each window"},
    {&adj_op_avg_pool, write_avg_pool, .operands = "x", .has_chain = 1, .refuses = of_pool,
     .formula = "mean of each window"},
    {&adj_op_avg_pool_grad, write_avg_pool_grad, .operands = "dy", .result = "dx",
     .refuses = of_pool, .formula = "dy divided among the elements of each window"},
    {&adj_op_reduce_sum, write_reduce, .operands = "x", .has_chain = 2, .formula = "sum of x"},
    {&adj_op_reduce_mean, write_reduce, .operands = "x", .has_chain = 2, .formula = "mean of x"},
    {&adj_op_reduce_max, write_reduce, .operands = "x", .has_chain = 2, .formula = "maximum of x"},
    {&adj_op_bias_add_grad, write_bias_add_grad, .operands = "dy", .result = "db",
     .refuses = of_planes, .formula = "sum of dy for each channel"},
    {&adj_op_prelu_grad_slope, write_prelu_grad_slope, .operands = "dy x", .result = "dslope",
     .refuses = of_planes, .formula = "sum of dy * x where x is not positive"},
    {&adj_op_resize, write_resize, .operands = "x", .has_chain = 1, .refuses = of_resize,
     .formula = "x at each pixel's coordinate"},
    {&adj_op_resize_grad, write_resize_grad, .operands = "dy", .result = "dx", .refuses = of_resize,
     .formula = "sum of dy times the weight of x in each pixel"},
    {&adj_op_pad, write_pad, .operands = "x", .formula = "x surrounded by zeros"},
    {&adj_op_slice, write_slice, .operands = "x", .formula = "a part of x"},
    {&adj_op_transpose, write_transpose, .operands = "x",
     .formula = "the axes of x in another order"},
    {&adj_op_concat, write_concat, .operands = "x", .formula = "the operands one after the other"},
    {&adj_op_broadcast_to, write_broadcast_to, .operands = "x", .formula = "x repeated"},
    {&adj_op_batch_norm, write_batch_norm, .operands = "x stats gamma beta", .has_chain = 1,
     .in_place = ADJ_IN(0), .scratch = batch_norm_scratch,
     .formula = "(x - mean) / sqrt(variance + epsilon) * gamma + beta"},
    {&adj_op_batch_norm_stats, write_batch_norm_stats, .operands = "x", .result = "stats",
     .formula = "mean and variance of each channel"},
    {&adj_op_batch_norm_grad_sums, write_batch_norm_grad_sums, .operands = "x stats dy",
     .result = "sums", .formula = "the gradients of gamma and beta"},
    {&adj_op_batch_norm_grad, write_batch_norm_grad, .operands = "x stats gamma dy sums",
     .result = "dx", .has_chain = 1, .in_place = ADJ_IN(0) | ADJ_IN(3),
     .scratch = batch_norm_grad_scratch,
     .formula = "scale * (dy - dbeta / m - (x - mean) * dgamma / m / deviation)"},
    {&adj_op_group_norm, write_group_norm, .operands = "x gamma beta", .has_chain = 1,
     .in_place = ADJ_IN(0), .formula = "(x - mean) / sqrt(variance + epsilon) * gamma + beta"},
    {&adj_op_group_norm_grad_sums, write_group_norm_grad_sums, .operands = "x dy", .result = "sums",
     .formula = "the gradients of gamma and beta"},
    {&adj_op_group_norm_grad, write_group_norm_grad, .operands = "x gamma dy", .result = "dx",
     .has_chain = 1, .in_place = ADJ_IN(0) | ADJ_IN(2),
     .formula = "scale * (w - mean of w - xhat * mean of w * xhat), w = gamma * dy, xhat = (x - "
                "mean) * scale"},
    {&adj_op_softmax, write_softmax, .operands = "x", .in_place = ADJ_IN(0),
     .formula = "exp(x) / sum of exp(x)"},
    {&adj_op_log_softmax, write_softmax, .operands = "x", .in_place = ADJ_IN(0),
     .formula = "x - log(sum of exp(x))"},
    {&adj_op_sparse_softmax_cross_entropy, write_cross_entropy, .operands = "x labels",
     .has_chain = 1, .formula = "-log(softmax(x)) of the label"},
    {&adj_op_sparse_softmax_cross_entropy_grad, write_cross_entropy_grad, .operands = "x labels",
     .in_place = ADJ_IN(0), .result = "dx", .formula = "softmax(x) - one-hot labels"},
    {&adj_op_label_count, write_label_count, .operands = "labels",
     .formula = "the number of labels that are not -1"},
    {&adj_op_dropout, write_dropout, .operands = "x step", .in_place = ADJ_IN(0),
     .refuses = of_dropout,
     .formula = "x / (1 - rate), or 0 where the element's random word is small"},
    {&adj_op_adam_step, write_adam_step, .operands = "p m v t lr", .result = "next",
     .in_place = ADJ_IN(0) | ADJ_IN(1) | ADJ_IN(2),
     .formula = "p - lr * m / (sqrt(v) + epsilon), m and v without their bias"},

    /* Elementwise. */
    {&adj_op_bias_add, .expression = "%a + %b", .operands = "x b", .refuses = of_planes},
    {&adj_op_relu, .expression = "%a <= 0.0f ? 0.0f : %a", .operands = "x"},
    {&adj_op_relu6, .expression = "%a <= 0.0f ? 0.0f : %a > 6.0f ? 6.0f : %a", .operands = "x"},
    {&adj_op_leaky_relu, .expression = "%a > 0.0f ? %a : %0 * %a", .operands = "x"},
    {&adj_op_prelu, .expression = "%a > 0.0f ? %a : %b * %a", .operands = "x slope",
     .refuses = of_planes},
    {&adj_op_sigmoid, .expression = "1.0f / (1.0f + expf(-%a))", .operands = "x"},
    {&adj_op_tanh, .expression = "tanh_of(%a)", .operands = "x"},
    {&adj_op_silu, .expression = "%a / (1.0f + expf(-%a))", .operands = "x"},
    {&adj_op_hard_sigmoid,
     .expression = "%a < -3.0f ? 0.0f : %a > 3.0f ? 1.0f : (%a + 3.0f) / 6.0f", .operands = "x"},
    {&adj_op_hard_swish,
     .expression = "%a <= -3.0f ? 0.0f : %a > 3.0f ? %a : %a * (%a + 3.0f) / 6.0f",
     .operands = "x"},
    {&adj_op_clip, .expression = "%a < %0 ? %0 : %a > %1 ? %1 : %a", .operands = "x",
     .refuses = of_clip},
    {&adj_op_elu, .expression = "%a > 0.0f ? %a : %0 * expm1f(%a)", .operands = "x"},
    {&adj_op_gelu, .expression = "%a < -20.0f ? 0.0f : 0.5f * %a * erfcf(-0.70710678f * %a)",
     .instead = "%a < -20.0f ? 0.0f : "
                "%a / (1.0f + expf(-1.5957691f * (%a + 0.044715f * %a * %a * %a)))",
     .operands = "x"},
    {&adj_op_softplus, .expression = "fmaxf(%a, 0.0f) + log1pf(expf(-fabsf(%a)))", .operands = "x"},
    {&adj_op_erf, .expression = "erff(%a)", .operands = "x"},
    {&adj_op_relu_grad, .expression = "%b > 0.0f ? %a : 0.0f", .operands = "dy y", .result = "dx"},
    {&adj_op_relu6_grad, .expression = "%b > 0.0f && %b < 6.0f ? %a : 0.0f", .operands = "dy y",
     .result = "dx"},
    {&adj_op_leaky_relu_grad, .expression = "%b > 0.0f ? %a : %0 * %a", .operands = "dy y",
     .result = "dx"},
    {&adj_op_prelu_grad, .expression = "%b > 0.0f ? %a : %c * %a", .operands = "dy x slope",
     .result = "dx", .refuses = of_planes},
    {&adj_op_sigmoid_grad, .expression = "%a * %b * (1.0f - %b)", .operands = "dy y",
     .result = "dx"},
    {&adj_op_tanh_grad, .expression = "%a * (1.0f - %b * %b)", .operands = "dy y", .result = "dx"},
    {&adj_op_hard_sigmoid_grad, .expression = "%b > -3.0f && %b < 3.0f ? %a / 6.0f : 0.0f",
     .operands = "dy x", .result = "dx"},
    {&adj_op_clip_grad, .expression = "%b >= %0 && %b <= %1 ? %a : 0.0f", .operands = "dy x",
     .result = "dx"},
    {&adj_op_elu_grad, .expression = "%b > 0.0f ? %a : %a * %0 * expf(%b)", .operands = "dy x",
     .result = "dx"},
    {&adj_op_silu_grad, .expression = "%a / (1.0f + expf(-%b)) * (1.0f + %b / (1.0f + expf(%b)))",
     .operands = "dy x", .result = "dx"},
    {&adj_op_hard_swish_grad,
     .expression = "%b <= -3.0f ? 0.0f : %b >= 3.0f ? %a : %a * (%b / 3.0f + 0.5f)",
     .operands = "dy x", .result = "dx"},
    {&adj_op_gelu_grad,
     .expression = "%b < -20.0f ? 0.0f * %a : %b > 20.0f ? %a : "
                   "%a * (0.5f * erfcf(-0.70710678f * %b) + 0.39894228f * %b * expf(-0.5f * %b * "
                   "%b))",
     .operands = "dy x", .result = "dx", .refuses = of_gelu},
    {&adj_op_add, .expression = "%a + %b", .operands = "a b"},
    {&adj_op_sub, .expression = "%a - %b", .operands = "a b"},
    {&adj_op_mul, .expression = "%a * %b", .operands = "a b"},
    {&adj_op_div, .expression = "%a / %b", .operands = "a b"},
    {&adj_op_maximum, .expression = "%a >= %b || %a != %a ? %a : %b", .operands = "a b"},
    {&adj_op_minimum, .expression = "%a <= %b || %a != %a ? %a : %b", .operands = "a b"},
    {&adj_op_equal, .expression = "%a == %b ? 1.0f : 0.0f", .operands = "a b"},
    {&adj_op_greater_equal, .expression = "%a >= %b ? 1.0f : 0.0f", .operands = "a b"},
    {&adj_op_pow, .expression = "powf(%a, %b)", .operands = "a b"},
    {&adj_op_neg, .expression = "-(%a)", .operands = "x"},
    {&adj_op_scale, .expression = "%0 * %a", .operands = "x"},
    {&adj_op_square, .expression = "%a * %a", .operands = "x"},
    {&adj_op_sqrt, .expression = "sqrtf(%a)", .operands = "x"},
    {&adj_op_exp, .expression = "expf(%a)", .operands = "x"},
    {&adj_op_log, .expression = "logf(%a)", .operands = "x"},
    {&adj_op_select, .expression = "%a != 0.0f ? %b : %c", .operands = "cond a b"},
    {&adj_op_cast, .expression = "(float)%a", .operands = "x", .refuses = of_cast},
    {&adj_op_momentum, .expression = "%0 * %a + %b + %1 * %c", .operands = "v dw w",
     .result = "next"},
    {&adj_op_sgd_step, .expression = "%a - %c * (%b + %0 * %a)", .operands = "w v lr",
     .result = "next"},
    {&adj_op_ema, .expression = "%0 * %a + %A * %b", .operands = "m x", .result = "next"},
    {&adj_op_next_step, .expression = "%a + 1", .operands = "step", .result = "next"},
};

const writer *writer_of(const adj_op *op)
{
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++)
        if (writers[i].op == op)
            return &writers[i];
    return NULL;
}
