/* test_conv2d.c - conv2d and depthwise_conv2d_native with their adjoints: each row of a table in
 * both formats, all dtypes and on every backend, against the slow reference, as adjoints of each
 * other, and against finite differences. What is refused: test_bad_inputs.c. Each backend's
 * kernels: tests/backends/conv_rows.h and its users, test_onednn_conv.c, test_onednn_ops.c and
 * test_direct_packed_filter.c. TensorFlow's numbers, conv2d_transpose and separable_conv2d:
 * tests/conformance. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "conv_problem.h"
#include "expect.h"
#include "graph/op.h"

static const oracle_conv rows[] = {
    {1, 1, 1, 1, 1, 1, 1, .padding = ADJ_VALID},
    {2, 5, 4, 3, 3, 2, 4, .padding = ADJ_VALID},
    {2, 5, 4, 3, 3, 2, 4, .padding = ADJ_SAME},
    /* pads differ between height and width */
    {1, 6, 7, 2, 3, 3, 3, .sh = 2, .sw = 2, .padding = ADJ_SAME},
    {1, 7, 9, 2, 2, 3, 3, .sh = 3, .sw = 2},
    {1, 7, 5, 2, 1, 1, 3, .sh = 2, .sw = 3, .padding = ADJ_SAME}, /* the stride leaves inputs out */
    {1, 9, 8, 2, 3, 3, 2, .dh = 2, .dw = 3, .padding = ADJ_SAME},
    {1, 9, 9, 2, 3, 2, 2, .sh = 2, .sw = 1, .dh = 2, .dw = 3},
    /* pads wider than the kernel */
    {2, 4, 5, 2, 3, 3, 3, .sh = 2, .sw = 2, .padding = ADJ_EXPLICIT, .pad = {0, 3, 4, 2}},
    {1, 6, 6, 6, 3, 3, 4, .in = 3, .padding = ADJ_SAME},
    /* as many groups as channels */
    {2, 5, 6, 4, 2, 3, 8, .in = 1, .sh = 2, .sw = 2, .padding = ADJ_SAME},
    {1, 3, 3, 65, 1, 2, 67, .padding = ADJ_VALID}, /* more than a block */
    {1, 3, 2, 140, 2, 1, 136, .in = 70},
    {1, 2, 2, 1, 5, 5, 1, .padding = ADJ_SAME},
    {0, 4, 4, 2, 2, 2, 3, .padding = ADJ_VALID},
    /* the output sees only padding */
    {2, 0, 3, 2, 1, 1, 3, .padding = ADJ_EXPLICIT, .pad = {1, 1, 1, 1}},
    {2, 3, 4, 2, 3, 5, 3, .padding = ADJ_VALID}, /* no column of output */
};

static const oracle_conv depthwise_rows[] = {
    {1, 1, 1, 1, 1, 1, 1, .padding = ADJ_VALID},
    {2, 5, 4, 3, 3, 2, 1, .padding = ADJ_VALID},
    {2, 5, 4, 3, 3, 2, 2, .padding = ADJ_SAME},
    {1, 6, 7, 2, 3, 3, 3, .sh = 2, .sw = 2, .padding = ADJ_SAME},
    {1, 7, 9, 2, 2, 3, 1, .sh = 3, .sw = 2},
    {1, 9, 8, 2, 3, 3, 2, .dh = 2, .dw = 3, .padding = ADJ_SAME},
    /* TensorFlow's kernels ignore dilations and refuse unequal strides */
    {1, 9, 9, 2, 3, 2, 2, .sh = 2, .sw = 1, .dh = 2, .dw = 3},
    {2, 4, 5, 2, 3, 3, 2, .sh = 2, .sw = 2, .padding = ADJ_EXPLICIT, .pad = {0, 3, 4, 2}},
    {1, 3, 3, 65, 2, 2, 2, .padding = ADJ_VALID}, /* more than a block */
    {1, 2, 2, 1, 5, 5, 2, .padding = ADJ_SAME},
    {0, 4, 4, 2, 2, 2, 3, .padding = ADJ_VALID},
    {2, 0, 3, 2, 1, 1, 3, .padding = ADJ_EXPLICIT, .pad = {1, 1, 1, 1}},
    {2, 3, 4, 2, 3, 5, 3, .padding = ADJ_VALID},
};

static const struct {
    int n, depthwise;
    const oracle_conv *rows;
} tables[] = {{sizeof rows / sizeof *rows, 0, rows},
              {sizeof depthwise_rows / sizeof *depthwise_rows, 1, depthwise_rows}};

/* Each row of both tables in both formats. */
static void for_each_row(void (*expect)(oracle_conv row))
{
    for (int t = 0; t < 2; t++)
        for (int i = 0; i < tables[t].n; i++)
            for (int format = ADJ_NHWC; format <= ADJ_NCHW; format++) {
                oracle_conv row = tables[t].rows[i];
                row.depthwise = tables[t].depthwise;
                row.format = (adj_format)format;
                expect(row);
            }
}

/* Sums of small integers are exact but for the last rounding of the half types. */
static void expect_reference(oracle_conv row)
{
    for (int dtype = ADJ_F32; dtype <= ADJ_BF16; dtype++) {
        scoped(conv_problem_free) conv_problem p =
            conv_problem_new(row, (adj_dtype)dtype, INTEGERS);
        const double tolerance = dtype == ADJ_F16 ? 0x1p-11 : dtype == ADJ_BF16 ? 0x1p-8 : 0;
        for (int k = 0; k < 3; k++) {
            scoped(release) double *want = conv_problem_exact(&p, k);
            for (int b = 0; adj_backends[b] != NULL; b++)
                expect_values(&p.f, p.result[k], adj_backends[b]->name, want, tolerance, 0);
        }
    }
}

Test(conv2d, reference) { for_each_row(expect_reference); }

/* Any mix of sizes, strides, dilations and groups. */
static oracle_conv random_row(uint32_t *k, int depthwise)
{
    static const oracle_conv most = {2, 9, 9, 5, 4, 4, 4, .sh = 3, .sw = 3, .dh = 3, .dw = 3};
    const int groups = depthwise ? 1 : draw(k, 1, 3);
    oracle_conv a = draw_sizes(&most, k);
    a.depthwise = depthwise;
    a.in = a.c;
    a.c *= groups;
    a.last *= groups;
    draw_padding(&a, k);
    return a;
}

static void expect_random(int depthwise)
{
    uint32_t counter = 0;
    for (int i = 0; i < 25; i++) {
        oracle_conv row = random_row(&counter, depthwise);
        expect_reference(row);
        row.format = ADJ_NCHW;
        expect_reference(row);
    }
}

Test(conv2d, random) { expect_random(0); }
Test(depthwise_conv2d, random) { expect_random(1); }

/* <dy, y(x, w)> == <dx(w, dy), x> == <dw(x, dy), w> on integers, exactly. */
static void expect_adjoints(oracle_conv row)
{
    scoped(conv_problem_free) conv_problem p = conv_problem_new(row, ADJ_F32, INTEGERS);
    double *const *v = p.f.value, *const other[] = {v[2], v[0], v[1]};
    for (int b = 0; adj_backends[b] != NULL; b++) {
        double product[3];
        for (int k = 0; k < 3; k++) {
            double *value = evaluate(&p.f, p.result[k], adj_backends[b]->name);
            product[k] = dot(value, other[k], p.n[k]);
            free(value);
            cr_assert_eq(product[k], product[0], "%s, result %d on %s", p.text, k,
                         adj_backends[b]->name);
        }
    }
}

Test(conv2d, adjoint) { for_each_row(expect_adjoints); }

/* Finite differences of all three: those of the adjoints are the second derivatives. */
static void expect_derivatives(oracle_conv row)
{
    for (int k = 0; k < 3 && row.c < 10; k++) {
        scoped(conv_problem_free) conv_problem p = conv_problem_new(row, ADJ_F64, REALS);
        expect_gradient(&p.f, p.result[k], 0.5, 1e-11, 1e-11);
    }
}

Test(conv2d, derivatives) { for_each_row(expect_derivatives); }

/* No filter channels: a legal, empty filter gradient, and zeros behind it. */
Test(conv2d, empty_filter_gradient)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_integers(&f, ADJ_F32, (adj_shape){4, {1, 3, 3, 2}}, 1, 9);
    adj_node *dy = given(&f, ADJ_F32, (adj_shape){4, {1, 2, 2, 0}}, NULL);
    adj_node *dw = adj_conv2d_backprop_filter(x, (adj_shape){4, {2, 2, 2, 0}}, dy, NULL);
    cr_assert_not_null(dw, "%s", adj_graph_message(f.g));
    expect_exact(&f, gradient_of(dw, dw, x), (double[18]){0});
}
