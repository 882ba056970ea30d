/* erf.c - the error function. NaN stays NaN. */
#include <math.h>

#include "kernels.h"

void KERNEL(erf)(const part *p)
{
    for (int64_t i = 0; i < p->n; i++)
        st(&p->y[i], (A)erf((double)ld(&p->a[i])));
}
