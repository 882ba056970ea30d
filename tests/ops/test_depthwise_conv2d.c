/* test_depthwise_conv2d.c - depthwise_conv2d_native and its two adjoints. */
#include <criterion/criterion.h>

#include "adjoint_ext.h"
#include "conv_cases.h"

static const conv_triple triple = {adj_depthwise_conv2d_native,
                                   adj_depthwise_conv2d_native_backprop_input,
                                   adj_depthwise_conv2d_native_backprop_filter};

static const oracle_conv rows[] = {
    {.n = 1, .h = 1, .w = 1, .c = 1, .kh = 1, .kw = 1, .in = 1, .last = 1},
    {.n = 2, .h = 5, .w = 4, .c = 3, .kh = 3, .kw = 2, .in = 3, .last = 1},
    {.n = 2, .h = 5, .w = 4, .c = 3, .kh = 3, .kw = 2, .in = 3, .last = 2, .padding = ADJ_SAME},
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
     .padding = ADJ_SAME},
    {.n = 1, .h = 7, .w = 9, .c = 2, .kh = 2, .kw = 3, .in = 2, .last = 1, .sh = 3, .sw = 2},
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
     .dw = 3}, /* TensorFlow's kernels ignore dilations and refuse unequal strides */
    {.n = 2,
     .h = 4,
     .w = 5,
     .c = 2,
     .kh = 3,
     .kw = 3,
     .in = 2,
     .last = 2,
     .sh = 2,
     .sw = 2,
     .padding = ADJ_EXPLICIT,
     .pad = {0, 3, 4, 2}},
    {.n = 1, .h = 3, .w = 3, .c = 65, .kh = 2, .kw = 2, .in = 65, .last = 2}, /* more than a block
                                                                               */
    {.n = 1, .h = 2, .w = 2, .c = 1, .kh = 5, .kw = 5, .in = 1, .last = 2, .padding = ADJ_SAME},
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
     .pad = {1, 1, 1, 1}},
    {.n = 2, .h = 3, .w = 4, .c = 2, .kh = 3, .kw = 5, .in = 2, .last = 3},
};
enum { ROWS = sizeof rows / sizeof *rows };

static oracle_conv row(int i)
{
    oracle_conv r = rows[i];
    r.depthwise = 1;
    return r;
}

Test(depthwise_conv2d, reference)
{
    for (int i = 0; i < ROWS; i++)
        expect_reference(&triple, row(i));
}

Test(depthwise_conv2d, random) { expect_reference_random(&triple, 1, 25); }

Test(depthwise_conv2d, adjoint)
{
    for (int i = 0; i < ROWS; i++)
        expect_adjoint(&triple, row(i));
}

Test(depthwise_conv2d, derivatives)
{
    for (int i = 0; i < ROWS; i++)
        if (rows[i].c < 10)
            expect_derivatives(&triple, row(i));
}

Test(depthwise_conv2d, thread_independence)
{
    oracle_conv r = {
        .n = 3, .h = 17, .w = 15, .c = 9, .kh = 3, .kw = 3, .in = 9, .last = 2, .depthwise = 1};
    for (int dtype = ADJ_F32; dtype <= ADJ_BF16; dtype++)
        expect_thread_independence(&triple, r, (adj_dtype)dtype);
}

/* Numbers of TensorFlow's depthwise_conv_op_base.py: output channel c*multiplier + m. */
Test(depthwise_conv2d, literals)
{
    fixture f = fixture_new();
    double v[16];
    for (int i = 0; i < 16; i++)
        v[i] = i + 1;
    adj_node *x = given(&f, ADJ_F32, (adj_shape){4, {1, 2, 3, 2}}, v);
    adj_node *w = given(&f, ADJ_F32, (adj_shape){4, {2, 2, 2, 2}}, v);
    for (int b = 0; adj_backends[b] != NULL; b++)
        expect_values(&f, adj_depthwise_conv2d_native(x, w, NULL), adj_backends[b]->name,
                      (double[]){196, 216, 272, 296, 252, 280, 344, 376}, 0, 0);
    fixture_free(&f);
}

/* A grouped conv2d with one channel a group is a depthwise convolution with its filter reshaped. */
Test(depthwise_conv2d, equals_grouped)
{
    oracle_sizes s = oracle_sizes_of((oracle_conv){.n = 2,
                                                   .h = 5,
                                                   .w = 4,
                                                   .c = 3,
                                                   .kh = 2,
                                                   .kw = 3,
                                                   .in = 3,
                                                   .last = 2,
                                                   .padding = ADJ_SAME,
                                                   .depthwise = 1});
    fixture f = fixture_new();
    adj_node *x = given_integers(&f, ADJ_F32, s.x, -3, 3);
    adj_node *w = given_integers(&f, ADJ_F32, s.w, -2, 2);
    adj_node *v = given(&f, ADJ_F32, (adj_shape){4, {2, 3, 1, 6}}, f.value[1]);
    double *want = evaluate(&f, adj_conv2d(x, v, &s.attrs), "naive");
    expect_values(&f, adj_depthwise_conv2d_native(x, w, &s.attrs), "naive", want, 0, 0);
    free(want);
    fixture_free(&f);
}
