/* test_direct_bf16.c - direct's convolutions with bf16 products: y and dx in bf16, the filter
 * gradient in bf16 and f32, and f32 from three products of bf16 terms. On integers bit for bit
 * against the definition, with one thread and three; with a bias; NaN and infinities against naive;
 * errors of long sums; unsupported cases. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/backends/conv_rows.h"
#include "tests/isa.h"

/* The first candidates: our kernels come before direct's others. */
static const tested_kernel dense = {.impl = {"conv_bf16"}, .first = ORACLE_Y, .last = ORACLE_DX};
static const tested_kernel filter = {
    .impl = {"filter_bf16"}, .is_only = 1, .first = ORACLE_DW, .last = ORACLE_DW};
static const tested_kernel filter_in_f32 = {
    .impl = {"filter_bf16"}, .is_only = 1, .first = ORACLE_DW, .last = ORACLE_DW, .is_cast = 1};
static const tested_kernel by_terms = {.impl = {"conv_bf16x3", "filter_bf16x3"},
                                       .first = ORACLE_Y,
                                       .last = ORACLE_DW,
                                       .math = ADJ_MATH_FAST};

static const oracle_conv many_pixels = {25, 30, 33, 16, 3, 3, 24, .padding = ADJ_SAME};

typedef struct {
    const tested_kernel *kernel;
    adj_dtype dtype;
    const char *isa;
    uint32_t first; /* random row */
    int rows;       /* number of rows */
    const oracle_conv *sums;
    double error; /* error limit of sums; 0: not checked */
} test_case;

/* Products are exact: what is left is the rounding of sums in f32, here of 24,750 terms of one
 * sign, and where the result is bf16 its own to 8 bits. By parts the error is at most 2^-15 of each
 * product; without one of the three products it would be up to 2^-8. */
static const test_case cases[] = {
    {&dense, ADJ_BF16, "amx", 500000, 40, &long_sums, 0x1p-8 * 1.001},
    {&filter, ADJ_BF16, "avx512_bf16", 300000, 25, NULL, 0},
    {&filter, ADJ_BF16, "amx", 400000, 25, NULL, 0},
    {&filter_in_f32, ADJ_BF16, "avx512_bf16", 300000, 25, &many_pixels, 2e-6},
    {&filter_in_f32, ADJ_BF16, "amx", 400000, 25, &many_pixels, 2e-6},
    {&by_terms, ADJ_F32, "amx", 600000, 25, &long_sums, 0x1p-15},
};

static void for_each_case(void (*run)(const test_case *c))
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (can_test(cases[i].isa))
            run(&cases[i]);
}

/* ---- bit for bit ---- */

enum { DIRECTIONS = 3, OPERANDS = 3 }; /* operands: x, w, dy */

/* Which of x, w and dy a direction has none of. */
static int is_operand(int direction, int operand)
{
    static const int without[DIRECTIONS] = {[ORACLE_Y] = 2, [ORACLE_DX] = 0, [ORACLE_DW] = 1};
    return operand != without[direction];
}

static double *run_ours(conv_problem *p, int threads, const adj_node *node)
{
    return run_tested(&by_terms, &p->f, "amx", threads, 1, &node, p->text);
}

static const double two_terms = 257; /* 256 + 1: bf16 has 8 bits */

static void scale(double *v, int64_t n, double by)
{
    for (int64_t i = 0; i < n; i++)
        v[i] *= by;
}

/* An operand's integers are times `two_terms`, the others' have one part. */
static void expect_exact_with(conv_problem *p, int direction, int operand, int64_t n)
{
    scale(p->f.value[operand], n, two_terms);
    for (int threads = min_threads(); threads <= 3; threads += 2) {
        const adj_node *node = p->result[direction];
        scoped(release) double *got = run_ours(p, threads, node);
        for (int64_t i = 0; i < p->n[direction]; i++)
            got[i] /= two_terms;
        expect_close(got, p->want[direction], p->n[direction], 0, 0, p->text);
    }
    scale(p->f.value[operand], n, 1 / two_terms);
}

static void expect_terms_row(oracle_conv row)
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

static void expect_row(const test_case *c, oracle_conv row)
{
    if (c->kernel == &by_terms)
        expect_terms_row(row);
    else
        expect_exact_row(c->kernel, row, c->dtype, c->isa);
}

static void listed(const test_case *c)
{
    for (int i = 0; i < n_tile_case; i++)
        expect_row(c, tile_cases[i]);
}

Test(direct_bf16, listed) { for_each_case(listed); }

static void random_rows(const test_case *c)
{
    uint32_t k = c->first;
    for (int i = 0; i < repeats(c->rows); i++)
        expect_row(c, draw_tile_case(&k));
}

Test(direct_bf16, random) { for_each_case(random_rows); }

static void bias(const test_case *c)
{
    if (c->kernel->first == ORACLE_Y)
        expect_biases(c->kernel, c->dtype, c->isa);
}

Test(direct_bf16, bias) { for_each_case(bias); }

/* ---- numbers without terms ---- */

static void specials(const test_case *c)
{
    if (!c->kernel->is_cast)
        expect_specials(c->kernel, c->dtype, c->isa);
}

Test(direct_bf16, specials) { for_each_case(specials); }

/* Numbers whose first part, or the product of it, would be Inf, though f32 has them and their sums.
 */
Test(direct_terms, largest)
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

/* ---- sums ---- */

static void sums(const test_case *c)
{
    if (c->error > 0) {
        expect_small_errors(c->kernel, *c->sums, c->dtype, c->isa, c->error);
        expect_same_bits_for_any_threads(c->kernel, *c->sums, c->dtype, c->isa);
    }
}

Test(direct_bf16, sums) { for_each_case(sums); }

/* ---- what is refused ---- */

static const char *const less[] = {"base", "avx2", "avx512", "avx512_bf16"};

Test(direct_conv_bf16, refused) { expect_only_bf16(&dense, "amx", 4, less); }
Test(direct_filter_bf16, refused) { expect_only_bf16(&filter, "avx512_bf16", 1, less + 2); }

Test(direct_terms, only_in_fast_math_of_f32)
{
    tested_kernel exact = by_terms;
    exact.math = ADJ_MATH_EXACT;
    need_isa("amx");
    cr_assert_eq(results_of(&by_terms, long_sums, ADJ_F32, "amx"), 7);
    cr_assert_eq(results_of(&exact, long_sums, ADJ_F32, "amx"), 0);
    cr_assert_eq(results_of(&by_terms, long_sums, ADJ_BF16, "amx"), 0);
    cr_assert_eq(results_of(&by_terms, long_sums, ADJ_F64, "amx"), 0);
}

/* On every machine: ADJOINT_MAX_ISA allows no more. */
Test(direct_terms, needs_amx)
{
    for (size_t i = 0; i < sizeof less / sizeof *less; i++)
        if (can_test(less[i]))
            cr_assert_eq(results_of(&by_terms, long_sums, ADJ_F32, less[i]), 0, "%s", less[i]);
}
