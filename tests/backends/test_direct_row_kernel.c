/* test_direct_row_kernel.c - fused groups that are one loop (direct/fused_pointwise/row_kernel.h):
 * each pattern of nodes, for every instruction set and both types, with rows that are shorter and
 * longer than a row kernel's width, and that are no multiple of it; and where what the loop writes
 * is kept. How it rounds is test_direct_row_rounding.c's, norms that are computed again are
 * test_direct_row_recomputed.c's. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "tests/backends/row_problem.h"
#include "tests/isa.h"

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
        scoped(release) double *want = evaluate(&s.f, s.out[0], "naive");
        row_run(&s, 1);
        for (int i = 0; i < 128; i++)
            cr_expect_float_eq(s.got[0][i], want[i], 1e-4 + 1e-5 * fabs(want[i]), "%d: %g, not %g",
                               i, s.got[0][i], want[i]);
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
