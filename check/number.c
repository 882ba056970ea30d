/* number.c - see number.h. */
#include <math.h>

#include "number.h"

precision precision_of(adj_dtype dtype)
{
    switch (dtype) {
    case ADJ_F64: return (precision){0x1p-53, 0x1p-53, 0x1p-1022};
    case ADJ_F32: return (precision){0x1p-24, 0x1p-24, 0x1p-126};
    case ADJ_BF16: return (precision){0x1p-8, 0x1p-24, 0x1p-126};
    case ADJ_F16: return (precision){0x1p-11, 0x1p-24, 0x1p-24};
    default: return (precision){0, 0, 0};
    }
}

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
