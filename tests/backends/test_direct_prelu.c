/* test_direct_prelu.c - prelu, its gradient and that of its slopes in fused pointwise groups, for
 * every instruction set: over the whole range of floats and all of both half types, bit by bit;
 * slopes for channels and one for all; sums together with others. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "exec/report.h"
#include "graph/op.h"
#include "ops/grad.h"
#include "tests/backends/activation_values.h"
#include "tests/isa.h"
#include "tests/plan.h"

TestSuite(direct_prelu, .init = plan_as_usual);

/* y and dx, of a slope for each channel or one for all. */
static void prelu_of(adj_dtype dtype, int64_t pixels, int64_t channels, int64_t slopes,
                     const char *isa)
{
    scoped(fixture_free) fixture f = fixture_new();
    const adj_shape full = {2, {pixels, channels}};
    adj_node *x = given(&f, dtype, full, x_values), *dy = given(&f, dtype, full, dy_values);
    adj_node *slope = given_random(&f, dtype, (adj_shape){1, {slopes}}, -2, 2);
    adj_node *node[] = {adj_prelu(x, slope, ADJ_NHWC), adj_prelu_grad(dy, x, slope, ADJ_NHWC)};
    for (int k = 0; k < 2; k++) {
        expect_direct(&f, node[k], 1);
        scoped(release) double *got = evaluate(&f, node[k], "direct");
        for (int64_t i = 0; i < pixels * channels; i++) {
            const double v = f.value[0][i], of = k == 0 ? v : f.value[1][i];
            const real want = v > 0 ? of : of * f.value[2][slopes == 1 ? 0 : i % channels];
            cr_assert(units(dtype, got[i], want) <= (dtype == ADJ_F32 ? 0 : 0.5) &&
                          (isnan(want) || !signbit(got[i]) == !signbit(want)),
                      "%s, %s: [%ld, %ld] at %ld, x %g: got %g, want %g", adj_node_op(node[k]), isa,
                      (long)pixels, (long)channels, (long)i, v, got[i], (double)want);
        }
    }
}

static void y_and_dx(const char *isa)
{
    static const int64_t sizes[][2] = {{1, 1}, {700, 3}, {641, 8}, {33, 64}, {6, 1000}, {1600, 37}};
    static const adj_dtype dtypes[] = {ADJ_F32, ADJ_BF16, ADJ_F16};
    for (int d = 0; d < 3; d++) {
        const int64_t n = d == 0 ? sweep(x_values) : every_half(dtypes[d], x_values);
        for (int64_t i = n; i < MAX_VALUES; i++)
            x_values[i] = x_values[i - n];
        set_dy(dtypes[d]);
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            prelu_of(dtypes[d], sizes[k][0], sizes[k][1], sizes[k][1], isa);
            prelu_of(dtypes[d], sizes[k][0], sizes[k][1], 1, isa);
        }
    }
}

Test(direct_prelu, y_and_dx) { for_each_isa(N_ISA, all_isas, y_and_dx); }

/* The slope's gradient, together with the dy that it is of: sums of integers are exact. */
static void slope_of(adj_dtype dtype, int64_t pixels, int64_t channels, int64_t slopes,
                     const char *isa)
{
    scoped(fixture_free) fixture f = fixture_new();
    const adj_shape full = {2, {pixels, channels}};
    adj_node *x = given_integers(&f, dtype, full, -3, 3);
    adj_node *dy = adj_neg(given_integers(&f, dtype, full, -3, 3));
    adj_node *ds = adj_prelu_grad_slope(dy, x, slopes, ADJ_NHWC);
    expect_direct(&f, ds, 1);
    scoped(release) double *got = evaluate(&f, ds, "direct");
    for (int64_t k = 0; k < slopes; k++) {
        double sum = 0;
        for (int64_t i = k; i < pixels * channels; i += slopes)
            sum += f.value[0][i] > 0 ? 0 : -f.value[1][i] * f.value[0][i];
        cr_assert_eq(units(dtype, got[k], (real)sum), 0, "%s: [%ld, %ld], slope %ld: %g, not %g",
                     isa, (long)pixels, (long)channels, (long)k, got[k], sum);
    }
}

static void slope_gradient(const char *isa)
{
    static const int64_t sizes[][2] = {{1, 1},    {700, 3},   {641, 8},   {33, 64},
                                       {6, 1000}, {3000, 37}, {60000, 16}};
    static const adj_dtype dtypes[] = {ADJ_F32, ADJ_BF16, ADJ_F16};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (int d = 0; d < 3; d++) {
            slope_of(dtypes[d], sizes[k][0], sizes[k][1], sizes[k][1], isa);
            slope_of(dtypes[d], sizes[k][0], sizes[k][1], 1, isa);
        }
}

Test(direct_prelu, slope_gradient) { for_each_isa(N_ISA, all_isas, slope_gradient); }

/* Products beyond float's range, whose sum is within it. NumPy, in float64: np.where(x > 0, 0,
 * dy * x).sum() of the eight rows. */
static void wide_products_of(adj_dtype dtype, int64_t pixels, int64_t channels, int64_t slopes,
                             const char *isa)
{
    static const double dys[] = {0x1p34, -1.5, -0x1.fep33, 3, -0x1p64, 0x1p33, 0x1.fep63, 7},
                        xs[] = {-0x1p95, -2, -0x1p95, 5, -0x1p66, 0x1p102, -0x1p66, -1};
    const double of_eight = 2.658455991569832e+36;
    static double x_rows[MAX_VALUES], dy_rows[MAX_VALUES];
    scoped(fixture_free) fixture f = fixture_new();
    const adj_shape full = {2, {pixels, channels}};
    for (int64_t i = 0; i < pixels * channels; i++) {
        x_rows[i] = xs[i / channels % 8];
        dy_rows[i] = dys[i / channels % 8];
    }
    adj_node *x = given(&f, dtype, full, x_rows), *dy = given(&f, dtype, full, dy_rows);
    adj_node *ds = adj_prelu_grad_slope(dy, x, slopes, ADJ_NHWC);
    expect_direct(&f, ds, 1);
    scoped(release) double *got = evaluate(&f, ds, "direct");
    const double want = of_eight * (double)(pixels / 8 * channels / slopes);
    for (int64_t k = 0; k < slopes; k++)
        cr_assert(units(dtype, got[k], (real)want) <= 1, "%s: [%ld, %ld], slope %ld: %g, not %g",
                  isa, (long)pixels, (long)channels, (long)k, got[k], want);
}

static void wide_products(const char *isa)
{
    static const int64_t sizes[][2] = {{8, 1}, {800, 1}, {64, 3}, {320, 3}, {8, 37}, {8, 64}};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (int is_half = 0; is_half < 2; is_half++) {
            const adj_dtype dtype = is_half ? ADJ_BF16 : ADJ_F32;
            wide_products_of(dtype, sizes[k][0], sizes[k][1], sizes[k][1], isa);
            wide_products_of(dtype, sizes[k][0], sizes[k][1], 1, isa);
        }
}

Test(direct_prelu, wide_products) { for_each_isa(N_ISA, all_isas, wide_products); }

/* One slope knows no channels: a row may be longer than a group has them. */
static void one_slope_of_long_rows(const char *isa) { slope_of(ADJ_F32, 64, 5000, 1, isa); }

Test(direct_prelu, one_slope_of_long_rows)
{
    for_each_isa(N_ISA, all_isas, one_slope_of_long_rows);
}

/* y's plan on direct begins with a group of n_node nodes. */
static void expect_first_group(fixture *f, adj_node *y, int steps, int n_node)
{
    const adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .backend = "direct"};
    expect_direct(f, y, steps);
    scoped(release_exec) adj_exec *e = plan_of(f->g, &o);
    const adj_step_info s = adj_exec_step_at(e, 0);
    expect_text(s.impl, "fused_pointwise");
    cr_assert_eq(s.n_node, n_node, "%d nodes", s.n_node);
}

static void expect_as_naive(fixture *f, adj_node *y, int64_t n)
{
    scoped(release) double *got = evaluate(f, y, "direct"), *want = evaluate(f, y, "naive");
    expect_close(got, want, n, 0, 0, adj_node_op(y));
}

/* The sum of one slope in a group that has channels, for another's sake. */
static void one_slope_among_channels(const char *isa)
{
    (void)isa;
    scoped(fixture_free) fixture f = fixture_new();
    const adj_shape full = {2, {300, 5}};
    adj_node *x = given_integers(&f, ADJ_F32, full, -3, 3);
    adj_node *dy = adj_neg(given_integers(&f, ADJ_F32, full, -3, 3));
    adj_node *y =
        adj_sub(adj_bias_add_grad(dy, ADJ_NHWC), adj_prelu_grad_slope(dy, x, 1, ADJ_NHWC));
    expect_first_group(&f, y, 2, 3);
    expect_as_naive(&f, y, 5);
}

Test(direct_prelu, one_slope_among_channels)
{
    for_each_isa(N_ISA, all_isas, one_slope_among_channels);
}

/* A group of the maximum number of nodes and loops: each sum is two nodes, and sums are joined by
 * their common x. */
static void many_slopes(const char *isa)
{
    enum { NODES = 16 };
    (void)isa;
    scoped(fixture_free) fixture f = fixture_new();
    const adj_shape full = {2, {300, 5}};
    adj_node *x = adj_neg(given_integers(&f, ADJ_F32, full, -3, 3)), *ds[NODES - 1];
    for (int i = 0; i < NODES - 1; i++) {
        adj_node *dy = given_integers(&f, ADJ_F32, full, -3, 3);
        ds[i] = adj_prelu_grad_slope(dy, x, 5, ADJ_NHWC);
    }
    adj_node *all = ds[0];
    for (int i = 1; i < NODES - 1; i++)
        all = adj_sub(all, ds[i]);
    expect_first_group(&f, all, 2, NODES);
    expect_as_naive(&f, all, 5);
}

Test(direct_prelu, many_slopes) { for_each_isa(N_ISA, all_isas, many_slopes); }
