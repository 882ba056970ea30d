/* gelu.c - x P(x), P being the cumulative distribution function of the normal distribution
 * (Hendrycks and Gimpel, arXiv:1606.08415), or its approximation by tanh; and its gradient as an
 * op:
 *
 *   ERF   P(x) = (1 + erf(x / sqrt(2))) / 2     y' = P + x p, p = exp(-x^2 / 2) / sqrt(2 pi)
 *   TANH  P(x) = (1 + t) / 2, t = tanh(u),      y' = P + x (1 - t^2) u' / 2
 *         u = k (x + a x^3), k = sqrt(2 / pi), a = 0.044715 */
#include "activation.h"
#include "grad.h"

/* sqrt(2 / pi), which is also 2 / sqrt(2 pi). */
static const double k = 0.7978845608028654, a = 0.044715;

static int64_t form_of(const adj_node *n) { return ((const adj_gelu_attrs *)n->attrs)->form; }

static const char *const forms[] = {[ADJ_GELU_ERF] = "erf", [ADJ_GELU_TANH] = "tanh", NULL};
static const adj_schema schema = {
    .size = sizeof(adj_gelu_attrs),
    .attr = {{"form", ADJ_ATTR_CHOICE, .offset = offsetof(adj_gelu_attrs, form), .words = forms}}};

static void rule(adj_node *y, adj_node *dy, adj_node *dx[])
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

static void grad_rule(adj_node *dx, adj_node *e, adj_node *de[])
{
    adj_node *dy = dx->in[0], *x = dx->in[1];
    de[0] = adj_gelu_grad(e, x, (adj_gelu_form)form_of(dx));
    adj_node *m = adj_mul(e, dy);
    de[1] = form_of(dx) == ADJ_GELU_TANH ? tanh_bend(m, x) : erf_bend(m, x);
}

const adj_op adj_op_gelu = {
    .name = "gelu", .n_in = 1, .schema = &schema, .flags = CURVED, .grad = rule};
const adj_op adj_op_gelu_grad = {.name = "gelu_grad",
                                 .n_in = 2,
                                 .schema = &schema,
                                 .flags = CURVED,
                                 .linear_in = ADJ_IN(0),
                                 .grad = grad_rule,
                                 .operand = {"dy", "x"}};

adj_node *adj_gelu(adj_node *x, adj_gelu_form form)
{
    return adj_node_new1(&adj_op_gelu, x, &(adj_gelu_attrs){form});
}

adj_node *adj_gelu_grad(adj_node *dy, adj_node *x, adj_gelu_form form)
{
    return adj_node_new2(&adj_op_gelu_grad, dy, x, &(adj_gelu_attrs){form});
}
