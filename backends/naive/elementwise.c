/* elementwise.c - ops of which element i of the result is a function of elements i of up to three
 * operands. NaN stays NaN; gradients whose operand is NaN are those of the formulas in ops.
 *
 * The result is computed in parts of contiguous elements from contiguous operands, so that each
 * loop is simple. An operand that repeats one element along a part (broadcasting) is copied to a
 * block first. The result may share operand 0's buffer: element i of a part is read before it is
 * written. */
#include <math.h>

#include "channels.h"
#include "kernels.h"
#include "ops/grad.h"
#include "walk.h"

enum { PART = 1024 };

/* A range that is computed at a time: y[i] from a[i], b[i] and c[i], for i < n. */
struct part {
    const T *a, *b, *c; /* NULL if there is no such operand */
    T *y;
    int64_t n;
    const void *attrs;
    const adj_call *call;
};

/* ---- functions of one operand ---- */

static inline void unary(const part *p, A f(A x))
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], f(ld(&p->a[i])));
}

static A negative_of(A x) { return -x; }
static A square_of(A x) { return x * x; }
static A sqrt_of(A x) { return (A)sqrt(x); }
static A exp_of(A x) { return (A)exp(x); }
static A log_of(A x) { return (A)log(x); }
static A erf_of(A x) { return (A)erf((double)x); }
static A tanh_of(A x) { return (A)tanh(x); }
static A sigmoid_of(A x) { return (A)(1 / (1 + exp(-(double)x))); }
static A silu_of(A x) { return x * sigmoid_of(x); }
static A relu_of(A x) { return x > 0 || x != x ? x : 0; }
static A relu6_of(A x) { return x > 6 ? 6 : relu_of(x); }
static A hard_sigmoid_of(A x) { return x > 3 ? 1 : x > -3 || x != x ? (x + 3) / 6 : 0; }
static A hard_swish_of(A x) { return x > 3 ? x : x > -3 || x != x ? x * (x + 3) / 6 : 0; }

/* The exponential's argument is never positive, so that nothing overflows. */
static A softplus_of(A x) { return (A)((double)relu_of(x) + log1p(exp(-fabs((double)x)))); }

static void neg(const part *p) { unary(p, negative_of); }
static void square(const part *p) { unary(p, square_of); }
static void square_root(const part *p) { unary(p, sqrt_of); }
static void exponential(const part *p) { unary(p, exp_of); }
static void logarithm(const part *p) { unary(p, log_of); }
static void error_function(const part *p) { unary(p, erf_of); }
static void tangent(const part *p) { unary(p, tanh_of); }
static void sigmoid(const part *p) { unary(p, sigmoid_of); }
static void silu(const part *p) { unary(p, silu_of); }
static void relu(const part *p) { unary(p, relu_of); }
static void relu6(const part *p) { unary(p, relu6_of); }
static void hard_sigmoid(const part *p) { unary(p, hard_sigmoid_of); }
static void hard_swish(const part *p) { unary(p, hard_swish_of); }
static void softplus(const part *p) { unary(p, softplus_of); }

/* ---- functions of two operands ---- */

static inline void binary(const part *p, A f(A a, A b))
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], f(ld(&p->a[i]), ld(&p->b[i])));
}

static A sum_of(A a, A b) { return a + b; }
static A difference_of(A a, A b) { return a - b; }
static A product_of(A a, A b) { return a * b; }
static A quotient_of(A a, A b) { return a / b; }
static A power_of(A a, A b) { return (A)pow((double)a, (double)b); }
static A is_equal(A a, A b) { return a == b; }
static A is_greater_equal(A a, A b) { return a >= b; }

/* NaN if either operand is. */
static A maximum_of(A a, A b) { return a != a || a >= b ? a : b; }
static A minimum_of(A a, A b) { return a != a || a <= b ? a : b; }

static void add(const part *p) { binary(p, sum_of); }
static void sub(const part *p) { binary(p, difference_of); }
static void mul(const part *p) { binary(p, product_of); }
static void divide(const part *p) { binary(p, quotient_of); }
static void power(const part *p) { binary(p, power_of); }
static void equal(const part *p) { binary(p, is_equal); }
static void greater_equal(const part *p) { binary(p, is_greater_equal); }
static void maximum(const part *p) { binary(p, maximum_of); }
static void minimum(const part *p) { binary(p, minimum_of); }

/* ---- gradients, from the result y or the operand x ---- */

static A relu_slope(A dy, A y) { return y > 0 ? dy : 0; }
static A relu6_slope(A dy, A y) { return y > 0 && y < 6 ? dy : 0; }
static A sigmoid_slope(A dy, A y) { return dy * y * (1 - y); }
static A tanh_slope(A dy, A y) { return dy * (1 - y * y); }
static A hard_sigmoid_slope(A dy, A x) { return x > -3 && x < 3 ? dy / 6 : 0; }

static A hard_swish_slope(A dy, A x)
{
    return x >= 3 ? dy : x > -3 || x != x ? dy * (x / 3 + (A)0.5) : 0;
}

static A silu_slope(A dy, A x)
{
    const A s = sigmoid_of(x);
    return dy * (s + x * s * (1 - s));
}

static void relu_grad(const part *p) { binary(p, relu_slope); }
static void relu6_grad(const part *p) { binary(p, relu6_slope); }
static void sigmoid_grad(const part *p) { binary(p, sigmoid_slope); }
static void tanh_grad(const part *p) { binary(p, tanh_slope); }
static void hard_sigmoid_grad(const part *p) { binary(p, hard_sigmoid_slope); }
static void hard_swish_grad(const part *p) { binary(p, hard_swish_slope); }
static void silu_grad(const part *p) { binary(p, silu_slope); }

/* ---- functions with attributes, and their gradients ---- */

static A value_of(const part *p) { return (A)((const adj_value_attrs *)p->attrs)->value; }

static void scale(const part *p)
{
    const A factor = value_of(p);
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], ld(&p->a[i]) * factor);
}

/* leaky_relu with x = a, or its gradient with dy = a, of which only the sign of y = b counts. */
static inline void leak(const part *p, const T *sign)
{
    const A alpha = value_of(p);
    for (int64_t i = 0; i < p->n; i++) {
        const A x = ld(&p->a[i]);
        st(&p->y[i], ld(&sign[i]) > 0 ? x : alpha * x);
    }
}

static void leaky_relu(const part *p) { leak(p, p->a); }
static void leaky_relu_grad(const part *p) { leak(p, p->b); }

static void elu(const part *p)
{
    const A alpha = value_of(p);
    for (int64_t i = 0; i < p->n; i++) {
        const A x = ld(&p->a[i]);
        st(&p->y[i], x > 0 ? x : alpha * (A)expm1((double)x));
    }
}

static void elu_grad(const part *p)
{
    const A alpha = value_of(p);
    for (int64_t i = 0; i < p->n; i++) {
        const A dy = ld(&p->a[i]), x = ld(&p->b[i]);
        st(&p->y[i], x > 0 ? dy : dy * alpha * (A)exp((double)x));
    }
}

static void clip(const part *p)
{
    const adj_clip_attrs *a = p->attrs;
    for (int64_t i = 0; i < p->n; i++) {
        const double x = ld(&p->a[i]), raised = x < a->min ? a->min : x;
        st(&p->y[i], (A)(raised > a->max ? a->max : raised));
    }
}

/* The gradient at NaN is 0. */
static void clip_grad(const part *p)
{
    const adj_clip_attrs *a = p->attrs;
    for (int64_t i = 0; i < p->n; i++) {
        const A dy = ld(&p->a[i]);
        const double x = ld(&p->b[i]);
        st(&p->y[i], x >= a->min && x <= a->max ? dy : 0);
    }
}

/* prelu with x = a, or its gradient with dy = a. */
static inline void leak_by_slope(const part *p, const T *x, const T *slope)
{
    for (int64_t i = 0; i < p->n; i++) {
        const A each = ld(&p->a[i]);
        st(&p->y[i], ld(&x[i]) > 0 ? each : ld(&slope[i]) * each);
    }
}

static void prelu(const part *p) { leak_by_slope(p, p->a, p->b); }
static void prelu_grad(const part *p) { leak_by_slope(p, p->b, p->c); }

/* gelu is computed in double and rounded once; the formulas are in ops/activation_curved.c. Far
 * from 0 the limits are returned directly, since the formulas would multiply 0 by infinity. */
enum { FAR = 64 }; /* beyond this P and y' are 0 or 1 */

/* sqrt(2 / pi), which is also 2 / sqrt(2 pi). */
static const double gelu_k = 0.7978845608028654, gelu_a = 0.044715;

typedef struct {
    double y, slope;
} gelu_value;

/* Uses P = erfc(-x / sqrt(2)) / 2: for negative x, 1 + erf(x / sqrt(2)) would cancel. */
static gelu_value gelu_by_erf(double x)
{
    double cumulative = 0.5 * erfc(-x * sqrt(0.5)), density = gelu_k / 2 * exp(-0.5 * x * x);
    return (gelu_value){x * cumulative, cumulative + x * density};
}

/* Uses (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u)) and 1 - tanh(u)^2 = 4 P (1 - P). */
static gelu_value gelu_by_tanh(double x)
{
    double u = gelu_k * (x + gelu_a * x * x * x);
    double p = 1 / (1 + exp(-2 * u)), rest = 1 / (1 + exp(2 * u));
    return (gelu_value){x * p, p + 2 * x * p * rest * gelu_k * (1 + 3 * gelu_a * x * x)};
}

static gelu_value gelu_of(const part *p, double x)
{
    if (x > FAR)
        return (gelu_value){x, 1};
    if (x < -FAR)
        return (gelu_value){0, 0};
    int64_t form = ((const adj_gelu_attrs *)p->attrs)->form;
    return form == ADJ_GELU_TANH ? gelu_by_tanh(x) : gelu_by_erf(x);
}

static void gelu(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], (A)gelu_of(p, ld(&p->a[i])).y);
}

static void gelu_grad(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], ld(&p->a[i]) * (A)gelu_of(p, ld(&p->b[i])).slope);
}

/* ---- updates of parameters; see ops/optimizer.c for the formulas ---- */

static void momentum(const part *p)
{
    const adj_decay_attrs *a = p->attrs;
    const A mu = (A)a->mu, decay = (A)a->decay;
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], mu * ld(&p->a[i]) + ld(&p->b[i]) + decay * ld(&p->c[i]));
}

static void sgd_step(const part *p)
{
    const adj_decay_attrs *a = p->attrs;
    const A lr = ld(p->c), decay = (A)a->decay;
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], ld(&p->a[i]) - lr * (ld(&p->b[i]) + decay * ld(&p->a[i])));
}

static void ema(const part *p)
{
    const adj_value_attrs *a = p->attrs;
    const A beta = (A)a->value, rest = (A)(1 - a->value);
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], beta * ld(&p->a[i]) + rest * ld(&p->b[i]));
}

static void adam_step(const part *p)
{
    const adj_adam_attrs *a = p->attrs;
    const int32_t *t = operand(p->call, 3);
    const A lr = ld(operand(p->call, 4)), epsilon = (A)a->epsilon, decay = (A)a->decay;
    const A m_scale = (A)(1 / (1 - pow(a->beta1, *t))), v_scale = (A)(1 / (1 - pow(a->beta2, *t)));
    for (int64_t i = 0; i < p->n; i++) {
        const A direction = m_scale * ld(&p->b[i]) / ((A)sqrt(v_scale * ld(&p->c[i])) + epsilon);
        st(&p->y[i], ld(&p->a[i]) - lr * (direction + decay * ld(&p->a[i])));
    }
}

/* ---- the parts of a result ---- */

/* Returns the operand's elements along axis d of the result: 1 to repeat one. An operand by channel
 * is a vector along the channels, of which there may be one; others are broadcast. */
static int64_t elements_along(const adj_node *y, int k, int64_t d, int by_channel)
{
    const adj_shape x = y->in[k]->type.shape, shape = y->type.shape;
    const int64_t axis = d - (shape.rank - x.rank);
    if (!by_channel)
        return axis < 0 ? 1 : x.dim[axis];
    return d == channel_axis(shape, ((const adj_format_attrs *)y->attrs)->format) ? x.dim[0] : 1;
}

/* Returns the axes of y, with the steps of its operands. */
static walk walk_of(const adj_node *y, int by_channel)
{
    walk w = walk_new();
    int64_t elems[WALKED] = {1, 1, 1};

    for (int64_t d = y->type.shape.rank - 1; d >= 0; d--) {
        int64_t step[WALKED] = {0};
        for (int k = 0; k < y->n_in && k < WALKED; k++) {
            const int64_t n = elements_along(y, k, d, by_channel && k == y->n_in - 1);
            step[k] = n == 1 ? 0 : elems[k];
            elems[k] *= n;
        }
        walk_add(&w, y->type.shape.dim[d], step);
    }
    return w;
}

/* Returns n elements of x from offset on, or a block of one element n times. */
static const T *spread(const T *x, int64_t step, int64_t n, T block[PART])
{
    if (step != 0)
        return x;
    for (int64_t i = 0; i < n; i++)
        block[i] = x[0];
    return block;
}

static adj_status run(const adj_call *c)
{
    const naive_entry *e = c->state;
    const adj_node *node = c->group->node[0];
    const walk w = walk_of(node, e->by_channel);
    const int64_t row_parts = (w.dim[0] + PART - 1) / PART, rows = walk_rows(&w);

#pragma omp parallel for if (rows * w.dim[0] >= NAIVE_PARALLEL)
    for (int64_t u = 0; u < rows * row_parts; u++) {
        T blocks[WALKED][PART];
        const T *x[WALKED] = {NULL};
        int64_t row = u / row_parts, first = u % row_parts * PART, from[WALKED];
        int64_t n = w.dim[0] - first < PART ? w.dim[0] - first : PART;
        walk_offset(&w, row, from);
        for (int k = 0; k < WALKED && k < node->n_in; k++)
            x[k] = spread((const T *)operand(c, k) + from[k] + first * w.step[k][0], w.step[k][0],
                          n, blocks[k]);
        e->each(&(part){.a = x[0],
                        .b = x[1],
                        .c = x[2],
                        .y = (T *)c->out[0] + row * w.dim[0] + first,
                        .n = n,
                        .attrs = node->attrs,
                        .call = c});
    }
    return ADJ_OK;
}

const naive_entry KERNEL(elementwise)[] = {
    {.op = &adj_op_neg, .run = run, .each = neg, .in_place = 1},
    {.op = &adj_op_scale, .run = run, .each = scale, .in_place = 1},
    {.op = &adj_op_square, .run = run, .each = square, .in_place = 1},
    {.op = &adj_op_sqrt, .run = run, .each = square_root, .in_place = 1},
    {.op = &adj_op_exp, .run = run, .each = exponential, .in_place = 1},
    {.op = &adj_op_log, .run = run, .each = logarithm, .in_place = 1},
    {.op = &adj_op_erf, .run = run, .each = error_function, .in_place = 1},
    {.op = &adj_op_relu, .run = run, .each = relu, .in_place = 1},
    {.op = &adj_op_relu6, .run = run, .each = relu6, .in_place = 1},
    {.op = &adj_op_leaky_relu, .run = run, .each = leaky_relu, .in_place = 1},
    {.op = &adj_op_sigmoid, .run = run, .each = sigmoid, .in_place = 1},
    {.op = &adj_op_tanh, .run = run, .each = tangent, .in_place = 1},
    {.op = &adj_op_silu, .run = run, .each = silu, .in_place = 1},
    {.op = &adj_op_hard_sigmoid, .run = run, .each = hard_sigmoid, .in_place = 1},
    {.op = &adj_op_hard_swish, .run = run, .each = hard_swish, .in_place = 1},
    {.op = &adj_op_clip, .run = run, .each = clip, .in_place = 1},
    {.op = &adj_op_elu, .run = run, .each = elu, .in_place = 1},
    {.op = &adj_op_gelu, .run = run, .each = gelu, .in_place = 1},
    {.op = &adj_op_softplus, .run = run, .each = softplus, .in_place = 1},
    {.op = &adj_op_relu_grad, .run = run, .each = relu_grad, .in_place = 1},
    {.op = &adj_op_relu6_grad, .run = run, .each = relu6_grad, .in_place = 1},
    {.op = &adj_op_leaky_relu_grad, .run = run, .each = leaky_relu_grad, .in_place = 1},
    {.op = &adj_op_sigmoid_grad, .run = run, .each = sigmoid_grad, .in_place = 1},
    {.op = &adj_op_tanh_grad, .run = run, .each = tanh_grad, .in_place = 1},
    {.op = &adj_op_silu_grad, .run = run, .each = silu_grad, .in_place = 1},
    {.op = &adj_op_hard_sigmoid_grad, .run = run, .each = hard_sigmoid_grad, .in_place = 1},
    {.op = &adj_op_hard_swish_grad, .run = run, .each = hard_swish_grad, .in_place = 1},
    {.op = &adj_op_clip_grad, .run = run, .each = clip_grad, .in_place = 1},
    {.op = &adj_op_elu_grad, .run = run, .each = elu_grad, .in_place = 1},
    {.op = &adj_op_gelu_grad, .run = run, .each = gelu_grad, .in_place = 1},
    {.op = &adj_op_add, .run = run, .each = add, .in_place = 1},
    {.op = &adj_op_sub, .run = run, .each = sub, .in_place = 1},
    {.op = &adj_op_mul, .run = run, .each = mul, .in_place = 1},
    {.op = &adj_op_div, .run = run, .each = divide, .in_place = 1},
    {.op = &adj_op_maximum, .run = run, .each = maximum, .in_place = 1},
    {.op = &adj_op_minimum, .run = run, .each = minimum, .in_place = 1},
    {.op = &adj_op_equal, .run = run, .each = equal, .in_place = 1},
    {.op = &adj_op_greater_equal, .run = run, .each = greater_equal, .in_place = 1},
    {.op = &adj_op_pow, .run = run, .each = power, .in_place = 1},
    {.op = &adj_op_bias_add, .run = run, .each = add, .in_place = 1, .by_channel = 1},
    {.op = &adj_op_prelu, .run = run, .each = prelu, .in_place = 1, .by_channel = 1},
    {.op = &adj_op_prelu_grad, .run = run, .each = prelu_grad, .in_place = 1, .by_channel = 1},
    {.op = &adj_op_momentum, .run = run, .each = momentum, .in_place = 1},
    {.op = &adj_op_sgd_step, .run = run, .each = sgd_step, .in_place = 1},
    {.op = &adj_op_ema, .run = run, .each = ema, .in_place = 1},
    {.op = &adj_op_adam_step, .run = run, .each = adam_step, .in_place = 1},
    {.op = NULL},
};
