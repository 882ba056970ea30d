/* optimizer.c - elementwise updates; see ops/optimizer.c for the formulas. The result may be
 * operand 0's own buffer: element i is read before it is written. */
#include <math.h>

#include "kernels.h"
#include "ops/grad.h"

enum { PARALLEL_UPDATE = 1 << 14 };

static ptrdiff_t size_of(const adj_call *c)
{
    return adj_shape_elems(c->group->node[0]->type.shape);
}

adj_status KERNEL(momentum)(const adj_call *c)
{
    const adj_decay_attrs *a = c->group->node[0]->attrs;
    const T *v = operand(c, 0), *g = operand(c, 1), *p = operand(c, 2);
    A mu = (A)a->mu, decay = (A)a->decay;
    ptrdiff_t n = size_of(c);
    T *next = c->out[0];

#pragma omp parallel for if (n > PARALLEL_UPDATE)
    for (ptrdiff_t i = 0; i < n; i++)
        st(next + i, mu * ld(v + i) + ld(g + i) + decay * ld(p + i));
    return ADJ_OK;
}

adj_status KERNEL(sgd_step)(const adj_call *c)
{
    const adj_decay_attrs *a = c->group->node[0]->attrs;
    const T *p = operand(c, 0), *d = operand(c, 1);
    A lr = ld(operand(c, 2)), decay = (A)a->decay;
    ptrdiff_t n = size_of(c);
    T *next = c->out[0];

#pragma omp parallel for if (n > PARALLEL_UPDATE)
    for (ptrdiff_t i = 0; i < n; i++)
        st(next + i, ld(p + i) - lr * (ld(d + i) + decay * ld(p + i)));
    return ADJ_OK;
}

adj_status KERNEL(ema)(const adj_call *c)
{
    const adj_value_attrs *a = c->group->node[0]->attrs;
    const T *m = operand(c, 0), *x = operand(c, 1);
    A beta = (A)a->value, rest = (A)(1 - a->value);
    ptrdiff_t n = size_of(c);
    T *next = c->out[0];

#pragma omp parallel for if (n > PARALLEL_UPDATE)
    for (ptrdiff_t i = 0; i < n; i++)
        st(next + i, beta * ld(m + i) + rest * ld(x + i));
    return ADJ_OK;
}

adj_status KERNEL(adam_step)(const adj_call *c)
{
    const adj_adam_attrs *a = c->group->node[0]->attrs;
    const T *p = operand(c, 0), *m = operand(c, 1), *v = operand(c, 2);
    const int32_t *t = operand(c, 3);
    A lr = ld(operand(c, 4)), epsilon = (A)a->epsilon, decay = (A)a->decay;
    A m_scale = (A)(1 / (1 - pow(a->beta1, *t))), v_scale = (A)(1 / (1 - pow(a->beta2, *t)));
    ptrdiff_t n = size_of(c);
    T *next = c->out[0];

#pragma omp parallel for if (n > PARALLEL_UPDATE)
    for (ptrdiff_t i = 0; i < n; i++) {
        A direction = m_scale * ld(m + i) / ((A)sqrt(v_scale * ld(v + i)) + epsilon);
        st(next + i, ld(p + i) - lr * (direction + decay * ld(p + i)));
    }
    return ADJ_OK;
}

adj_status KERNEL(next_step)(const adj_call *c)
{
    const int32_t *step = operand(c, 0);
    int32_t *next = c->out[0];
    *next = (int32_t)((uint32_t)*step + 1u);
    return ADJ_OK;
}
