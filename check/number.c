/* number.c - see number.h. */
#include <math.h>

#include "number.h"

double rounded(adj_dtype dtype, double v)
{
    double element = 0;
    if (!adj_is_float(dtype))
        return v;
    adj_store(dtype, &element, 0, v);
    return adj_load(dtype, &element, 0);
}

double max_magnitude(const double *v, int64_t n)
{
    double max = 0;
    for (int64_t i = 0; i < n; i++)
        max = fmax(max, fabs(v[i]));
    return max;
}
