/* save_ops.c - the ONNX operators (opset 17) for each op. */
#include <math.h>
#include <string.h>

#include "graph/op.h"
#include "ops/grad.h"
#include "save.h"

/* ---- one operand ---- */

/* Writes an operator of one operand, whose result has the operand's form. */
static int same_form(writer *w, const adj_node *n, const char *op)
{
    const int form = is_turned(w, n->in[0]);
    return emit1(w, op, in_form(w, n->in[0], form), result(w, n, form)) != NULL;
}

static double value_attr(const adj_node *n) { return ((const adj_value_attrs *)n->attrs)->value; }

static int save_alpha(writer *w, const adj_node *n)
{
    const int form = is_turned(w, n->in[0]);
    const char *op = n->op == &adj_op_elu ? "Elu" : "LeakyRelu";
    Onnx__NodeProto *p = emit1(w, op, in_form(w, n->in[0], form), result(w, n, form));
    set_float(w, p, "alpha", value_attr(n));
    return p != NULL;
}

static int save_hard_sigmoid(writer *w, const adj_node *n)
{
    const int form = is_turned(w, n->in[0]);
    Onnx__NodeProto *p = emit1(w, "HardSigmoid", in_form(w, n->in[0], form), result(w, n, form));
    set_float(w, p, "alpha", 1.0 / 6);
    set_float(w, p, "beta", 0.5);
    return p != NULL;
}

static int save_silu(writer *w, const adj_node *n)
{
    const int form = is_turned(w, n->in[0]);
    const char *x = in_form(w, n->in[0], form), *gate = fresh_name(w);
    emit1(w, "Sigmoid", x, gate);
    return emit2(w, "Mul", x, gate, result(w, n, form)) != NULL;
}

static int clipped(writer *w, const adj_node *n, double low, double high)
{
    const int form = is_turned(w, n->in[0]);
    const char *in[] = {in_form(w, n->in[0], form), isinf(low) ? "" : number(w, n, low),
                        isinf(high) ? "" : number(w, n, high), NULL};
    return in[0] != NULL && emit(w, "Clip", in, result(w, n, form)) != NULL;
}

static int save_clip(writer *w, const adj_node *n)
{
    const adj_clip_attrs *a = n->attrs;
    return clipped(w, n, a->min, a->max);
}

static int save_relu6(writer *w, const adj_node *n) { return clipped(w, n, 0, 6); }

static int save_square(writer *w, const adj_node *n)
{
    const int form = is_turned(w, n->in[0]);
    const char *x = in_form(w, n->in[0], form);
    return emit2(w, "Mul", x, x, result(w, n, form)) != NULL;
}

static int save_scale(writer *w, const adj_node *n)
{
    const int form = is_turned(w, n->in[0]);
    return emit2(w, "Mul", in_form(w, n->in[0], form), number(w, n, value_attr(n)),
                 result(w, n, form)) != NULL;
}

/* x P(x): with Erf, or by tanh of a cubic. */
static int save_gelu(writer *w, const adj_node *n)
{
    const int is_tanh = ((const adj_gelu_attrs *)n->attrs)->form == ADJ_GELU_TANH;
    const int form = is_turned(w, n->in[0]);
    const char *x = in_form(w, n->in[0], form), *inner = fresh_name(w), *curve = fresh_name(w);
    const char *more = fresh_name(w), *half = fresh_name(w);
    if (is_tanh) {
        const char *square = fresh_name(w), *scaled = fresh_name(w), *one = fresh_name(w);
        const char *factor = fresh_name(w);
        emit2(w, "Mul", x, x, square);
        emit2(w, "Mul", square, number(w, n, 0.044715), scaled);
        emit2(w, "Add", scaled, number(w, n, 1), one);
        emit2(w, "Mul", x, number(w, n, 0.7978845608028654), factor);
        emit2(w, "Mul", factor, one, inner);
    } else {
        emit2(w, "Mul", x, number(w, n, 0.7071067811865476), inner);
    }
    emit1(w, is_tanh ? "Tanh" : "Erf", inner, curve);
    emit2(w, "Add", curve, number(w, n, 1), more);
    emit2(w, "Mul", x, number(w, n, 0.5), half);
    return emit2(w, "Mul", half, more, result(w, n, form)) != NULL;
}

static int save_cast(writer *w, const adj_node *n)
{
    const int form = is_turned(w, n->in[0]);
    Onnx__NodeProto *p = emit1(w, "Cast", in_form(w, n->in[0], form), result(w, n, form));
    set_int(w, p, "to", elem_of(adj_node_type(n).dtype));
    return p != NULL;
}

/* ---- several operands ---- */

/* A value of rank below 4 beside NCHW images: [c] becomes [c, 1, 1]; NULL if it has another shape.
 */
static const char *beside_turned(writer *w, const adj_node *x)
{
    const adj_shape s = dims(x);
    const int same[] = {0, 1, 2, 3};
    if (s.rank == 4)
        return turned(w, x);
    if (adj_shape_elems(s) == 1)
        return plain(w, x);
    return s.rank == 1 ? arranged(w, x, same, (adj_shape){3, {s.dim[0], 1, 1}}) : NULL;
}

/* True if the operands may be read beside NCHW images, which one of them is. */
static int may_be_turned(const writer *w, const adj_node *n)
{
    int any = 0;
    for (int i = 0; i < n->n_in; i++) {
        const adj_shape s = dims(n->in[i]);
        any |= is_turned(w, n->in[i]);
        if (s.rank != 4 && s.rank != 1 && adj_shape_elems(s) != 1)
            return 0;
    }
    return any && dims(n).rank == 4;
}

/* Operand i. A fill beside an operand of the result's shape is a number: its own shape may have the
 * batch. */
static const char *operand(writer *w, const adj_node *n, int i, int form)
{
    double fill;
    if (adj_is_fill(n->in[i], &fill) && adj_shape_equal(dims(n->in[1 - i]), dims(n)))
        return number(w, n->in[i], fill);
    return form ? beside_turned(w, n->in[i]) : plain(w, n->in[i]);
}

static int binary(writer *w, const adj_node *n, const char *op, const char *out, int form)
{
    return emit2(w, op, operand(w, n, 0, form), operand(w, n, 1, form), out) != NULL;
}

static int same_binary(writer *w, const adj_node *n, const char *op)
{
    const int form = may_be_turned(w, n);
    return check_batch(w, n) && binary(w, n, op, result(w, n, form), form);
}

/* A comparison gives truth values in ONNX, 0 and 1 of the operands' type here. */
static int save_comparison(writer *w, const adj_node *n)
{
    const int form = may_be_turned(w, n);
    const char *truth = fresh_name(w);
    if (!check_batch(w, n) ||
        !binary(w, n, n->op == &adj_op_equal ? "Equal" : "GreaterOrEqual", truth, form))
        return 0;
    Onnx__NodeProto *p = emit1(w, "Cast", truth, result(w, n, form));
    set_int(w, p, "to", elem_of(adj_node_type(n).dtype));
    return p != NULL;
}

/* relu_grad(a, mask): a where the mask is above 0, else 0. */
static int save_masked(writer *w, const adj_node *n)
{
    const int form = is_turned(w, n->in[0]) || is_turned(w, n->in[1]);
    const char *truth = fresh_name(w), *zero = number(w, n, 0);
    emit2(w, "Greater", in_form(w, n->in[1], form), zero, truth);
    const char *in[] = {truth, in_form(w, n->in[0], form), zero, NULL};
    return emit(w, "Where", in, result(w, n, form)) != NULL;
}

static int save_prelu(writer *w, const adj_node *n)
{
    const int is_nhwc = ((const adj_format_attrs *)n->attrs)->format == ADJ_NHWC;
    const adj_shape x = dims(n), s = dims(n->in[1]);
    const int form = is_nhwc && x.rank == 4, same[] = {0};
    adj_shape slope = {.rank = 1, .dim = {s.dim[0], 1, 1, 1, 1, 1}};
    if (form || !is_nhwc) /* channels are axis 1 */
        slope.rank = x.rank - 1;
    return emit2(w, "PRelu", in_form(w, n->in[0], form), arranged(w, n->in[1], same, slope),
                 result(w, n, form)) != NULL;
}

/* ---- windows ---- */

static int save_pool(writer *w, const adj_node *n)
{
    const adj_pool_attrs *a = n->attrs;
    const int form = a->geom.format == ADJ_NHWC, is_max = n->op == &adj_op_max_pool;
    if (a->kc > 1)
        return cannot_save(w, n, "its windows span channels");
    Onnx__NodeProto *p = emit1(w, is_max ? "MaxPool" : "AveragePool", in_form(w, n->in[0], form),
                               result(w, n, form));
    set_windows(w, p, &a->geom, 0);
    return p != NULL;
}

static int save_resize(writer *w, const adj_node *n)
{
    static const char *const coordinates[] = {"half_pixel", "align_corners", "asymmetric"};
    const adj_resize_attrs *a = n->attrs;
    const int form = a->format == ADJ_NHWC;
    const adj_shape s = dims(n);
    const int64_t c = s.dim[form ? 3 : 1];
    const char *in[] = {in_form(w, n->in[0], form), "", "", "", NULL};
    if (a->oh % a->ih == 0 && a->ow % a->iw == 0)
        in[2] = factors(w, (double)(a->oh / a->ih), (double)(a->ow / a->iw));
    else
        in[3] = batch_sizes(w, n, (adj_shape){4, {s.dim[0], c, a->oh, a->ow}});
    if (in[3][0] == '\0')
        in[3] = NULL;
    Onnx__NodeProto *p = emit(w, "Resize", in, result(w, n, form));
    set_word(w, p, "coordinate_transformation_mode", coordinates[a->coordinates]);
    set_word(w, p, "mode", a->mode == ADJ_NEAREST ? "nearest" : "linear");
    if (a->mode == ADJ_NEAREST)
        set_word(w, p, "nearest_mode",
                 a->coordinates == ADJ_ASYMMETRIC ? "floor" : "round_prefer_ceil");
    return p != NULL;
}

static int save_softmax(writer *w, const adj_node *n)
{
    const char *op = n->op == &adj_op_softmax ? "Softmax" : "LogSoftmax";
    Onnx__NodeProto *p = emit1(w, op, plain(w, n->in[0]), result(w, n, 0));
    set_int(w, p, "axis", -1);
    return p != NULL;
}

/* ---- reductions ---- */

/* Reductions over height and width alone read either form. */
static int save_reduce(writer *w, const adj_node *n)
{
    const adj_reduce_attrs *a = n->attrs;
    const int form = is_turned(w, n->in[0]) && a->axes == (2 | 4);
    const char *op = n->op == &adj_op_reduce_sum    ? "ReduceSum"
                     : n->op == &adj_op_reduce_mean ? "ReduceMean"
                                                    : "ReduceMax";
    int64_t list[ADJ_MAX_RANK];
    int count = 0;
    for (int i = 0; i < dims(n->in[0]).rank; i++)
        if (a->axes >> i & 1)
            list[count++] = form ? turned_axis(i) : i;
    const char *x = in_form(w, n->in[0], form), *y = result(w, n, form && a->keep_dims);
    Onnx__NodeProto *p;
    if (n->op == &adj_op_reduce_sum) {
        p = emit2(w, op, x, ints(w, count, list), y);
    } else {
        p = emit1(w, op, x, y);
        set_ints(w, p, "axes", count, list);
    }
    set_int(w, p, "keepdims", a->keep_dims != 0);
    return p != NULL;
}

static int save_argmax(writer *w, const adj_node *n)
{
    const char *index = fresh_name(w);
    Onnx__NodeProto *p = emit1(w, "ArgMax", plain(w, n->in[0]), index);
    set_int(w, p, "axis", ((const adj_axis_attrs *)n->attrs)->axis);
    set_int(w, p, "keepdims", 0);
    Onnx__NodeProto *c = emit1(w, "Cast", index, result(w, n, 0));
    set_int(w, c, "to", elem_of(ADJ_I32));
    return c != NULL;
}

/* ---- the table ---- */

static const struct {
    const adj_op *op;
    save_fn *save;
    const char *unary, *binary; /* ONNX's name of an operator that is the same */
} table[] = {
    {.op = &adj_op_relu, .unary = "Relu"},
    {.op = &adj_op_sigmoid, .unary = "Sigmoid"},
    {.op = &adj_op_tanh, .unary = "Tanh"},
    {.op = &adj_op_hard_swish, .unary = "HardSwish"},
    {.op = &adj_op_softplus, .unary = "Softplus"},
    {.op = &adj_op_erf, .unary = "Erf"},
    {.op = &adj_op_neg, .unary = "Neg"},
    {.op = &adj_op_sqrt, .unary = "Sqrt"},
    {.op = &adj_op_exp, .unary = "Exp"},
    {.op = &adj_op_log, .unary = "Log"},
    {.op = &adj_op_stop_gradient, .unary = "Identity"},
    {.op = &adj_op_leaky_relu, .save = save_alpha},
    {.op = &adj_op_elu, .save = save_alpha},
    {.op = &adj_op_hard_sigmoid, .save = save_hard_sigmoid},
    {.op = &adj_op_silu, .save = save_silu},
    {.op = &adj_op_clip, .save = save_clip},
    {.op = &adj_op_relu6, .save = save_relu6},
    {.op = &adj_op_square, .save = save_square},
    {.op = &adj_op_scale, .save = save_scale},
    {.op = &adj_op_gelu, .save = save_gelu},
    {.op = &adj_op_cast, .save = save_cast},
    {.op = &adj_op_add, .binary = "Add"},
    {.op = &adj_op_sub, .binary = "Sub"},
    {.op = &adj_op_mul, .binary = "Mul"},
    {.op = &adj_op_div, .binary = "Div"},
    {.op = &adj_op_pow, .binary = "Pow"},
    {.op = &adj_op_maximum, .binary = "Max"},
    {.op = &adj_op_minimum, .binary = "Min"},
    {.op = &adj_op_equal, .save = save_comparison},
    {.op = &adj_op_greater_equal, .save = save_comparison},
    {.op = &adj_op_relu_grad, .save = save_masked},
    {.op = &adj_op_prelu, .save = save_prelu},
    {.op = &adj_op_conv2d, .save = save_conv},
    {.op = &adj_op_depthwise_conv2d_native, .save = save_conv},
    {.op = &adj_op_conv2d_backprop_input, .save = save_conv},
    {.op = &adj_op_max_pool, .save = save_pool},
    {.op = &adj_op_avg_pool, .save = save_pool},
    {.op = &adj_op_resize, .save = save_resize},
    {.op = &adj_op_bias_add, .save = save_bias_add},
    {.op = &adj_op_matmul, .save = save_matmul},
    {.op = &adj_op_batch_norm, .save = save_batch_norm},
    {.op = &adj_op_group_norm, .save = save_group_norm},
    {.op = &adj_op_softmax, .save = save_softmax},
    {.op = &adj_op_log_softmax, .save = save_softmax},
    {.op = &adj_op_reshape, .save = save_reshape},
    {.op = &adj_op_transpose, .save = save_transpose},
    {.op = &adj_op_concat, .save = save_concat},
    {.op = &adj_op_pad, .save = save_pad},
    {.op = &adj_op_slice, .save = save_slice},
    {.op = &adj_op_broadcast_to, .save = save_broadcast},
    {.op = &adj_op_reduce_sum, .save = save_reduce},
    {.op = &adj_op_reduce_mean, .save = save_reduce},
    {.op = &adj_op_reduce_max, .save = save_reduce},
    {.op = &adj_op_argmax, .save = save_argmax},
};

int save_node(writer *w, const adj_node *n)
{
    if ((n->op->flags & ADJ_OP_LEAF) != 0 || stored(n) != NULL)
        return 1;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].op != n->op)
            continue;
        return table[i].save != NULL    ? table[i].save(w, n)
               : table[i].unary != NULL ? same_form(w, n, table[i].unary)
                                        : same_binary(w, n, table[i].binary);
    }
    return cannot_save(w, n, "ONNX has no operator for it in inference");
}

int list_needed(const writer *w, const adj_node *n, const adj_node *needed[])
{
    int count = 0;
    if (w->of[n->id].is_folded) {
        const adj_node *bias, *layer = layer_before(n, &bias);
        needed[count++] = layer->in[0];
        needed[count++] = layer->in[1];
        return count;
    }
    if (products_of(n, needed))
        return 2;
    for (int i = 0; i < n->n_in; i++) {
        const adj_node *x = n->in[i];
        const int is_stats = n->op == &adj_op_batch_norm && i == 1 && x->op == &adj_op_concat &&
                             x->n_in == 2 && x->in[0]->op == &adj_op_reshape &&
                             x->in[1]->op == &adj_op_reshape;
        if (is_stats) {
            needed[count++] = x->in[0]->in[0];
            needed[count++] = x->in[1]->in[0];
        } else {
            needed[count++] = x;
        }
    }
    return count;
}
