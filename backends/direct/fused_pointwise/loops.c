/* loops.c - the loops of pass.h: one function, inlined for each code; compiled once per
 * instruction set, with -fno-trapping-math. Without it, gcc keeps conditional products and
 * quotients behind a branch and does not vectorize the loop. */
#include <math.h>
#include <string.h>

#include "functions.h"
#include "pass.h"

/* Returns the first two constants as one double: elu's. */
ALWAYS double as_double(const float k[])
{
    double v;
    memcpy(&v, k, sizeof v);
    return v;
}

/* Computes an element of the result. All operands are read before a select, or the loop would
 * not vectorize. Activations and gradients that would round more than once are computed in
 * double; those with arithmetic only follow the order of the naive kernel. Optimizers' steps are
 * in float. */
ALWAYS float value_of(const fused_code code, float a, float b, float c, const float k[])
{
    const float positive = a <= 0 ? 0 : a; /* NaN stays NaN */
    const double a64 = (double)a, b64 = (double)b;
    switch (code) {
    /* a is x */
    case FUSED_RELU: return positive;
    case FUSED_RELU6: return positive > 6 ? 6 : positive;
    case FUSED_LEAKY_RELU: return a > 0 ? a : k[0] * a;
    case FUSED_SCALE: return k[0] * a;
    case FUSED_SQUARE: return a * a;
    case FUSED_SQRT: return sqrtf(a);
    case FUSED_EXP: return (float)exponential(a64);
    case FUSED_LOG: return (float)logarithm(a64);
    case FUSED_CLIP: return clip(a, k);
    case FUSED_HARD_SIGMOID: return (float)hard_sigmoid(a64);
    case FUSED_HARD_SWISH: return (float)hard_swish(a64);
    case FUSED_ELU: return (float)elu(a64, as_double(k));
    case FUSED_GELU_ERF: return (float)gelu_erf(a64);
    case FUSED_GELU_TANH: return (float)gelu_tanh(a64);
    case FUSED_ERF: return (float)error_function(a64);
    /* a and b are the operands */
    case FUSED_ADD: return a + b;
    case FUSED_SUB: return a - b;
    case FUSED_MUL: return a * b;
    case FUSED_DIV: return a / b;
    /* a is dy, b is y */
    case FUSED_RELU_GRAD: return b > 0 ? a : 0;
    case FUSED_RELU6_GRAD: return ((b > 0) & (b < 6)) ? a : 0;
    case FUSED_LEAKY_RELU_GRAD: return b > 0 ? a : k[0] * a;
    case FUSED_SIGMOID_GRAD: return (float)sigmoid_grad(a64, b64);
    case FUSED_TANH_GRAD: return (float)tanh_grad(a64, b64);
    /* a is dy, b is x */
    case FUSED_CLIP_GRAD: return ((b >= k[0]) & (b <= k[2])) ? a : 0;
    case FUSED_HARD_SIGMOID_GRAD: return ((b > -3) & (b < 3)) ? a / 6 : 0;
    case FUSED_HARD_SWISH_GRAD: return (float)hard_swish_grad(a64, b64);
    case FUSED_ELU_GRAD: return (float)elu_grad(a64, b64, as_double(k));
    case FUSED_GELU_ERF_GRAD: return (float)gelu_erf_grad(a64, b64);
    case FUSED_GELU_TANH_GRAD: return (float)gelu_tanh_grad(a64, b64);
    /* operands as given at the end of each line */
    case FUSED_PRELU: return a > 0 ? a : b * a;            /* x, slope */
    case FUSED_PRELU_GRAD: return b > 0 ? a : c * a;       /* dy, x, slope */
    case FUSED_PRELU_TERM: return b > 0 ? 0 : a * b;       /* dy, x */
    case FUSED_SELECT: return k[0] != 0 ? a : b;           /* yes, no */
    case FUSED_MOMENTUM: return k[0] * a + b + k[1] * c;   /* v, g, p; mu, decay */
    case FUSED_SGD_STEP: return a - k[0] * (b + k[1] * a); /* p, d; lr, decay */
    case FUSED_EMA: return k[0] * a + k[1] * b;            /* average, new; beta, 1 - beta */
    case FUSED_ADAM_STEP: /* p, m, v; lr, scales of m and v, epsilon, decay */
        return a - k[0] * (k[1] * b / (sqrtf(k[2] * c) + k[3]) + k[4] * a);
    default: return a;
    }
}

ALWAYS void loop(const fused_code code, const fused_loop_args *args)
{
    const float *a = args->x[0], *b = args->x[1], *c = args->x[2];
    const ptrdiff_t n = args->n;
    float *y = args->y, k[FUSED_CONSTANTS];
    memcpy(k, args->k, sizeof k);
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++)
        y[i] = value_of(code, a[i], b[i], c[i], k);
}

void DIRECT(fused_loop)(fused_code code, const fused_loop_args *a)
{
    switch (code) {
    case FUSED_RELU: loop(FUSED_RELU, a); break;
    case FUSED_RELU6: loop(FUSED_RELU6, a); break;
    case FUSED_LEAKY_RELU: loop(FUSED_LEAKY_RELU, a); break;
    case FUSED_SCALE: loop(FUSED_SCALE, a); break;
    case FUSED_SQUARE: loop(FUSED_SQUARE, a); break;
    case FUSED_SQRT: loop(FUSED_SQRT, a); break;
    case FUSED_EXP: loop(FUSED_EXP, a); break;
    case FUSED_LOG: loop(FUSED_LOG, a); break;
    case FUSED_CLIP: loop(FUSED_CLIP, a); break;
    case FUSED_HARD_SIGMOID: loop(FUSED_HARD_SIGMOID, a); break;
    case FUSED_HARD_SWISH: loop(FUSED_HARD_SWISH, a); break;
    case FUSED_ELU: loop(FUSED_ELU, a); break;
    case FUSED_GELU_ERF: loop(FUSED_GELU_ERF, a); break;
    case FUSED_GELU_TANH: loop(FUSED_GELU_TANH, a); break;
    case FUSED_ERF: loop(FUSED_ERF, a); break;
    case FUSED_ADD: loop(FUSED_ADD, a); break;
    case FUSED_SUB: loop(FUSED_SUB, a); break;
    case FUSED_MUL: loop(FUSED_MUL, a); break;
    case FUSED_DIV: loop(FUSED_DIV, a); break;
    case FUSED_RELU_GRAD: loop(FUSED_RELU_GRAD, a); break;
    case FUSED_RELU6_GRAD: loop(FUSED_RELU6_GRAD, a); break;
    case FUSED_LEAKY_RELU_GRAD: loop(FUSED_LEAKY_RELU_GRAD, a); break;
    case FUSED_SIGMOID_GRAD: loop(FUSED_SIGMOID_GRAD, a); break;
    case FUSED_TANH_GRAD: loop(FUSED_TANH_GRAD, a); break;
    case FUSED_CLIP_GRAD: loop(FUSED_CLIP_GRAD, a); break;
    case FUSED_HARD_SIGMOID_GRAD: loop(FUSED_HARD_SIGMOID_GRAD, a); break;
    case FUSED_HARD_SWISH_GRAD: loop(FUSED_HARD_SWISH_GRAD, a); break;
    case FUSED_ELU_GRAD: loop(FUSED_ELU_GRAD, a); break;
    case FUSED_GELU_ERF_GRAD: loop(FUSED_GELU_ERF_GRAD, a); break;
    case FUSED_GELU_TANH_GRAD: loop(FUSED_GELU_TANH_GRAD, a); break;
    case FUSED_PRELU: loop(FUSED_PRELU, a); break;
    case FUSED_PRELU_GRAD: loop(FUSED_PRELU_GRAD, a); break;
    case FUSED_PRELU_TERM: loop(FUSED_PRELU_TERM, a); break;
    case FUSED_SELECT: loop(FUSED_SELECT, a); break;
    case FUSED_MOMENTUM: loop(FUSED_MOMENTUM, a); break;
    case FUSED_SGD_STEP: loop(FUSED_SGD_STEP, a); break;
    case FUSED_EMA: loop(FUSED_EMA, a); break;
    case FUSED_ADAM_STEP: loop(FUSED_ADAM_STEP, a); break;
    default: /* a copy */
        if (a->y != a->x[0])
            memcpy(a->y, a->x[0], (size_t)a->n * sizeof *a->y);
    }
}
