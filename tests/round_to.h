/* round_to.h - numbers rounded to a float type, for tests: by arithmetic, not by the code under
 * test. */
#ifndef TESTS_ROUND_TO_H
#define TESTS_ROUND_TO_H

#include <math.h>

/* The nearest number with `bits` bits of mantissa and no exponent below `min`, ties to even;
 * infinite from 2^top on. In long double, so that nothing is rounded before. */
static inline double round_to(double v, int bits, int min, int top)
{
    int exponent;
    if (v == 0 || !isfinite(v))
        return v;
    frexp(v, &exponent);
    int unit = exponent - bits > min - bits + 1 ? exponent - bits : min - bits + 1;
    double rounded = (double)(rintl(ldexpl((long double)v, -unit)) * ldexpl(1, unit));
    return fabs(rounded) >= ldexp(1, top) ? copysign(INFINITY, v) : rounded;
}

#endif
