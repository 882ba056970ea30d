/* optimiser.c - the elementwise pieces that optimisers are made of: each computes the next value of
 * a parameter or of an optimiser's state, which the executor commits after the run.
 *
 *   momentum   mu*v + g + decay*p
 *   sgd_step   p - lr*(d + decay*p)
 *   ema        beta*m + (1-beta)*x
 *   adam_step  p - lr*(m/(1-beta1^t) / (sqrt(v/(1-beta2^t)) + epsilon) + decay*p)
 *   next_step  step + 1
 *
 * Tensor operands and the result have one type, so the first operand's buffer may become the
 * result's. None has a gradient rule: differentiating through an update is ADJ_ENOGRAD, not a
 * silent zero; a step counter is a constant (ADJ_OP_NO_GRADIENT). */
#include <math.h>

#include "adjoint_ext.h"

/* The first n_tensor operands have one shape and float dtype, which is the result's. */
static adj_status tensors_check(const adj_node *n, int n_tensor, adj_type *out)
{
    adj_type p = n->in[0]->type;

    if (!adj_is_float(p.dtype))
        return adj_fail(n->graph, ADJ_EDTYPE, "%s: operand 0 must be a float type (got %s)",
                        n->op->name, adj_dtype_name(p.dtype));
    for (int i = 1; i < n_tensor; i++) {
        adj_type t = n->in[i]->type;
        if (t.dtype != p.dtype)
            return adj_fail(n->graph, ADJ_EDTYPE,
                            "%s: operand %d does not have operand 0's type (got %s, expected %s)",
                            n->op->name, i, adj_dtype_name(t.dtype), adj_dtype_name(p.dtype));
        if (!adj_shape_equal(t.shape, p.shape))
            return adj_fail(n->graph, ADJ_ESHAPE,
                            "%s: operand %d does not have operand 0's shape (got %s, expected %s)",
                            n->op->name, i, adj_shape_text(t.shape).s, adj_shape_text(p.shape).s);
    }
    *out = p;
    return ADJ_OK;
}

static adj_status scalar_check(const adj_node *n, int i, const char *what, adj_dtype dtype)
{
    adj_type t = n->in[i]->type;

    if (t.dtype != dtype)
        return adj_fail(n->graph, ADJ_EDTYPE, "%s: %s has the wrong type (got %s, expected %s)",
                        n->op->name, what, adj_dtype_name(t.dtype), adj_dtype_name(dtype));
    if (t.shape.rank != 0)
        return adj_fail(n->graph, ADJ_ESHAPE, "%s: %s must be a scalar (got %s)", n->op->name, what,
                        adj_shape_text(t.shape).s);
    return ADJ_OK;
}

static adj_status momentum_infer(const adj_node *n, void *attrs, adj_type *out)
{
    (void)attrs;
    return tensors_check(n, 3, out);
}

static adj_status sgd_infer(const adj_node *n, void *attrs, adj_type *out)
{
    (void)attrs;
    adj_status status = tensors_check(n, 2, out);
    return status != ADJ_OK ? status : scalar_check(n, 2, "lr", out->dtype);
}

static adj_status ema_infer(const adj_node *n, void *attrs, adj_type *out)
{
    (void)attrs;
    return tensors_check(n, 2, out);
}

static adj_status adam_infer(const adj_node *n, void *attrs, adj_type *out)
{
    (void)attrs;
    adj_status status = tensors_check(n, 3, out);
    if (status == ADJ_OK)
        status = scalar_check(n, 3, "t", ADJ_I32);
    return status != ADJ_OK ? status : scalar_check(n, 4, "lr", out->dtype);
}

static adj_status next_infer(const adj_node *n, void *attrs, adj_type *out)
{
    (void)attrs;
    *out = n->in[0]->type;
    return scalar_check(n, 0, "step", ADJ_I32);
}

static void momentum_show(const void *attrs, FILE *f)
{
    const adj_decay_attrs *a = attrs;
    fprintf(f, " mu %g", a->mu);
    if (a->decay != 0)
        fprintf(f, " decay %g", a->decay);
}

static void sgd_show(const void *attrs, FILE *f)
{
    const adj_decay_attrs *a = attrs;
    if (a->decay != 0)
        fprintf(f, " decay %g", a->decay);
}

static void ema_show(const void *attrs, FILE *f)
{
    const adj_value_attrs *a = attrs;
    fprintf(f, " beta %g", a->value);
}

static void adam_show(const void *attrs, FILE *f)
{
    const adj_adam_attrs *a = attrs;
    fprintf(f, " beta %g %g epsilon %g", a->beta1, a->beta2, a->epsilon);
    if (a->decay != 0)
        fprintf(f, " decay %g", a->decay);
}

/* 0 after recording an error. */
static int number_check(adj_node *n, const char *op, const char *what, double value)
{
    if (!isfinite(value))
        adj_fail(n->graph, ADJ_EARG, "%s: %s must be finite (got %g)", op, what, value);
    return isfinite(value);
}

adj_node *adj_momentum(adj_node *v, adj_node *g, adj_node *p, double mu, double decay)
{
    const adj_decay_attrs a = {.mu = mu, .decay = decay};

    if (v == NULL || !number_check(v, "momentum", "mu", mu) ||
        !number_check(v, "momentum", "decay", decay))
        return NULL;
    return adj_node_new3(&adj_op_momentum, v, g, p, &a);
}

adj_node *adj_sgd_step(adj_node *p, adj_node *d, adj_node *lr, double decay)
{
    const adj_decay_attrs a = {.decay = decay};

    if (p == NULL || !number_check(p, "sgd_step", "decay", decay))
        return NULL;
    return adj_node_new3(&adj_op_sgd_step, p, d, lr, &a);
}

adj_node *adj_ema(adj_node *m, adj_node *x, double beta)
{
    const adj_value_attrs a = {.value = beta};

    if (m == NULL || !number_check(m, "ema", "beta", beta))
        return NULL;
    return adj_node_new2(&adj_op_ema, m, x, &a);
}

adj_node *adj_adam_step(adj_node *p, adj_node *m, adj_node *v, adj_node *t, adj_node *lr,
                        const adj_adam_attrs *a)
{
    adj_node *const in[] = {p, m, v, t, lr};

    if (p == NULL)
        return NULL;
    if (a == NULL || !(a->beta1 >= 0 && a->beta1 < 1) || !(a->beta2 >= 0 && a->beta2 < 1) ||
        !(a->epsilon >= 0 && isfinite(a->epsilon)) || !isfinite(a->decay)) {
        adj_fail(
            p->graph, ADJ_EARG,
            "adam_step: an attribute is out of range (got beta1 %g, beta2 %g, epsilon %g, decay "
            "%g, expected betas in [0, 1), epsilon >= 0)",
            a ? a->beta1 : NAN, a ? a->beta2 : NAN, a ? a->epsilon : NAN, a ? a->decay : NAN);
        return NULL;
    }
    return adj_node_new(p->graph, &adj_op_adam_step, 5, in, a);
}

adj_node *adj_next_step(adj_node *step) { return adj_node_new1(&adj_op_next_step, step, NULL); }

const adj_op adj_op_momentum = {.name = "momentum",
                                .min_in = 3,
                                .max_in = 3,
                                .attr_size = sizeof(adj_decay_attrs),
                                .flags = ADJ_OP_ELEMENTWISE,
                                .infer = momentum_infer,
                                .show = momentum_show,
                                .cancels_in = 1 | 2 | 4};
const adj_op adj_op_sgd_step = {.name = "sgd_step",
                                .min_in = 3,
                                .max_in = 3,
                                .attr_size = sizeof(adj_decay_attrs),
                                .flags = ADJ_OP_ELEMENTWISE,
                                .infer = sgd_infer,
                                .show = sgd_show,
                                .cancels_in = 1 | 2};
const adj_op adj_op_ema = {.name = "ema",
                           .min_in = 2,
                           .max_in = 2,
                           .attr_size = sizeof(adj_value_attrs),
                           .flags = ADJ_OP_ELEMENTWISE,
                           .infer = ema_infer,
                           .show = ema_show,
                           .cancels_in = 1 | 2};
const adj_op adj_op_adam_step = {.name = "adam_step",
                                 .min_in = 5,
                                 .max_in = 5,
                                 .attr_size = sizeof(adj_adam_attrs),
                                 .flags = ADJ_OP_ELEMENTWISE,
                                 .infer = adam_infer,
                                 .show = adam_show,
                                 .cancels_in = 1 | 2};
const adj_op adj_op_next_step = {.name = "next_step",
                                 .min_in = 1,
                                 .max_in = 1,
                                 .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_NO_GRADIENT,
                                 .infer = next_infer};
