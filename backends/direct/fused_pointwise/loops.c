/* loops.c - the loops of the elementwise nodes of a fused group that know no channels; compiled
 * once per instruction set. */
#include <math.h>
#include <string.h>

#include "loops.h"

static void copy(ptrdiff_t n, float *y, const float *const x[], const float *k)
{
    (void)k;
    if (y != x[0])
        memcpy(y, x[0], (size_t)n * sizeof *y);
}

static void relu(ptrdiff_t n, float *y, const float *const x[], const float *k)
{
    const float *a = x[0];
    (void)k;
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++)
        y[i] = a[i] <= 0 ? 0 : a[i]; /* a NaN stays */
}

static void relu6(ptrdiff_t n, float *y, const float *const x[], const float *k)
{
    const float *a = x[0];
    (void)k;
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) {
        float low = a[i] <= 0 ? 0 : a[i];
        y[i] = low > 6 ? 6 : low;
    }
}

static void leaky_relu(ptrdiff_t n, float *y, const float *const x[], const float *k)
{
    const float *a = x[0], alpha = k[0];
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++)
        y[i] = a[i] > 0 ? a[i] : alpha * a[i];
}

static void scale(ptrdiff_t n, float *y, const float *const x[], const float *k)
{
    const float *a = x[0], factor = k[0];
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++)
        y[i] = factor * a[i];
}

static void square(ptrdiff_t n, float *y, const float *const x[], const float *k)
{
    const float *a = x[0];
    (void)k;
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++)
        y[i] = a[i] * a[i];
}

static void square_root(ptrdiff_t n, float *y, const float *const x[], const float *k)
{
    const float *a = x[0];
    (void)k;
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++)
        y[i] = sqrtf(a[i]);
}

static void add(ptrdiff_t n, float *y, const float *const x[], const float *k)
{
    const float *a = x[0], *b = x[1];
    (void)k;
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}

static void sub(ptrdiff_t n, float *y, const float *const x[], const float *k)
{
    const float *a = x[0], *b = x[1];
    (void)k;
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++)
        y[i] = a[i] - b[i];
}

static void mul(ptrdiff_t n, float *y, const float *const x[], const float *k)
{
    const float *a = x[0], *b = x[1];
    (void)k;
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++)
        y[i] = a[i] * b[i];
}

static void divide(ptrdiff_t n, float *y, const float *const x[], const float *k)
{
    const float *a = x[0], *b = x[1];
    (void)k;
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++)
        y[i] = a[i] / b[i];
}

static void relu_grad(ptrdiff_t n, float *dx, const float *const x[], const float *k)
{
    const float *dy = x[0], *y = x[1];
    (void)k;
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) {
        float d = dy[i]; /* read in any case, or it would not vectorise */
        dx[i] = y[i] > 0 ? d : 0;
    }
}

static void relu6_grad(ptrdiff_t n, float *dx, const float *const x[], const float *k)
{
    const float *dy = x[0], *y = x[1];
    (void)k;
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) {
        float d = dy[i];
        dx[i] = ((y[i] > 0) & (y[i] < 6)) ? d : 0;
    }
}

static void leaky_relu_grad(ptrdiff_t n, float *dx, const float *const x[], const float *k)
{
    const float *dy = x[0], *y = x[1], alpha = k[0];
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) {
        float d = dy[i];
        dx[i] = y[i] > 0 ? d : alpha * d;
    }
}

/* v, g, p */
static void momentum(ptrdiff_t n, float *y, const float *const x[], const float *k)
{
    const float *v = x[0], *g = x[1], *p = x[2], mu = k[0], decay = k[1];
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++)
        y[i] = mu * v[i] + g[i] + decay * p[i];
}

/* p, d */
static void sgd_step(ptrdiff_t n, float *y, const float *const x[], const float *k)
{
    const float *p = x[0], *d = x[1], lr = k[0], decay = k[1];
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++)
        y[i] = p[i] - lr * (d[i] + decay * p[i]);
}

static void ema(ptrdiff_t n, float *y, const float *const x[], const float *k)
{
    const float *m = x[0], *a = x[1], beta = k[0], rest = k[1];
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++)
        y[i] = beta * m[i] + rest * a[i];
}

/* p, m, v */
static void adam_step(ptrdiff_t n, float *y, const float *const x[], const float *k)
{
    const float *p = x[0], *m = x[1], *v = x[2];
    const float lr = k[0], m_scale = k[1], v_scale = k[2], epsilon = k[3], decay = k[4];
#pragma omp simd
    for (ptrdiff_t i = 0; i < n; i++) {
        float direction = m_scale * m[i] / (sqrtf(v_scale * v[i]) + epsilon);
        y[i] = p[i] - lr * (direction + decay * p[i]);
    }
}

fused_loop *const DIRECT(fused_loops)[] = {
    [FUSED_COPY] = copy,
    [FUSED_RELU] = relu,
    [FUSED_RELU6] = relu6,
    [FUSED_LEAKY_RELU] = leaky_relu,
    [FUSED_SCALE] = scale,
    [FUSED_SQUARE] = square,
    [FUSED_SQRT] = square_root,
    [FUSED_ADD] = add,
    [FUSED_SUB] = sub,
    [FUSED_MUL] = mul,
    [FUSED_DIV] = divide,
    [FUSED_RELU_GRAD] = relu_grad,
    [FUSED_RELU6_GRAD] = relu6_grad,
    [FUSED_LEAKY_RELU_GRAD] = leaky_relu_grad,
    [FUSED_MOMENTUM] = momentum,
    [FUSED_SGD_STEP] = sgd_step,
    [FUSED_EMA] = ema,
    [FUSED_ADAM_STEP] = adam_step,
};
