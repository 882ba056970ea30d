/* clip.c - clip and its gradient. NaN stays NaN and has the gradient 0. */
#include "kernels.h"

void KERNEL(clip)(const part *p)
{
    const adj_clip_attrs *a = p->attrs;
    for (int64_t i = 0; i < p->n; i++) {
        double x = ld(&p->a[i]), raised = x < a->min ? a->min : x;
        st(&p->y[i], (A)(raised > a->max ? a->max : raised));
    }
}

void KERNEL(clip_grad)(const part *p)
{
    const adj_clip_attrs *a = p->attrs;
    for (int64_t i = 0; i < p->n; i++) {
        A dy = ld(&p->a[i]);
        double x = ld(&p->b[i]);
        st(&p->y[i], x >= a->min && x <= a->max ? dy : 0);
    }
}
