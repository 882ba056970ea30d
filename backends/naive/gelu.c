/* gelu.c - gelu and its gradient in double, rounded once; the formulas are in ops/gelu.c. NaN
 * stays NaN. Far from 0 the limits are returned directly, since the formulas would multiply 0 by
 * infinity. */
#include <math.h>

#include "kernels.h"

enum { FAR = 64 }; /* beyond this P and y' are 0 or 1 */

/* sqrt(2 / pi), which is also 2 / sqrt(2 pi). */
static const double k = 0.7978845608028654, a = 0.044715;

typedef struct {
    double y, slope;
} value;

/* Uses P = erfc(-x / sqrt(2)) / 2: for negative x, 1 + erf(x / sqrt(2)) would cancel. */
static value by_erf(double x)
{
    double cumulative = 0.5 * erfc(-x * sqrt(0.5)), density = k / 2 * exp(-0.5 * x * x);
    return (value){x * cumulative, cumulative + x * density};
}

/* Uses (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u)) and 1 - tanh(u)^2 = 4 P (1 - P). */
static value by_tanh(double x)
{
    double u = k * (x + a * x * x * x), p = 1 / (1 + exp(-2 * u)), rest = 1 / (1 + exp(2 * u));
    return (value){x * p, p + 2 * x * p * rest * k * (1 + 3 * a * x * x)};
}

static value gelu(const part *p, double x)
{
    if (x > FAR)
        return (value){x, 1};
    if (x < -FAR)
        return (value){0, 0};
    int64_t form = ((const adj_gelu_attrs *)p->attrs)->form;
    return form == ADJ_GELU_TANH ? by_tanh(x) : by_erf(x);
}

void KERNEL(gelu)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], (A)gelu(p, ld(&p->a[i])).y);
}

void KERNEL(gelu_grad)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A dy = ld(&p->a[i]);
        st(&p->y[i], dy * (A)gelu(p, ld(&p->b[i])).slope);
    }
}
