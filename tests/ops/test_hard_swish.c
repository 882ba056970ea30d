/* test_hard_swish.c - hard_swish and its gradient op: literal values of the formula that PyTorch's
 * documentation gives, a plain loop, differences, and what is beyond the bends. */
#include <math.h>

#include "expect.h"

enum { N = 8 };
static const double x_values[N] = {-4, -2, -1, -0.5, 0.25, 1, 2.5, 7};
static const double dy_values[N] = {1, -2, 3, 0.5, -1, 2, 4, -3};
static const double y_values[N] = {0,
                                   -0.3333333333333333,
                                   -0.3333333333333333,
                                   -0.20833333333333334,
                                   0.13541666666666666,
                                   0.6666666666666666,
                                   2.2916666666666665,
                                   7.0};
static const double dx_values[N] = {0.0,
                                    0.33333333333333326,
                                    0.5,
                                    0.16666666666666669,
                                    -0.5833333333333334,
                                    1.6666666666666665,
                                    5.333333333333334,
                                    -3.0};

static double value(double x) { return x * fmin(fmax(x + 3, 0), 6) / 6; }

Test(hard_swish, literal_numbers)
{
    for (int p = 0; p < N_PRECISIONS; p++) {
        const precision *t = &precisions[p];
        fixture f = fixture_new();
        adj_node *x = given(&f, t->dtype, (adj_shape){1, {N}}, x_values), *dx;
        adj_node *dy = given(&f, t->dtype, (adj_shape){1, {N}}, dy_values);
        adj_node *y = adj_hard_swish(x);
        expect_values(&f, y, "naive", y_values, t->rtol, t->rtol / 8);
        cr_assert_eq(adj_grad(y, dy, 1, &x, &dx), ADJ_OK);
        expect_values(&f, dx, "naive", dx_values, 2 * t->rtol, 4 * t->rtol);
        fixture_free(&f);
    }
}

Test(hard_swish, every_shape_against_a_loop)
{
    const adj_shape shapes[] = {{0}, {2, {3, 0}}, {4, {2, 3, 2, 5}}, {1, {1025}}, {2, {200, 201}}};
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int s = 0; s < 5; s++)
            expect_function(adj_hard_swish, value, precisions[p], shapes[s], -8, 8);
}

/* x away from the bends at -3 and 3 by more than the step; first, second and third derivative. */
Test(hard_swish, derivatives_against_differences)
{
    const double x_apart[] = {-5, -2.2, -0.4, 0.3, 0.9, 2.2, 3.5, 6.5};
    fixture f = fixture_new();
    adj_node *x = given(&f, ADJ_F64, (adj_shape){2, {2, 4}}, x_apart), *dx, *ddx;
    adj_node *y = adj_hard_swish(x);
    expect_gradient(&f, y, "naive", 1e-5, 1e-7, 1e-9);
    cr_assert_eq(adj_grad(y, f.in[1], 1, &x, &dx), ADJ_OK); /* in[1]: dy, of expect_gradient */
    expect_gradient(&f, dx, "naive", 1e-5, 1e-7, 1e-9);
    cr_assert_eq(adj_grad(dx, f.in[2], 1, &x, &ddx), ADJ_OK);
    expect_gradient(&f, ddx, "naive", 1e-5, 1e-7, 1e-9);
    fixture_free(&f);
}

Test(hard_swish, nan_and_infinity)
{
    const double special[] = {NAN, INFINITY, -INFINITY};
    fixture f = fixture_new();
    adj_node *y = adj_hard_swish(given(&f, ADJ_F32, (adj_shape){1, {3}}, special));
    double *got = evaluate(&f, y, "naive");
    cr_expect(isnan(got[0]) && got[1] == INFINITY && got[2] == 0, "%g %g %g", got[0], got[1],
              got[2]);
    free(got);
    fixture_free(&f);
}

Test(hard_swish, wrong_operands)
{
    adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){1, {4}});
    cr_expect_null(adj_hard_swish(NULL));
    cr_expect_null(adj_hard_swish_grad(x, adj_input(g, "z", ADJ_F32, (adj_shape){1, {5}})));
    cr_expect_eq(adj_graph_status(g), ADJ_ESHAPE);
    cr_expect_str_eq(adj_graph_message(g),
                     "hard_swish_grad: gradients and features differ in shape "
                     "(got [4], expected [5])");
    adj_graph_free(g);
    g = adj_graph_new();
    cr_expect_null(adj_hard_swish(adj_input(g, "i", ADJ_I32, (adj_shape){1, {4}})));
    cr_expect_eq(adj_graph_status(g), ADJ_EDTYPE);
    adj_graph_free(g);
}
