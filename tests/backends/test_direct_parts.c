/* test_direct_parts.c - our own convolutions and gradients of f32 by three products of bf16 parts:
 * where one operand is exact in bf16, on integers bit for bit against the definition, each of the
 * three products among them; what is left out, against its bound; numbers that have no parts,
 * against naive; what is refused. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/backends/conv_rows.h"
#include "tests/isa.h"
#include "tests/repeat.h"

enum { DIRECTIONS = 3, OPERANDS = 3 }; /* operands: x, w, dy */

/* Which of x, w and dy a direction has none of. */
static int is_operand(int direction, int operand)
{
    static const int without[DIRECTIONS] = {[ORACLE_Y] = 2, [ORACLE_DX] = 0, [ORACLE_DW] = 1};
    return operand != without[direction];
}

/* The first candidate: our kernels come before direct's others. */
static const tested_kernel ours = {.impl = {"conv_bf16x3", "filter_bf16x3"},
                                   .first = ORACLE_Y,
                                   .last = ORACLE_DW,
                                   .math = ADJ_MATH_FAST};

static double *run_ours(conv_problem *p, int threads, const adj_node *node)
{
    return run_tested(&ours, &p->f, "amx", threads, 1, &node, p->text);
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

static void expect_row(oracle_conv row)
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
        expect_row(tile_cases[i]);
}

Test(direct_parts, random)
{
    need_isa("amx");
    uint32_t k = 600000;
    for (int i = 0; i < repeats(25); i++)
        expect_row(draw_tile_case(&k));
}

Test(direct_parts, bias)
{
    need_isa("amx");
    expect_biases(&ours, ADJ_F32, "amx");
}

/* ---- numbers without parts ---- */

Test(direct_parts, specials)
{
    need_isa("amx");
    expect_specials(&ours, ADJ_F32, "amx");
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

/* Of positive sums: 2^-15 of each product at most, which hides the rounding of sums in f32, that
 * cancels. Without one of the three products it would be up to 2^-8. */
Test(direct_parts, errors)
{
    need_isa("amx");
    expect_small_errors(&ours, long_sums, ADJ_F32, "amx", 0x1p-15);
}

Test(direct_parts, same_bits_for_any_threads)
{
    need_isa("amx");
    expect_same_bits_for_any_threads(&ours, long_sums, ADJ_F32, "amx");
}

/* ---- what is refused ---- */

Test(direct_parts, only_in_fast_math_of_f32)
{
    tested_kernel exact = ours;
    exact.math = ADJ_MATH_EXACT;
    need_isa("amx");
    cr_assert_eq(results_of(&ours, long_sums, ADJ_F32, "amx"), 7);
    cr_assert_eq(results_of(&exact, long_sums, ADJ_F32, "amx"), 0);
    cr_assert_eq(results_of(&ours, long_sums, ADJ_BF16, "amx"), 0);
    cr_assert_eq(results_of(&ours, long_sums, ADJ_F64, "amx"), 0);
}

/* On every machine: ADJOINT_MAX_ISA allows no more. */
Test(direct_parts, needs_amx)
{
    static const char *const less[] = {"base", "avx2", "avx512", "avx512_bf16"};
    for (size_t i = 0; i < sizeof less / sizeof *less; i++)
        if (can_test(less[i]))
            cr_assert_eq(results_of(&ours, long_sums, ADJ_F32, less[i]), 0, "%s", less[i]);
}
