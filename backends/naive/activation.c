/* activation.c - relu and related activations, and their gradients; the formulas are in
 * ops/activation.c. NaN stays NaN. */
#include <math.h>

#include "kernels.h"

static A sigmoid(A x) { return (A)(1 / (1 + exp(-(double)x))); }

void KERNEL(relu)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A x = ld(&p->a[i]);
        st(&p->y[i], x > 0 || x != x ? x : 0);
    }
}

void KERNEL(relu6)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A x = ld(&p->a[i]);
        st(&p->y[i], x > 6 ? 6 : x > 0 || x != x ? x : 0);
    }
}

void KERNEL(leaky_relu)(const part *p)
{
    A alpha = (A)((const adj_value_attrs *)p->attrs)->value;

    for (int64_t i = 0; i < p->n; i++) {
        A x = ld(&p->a[i]);
        st(&p->y[i], x > 0 ? x : alpha * x);
    }
}

void KERNEL(sigmoid)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], sigmoid(ld(&p->a[i])));
}

void KERNEL(tanh)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], (A)tanh(ld(&p->a[i])));
}

void KERNEL(silu)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A x = ld(&p->a[i]);
        st(&p->y[i], x * sigmoid(x));
    }
}

/* ---- gradients ---- */

void KERNEL(relu_grad)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A dy = ld(&p->a[i]), y = ld(&p->b[i]);
        st(&p->y[i], y > 0 ? dy : 0);
    }
}

void KERNEL(relu6_grad)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A dy = ld(&p->a[i]), y = ld(&p->b[i]);
        st(&p->y[i], y > 0 && y < 6 ? dy : 0);
    }
}

void KERNEL(leaky_relu_grad)(const part *p)
{
    A alpha = (A)((const adj_value_attrs *)p->attrs)->value;

    for (int64_t i = 0; i < p->n; i++) {
        A dy = ld(&p->a[i]), y = ld(&p->b[i]);
        st(&p->y[i], y > 0 ? dy : alpha * dy);
    }
}

void KERNEL(sigmoid_grad)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A dy = ld(&p->a[i]), y = ld(&p->b[i]);
        st(&p->y[i], dy * y * (1 - y));
    }
}

void KERNEL(tanh_grad)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A dy = ld(&p->a[i]), y = ld(&p->b[i]);
        st(&p->y[i], dy * (1 - y * y));
    }
}

void KERNEL(silu_grad)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A dy = ld(&p->a[i]), x = ld(&p->b[i]);
        A s = sigmoid(x);
        st(&p->y[i], dy * (s + x * s * (1 - s)));
    }
}
