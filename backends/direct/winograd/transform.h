/* transform.h - the one-dimensional transforms of F(4, 3) and F(4, 5), on vectors of channels;
 * files that include it are compiled once per instruction set.
 *
 * Polynomials are evaluated at n points: 0, pairs +-z, and infinity, where the value is the last
 * coefficient. The matrices have a row for each point z. With Z(x) the product of x - y over all
 * finite points y, and f(z) the derivative of Z at z:
 *
 *   A:    [ 1  z  z^2 .. ], a column for each row of the tile;      infinity: [ 0 .. 0  1 ]
 *   G:    [ 1  z  z^2 .. ] / f(z), a column for each of the kernel; infinity: [ 0 .. 0  1 ]
 *   B^T:  the coefficients of Z(x) / (x - z);                       infinity: those of Z(x)
 *
 * Z(x) is x times the product of xx - zz over the pairs: rows of B^T have even and odd
 * coefficients, which are equal for +z and -z except for the sign of the odd ones. */
#ifndef DIRECT_WINOGRAD_TRANSFORM_H
#define DIRECT_WINOGRAD_TRANSFORM_H

#include "backends/direct/element.h"
#include "winograd.h"

enum { WINOGRAD_MAX_PAIRS = (WINOGRAD_MAX_WINDOW - 2) / 2 };

/* Returns the positive point of a pair. With six points, 5/8 and 3/2 give smaller rounding
 * errors than the common 1 and 2; with eight, 1/2, 1 and 2 are the best of some hundred triples. */
ALWAYS float winograd_point(const int n, const int pair)
{
    static const float points[][WINOGRAD_MAX_PAIRS] = {{0.625F, 1.5F}, {0.5F, 1, 2}};
    return points[n == 8][pair];
}

/* Sets q[i] to the coefficient of x^(2i) in the product of xx - zz over all pairs except
 * `without`. Returns how many there are. */
ALWAYS int winograd_product(const int n, const int without, float q[WINOGRAD_MAX_PAIRS + 1])
{
    int terms = 1;
    q[0] = 1;
#pragma GCC unroll 3
    for (int pair = 0; pair < (n - 2) / 2; pair++) {
        if (pair == without)
            continue;
        const float z = winograd_point(n, pair), zz = z * z;
        q[terms] = q[terms - 1];
#pragma GCC unroll 3
        for (int i = terms - 1; i > 0; i--)
            q[i] = q[i - 1] - zz * q[i];
        q[0] *= -zz;
        terms++;
    }
    return terms;
}

/* Returns the sum of q[i] x[2i]. */
ALWAYS vector_value winograd_every_other(const int terms, const float q[], const vector x[])
{
    vector sum = q[0] * x[0];
#pragma GCC unroll 4
    for (int i = 1; i < terms; i++)
        sum += q[i] * x[2 * (ptrdiff_t)i];
    return sum;
}

/* Computes y[i*step] = (B^T x)[i], n of them. */
ALWAYS void winograd_window(const int n, const vector x[], vector *y, ptrdiff_t step)
{
    float q[WINOGRAD_MAX_PAIRS + 1];
    int terms = winograd_product(n, -1, q);
    y[0] = winograd_every_other(terms, q, x);
    y[(n - 1) * step] = winograd_every_other(terms, q, x + 1);
#pragma GCC unroll 3
    for (int pair = 0; pair < (n - 2) / 2; pair++) {
        terms = winograd_product(n, pair, q);
        const vector even = winograd_every_other(terms, q, x + 2);
        const vector odd = winograd_every_other(terms, q, x + 1);
        y[(2 * pair + 1) * step] = even + winograd_point(n, pair) * odd;
        y[(2 * pair + 2) * step] = even - winograd_point(n, pair) * odd;
    }
}

/* Returns y[0] + zz y[2] + zz^2 y[4] .., over the first `size` of y. */
ALWAYS vector_value winograd_even_terms(const int size, const vector y[], float zz)
{
    vector sum = y[0];
    float power = zz;
#pragma GCC unroll 3
    for (int i = 2; i < size; i += 2) {
        sum += power * y[i];
        power *= zz;
    }
    return sum;
}

/* Computes m[i*step] = (A y)[i], n of them, from `size` coefficients y. */
ALWAYS void winograd_to_points(const int n, const int size, const vector y[], vector *m,
                               ptrdiff_t step)
{
    m[0] = y[0];
    m[(n - 1) * step] = y[size - 1];
#pragma GCC unroll 3
    for (int pair = 0; pair < (n - 2) / 2; pair++) {
        const float z = winograd_point(n, pair);
        const vector even = winograd_even_terms(size, y, z * z);
        const vector odd = winograd_even_terms(size - 1, y + 1, z * z);
        m[(2 * pair + 1) * step] = even + z * odd;
        m[(2 * pair + 2) * step] = even - z * odd;
    }
}

/* Computes y[i*step] = (A^T m)[i], `size` of them, from n points m. */
ALWAYS void winograd_from_points(const int n, const int size, const vector m[], vector *y,
                                 ptrdiff_t step)
{
    const int pairs = (n - 2) / 2;
    vector sum[WINOGRAD_MAX_PAIRS], difference[WINOGRAD_MAX_PAIRS];
    float power[WINOGRAD_MAX_PAIRS];
#pragma GCC unroll 3
    for (int pair = 0; pair < pairs; pair++) {
        sum[pair] = m[2 * pair + 1] + m[2 * pair + 2];
        difference[pair] = m[2 * pair + 1] - m[2 * pair + 2];
        power[pair] = 1;
    }
#pragma GCC unroll 5
    for (int i = 0; i < size; i++) {
        const vector *of = i % 2 == 0 ? sum : difference;
        vector value = power[0] * of[0];
        if (i == 0)
            value += m[0];
        if (i == size - 1)
            value += m[n - 1];
#pragma GCC unroll 3
        for (int pair = 1; pair < pairs; pair++)
            value += power[pair] * of[pair];
#pragma GCC unroll 3
        for (int pair = 0; pair < pairs; pair++)
            power[pair] *= winograd_point(n, pair);
        y[i * step] = value;
    }
}

/* Returns 1 / f(z) of point i. */
ALWAYS float winograd_scale(const int n, const int i)
{
    float q[WINOGRAD_MAX_PAIRS + 1], f = 0;
    const int terms = winograd_product(n, i == 0 ? -1 : (i - 1) / 2, q);
    if (i == 0 || i == n - 1)
        return i == 0 ? 1 / q[0] : 1;
    const float z = winograd_point(n, (i - 1) / 2), zz = z * z;
#pragma GCC unroll 4
    for (int k = terms - 1; k >= 0; k--)
        f = f * zz + q[k];
    return 1 / (2 * zz * f);
}

/* Computes u[i*step] = (G w)[i], n of them, for a kernel of `size`. */
ALWAYS void winograd_kernel(const int n, const int size, const vector w[], vector *u,
                            ptrdiff_t step)
{
    vector point[WINOGRAD_MAX_WINDOW];
    winograd_to_points(n, size, w, point, 1);
#pragma GCC unroll 8
    for (int i = 0; i < n; i++)
        u[i * step] = winograd_scale(n, i) * point[i];
}

/* Computes w[i*step] = (G^T u)[i], `size` of them, from n points u. */
ALWAYS void winograd_to_kernel(const int n, const int size, const vector u[], vector *w,
                               ptrdiff_t step)
{
    vector point[WINOGRAD_MAX_WINDOW];
#pragma GCC unroll 8
    for (int i = 0; i < n; i++)
        point[i] = winograd_scale(n, i) * u[i];
    winograd_from_points(n, size, point, w, step);
}

#endif
