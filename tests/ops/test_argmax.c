/* test_argmax.c - the index of the largest element along each axis. */
#include <math.h>
#include <string.h>

#include "expect.h"

Test(argmax, literal_numbers)
{
    const double x[] = {1, 4, 4, -2, 3, 0.5, 7, -1, NAN, INFINITY, NAN, 2};
    const struct {
        int axis;
        double want[6];
    } cases[] = {
        {2, {1, 1, 2, 1}}, {-1, {1, 1, 2, 1}}, {1, {0, 0, 0, 1, 1, 0}}, {0, {1, 0, 1, 1, 1, 1}}};
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int k = 0; k < 4; k++) {
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *v = given(&f, precisions[p].dtype, (adj_shape){3, {2, 2, 3}}, x);
            adj_node *y = adj_argmax(v, cases[k].axis);
            cr_assert_eq(adj_node_type(y).dtype, ADJ_I32);
            expect_values(&f, y, "naive", cases[k].want, 0, 0);
        }
}

/* NaN is the largest, and of several the first. */
Test(argmax, nan)
{
    scoped(fixture_free) fixture f = fixture_new();
    const double x[] = {1, NAN, INFINITY, NAN};
    adj_node *v = given(&f, ADJ_F32, (adj_shape){1, {4}}, x);
    expect_values(&f, adj_argmax(v, 0), "naive", (double[]){1}, 0, 0);
}

/* Many rows, which several threads share, against a loop. */
Test(argmax, rows_against_a_loop)
{
    enum { ROWS = 3000, N = 17 };
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *v = given_integers(&f, ADJ_F32, (adj_shape){2, {ROWS, N}}, -9, 9);
    double want[ROWS] = {0};
    for (int r = 0; r < ROWS; r++)
        for (int i = 1; i < N; i++)
            if (f.value[0][r * N + i] > f.value[0][r * N + (int)want[r]])
                want[r] = i;
    expect_values(&f, adj_argmax(v, 1), "onednn", want, 0, 0);
}

Test(argmax, refuses)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    cr_expect_null(adj_argmax(adj_input(g, "x", ADJ_F32, (adj_shape){2, {3, 4}}), 2));
    expect_text(adj_graph_message(g), "axis is out of range (got 2, expected -2 to 1)");
    scoped(release_graph) adj_graph *h = adj_graph_new();
    cr_expect_null(adj_argmax(adj_input(h, "x", ADJ_F32, (adj_shape){2, {3, 0}}), 1));
    cr_expect_null(adj_argmax(NULL, 0));
}
