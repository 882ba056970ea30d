/* elementwise_binary.c - arithmetic of two operands; parts.c broadcasts them. */
#include <math.h>

#include "kernels.h"

void KERNEL(add)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], ld(&p->a[i]) + ld(&p->b[i]));
}

void KERNEL(sub)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], ld(&p->a[i]) - ld(&p->b[i]));
}

void KERNEL(mul)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], ld(&p->a[i]) * ld(&p->b[i]));
}

void KERNEL(div)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], ld(&p->a[i]) / ld(&p->b[i]));
}

/* The result is NaN if either operand is. */
void KERNEL(maximum)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A a = ld(&p->a[i]), b = ld(&p->b[i]);
        st(&p->y[i], a != a || a >= b ? a : b);
    }
}

void KERNEL(minimum)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A a = ld(&p->a[i]), b = ld(&p->b[i]);
        st(&p->y[i], a != a || a <= b ? a : b);
    }
}

void KERNEL(equal)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], ld(&p->a[i]) == ld(&p->b[i]));
}

void KERNEL(greater_equal)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], ld(&p->a[i]) >= ld(&p->b[i]));
}

void KERNEL(pow)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], (A)pow((double)ld(&p->a[i]), (double)ld(&p->b[i])));
}
