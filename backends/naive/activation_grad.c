/* activation_grad.c - the gradients of activations; the formulas are in ops/activation_grad.c. */
#include <math.h>

#include "parts.h"

static void relu_grad_part(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A dy = ld(&p->a[i]), y = ld(&p->b[i]);
        st(&p->y[i], y > 0 ? dy : 0);
    }
}

adj_status KERNEL(relu_grad)(const adj_call *c) { return for_parts(c, relu_grad_part); }

static void relu6_grad_part(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A dy = ld(&p->a[i]), y = ld(&p->b[i]);
        st(&p->y[i], y > 0 && y < 6 ? dy : 0);
    }
}

adj_status KERNEL(relu6_grad)(const adj_call *c) { return for_parts(c, relu6_grad_part); }

static void leaky_relu_grad_part(const part *p)
{
    A alpha = (A)((const adj_value_attrs *)p->attrs)->value;

    for (int64_t i = 0; i < p->n; i++) {
        A dy = ld(&p->a[i]), y = ld(&p->b[i]);
        st(&p->y[i], y > 0 ? dy : alpha * dy);
    }
}

adj_status KERNEL(leaky_relu_grad)(const adj_call *c) { return for_parts(c, leaky_relu_grad_part); }

static void sigmoid_grad_part(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A dy = ld(&p->a[i]), y = ld(&p->b[i]);
        st(&p->y[i], dy * y * (1 - y));
    }
}

adj_status KERNEL(sigmoid_grad)(const adj_call *c) { return for_parts(c, sigmoid_grad_part); }

static void tanh_grad_part(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A dy = ld(&p->a[i]), y = ld(&p->b[i]);
        st(&p->y[i], dy * (1 - y * y));
    }
}

adj_status KERNEL(tanh_grad)(const adj_call *c) { return for_parts(c, tanh_grad_part); }

static void silu_grad_part(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A dy = ld(&p->a[i]), x = ld(&p->b[i]);
        A s = (A)(1 / (1 + exp(-(double)x)));
        st(&p->y[i], dy * (s + x * s * (1 - s)));
    }
}

adj_status KERNEL(silu_grad)(const adj_call *c) { return for_parts(c, silu_grad_part); }
