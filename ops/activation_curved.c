/* activation_curved.c - activations with curved pieces, and their gradients as ops of their own. A
 * gradient reads the result instead of the operand where that is enough, as in activation.c. Each
 * is linear in dy, so for the upstream gradient e, the gradient of dy is the same op on e; the
 * rules below give the second operand's. */
#include <math.h>

#include "activation.h"
#include "grad.h"

/* ---- sigmoid, tanh, silu ----
 *
 *   sigmoid_grad(dy, y)     dy y (1 - y)
 *   tanh_grad(dy, y)        dy (1 - y^2)
 *   silu_grad(dy, x)        dy (s + x s (1 - s)),  s = sigmoid(x) */

static void sigmoid_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = adj_sigmoid_grad(dy, y);
}

static void tanh_grad(adj_node *y, adj_node *dy, adj_node *dx[]) { dx[0] = adj_tanh_grad(dy, y); }

static void silu_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = adj_silu_grad(dy, y->in[0]);
}

/* 1 - 2 y */
static adj_node *one_minus_twice(adj_node *y)
{
    adj_node *twice = adj_scale(y, 2);
    return adj_sub(adj_fill_like(y, 1), twice);
}

/* d/dy of dy y (1 - y) is dy (1 - 2 y). */
static void sigmoid_grad_grad(adj_node *dx, adj_node *e, adj_node *de[])
{
    adj_node *dy = dx->in[0], *y = dx->in[1];

    de[0] = adj_sigmoid_grad(e, y);
    adj_node *slope = one_minus_twice(y);
    de[1] = adj_mul(adj_mul(e, dy), slope);
}

/* d/dy of dy (1 - y^2) is -2 dy y. */
static void tanh_grad_grad(adj_node *dx, adj_node *e, adj_node *de[])
{
    adj_node *dy = dx->in[0], *y = dx->in[1];

    de[0] = adj_tanh_grad(e, y);
    adj_node *slope = adj_scale(y, -2);
    de[1] = adj_mul(adj_mul(e, dy), slope);
}

/* d/dx of s + x s (1 - s) is s (1 - s) (2 + x (1 - 2 s)). */
static void silu_grad_grad(adj_node *dx, adj_node *e, adj_node *de[])
{
    adj_node *dy = dx->in[0], *x = dx->in[1], *s = adj_sigmoid(x);
    adj_node *product = adj_mul(x, one_minus_twice(s)),
             *bend = adj_add(adj_fill_like(x, 2), product);

    de[0] = adj_silu_grad(e, x);
    de[1] = adj_sigmoid_grad(adj_mul(adj_mul(e, dy), bend), s);
}

const adj_op adj_op_sigmoid = {.name = "sigmoid", .n_in = 1, .flags = CURVED, .grad = sigmoid_grad};
const adj_op adj_op_sigmoid_grad = {.name = "sigmoid_grad",
                                    .n_in = 2,
                                    .flags = CURVED,
                                    .linear_in = ADJ_IN(0),
                                    .grad = sigmoid_grad_grad,
                                    .operand = {"dy", "y"}};

const adj_op adj_op_tanh = {.name = "tanh", .n_in = 1, .flags = CURVED, .grad = tanh_grad};
const adj_op adj_op_tanh_grad = {.name = "tanh_grad",
                                 .n_in = 2,
                                 .flags = CURVED,
                                 .linear_in = ADJ_IN(0),
                                 .grad = tanh_grad_grad,
                                 .operand = {"dy", "y"}};

const adj_op adj_op_silu = {.name = "silu", .n_in = 1, .flags = CURVED, .grad = silu_grad};
const adj_op adj_op_silu_grad = {.name = "silu_grad",
                                 .n_in = 2,
                                 .flags = CURVED,
                                 .linear_in = ADJ_IN(0),
                                 .grad = silu_grad_grad,
                                 .operand = {"dy", "x"}};

adj_node *adj_sigmoid(adj_node *x) { return adj_node_new1(&adj_op_sigmoid, x, NULL); }
adj_node *adj_tanh(adj_node *x) { return adj_node_new1(&adj_op_tanh, x, NULL); }
adj_node *adj_silu(adj_node *x) { return adj_node_new1(&adj_op_silu, x, NULL); }

adj_node *adj_sigmoid_grad(adj_node *dy, adj_node *y)
{
    return adj_node_new2(&adj_op_sigmoid_grad, dy, y, NULL);
}

adj_node *adj_tanh_grad(adj_node *dy, adj_node *y)
{
    return adj_node_new2(&adj_op_tanh_grad, dy, y, NULL);
}

adj_node *adj_silu_grad(adj_node *dy, adj_node *x)
{
    return adj_node_new2(&adj_op_silu_grad, dy, x, NULL);
}

/* ---- hard_sigmoid, hard_swish ----
 *
 * hard_sigmoid is min(max(x + 3, 0), 6) / 6, as PyTorch's Hardsigmoid (ONNX's with alpha 1/6);
 * hard_swish is x hard_sigmoid(x), as PyTorch's Hardswish and ONNX's HardSwish:
 *   hard_sigmoid_grad(dy, x)  dy / 6 where -3 < x < 3, else 0
 *   hard_swish_grad(dy, x)    dy (x / 3 + 1/2) where -3 < x < 3; above dy, below 0
 * All but hard_sigmoid_grad are not marked ADJ_OP_KINKS, because between the kinks they are
 * curved, or add rounded terms instead of selecting. */

static void hard_sigmoid_rule(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = adj_hard_sigmoid_grad(dy, y->in[0]);
}

static void hard_swish_rule(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = adj_hard_swish_grad(dy, y->in[0]);
}

/* d/dx of dy (x / 3 + 1/2) is dy / 3, which is twice hard_sigmoid's gradient. */
static void hard_swish_grad_rule(adj_node *dx, adj_node *e, adj_node *de[])
{
    adj_node *dy = dx->in[0], *x = dx->in[1];
    de[0] = adj_hard_swish_grad(e, x);
    adj_node *product = adj_scale(adj_mul(e, dy), 2);
    de[1] = adj_hard_sigmoid_grad(product, x);
}

/* Draws x on both sides of the kinks at -3 and 3, but never near one. */
static void hard_domain(const adj_node *n, int i, int64_t count, double v[])
{
    if (i != n->n_in - 1)
        return;
    adj_spread(count, v, -6, 6);
    for (int64_t k = 0; k < count; k++)
        if (fabs(fabs(v[k]) - 3) < 0.125)
            v[k] += 0.5;
}

const adj_op adj_op_hard_sigmoid = {.name = "hard_sigmoid",
                                    .n_in = 1,
                                    .flags = CURVED | ADJ_OP_CHEAP,
                                    .grad = hard_sigmoid_rule,
                                    .domain = hard_domain};
const adj_op adj_op_hard_sigmoid_grad = {.name = "hard_sigmoid_grad",
                                         .n_in = 2,
                                         .flags = STRAIGHT,
                                         .linear_in = ADJ_IN(0),
                                         .grad = steps_grad,
                                         .operand = {"dy", "x"},
                                         .domain = hard_domain};
const adj_op adj_op_hard_swish = {.name = "hard_swish",
                                  .n_in = 1,
                                  .flags = CURVED | ADJ_OP_CHEAP,
                                  .grad = hard_swish_rule,
                                  .domain = hard_domain};
const adj_op adj_op_hard_swish_grad = {.name = "hard_swish_grad",
                                       .n_in = 2,
                                       .flags = CURVED,
                                       .linear_in = ADJ_IN(0),
                                       .grad = hard_swish_grad_rule,
                                       .operand = {"dy", "x"},
                                       .domain = hard_domain};

adj_node *adj_hard_sigmoid(adj_node *x) { return adj_node_new1(&adj_op_hard_sigmoid, x, NULL); }
adj_node *adj_hard_swish(adj_node *x) { return adj_node_new1(&adj_op_hard_swish, x, NULL); }

adj_node *adj_hard_sigmoid_grad(adj_node *dy, adj_node *x)
{
    return adj_node_new2(&adj_op_hard_sigmoid_grad, dy, x, NULL);
}

adj_node *adj_hard_swish_grad(adj_node *dy, adj_node *x)
{
    return adj_node_new2(&adj_op_hard_swish_grad, dy, x, NULL);
}

/* ---- elu ----
 *
 * x where x > 0, else alpha (exp(x) - 1), as ONNX's and PyTorch's; elu_grad(dy, x) is dy where x >
 * 0, else dy alpha exp(x). */

static void elu_rule(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = adj_elu_grad(dy, y->in[0], alpha_of(y));
}

/* d/dx is dy alpha exp(x) where x <= 0: the op minus itself with alpha 0. (A mask would be
 * marked ADJ_OP_KINKS, but the function that it selects from is curved.) */
static void elu_grad_rule(adj_node *dx, adj_node *e, adj_node *de[])
{
    adj_node *dy = dx->in[0], *x = dx->in[1];
    de[0] = adj_elu_grad(e, x, alpha_of(dx));
    adj_node *m = adj_mul(e, dy), *above = adj_elu_grad(m, x, 0);
    de[1] = adj_sub(adj_elu_grad(m, x, alpha_of(dx)), above);
}

/* Draws no x near 0. The op is not marked ADJ_OP_KINKS, because it is curved below 0. */
static void elu_domain(const adj_node *n, int i, int64_t count, double v[])
{
    if (i != n->n_in - 1)
        return;
    adj_spread(count, v, -3, 3);
    keep_from_zero(count, v);
}

const adj_op adj_op_elu = {.name = "elu",
                           .n_in = 1,
                           .schema = &alpha_schema,
                           .flags = CURVED,
                           .grad = elu_rule,
                           .domain = elu_domain};
const adj_op adj_op_elu_grad = {.name = "elu_grad",
                                .n_in = 2,
                                .schema = &alpha_schema,
                                .flags = CURVED,
                                .linear_in = ADJ_IN(0),
                                .grad = elu_grad_rule,
                                .operand = {"dy", "x"},
                                .domain = elu_domain};

adj_node *adj_elu(adj_node *x, double alpha)
{
    return adj_node_new1(&adj_op_elu, x, &(adj_value_attrs){alpha});
}

adj_node *adj_elu_grad(adj_node *dy, adj_node *x, double alpha)
{
    return adj_node_new2(&adj_op_elu_grad, dy, x, &(adj_value_attrs){alpha});
}

/* ---- gelu ----
 *
 * x P(x), P being the cumulative distribution function of the normal distribution (Hendrycks and
 * Gimpel, arXiv:1606.08415), or its approximation by tanh:
 *   ERF   P(x) = (1 + erf(x / sqrt(2))) / 2     y' = P + x p, p = exp(-x^2 / 2) / sqrt(2 pi)
 *   TANH  P(x) = (1 + t) / 2, t = tanh(u),      y' = P + x (1 - t^2) u' / 2
 *         u = k (x + a x^3), k = sqrt(2 / pi), a = 0.044715 */

/* sqrt(2 / pi), which is also 2 / sqrt(2 pi). */
static const double k = 0.7978845608028654, a = 0.044715;

static int64_t form_of(const adj_node *n) { return ((const adj_gelu_attrs *)n->attrs)->form; }

static const char *const forms[] = {[ADJ_GELU_ERF] = "erf", [ADJ_GELU_TANH] = "tanh", NULL};
static const adj_schema gelu_schema = {
    .size = sizeof(adj_gelu_attrs),
    .attr = {{"form", ADJ_ATTR_CHOICE, .offset = offsetof(adj_gelu_attrs, form), .words = forms}}};

static void gelu_rule(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = adj_gelu_grad(dy, y->in[0], (adj_gelu_form)form_of(y));
}

/* Second derivatives times m. The factors that vanish come first, so that large x give 0 in
 * every type, even if x^2 is infinite. */

/* m p (2 - x^2), with p = q^2 / sqrt(2 pi): m (2 q^2 - (x q)^2) / sqrt(2 pi). */
static adj_node *erf_bend(adj_node *m, adj_node *x)
{
    adj_node *q = adj_exp(adj_scale(adj_square(x), -0.25));
    adj_node *xq = adj_square(adj_mul(x, q)), *twice = adj_scale(adj_square(q), 2);
    return adj_scale(adj_mul(m, adj_sub(twice, xq)), k / 2);
}

/* w u' = k w + 3 k a x (x w) */
static adj_node *times_slope(adj_node *w, adj_node *x)
{
    adj_node *bent = adj_scale(adj_mul(x, adj_mul(x, w)), 3 * k * a);
    return adj_add(adj_scale(w, k), bent);
}

/* m (1 - t^2) (u' + x u'' / 2 - x t u'^2), where u' + x u'' / 2 = 2 u' - k. */
static adj_node *tanh_bend(adj_node *m, adj_node *x)
{
    adj_node *square = adj_square(x), *cube = adj_mul(square, adj_scale(x, a));
    adj_node *t = adj_tanh(adj_scale(adj_add(x, cube), k));
    adj_node *w = adj_tanh_grad(m, t), *twice = adj_scale(times_slope(w, x), 2);
    adj_node *straight = adj_sub(twice, adj_scale(w, k));
    adj_node *steep = times_slope(times_slope(adj_mul(x, w), x), x);
    return adj_sub(straight, adj_mul(t, steep));
}

static void gelu_grad_rule(adj_node *dx, adj_node *e, adj_node *de[])
{
    adj_node *dy = dx->in[0], *x = dx->in[1];
    de[0] = adj_gelu_grad(e, x, (adj_gelu_form)form_of(dx));
    adj_node *m = adj_mul(e, dy);
    de[1] = form_of(dx) == ADJ_GELU_TANH ? tanh_bend(m, x) : erf_bend(m, x);
}

const adj_op adj_op_gelu = {
    .name = "gelu", .n_in = 1, .schema = &gelu_schema, .flags = CURVED, .grad = gelu_rule};
const adj_op adj_op_gelu_grad = {.name = "gelu_grad",
                                 .n_in = 2,
                                 .schema = &gelu_schema,
                                 .flags = CURVED,
                                 .linear_in = ADJ_IN(0),
                                 .grad = gelu_grad_rule,
                                 .operand = {"dy", "x"}};

adj_node *adj_gelu(adj_node *x, adj_gelu_form form)
{
    return adj_node_new1(&adj_op_gelu, x, &(adj_gelu_attrs){form});
}

adj_node *adj_gelu_grad(adj_node *dy, adj_node *x, adj_gelu_form form)
{
    return adj_node_new2(&adj_op_gelu_grad, dy, x, &(adj_gelu_attrs){form});
}

/* ---- softplus, erf: their derivatives are other ops ---- */

/* softplus is log(1 + exp(x)), a smooth max(x, 0). Its derivative is sigmoid(x). */
static void softplus_rule(adj_node *y, adj_node *dy, adj_node *dx[])
{
    adj_node *slope = adj_sigmoid(y->in[0]);
    dx[0] = adj_mul(dy, slope);
}

const adj_op adj_op_softplus = {
    .name = "softplus", .n_in = 1, .flags = CURVED, .grad = softplus_rule};

adj_node *adj_softplus(adj_node *x) { return adj_node_new1(&adj_op_softplus, x, NULL); }

/* erf is 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x. Its derivative is 2 / sqrt(pi)
 * exp(-x^2). */
static void erf_rule(adj_node *y, adj_node *dy, adj_node *dx[])
{
    adj_node *bell = adj_exp(adj_neg(adj_square(y->in[0])));
    dx[0] = adj_mul(dy, adj_scale(bell, 1.1283791670955126));
}

const adj_op adj_op_erf = {.name = "erf", .n_in = 1, .flags = CURVED, .grad = erf_rule};

adj_node *adj_erf(adj_node *x) { return adj_node_new1(&adj_op_erf, x, NULL); }
