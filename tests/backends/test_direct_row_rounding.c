/* test_direct_row_rounding.c - which bits a row kernel (direct/fused_pointwise/row_kernel.h) keeps:
 * ties, subnormal numbers, NaN and infinity, for every instruction set; sums of many rows, which
 * float alone would round away. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/backends/row_problem.h"
#include "tests/isa.h"

TestSuite(direct_row_rounding, .init = plan_as_usual);

/* In float, of 469 times 0.3, which a segment of 64 has, the sum of the first 256 is 2e-7 of itself
 * off, of the others 1.8e-6, and of all 4.7e-6. */
Test(direct_row_rounding, sums_of_many_rows)
{
    scoped(row_problem_free) row_problem s = row_problem_new(SUM, ADJ_F32, 30000, 64);
    row_fill(&s, s.a, (double)0.3F);
    row_run(&s, 1);
    for (int k = 0; k < 64; k++)
        cr_assert_float_eq(s.got[0][k], 9000, 2e-6 * 9000, "%g, not 9000", s.got[0][k]);
}

static void expect_subnormal(const char *isa)
{
    scoped(row_problem_free) row_problem s = row_problem_new(RELU, ADJ_BF16, 5, 64);
    row_fill(&s, s.a, 0x1p-130);
    row_input(&s, s.a)[7] = 0x1p-126;
    row_run(&s, 1);
    cr_expect_eq(s.got[0][6], 0x1p-130, "%s: %g", isa, s.got[0][6]);
    cr_expect_eq(s.got[0][7], 0x1p-126, "%s: %g", isa, s.got[0][7]);
}

/* Subnormal numbers stay, also where avx512_bf16's instruction would make them 0. */
Test(direct_row_rounding, subnormal) { for_each_isa(N_ROW_ISA, row_isas, expect_subnormal); }

static void expect_nan_and_infinity(const char *isa)
{
    const uint64_t all_ones = 0x7fffffffffffffff;
    for (int half = 0; half < 2; half++) {
        scoped(row_problem_free) row_problem s =
            row_problem_new(NORM | RELU, half ? ADJ_BF16 : ADJ_F32, 64, 16);
        row_input(&s, s.a)[7] = NAN;
        row_input(&s, s.a)[8] = INFINITY;
        row_input(&s, s.gamma)[8 % 16] = 1;
        memcpy(&row_input(&s, s.beta)[9], &all_ones, sizeof(double));
        row_run(&s, 1);
        cr_assert(isnan(s.got[0][7]), "%s: %g", isa, s.got[0][7]);
        cr_assert_eq(s.got[0][8], INFINITY, "%s: %g", isa, s.got[0][8]);
        cr_assert(isnan(s.got[0][9]), "%s: %g", isa, s.got[0][9]);
    }
}

/* What is not a number stays so through relu and rounding, whatever its bits. */
Test(direct_row_rounding, nan_and_infinity)
{
    for_each_isa(N_ROW_ISA, row_isas, expect_nan_and_infinity);
}

/* Sums of two bf16 whose f32 result lies half way between two bf16, or just beside that. */
static const struct {
    uint16_t a, b, sum; /* bits */
} ties[] = {
    {0x3f80, 0x3b80, 0x3f80}, /* 1 + 2^-8: the even one is below */
    {0x3f81, 0x3b80, 0x3f82}, /* and above */
    {0xbf80, 0xbb80, 0xbf80}, /* the same below 0 */
    {0xbf81, 0xbb80, 0xbf82}, /**/
    {0x3f81, 0xbb80, 0x3f80}, /* from above */
    {0xbf82, 0x3b80, 0xbf82}, /**/
    {0x3fff, 0x3b80, 0x4000}, /* into the next exponent */
    {0x3f80, 0x3b81, 0x3f81}, /* 2^-15 more than half way */
    {0x3f81, 0x3b7f, 0x3f81}, /* 2^-16 less */
};
enum { TIES = sizeof ties / sizeof *ties };

static double value_of_bf16(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float v;
    memcpy(&v, &wide, sizeof v);
    return (double)v;
}

/* Channel k has tie k + first. A batch norm by itself adds b as a mean; its factor is 1. */
static void expect_ties(int bits, const int64_t size[2], int first)
{
    scoped(row_problem_free) row_problem s = row_problem_new(bits, ADJ_BF16, size[0], size[1]);
    row_fill(&s, s.gamma, 1);
    row_fill(&s, s.beta, 0);
    row_fill(&s, s.mask, 1);
    double *a = row_input(&s, s.a), *b = row_input(&s, s.b), *stats = row_input(&s, s.stats);
    for (int64_t k = 0; k < s.c; k++) {
        stats[k] = bits & ADD ? 0 : -value_of_bf16(ties[(k + first) % TIES].b);
        stats[s.c + k] = 1 - epsilon;
    }
    for (int64_t i = 0; i < s.pixels * s.c; i++) {
        a[i] = value_of_bf16(ties[(i % s.c + first) % TIES].a);
        b[i] = value_of_bf16(ties[(i % s.c + first) % TIES].b);
    }
    row_run(&s, 1);
    for (int64_t i = 0; i < s.pixels * s.c; i++) {
        const int tie = (int)((i % s.c + first) % TIES);
        const double want = value_of_bf16(ties[tie].sum);
        cr_assert_eq(s.got[0][i], want, "%x, %d channels, element %d, tie %d: %a, not %a",
                     (unsigned)bits, (int)s.c, (int)i, tie, s.got[0][i], want);
    }
}

static void expect_every_tie(const char *isa)
{
    static const int adding[] = {NORM, NORM | ADD, ADD | MASK};
    static const int64_t shapes[][2] = {{1, 1}, {5, 3}, {3, 21}, {16, 8}, {3, 64}, {3, 136}};
    (void)isa;
    for (int i = 0; i < 3; i++)
        for (size_t j = 0; j < sizeof shapes / sizeof *shapes; j++)
            for (int first = 0; first < TIES; first++)
                expect_ties(adding[i], shapes[j], first);
}

/* To the even one of two neighbours, at every place of a row. */
Test(direct_row_rounding, ties_are_rounded_to_even)
{
    for_each_isa(N_ROW_ISA, row_isas, expect_every_tie);
}
