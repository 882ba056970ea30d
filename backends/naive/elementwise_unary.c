/* elementwise_unary.c - functions of one operand. */
#include <math.h>

#include "kernels.h"

void KERNEL(neg)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], -ld(&p->a[i]));
}

void KERNEL(scale)(const part *p)
{
    A factor = (A)((const adj_value_attrs *)p->attrs)->value;

    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], ld(&p->a[i]) * factor);
}

void KERNEL(square)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], ld(&p->a[i]) * ld(&p->a[i]));
}

void KERNEL(sqrt)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], (A)sqrt(ld(&p->a[i])));
}

void KERNEL(exp)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], (A)exp(ld(&p->a[i])));
}

void KERNEL(log)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], (A)log(ld(&p->a[i])));
}
