/* activation.c - activations with attributes, or made of several ops. */
#include <math.h>

#include "import.h"

int import_leaky_relu(call *n)
{
    return give(n, adj_leaky_relu(in_node(n, 0), attr_float(n, "alpha", 0.01)));
}

int import_elu(call *n) { return give(n, adj_elu(in_node(n, 0), attr_float(n, "alpha", 1))); }

/* x where x > 0, else alpha (exp(x / alpha) - 1). */
int import_celu(call *n)
{
    const double alpha = attr_float(n, "alpha", 1);
    return give(n, adj_scale(adj_elu(adj_scale(in_node(n, 0), 1 / alpha), 1), alpha));
}

int import_selu(call *n)
{
    const double alpha = attr_float(n, "alpha", 1.67326319217681884765625);
    const double gamma = attr_float(n, "gamma", 1.05070102214813232421875);
    return give(n, adj_scale(adj_elu(in_node(n, 0), alpha), gamma));
}

int import_hard_sigmoid(call *n)
{
    const double alpha = attr_float(n, "alpha", 0.2), beta = attr_float(n, "beta", 0.5);
    adj_node *x = in_node(n, 0);
    if ((float)alpha == 1.0F / 6 && beta == 0.5)
        return give(n, adj_hard_sigmoid(x));
    return give(n, adj_clip(adj_add(adj_scale(x, alpha), adj_scalar_like(x, beta)), 0, 1));
}

/* x where x > alpha, else 0. */
int import_thresholded_relu(call *n)
{
    adj_node *x = in_node(n, 0), *alpha = adj_scalar_like(x, attr_float(n, "alpha", 1));
    adj_node *above = adj_sub(adj_greater_equal(x, alpha), adj_equal(x, alpha));
    return give(n, adj_mul(x, above));
}

adj_node *softsign(adj_node *x) { return adj_div(x, adj_add(adj_abs(x), adj_scalar_like(x, 1))); }
adj_node *mish(adj_node *x) { return adj_mul(x, adj_tanh(adj_softplus(x))); }
adj_node *reciprocal(adj_node *x) { return adj_div(adj_scalar_like(x, 1), x); }

int import_swish(call *n)
{
    const double alpha = attr_float(n, "alpha", 1);
    adj_node *x = in_node(n, 0);
    return give(n, alpha == 1 ? adj_silu(x) : adj_mul(x, adj_sigmoid(adj_scale(x, alpha))));
}

int import_gelu(call *n)
{
    const int is_tanh = attr_is(n, "approximate", "tanh", "none");
    return give(n, adj_gelu(in_node(n, 0), is_tanh ? ADJ_GELU_TANH : ADJ_GELU_ERF));
}

/* The slope's shape is broadcast to x's; one slope for each channel is adj_prelu's. */
int import_prelu(call *n)
{
    const adj_shape slope = in_shape(n, 1), x = in_shape(n, 0);
    adj_node *v = in_node(n, 0), *a = in_node(n, 1);
    const int64_t elems = adj_shape_elems(slope);
    const int is_channels = x.rank >= 2 && x.rank <= 5 &&
                            slope.rank == (n->opset < 7 ? 1 : x.rank - 1) &&
                            slope.dim[0] == x.dim[1] && elems == slope.dim[0];
    if (x.rank >= 2 && x.rank <= 5 && (elems == 1 || is_channels))
        return give(n, adj_prelu(v, adj_reshape(a, (adj_shape){1, {elems}}), ADJ_NCHW));
    return give(n, adj_sub(adj_relu(v), adj_mul(a, adj_relu(adj_neg(v)))));
}

/* Sets *to to the bound that an attribute or operand gives. Returns 0 if it is a node. */
static int bound_of(call *n, int i, const char *name, double otherwise, double *to)
{
    *to = attr_float(n, name, otherwise);
    if (!has_in(n, i))
        return 1;
    const numbers *v = n->in[i]->known;
    if (v == NULL || v->n != 1 || isnan(number_at(v, 0)))
        return 0;
    *to = number_at(v, 0);
    return 1;
}

int import_clip(call *n)
{
    double low, high;
    adj_node *x = in_real(n, 0);
    const int is_low = bound_of(n, 1, "min", -INFINITY, &low);
    const int is_high = bound_of(n, 2, "max", INFINITY, &high);
    if (x == NULL)
        return 0;
    if (is_low && is_high)
        return give_like(n, adj_clip(x, low, high));
    if (has_in(n, 1))
        x = adj_maximum(x, in_real(n, 1));
    return give_like(n, has_in(n, 2) ? adj_minimum(x, in_real(n, 2)) : x);
}

int fold_clip(call *n)
{
    double low, high;
    const numbers *x = in_known(n, 0);
    if (!bound_of(n, 1, "min", -INFINITY, &low) || !bound_of(n, 2, "max", INFINITY, &high))
        return refuse(n, "a limit is not a number");
    numbers *v = x != NULL ? new_numbers(n->f, x->elem, x->shape) : NULL;
    for (int64_t i = 0; v != NULL && i < v->n; i++)
        number_set(v, i, fmin(fmax(number_at(x, i), low), high));
    return give_known(n, v);
}

/* ---- softmax ---- */

int import_softmax(call *n)
{
    const adj_shape s = in_shape(n, 0);
    const int is_flat = n->opset < 13; /* the axes from `axis` on are one */
    const int axis = axis_of(n, attr_int(n, "axis", is_flat ? 1 : -1), s.rank);
    adj_node *x = in_node(n, 0);
    if (axis < 0 || x == NULL)
        return 0;
    if (!is_flat)
        return give(n, along(x, axis, n->row->unary));
    const adj_shape rows = {2, {product(&s, 0, axis), product(&s, axis, (int)s.rank)}};
    return give(n, adj_reshape(n->row->unary(adj_reshape(x, rows)), s));
}
