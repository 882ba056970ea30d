/* exp_log.h - e^x, e^x - 1 and log x at one element, for loops that are vectorized: only
 * arithmetic, comparisons and shifts, no branches or calls. They compute in double; the final
 * rounding to float is the only visible one.
 *
 * The polynomials minimize the relative error on their interval, computed by the Remez algorithm
 * in 50 digits (mpmath) and rounded to double. The error is given with each. */
#ifndef DIRECT_EXP_LOG_H
#define DIRECT_EXP_LOG_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "element.h"

/* Between the first two limits e^x is a normal double; below the third it rounds to 0. */
static const double min_exponent = -708, max_exponent = 709, zero_exponent = -745.1332191019412;
static const double ln2 = 0.6931471805599453, per_ln2 = 1.4426950408889634;

/* x = n ln 2 + r, |r| <= ln 2 / 2; scale is 2^n. */
typedef struct {
    double scale, r;
} exp_split;

/* Splits an x between the limits; other x give undefined results. Adding 1.5 2^52 rounds the
 * quotient to n, which is then in the sum's last bits. n + 1023, shifted up, is the exponent of
 * a double. */
ALWAYS exp_split exp_split_of(double x)
{
    const double rounder = 0x1.8p52 + 1023, sum = x * per_ln2 + rounder;
    uint64_t bits;
    exp_split e = {.r = x - (sum - rounder) * ln2};
    memcpy(&bits, &sum, sizeof bits);
    bits <<= 52;
    memcpy(&e.scale, &bits, sizeof bits);
    return e;
}

/* e^r - 1 = r + r^2 q(r), q of degree 5, error 2^-32; for results that are rounded to float. */
ALWAYS double expm1_polynomial(double r)
{
    double q = 0.00019845561556095022;
    q = q * r + 0.0013940628931463548;
    q = q * r + 0.008333390058574003;
    q = q * r + 0.04166636093568211;
    q = q * r + 0.16666666366783583;
    q = q * r + 0.500000004412193;
    return r + r * r * q;
}

/* e^r - 1 for results that cancel before rounding: q of degree 8, error 2^-49. */
ALWAYS double expm1_polynomial_in_double(double r)
{
    double q = 2.755419179125099e-07;
    q = q * r + 2.7630667636965157e-06;
    q = q * r + 2.4801695874983178e-05;
    q = q * r + 0.00019841195900302929;
    q = q * r + 0.0013888888764842255;
    q = q * r + 0.008333333362687635;
    q = q * r + 0.04166666666710374;
    q = q * r + 0.16666666666630475;
    q = q * r + 0.4999999999999964;
    return r + r * r * q;
}

/* e^x for x between the limits. */
ALWAYS double exp_in_limits(double x)
{
    const exp_split e = exp_split_of(x);
    return e.scale * expm1_polynomial(e.r) + e.scale;
}

/* e^x, with e^min_exponent in place of subnormal results: both round to 0 in float, and both
 * keep a product with infinity infinite. */
ALWAYS double exponential(double x)
{
    const double y = exp_in_limits(x < min_exponent ? min_exponent : x);
    const double positive = x < zero_exponent ? 0 : y;
    return x > max_exponent ? HUGE_VAL : positive;
}

/* e^x - 1 for x <= 0, with the sign of x: computing 1 - 1 would lose the sign of -0. */
ALWAYS double expm1_of(double x)
{
    const exp_split e = exp_split_of(x);
    const double y = copysign(e.scale * expm1_polynomial(e.r) + (e.scale - 1), x);
    return x < min_exponent ? -1 : y;
}

/* log x of a normal double, which every float is: m = x / 2^n between sqrt(1/2) and sqrt(2), s =
 * (m - 1) / (m + 1), log m = 2 s + s^3 p(s^2), p of degree 3, error 2^-37. 0 gives -infinity,
 * negative numbers and NaN give NaN, infinity itself. */
ALWAYS double logarithm(double x)
{
    const uint64_t one = 0x3ff0000000000000, lowest = 0x3fe6a09e667f3bcd; /* 1, sqrt(1/2) */
    const uint64_t as_double = 0x4330000000000000;                        /* 2^52, to add n */
    uint64_t bits, biased;                                                /* n + 1023 */
    double m, n;
    memcpy(&bits, &x, sizeof bits);
    biased = (bits - lowest + one) >> 52;
    bits -= (biased << 52) - one;
    biased |= as_double;
    memcpy(&m, &bits, sizeof m);
    memcpy(&n, &biased, sizeof n);
    n -= 0x1p52 + 1023;
    const double s = (m - 1) / (m + 1), z = s * s;
    double p = 0.2358147212969616;
    p = p * z + 0.2853734697240659;
    p = p * z + 0.4000033453439922;
    p = p * z + 0.6666666564864705;
    const double y = n * ln2 + (2 * s + s * z * p), positive = x < HUGE_VAL ? y : x,
                 outside = x == 0 ? -HUGE_VAL : (double)NAN;
    return x > 0 ? positive : outside;
}

#endif
