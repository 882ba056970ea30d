/* test_cast.c - the same numbers in another dtype; stop_gradient. */
#include <math.h>

#include "expect.h"
#include "tests/oracle.h"

static double as(adj_dtype dtype, double v)
{
    if (dtype != ADJ_I32)
        return round_to_type(dtype, v);
    return isnan(v) ? 0 : trunc(fmin(fmax(v, -2147483648.0), 2147483647));
}

/* Halfway cases of every type, what rounding twice gets wrong, the ends of every range: the second
 * and third row of f16, the third of bf16, the next of f32, the last of i32. */
static const double values[6][6] = {
    {0, -0.0, 1, -1.5, 2.999, -2.999},
    {1 + 0x1p-11, 1 + 0x3p-11, 1 + 0x1p-11 + 0x1p-40, 65519, 65520, 0x1p-25},
    {0x1.8p-25, 0x1p-14, 0x1.ffcp-15, 0x1p-24, 1 + 0x1p-8, 1 + 0x1p-8 + 0x1p-30},
    {1 + 0x1p-24, 1 + 0x3p-24, 1 + 0x1p-24 + 0x1p-50, 3e38, 3.4e38, 3.5e38},
    {0x1p-149, 0x1p-150, 1e-310, -1e300, INFINITY, -INFINITY},
    {2147483647, 2147483648.0, -2147483648.0, -2147483649.0, 16777217, NAN},
};
enum { N = 36 };

Test(cast, every_pair_against_a_slow_rounding)
{
    for (int from = 0; from < N_DTYPES; from++)
        for (int to = 0; to < N_DTYPES; to++) {
            if (dtypes[from] == ADJ_I32)
                continue;
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *x = given(&f, dtypes[from], (adj_shape){1, {N}}, values[0]);
            double want[N];
            for (int i = 0; i < N; i++)
                want[i] = as(dtypes[to], as(dtypes[from], values[i / 6][i % 6]));
            expect_exact(&f, adj_cast(x, dtypes[to]), want);
        }
}

Test(cast, from_integers)
{
    const double integers[] = {0,     1,     -7,       2049,          257,
                               65519, 70000, 16777217, -2147483648.0, 2147483647};
    for (int to = 0; to < N_DTYPES; to++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given(&f, ADJ_I32, (adj_shape){2, {5, 2}}, integers);
        double want[10];
        for (int i = 0; i < 10; i++)
            want[i] = as(dtypes[to], integers[i]);
        expect_exact(&f, adj_cast(x, dtypes[to]), want);
    }
}

/* By hand. */
Test(cast, literal_numbers)
{
    const double x[] = {1.0009765625, 3.14159265358979, -2.5, 65504};
    const struct {
        adj_dtype to;
        double want[4];
    } cases[] = {
        {ADJ_F64, {1.0009765625, 3.14159265358979, -2.5, 65504}},
        {ADJ_F32, {1.0009765625, 3.1415927410125732, -2.5, 65504}},
        {ADJ_F16, {1.0009765625, 3.140625, -2.5, 65504}},
        {ADJ_BF16, {1, 3.140625, -2.5, 65536}},
        {ADJ_I32, {1, 3, -2, 65504}},
    };
    for (int i = 0; i < N_DTYPES; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *v = given(&f, ADJ_F64, (adj_shape){2, {2, 2}}, x);
        expect_exact(&f, adj_cast(v, cases[i].to), cases[i].want);
    }
}

/* Between floats a gradient is cast back; integers stop it. */
Test(cast, gradient)
{
    const double dy[] = {1, -2, 3}, none[] = {0, 0, 0};
    for (int from = 0; from < 4; from++)
        for (int to = 0; to < 4; to++) {
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *x = given_integers(&f, dtypes[from], (adj_shape){1, {3}}, -2, 2);
            adj_node *d = given(&f, dtypes[to], (adj_shape){1, {3}}, dy);
            expect_exact(&f, gradient_of(adj_cast(x, dtypes[to]), d, x), dy);
            expect_adjoint(&f, adj_cast(x, dtypes[to]), 1);
            d = given(&f, dtypes[from], (adj_shape){1, {3}}, dy);
            adj_node *there_and_back = adj_cast(adj_cast(x, ADJ_I32), dtypes[from]);
            expect_exact(&f, gradient_of(there_and_back, d, x), none);
        }
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_random(&f, ADJ_F64, (adj_shape){1, {3}}, -1, 1);
    expect_gradient(&f, adj_cast(x, ADJ_F64), 0.5, 1e-12, 1e-12);
}

/* y = x stop_gradient(x): dy/dx is x, not 2x. The values pass in every dtype. */
Test(cast, stop_gradient)
{
    const double x[] = {1, -2, 3}, ones[] = {1, 1, 1};
    for (int p = 0; p < N_DTYPES; p++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *v = given(&f, dtypes[p], (adj_shape){1, {3}}, x);
        expect_exact(&f, adj_stop_gradient(v), x);
        if (dtypes[p] != ADJ_I32) {
            adj_node *d = given(&f, dtypes[p], (adj_shape){1, {3}}, ones);
            expect_exact(&f, gradient_of(adj_mul(v, adj_stop_gradient(v)), d, v), x);
        }
    }
}

/* A fill of 0.1 holds what its dtype made of it, in one rounding. */
Test(cast, fills_keep_their_rounding)
{
    const double numbers[] = {0.1, 0.5, 1e6, 1 + 0x1p-11 + 0x1p-30, 1 + 0x1p-8 + 0x1p-30, -7};
    for (int from = 0; from < N_DTYPES; from++)
        for (int to = 0; to < N_DTYPES; to++)
            for (int i = 0; i < 6; i++) {
                scoped(fixture_free) fixture f = fixture_new();
                adj_node *y = adj_cast(adj_fill(f.g, dtypes[from], (adj_shape){1, {1}}, numbers[i]),
                                       dtypes[to]);
                const double want = as(dtypes[to], as(dtypes[from], numbers[i]));
                expect_exact(&f, y, &want);
            }
}

Test(cast, refusals)
{
    expect_refused(adj_cast(of_type("f32[4]"), (adj_dtype)9), ADJ_EARG, "cast|dtype|9");
    cr_assert_null(adj_cast(NULL, ADJ_F32));
    cr_assert_null(adj_stop_gradient(NULL));
}
