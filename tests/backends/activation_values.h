/* activation_values.h - shared by the tests of activations and prelu on direct: values over the
 * whole range of floats, every value of a half type, gradients; the error of a result; a check that
 * direct computes a plan. */
#ifndef ACTIVATION_VALUES_H
#define ACTIVATION_VALUES_H

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "harness.h"
#include "exec/report.h"
#include "graph/op.h"
#include "tests/isa.h"

typedef long double real;

/* ---- values ---- */

enum { EXPONENTS = 256, EACH = 40, NEAR = 64, MAX_VALUES = 1 << 16 };

/* Where a function bends, is 0, overflows, vanishes, or is computed otherwise. */
static const double places[] = {-3,      3,        2.5,       0.1,       1,       -1,       0.3466,
                                -0.3466, 0.751792, -0.751792, -0.752461, 88.7228, -87.3365, -103.97,
                                -708.4,  709.8,    -10.2,     -13,       -14.2,   -21.15,   -37.5,
                                -38.6,   -64,      64,        20};

static inline float float_of(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* All exponents with both signs, so zeros, subnormal numbers, infinities and NaN, too; and the
 * floats around each place. */
static inline int64_t sweep(double *x)
{
    int64_t n = 0;
    uint32_t random = 1;
    for (uint32_t e = 0; e < 2 * EXPONENTS; e++)
        for (int i = 0; i < EACH; i++) {
            random = random * 1664525u + 1013904223u;
            const uint32_t edges[] = {0, 1, 0x7fffff, 0x400000};
            x[n++] = (double)float_of(e << 23 | (i < 4 ? edges[i] : random >> 9));
        }
    for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
        float v = (float)places[k];
        for (int i = 0; i < NEAR / 2; i++)
            v = nextafterf(v, -INFINITY);
        for (int i = 0; i < NEAR; i++, v = nextafterf(v, INFINITY))
            x[n++] = (double)v;
    }
    return n;
}

static inline int64_t every_half(adj_dtype dtype, double *x)
{
    for (int k = 0; k < 1 << 16; k++) {
        const uint16_t bits = (uint16_t)k;
        x[k] = adj_load(dtype, &bits, 0);
    }
    return 1 << 16;
}

/* How far apart, in units of the last place of what was wanted. */
static inline double units(adj_dtype dtype, double got, real want)
{
    const int digits = dtype == ADJ_F32 ? 24 : dtype == ADJ_F16 ? 11 : 8;
    const int lowest = dtype == ADJ_F32 ? -149 : dtype == ADJ_F16 ? -24 : -133;
    uint32_t rounded = 0;
    int exponent;
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : INFINITY;
    adj_store(dtype, &rounded, 0, (double)want);
    if (adj_load(dtype, &rounded, 0) == got)
        return 0;
    frexpl(want, &exponent);
    exponent = want == 0 || exponent - digits < lowest ? lowest : exponent - digits;
    return (double)ldexpl(fabsl((real)got - want), -exponent);
}

static double x_values[MAX_VALUES], dy_values[MAX_VALUES];

/* Gradients that are large, small, of both signs. */
static inline void set_dy(adj_dtype dtype)
{
    static const double wide[] = {1, -3.7e19, 3e38, 1e-30, 1.2345, -1e-38, 0.5},
                        f16[] = {1, -60000, 1e-4, 3.5, -0.3};
    for (int i = 0; i < MAX_VALUES; i++)
        dy_values[i] = dtype == ADJ_F16 ? f16[i % 5] : wide[i % 7];
}

/* ---- plans ---- */

static inline void expect_direct(fixture *f, adj_node *y, int steps)
{
    const adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .backend = "direct"};
    scoped(release_exec) adj_exec *e = plan_of(f->g, &o);
    cr_assert_eq(adj_exec_step_count(e), steps, "%s: %d steps", adj_node_op(y),
                 adj_exec_step_count(e));
    for (int i = 0; i < steps; i++)
        cr_assert_str_eq(adj_exec_step_at(e, i).backend, "direct", "%s", adj_node_op(y));
}

#endif
