/* test_direct_row_kernel.c - fused groups that are one loop (direct/fused_pointwise/row_kernel.h):
 * each pattern of nodes, for every instruction set and both types, with rows shorter and longer
 * than a row kernel's width and not a multiple of it; where the loop's results are stored; which
 * norms are recomputed, with which statistics and in how many loops; and exact bits for ties,
 * subnormal numbers, NaN, infinity and sums of many rows that f32 alone would round away. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/grad.h"
#include "tests/backends/row_problem.h"
#include "tests/isa.h"
#include "tests/norm_reference.h"

static const int64_t sizes[][2] = {/* pixels and channels */
                                   {8, 8},     {64, 3},    {1024, 16}, {16, 12},
                                   {33, 64},   {201, 128}, {40, 96},   {1500, 32},
                                   {64, 1001}, {1, 1},     {3, 21},    {5, 37},
                                   {700, 37},  {129, 100}, {77, 3},    {31, 136}};

TestSuite(direct_row_kernel, .init = plan_as_usual);

static void expect_pattern(int bits, adj_dtype dtype, const int64_t size[2])
{
    scoped(row_problem_free) row_problem s = row_problem_new(bits, dtype, size[0], size[1]);
    row_run(&s, size[0] % 2 + 1);
    expect_row_values(&s);
}

static void expect_every_pattern(const char *isa)
{
    (void)isa;
    for (int i = 0; i < n_row_pattern; i++)
        for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++)
            for (int half = (row_patterns[i] & CAST) != 0; half < 2; half++)
                expect_pattern(row_patterns[i], half ? ADJ_BF16 : ADJ_F32, sizes[j]);
}

Test(direct_row_kernel, every_pattern_in_every_size)
{
    for_each_isa(N_ROW_ISA, row_isas, expect_every_pattern);
}

static void expect_first_as_naive(row_problem *s)
{
    scoped(release) double *want = evaluate(&s->f, s->out[0], "naive");
    row_run(s, 1);
    expect_close(s->got[0], want, adj_shape_elems(s->out[0]->type.shape), 1e-5, 1e-4, "sums");
}

/* A value that dies with the sums over it, which d is as large as: d may not take its place. */
Test(direct_row_kernel, sums_read_what_nothing_else_needs)
{
    for (int half = 0; half < 2; half++) {
        scoped(row_problem_free) row_problem s = {.f = fixture_new()};
        adj_dtype dtype = half ? ADJ_BF16 : ADJ_F32;
        adj_shape full = {2, {64, 64}};
        adj_node *x = adj_tanh(given_random(&s.f, dtype, full, -1, 1)); /* never in a group */
        adj_node *dy = given_random(&s.f, dtype, full, -1, 1);
        adj_node *stats = given_random(&s.f, ADJ_F32, (adj_shape){2, {2, 64}}, 0.5, 1.5);
        adj_node *d = adj_relu_grad(dy, given_random(&s.f, dtype, full, -1, 1));
        s.out[s.n++] = adj_batch_norm_grad_sums(x, stats, d, epsilon, ADJ_NHWC);
        s.out[s.n++] = adj_tanh(d); /* d is not fetched, so it needs no memory of its own */
        expect_first_as_naive(&s);
    }
}

/* A cast before a sum is written where it is a result, too. */
Test(direct_row_kernel, a_cast_that_is_fetched)
{
    scoped(row_problem_free) row_problem s = {.f = fixture_new(), .pixels = 64, .c = 16};
    const adj_shape full = {2, {64, 16}};
    adj_node *dy = given_random(&s.f, ADJ_BF16, full, -1, 1);
    adj_node *y = given_random(&s.f, ADJ_BF16, full, -1, 1);
    adj_node *d = adj_relu_grad(dy, y), *wide = adj_cast(d, ADJ_F32);
    s.out[s.n++] = d;
    s.out[s.n++] = wide;
    s.out[s.n++] = adj_bias_add_grad(wide, ADJ_NHWC);
    cr_assert_eq(row_run_steps(&s, 1, 3), 1, "one step of three nodes");
    for (int i = 0; i < 64 * 16; i++) {
        const double want = s.f.value[1][i] > 0 ? s.f.value[0][i] : 0;
        cr_assert_eq(s.got[0][i], want);
        cr_assert_eq(s.got[1][i], want);
    }
}

/* ---- norms that are computed again ---- */

TestSuite(direct_row_recomputed, .init = plan_as_usual);

/* Sums over what one norm masks, by another's mean. */
Test(direct_row_recomputed, sums_by_another_mean_than_the_mask)
{
    scoped(row_problem_free) row_problem s = row_problem_new(NORM_MASK | SUMS, ADJ_F32, 64, 16);
    adj_node *other = given_random(&s.f, ADJ_F32, (adj_shape){2, {2, 16}}, 2.5, 3.5);
    adj_node *mask = adj_batch_norm(s.x[0], s.stats, s.gamma, s.beta, epsilon, ADJ_NHWC);
    s.out[0] = adj_batch_norm_grad_sums(s.x[0], other, adj_relu_grad(s.b, mask), epsilon, ADJ_NHWC);
    s.bits = 0;
    expect_first_as_naive(&s);
}

/* The norm that is recomputed for its relu is read by another node, too. */
Test(direct_row_recomputed, a_norm_that_others_read)
{
    scoped(row_problem_free) row_problem s =
        row_problem_new(NORM_MASK | SUMS | NORM_OUT, ADJ_F32, 64, 16);
    s.out[s.n++] = adj_tanh(s.out[0]->in[0]);
    s.bits = 0; /* no one kernel */
    row_run(&s, 1);
    for (int64_t i = 0; i < 64 * 16; i++) {
        const double z = row_wanted_norm(&s, i);
        cr_assert_float_eq(s.got[0][i], z > 0 ? z : 0, 1e-5, "relu, %d: %g", (int)i, s.got[0][i]);
        cr_assert_float_eq(s.got[2][i], tanh(z), 1e-5, "tanh, %d: %g", (int)i, s.got[2][i]);
    }
}

/* dx, dgamma and dbeta of a batch norm and a relu: those of the norm where relu lets dy pass. */
static void expect_gradients(const row_problem *s)
{
    const norm_problem whole = {{2, {s->pixels, s->c}}, 0, epsilon, ADJ_NHWC};
    const double *x = s->f.value[0], *gamma = s->f.value[2], *beta = s->f.value[3];
    const double u = s->a->type.dtype == ADJ_BF16 ? 0x1p-8 : 1e-5, slack = 1e-5 * (double)s->pixels;
    double *dy = s->f.value[1];
    scoped(norm_answers_free) norm_answers forward = norm_reference(&whole, x, gamma, beta, dy);
    for (int64_t i = 0; i < s->pixels * s->c; i++)
        dy[i] = forward.y[i] > 0 ? dy[i] : 0;
    scoped(norm_answers_free) norm_answers want = norm_reference(&whole, x, gamma, beta, dy);
    for (int64_t i = 0; i < s->pixels * s->c; i++)
        cr_assert_float_eq(s->got[0][i], want.dx[i], u * fabs(want.dx[i]) + 1e-5);
    for (int64_t k = 0; k < s->c; k++) {
        cr_assert_float_eq(s->got[1][k], want.sums[k], slack);
        cr_assert_float_eq(s->got[2][k], want.sums[s->c + k], slack);
    }
}

/* Each gradient is from two passes that read x and dy. */
static void expect_masked_twice(adj_dtype dtype, int64_t pixels, int64_t c)
{
    scoped(row_problem_free) row_problem s = {.f = fixture_new(), .pixels = pixels, .c = c, .n = 3};
    adj_node *x = s.a = given_random(&s.f, dtype, (adj_shape){2, {pixels, c}}, -1, 1);
    adj_node *dy = given_random(&s.f, dtype, (adj_shape){2, {pixels, c}}, -1, 1);
    adj_node *gamma = given_random(&s.f, ADJ_F32, (adj_shape){1, {c}}, -1, 1);
    adj_node *beta = given_random(&s.f, ADJ_F32, (adj_shape){1, {c}}, -1, 1);
    adj_node *stats = adj_batch_norm_stats(x, ADJ_NHWC);
    adj_node *y = adj_relu(adj_batch_norm(x, stats, gamma, beta, epsilon, ADJ_NHWC));
    cr_assert_eq(adj_grad(y, dy, 3, (adj_node *[]){x, gamma, beta}, s.out), ADJ_OK);
    cr_assert_eq(row_run_steps(&s, 2, 3), 2, "two steps of three nodes");
    expect_gradients(&s);
}

Test(direct_row_recomputed, a_mask_is_made_twice)
{
    for (int half = 0; half < 2; half++) {
        expect_masked_twice(half ? ADJ_BF16 : ADJ_F32, 1024, 16);
        expect_masked_twice(half ? ADJ_BF16 : ADJ_F32, 200, 128);
        expect_masked_twice(half ? ADJ_BF16 : ADJ_F32, 33, 5);
    }
}

/* ---- rounding ---- */

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

/* NaNs of any bits stay NaN through relu and rounding. */
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

/* To the even one of two neighbors, at every place of a row. */
Test(direct_row_rounding, ties_are_rounded_to_even)
{
    for_each_isa(N_ROW_ISA, row_isas, expect_every_tie);
}
