/* test_onednn_conv.c - every implementation oneDNN offers for a convolution, in every layout,
 * against naive: exactly on integers, within the error of summing on random data. */
#include <criterion/criterion.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "conv_rows.h"

static const conv_row rows[] = {
    {2, 9, 9, 3, 5, 3, .padding = ADJ_SAME},
    {2, 28, 28, 1, 32, 5, .padding = ADJ_SAME},           /* LeNet's first */
    {2, 14, 14, 32, 64, 5, .padding = ADJ_SAME},          /* and second */
    {1, 12, 11, 16, 20, 3, .sh = 2, .padding = ADJ_SAME}, /* blocks with a rest */
    {3, 8, 10, 8, 16, 1, .padding = ADJ_VALID},           /* 1x1 */
    {3, 9, 9, 24, 33, 1, .sh = 2, .padding = ADJ_VALID},  /* 1x1, strided */
    {2, 7, 13, 4, 7, .kh = 2, .kw = 5, .sh = 2, .sw = 3, .padding = ADJ_SAME}, /* all unequal */
    {2, 13, 9, 6, 10, 3, .dh = 2, .dw = 3, .padding = ADJ_VALID},              /* dilated */
    {2, 10, 10, 17, 3, 3, .dh = 2, .padding = ADJ_SAME},                       /* odd channels */
    {2, 6, 7, 5, 6, 3, .padding = ADJ_EXPLICIT, .pt = 2, .pr = 1},             /* asymmetric */
    {1, 5, 5, 3, 4, 3, .kw = 2, .padding = ADJ_EXPLICIT, .pt = 4, .pb = 5, .pl = 3}, /* beyond it */
    {2, 8, 8, 8, 12, 3, .groups = 4, .padding = ADJ_SAME},
    {2, 8, 8, 32, 32, 3, .sh = 2, .groups = 2, .padding = ADJ_SAME},
    {2, 3, 3, 4, 4, 3, .padding = ADJ_VALID},  /* one output pixel */
    {8, 1, 1, 12, 9, 1, .padding = ADJ_VALID}, /* a matrix */
    {2, 10, 10, 16, 1, 3, .depthwise = 1, .padding = ADJ_SAME},
    {2, 11, 9, 20, 1, 3, .sh = 2, .depthwise = 1, .padding = ADJ_SAME},
    {2, 10, 10, 3, 2, 3, .depthwise = 1, .padding = ADJ_SAME},
    {1, 12, 12, 8, 3, 5, .kw = 3, .dh = 2, .depthwise = 1, .padding = ADJ_SAME},
    {2, 9, 9, 1, 4, 3, .depthwise = 1, .padding = ADJ_VALID},
    {2, 8, 9, 32, 1, 3, .depthwise = 1, .padding = ADJ_EXPLICIT, .pt = 1, .pr = 2},
};

/* Rounding of the result itself, in units of its size. */
static double half_unit(adj_dtype dtype) { return dtype == ADJ_BF16 ? 0x1p-8 : 0x1p-24; }

static int expect_row(const conv_row *r, conv_direction direction, adj_dtype dtype, conv_fill fill)
{
    char label[256];
    fixture f = fixture_new();
    test_backend onednn = backend_open("onednn");
    const adj_node *y = conv_node(&f, r, direction, ADJ_NHWC, dtype, fill);
    cr_assert_not_null(y, "%s", adj_graph_message(f.g));
    conv_text(r, y, ADJ_NHWC, label, sizeof label);
    double terms = conv_terms(r, direction), rtol = 0, atol = 0;
    if (fill == REALS) { /* f32 sums of terms below 1: each partial sum rounds */
        rtol = 4 * half_unit(dtype);
        atol = terms * terms * FLT_EPSILON / 4 + half_unit(dtype) * 1e-3;
    }
    int n = expect_candidates(&f, &onednn, 1, &y, rtol, atol, label);
    backend_close(&onednn);
    fixture_free(&f);
    return n;
}

/* Integers whose sums f32 holds exactly: no order of summing and no blocking may show. */
Test(onednn_conv, agrees_exactly_on_integers)
{
    int max = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int direction = FORWARD; direction < N_DIRECTION; direction++) {
            int n = expect_row(&rows[i], direction, ADJ_F32, INTEGERS);
            cr_assert_gt(n, 0, "row %d, direction %d: oneDNN takes no f32", (int)i, direction);
            max = n > max ? n : max;
            expect_row(&rows[i], direction, ADJ_BF16, INTEGERS); /* not on every CPU */
        }
    cr_assert_gt(max, 2, "there is more than one implementation and layout");
}

Test(onednn_conv, agrees_on_random_data)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i += 3)
        for (int direction = FORWARD; direction < N_DIRECTION; direction++)
            for (int dtype = ADJ_F32; dtype <= ADJ_BF16; dtype += ADJ_BF16 - ADJ_F32)
                expect_row(&rows[i], direction, (adj_dtype)dtype, REALS);
}

/* In NCHW through an executor, which computes it in NHWC. */
Test(onednn_conv, agrees_in_nchw)
{
    char label[256];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int direction = FORWARD; direction < N_DIRECTION; direction++) {
            fixture f = fixture_new();
            adj_node *y = conv_node(&f, &rows[i], direction, ADJ_NCHW, ADJ_F32, INTEGERS);
            cr_assert_not_null(y, "%s", adj_graph_message(f.g));
            conv_text(&rows[i], y, ADJ_NCHW, label, sizeof label);
            double *want = evaluate(&f, y, "naive"), *got = evaluate(&f, y, "onednn");
            expect_close(got, want, adj_shape_elems(y->type.shape), 0, 0, label);
            free(want);
            free(got);
            fixture_free(&f);
        }
}

/* bias_add behind a convolution, in one group. */
static void expect_group(const conv_row *r, adj_dtype dtype)
{
    const adj_node *group[3];
    char label[256];
    int n = 0;
    fixture f = fixture_new();
    test_backend onednn = backend_open("onednn");
    adj_node *y = conv_node(&f, r, FORWARD, ADJ_NHWC, dtype, INTEGERS);
    group[n++] = y;
    adj_node *b = given_integers(&f, dtype, (adj_shape){1, {y->type.shape.dim[3]}}, -9, 9);
    group[n++] = y = adj_bias_add(y, b, ADJ_NHWC);
    cr_assert_not_null(y, "%s", adj_graph_message(f.g));
    conv_text(r, group[0], ADJ_NHWC, label, sizeof label);
    int found = expect_candidates(&f, &onednn, n, group, 0, 0, label);
    cr_assert(found > 0 || dtype != ADJ_F32, "%s: no fused implementation", label);
    backend_close(&onednn);
    fixture_free(&f);
}

Test(onednn_conv, adds_the_bias)
{
    static const conv_row small[] = {
        {2, 6, 6, 3, 5, 3, .padding = ADJ_SAME},
        {2, 6, 7, 16, 20, 3, .sh = 2, .padding = ADJ_SAME},
        {2, 6, 6, 4, 8, 1, .groups = 2, .padding = ADJ_VALID},
        {2, 6, 6, 8, 1, 3, .depthwise = 1, .padding = ADJ_SAME},
        {2, 7, 6, 20, 1, 3, .sh = 2, .depthwise = 1, .padding = ADJ_SAME},
    };
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        for (int dtype = ADJ_F32; dtype <= ADJ_BF16; dtype += ADJ_BF16 - ADJ_F32)
            expect_group(&small[i], (adj_dtype)dtype);
}

static outcome refused(fixture *f, const adj_node *y)
{
    test_backend onednn = backend_open("onednn");
    outcome o = run_candidate(f, &onednn, 1, &y, 0);
    backend_close(&onednn);
    return o;
}

/* What oneDNN does not do is left to naive, with a reason. */
Test(onednn_conv, refuses_with_a_reason)
{
    const conv_row row = {1, 4, 4, 2, 3, 3, .padding = ADJ_SAME};
    fixture f = fixture_new();
    outcome o = refused(&f, conv_node(&f, &row, FORWARD, ADJ_NHWC, ADJ_F64, REALS));
    cr_assert_eq(o.status, ADJ_ENOKERNEL);
    cr_assert_not_null(strstr(o.why, "conv2d: oneDNN has no f64"), "%s", o.why);

    o = refused(&f, conv_node(&f, &row, BACKPROP_INPUT, ADJ_NCHW, ADJ_F32, REALS));
    cr_assert_eq(o.status, ADJ_ENOKERNEL);
    cr_assert_not_null(strstr(o.why, "conv2d_backprop_input: only in NHWC"), "%s", o.why);

    const conv_row empty = {0, 4, 4, 2, 3, 3, .padding = ADJ_SAME};
    o = refused(&f, conv_node(&f, &empty, BACKPROP_FILTER, ADJ_NHWC, ADJ_F32, REALS));
    cr_assert_eq(o.status, ADJ_ENOKERNEL);
    cr_assert_not_null(strstr(o.why, "size"), "%s", o.why);

    /* one value as input and filter, which want different layouts */
    adj_node *x = given_integers(&f, ADJ_F32, (adj_shape){4, {3, 3, 3, 3}}, -3, 3);
    o = refused(&f, adj_conv2d(x, x, NULL));
    cr_assert(o.status == ADJ_ENOKERNEL || o.status == ADJ_OK, "%s", o.why);
    free(o.y);
    fixture_free(&f);
}

/* In bf16 the filter gradient of 16 to 16 channels is computed in nChw16c where there is AVX-512;
 * those are nhwc's bytes, so only the filter is reordered. Elsewhere nhwc is taken as it is. */
Test(onednn_conv, sixteen_channels_are_one_block)
{
    const conv_row row = {2, 8, 8, 16, 16, 3, .padding = ADJ_SAME};
    unsetenv("ADJOINT_PLAN"); /* a tuned plan takes what was fastest, reorders or not */
    fixture f = fixture_new();
    adj_node *dw = conv_node(&f, &row, BACKPROP_FILTER, ADJ_NHWC, ADJ_BF16, INTEGERS);
    adj_exec_opts o = {.n_fetch = 1, .fetch = &dw};
    adj_exec *e;
    cr_assert_eq(adj_exec_new(f.g, &o, &e), ADJ_OK, "%s", adj_exec_message(e));
    int on_naive = adj_exec_stats(e).naive_steps;
    cr_assert_leq(adj_exec_stats(e).reorders, 1, "%d reorders", adj_exec_stats(e).reorders);
    adj_exec_free(e);
    double *got = evaluate(&f, dw, "onednn"), *want = evaluate(&f, dw, "naive");
    expect_close(got, want, 9 * 16 * 16, on_naive ? 0 : 0x1p-8, 0, "dw");
    free(got);
    free(want);
    fixture_free(&f);
}
