/* softplus.c - log(1 + exp(x)). NaN stays NaN. */
#include <math.h>

#include "kernels.h"

/* The exponential's argument is never positive, so that nothing overflows. */
void KERNEL(softplus)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++) {
        const double x = (double)ld(&p->a[i]);
        st(&p->y[i], (A)((x > 0 ? x : x != x ? x : 0) + log1p(exp(-fabs(x)))));
    }
}
