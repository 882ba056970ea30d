/* match.c - the nodes that can be part of a fused pointwise group, their requirements, and the
 * selection of a group's nodes. */
#include <string.h>

#include "fused_pointwise.h"

enum { RECOMPUTED = 2, WITH_SUMS = 5 }; /* nodes: a batch norm and its relu; with masked sums */

/* ---- kinds of nodes ---- */

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
    const int has_slopes = n->op == &adj_op_prelu || n->op == &adj_op_prelu_grad;
    return is_one_sum(n) || adj_format_of(n) == ADJ_NHWC ||
           (has_slopes && adj_shape_elems(n->in[n->n_in - 1]->type.shape) == 1);
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

/* ---- a group's nodes ---- */

static int is_sum(const adj_node *n) { return fused_kind_of(n->op)->is_sum; }

/* Returns an operand of u that the group computes but cannot pass to u, or NULL. A sum is
 * complete only after the pass, and operands needed before the pass cannot come from the group. */
static const adj_node *forbidden(const adj_node *u, int n, const adj_node *const group[])
{
    for (int i = 0; i < u->n_in; i++) {
        const adj_node *x = u->in[i];
        int before = fused_kind_of(u->op)->roles[i] == 'p';
        if (adj_position(n, group, x) >= 0 && (is_sum(x) || before))
            return x;
    }
    return NULL;
}

/* Returns an operand of u that prevents it from joining the group, or the first operand that the
 * group lacks; NULL if all are present. Nodes older than the root come from outside: they cannot
 * depend on the group. */
static const adj_node *missing(const adj_node *u, const adj_node *root, int n,
                               const adj_node *const group[])
{
    const adj_node *x = forbidden(u, n, group);
    for (int i = 0; i < u->n_in && x == NULL; i++)
        if (adj_position(n, group, u->in[i]) < 0 && u->in[i]->id > root->id &&
            !(u->in[i]->op->flags & ADJ_OP_LEAF))
            x = u->in[i];
    return x;
}

/* Returns a user of the group's values that may join it, or an operand that such a user lacks;
 * NULL if there is none. Skips a user whose chain of missing operands exceeds the group's room. */
static const adj_node *next_member(const adj_node *root, const adj_uses *uses, int n,
                                   const adj_node *const group[])
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < uses[group[i]->id].n_user; k++) {
            const adj_node *u = uses[group[i]->id].user[k];
            if (adj_position(n, group, u) >= 0)
                continue;
            for (int room = FUSED_NODES - n;
                 room > 0 && fused_takes(u, fused_shape(root)) && adj_position(n, group, u) < 0;
                 room--) {
                const adj_node *x = missing(u, root, n, group);
                if (x == NULL)
                    return u;
                u = x;
            }
        }
    return NULL;
}

/* True if one is a copy of the other for a gradient: the same op on the same operands. */
static int is_copy_of(const adj_node *copy, const adj_node *n)
{
    int same = copy->op == n->op && memcmp(copy->attrs, n->attrs, adj_attr_size(n->op)) == 0;
    for (int i = 0; i < n->n_in && same; i++)
        same = copy->in[i] == n->in[i];
    return same;
}

/* Returns the sums over the values that z masks, if z is a copy of the batch norm for that mask
 * alone, and the masked gradient is older than the batch norm. NULL otherwise. */
static const adj_node *masked_sums(const adj_node *z, const adj_node *norm, const adj_uses *uses)
{
    if (z == norm || z->clone == 0 || !is_copy_of(z, norm))
        return NULL;
    const adj_node *mask = adj_only_user(z, uses);
    if (mask == NULL || mask->op != &adj_op_relu_grad || mask->in[1] != z ||
        mask->in[0]->id > norm->id)
        return NULL;
    const adj_node *sums = adj_only_user(mask, uses);
    const int is_by_norm = sums != NULL && sums->op == &adj_op_batch_norm_grad_sums &&
                           sums->in[0] == norm->in[0] && sums->in[1] == norm->in[1];
    return is_by_norm && sums->in[2] == mask ? sums : NULL;
}

/* Handles a batch norm and its relu that are recomputed for one gradient
 * (graph/passes/recompute.c), and of which another gradient's sums need only the mask
 * (ops/rules/batch_norm.c): both read the same x, in one pass. Adds that mask's nodes and
 * the sums to the group of two; returns its size. Autodiff numbers them after the relu, so none
 * of them is in a group yet. */
static int add_masked_sums(const adj_uses *uses, int max, const adj_node **group)
{
    const adj_uses *u = &uses[group[0]->in[0]->id];
    for (int i = 0; i < u->n_user && max >= WITH_SUMS; i++) {
        const adj_node *z = u->user[i], *sums = masked_sums(z, group[0], uses);
        if (sums == NULL || z->id < group[1]->id)
            continue;
        group[RECOMPUTED] = z;
        group[RECOMPUTED + 1] = sums->in[2];
        group[RECOMPUTED + 2] = sums;
        return WITH_SUMS;
    }
    return RECOMPUTED;
}

int fused_match(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    int n = 0;
    if (!fused_kind_of(root->op) || !fused_takes(root, fused_shape(root)) ||
        adj_shape_elems(fused_shape(root)) == 0)
        return 0;
    for (const adj_node *next = root; next != NULL && n < max && n < FUSED_NODES;
         next = next_member(root, uses, n, group))
        group[n++] = next;
    if (n == RECOMPUTED && root->op == &adj_op_batch_norm && root->clone != 0 &&
        group[1]->op == &adj_op_relu && adj_only_user(root, uses) == group[1])
        n = add_masked_sums(uses, max, group);
    return n;
}
