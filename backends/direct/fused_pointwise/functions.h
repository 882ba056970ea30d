/* functions.h - curved activations and their gradients at one element, for loops that are
 * vectorized: only arithmetic and comparisons, no branches or calls. relu and other selects are in
 * loops.c; relu of a whole vector is in element.h. First gelu and its gradient, in both forms; then
 * erf, clip, hard_sigmoid, hard_swish, elu, and those gradients of these and of sigmoid and tanh
 * that need more than a select.
 *
 * All but clip compute in double, though the elements are floats. The final rounding to float is
 * the only visible one: overflow and underflow of float, inexact squares, and tails much smaller
 * than 1 need no special handling.
 *
 * The polynomials and rational functions minimize the relative error on their interval, computed
 * by the Remez algorithm in 50 digits (mpmath) and rounded to double. The error is given with
 * each. */
#ifndef DIRECT_FUSED_POINTWISE_FUNCTIONS_H
#define DIRECT_FUSED_POINTWISE_FUNCTIONS_H

#include <math.h>

#include "backends/direct/exp_log.h"

/* ---- gelu, as in ops/activation_curved.c ---- */

/* Beyond this, gelu is 0 or x, and the formulas would multiply 0 by infinity. */
static const double far = 64;

/* Mills' ratio of the normal distribution divided by sqrt(2 pi), for t from 0 to 15: P(-t) =
 * e^(-t^2 / 2) R(t). Error 2^-33. All coefficients are positive, so nothing cancels, and there
 * is no pole. */
ALWAYS double mills_ratio(double t)
{
    double p = 0.0008970145981414499, q = 0.002248484747765642;
    p = p * t + 0.011714835161558659;
    p = p * t + 0.07162522556979037;
    p = p * t + 0.25131773256939044;
    p = p * t + 0.5083731385539282;
    p = p * t + 0.4999999999553855;
    q = q * t + 0.02936456023450015;
    q = q * t + 0.18179165507414144;
    q = q * t + 0.659228540434553;
    q = q * t + 1.4505015180946352;
    q = q * t + 1.8146308293935898;
    q = q * t + 1;
    return p / q;
}

/* gelu's slope at -t is P(-t) - t p(t) = e^(-t^2 / 2) (R(t) - t / sqrt(2 pi)). It is 0 at t =
 * root: the second factor is (root - t) S(t), S > 0, which is accurate near the root as well.
 * For t from 0 to 20 the error of S is 2^-32; `rest` is the root's remainder beyond double
 * precision. */
ALWAYS double slope_ratio(double t)
{
    const double root = 0.7517915246935645, rest = -1.4956759177009883e-17;
    double p = 0.002665878103279419, q = 0.006682367060822101;
    p = p * t + 0.03208160334562173;
    p = p * t + 0.17405436098867672;
    p = p * t + 0.523643962895249;
    p = p * t + 0.8731491553242094;
    p = p * t + 0.6650779952518205;
    q = q * t + 0.07539279105473784;
    q = q * t + 0.38251901887263934;
    q = q * t + 1.0599100297716868;
    q = q * t + 1.5784654158994351;
    q = q * t + 1;
    return (root - t + rest) * p / q;
}

/* Returns |x|, clamped where float results no longer change; e^(-t^2 / 2) is not 0 there. */
ALWAYS double clamped_abs(double x)
{
    const double t = fabs(x);
    return t > 37.5 ? 37.5 : t;
}

/* x P(x), with P(x) = 1 - P(-x) where x > 0. */
ALWAYS double gelu_erf(double x)
{
    const double t = clamped_abs(x), tail = exp_in_limits(-0.5 * t * t) * mills_ratio(t);
    const double other = 1 - tail, y = x * (x > 0 ? other : tail);
    return x < -far ? 0 : y;
}

/* P + x p. Beyond 38.6 P and p are 0 in double; the sum must be 0 there, not -0. */
ALWAYS double gelu_erf_slope(double x)
{
    const double t = clamped_abs(x), tail = exp_in_limits(-0.5 * t * t) * slope_ratio(t);
    const double other = 1 - tail, slope = x > 0 ? other : tail;
    return x < -38.6 ? 0 : slope;
}

ALWAYS double gelu_erf_grad(double dy, double x) { return dy * gelu_erf_slope(x); }

/* Constants of u = k (x + a x^3). */
static const double gelu_k = 0.7978845608028654, gelu_a = 0.044715;

/* (1 + tanh(u)) / 2 = 1 / (1 + e^(-2 u)) */
ALWAYS double gelu_tanh(double x)
{
    const double u = gelu_k * (x + gelu_a * x * x * x), y = x / (1 + exponential(-2 * u));
    return x < -far ? 0 : y;
}

/* P + 2 x P (1 - P) u', u' = k (1 + 3 a x^2); 1 - P is e^(-2 u) P. The sum has a root and is
 * accurate near it as well. The slope is 0 or 1 before -2 u leaves the limits of exp. */
ALWAYS double gelu_tanh_slope(double x)
{
    const double square = x * x, u = gelu_k * (x + gelu_a * square * x);
    const double du = gelu_k * (1 + 3 * gelu_a * square);
    const exp_split r = exp_split_of(-2 * u);
    const double e = r.scale * expm1_polynomial_in_double(r.r) + r.scale, p = 1 / (1 + e);
    const double slope = p + p * (e * p) * (2 * x * du),
                 bounded = -2 * u > max_exponent ? 0 : slope;
    return x > 20 ? 1 : bounded;
}

ALWAYS double gelu_tanh_grad(double dy, double x) { return dy * gelu_tanh_slope(x); }

/* ---- the others; NaN stays NaN ---- */

/* erf(x) = 1 - e^(-t w(t)) for t = |x|, where nothing cancels near 0. From t = 4 on it rounds to 1.
 * The error is 2^-31. */
ALWAYS double error_function(double x)
{
    const double t = fabs(x) > 4 ? 4 : fabs(x);
    double w = 1.1933338652841785e-06;
    w = w * t - 2.135493042722721e-05;
    w = w * t + 0.00016748224463473746;
    w = w * t - 0.0007406884418705992;
    w = w * t + 0.0017993566349364424;
    w = w * t - 0.0002530627768570759;
    w = w * t - 0.019117694273948556;
    w = w * t + 0.10277127704997017;
    w = w * t + 0.636619834582112;
    w = w * t + 1.1283791666281366;
    return copysign(expm1_of(-t * w), x);
}

/* min(max(x, min), max), by the constants that prologue.c derives from the bounds. */
ALWAYS float clip(float x, const float k[])
{
    const float raised = x < k[0] ? k[1] : x;
    return x > k[2] ? k[3] : raised;
}

ALWAYS double hard_sigmoid(double x)
{
    const double y = (x + 3) / 6, positive = x <= -3 ? 0 : y;
    return x > 3 ? 1 : positive;
}

ALWAYS double hard_swish(double x)
{
    const double y = x * (x + 3) / 6, bent = x <= -3 ? 0 : y;
    return x > 3 ? x : bent;
}

ALWAYS double hard_swish_grad(double dy, double x)
{
    const double dx = dy * (x / 3 + 0.5), bent = x <= -3 ? 0 : dx;
    return x >= 3 ? dy : bent;
}

ALWAYS double elu(double x, double alpha)
{
    const double below = alpha * expm1_of(x);
    return x > 0 ? x : below;
}

ALWAYS double elu_grad(double dy, double x, double alpha)
{
    const double below = dy * alpha * exponential(x);
    return x > 0 ? dy : below;
}

ALWAYS double sigmoid_grad(double dy, double y) { return dy * y * (1 - y); }

ALWAYS double tanh_grad(double dy, double y) { return dy * (1 - y * y); }

#endif
