/* elementwise_unary.c - functions of one operand. */
#include <math.h>

#include "parts.h"

static void neg_part(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], -ld(&p->a[i]));
}

adj_status KERNEL(neg)(const adj_call *c) { return for_parts(c, neg_part); }

static void scale_part(const part *p)
{
    A factor = (A)((const adj_value_attrs *)p->attrs)->value;

    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], ld(&p->a[i]) * factor);
}

adj_status KERNEL(scale)(const adj_call *c) { return for_parts(c, scale_part); }

static void square_part(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], ld(&p->a[i]) * ld(&p->a[i]));
}

adj_status KERNEL(square)(const adj_call *c) { return for_parts(c, square_part); }

static void sqrt_part(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], (A)sqrt(ld(&p->a[i])));
}

adj_status KERNEL(sqrt)(const adj_call *c) { return for_parts(c, sqrt_part); }

static void exp_part(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], (A)exp(ld(&p->a[i])));
}

adj_status KERNEL(exp)(const adj_call *c) { return for_parts(c, exp_part); }

static void log_part(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], (A)log(ld(&p->a[i])));
}

adj_status KERNEL(log)(const adj_call *c) { return for_parts(c, log_part); }
