/* test_direct_bf16.c - direct's convolutions with bf16 products: y and dx in bf16, the filter
 * gradient in bf16 and f32, and f32 from three products of bf16 parts. On integers bit for bit
 * against the definition, with one thread and three; with a bias; NaN and infinities against naive;
 * errors of long sums; unsupported cases. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/backends/conv_rows.h"
#include "tests/isa.h"

/* ---- y and dx ---- */

/* The first candidate: our kernel comes before direct's others. */
static const tested_kernel dense = {.impl = {"conv_bf16"}, .first = ORACLE_Y, .last = ORACLE_DX};

Test(direct_conv_bf16, listed)
{
    need_isa("amx");
    for (int i = 0; i < n_tile_case; i++)
        expect_exact_row(&dense, tile_cases[i], ADJ_BF16, "amx");
}

Test(direct_conv_bf16, random)
{
    need_isa("amx");
    uint32_t k = 500000;
    for (int i = 0; i < repeats(40); i++)
        expect_exact_row(&dense, draw_tile_case(&k), ADJ_BF16, "amx");
}

Test(direct_conv_bf16, bias)
{
    need_isa("amx");
    expect_biases(&dense, ADJ_BF16, "amx");
}

Test(direct_conv_bf16, specials)
{
    need_isa("amx");
    expect_specials(&dense, ADJ_BF16, "amx");
}

/* Products are exact: what is left is the last rounding to 8 bits, and that of sums in f32. */
Test(direct_conv_bf16, errors)
{
    need_isa("amx");
    expect_small_errors(&dense, long_sums, ADJ_BF16, "amx", 0x1p-8 * 1.001);
}

Test(direct_conv_bf16, same_bits_for_any_threads)
{
    need_isa("amx");
    expect_same_bits_for_any_threads(&dense, long_sums, ADJ_BF16, "amx");
}

Test(direct_conv_bf16, refused)
{
    static const char *const less[] = {"base", "avx2", "avx512", "avx512_bf16"};
    expect_only_bf16(&dense, "amx", 4, less);
}

/* ---- the filter gradient ---- */

static const tested_kernel filter = {
    .impl = {"filter_bf16"}, .is_only = 1, .first = ORACLE_DW, .last = ORACLE_DW};
static const tested_kernel filter_in_f32 = {
    .impl = {"filter_bf16"}, .is_only = 1, .first = ORACLE_DW, .last = ORACLE_DW, .is_cast = 1};

enum { N_OURS = 2 };
static const char *const isas[N_OURS] = {"avx512_bf16", "amx"};

static void expect_filter_row(oracle_conv row, const char *isa)
{
    expect_exact_row(&filter, row, ADJ_BF16, isa);
    expect_exact_row(&filter_in_f32, row, ADJ_BF16, isa);
}

static void filter_listed(const char *isa)
{
    for (int i = 0; i < n_tile_case; i++)
        expect_filter_row(tile_cases[i], isa);
}

Test(direct_filter_bf16, filter_listed) { for_each_isa(N_OURS, isas, filter_listed); }

static void filter_random(const char *isa)
{
    uint32_t k = isa == isas[0] ? 300000 : 400000;
    for (int i = 0; i < repeats(25); i++)
        expect_filter_row(draw_tile_case(&k), isa);
}

Test(direct_filter_bf16, random) { for_each_isa(N_OURS, isas, filter_random); }

static void filter_specials(const char *isa) { expect_specials(&filter, ADJ_BF16, isa); }

Test(direct_filter_bf16, filter_specials) { for_each_isa(N_OURS, isas, filter_specials); }

/* ---- sums ---- */

static const oracle_conv many_pixels = {25, 30, 33, 16, 3, 3, 24, .padding = ADJ_SAME};

/* Products are exact: all of the error is that of sums of 24,750 terms of one sign. */
static void filter_errors(const char *isa)
{
    expect_small_errors(&filter_in_f32, many_pixels, ADJ_BF16, isa, 2e-6);
}

Test(direct_filter_bf16, filter_errors) { for_each_isa(N_OURS, isas, filter_errors); }

static void filter_same_bits(const char *isa)
{
    expect_same_bits_for_any_threads(&filter_in_f32, many_pixels, ADJ_BF16, isa);
}

Test(direct_filter_bf16, same_bits_for_any_threads)
{
    for_each_isa(N_OURS, isas, filter_same_bits);
}

Test(direct_filter_bf16, refused)
{
    static const char *const less[] = {"avx512"};
    expect_only_bf16(&filter, "avx512_bf16", 1, less);
}

/* ---- f32 by parts of bf16 ---- */

enum { DIRECTIONS = 3, OPERANDS = 3 }; /* operands: x, w, dy */

/* Which of x, w and dy a direction has none of. */
static int is_operand(int direction, int operand)
{
    static const int without[DIRECTIONS] = {[ORACLE_Y] = 2, [ORACLE_DX] = 0, [ORACLE_DW] = 1};
    return operand != without[direction];
}

/* The first candidate: our kernels come before direct's others. */
static const tested_kernel by_parts = {.impl = {"conv_bf16x3", "filter_bf16x3"},
                                       .first = ORACLE_Y,
                                       .last = ORACLE_DW,
                                       .math = ADJ_MATH_FAST};

static double *run_ours(conv_problem *p, int threads, const adj_node *node)
{
    return run_tested(&by_parts, &p->f, "amx", threads, 1, &node, p->text);
}

/* ---- bit for bit ---- */

static const double two_parts = 257; /* 256 + 1: bf16 has 8 bits */

static void scale(double *v, int64_t n, double by)
{
    for (int64_t i = 0; i < n; i++)
        v[i] *= by;
}

/* An operand's integers are times `two_parts`, the others' have one part. */
static void expect_exact_with(conv_problem *p, int direction, int operand, int64_t n)
{
    scale(p->f.value[operand], n, two_parts);
    for (int threads = min_threads(); threads <= 3; threads += 2) {
        const adj_node *node = p->result[direction];
        scoped(release) double *got = run_ours(p, threads, node);
        for (int64_t i = 0; i < p->n[direction]; i++)
            got[i] /= two_parts;
        expect_close(got, p->want[direction], p->n[direction], 0, 0, p->text);
    }
    scale(p->f.value[operand], n, 1 / two_parts);
}

static void expect_parts_row(oracle_conv row)
{
    scoped(conv_problem_free) conv_problem p = conv_problem_new(row, ADJ_F32, INTEGERS);
    conv_problem_solve(&p);
    const int64_t n[OPERANDS] = {adj_shape_elems(p.s.x), adj_shape_elems(p.s.w),
                                 adj_shape_elems(p.s.y)};
    for (int direction = 0; direction < DIRECTIONS; direction++)
        for (int operand = 0; operand < OPERANDS; operand++)
            if (is_operand(direction, operand))
                expect_exact_with(&p, direction, operand, n[operand]);
}

Test(direct_parts, listed)
{
    need_isa("amx");
    for (int i = 0; i < n_tile_case; i++)
        expect_parts_row(tile_cases[i]);
}

Test(direct_parts, random)
{
    need_isa("amx");
    uint32_t k = 600000;
    for (int i = 0; i < repeats(25); i++)
        expect_parts_row(draw_tile_case(&k));
}

Test(direct_parts, bias)
{
    need_isa("amx");
    expect_biases(&by_parts, ADJ_F32, "amx");
}

/* ---- numbers without parts ---- */

Test(direct_parts, specials)
{
    need_isa("amx");
    expect_specials(&by_parts, ADJ_F32, "amx");
}

/* Numbers whose first part, or the product of it, would be Inf, though f32 has them and their sums.
 */
Test(direct_parts, largest)
{
    static const oracle_conv row = {2, 5, 6, 3, 1, 1, 5, .padding = ADJ_VALID};
    static const double large[] = {0x1.fffffep127, 0x1.fffp126, 0x1.fep127, 0x1p50, 0x1.fffffep49};
    need_isa("amx");
    scoped(conv_problem_free) conv_problem p = conv_problem_new(row, ADJ_F32, INTEGERS);
    for (size_t k = 0; k < OPERANDS * sizeof large / sizeof *large; k++) {
        const size_t operand = k % OPERANDS;
        const double was = p.f.value[operand][0];
        p.f.value[operand][0] = large[k / OPERANDS];
        for (int direction = 0; direction < DIRECTIONS; direction++) {
            const adj_node *n = p.result[direction];
            scoped(release) double *want = by_naive(&p.f, n), *got = run_ours(&p, 2, n);
            expect_close(got, want, p.n[direction], 0x1p-22, 0, p.text);
        }
        p.f.value[operand][0] = was;
    }
}

/* ---- errors ---- */

/* Errors of sums of positive products: at most 2^-15 of each product, which covers the rounding of
 * sums in f32. Without one of the three products the error would be up to 2^-8. */
Test(direct_parts, errors)
{
    need_isa("amx");
    expect_small_errors(&by_parts, long_sums, ADJ_F32, "amx", 0x1p-15);
}

Test(direct_parts, same_bits_for_any_threads)
{
    need_isa("amx");
    expect_same_bits_for_any_threads(&by_parts, long_sums, ADJ_F32, "amx");
}

/* ---- what is refused ---- */

Test(direct_parts, only_in_fast_math_of_f32)
{
    tested_kernel exact = by_parts;
    exact.math = ADJ_MATH_EXACT;
    need_isa("amx");
    cr_assert_eq(results_of(&by_parts, long_sums, ADJ_F32, "amx"), 7);
    cr_assert_eq(results_of(&exact, long_sums, ADJ_F32, "amx"), 0);
    cr_assert_eq(results_of(&by_parts, long_sums, ADJ_BF16, "amx"), 0);
    cr_assert_eq(results_of(&by_parts, long_sums, ADJ_F64, "amx"), 0);
}

/* On every machine: ADJOINT_MAX_ISA allows no more. */
Test(direct_parts, needs_amx)
{
    static const char *const less[] = {"base", "avx2", "avx512", "avx512_bf16"};
    for (size_t i = 0; i < sizeof less / sizeof *less; i++)
        if (can_test(less[i]))
            cr_assert_eq(results_of(&by_parts, long_sums, ADJ_F32, less[i]), 0, "%s", less[i]);
}
