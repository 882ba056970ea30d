/* test_elementwise_unary.c - neg, scale, square, sqrt, exp, log. */
#include <math.h>

#include "expect.h"

static adj_node *scale_by_three(adj_node *x) { return adj_scale(x, 3); }
static double neg(double x) { return -x; }
static double three_times(double x) { return 3 * x; }
static double squared(double x) { return x * x; }

typedef struct {
    const char *name;
    adj_node *(*build)(adj_node *x);
    double (*value)(double x);
    double literal[4]; /* of 0.25, 1, 2, 9: PyTorch's */
} unary;

static const unary ops[] = {
    {"neg", adj_neg, neg, {-0.25, -1, -2, -9}},
    {"scale", scale_by_three, three_times, {0.75, 3, 6, 27}},
    {"square", adj_square, squared, {0.0625, 1, 4, 81}},
    {"sqrt", adj_sqrt, sqrt, {0.5, 1, 1.4142135623730951, 3}},
    {"exp",
     adj_exp,
     exp,
     {1.2840254166877414, 2.718281828459045, 7.38905609893065, 8103.083927575384}},
    {"log", adj_log, log, {-1.3862943611198906, 0, 0.6931471805599453, 2.1972245773362196}},
};
enum { N_OPS = sizeof ops / sizeof *ops };

Test(elementwise_unary, literal_numbers)
{
    const double x[] = {0.25, 1, 2, 9};
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int k = 0; k < N_OPS; k++) {
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *y = ops[k].build(given(&f, precisions[p].dtype, (adj_shape){1, {4}}, x));
            expect_values(&f, y, "naive", ops[k].literal, precisions[p].rtol, 0);
        }
}

Test(elementwise_unary, every_shape_against_a_loop)
{
    const adj_shape shapes[] = {{0}, {1, {0}}, {1, {1}}, {3, {2, 3, 5}}, {1, {1024}}, {1, {40001}}};
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int s = 0; s < 6; s++)
            for (int k = 0; k < N_OPS; k++)
                expect_function(ops[k].build, ops[k].value, precisions[p], shapes[s], 0.5, 4);
}

Test(elementwise_unary, adjoint_on_integers)
{
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int k = 0; k < 2; k++) { /* the linear ones */
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *x = given_integers(&f, precisions[p].dtype, (adj_shape){2, {3, 4}}, -3, 3);
            expect_adjoint(&f, ops[k].build(x), 1);
        }
}

Test(elementwise_unary, first_and_second_derivative_against_differences)
{
    for (int k = 0; k < N_OPS; k++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given_random(&f, ADJ_F64, (adj_shape){2, {3, 4}}, 0.5, 2), *dx;
        expect_gradient(&f, ops[k].build(x), "naive", 1e-5, 1e-7, 1e-8);
        cr_assert_eq(adj_grad(ops[k].build(x), f.in[1], 1, &x, &dx), ADJ_OK); /* in[1]: dy */
        expect_gradient(&f, dx, "naive", 1e-5, 1e-7, 1e-8);
    }
}

static adj_node *integers(fixture *f)
{
    return adj_exp(given_integers(f, ADJ_I32, (adj_shape){1, {4}}, 0, 1));
}

static adj_node *nan_factor(fixture *f)
{
    return adj_scale(given_random(f, ADJ_F32, (adj_shape){1, {4}}, 0, 1), NAN);
}

Test(elementwise_unary, refusals)
{
    const refusal list[] = {{integers, ADJ_EDTYPE, {"exp", "i32"}},
                            {nan_factor, ADJ_EARG, {"scale", "factor", "nan"}}};
    expect_refusals(2, list);
    for (int k = 0; k < N_OPS; k++)
        cr_assert_null(ops[k].build(NULL));
}

/* Simplifying must not change a bit. A fill's value is rounded before it is scaled (the last value
 * and the last factor, in f16), and for halves the factor is rounded to float (1 + 2^-11 + 2^-30,
 * and the next). */
Test(elementwise_unary, scaled_fills_keep_their_rounding)
{
    const double values[] = {0.5, 0.1, 3, 0, 1, (2 - 0x1p-10) / (2 - 0x1p-9)};
    const double factors[] = {
        1, 2, 0.1, -4, 1.0 / 3, 10, 1 + 0x1p-11 + 0x1p-30, 1 + 0x1p-8 + 0x1p-30, 2 - 0x1p-9};
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int v = 0; v < 6; v++)
            for (int k = 0; k < 9; k++) {
                scoped(fixture_free) fixture f = fixture_new();
                adj_shape two = {1, {2}};
                adj_node *x = given(&f, precisions[p].dtype, two, (double[]){values[v], values[v]});
                scoped(release) double *want = evaluate(&f, adj_scale(x, factors[k]), "naive");
                adj_node *fill = adj_fill(f.g, precisions[p].dtype, two, values[v]);
                expect_values(&f, adj_scale(fill, factors[k]), "naive", want, 0, 0);
            }
}
