/* hard_swish.c - hard_sigmoid, hard_swish and their gradients. NaN stays NaN; the gradient of
 * hard_sigmoid there is 0, like relu6's. */
#include "kernels.h"

void KERNEL(hard_sigmoid)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A x = ld(&p->a[i]);
        st(&p->y[i], x > 3 ? 1 : x > -3 || x != x ? (x + 3) / 6 : 0);
    }
}

void KERNEL(hard_sigmoid_grad)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A dy = ld(&p->a[i]), x = ld(&p->b[i]);
        st(&p->y[i], x > -3 && x < 3 ? dy / 6 : 0);
    }
}

void KERNEL(hard_swish)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A x = ld(&p->a[i]);
        st(&p->y[i], x > 3 ? x : x > -3 || x != x ? x * (x + 3) / 6 : 0);
    }
}

void KERNEL(hard_swish_grad)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        A dy = ld(&p->a[i]), x = ld(&p->b[i]);
        st(&p->y[i], x >= 3 ? dy : x > -3 || x != x ? dy * (x / 3 + (A)0.5) : 0);
    }
}
