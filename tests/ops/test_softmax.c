/* test_softmax.c - softmax and log_softmax against PyTorch's numbers, a reference written here, and
 * finite differences to second order. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "harness.h"
#include "graph/op.h"

static const adj_dtype dtypes[] = {ADJ_F32, ADJ_F64, ADJ_F16, ADJ_BF16};
enum { DTYPES = 4 };

static double rounding(adj_dtype dtype)
{
    switch (dtype) {
    case ADJ_F64: return 1e-11;
    case ADJ_F32: return 1e-6;
    case ADJ_F16: return 4e-3;
    default: return 3e-2;
    }
}

/* PyTorch 1.13 in float64. */
Test(softmax, numbers)
{
    const adj_shape shape = {2, {3, 4}};
    const double z[] = {1, 2, 3, 4, -1, 0.5, 0, -2, 10, -10, 5, 9.5};
    const double d_value[] = {1, -1, 2, 0.5, 0.25, 1, -0.5, 2, -1, 3, 1, -2};
    const double soft[] = {0.0320586032801, 0.087144318742,    0.23688281809,    0.643914259888,
                           0.116715390713,  0.523082090899,    0.317265325677,   0.0429371927116,
                           0.619859578598,  1.27762581583e-09, 0.00417658098747, 0.375963839136};
    const double logs[] = {-3.44018969856,  -2.44018969856,  -1.44018969856, -0.440189698561,
                           -2.14801686567,  -0.648016865669, -1.14801686567, -3.14801686567,
                           -0.478262312726, -20.4782623127,  -5.47826231273, -0.978262312726};
    const double dsoft[] = {0.00831481389838, -0.151686629957,   0.298321444437,   -0.154949628379,
                            -0.0267864927672, 0.272262836307,    -0.310762230795,  0.0652858872552,
                            0.227866996266,   5.58017214811e-09, 0.00988851771862, -0.237755519565};
    const double dlogs[] = {0.9198534918,     -1.21786079686,  1.40779295478,  -1.10978564972,
                            -0.0709673244608, -0.438475749971, -1.37247964561, 1.88192272004,
                            -1.6198595786,    2.99999999872,   0.995823419013, -2.37596383914};
    for (int i = 0; i < DTYPES; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        double r = rounding(dtypes[i]);
        adj_node *x = given(&f, dtypes[i], shape, z), *d = given(&f, dtypes[i], shape, d_value);
        adj_node *y = adj_softmax(x), *ly = adj_log_softmax(x), *dx, *dlx;
        adj_grad(y, d, 1, &x, &dx);
        adj_grad(ly, d, 1, &x, &dlx);
        expect_values(&f, y, "naive", soft, r, r / 100);
        expect_values(&f, ly, "naive", logs, r, r / 100);
        expect_values(&f, dx, "naive", dsoft, r, r);
        expect_values(&f, dlx, "naive", dlogs, r, r);
    }
}

/* By definition in long double, without taking the maximum out. */
Test(softmax, reference)
{
    const adj_shape shapes[] = {{1, {7}}, {2, {5, 1}}, {3, {3, 4, 11}}, {2, {200, 37}}};
    for (int i = 0; i < 4 * DTYPES; i++) {
        adj_shape s = shapes[i / DTYPES];
        int64_t n = adj_shape_elems(s), k = s.dim[s.rank - 1];
        double r = rounding(dtypes[i % DTYPES]), *soft = malloc(n * 8), *logs = malloc(n * 8);
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given_random(&f, dtypes[i % DTYPES], s, -6, 6);
        for (int64_t j = 0; j < n; j++) {
            long double sum = 0;
            for (int64_t l = j / k * k; l < (j / k + 1) * k; l++)
                sum += expl(f.value[0][l]);
            soft[j] = (double)(expl(f.value[0][j]) / sum);
            logs[j] = (double)(f.value[0][j] - logl(sum));
        }
        expect_values(&f, adj_softmax(x), "naive", soft, r, 1e-7);
        expect_values(&f, adj_log_softmax(x), "naive", logs, r, r / 10);
        free(soft);
        free(logs);
    }
}

/* Nothing overflows; a NaN spreads over its row only; -inf is probability 0. */
Test(softmax, extremes)
{
    const double z[] = {60000, -60000, 60000, 1, NAN, 1, 0, -INFINITY, 0};
    const double soft[] = {0.5, 0, 0.5, NAN, NAN, NAN, 0.5, 0, 0.5};
    for (int i = 0; i < DTYPES; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given(&f, dtypes[i], (adj_shape){2, {3, 3}}, z);
        expect_values(&f, adj_softmax(x), "naive", soft, 0, 0);
        scoped(release) double *logs = evaluate(&f, adj_log_softmax(x), "naive");
        cr_assert(isnan(logs[3]) && logs[7] == -INFINITY && fabs(logs[8] + log(2)) < 4e-3);
    }
}

/* One logit too large for exp, at each place of rows of each length: it has all of the
 * probability. */
Test(softmax, large_at_each_place)
{
    enum { LONGEST = 19 };
    for (int t = 0; t < DTYPES; t++)
        for (int k = 1; k <= LONGEST; k++) {
            const adj_shape s = {2, {k, k}};
            double z[LONGEST * LONGEST], soft[LONGEST * LONGEST], logs[LONGEST * LONGEST];
            for (int i = 0; i < k * k; i++) {
                const int is_large = i % k == i / k;
                z[i] = is_large ? 2000 : 0;
                soft[i] = is_large ? 1 : 0;
                logs[i] = is_large ? 0 : -2000;
            }
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *x = given(&f, dtypes[t], s, z);
            expect_values(&f, adj_softmax(x), "naive", soft, 0, 0);
            expect_values(&f, adj_log_softmax(x), "naive", logs, 0, 0);
        }
}

Test(softmax, gradients)
{
    for (int second = 0; second < 2; second++)
        for (int logs = 0; logs < 2; logs++) {
            scoped(fixture_free) fixture f = fixture_new();
            adj_shape s = {3, {2, 2, 5}};
            adj_node *x = given_random(&f, ADJ_F64, s, -2, 2), *dx;
            adj_node *y = logs ? adj_log_softmax(x) : adj_softmax(x);
            if (second) {
                adj_node *d = given_random(&f, ADJ_F64, s, -1, 1);
                cr_assert_eq(adj_grad(y, d, 1, &x, &dx), ADJ_OK);
                y = dx;
            }
            expect_gradient(&f, y, "naive", 1e-5, 1e-6, 1e-8);
        }
}

Test(softmax, limits)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *empty = given(&f, ADJ_F32, (adj_shape){2, {3, 0}}, NULL);
    free(evaluate(&f, adj_softmax(empty), "naive"));
    cr_assert_null(adj_softmax(NULL));
    cr_assert_null(adj_softmax(given(&f, ADJ_F32, (adj_shape){0}, (double[]){1})));
    expect_error(f.g, ADJ_ESHAPE, (const char *[]){"softmax", "rank 0", NULL});
    fixture_free(&f);
    f = fixture_new();
    cr_assert_null(adj_log_softmax(adj_input(f.g, "i", ADJ_I32, (adj_shape){1, {3}})));
    expect_error(f.g, ADJ_EDTYPE, (const char *[]){"log_softmax", NULL});
}
