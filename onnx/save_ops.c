/* save_ops.c - the ONNX operators (opset 17) for each op. */
#include <math.h>

#include "ops/grad.h"
#include "save.h"
#include "shared.h"

/* ---- one operand ---- */

/* Writes the op's operator, or one of that name, of one operand, whose form the result has. */
static Onnx__NodeProto *same_named(writer *w, const adj_node *n, const char *op)
{
    const int form = is_turned(w, n->in[0]);
    return emit1(w, op, in_form(w, n->in[0], form), result(w, n, form));
}

static Onnx__NodeProto *same_form(writer *w, const adj_node *n)
{
    return same_named(w, n, operator_of(n->op));
}

static double value_attr(const adj_node *n) { return ((const adj_value_attrs *)n->attrs)->value; }

static void save_alpha(writer *w, const adj_node *n)
{
    Onnx__NodeProto *p = same_form(w, n);
    set_float(w, p, "alpha", value_attr(n));
}

static void save_hard_sigmoid(writer *w, const adj_node *n)
{
    Onnx__NodeProto *p = same_named(w, n, "HardSigmoid");
    set_float(w, p, "alpha", 1.0 / 6);
    set_float(w, p, "beta", 0.5);
}

static void save_silu(writer *w, const adj_node *n)
{
    const int form = is_turned(w, n->in[0]);
    const char *x = in_form(w, n->in[0], form), *gate = fresh_name(w);
    emit1(w, "Sigmoid", x, gate);
    emit2(w, "Mul", x, gate, result(w, n, form));
}

static void clipped(writer *w, const adj_node *n, double low, double high)
{
    const int form = is_turned(w, n->in[0]);
    const char *in[] = {in_form(w, n->in[0], form), isinf(low) ? "" : number(w, n, low),
                        isinf(high) ? "" : number(w, n, high), NULL};
    emit(w, "Clip", in, result(w, n, form));
}

static void save_clip(writer *w, const adj_node *n)
{
    const adj_clip_attrs *a = n->attrs;
    clipped(w, n, a->min, a->max);
}

static void save_relu6(writer *w, const adj_node *n) { clipped(w, n, 0, 6); }

static void save_square(writer *w, const adj_node *n)
{
    const int form = is_turned(w, n->in[0]);
    const char *x = in_form(w, n->in[0], form);
    emit2(w, "Mul", x, x, result(w, n, form));
}

static void save_scale(writer *w, const adj_node *n)
{
    const int form = is_turned(w, n->in[0]);
    emit2(w, "Mul", in_form(w, n->in[0], form), number(w, n, value_attr(n)), result(w, n, form));
}

/* x P(x): with Erf, or by tanh of a cubic. */
static void save_gelu(writer *w, const adj_node *n)
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
    emit2(w, "Mul", half, more, result(w, n, form));
}

static void save_cast(writer *w, const adj_node *n)
{
    Onnx__NodeProto *p = same_named(w, n, "Cast");
    set_int(w, p, "to", elem_of(adj_node_type(n).dtype));
}

/* ---- several operands ---- */

/* A value of rank below 4 beside NCHW images: [c] becomes [c, 1, 1]; NULL if it has another shape.
 */
static const char *beside_turned(writer *w, const adj_node *x)
{
    const adj_shape s = dims(x);
    if (s.rank == 4)
        return turned(w, x);
    if (adj_shape_elems(s) == 1)
        return plain(w, x);
    return s.rank == 1 ? arranged(w, x, axes_in_order, (adj_shape){3, {s.dim[0], 1, 1}}) : NULL;
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

static void binary(writer *w, const adj_node *n, const char *out, int form)
{
    emit2(w, operator_of(n->op), operand(w, n, 0, form), operand(w, n, 1, form), out);
}

static void same_binary(writer *w, const adj_node *n)
{
    const int form = may_be_turned(w, n);
    check_batch(w, n);
    binary(w, n, result(w, n, form), form);
}

/* A comparison gives truth values in ONNX, 0 and 1 of the operands' type here. */
static void save_comparison(writer *w, const adj_node *n)
{
    const int form = may_be_turned(w, n);
    const char *truth = fresh_name(w);
    check_batch(w, n);
    binary(w, n, truth, form);
    Onnx__NodeProto *p = emit1(w, "Cast", truth, result(w, n, form));
    set_int(w, p, "to", elem_of(adj_node_type(n).dtype));
}

/* relu_grad(a, mask): a where the mask is above 0, else 0. */
static void save_masked(writer *w, const adj_node *n)
{
    const int form = is_turned(w, n->in[0]) || is_turned(w, n->in[1]);
    const char *truth = fresh_name(w), *zero = number(w, n, 0);
    emit2(w, "Greater", in_form(w, n->in[1], form), zero, truth);
    const char *in[] = {truth, in_form(w, n->in[0], form), zero, NULL};
    emit(w, "Where", in, result(w, n, form));
}

static void save_prelu(writer *w, const adj_node *n)
{
    const int is_nhwc = ((const adj_format_attrs *)n->attrs)->format == ADJ_NHWC;
    const adj_shape x = dims(n), s = dims(n->in[1]);
    const int form = is_nhwc && x.rank == 4;
    adj_shape slope = {.rank = 1, .dim = {s.dim[0], 1, 1, 1, 1, 1}};
    if (form || !is_nhwc) /* channels are axis 1 */
        slope.rank = x.rank - 1;
    emit2(w, "PRelu", in_form(w, n->in[0], form), arranged(w, n->in[1], axes_in_order, slope),
          result(w, n, form));
}

/* ---- windows ---- */

static void save_pool(writer *w, const adj_node *n)
{
    const adj_pool_attrs *a = n->attrs;
    const int form = a->geom.format == ADJ_NHWC;
    if (a->kc > 1)
        cannot_save(w, n, "its windows span channels");
    Onnx__NodeProto *p =
        emit1(w, operator_of(n->op), in_form(w, n->in[0], form), result(w, n, form));
    set_windows(w, p, &a->geom, 0);
}

static void save_resize(writer *w, const adj_node *n)
{
    static const char *const coordinates[] = {"half_pixel", "align_corners", "asymmetric"};
    const adj_resize_attrs *a = n->attrs;
    const int form = a->format == ADJ_NHWC;
    const adj_shape s = dims(n);
    const int64_t c = s.dim[form ? 3 : 1];
    const char *in[] = {in_form(w, n->in[0], form), "", "", NULL, NULL};
    if (a->oh % a->ih == 0 && a->ow % a->iw == 0)
        in[2] = factors(w, (double)(a->oh / a->ih), (double)(a->ow / a->iw));
    else
        in[3] = batch_sizes(w, n, (adj_shape){4, {s.dim[0], c, a->oh, a->ow}});
    Onnx__NodeProto *p = emit(w, "Resize", in, result(w, n, form));
    set_word(w, p, "coordinate_transformation_mode", coordinates[a->coordinates]);
    set_word(w, p, "mode", a->mode == ADJ_NEAREST ? "nearest" : "linear");
    if (a->mode == ADJ_NEAREST)
        set_word(w, p, "nearest_mode",
                 a->coordinates == ADJ_ASYMMETRIC ? "floor" : "round_prefer_ceil");
}

static void save_softmax(writer *w, const adj_node *n)
{
    Onnx__NodeProto *p = emit1(w, operator_of(n->op), plain(w, n->in[0]), result(w, n, 0));
    set_int(w, p, "axis", -1);
}

/* ---- reductions ---- */

/* Reductions over height and width alone read either form. */
static void save_reduce(writer *w, const adj_node *n)
{
    const adj_reduce_attrs *a = n->attrs;
    const int form = is_turned(w, n->in[0]) && a->axes == (2 | 4);
    const char *op = operator_of(n->op);
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
}

static void save_argmax(writer *w, const adj_node *n)
{
    const char *index = fresh_name(w);
    Onnx__NodeProto *p = emit1(w, "ArgMax", plain(w, n->in[0]), index);
    set_int(w, p, "axis", ((const adj_axis_attrs *)n->attrs)->axis);
    set_int(w, p, "keepdims", 0);
    Onnx__NodeProto *c = emit1(w, "Cast", index, result(w, n, 0));
    set_int(w, c, "to", elem_of(ADJ_I32));
}

/* ---- the table ---- */

static const struct {
    const adj_op *op;
    save_fn *save;
} table[] = {
    {&adj_op_leaky_relu, save_alpha},
    {&adj_op_elu, save_alpha},
    {&adj_op_hard_sigmoid, save_hard_sigmoid},
    {&adj_op_silu, save_silu},
    {&adj_op_clip, save_clip},
    {&adj_op_relu6, save_relu6},
    {&adj_op_square, save_square},
    {&adj_op_scale, save_scale},
    {&adj_op_gelu, save_gelu},
    {&adj_op_cast, save_cast},
    {&adj_op_equal, save_comparison},
    {&adj_op_greater_equal, save_comparison},
    {&adj_op_relu_grad, save_masked},
    {&adj_op_prelu, save_prelu},
    {&adj_op_conv2d, save_conv},
    {&adj_op_depthwise_conv2d_native, save_conv},
    {&adj_op_conv2d_backprop_input, save_conv},
    {&adj_op_max_pool, save_pool},
    {&adj_op_avg_pool, save_pool},
    {&adj_op_resize, save_resize},
    {&adj_op_bias_add, save_bias_add},
    {&adj_op_matmul, save_matmul},
    {&adj_op_batch_norm, save_batch_norm},
    {&adj_op_group_norm, save_group_norm},
    {&adj_op_softmax, save_softmax},
    {&adj_op_log_softmax, save_softmax},
    {&adj_op_reshape, save_reshape},
    {&adj_op_transpose, save_transpose},
    {&adj_op_concat, save_concat},
    {&adj_op_pad, save_pad},
    {&adj_op_slice, save_slice},
    {&adj_op_broadcast_to, save_broadcast},
    {&adj_op_reduce_sum, save_reduce},
    {&adj_op_reduce_mean, save_reduce},
    {&adj_op_reduce_max, save_reduce},
    {&adj_op_argmax, save_argmax},
};

void save_node(writer *w, const adj_node *n)
{
    if ((n->op->flags & ADJ_OP_LEAF) != 0 || stored(n) != NULL)
        return;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].op == n->op) {
            table[i].save(w, n);
            return;
        }
    if (operator_of(n->op) == NULL)
        cannot_save(w, n, "ONNX has no operator for it in inference");
    else if (n->n_in == 1)
        same_form(w, n);
    else
        same_binary(w, n);
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
