/* hard_swish.c - hard_swish and its gradient. A NaN stays one. */
#include "parts.h"

static void forward(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A x = ld(&p->a[i]);
        st(&p->y[i], x > 3 ? x : x > -3 || x != x ? x * (x + 3) / 6 : 0);
    }
}

adj_status KERNEL(hard_swish)(const adj_call *c) { return for_parts(c, forward); }

static void backward(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A dy = ld(&p->a[i]), x = ld(&p->b[i]);
        st(&p->y[i], x >= 3 ? dy : x > -3 || x != x ? dy * (x / 3 + (A)0.5) : 0);
    }
}

adj_status KERNEL(hard_swish_grad)(const adj_call *c) { return for_parts(c, backward); }
