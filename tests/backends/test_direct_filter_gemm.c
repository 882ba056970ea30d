/* test_direct_filter_gemm.c - direct's filter gradient in f32 and f64: on integers bit for bit
 * against the definition, every instruction set, one thread and three; NaN and infinities; errors
 * of sums over many pixels. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/backends/conv_rows.h"
#include "tests/isa.h"
#include "tests/repeat.h"

static const tested_kernel ours = {"filter_gemm", .first = ORACLE_DW, .last = ORACLE_DW};

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
 * bands of an image. Pads beyond all that a row of windows reads. */
static const oracle_conv more[] = {
    {2, 21, 19, 162, 3, 3, 56, .padding = ADJ_SAME},
    {2, 11, 9, 162, 3, 3, 48, .padding = ADJ_SAME},
    {2, 3, 1, 16, 1, 1, 8, .sw = 101, .padding = ADJ_EXPLICIT, .pad = {0, 0, 100, 0}},
    {1, 1, 1, 3, 1, 1, 2, .sh = 3, .sw = 3, .padding = ADJ_EXPLICIT, .pad = {2, 0, 2, 0}},
    /* 1x1: segments and bands of pixels, outputs that fill no vector, groups of them that are
     * brought together, the last one smaller; padding behind the last row */
    {3, 20, 17, 24, 1, 1, 40, .padding = ADJ_SAME},
    {2, 9, 15, 7, 1, 1, 112, .padding = ADJ_SAME},
    {2, 40, 33, 13, 1, 1, 96, .padding = ADJ_SAME},
    {1, 1, 5, 3, 1, 1, 2, .padding = ADJ_SAME},
    {32, 12, 12, 64, 1, 1, 64, .padding = ADJ_SAME},
    {33, 12, 12, 96, 1, 1, 72, .padding = ADJ_SAME},
    {2, 5, 7, 9, 1, 1, 6, .padding = ADJ_EXPLICIT, .pad = {0, 1, 0, 0}},
};

static void expect_row(oracle_conv row, const char *isa)
{
    expect_exact_row(&ours, row, ADJ_F32, isa);
    expect_exact_row(&ours, row, ADJ_F64, isa);
}

static void listed(const char *isa)
{
    for (int i = 0; i < n_tile_case; i++)
        expect_exact_row(&ours, tile_cases[i], i % 4 == 3 ? ADJ_F64 : ADJ_F32, isa);
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        expect_row(more[i], isa);
    for (size_t i = 0; i < sizeof panels / sizeof *panels; i++)
        expect_row(panels[i], isa);
}

Test(direct_filter_gemm, listed) { for_each_isa(N_ISA, all_isas, listed); }

static void random_rows(const char *isa)
{
    uint32_t k = isa == all_isas[0] ? 600000 : isa == all_isas[1] ? 700000 : 800000;
    for (int i = 0; i < repeats(25); i++)
        expect_exact_row(&ours, draw_tile_case(&k), i % 2 == 0 ? ADJ_F32 : ADJ_F64, isa);
}

Test(direct_filter_gemm, random) { for_each_isa(N_ISA, all_isas, random_rows); }

static void specials(const char *isa)
{
    expect_specials(&ours, ADJ_F32, isa);
    expect_specials(&ours, ADJ_F64, isa);
}

Test(direct_filter_gemm, specials) { for_each_isa(2, all_isas + 1, specials); }

/* In the second panel of x and in both groups of outputs, at a corner. */
Test(direct_filter_gemm, specials_of_panels)
{
    const oracle_conv row = {2, 6, 5, 96, 3, 3, 280, .padding = ADJ_SAME};
    for (adj_dtype dtype = ADJ_F32; dtype <= ADJ_F64; dtype++) {
        expect_special(&ours, row, dtype, best_isa(), 0, 40, NAN);
        expect_special(&ours, row, dtype, best_isa(), 2, 190, INFINITY);
        expect_special(&ours, row, dtype, best_isa(), 2, 3, NAN);
    }
}

/* ---- sums ---- */

static const oracle_conv many_pixels[] = {{25, 30, 33, 16, 3, 3, 24, .padding = ADJ_SAME},
                                          {25, 30, 33, 16, 1, 1, 80, .padding = ADJ_SAME},
                                          {9, 12, 13, 96, 3, 3, 280, .padding = ADJ_SAME}};

/* 24,750 terms of one sign, some hundred of a band one after the other: measured 0.9e-7 to 1.8e-7
 * by instruction set; all in one row would be off by more than the bound. */
Test(direct_filter_gemm, errors)
{
    for (int i = 0; i < 3; i++)
        expect_small_errors(&ours, many_pixels[i], ADJ_F32, best_isa(), 1e-6);
}

Test(direct_filter_gemm, same_bits_for_any_threads)
{
    for (int i = 0; i < 3; i++)
        expect_same_bits_for_any_threads(&ours, many_pixels[i], ADJ_F32, best_isa());
}

Test(direct_filter_gemm, refused)
{
    static const oracle_conv bad[] = {
        {2, 8, 8, 32, 3, 3, 32, .in = 16},
        {2, 8, 8, 32, 3, 3, 8, .format = ADJ_NCHW},
        {0, 8, 8, 32, 3, 3, 8, .padding = ADJ_VALID},
    };
    scoped(backend_close) test_backend t = direct_open(best_isa(), 1, ADJ_MATH_EXACT);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        scoped(conv_problem_free) conv_problem p = conv_problem_new(bad[i], ADJ_F32, REALS);
        const adj_node *dw = p.result[ORACLE_DW];
        outcome o = run_kernel(&p.f, &t, "filter_gemm", 1, &dw);
        cr_expect_eq(o.status, ADJ_ENOKERNEL, "%zu", i);
        expect_text(o.why, "f64 in NHWC");
    }
}
