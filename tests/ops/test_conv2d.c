/* test_conv2d.c - conv2d, its two adjoints, and conv2d_transpose and separable_conv2d made of them.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "adjoint_ext.h"
#include "conv_cases.h"

static const conv_triple triple = {adj_conv2d, adj_conv2d_backprop_input,
                                   adj_conv2d_backprop_filter};

static const oracle_conv rows[] = {
    {.n = 1, .h = 1, .w = 1, .c = 1, .kh = 1, .kw = 1, .in = 1, .last = 1},
    {.n = 2, .h = 5, .w = 4, .c = 3, .kh = 3, .kw = 2, .in = 3, .last = 4},
    {.n = 2, .h = 5, .w = 4, .c = 3, .kh = 3, .kw = 2, .in = 3, .last = 4, .padding = ADJ_SAME},
    {.n = 1,
     .h = 6,
     .w = 7,
     .c = 2,
     .kh = 3,
     .kw = 3,
     .in = 2,
     .last = 3,
     .sh = 2,
     .sw = 2,
     .padding = ADJ_SAME}, /* pads differ between height and width */
    {.n = 1, .h = 7, .w = 9, .c = 2, .kh = 2, .kw = 3, .in = 2, .last = 3, .sh = 3, .sw = 2},
    {.n = 1,
     .h = 7,
     .w = 5,
     .c = 2,
     .kh = 1,
     .kw = 1,
     .in = 2,
     .last = 3,
     .sh = 2,
     .sw = 3,
     .padding = ADJ_SAME}, /* the stride leaves inputs out */
    {.n = 1,
     .h = 9,
     .w = 8,
     .c = 2,
     .kh = 3,
     .kw = 3,
     .in = 2,
     .last = 2,
     .dh = 2,
     .dw = 3,
     .padding = ADJ_SAME},
    {.n = 1,
     .h = 9,
     .w = 9,
     .c = 2,
     .kh = 3,
     .kw = 2,
     .in = 2,
     .last = 2,
     .sh = 2,
     .sw = 1,
     .dh = 2,
     .dw = 3},
    {.n = 2,
     .h = 4,
     .w = 5,
     .c = 2,
     .kh = 3,
     .kw = 3,
     .in = 2,
     .last = 3,
     .sh = 2,
     .sw = 2,
     .padding = ADJ_EXPLICIT,
     .pad = {0, 3, 4, 2}}, /* wider than the kernel */
    {.n = 1, .h = 6, .w = 6, .c = 6, .kh = 3, .kw = 3, .in = 3, .last = 4, .padding = ADJ_SAME},
    {.n = 2,
     .h = 5,
     .w = 6,
     .c = 4,
     .kh = 2,
     .kw = 3,
     .in = 1,
     .last = 8,
     .sh = 2,
     .sw = 2,
     .padding = ADJ_SAME}, /* as many groups as channels */
    {.n = 1, .h = 3, .w = 3, .c = 65, .kh = 1, .kw = 2, .in = 65, .last = 67}, /* more than a block
                                                                                */
    {.n = 1, .h = 3, .w = 2, .c = 140, .kh = 2, .kw = 1, .in = 70, .last = 136},
    {.n = 1, .h = 2, .w = 2, .c = 1, .kh = 5, .kw = 5, .in = 1, .last = 1, .padding = ADJ_SAME},
    {.n = 0, .h = 4, .w = 4, .c = 2, .kh = 2, .kw = 2, .in = 2, .last = 3},
    {.n = 2,
     .h = 0,
     .w = 3,
     .c = 2,
     .kh = 1,
     .kw = 1,
     .in = 2,
     .last = 3,
     .padding = ADJ_EXPLICIT,
     .pad = {1, 1, 1, 1}}, /* the output sees only padding */
    {.n = 2, .h = 3, .w = 4, .c = 2, .kh = 3, .kw = 5, .in = 2, .last = 3}, /* no column of output
                                                                             */
};
enum { ROWS = sizeof rows / sizeof *rows };

Test(conv2d, reference)
{
    for (int i = 0; i < ROWS; i++)
        expect_reference(&triple, rows[i]);
}

Test(conv2d, random) { expect_reference_random(&triple, 0, 25); }

Test(conv2d, adjoint)
{
    for (int i = 0; i < ROWS; i++)
        expect_adjoint(&triple, rows[i]);
}

Test(conv2d, derivatives)
{
    for (int i = 0; i < ROWS; i++)
        if (rows[i].c < 10)
            expect_derivatives(&triple, rows[i]);
}

Test(conv2d, thread_independence)
{
    oracle_conv row = {.n = 3, .h = 13, .w = 11, .c = 5, .kh = 3, .kw = 3, .in = 5, .last = 9};
    for (int dtype = ADJ_F32; dtype <= ADJ_BF16; dtype++)
        expect_thread_independence(&triple, row, (adj_dtype)dtype);
}

/* 1, 2, 3, ... */
static adj_node *counting(fixture *f, adj_shape shape)
{
    double v[64];
    for (int i = 0; i < 64; i++)
        v[i] = i + 1;
    return given(f, ADJ_F32, shape, v);
}

/* Numbers of TensorFlow's conv_ops_test.py. */
Test(conv2d, literals)
{
    fixture f = fixture_new();
    adj_conv valid = {.padding = ADJ_VALID}, twice = {.stride = {1, 2, 2, 1}};
    adj_node *x = counting(&f, (adj_shape){4, {1, 2, 3, 3}});
    adj_node *w = counting(&f, (adj_shape){4, {2, 2, 3, 3}});
    adj_node *w1 = counting(&f, (adj_shape){4, {2, 2, 1, 1}});
    adj_node *x1 = counting(&f, (adj_shape){4, {1, 2, 3, 1}});
    adj_node *d1 = counting(&f, (adj_shape){4, {1, 1, 2, 1}});
    for (int b = 0; adj_backends[b] != NULL; b++) {
        const char *backend = adj_backends[b]->name;
        expect_values(&f, adj_conv2d(x, w, NULL), backend,
                      (double[]){2271, 2367, 2463, 2901, 3033, 3165}, 0, 0);
        expect_values(&f, adj_conv2d(x, w, &twice), backend, (double[]){2271, 2367, 2463}, 0, 0);
        expect_values(&f, adj_conv2d_backprop_input((adj_shape){4, {1, 2, 3, 1}}, w1, d1, &valid),
                      backend, (double[]){1, 4, 4, 3, 10, 8}, 0, 0);
        expect_values(&f, adj_conv2d_backprop_filter(x1, (adj_shape){4, {2, 2, 1, 1}}, d1, &valid),
                      backend, (double[]){5, 8, 14, 17}, 0, 0);
    }
    fixture_free(&f);
}

/* [height, width] is [n of dy, height, width, in of the filter]: the very same node. */
Test(conv2d, spatial_input_sizes)
{
    fixture f = fixture_new();
    adj_node *w = counting(&f, (adj_shape){4, {2, 2, 3, 2}});
    adj_node *dy = counting(&f, (adj_shape){4, {2, 3, 4, 2}});
    adj_node *a = adj_conv2d_backprop_input((adj_shape){2, {4, 5}}, w, dy, NULL);
    adj_node *b = adj_conv2d_backprop_input((adj_shape){4, {2, 4, 5, 3}}, w, dy, NULL);
    cr_assert_not_null(a, "%s", adj_graph_message(f.g));
    cr_assert_eq(a, b);
    fixture_free(&f);
}

Test(conv2d, transpose_is_backprop_input)
{
    fixture f = fixture_new();
    adj_conv twice = {.stride = {1, 2, 2, 1}, .padding = ADJ_SAME};
    adj_shape sizes = {4, {1, 4, 3, 2}};
    adj_node *x = counting(&f, (adj_shape){4, {1, 2, 2, 3}});
    adj_node *w = counting(&f, (adj_shape){4, {3, 3, 2, 3}});
    adj_node *y = adj_conv2d_transpose(x, w, sizes, &twice);
    cr_assert_not_null(y, "%s", adj_graph_message(f.g));
    cr_assert_eq(y, adj_conv2d_backprop_input(sizes, w, x, &twice));
    fixture_free(&f);
}

Test(conv2d, separable_is_two_convolutions)
{
    oracle_conv row = {.n = 2,
                       .h = 4,
                       .w = 3,
                       .c = 2,
                       .kh = 2,
                       .kw = 2,
                       .in = 2,
                       .last = 3,
                       .padding = ADJ_SAME,
                       .depthwise = 1};
    for (int format = ADJ_NHWC; format <= ADJ_NCHW; format++) {
        row.format = (adj_format)format;
        oracle_sizes s = oracle_sizes_of(row);
        oracle_sizes t = oracle_sizes_of((oracle_conv){.n = 2,
                                                       .h = s.oh,
                                                       .w = s.ow,
                                                       .c = 6,
                                                       .kh = 1,
                                                       .kw = 1,
                                                       .in = 6,
                                                       .last = 4,
                                                       .format = row.format});
        fixture f = fixture_new();
        adj_node *x = given_integers(&f, ADJ_F32, s.x, -3, 3);
        adj_node *w = given_integers(&f, ADJ_F32, s.w, -2, 2);
        adj_node *v = given_integers(&f, ADJ_F32, t.w, -2, 2);
        double *middle = oracle_convolve(&s, ORACLE_Y, f.value[0], f.value[1], NULL);
        double *want = oracle_convolve(&t, ORACLE_Y, middle, f.value[2], NULL);
        for (int b = 0; adj_backends[b] != NULL; b++)
            expect_values(&f, adj_separable_conv2d(x, w, v, &s.attrs), adj_backends[b]->name, want,
                          0, 0);
        free(middle);
        free(want);
        fixture_free(&f);
    }
}

/* No filter channels: a legal, empty filter gradient, and zeros behind it. */
Test(conv2d, empty_filter_gradient)
{
    fixture f = fixture_new();
    adj_node *x = counting(&f, (adj_shape){4, {1, 3, 3, 2}});
    adj_node *dy = given(&f, ADJ_F32, (adj_shape){4, {1, 2, 2, 0}}, NULL);
    adj_node *dw = adj_conv2d_backprop_filter(x, (adj_shape){4, {2, 2, 2, 0}}, dy, NULL), *dx;
    cr_assert_not_null(dw, "%s", adj_graph_message(f.g));
    cr_assert_eq(adj_grad(dw, dw, 1, &x, &dx), ADJ_OK, "%s", adj_graph_message(f.g));
    expect_values(&f, dx, "naive", (double[18]){0}, 0, 0);
    fixture_free(&f);
}
