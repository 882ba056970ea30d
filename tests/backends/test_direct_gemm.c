/* test_direct_gemm.c - direct's convolutions by products of matrices, matmul, and its filter
 * gradient, in f32 and f64: on integers bit for bit against the definition, every instruction set,
 * one thread and three; NaN and infinities; errors of sums over many pixels. Each kernel is the
 * only one that takes the nodes. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/backends/conv_rows.h"
#include "tests/isa.h"

/* The filter may change in every run, or is packed once for many. */
static const tested_kernel ours = {"gemm",
                                   .is_only = 1,
                                   .packed = "panels",
                                   .never_packed = &adj_op_conv2d_backprop_input,
                                   .first = ORACLE_Y,
                                   .last = ORACLE_DX};

static const tested_kernel filter = {"filter_gemm", .is_only = 1, .first = ORACLE_DW,
                                     .last = ORACLE_DW};

static void expect_row(const tested_kernel *k, oracle_conv row, const char *isa)
{
    expect_exact_row(k, row, ADJ_F32, isa);
    expect_exact_row(k, row, ADJ_F64, isa);
}

/* Rows that are copied and such that lie as they are, short rows that are gathered, flat ones,
 * outputs that fill vectors and such that do not, windows beyond the image, tiles of columns, more
 * than one flush. */
static const oracle_conv rows[] = {
    {2, 9, 11, 3, 3, 3, 16, .padding = ADJ_SAME},
    {2, 28, 28, 1, 5, 5, 6, .padding = ADJ_SAME},
    {1, 33, 30, 3, 7, 7, 20, .sh = 2, .sw = 2},
    {2, 17, 13, 24, 1, 1, 40, .padding = ADJ_VALID},
    {1, 40, 40, 5, 1, 1, 3, .padding = ADJ_VALID},
    {3, 5, 5, 1, 1, 1, 33, .sh = 3, .sw = 3},
    {2, 7, 4, 16, 3, 3, 24, .padding = ADJ_SAME},
    {1, 2, 2, 8, 3, 3, 17, .padding = ADJ_SAME},
    {1, 49, 10, 1, 10, 4, 64, .sh = 2, .sw = 2, .padding = ADJ_SAME},
    {1, 20, 20, 6, 3, 3, 9, .dh = 3, .dw = 2},
    {2, 9, 9, 4, 3, 2, 5, .dh = 2, .dw = 5, .padding = ADJ_SAME},
    {1, 6, 5, 4, 2, 2, 8, .dh = 4, .dw = 3, .padding = ADJ_SAME},
    {1, 2, 3, 3, 2, 2, 1, .padding = ADJ_EXPLICIT, .pad = {5, 0, 0, 7}},
    {1, 2, 3, 2, 2, 2, 2, .sh = 3, .sw = 3, .padding = ADJ_EXPLICIT, .pad = {9, 4, 8, 1}},
    {1, 3, 9, 2, 1, 1, 8, .padding = ADJ_EXPLICIT, .pad = {2, 1, 3, 4}},
    {2, 9, 9, 9, 5, 5, 3, .sh = 4, .sw = 4},
    {1, 20, 21, 4, 7, 7, 5, .padding = ADJ_SAME},
    {1, 15, 40, 2, 11, 11, 3, .sh = 4, .sw = 4},
    {1, 6, 7, 8, 2, 4, 17, .sh = 1, .sw = 3},
    {1, 7, 6, 5, 4, 1, 9, .sh = 3, .sw = 2},
    {1, 3, 4, 3, 7, 7, 8, .padding = ADJ_SAME},
    {1, 3, 33, 1, 3, 32, 1, .padding = ADJ_SAME},
    {1, 33, 3, 1, 32, 2, 1, .sh = 2, .sw = 1},
    {1, 8, 300, 4, 7, 7, 1, .padding = ADJ_SAME},
    {2, 4, 521, 3, 3, 7, 2, .sh = 1, .sw = 2, .padding = ADJ_SAME},
    {1, 2, 700, 8, 2, 5, 1, .sh = 1, .sw = 5},
    {2, 190, 180, 1, 2, 2, 2, .padding = ADJ_VALID},
};

static void expect_both(oracle_conv row, const char *isa)
{
    expect_row(&ours, row, isa);
    expect_row(&filter, row, isa);
}

static void listed(const char *isa)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_both(rows[i], isa);
    for (int i = 0; i < n_tile_case && strcmp(isa, "base") != 0; i++)
        expect_row(&ours, tile_cases[i], isa);
}

Test(direct_gemm, listed) { for_each_isa(N_ISA, all_isas, listed); }

static oracle_conv random_row(uint32_t *k)
{
    static const int outputs[] = {1, 2, 3, 8, 15, 16, 17, 24, 33, 48};
    static const oracle_conv most = {3, 14, 41, 6, 9, 9, .sh = 4, .sw = 4};
    oracle_conv a = draw_sizes(&most, k);
    a.last = outputs[draw(k, 0, 9)];
    if (a.sh == 1 && a.sw == 1) {
        a.dh = draw(k, 1, 3);
        a.dw = draw(k, 1, 3);
    }
    draw_padding(&a, k);
    return a;
}

static void random_rows(const char *isa)
{
    uint32_t k = rows_from(0, isa);
    for (int i = 0; i < repeats(40); i++)
        expect_both(random_row(&k), isa);
}

Test(direct_gemm, random) { for_each_isa(N_ISA, all_isas, random_rows); }

/* A window that does not read the value, or that has padding where the filter has it, stays a
 * number. */
static void specials(const char *isa)
{
    for (adj_dtype dtype = ADJ_F32; dtype <= ADJ_F64; dtype++) {
        expect_specials(&ours, dtype, isa);
        expect_specials(&filter, dtype, isa);
    }
}

Test(direct_gemm, specials) { for_each_isa(2, all_isas + 1, specials); }

/* The bias of positions that are computed anew, too. */
Test(direct_gemm, bias) { expect_biases(&ours, ADJ_F32, best_isa()); }

/* ---- matmul and bias ---- */

/* a b + bias by the definition. */
static void expect_product(const char *isa, int64_t n, int64_t k, int64_t m, int with_bias)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *a = given_integers(&f, ADJ_F32, (adj_shape){2, {n, k}}, -3, 3);
    adj_node *b = given_integers(&f, ADJ_F32, (adj_shape){2, {k, m}}, -3, 3);
    adj_node *bias = given_integers(&f, ADJ_F32, (adj_shape){1, {m}}, -9, 9);
    const adj_node *node[2] = {adj_matmul(a, b, 0)};
    node[1] = adj_bias_add((adj_node *)node[0], bias, ADJ_NHWC);
    char text[64];
    snprintf(text, sizeof text, "%s, %ldx%ldx%ld", isa, (long)n, (long)k, (long)m);
    scoped(release) double *want = oracle_matmul(n, k, m, f.value[0], 0, f.value[1], 0);
    for (int64_t i = 0; i < n * m && with_bias; i++)
        want[i] += f.value[2][i % m];
    for (int threads = min_threads(); threads <= 3; threads += 2) {
        scoped(release) double *got =
            run_tested(&ours, &f, isa, threads, with_bias ? 2 : 1, node, text);
        expect_close(got, want, n * m, 0, 0, text);
    }
}

static void products(const char *isa)
{
    static const int64_t sizes[][3] = {{1, 400, 120}, {1, 7, 10},   {5, 33, 1},
                                       {64, 84, 10},  {97, 16, 64}, {193, 3, 47}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int with_bias = 0; with_bias < 2; with_bias++)
            expect_product(isa, sizes[i][0], sizes[i][1], sizes[i][2], with_bias);
}

Test(direct_gemm, products) { for_each_isa(N_ISA, all_isas, products); }

/* Sums have one order, whatever the threads, and however they share a single image: a large
 * filter's outputs, short rows, fewer panels than threads. */
Test(direct_gemm, same_bits_for_any_threads)
{
    static const oracle_conv list[] = {
        {3, 19, 21, 13, 5, 3, 29, .padding = ADJ_SAME},
        {1, 8, 8, 160, 3, 3, 256, .padding = ADJ_SAME},
        {1, 4, 4, 40, 3, 3, 72, .padding = ADJ_SAME},
        {1, 9, 30, 16, 3, 3, 8, .padding = ADJ_SAME},
        {1, 7, 5, 64, 1, 1, 48, .padding = ADJ_VALID},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        expect_same_bits_for_any_threads(&ours, list[i], ADJ_F32, best_isa());
}

/* Unsupported problems are refused with the reason. */
Test(direct_gemm, refused)
{
    static const adj_conv nchw = {.format = ADJ_NCHW}, plain = {.format = ADJ_NHWC};
    static const adj_conv far = {.stride = {1, 5, 5, 1}};
    scoped(backend_close) test_backend t = direct_open(best_isa(), 1, ADJ_MATH_EXACT);
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_integers(&f, ADJ_F32, (adj_shape){4, {1, 8, 8, 8}}, -3, 3);
    adj_node *w = given_integers(&f, ADJ_F32, (adj_shape){4, {2, 2, 8, 4}}, -3, 3);
    adj_node *half = given_integers(&f, ADJ_F32, (adj_shape){4, {2, 2, 4, 4}}, -3, 3);
    adj_node *a = given_integers(&f, ADJ_F32, (adj_shape){2, {4, 4}}, -3, 3);
    adj_node *dy = given_integers(&f, ADJ_F32, (adj_shape){4, {1, 2, 2, 4}}, -3, 3);
    const adj_node *node[] = {adj_conv2d(x, w, &nchw), adj_conv2d(x, half, &plain),
                              adj_matmul(a, a, ADJ_TRANSPOSE_B),
                              adj_conv2d_backprop_input((adj_shape){4, {1, 8, 8, 8}}, w, dy, &far)};
    for (size_t i = 0; i < sizeof node / sizeof *node; i++)
        expect_no_kernel(&f, &t, "gemm", 1, &node[i], "f64 in NHWC");
    expect_refused_row(&(tested_kernel){"gemm", .first = ORACLE_DX},
                       (oracle_conv){1, 8, 8, 3, 2, 2, 4, .format = ADJ_NCHW}, "NHWC");
}

/* ---- filter gradients ---- */

/* Panels of x's channels: groups of outputs, one with a vector that is not filled; strided,
 * dilated, without padding, with padding beyond all that a row reads, of one tap. */
static const oracle_conv panels[] = {
    {2, 21, 19, 96, 3, 3, 119, .padding = ADJ_SAME},
    {2, 11, 9, 96, 3, 3, 112, .padding = ADJ_SAME},
    {1, 9, 9, 96, 3, 3, 24, .dh = 2, .dw = 3, .padding = ADJ_SAME},
    {2, 3, 1, 96, 1, 1, 8, .sw = 101, .padding = ADJ_EXPLICIT, .pad = {0, 0, 100, 0}},
    {2, 13, 11, 96, 3, 3, 70, .sh = 2, .sw = 2},
    {2, 12, 9, 128, 3, 2, 72, .dh = 2, .dw = 2},
    {3, 9, 8, 96, 1, 1, 72, .sh = 2, .sw = 2},
    {2, 9, 8, 160, 3, 3, 284, .padding = ADJ_SAME},
};

/* Groups of outputs, the last one smaller, where dy is read as it lies (with vectors of 8, of 16);
 * chunks of an image. Pads beyond all that a row of windows reads. */
static const oracle_conv more[] = {
    {2, 21, 19, 162, 3, 3, 56, .padding = ADJ_SAME},
    {2, 11, 9, 162, 3, 3, 48, .padding = ADJ_SAME},
    {2, 3, 1, 16, 1, 1, 8, .sw = 101, .padding = ADJ_EXPLICIT, .pad = {0, 0, 100, 0}},
    {1, 1, 1, 3, 1, 1, 2, .sh = 3, .sw = 3, .padding = ADJ_EXPLICIT, .pad = {2, 0, 2, 0}},
    /* 1x1: segments and chunks of pixels, outputs that fill no vector, groups of them that are
     * brought together, the last one smaller; padding behind the last row */
    {3, 20, 17, 24, 1, 1, 40, .padding = ADJ_SAME},
    {2, 9, 15, 7, 1, 1, 112, .padding = ADJ_SAME},
    {2, 40, 33, 13, 1, 1, 96, .padding = ADJ_SAME},
    {1, 1, 5, 3, 1, 1, 2, .padding = ADJ_SAME},
    {32, 12, 12, 64, 1, 1, 64, .padding = ADJ_SAME},
    {33, 12, 12, 96, 1, 1, 72, .padding = ADJ_SAME},
    {2, 5, 7, 9, 1, 1, 6, .padding = ADJ_EXPLICIT, .pad = {0, 1, 0, 0}},
};

static void filter_listed(const char *isa)
{
    for (int i = 0; i < n_tile_case; i++)
        expect_exact_row(&filter, tile_cases[i], i % 4 == 3 ? ADJ_F64 : ADJ_F32, isa);
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        expect_row(&filter, more[i], isa);
    for (size_t i = 0; i < sizeof panels / sizeof *panels; i++)
        expect_row(&filter, panels[i], isa);
}

Test(direct_filter_gemm, listed) { for_each_isa(N_ISA, all_isas, filter_listed); }

static void random_filter_rows(const char *isa)
{
    uint32_t k = rows_from(600000, isa);
    for (int i = 0; i < repeats(25); i++)
        expect_exact_row(&filter, draw_tile_case(&k), i % 2 == 0 ? ADJ_F32 : ADJ_F64, isa);
}

Test(direct_filter_gemm, random) { for_each_isa(N_ISA, all_isas, random_filter_rows); }

/* An infinity in dy's corner reaches no tap that lies in the padding there, which is no zero. */
static void infinity_at_the_border(const char *isa)
{
    enum { SIZE = 4, CHANNELS = 2, OUTPUTS = 3 };
    for (adj_dtype dtype = ADJ_F32; dtype <= ADJ_F64; dtype++) {
        scoped(fixture_free) fixture f = fixture_new();
        scoped(backend_close) test_backend t = direct_open(isa, 1, ADJ_MATH_EXACT);
        const adj_conv same = {.padding = ADJ_SAME};
        adj_node *x = given_integers(&f, dtype, (adj_shape){4, {1, SIZE, SIZE, CHANNELS}}, 1, 1);
        adj_node *dy = given_integers(&f, dtype, (adj_shape){4, {1, SIZE, SIZE, OUTPUTS}}, 0, 0);
        const adj_node *dw =
            adj_conv2d_backprop_filter(x, (adj_shape){4, {3, 3, CHANNELS, OUTPUTS}}, dy, &same);
        f.value[1][0] = INFINITY;
        outcome o = run_candidate(&f, &t, 1, &dw, 0);
        cr_assert_eq(o.status, ADJ_OK, "%s", o.why);
        for (int i = 0; i < 9 * CHANNELS * OUTPUTS; i++) {
            const int tap = i / (CHANNELS * OUTPUTS), inside = tap / 3 > 0 && tap % 3 > 0;
            const double want = inside && i % OUTPUTS == 0 ? INFINITY : 0;
            cr_expect(o.y[i] == want, "%s, tap %d, element %d: %g, expected %g", isa, tap, i,
                      o.y[i], want);
        }
        free(o.y);
    }
}

Test(direct_filter_gemm, infinity) { for_each_isa(N_ISA, all_isas, infinity_at_the_border); }

/* In the second panel of x and in both groups of outputs, at a corner. */
Test(direct_filter_gemm, specials_of_panels)
{
    const oracle_conv row = {2, 6, 5, 96, 3, 3, 280, .padding = ADJ_SAME};
    for (adj_dtype dtype = ADJ_F32; dtype <= ADJ_F64; dtype++) {
        expect_special(&filter, row, dtype, best_isa(), 0, 40, NAN);
        expect_special(&filter, row, dtype, best_isa(), 2, 190, INFINITY);
        expect_special(&filter, row, dtype, best_isa(), 2, 3, NAN);
    }
}

/* ---- sums ---- */

static const oracle_conv many_pixels[] = {{25, 30, 33, 16, 3, 3, 24, .padding = ADJ_SAME},
                                          {25, 30, 33, 16, 1, 1, 80, .padding = ADJ_SAME},
                                          {9, 12, 13, 96, 3, 3, 280, .padding = ADJ_SAME}};

/* 24,750 terms of one sign, some hundred of a chunk one after the other: measured 0.9e-7 to 1.8e-7
 * by instruction set; all in one row would be off by more than the bound. */
Test(direct_filter_gemm, errors)
{
    for (int i = 0; i < 3; i++)
        expect_small_errors(&filter, many_pixels[i], ADJ_F32, best_isa(), 1e-6);
}

Test(direct_filter_gemm, same_bits_for_any_threads)
{
    for (int i = 0; i < 3; i++)
        expect_same_bits_for_any_threads(&filter, many_pixels[i], ADJ_F32, best_isa());
}

Test(direct_filter_gemm, refused)
{
    static const oracle_conv bad[] = {
        {2, 8, 8, 32, 3, 3, 32, .in = 16},
        {2, 8, 8, 32, 3, 3, 8, .format = ADJ_NCHW},
        {0, 8, 8, 32, 3, 3, 8, .padding = ADJ_VALID},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_refused_row(&filter, bad[i], "f64 in NHWC");
}
