/* test_direct_filter_bf16.c - our own filter gradient in bf16: on integers bit for bit against the
 * definition, both kinds of instructions, one thread and three, results in bf16 and in f32; what is
 * not finite; how far sums of many pixels are off. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "tests/backends/conv_rows.h"
#include "tests/isa.h"
#include "tests/repeat.h"

static const tested_kernel ours = {
    .impl = {"filter_bf16"}, .is_only = 1, .first = ORACLE_DW, .last = ORACLE_DW};

enum { N_OURS = 2 };
static const char *const isas[N_OURS] = {"avx512_bf16", "amx"};

/* dw with the cast to f32 behind it. */
static double *run_in_f32(conv_problem *p, const char *isa, int threads)
{
    adj_node *dw = p->result[ORACLE_DW];
    const adj_node *group[] = {dw, adj_cast(dw, ADJ_F32)};
    return run_tested(&ours, &p->f, isa, threads, 2, group, p->text);
}

static void expect_row(oracle_conv row, const char *isa)
{
    expect_exact_row(&ours, row, ADJ_BF16, isa);
    scoped(conv_problem_free) conv_problem p = conv_problem_new(row, ADJ_BF16, INTEGERS);
    scoped(release) double *exact = conv_problem_exact(&p, ORACLE_DW);
    for (int threads = min_threads(); threads <= 3; threads += 2) {
        scoped(release) double *got = run_in_f32(&p, isa, threads);
        expect_close(got, exact, p.n[ORACLE_DW], 0, 0, p.text);
    }
}

static void listed(const char *isa)
{
    for (int i = 0; i < n_tile_case; i++)
        expect_row(tile_cases[i], isa);
}

Test(direct_filter_bf16, listed) { for_each_isa(N_OURS, isas, listed); }

static void random_rows(const char *isa)
{
    uint32_t k = isa == isas[0] ? 300000 : 400000;
    for (int i = 0; i < repeats(25); i++)
        expect_row(draw_tile_case(&k), isa);
}

Test(direct_filter_bf16, random) { for_each_isa(N_OURS, isas, random_rows); }

static void specials(const char *isa) { expect_specials(&ours, ADJ_BF16, isa); }

Test(direct_filter_bf16, specials) { for_each_isa(N_OURS, isas, specials); }

/* ---- sums ---- */

static const oracle_conv many_pixels = {25, 30, 33, 16, 3, 3, 24, .padding = ADJ_SAME};

/* Products are exact: all of the error is that of sums of 24,750 terms of one sign. */
static void errors(const char *isa)
{
    scoped(conv_problem_free) conv_problem p = conv_problem_new(many_pixels, ADJ_BF16, POSITIVE);
    double *got = run_in_f32(&p, isa, 2), *want = conv_problem_exact(&p, ORACLE_DW), worst = 0;
    for (int64_t i = 0; i < p.n[ORACLE_DW]; i++)
        worst = fmax(worst, fabs(got[i] - want[i]) / want[i]);
    cr_assert_leq(worst, 2e-6, "%g", worst);
    free(got);
    free(want);
}

Test(direct_filter_bf16, errors) { for_each_isa(N_OURS, isas, errors); }

static void same_bits(const char *isa)
{
    scoped(conv_problem_free) conv_problem p = conv_problem_new(many_pixels, ADJ_BF16, REALS);
    scoped(release) double *one = run_in_f32(&p, isa, 1);
    for (int threads = 2; threads <= 7; threads++) {
        scoped(release) double *other = run_in_f32(&p, isa, threads);
        expect_same_bits(other, one, p.n[ORACLE_DW], p.text);
    }
}

Test(direct_filter_bf16, same_bits_for_any_threads) { for_each_isa(N_OURS, isas, same_bits); }

Test(direct_filter_bf16, refused)
{
    static const char *const less[] = {"avx512"};
    expect_only_bf16(&ours, "avx512_bf16", 1, less);
}
