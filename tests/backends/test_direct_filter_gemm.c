/* test_direct_filter_gemm.c - our own filter gradient in f32 and f64: on integers bit for bit
 * against the definition, every instruction set, one thread and three; what is not finite; how far
 * sums of many pixels are off. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/backends/tile_cases.h"
#include "tests/isa.h"
#include "tests/repeat.h"

static double *run_ours(fixture *f, const char *isa, int threads, const adj_node *dw)
{
    test_backend t = direct_open_isa(isa, threads);
    outcome o = run_kernel(f, &t, "filter_gemm", 1, &dw);
    cr_assert_eq(o.status, ADJ_OK, "%s", o.why);
    backend_close(&t);
    return o.y;
}

static void expect_row_on(oracle_conv row, adj_dtype dtype, const char *isa)
{
    row.in = row.c;
    conv_problem p = conv_problem_new(row, dtype);
    for (int threads = min_threads(); threads <= 3; threads += 2) {
        double *got = run_ours(&p.f, isa, threads, p.result[ORACLE_DW]);
        expect_close(got, p.want[ORACLE_DW], p.n[ORACLE_DW], 0, 0, p.text);
        free(got);
    }
    conv_problem_free(&p);
}

/* Panels of x's channels: groups of outputs, one with a vector that is not filled; strided,
 * dilated, without padding, with padding beyond all that a row reads, of one tap. */
static const oracle_conv panels[] = {
    {.n = 2, .h = 21, .w = 19, .c = 96, .kh = 3, .kw = 3, .last = 119, .padding = ADJ_SAME},
    {.n = 2, .h = 11, .w = 9, .c = 96, .kh = 3, .kw = 3, .last = 112, .padding = ADJ_SAME},
    {.n = 1,
     .h = 9,
     .w = 9,
     .c = 96,
     .kh = 3,
     .kw = 3,
     .last = 24,
     .dh = 2,
     .dw = 3,
     .padding = ADJ_SAME},
    {.n = 2,
     .h = 3,
     .w = 1,
     .c = 96,
     .kh = 1,
     .kw = 1,
     .last = 8,
     .sw = 101,
     .padding = ADJ_EXPLICIT,
     .pad = {0, 0, 100, 0}},
    {.n = 2, .h = 13, .w = 11, .c = 96, .kh = 3, .kw = 3, .last = 70, .sh = 2, .sw = 2},
    {.n = 2, .h = 12, .w = 9, .c = 128, .kh = 3, .kw = 2, .last = 72, .dh = 2, .dw = 2},
    {.n = 3, .h = 9, .w = 8, .c = 96, .kh = 1, .kw = 1, .last = 72, .sh = 2, .sw = 2},
    {.n = 2, .h = 9, .w = 8, .c = 160, .kh = 3, .kw = 3, .last = 284, .padding = ADJ_SAME},
};

/* Groups of outputs, the last one smaller, where dy is read as it lies (with vectors of 8, of 16);
 * bands of an image. Pads beyond all that a row of windows reads. */
static const oracle_conv more[] = {
    {.n = 2, .h = 21, .w = 19, .c = 162, .kh = 3, .kw = 3, .last = 56, .padding = ADJ_SAME},
    {.n = 2, .h = 11, .w = 9, .c = 162, .kh = 3, .kw = 3, .last = 48, .padding = ADJ_SAME},
    {.n = 2,
     .h = 3,
     .w = 1,
     .c = 16,
     .kh = 1,
     .kw = 1,
     .last = 8,
     .sw = 101,
     .padding = ADJ_EXPLICIT,
     .pad = {0, 0, 100, 0}},
    {.n = 1,
     .h = 1,
     .w = 1,
     .c = 3,
     .kh = 1,
     .kw = 1,
     .last = 2,
     .sh = 3,
     .sw = 3,
     .padding = ADJ_EXPLICIT,
     .pad = {2, 0, 2, 0}},
    /* 1x1: segments and bands of pixels, outputs that fill no vector, groups of them that are
     * brought together, the last one smaller; padding behind the last row */
    {.n = 3, .h = 20, .w = 17, .c = 24, .kh = 1, .kw = 1, .last = 40, .padding = ADJ_SAME},
    {.n = 2, .h = 9, .w = 15, .c = 7, .kh = 1, .kw = 1, .last = 112, .padding = ADJ_SAME},
    {.n = 2, .h = 40, .w = 33, .c = 13, .kh = 1, .kw = 1, .last = 96, .padding = ADJ_SAME},
    {.n = 1, .h = 1, .w = 5, .c = 3, .kh = 1, .kw = 1, .last = 2, .padding = ADJ_SAME},
    {.n = 32, .h = 12, .w = 12, .c = 64, .kh = 1, .kw = 1, .last = 64, .padding = ADJ_SAME},
    {.n = 33, .h = 12, .w = 12, .c = 96, .kh = 1, .kw = 1, .last = 72, .padding = ADJ_SAME},
    {.n = 2,
     .h = 5,
     .w = 7,
     .c = 9,
     .kh = 1,
     .kw = 1,
     .last = 6,
     .padding = ADJ_EXPLICIT,
     .pad = {0, 1, 0, 0}},
};

static void listed(const char *isa)
{
    need_isa(isa);
    for (int i = 0; i < TILE_CASES; i++)
        expect_row_on(tile_cases[i], i % 4 == 3 ? ADJ_F64 : ADJ_F32, isa);
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        expect_row_on(more[i], ADJ_F32, isa);
        expect_row_on(more[i], ADJ_F64, isa);
    }
    for (size_t i = 0; i < sizeof panels / sizeof *panels; i++) {
        expect_row_on(panels[i], ADJ_F32, isa);
        expect_row_on(panels[i], ADJ_F64, isa);
    }
}

Test(direct_filter_gemm, listed_base) { listed("base"); }
Test(direct_filter_gemm, listed_avx2) { listed("avx2"); }
Test(direct_filter_gemm, listed_avx512) { listed("avx512"); }

static void random_rows(const char *isa, uint32_t k)
{
    need_isa(isa);
    for (int i = 0; i < repeats(25); i++)
        expect_row_on(draw_tile_case(&k), i % 2 == 0 ? ADJ_F32 : ADJ_F64, isa);
}

Test(direct_filter_gemm, random_base) { random_rows("base", 600000); }
Test(direct_filter_gemm, random_avx2) { random_rows("avx2", 700000); }
Test(direct_filter_gemm, random_avx512) { random_rows("avx512", 800000); }

/* Against naive's: a tap that does not read the value, and one that reads padding there, stays a
 * number. */
static void expect_special(oracle_conv row, const char *isa, int operand, int64_t i, double value)
{
    static const adj_dtype dtypes[] = {ADJ_F32, ADJ_F64};
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
        conv_problem p = conv_problem_new(row, dtypes[k]);
        p.f.value[operand][i] = value;
        double *want = by_naive(&p.f, p.result[ORACLE_DW]);
        double *got = run_ours(&p.f, isa, 2, p.result[ORACLE_DW]);
        expect_close(got, want, p.n[ORACLE_DW], 0, 0, p.text);
        free(want);
        free(got);
        conv_problem_free(&p);
    }
}

Test(direct_filter_gemm, specials_avx2)
{
    need_isa("avx2");
    check_tile_specials(expect_special, "avx2");
}

Test(direct_filter_gemm, specials_avx512)
{
    need_isa("avx512");
    check_tile_specials(expect_special, "avx512");
}

/* In the second panel of x and in both groups of outputs, at a corner. */
Test(direct_filter_gemm, specials_of_panels)
{
    const oracle_conv row = {.n = 2,
                             .h = 6,
                             .w = 5,
                             .c = 96,
                             .in = 96,
                             .kh = 3,
                             .kw = 3,
                             .last = 280,
                             .padding = ADJ_SAME};
    expect_special(row, best_isa(), 0, 40, NAN);
    expect_special(row, best_isa(), 2, 190, INFINITY);
    expect_special(row, best_isa(), 2, 3, NAN);
}

/* ---- sums ---- */

static const oracle_conv many_pixels = {
    .n = 25, .h = 30, .w = 33, .c = 16, .kh = 3, .kw = 3, .last = 24, .padding = ADJ_SAME};

static const oracle_conv pixels = {
    .n = 25, .h = 30, .w = 33, .c = 16, .kh = 1, .kw = 1, .last = 80, .padding = ADJ_SAME};

static const oracle_conv of_panels = {
    .n = 9, .h = 12, .w = 13, .c = 96, .kh = 3, .kw = 3, .last = 280, .padding = ADJ_SAME};

/* 24,750 terms of one sign, some hundred of a band one after the other: measured 0.9e-7 to 1.8e-7
 * by instruction set; all in one row would be off by more than the bound. */
static void expect_errors(oracle_conv of)
{
    random_sums r = random_sums_new(of, ADJ_F32, 0, 1);
    double *got = run_ours(&r.f, best_isa(), 2, r.n[ORACLE_DW]), worst = 0;
    double *want = oracle_convolve(&r.s, ORACLE_DW, r.f.value[0], NULL, r.f.value[2]);
    for (int64_t i = 0; i < adj_shape_elems(r.s.w); i++)
        worst = fmax(worst, fabs(got[i] - want[i]) / want[i]);
    cr_assert_leq(worst, 1e-6, "%g", worst);
    free(got);
    free(want);
    fixture_free(&r.f);
}

Test(direct_filter_gemm, errors)
{
    expect_errors(many_pixels);
    expect_errors(pixels);
    expect_errors(of_panels);
}

static void expect_same_bits(oracle_conv of)
{
    random_sums r = random_sums_new(of, ADJ_F32, -1, 1);
    expect_same_bits_for_any_threads(&r.f, r.n[ORACLE_DW], best_isa());
    fixture_free(&r.f);
}

Test(direct_filter_gemm, same_bits_for_any_threads)
{
    expect_same_bits(many_pixels);
    expect_same_bits(pixels);
    expect_same_bits(of_panels);
}

Test(direct_filter_gemm, refused)
{
    static const oracle_conv bad[] = {
        {.n = 2, .h = 8, .w = 8, .c = 32, .kh = 3, .kw = 3, .in = 16, .last = 32},
        {.n = 2,
         .h = 8,
         .w = 8,
         .c = 32,
         .kh = 3,
         .kw = 3,
         .in = 32,
         .last = 8,
         .format = ADJ_NCHW},
        {.n = 0, .h = 8, .w = 8, .c = 32, .kh = 3, .kw = 3, .in = 32, .last = 8},
    };
    test_backend t = direct_open_isa(best_isa(), 1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const oracle_sizes s = oracle_sizes_of(bad[i]);
        fixture f = fixture_new();
        adj_node *x = given_random(&f, ADJ_F32, s.x, -1, 1);
        adj_node *dy = given_random(&f, ADJ_F32, s.y, -1, 1);
        const adj_node *dw = adj_conv2d_backprop_filter(x, s.w, dy, &s.attrs);
        cr_assert_not_null(dw, "%s", adj_graph_message(f.g));
        outcome o = run_kernel(&f, &t, "filter_gemm", 1, &dw);
        cr_expect_eq(o.status, ADJ_ENOKERNEL, "%zu", i);
        cr_expect_not_null(strstr(o.why, "f64 in NHWC"), "%s", o.why);
        fixture_free(&f);
    }
    backend_close(&t);
}
