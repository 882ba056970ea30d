/* kind.c - the nodes that can be part of a fused group, and their requirements. */
#include "fused_pointwise.h"

static const fused_kind kinds[] = {
    {&adj_op_cast, FUSED_COPY, "f", 0, 0},
    {&adj_op_relu, FUSED_RELU, "f", 0, 0},
    {&adj_op_relu6, FUSED_RELU6, "f", 0, 0},
    {&adj_op_leaky_relu, FUSED_LEAKY_RELU, "f", 0, 0},
    {&adj_op_neg, FUSED_SCALE, "f", 0, 0},
    {&adj_op_scale, FUSED_SCALE, "f", 0, 0},
    {&adj_op_square, FUSED_SQUARE, "f", 0, 0},
    {&adj_op_sqrt, FUSED_SQRT, "f", 0, 0},
    {&adj_op_exp, FUSED_EXP, "f", 0, 0},
    {&adj_op_log, FUSED_LOG, "f", 0, 0},
    {&adj_op_clip, FUSED_CLIP, "f", 0, 0},
    {&adj_op_hard_sigmoid, FUSED_HARD_SIGMOID, "f", 0, 0},
    {&adj_op_hard_swish, FUSED_HARD_SWISH, "f", 0, 0},
    {&adj_op_elu, FUSED_ELU, "f", 0, 0},
    {&adj_op_gelu, FUSED_GELU_ERF, "f", 0, 0},
    {&adj_op_erf, FUSED_ERF, "f", 0, 0},
    {&adj_op_prelu, FUSED_PRELU, "fb", 0, 0},
    {&adj_op_add, FUSED_ADD, "bb", 0, 0},
    {&adj_op_sub, FUSED_SUB, "bb", 0, 0},
    {&adj_op_mul, FUSED_MUL, "bb", 0, 0},
    {&adj_op_div, FUSED_DIV, "bb", 0, 0},
    {&adj_op_bias_add, FUSED_ADD, "fb", 0, 0},
    {&adj_op_relu_grad, FUSED_RELU_GRAD, "ff", 0, 0},
    {&adj_op_relu6_grad, FUSED_RELU6_GRAD, "ff", 0, 0},
    {&adj_op_leaky_relu_grad, FUSED_LEAKY_RELU_GRAD, "ff", 0, 0},
    {&adj_op_sigmoid_grad, FUSED_SIGMOID_GRAD, "ff", 0, 0},
    {&adj_op_tanh_grad, FUSED_TANH_GRAD, "ff", 0, 0},
    {&adj_op_clip_grad, FUSED_CLIP_GRAD, "ff", 0, 0},
    {&adj_op_hard_sigmoid_grad, FUSED_HARD_SIGMOID_GRAD, "ff", 0, 0},
    {&adj_op_hard_swish_grad, FUSED_HARD_SWISH_GRAD, "ff", 0, 0},
    {&adj_op_elu_grad, FUSED_ELU_GRAD, "ff", 0, 0},
    {&adj_op_gelu_grad, FUSED_GELU_ERF_GRAD, "ff", 0, 0},
    {&adj_op_prelu_grad, FUSED_PRELU_GRAD, "ffb", 0, 0},
    {&adj_op_batch_norm, FUSED_NORM, "fppp", 3, 0},
    {&adj_op_batch_norm_grad, FUSED_NORM_GRAD, "fppfp", 4, 0},
    {&adj_op_select, FUSED_SELECT, "pff", 0, 0},
    {&adj_op_momentum, FUSED_MOMENTUM, "fff", 0, 0},
    {&adj_op_sgd_step, FUSED_SGD_STEP, "ffp", 0, 0},
    {&adj_op_ema, FUSED_EMA, "ff", 0, 0},
    {&adj_op_adam_step, FUSED_ADAM_STEP, "fffpp", 0, 0},
    {&adj_op_bias_add_grad, FUSED_SUM, "f", 0, 1},
    {&adj_op_prelu_grad_slope, FUSED_SUM, "ff", 0, 1},
    {&adj_op_batch_norm_grad_sums, FUSED_NORM_SUMS, "fpf", 1, 1},
    {&adj_op_batch_norm_stats, FUSED_STATS, "f", 0, 1},
};

const fused_kind *fused_kind_of(const adj_op *op)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].op == op)
            return &kinds[i];
    return NULL;
}

fused_code fused_code_of(const fused_kind *kind, const adj_node *n)
{
    const fused_code code = kind->code;
    if (code != FUSED_GELU_ERF && code != FUSED_GELU_ERF_GRAD)
        return code;
    const int is_grad = code == FUSED_GELU_ERF_GRAD;
    if (((const adj_gelu_attrs *)n->attrs)->form == ADJ_GELU_TANH)
        return is_grad ? FUSED_GELU_TANH_GRAD : FUSED_GELU_TANH;
    return code;
}

adj_shape fused_shape(const adj_node *n)
{
    const fused_kind *kind = fused_kind_of(n->op);
    return kind != NULL && kind->is_sum ? n->in[0]->type.shape : n->type.shape;
}

static int64_t last_dim(adj_shape s) { return s.rank > 0 ? s.dim[s.rank - 1] : 1; }

/* True for a scalar or a vector along the last axis. */
static int repeats_along_rows(adj_shape s, adj_shape full)
{
    int64_t n = adj_shape_elems(s);
    return n == 1 || (n == last_dim(full) && n == last_dim(s));
}

/* True for a sum over all elements, regardless of channels. */
static int is_one_sum(const adj_node *n)
{
    return n->op == &adj_op_prelu_grad_slope && ((const adj_prelu_attrs *)n->attrs)->slopes == 1;
}

/* True if n's channels are its last axis (NHWC), or if it has no channels, as with one slope for
 * all. */
static int channels_last(const adj_node *n)
{
    if (n->op == &adj_op_prelu || n->op == &adj_op_prelu_grad)
        return adj_shape_elems(n->in[n->n_in - 1]->type.shape) == 1 ||
               ((const adj_format_attrs *)n->attrs)->format == ADJ_NHWC;
    if (n->op == &adj_op_bias_add || n->op == &adj_op_bias_add_grad ||
        n->op == &adj_op_batch_norm_stats)
        return ((const adj_format_attrs *)n->attrs)->format == ADJ_NHWC;
    if (n->op == &adj_op_prelu_grad_slope)
        return is_one_sum(n) || ((const adj_prelu_attrs *)n->attrs)->format == ADJ_NHWC;
    if (n->op == &adj_op_batch_norm || n->op == &adj_op_batch_norm_grad ||
        n->op == &adj_op_batch_norm_grad_sums)
        return ((const adj_batch_norm_attrs *)n->attrs)->format == ADJ_NHWC;
    return 1;
}

static int has_type(const adj_node *v)
{
    return adj_is_float(v->type.dtype) && v->type.dtype != ADJ_F64;
}

int fused_needs_channels(const adj_node *n)
{
    const fused_kind *kind = fused_kind_of(n->op);
    if (kind == NULL)
        return 0;
    if (is_one_sum(n)) /* so that its sums have the same order in any group */
        return last_dim(n->in[0]->type.shape) <= FUSED_CHANNELS;
    if (kind->is_sum || kind->tiled > 0)
        return 1;
    for (int i = 0; i < n->n_in; i++)
        if (kind->roles[i] == 'b' && adj_shape_elems(n->in[i]->type.shape) > 1 &&
            !adj_shape_equal(n->in[i]->type.shape, n->type.shape))
            return 1;
    return 0;
}

int fused_takes(const adj_node *n, adj_shape shape)
{
    const fused_kind *kind = fused_kind_of(n->op);
    int full = 0;

    if (kind == NULL || !has_type(n) || !channels_last(n) ||
        (!kind->is_sum && !adj_shape_equal(n->type.shape, shape)))
        return 0;
    for (int i = 0; i < n->n_in; i++) {
        const adj_node *x = n->in[i];
        int is_full = adj_shape_equal(x->type.shape, shape) && has_type(x);
        if (kind->roles[i] == 'f' && !is_full)
            return 0;
        if (kind->roles[i] == 'b' && !is_full &&
            (!has_type(x) || !repeats_along_rows(x->type.shape, shape)))
            return 0;
        full += is_full && kind->roles[i] != 'p';
    }
    return full > 0;
}
