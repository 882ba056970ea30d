/* test_direct_activation.c - relu, clip, hard_sigmoid, hard_swish, elu, gelu, erf, exp and log,
 * gradients of these and of sigmoid and tanh in fused pointwise groups, for every instruction set:
 * over the whole range of floats and all of both half types against libm in long double, and bit by
 * bit against the formula in double where it is arithmetic alone; zeros, infinities and NaN against
 * naive. prelu: test_direct_prelu.c; fused against unfused: test_direct_fused_bits.c. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/grad.h"
#include "tests/backends/activation_values.h"

TestSuite(direct_activation, .init = plan_as_usual);

/* ---- y of x; of a gradient, of dy and x ---- */

typedef enum {
    ERF,
    EXP,
    LOG,
    ELU,
    ELU_NEGATIVE,
    GELU,
    GELU_TANH,
    ELU_GRAD,
    GELU_GRAD,
    GELU_TANH_GRAD,
    RELU, /* from here on with bends, or of y */
    RELU6,
    HARD_SIGMOID,
    HARD_SWISH,
    SIGMOID_GRAD,
    TANH_GRAD,
    HARD_SIGMOID_GRAD,
    HARD_SWISH_GRAD,
    N_FUNCTION
} function;

static const double alpha = 0.7531234567891, negative_alpha = -1.5;

static adj_node *build(function f, adj_node *dy, adj_node *x)
{
    switch (f) {
    case ERF: return adj_erf(x);
    case EXP: return adj_exp(x);
    case LOG: return adj_log(x);
    case ELU: return adj_elu(x, alpha);
    case ELU_NEGATIVE: return adj_elu(x, negative_alpha);
    case GELU: return adj_gelu(x, ADJ_GELU_ERF);
    case GELU_TANH: return adj_gelu(x, ADJ_GELU_TANH);
    case ELU_GRAD: return adj_elu_grad(dy, x, alpha);
    case GELU_GRAD: return adj_gelu_grad(dy, x, ADJ_GELU_ERF);
    case GELU_TANH_GRAD: return adj_gelu_grad(dy, x, ADJ_GELU_TANH);
    case RELU: return adj_relu(x);
    case RELU6: return adj_relu6(x);
    case HARD_SIGMOID: return adj_hard_sigmoid(x);
    case HARD_SWISH: return adj_hard_swish(x);
    case SIGMOID_GRAD: return adj_sigmoid_grad(dy, x);
    case TANH_GRAD: return adj_tanh_grad(dy, x);
    case HARD_SIGMOID_GRAD: return adj_hard_sigmoid_grad(dy, x);
    default: return adj_hard_swish_grad(dy, x);
    }
}

static real root_2_by_pi(void) { return sqrtl(2 / acosl(-1)); }
static real tanh_exponent(real x) { return -2 * root_2_by_pi() * (x + 0.044715L * x * x * x); }

/* Beyond 150 the result, or what it is multiplied by, is 0 or 1 even in long double. */
static real gelu_grad(real dy, real x)
{
    if (fabsl(x) > 150)
        return x > 0 ? dy : 0 * dy;
    return dy * (0.5L * erfcl(-x * sqrtl(0.5L)) + x * root_2_by_pi() / 2 * expl(-0.5L * x * x));
}

static real gelu_tanh_grad(real dy, real x)
{
    if (fabsl(x) > 50)
        return x > 0 ? dy : 0 * dy;
    const real e = expl(tanh_exponent(x)), p = 1 / (1 + e);
    return dy * (p + 2 * x * p * (e * p) * root_2_by_pi() * (1 + 3 * 0.044715L * x * x));
}

/* Functions with bends, and those of y, are computed in double, as naive rounds them. */
static real value_of(function f, real dy, real x)
{
    const double d = (double)dy, v = (double)x;
    switch (f) {
    case ERF: return erfl(x);
    case EXP: return expl(x);
    case LOG: return logl(x);
    case ELU: return x > 0 ? x : (real)alpha * expm1l(x);
    case ELU_NEGATIVE: return x > 0 ? x : (real)negative_alpha * expm1l(x);
    case GELU: return x < -150 ? 0 : x * 0.5L * erfcl(-x * sqrtl(0.5L));
    case GELU_TANH: return x < -150 ? 0 : x / (1 + expl(tanh_exponent(x)));
    case ELU_GRAD: return x > 0 ? dy : dy * (real)alpha * expl(x);
    case GELU_GRAD: return gelu_grad(dy, x);
    case GELU_TANH_GRAD: return gelu_tanh_grad(dy, x);
    case RELU: return v <= 0 ? 0 : x;
    case RELU6: return v <= 0 ? 0 : v >= 6 ? 6 : x;
    case HARD_SIGMOID: return v <= -3 ? 0 : v >= 3 ? 1 : (real)((v + 3) / 6);
    case HARD_SWISH: return v <= -3 ? 0 : v >= 3 ? x : (real)(v * (v + 3) / 6);
    case SIGMOID_GRAD: return (real)(d * v * (1 - v));
    case TANH_GRAD: return (real)(d * (1 - v * v));
    case HARD_SIGMOID_GRAD: return fabsl(x) < 3 ? (real)(d / 6) : 0;
    default: return v <= -3 ? 0 : v >= 3 ? dy : (real)(d * (v / 3 + 0.5));
    }
}

/* ---- tests ---- */

/* A function of n values is at most so many units off; 0: and zeros have the right sign. */
static void expect_units(function k, adj_dtype dtype, int64_t n, double max, const char *isa)
{
    scoped(fixture_free) fixture f = fixture_new();
    const adj_shape shape = {1, {n}};
    adj_node *x = given(&f, dtype, shape, x_values);
    adj_node *dy = given(&f, dtype, shape, dy_values);
    adj_node *y = build(k, dy, x);
    expect_direct(&f, y, 1);
    double *got = evaluate(&f, y, "direct"), worst = -1;
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        const double a = f.value[0][i], b = f.value[1][i];
        const real want = value_of(k, (real)b, (real)a);
        double off = units(dtype, got[i], want);
        if (max == 0 && !isnan(want) && !signbit(want) != !signbit(got[i]))
            off = INFINITY;
        if (off > worst) {
            worst = off;
            at = i;
        }
    }
    cr_assert_leq(worst, max, "%d %s, %s: %g units at %.9g of %.9g: got %.9g", (int)k,
                  adj_node_op(y), isa, worst, f.value[1][at], f.value[0][at], got[at]);
    free(got);
}

static void whole_range(const char *isa)
{
    const int64_t n = sweep(x_values);
    set_dy(ADJ_F32);
    for (function k = ERF; k < N_FUNCTION; k++)
        expect_units(k, ADJ_F32, n, k < RELU ? 0.51 : 0, isa);
}

Test(direct_activation, whole_range) { for_each_isa(N_ISA, all_isas, whole_range); }

/* Computed as floats are, and rounded once more; subnormal numbers stay, also where avx512_bf16's
 * instruction would make them 0. */
static void half_types(const char *isa)
{
    static const adj_dtype halves[] = {ADJ_BF16, ADJ_F16};
    for (int d = 0; d < 2; d++) {
        const int64_t n = every_half(halves[d], x_values);
        set_dy(halves[d]);
        for (function k = ERF; k < N_FUNCTION; k++)
            expect_units(k, halves[d], n, 0.51, isa);
    }
}

Test(direct_activation, half_types) { for_each_isa(N_ROW_ISA, row_isas, half_types); }

/* Each of these x with each of these dy, bit by bit as naive but for the last places of a curve. */
static void expect_as_naive(function k, const char *isa)
{
    static const double x[] = {0,    -0.0,  1e-45, -1e-45, 1,        -1,       3,      -3,
                               6,    20,    -20,   -38,    50,       -50,      100,    -100,
                               1e30, -1e30, 3e38,  -700,   -720,     -745.1,   -745.2, -1e4,
                               2.5,  0.1,   NAN,   -0.75,  INFINITY, -INFINITY};
    static const double dy[] = {0, -0.0, 1, -1, 1e-40, 3e38, NAN, INFINITY, -INFINITY};
    enum { N_X = sizeof x / sizeof *x, N_DY = sizeof dy / sizeof *dy };
    for (int i = 0; i < N_X * N_DY; i++) {
        x_values[i] = x[i / N_DY];
        dy_values[i] = dy[i % N_DY];
    }
    scoped(fixture_free) fixture f = fixture_new();
    const adj_shape shape = {1, {N_X * N_DY}};
    adj_node *a = given(&f, ADJ_F32, shape, x_values), *b = given(&f, ADJ_F32, shape, dy_values);
    adj_node *y = build(k, b, a);
    expect_direct(&f, y, 1);
    scoped(release) double *got = evaluate(&f, y, "direct"), *want = evaluate(&f, y, "naive");
    for (int i = 0; i < N_X * N_DY; i++)
        cr_assert(units(ADJ_F32, got[i], (real)want[i]) <= 1 &&
                      (isnan(want[i]) || !signbit(got[i]) == !signbit(want[i])),
                  "%d %s, %s: of x %g and dy %g: got %.9g, naive %.9g", (int)k, adj_node_op(y), isa,
                  x_values[i], dy_values[i], got[i], want[i]);
}

static void special_values(const char *isa)
{
    for (function k = ERF; k < N_FUNCTION; k++)
        expect_as_naive(k, isa);
}

Test(direct_activation, special_values) { for_each_isa(N_ISA, all_isas, special_values); }

/* The bounds are doubles: between two floats, crossed, out of a float's range, zeros. */
static void clipping(const char *isa)
{
    static const double bounds[][2] = {
        {-1, 2.5},        {0.1, 0.3},         {-0.7, -0.1},    {2, 1},
        {0.1, -0.1},      {-INFINITY, 0.1},   {0.1, INFINITY}, {1e300, 2e300},
        {-1e300, 1e-320}, {-INFINITY, -1e39}, {-0.0, 0},       {0, 0}};
    for (size_t k = 0; k < sizeof bounds / sizeof *bounds; k++) {
        const double min = bounds[k][0], max = bounds[k][1];
        int64_t n = sweep(x_values);
        for (int side = 0; side < 2; side++) {
            float v = nextafterf(nextafterf((float)bounds[k][side], -INFINITY), -INFINITY);
            for (int i = 0; i < 5; i++, v = nextafterf(v, INFINITY))
                x_values[n++] = (double)v;
        }
        set_dy(ADJ_F32);
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given(&f, ADJ_F32, (adj_shape){1, {n}}, x_values);
        adj_node *dy = given(&f, ADJ_F32, (adj_shape){1, {n}}, dy_values);
        adj_node *y = adj_clip(x, min, max), *dx = adj_clip_grad(dy, x, min, max);
        expect_direct(&f, y, 1);
        expect_direct(&f, dx, 1);
        scoped(release) double *got = evaluate(&f, y, "direct"),
                               *passed = evaluate(&f, dx, "direct");
        for (int64_t i = 0; i < n; i++) {
            const double v = f.value[0][i], raised = v < min ? min : v;
            const float want = (float)(raised > max ? max : raised);
            cr_assert(isnan(v) ? isnan(got[i]) : memcmp(&want, &(float){(float)got[i]}, 4) == 0,
                      "%s: clip(%.9g, %g, %g) is %.9g", isa, v, min, max, got[i]);
            cr_assert_eq(passed[i], v >= min && v <= max ? f.value[1][i] : 0,
                         "%s: gradient of clip(%.9g, %g, %g): %g", isa, v, min, max, passed[i]);
        }
    }
}

Test(direct_activation, clipping) { for_each_isa(N_ISA, all_isas, clipping); }
