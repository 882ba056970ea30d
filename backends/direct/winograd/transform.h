/* transform.h - the one-dimensional transforms of F(4, 3), on vectors of channels; files
 * that include it are compiled once per instruction set.
 *
 * Polynomials are taken at the points 0, +-a, +-b and infinity; a = 5/8 and b = 3/2 keep rounding
 * errors smaller than the usual 1 and 2. With f(z) the product of z's distances to the other finite
 * points:
 *
 *         [ aabb   0  -(aa+bb)    0     1  0 ]        row z of G:  [ 1  z  zz ] / f(z)
 *         [  0   -abb   -bb       a     1  0 ]        of A:        [ 1  z  zz  zzz ]
 *   B^T = [  0    abb   -bb      -a     1  0 ]        infinity:    [ 0  0  1 ], [ 0  0  0  1 ]
 *         [  0   -aab   -aa       b     1  0 ]
 *         [  0    aab   -aa      -b     1  0 ]
 *         [  0   aabb    0    -(aa+bb)  0  1 ]                                                  */
#ifndef DIRECT_WINOGRAD_TRANSFORM_H
#define DIRECT_WINOGRAD_TRANSFORM_H

#include "backends/direct/element.h"
#include "winograd.h"

#define POINT_A 0.625F
#define POINT_B 1.5F
#define POINT_AA (POINT_A * POINT_A)
#define POINT_BB (POINT_B * POINT_B)
/* 1 / f(z) */
#define SCALE_0 (1 / (POINT_AA * POINT_BB))
#define SCALE_A (1 / (2 * POINT_AA * (POINT_AA - POINT_BB)))
#define SCALE_B (1 / (2 * POINT_BB * (POINT_BB - POINT_AA)))

/* y[i*step] = (B^T x)[i] */
ALWAYS void winograd_window(const vector x[WINOGRAD_WINDOW], vector *y, ptrdiff_t step)
{
    const float a = POINT_A, b = POINT_B, aa = POINT_AA, bb = POINT_BB;
    vector even_a = x[4] - bb * x[2], odd_a = x[3] - bb * x[1];
    vector even_b = x[4] - aa * x[2], odd_b = x[3] - aa * x[1];
    y[0] = (aa * bb) * x[0] - (aa + bb) * x[2] + x[4];
    y[step] = even_a + a * odd_a;
    y[2 * step] = even_a - a * odd_a;
    y[3 * step] = even_b + b * odd_b;
    y[4 * step] = even_b - b * odd_b;
    y[5 * step] = (aa * bb) * x[1] - (aa + bb) * x[3] + x[5];
}

/* y[i*step] = (A^T m)[i] */
ALWAYS void winograd_from_points(const vector m[WINOGRAD_WINDOW], vector *y, ptrdiff_t step)
{
    const float a = POINT_A, b = POINT_B, aa = POINT_AA, bb = POINT_BB;
    vector even_a = m[1] + m[2], odd_a = m[1] - m[2];
    vector even_b = m[3] + m[4], odd_b = m[3] - m[4];
    y[0] = m[0] + even_a + even_b;
    y[step] = a * odd_a + b * odd_b;
    y[2 * step] = aa * even_a + bb * even_b;
    y[3 * step] = (a * aa) * odd_a + (b * bb) * odd_b + m[5];
}

/* m[i*step] = (A y)[i] */
ALWAYS void winograd_to_points(const vector y[WINOGRAD_TILE], vector *m, ptrdiff_t step)
{
    const float a = POINT_A, b = POINT_B, aa = POINT_AA, bb = POINT_BB;
    vector even_a = y[0] + aa * y[2], odd_a = y[1] + aa * y[3];
    vector even_b = y[0] + bb * y[2], odd_b = y[1] + bb * y[3];
    m[0] = y[0];
    m[step] = even_a + a * odd_a;
    m[2 * step] = even_a - a * odd_a;
    m[3 * step] = even_b + b * odd_b;
    m[4 * step] = even_b - b * odd_b;
    m[5 * step] = y[3];
}

/* u[i*step] = (G w)[i] */
ALWAYS void winograd_kernel(const vector w[3], vector *u, ptrdiff_t step)
{
    vector even_a = SCALE_A * w[0] + (SCALE_A * POINT_AA) * w[2],
           odd_a = (SCALE_A * POINT_A) * w[1];
    vector even_b = SCALE_B * w[0] + (SCALE_B * POINT_BB) * w[2],
           odd_b = (SCALE_B * POINT_B) * w[1];
    u[0] = SCALE_0 * w[0];
    u[step] = even_a + odd_a;
    u[2 * step] = even_a - odd_a;
    u[3 * step] = even_b + odd_b;
    u[4 * step] = even_b - odd_b;
    u[5 * step] = w[2];
}

/* w[i*step] = (G^T u)[i] */
ALWAYS void winograd_to_kernel(const vector u[WINOGRAD_WINDOW], vector *w, ptrdiff_t step)
{
    vector even_a = u[1] + u[2], odd_a = u[1] - u[2];
    vector even_b = u[3] + u[4], odd_b = u[3] - u[4];
    w[0] = SCALE_0 * u[0] + SCALE_A * even_a + SCALE_B * even_b;
    w[step] = (SCALE_A * POINT_A) * odd_a + (SCALE_B * POINT_B) * odd_b;
    w[2 * step] = (SCALE_A * POINT_AA) * even_a + (SCALE_B * POINT_BB) * even_b + u[5];
}

#endif
