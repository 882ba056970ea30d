/* elementwise_binary.c - the arithmetic of two operands; parts.h broadcasts. */
#include "parts.h"

static void add_part(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], ld(&p->a[i]) + ld(&p->b[i]));
}

adj_status KERNEL(add)(const adj_call *c) { return for_parts(c, add_part); }

static void sub_part(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], ld(&p->a[i]) - ld(&p->b[i]));
}

adj_status KERNEL(sub)(const adj_call *c) { return for_parts(c, sub_part); }

static void mul_part(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], ld(&p->a[i]) * ld(&p->b[i]));
}

adj_status KERNEL(mul)(const adj_call *c) { return for_parts(c, mul_part); }

static void div_part(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], ld(&p->a[i]) / ld(&p->b[i]));
}

adj_status KERNEL(div)(const adj_call *c) { return for_parts(c, div_part); }

/* A NaN on either side is the result. */
static void maximum_part(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A a = ld(&p->a[i]), b = ld(&p->b[i]);
        st(&p->y[i], a != a || a >= b ? a : b);
    }
}

adj_status KERNEL(maximum)(const adj_call *c) { return for_parts(c, maximum_part); }

static void minimum_part(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A a = ld(&p->a[i]), b = ld(&p->b[i]);
        st(&p->y[i], a != a || a <= b ? a : b);
    }
}

adj_status KERNEL(minimum)(const adj_call *c) { return for_parts(c, minimum_part); }

static void equal_part(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], ld(&p->a[i]) == ld(&p->b[i]));
}

adj_status KERNEL(equal)(const adj_call *c) { return for_parts(c, equal_part); }

static void greater_equal_part(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], ld(&p->a[i]) >= ld(&p->b[i]));
}

adj_status KERNEL(greater_equal)(const adj_call *c) { return for_parts(c, greater_equal_part); }
