/* elu.c - elu and its gradient. NaN stays NaN. */
#include <math.h>

#include "kernels.h"

void KERNEL(elu)(const part *p)
{
    A alpha = (A)((const adj_value_attrs *)p->attrs)->value;

    for (int64_t i = 0; i < p->n; i++) {
        A x = ld(&p->a[i]);
        st(&p->y[i], x > 0 ? x : alpha * (A)expm1((double)x));
    }
}

void KERNEL(elu_grad)(const part *p)
{
    A alpha = (A)((const adj_value_attrs *)p->attrs)->value;

    for (int64_t i = 0; i < p->n; i++) {
        A dy = ld(&p->a[i]), x = ld(&p->b[i]);
        st(&p->y[i], x > 0 ? dy : dy * alpha * (A)exp((double)x));
    }
}
