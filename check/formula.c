/* formula.c - element-wise ops; see formula.h. The steps of optimizers are those of
 *   sgd, momentum: TensorFlow's GradientDescent and Momentum (tf.raw_ops.ApplyGradientDescent,
 *       ApplyMomentum), weight decay added to the gradient as PyTorch's SGD does
 *   adam_step: Kingma and Ba, Adam, arXiv:1412.6980, algorithm 1; decay as in Loshchilov and
 *       Hutter, Decoupled Weight Decay Regularization, arXiv:1711.05101, algorithm 2
 *   ema: tf.train.ExponentialMovingAverage
 * and the activations those of tf.nn; gelu is of Hendrycks and Gimpel, arXiv:1606.08415. Gradients
 * of smooth ones are differences of these, but where they are given a result instead of an operand.
 */
#include <math.h>

#include "formula.h"

enum { MAX_TERMS = 3, MAX_OPERANDS = 5, CHEAP_ELEMS = 1 << 18, CHEAP_FLOP = 1 << 21 };

/* A result as a sum. */
typedef struct {
    int n;
    double of[MAX_TERMS];
} terms;

typedef terms formula(const adj_node *n, const double x[]);

static terms one(double v) { return (terms){1, {v}}; }

static double factor_of(const adj_node *n) { return ((const adj_value_attrs *)n->attrs)->value; }

/* ---- optimizers ---- */

static terms momentum(const adj_node *n, const double x[])
{
    const adj_decay_attrs *a = n->attrs;
    return (terms){3, {a->mu * x[0], x[1], a->decay * x[2]}};
}

static terms sgd_step(const adj_node *n, const double x[])
{
    const adj_decay_attrs *a = n->attrs;
    return (terms){3, {x[0], -x[2] * x[1], -x[2] * a->decay * x[0]}};
}

static terms ema(const adj_node *n, const double x[])
{
    double beta = factor_of(n);
    return (terms){2, {beta * x[0], (1 - beta) * x[1]}};
}

static terms adam_step(const adj_node *n, const double x[])
{
    const adj_adam_attrs *a = n->attrs;
    double m = x[1] / (1 - pow(a->beta1, x[3])), v = x[2] / (1 - pow(a->beta2, x[3]));
    return (terms){3, {x[0], -x[4] * m / (sqrt(v) + a->epsilon), -x[4] * a->decay * x[0]}};
}

static terms next_step(const adj_node *n, const double x[]) { return (void)n, one(x[0] + 1); }

/* ---- activations ---- */

static terms sigmoid(const adj_node *n, const double x[])
{
    return (void)n, one(1 / (1 + exp(-x[0])));
}
static terms hyperbolic(const adj_node *n, const double x[]) { return (void)n, one(tanh(x[0])); }
static terms silu(const adj_node *n, const double x[])
{
    return (void)n, one(x[0] / (1 + exp(-x[0])));
}
/* A NaN stays one, unlike in fmin and fmax. */
static double max_or_nan(double a, double b) { return a >= b || isnan(a) ? a : b; }
static double min_or_nan(double a, double b) { return a <= b || isnan(a) ? a : b; }

static terms relu(const adj_node *n, const double x[]) { return (void)n, one(max_or_nan(x[0], 0)); }
static terms relu6(const adj_node *n, const double x[])
{
    return (void)n, one(min_or_nan(max_or_nan(x[0], 0), 6));
}
static terms leaky_relu(const adj_node *n, const double x[])
{
    return one(x[0] > 0 ? x[0] : factor_of(n) * x[0]);
}
static terms hard_sigmoid(const adj_node *n, const double x[])
{
    return (void)n, one(min_or_nan(max_or_nan(x[0] + 3, 0), 6) / 6);
}
static terms hard_swish(const adj_node *n, const double x[])
{
    return (void)n, one(x[0] <= -3 ? 0 : x[0] >= 3 ? x[0] : x[0] * (x[0] + 3) / 6);
}
static terms clip(const adj_node *n, const double x[])
{
    const adj_clip_attrs *a = n->attrs;
    return one(min_or_nan(max_or_nan(x[0], a->min), a->max));
}
static terms elu(const adj_node *n, const double x[])
{
    return one(x[0] > 0 ? x[0] : factor_of(n) * (exp(x[0]) - 1));
}
static terms gelu(const adj_node *n, const double x[])
{
    const double pi = 3.14159265358979323846, v = x[0];
    if (v == -INFINITY)
        return one(0); /* the limit */
    if (((const adj_gelu_attrs *)n->attrs)->form == ADJ_GELU_TANH)
        return one(0.5 * v * (1 + tanh(sqrt(2 / pi) * (v + 0.044715 * v * v * v))));
    return one(0.5 * v * (1 + erf(v / sqrt(2))));
}

/* ---- their gradients, over (dy, x) or (dy, y) ---- */

static terms slope(formula *f, const adj_node *n, const double x[])
{
    const double h = 1e-5, above = x[1] + h, below = x[1] - h;
    return one(x[0] * (f(n, &above).of[0] - f(n, &below).of[0]) / (above - below));
}

static terms silu_grad(const adj_node *n, const double x[]) { return slope(silu, n, x); }
static terms gelu_grad(const adj_node *n, const double x[]) { return slope(gelu, n, x); }

/* Those with kinks, by sides. */
static terms hard_sigmoid_grad(const adj_node *n, const double x[])
{
    return (void)n, one(fabs(x[1]) < 3 ? x[0] / 6 : 0);
}
static terms hard_swish_grad(const adj_node *n, const double x[])
{
    return (void)n, one(x[1] >= 3 ? x[0] : x[1] <= -3 ? 0 : x[0] * ((2 * x[1] + 3) / 6));
}
static terms clip_grad(const adj_node *n, const double x[])
{
    const adj_clip_attrs *a = n->attrs;
    return one(x[1] >= a->min && x[1] <= a->max ? x[0] : 0);
}
static terms elu_grad(const adj_node *n, const double x[])
{
    return one(x[1] > 0 ? x[0] : x[0] * factor_of(n) * exp(x[1]));
}
static terms sigmoid_grad(const adj_node *n, const double x[])
{
    return (void)n, one(x[0] * x[1] * (1 - x[1]));
}
static terms tanh_grad(const adj_node *n, const double x[])
{
    return (void)n, one(x[0] * (1 - x[1] * x[1]));
}
static terms relu_grad(const adj_node *n, const double x[])
{
    return (void)n, one(x[1] > 0 ? x[0] : 0);
}
static terms relu6_grad(const adj_node *n, const double x[])
{
    return (void)n, one(x[1] > 0 && x[1] < 6 ? x[0] : 0);
}
static terms leaky_relu_grad(const adj_node *n, const double x[])
{
    return one(x[1] > 0 ? x[0] : factor_of(n) * x[0]);
}

/* ---- arithmetic ---- */

static terms add(const adj_node *n, const double x[]) { return (void)n, (terms){2, {x[0], x[1]}}; }
static terms sub(const adj_node *n, const double x[]) { return (void)n, (terms){2, {x[0], -x[1]}}; }
static terms mul(const adj_node *n, const double x[]) { return (void)n, one(x[0] * x[1]); }
static terms quotient(const adj_node *n, const double x[]) { return (void)n, one(x[0] / x[1]); }
static terms maximum(const adj_node *n, const double x[])
{
    return (void)n, one(isnan(x[1]) ? x[1] : max_or_nan(x[0], x[1]));
}
static terms minimum(const adj_node *n, const double x[])
{
    return (void)n, one(isnan(x[1]) ? x[1] : min_or_nan(x[0], x[1]));
}
static terms equal(const adj_node *n, const double x[]) { return (void)n, one(x[0] == x[1]); }
static terms greater_equal(const adj_node *n, const double x[])
{
    return (void)n, one(x[0] >= x[1]);
}
static terms neg(const adj_node *n, const double x[]) { return (void)n, one(-x[0]); }
static terms scale(const adj_node *n, const double x[]) { return one(factor_of(n) * x[0]); }
static terms square(const adj_node *n, const double x[]) { return (void)n, one(x[0] * x[0]); }
static terms root(const adj_node *n, const double x[]) { return (void)n, one(sqrt(x[0])); }
static terms exponential(const adj_node *n, const double x[]) { return (void)n, one(exp(x[0])); }
static terms logarithm(const adj_node *n, const double x[]) { return (void)n, one(log(x[0])); }

typedef struct {
    const adj_op *op;
    formula *of;
} entry;

static const entry steps[] = {
    {&adj_op_momentum, momentum},   {&adj_op_sgd_step, sgd_step},   {&adj_op_ema, ema},
    {&adj_op_adam_step, adam_step}, {&adj_op_next_step, next_step},
};
static const entry formulas[] = {
    {&adj_op_sigmoid, sigmoid},
    {&adj_op_tanh, hyperbolic},
    {&adj_op_silu, silu},
    {&adj_op_relu, relu},
    {&adj_op_relu6, relu6},
    {&adj_op_leaky_relu, leaky_relu},
    {&adj_op_hard_sigmoid, hard_sigmoid},
    {&adj_op_hard_swish, hard_swish},
    {&adj_op_clip, clip},
    {&adj_op_elu, elu},
    {&adj_op_gelu, gelu},
    {&adj_op_sigmoid_grad, sigmoid_grad},
    {&adj_op_tanh_grad, tanh_grad},
    {&adj_op_silu_grad, silu_grad},
    {&adj_op_relu_grad, relu_grad},
    {&adj_op_relu6_grad, relu6_grad},
    {&adj_op_leaky_relu_grad, leaky_relu_grad},
    {&adj_op_hard_sigmoid_grad, hard_sigmoid_grad},
    {&adj_op_hard_swish_grad, hard_swish_grad},
    {&adj_op_clip_grad, clip_grad},
    {&adj_op_elu_grad, elu_grad},
    {&adj_op_gelu_grad, gelu_grad},
    {&adj_op_add, add},
    {&adj_op_sub, sub},
    {&adj_op_mul, mul},
    {&adj_op_div, quotient},
    {&adj_op_maximum, maximum},
    {&adj_op_minimum, minimum},
    {&adj_op_equal, equal},
    {&adj_op_greater_equal, greater_equal},
    {&adj_op_neg, neg},
    {&adj_op_scale, scale},
    {&adj_op_square, square},
    {&adj_op_sqrt, root},
    {&adj_op_exp, exponential},
    {&adj_op_log, logarithm},
};

static formula *find_in(const entry *list, size_t n, const adj_op *op)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].op == op)
            return list[i].of;
    return NULL;
}

static formula *step_of(const adj_op *op)
{
    return find_in(steps, sizeof steps / sizeof *steps, op);
}

static formula *formula_of(const adj_op *op)
{
    formula *f = step_of(op);
    return f != NULL ? f : find_in(formulas, sizeof formulas / sizeof *formulas, op);
}

int formula_is_step(const adj_op *op) { return step_of(op) != NULL; }

int formula_is_difference(const adj_op *op)
{
    return op == &adj_op_silu_grad || op == &adj_op_gelu_grad;
}

int formula_is_cheap(const adj_node *n)
{
    int64_t max = node_elems(n);
    for (int k = 0; k < n->n_in; k++)
        max = node_elems(n->in[k]) > max ? node_elems(n->in[k]) : max;
    return max <= CHEAP_ELEMS && (n->op->flop == NULL || n->op->flop(n) <= CHEAP_FLOP);
}

int formula_exists(const adj_node *n)
{
    if (array_formula_exists(n))
        return 1;
    if (formula_of(n->op) == NULL || n->n_in > MAX_OPERANDS)
        return 0;
    for (int k = 0; k < n->n_in; k++)
        if (!can_broadcast(n->in[k]->type.shape, n->type.shape))
            return 0;
    return 1;
}

void formula_value(const adj_node *n, double *const operand[], double *value, double *size)
{
    formula *f = formula_of(n->op);
    if (array_formula_exists(n)) {
        array_formula_value(n, operand, value);
        return;
    }
    for (int64_t i = 0, n_elems = node_elems(n); i < n_elems; i++) {
        double x[MAX_OPERANDS] = {0}, sum = 0, sizes = 0;
        for (int k = 0; k < n->n_in; k++)
            x[k] = operand[k][broadcast_element(n->in[k]->type.shape, n->type.shape, i)];
        const terms t = f(n, x);
        for (int k = 0; k < t.n; k++) {
            sum += t.of[k];
            sizes += fabs(t.of[k]);
        }
        value[i] = sum;
        if (size != NULL)
            size[i] = sizes;
    }
}
