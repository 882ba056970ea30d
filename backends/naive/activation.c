/* activation.c - relu and its kin. A NaN stays one in all of them. */
#include <math.h>

#include "parts.h"

static A sigmoid(A x) { return (A)(1 / (1 + exp(-(double)x))); }

static void relu_part(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A x = ld(&p->a[i]);
        st(&p->y[i], x > 0 || x != x ? x : 0);
    }
}

adj_status KERNEL(relu)(const adj_call *c) { return for_parts(c, relu_part); }

static void relu6_part(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A x = ld(&p->a[i]);
        st(&p->y[i], x > 6 ? 6 : x > 0 || x != x ? x : 0);
    }
}

adj_status KERNEL(relu6)(const adj_call *c) { return for_parts(c, relu6_part); }

static void leaky_relu_part(const part *p)
{
    A alpha = (A)((const adj_value_attrs *)p->attrs)->value;

    for (int64_t i = 0; i < p->n; i++) {
        A x = ld(&p->a[i]);
        st(&p->y[i], x > 0 ? x : alpha * x);
    }
}

adj_status KERNEL(leaky_relu)(const adj_call *c) { return for_parts(c, leaky_relu_part); }

static void sigmoid_part(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], sigmoid(ld(&p->a[i])));
}

adj_status KERNEL(sigmoid)(const adj_call *c) { return for_parts(c, sigmoid_part); }

static void tanh_part(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], (A)tanh(ld(&p->a[i])));
}

adj_status KERNEL(tanh)(const adj_call *c) { return for_parts(c, tanh_part); }

static void silu_part(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A x = ld(&p->a[i]);
        st(&p->y[i], x * sigmoid(x));
    }
}

adj_status KERNEL(silu)(const adj_call *c) { return for_parts(c, silu_part); }
