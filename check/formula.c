/* formula.c - elementwise ops, and the table of all formulas; see formula.h. The steps of
 * optimizers:
 *   sgd, momentum: TensorFlow's GradientDescent and Momentum (tf.raw_ops.ApplyGradientDescent,
 *       ApplyMomentum), weight decay added to the gradient as PyTorch's SGD does
 *   adam_step: Kingma and Ba, Adam, arXiv:1412.6980, algorithm 1; decay as in Loshchilov and
 *       Hutter, Decoupled Weight Decay Regularization, arXiv:1711.05101, algorithm 2
 *   ema: tf.train.ExponentialMovingAverage
 * Activations are those of tf.nn; gelu: Hendrycks and Gimpel, arXiv:1606.08415. Gradients are the
 * derivatives. */
#include <math.h>
#include <string.h>

#include "formula.h"
#include "ops/grad.h"

/* A sum's elements are computed up to so many products in all, and at least so many elements. */
enum { PRODUCTS = 1 << 18, SAMPLE = 64 };

static double factor(args a) { return ((const adj_value_attrs *)a.attrs)->value; }

/* ---- optimizers ---- */

static double momentum(args a)
{
    const adj_decay_attrs *d = a.attrs;
    return d->mu * a.x[0] + a.x[1] + d->decay * a.x[2];
}

static double sgd_step(args a)
{
    const adj_decay_attrs *d = a.attrs;
    return a.x[0] - a.x[2] * a.x[1] - a.x[2] * d->decay * a.x[0];
}

static double ema(args a) { return factor(a) * a.x[0] + (1 - factor(a)) * a.x[1]; }

static double adam_step(args a)
{
    const adj_adam_attrs *d = a.attrs;
    const double *x = a.x;
    const double m = x[1] / (1 - pow(d->beta1, x[3])), v = x[2] / (1 - pow(d->beta2, x[3]));
    return x[0] - x[4] * m / (sqrt(v) + d->epsilon) - x[4] * d->decay * x[0];
}

/* Returns the sum of magnitudes of the terms. */
static double momentum_terms(args a)
{
    const adj_decay_attrs *d = a.attrs;
    return fabs(d->mu * a.x[0]) + fabs(a.x[1]) + fabs(d->decay * a.x[2]);
}

static double sgd_terms(args a)
{
    const adj_decay_attrs *d = a.attrs;
    return fabs(a.x[0]) + fabs(a.x[2] * a.x[1]) + fabs(a.x[2] * d->decay * a.x[0]);
}

static double next_step(args a) { return a.x[0] + 1; }

static const formula steps[] = {
    {&adj_op_momentum, .at = momentum, .terms = momentum_terms},
    {&adj_op_sgd_step, .at = sgd_step, .terms = sgd_terms},
    {&adj_op_ema, .at = ema},
    {&adj_op_adam_step, .at = adam_step},
    {&adj_op_next_step, .at = next_step},
    {.op = NULL},
};

/* ---- activations ---- */

static double sigmoid(args a) { return 1 / (1 + exp(-a.x[0])); }
static double hyperbolic(args a) { return tanh(a.x[0]); }
static double silu(args a) { return a.x[0] / (1 + exp(-a.x[0])); }

/* A NaN stays one, unlike in fmin and fmax. */
static double max_or_nan(double a, double b) { return a >= b || isnan(a) ? a : b; }
static double min_or_nan(double a, double b) { return a <= b || isnan(a) ? a : b; }

static double relu(args a) { return a.x[0] > 0 || isnan(a.x[0]) ? a.x[0] : 0; } /* -0 gives 0 */
static double relu6(args a) { return min_or_nan(relu(a), 6); }
static double leaky_relu(args a) { return a.x[0] > 0 ? a.x[0] : factor(a) * a.x[0]; }
static double hard_sigmoid(args a) { return min_or_nan(max_or_nan(a.x[0] + 3, 0), 6) / 6; }
static double hard_swish(args a)
{
    return a.x[0] <= -3 ? 0 : a.x[0] >= 3 ? a.x[0] : a.x[0] * (a.x[0] + 3) / 6;
}
static double clip(args a)
{
    const adj_clip_attrs *range = a.attrs;
    return min_or_nan(max_or_nan(a.x[0], range->min), range->max);
}
static double elu(args a) { return a.x[0] > 0 ? a.x[0] : factor(a) * expm1(a.x[0]); }
static double gelu(args a)
{
    const double pi = 3.14159265358979323846, v = a.x[0];
    if (v == -INFINITY)
        return 0; /* the limit */
    if (((const adj_gelu_attrs *)a.attrs)->form == ADJ_GELU_TANH)
        return 0.5 * v * (1 + tanh(sqrt(2 / pi) * (v + 0.044715 * v * v * v)));
    return 0.5 * v * (1 + erf(v / sqrt(2)));
}

/* ---- their gradients, over (dy, x) or (dy, y) ---- */

static double silu_grad(args a)
{
    const double s = 1 / (1 + exp(-a.x[1]));
    return a.x[0] * (s + a.x[1] * s * (1 - s));
}
static double gelu_grad(args a)
{
    const double pi = 3.14159265358979323846, v = a.x[1];
    if (isinf(v))
        return a.x[0] * (v > 0); /* the limit */
    if (((const adj_gelu_attrs *)a.attrs)->form == ADJ_GELU_TANH) {
        const double t = tanh(sqrt(2 / pi) * (v + 0.044715 * v * v * v));
        const double inner = sqrt(2 / pi) * (1 + 3 * 0.044715 * v * v);
        return a.x[0] * 0.5 * (1 + t + v * (1 - t * t) * inner);
    }
    return a.x[0] * (0.5 * (1 + erf(v / sqrt(2))) + v * exp(-v * v / 2) / sqrt(2 * pi));
}

/* Gradients with kinks, by sides. */
static double hard_sigmoid_grad(args a) { return fabs(a.x[1]) < 3 ? a.x[0] / 6 : 0; }
static double hard_swish_grad(args a)
{
    return a.x[1] >= 3 ? a.x[0] : a.x[1] <= -3 ? 0 : a.x[0] * ((2 * a.x[1] + 3) / 6);
}
static double clip_grad(args a)
{
    const adj_clip_attrs *range = a.attrs;
    return a.x[1] >= range->min && a.x[1] <= range->max ? a.x[0] : 0;
}
static double elu_grad(args a) { return a.x[1] > 0 ? a.x[0] : a.x[0] * factor(a) * exp(a.x[1]); }
static double sigmoid_grad(args a) { return a.x[0] * a.x[1] * (1 - a.x[1]); }
static double tanh_grad(args a) { return a.x[0] * (1 - a.x[1] * a.x[1]); }
static double relu_grad(args a) { return a.x[1] > 0 ? a.x[0] : 0; }
static double relu6_grad(args a) { return a.x[1] > 0 && a.x[1] < 6 ? a.x[0] : 0; }
static double leaky_relu_grad(args a) { return a.x[1] > 0 ? a.x[0] : factor(a) * a.x[0]; }

/* ---- arithmetic ---- */

static double add(args a) { return a.x[0] + a.x[1]; }
static double softplus(args a) { return a.x[0] > 30 ? a.x[0] : log1p(exp(a.x[0])); }
static double erf_at(args a) { return erf(a.x[0]); }
static double sub(args a) { return a.x[0] - a.x[1]; }
static double mul(args a) { return a.x[0] * a.x[1]; }
static double quotient(args a) { return a.x[0] / a.x[1]; }
static double power(args a) { return pow(a.x[0], a.x[1]); }
static double maximum(args a) { return isnan(a.x[1]) ? a.x[1] : max_or_nan(a.x[0], a.x[1]); }
static double minimum(args a) { return isnan(a.x[1]) ? a.x[1] : min_or_nan(a.x[0], a.x[1]); }
static double equal(args a) { return a.x[0] == a.x[1]; }
static double greater_equal(args a) { return a.x[0] >= a.x[1]; }
static double neg(args a) { return -a.x[0]; }
static double scale(args a) { return factor(a) * a.x[0]; }
static double square(args a) { return a.x[0] * a.x[0]; }
static double root(args a) { return sqrt(a.x[0]); }
static double exponential(args a) { return exp(a.x[0]); }
static double logarithm(args a) { return log(a.x[0]); }

static const formula elementwise[] = {
    {&adj_op_sigmoid, .at = sigmoid},
    {&adj_op_tanh, .at = hyperbolic},
    {&adj_op_silu, .at = silu},
    {&adj_op_relu, .at = relu},
    {&adj_op_relu6, .at = relu6},
    {&adj_op_leaky_relu, .at = leaky_relu},
    {&adj_op_hard_sigmoid, .at = hard_sigmoid},
    {&adj_op_hard_swish, .at = hard_swish},
    {&adj_op_clip, .at = clip},
    {&adj_op_elu, .at = elu},
    {&adj_op_gelu, .at = gelu},
    {&adj_op_softplus, .at = softplus},
    {&adj_op_erf, .at = erf_at},
    {&adj_op_sigmoid_grad, .at = sigmoid_grad},
    {&adj_op_tanh_grad, .at = tanh_grad},
    {&adj_op_silu_grad, .at = silu_grad},
    {&adj_op_relu_grad, .at = relu_grad},
    {&adj_op_relu6_grad, .at = relu6_grad},
    {&adj_op_leaky_relu_grad, .at = leaky_relu_grad},
    {&adj_op_hard_sigmoid_grad, .at = hard_sigmoid_grad},
    {&adj_op_hard_swish_grad, .at = hard_swish_grad},
    {&adj_op_clip_grad, .at = clip_grad},
    {&adj_op_elu_grad, .at = elu_grad},
    {&adj_op_gelu_grad, .at = gelu_grad},
    {&adj_op_add, .at = add},
    {&adj_op_sub, .at = sub},
    {&adj_op_mul, .at = mul},
    {&adj_op_div, .at = quotient},
    {&adj_op_pow, .at = power},
    {&adj_op_maximum, .at = maximum},
    {&adj_op_minimum, .at = minimum},
    {&adj_op_equal, .at = equal},
    {&adj_op_greater_equal, .at = greater_equal},
    {&adj_op_neg, .at = neg},
    {&adj_op_scale, .at = scale},
    {&adj_op_square, .at = square},
    {&adj_op_sqrt, .at = root},
    {&adj_op_exp, .at = exponential},
    {&adj_op_log, .at = logarithm},
    {.op = NULL},
};

static const formula *formula_in(const formula *list, const adj_op *op)
{
    while (list->op != NULL && list->op != op)
        list++;
    return list->op != NULL ? list : NULL;
}

static const formula *formula_of(const adj_op *op)
{
    static const formula *const all[] = {steps, elementwise, array_formulas, image_formulas,
                                         norm_formulas};
    const formula *f = NULL;
    for (size_t i = 0; i < sizeof all / sizeof *all && f == NULL; i++)
        f = formula_in(all[i], op);
    return f;
}

int formula_is_step(const adj_op *op) { return formula_in(steps, op) != NULL; }

int formula_exists(const adj_node *n)
{
    const formula *f = formula_of(n->op);
    if (n->op == &adj_op_matmul)
        return n->in[0]->type.shape.rank == 2 && n->in[1]->type.shape.rank == 2;
    for (int k = 0; k < n->n_in && f != NULL && f->at != NULL; k++)
        if (k == MAX_OPERANDS || !can_broadcast(n->in[k]->type.shape, n->type.shape))
            return 0;
    return f != NULL;
}

/* Returns the k-th sampled element: corners first, then a quasi-random sequence. */
static int64_t sampled(adj_shape s, int64_t k)
{
    int64_t element = 0;
    if (k >= (int64_t)1 << s.rank)
        return (int64_t)(fmod((double)k * 0.6180339887498949, 1) * (double)adj_shape_elems(s));
    for (int64_t a = 0; a < s.rank; a++)
        element = element * s.dim[a] + (k >> a & 1 ? s.dim[a] - 1 : 0);
    return element;
}

static void sum_elements(const formula *f, const adj_node *n, double *const operand[],
                         double *value)
{
    const int64_t elems = node_elems(n);
    const double products = fmax(1, n->op->flop(n) / 2);
    const double wanted = fmax(SAMPLE, PRODUCTS / products * (double)elems);
    const int is_all = wanted >= (double)elems;
    for (int64_t k = 0, n_k = is_all ? elems : (int64_t)wanted; k < n_k; k++) {
        const int64_t i = is_all ? k : sampled(n->type.shape, k);
        value[i] = f->element(n, operand, i);
    }
}

static void each_element(double (*at)(args a), const adj_node *n, double *const operand[],
                         double *y)
{
    const adj_shape to = n->type.shape;
    args a = {.attrs = n->attrs};
    int is_whole[MAX_OPERANDS] = {0};
    for (int k = 0; k < n->n_in; k++)
        is_whole[k] = adj_shape_equal(n->in[k]->type.shape, to);
    for (int64_t i = 0, n_elems = node_elems(n); i < n_elems; i++) {
        for (int k = 0; k < n->n_in; k++)
            a.x[k] = operand[k][is_whole[k] ? i : broadcast_element(n->in[k]->type.shape, to, i)];
        y[i] = at(a);
    }
}

int formula_no_value(const adj_node *n, double *y)
{
    for (int64_t i = 0; i < node_elems(n); i++)
        y[i] = NAN;
    return 0;
}

void formula_value(const adj_node *n, double *const operand[], double *value)
{
    const formula *f = formula_of(n->op);
    if (f == NULL)
        return;
    if (f->whole != NULL) {
        memset(value, 0, (size_t)node_elems(n) * sizeof *value);
        f->whole(n, operand, value);
    } else if (f->element != NULL)
        sum_elements(f, n, operand, value);
    else
        each_element(f->at, n, operand, value);
}

int formula_terms(const adj_node *n, double *const operand[], double *size)
{
    const formula *f = formula_in(steps, n->op);
    if (n->op == &adj_op_group_norm_grad)
        group_norm_grad_terms(n, operand, size);
    else if (f != NULL && f->terms != NULL)
        each_element(f->terms, n, operand, size);
    else
        return 0;
    return 1;
}
