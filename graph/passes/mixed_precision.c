/* mixed_precision.c - the pass that turns an f32 graph into one of mixed precision.
 *
 * A node's image has one of two types, f32 or half. Readers that need the other type read a cast
 * of it; equal casts are one node. Convolutions and matmuls take half operands. Activations and
 * data movement follow their operands; all other ops read f32. Parameters stay f32: a
 * convolution reads a cast of its filter.
 *
 * f16 has few exponents, so its gradients are multiplied by loss_scale. A gradient is scaled up
 * in f32 where it is narrowed, and a node linear in it inherits the factor. It is scaled down in
 * f32 where any other node reads it, or where it is fetched. Only gradients are scaled: the loss
 * and f32 sums are not, so that they do not overflow. With loss_scale 1 gradients are as large
 * as in the graph, which may apply a scale of its own. */
#include "passes.h"

typedef struct {
    adj_dtype half;
    double loss_scale; /* 1 for none */
    char *scaled;      /* by id of the rebuilt node: its image is multiplied by loss_scale */
} precision;

typedef struct { /* an image's type and scaling, or what a reader needs */
    adj_dtype dtype;
    int is_scaled;
} form;

enum { NOT_SCALED = -1, SUMMED = -2, DEFAULT_LOSS_SCALE = 1024 };

/* Returns x * factor; if x is a value scaled by `inverse`, the two cancel and the value itself
 * is returned. */
static adj_node *times(adj_node *x, double factor, double inverse)
{
    if (x != NULL && x->op == &adj_op_scale &&
        ((const adj_value_attrs *)x->attrs)->value == inverse)
        return x->in[0];
    return adj_scale(x, factor);
}

static adj_node *in_type(adj_node *x, adj_dtype dtype)
{
    if (x == NULL || x->type.dtype == dtype)
        return x;
    if (x->op == &adj_op_cast && x->in[0]->type.dtype == dtype && dtype != ADJ_F32)
        return x->in[0]; /* it was widened, so narrowing loses nothing */
    return adj_cast(x, dtype);
}

static adj_node *converted(const rewriting *w, adj_node *x, form from, form to)
{
    const precision *p = w->state;
    double value, factor = 1;
    if (x == NULL || !adj_is_float(to.dtype))
        return x;
    if (from.is_scaled != to.is_scaled)
        factor = to.is_scaled ? p->loss_scale : 1 / p->loss_scale;
    if (factor == 1 && from.dtype == to.dtype)
        return x;
    if (adj_is_fill(x, &value))
        return adj_fill(w->to, to.dtype, x->type.shape, value * factor);
    if (factor != 1)
        x = times(in_type(x, ADJ_F32), factor, 1 / factor);
    return in_type(x, to.dtype);
}

static form form_of(const rewriting *w, const adj_node *n, const adj_node *image)
{
    const precision *p = w->state;
    return (form){image != NULL ? image->type.dtype : n->type.dtype, p->scaled[n->id]};
}

/* Returns a root's image in the root's own type and scale; one node may be several roots. */
static adj_node *as_built(rewriting *w, const adj_node *n, adj_node *image)
{
    const precision *p = w->state;
    adj_node *y = converted(w, image, form_of(w, n, image), (form){n->type.dtype, 0});
    p->scaled[n->id] = 0;
    return y;
}

/* True if operand k of n may have the half type. */
static int may_be_half(const adj_node *n, int k)
{
    return n->in[k]->type.dtype == ADJ_F32 && has_half_operand(n->op, k);
}

/* True if n's largest operands are half, so that following them casts no large value. */
static int follows(const adj_node *n, adj_node *const in[], adj_dtype half)
{
    int64_t max = 0;
    int n_half = 0;
    double any;
    for (int k = 0; k < n->n_in; k++)
        if (may_be_half(n, k) && adj_shape_elems(n->in[k]->type.shape) > max)
            max = adj_shape_elems(n->in[k]->type.shape);
    for (int k = 0; k < n->n_in; k++) {
        if (!may_be_half(n, k) || adj_shape_elems(n->in[k]->type.shape) < max)
            continue;
        if (in[k]->type.dtype != half && !adj_is_fill(in[k], &any))
            return 0;
        n_half += in[k]->type.dtype == half;
    }
    return n_half > 0;
}

/* Returns the operand of n to scale: the first gradient in which n is linear; SUMMED for all of
 * them if n adds up its operands and one is a gradient; else NOT_SCALED. */
static int scaled_operand(const precision *p, const adj_node *n)
{
    int summed = 0, other = 0, first = NOT_SCALED;
    for (int k = 0; k < n->n_in && p->loss_scale != 1; k++) {
        if (!adj_is_float(n->in[k]->type.dtype) ||
            !(p->scaled[n->in[k]->id] || n->in[k]->role == ADJ_ROLE_GRADIENT))
            continue;
        summed |= has_operand_bit(n->op->sum_in, k);
        other |= !has_operand_bit(n->op->sum_in, k);
        if (first == NOT_SCALED && has_operand_bit(n->op->linear_in, k))
            first = k;
    }
    if (n->op->sum_in != 0)
        return summed && !other ? SUMMED : NOT_SCALED;
    return first;
}

static adj_node *mixed(rewriting *w, const adj_node *n, adj_node *in[])
{
    const precision *p = w->state;
    unsigned flags = n->op->flags;
    int is_half = (flags & ADJ_OP_HALF_ALWAYS) != 0;
    if (flags & ADJ_OP_HALF)
        is_half = n->role != ADJ_ROLE_UPDATE && follows(n, in, p->half);
    int scaled = is_half ? scaled_operand(p, n) : NOT_SCALED;
    for (int k = 0; k < n->n_in; k++) {
        form wanted = {n->in[k]->type.dtype, scaled == k};
        if (scaled == SUMMED)
            wanted.is_scaled = has_operand_bit(n->op->sum_in, k);
        if (is_half && may_be_half(n, k))
            wanted.dtype = p->half;
        in[k] = converted(w, in[k], form_of(w, n->in[k], in[k]), wanted);
    }
    p->scaled[n->id] = scaled != NOT_SCALED;
    adj_node *y = rule_copy(w, n, in);
    return flags & ADJ_OP_HALF_SUM ? in_type(y, n->type.dtype) : y;
}

static adj_status set_precision(rewriting *w)
{
    const adj_exec_opts *o = w->target->opts;
    precision *p = w->state = adj_graph_alloc(w->to, sizeof *p);
    if (p == NULL || (p->scaled = adj_graph_alloc(w->to, (size_t)w->from->n_node)) == NULL)
        return w->to->status;
    p->half = o->precision == ADJ_PRECISION_F16 ? ADJ_F16 : ADJ_BF16;
    p->loss_scale = 1;
    if (p->half == ADJ_F16)
        p->loss_scale = o->loss_scale > 0 ? o->loss_scale : DEFAULT_LOSS_SCALE;
    return ADJ_OK;
}

static int is_wanted(const pass_target *target, const adj_graph *g)
{
    (void)g;
    return target->opts->precision != ADJ_PRECISION_AS_BUILT;
}

const pass pass_mixed_precision = {.name = "mixed precision",
                                   .is_wanted = is_wanted,
                                   .prepare = set_precision,
                                   .rule = mixed,
                                   .as_built = as_built};
