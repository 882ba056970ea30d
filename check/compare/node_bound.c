/* node_bound.c - how far from the reference a node's result is still right.
 *
 * For a node that is linear in its operands, y = sum a b over L terms, rounding errs by at most
 * (u + L u_sum) sum |a b|; the sum of magnitudes is the same node with the operands' absolute
 * values. Other nodes have (u + L u_sum) times the largest magnitude in the result, and a factor
 * for the few roundings inside. Both errors count, the reference's too. */
#include <math.h>

#include "compare.h"

enum { INSIDE = 8, TRUST = 4 };

/* magnitude[i] = max(magnitude[i], |y[i]|), or += */
static void gather(const adj_node *n, const outcome *o, adj_dtype dtype, int add, double *magnitude)
{
    for (int64_t i = 0, n_elems = node_elems(n); o->status == ADJ_OK && i < n_elems; i++) {
        double v = fabs(adj_load(dtype, o->value[0], i));
        magnitude[i] = add ? magnitude[i] + v : fmax(magnitude[i], v);
    }
}

static unsigned linear_in(const adj_node *n)
{
    return n->op->cancels_in != 0 ? n->op->cancels_in : n->op->linear_in;
}

/* The node with its linear operands replaced by absolute values; only: all others but this one are
 * 0 (what a - b needs: its terms do not add up otherwise). */
static adj_status run_magnitudes(const runner *b, const adj_node *n, void *const operand[],
                                 int only, region *p, outcome *o)
{
    void *v[MAX_IN];
    for (int k = 0; k < n->n_in; k++) {
        adj_dtype dtype = config_dtype(b->reference, n->in[k]->type.dtype);
        v[k] = operand[k];
        if (!adj_is_float(dtype) || !has_operand_bit(linear_in(n), k))
            continue;
        if ((v[k] = convert(p, dtype, operand[k], dtype, node_elems(n->in[k]))) == NULL)
            return ADJ_ENOMEM;
        for (int64_t i = 0, n_elems = node_elems(n->in[k]); i < n_elems; i++)
            adj_store(dtype, v[k], i, only == k || only < 0 ? fabs(adj_load(dtype, v[k], i)) : 0);
    }
    return run_node(b, n, v, b->reference, p, o);
}

static adj_status magnitudes(const runner *b, const adj_node *n, void *const operand[], region *p,
                             double *magnitude)
{
    adj_dtype dtype = config_dtype(b->reference, n->type.dtype);
    outcome o;
    adj_status status = ADJ_OK;
    int floats = 0;
    for (int k = 0; k < n->n_in; k++)
        floats += adj_is_float(n->in[k]->type.dtype);
    if ((is_linear(n) && floats > 1 && (n->op->flags & ADJ_OP_ELEMENTWISE)) ||
        n->op->cancels_in != 0)
        for (int k = 0; k < n->n_in && status == ADJ_OK; k++)
            if ((status = run_magnitudes(b, n, operand, k, p, &o)) == ADJ_OK)
                gather(n, &o, dtype, 1, magnitude);
    if (status == ADJ_OK && linear_in(n) != 0 &&
        (status = run_magnitudes(b, n, operand, -1, p, &o)) == ADJ_OK)
        gather(n, &o, dtype, 0, magnitude);
    return status;
}

/* The most terms in a sum of the result. */
static double length_of(const adj_node *n, double flop)
{
    double out = fmax(1, (double)node_elems(n)), in = 0;
    double length = n->op->sum_length != NULL ? n->op->sum_length(n) : 1;
    for (int k = 0; k < n->n_in; k++)
        in = fmax(in, (double)node_elems(n->in[k]));
    return fmax(fmax(1, length), ceil(fmax(flop / 2 / out, in / out)));
}

/* May it be computed by Winograd's algorithm? A result is then a sum of terms that are far larger
 * than its own products, those of its neighbours too, and cancel. */
static int may_be_winograd(const bound_case *c)
{
    const adj_op *op = c->node->op;
    if (!c->config->fast || (op != &adj_op_conv2d && op != &adj_op_conv2d_backprop_input &&
                             op != &adj_op_conv2d_backprop_filter))
        return 0;
    const adj_conv_geom *g = &((const adj_conv_attrs *)c->node->attrs)->geom;
    return g->kh == 3 && g->kw == 3;
}

/* In mixed precision: two operands and the result are rounded to bf16, and back in f32. */
static double mixed_unit(const bound_case *c)
{
    int may_be_half = c->node->op->flags & (ADJ_OP_HALF | ADJ_OP_HALF_ALWAYS | ADJ_OP_HALF_SUM);
    return c->config->mixed && c->dtype == ADJ_F32 && may_be_half ? 3 * precision_of(ADJ_BF16).unit
                                                                  : 0;
}

static void set_bounds(const runner *b, const bound_case *c, double length, double *magnitude,
                       expectation *e)
{
    const adj_node *n = c->node;
    const adj_dtype dtype = c->dtype;
    precision mine = precision_of(dtype),
              its = precision_of(config_dtype(b->reference, n->type.dtype));
    double unit = mine.unit + its.unit + mixed_unit(c), sum = mine.accumulate + its.accumulate;
    int linear = is_linear(n) && !may_be_winograd(c);
    double max = 0;
    e->resolve = fmin(1, TRUST * (length * sum / (unit + length * sum)));
    for (int64_t i = 0, n_elems = node_elems(n); i < n_elems; i++)
        if (isfinite(magnitude[i]))
            max = fmax(max, magnitude[i]);
    for (int64_t i = 0, n_elems = node_elems(n); i < n_elems; i++)
        e->bound[i] =
            (linear ? magnitude[i] : max * INSIDE) * (unit + length * sum) + length * mine.floor;
    const char *type = mixed_unit(c) > 0 ? "bf16 mixed" : adj_dtype_name(dtype);
    const char *sums = mine.accumulate == 0x1p-53 ? "f64" : "f32";
    if (!adj_is_float(dtype))
        snprintf(e->origin, sizeof e->origin, "equality");
    else if (linear)
        snprintf(e->origin, sizeof e->origin, "(u_%s + %g u_%s) sum|ab|", type, length, sums);
    else
        snprintf(e->origin, sizeof e->origin, "%d (u_%s + %g u_%s) max|y|", INSIDE, type, length,
                 sums);
}

/* Does it multiply by a constant that is no short binary fraction? Then a product is rounded, and
 * the result an integer by chance. */
static int has_fraction(const adj_node *n)
{
    double v[2] = {0};
    if (n->op == &adj_op_momentum || n->op == &adj_op_sgd_step) {
        const adj_decay_attrs *a = n->attrs;
        v[0] = a->mu;
        v[1] = a->decay;
    } else if (n->op == &adj_op_scale || n->op == &adj_op_ema || n->op == &adj_op_leaky_relu ||
               n->op == &adj_op_leaky_relu_grad) {
        v[0] = ((const adj_value_attrs *)n->attrs)->value;
    }
    for (int i = 0; i < 2; i++)
        if (v[i] * 256 != nearbyint(v[i] * 256))
            return 1;
    return n->op == &adj_op_adam_step;
}

/* Integers, and none so large that a sum could have been rounded. */
static int is_exact(const bound_case *c, const expectation *e, const double *magnitude)
{
    const adj_node *n = c->node;
    if (has_fraction(n) || may_be_winograd(c) || mixed_unit(c) > 0)
        return 0;
    for (int64_t i = 0, n_elems = node_elems(n); i < n_elems; i++) {
        double v = adj_load(e->dtype, e->expected, i);
        if (v != nearbyint(v) || fmax(fabs(v), magnitude[i]) >= 0x1p24)
            return 0;
    }
    return 1;
}

adj_status node_bound(const runner *b, const bound_case *n, region *p, expectation *e, outcome *o)
{
    const adj_node *node = n->node;
    runner untimed = *b;
    untimed.runs = 0;
    *e = (expectation){.dtype = config_dtype(b->reference, node->type.dtype)};
    adj_status status = run_node(&untimed, node, n->operand, b->reference, p, o);
    if (status != ADJ_OK || o->status != ADJ_OK)
        return status;
    e->expected = o->value[0];
    e->bound = region_alloc(p, (size_t)node_elems(node) + 1, sizeof *e->bound);
    if (e->bound == NULL)
        return ADJ_ENOMEM;
    gather(node, o, e->dtype, 0, e->bound);
    if (adj_is_float(node->type.dtype))
        status = magnitudes(&untimed, node, n->operand, p, e->bound);
    if (status != ADJ_OK)
        return status;
    e->exact = !adj_is_float(node->type.dtype) || (n->exact && is_exact(n, e, e->bound));
    set_bounds(b, n, length_of(node, o->info[0].flop), e->bound, e);
    if (e->exact)
        snprintf(e->origin, sizeof e->origin, "equality");
    return ADJ_OK;
}
