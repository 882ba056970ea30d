/* test_direct_winograd.c - direct's F(4x4, 3x3) and F(4x4, 5x5) against the definition in double:
 * every instruction set, direction and type, one thread and three; and when a plan selects them.
 *
 * Its errors are relative to the whole result, not to an element's own products: in the L2 norm
 * 5e-6, as oneDNN's kernel has them, and nowhere more than 3e-5 of the results' root mean square.
 * Of 5x5, with its eight points, they are larger: the same algorithm in NumPy's float32 has 2.2e-6,
 * and 5.6e-6 where all but one pixel of a window are padding. A transform with one wrong constant
 * is off by a thousand times that. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/report.h"
#include "tests/backends/conv_rows.h"
#include "tests/isa.h"

enum { DIRECTIONS = 3 };

/* y and dx are the same whether their filter may change in every run or is transformed once. */
static const tested_kernel ours = {.impl = {"winograd"},
                                   .is_only = 1,
                                   .packed = "points",
                                   .never_packed = &adj_op_conv2d_backprop_filter,
                                   .math = ADJ_MATH_FAST};

static int64_t elements(const adj_node *n) { return adj_shape_elems(n->type.shape); }

static double bound_of(const conv_problem *p) { return p->s.a.kh == 5 ? 1e-5 : 5e-6; }

static void expect_near(const double *got, const double *want, int64_t n, double bound,
                        const char *label)
{
    double error = 0, size = 0, worst = 0;
    for (int64_t i = 0; i < n; i++) {
        double e = fabs(got[i] - want[i]);
        cr_assert(isfinite(got[i]), "%s: [%ld] is %g", label, (long)i, got[i]);
        worst = fmax(worst, e);
        error += e * e;
        size += want[i] * want[i];
    }
    cr_assert_leq(sqrt(error), bound * sqrt(size), "%s: %g", label, sqrt(error / size));
    cr_assert_leq(worst, 6 * bound * sqrt(size / (double)n), "%s: worst %g", label, worst);
}

static double *run_ours(conv_problem *p, const char *isa, int threads, int n,
                        const adj_node *const node[])
{
    return run_tested(&ours, &p->f, isa, threads, n, node, p->text);
}

/* One thread's result, which is that of three to the last bit. */
static double *run_direction(conv_problem *p, const char *isa, int direction)
{
    const adj_node *node = p->result[direction];
    double *first = run_ours(p, isa, 1, 1, &node), *other = run_ours(p, isa, 3, 1, &node);
    expect_same_bits(other, first, p->n[direction], p->text);
    free(other);
    return first;
}

static void expect_row(oracle_conv row, const char *isa)
{
    scoped(conv_problem_free) conv_problem p = conv_problem_new(row, ADJ_F32, REALS);
    for (int direction = 0; direction < DIRECTIONS; direction++) {
        char label[256];
        scoped(release) double *want = conv_problem_exact(&p, direction),
                               *got = run_direction(&p, isa, direction);
        snprintf(label, sizeof label, "%s %s %s", isa, p.result[direction]->op->name, p.text);
        expect_near(got, want, p.n[direction], bound_of(&p), label);
    }
}

/* Partial tiles, rests of panels and of rows, several blocks, also of a segment, pads larger than
 * the filter. */
static const oracle_conv rows[] = {
    {1, 1, 1, 16, 3, 3, 16, .padding = ADJ_SAME},
    {1, 3, 3, 64, 3, 3, 64, .padding = ADJ_VALID},
    {1, 6, 5, 16, 3, 3, 16, .padding = ADJ_SAME},
    {2, 5, 6, 16, 3, 3, 48, .padding = ADJ_SAME},
    {3, 13, 9, 48, 3, 3, 80, .padding = ADJ_VALID},
    {1, 7, 8, 32, 3, 3, 112, .padding = ADJ_EXPLICIT, .pad = {3, 0, 1, 5}},
    {1, 6, 2, 16, 3, 3, 16, .padding = ADJ_EXPLICIT, .pad = {0, 9, 7, 6}},
    {2, 4, 10, 272, 3, 3, 32, .padding = ADJ_SAME},
    {19, 14, 15, 16, 3, 3, 32, .padding = ADJ_SAME},
    {1, 1, 1, 16, 5, 5, 16, .padding = ADJ_SAME},
    {2, 6, 5, 32, 5, 5, 80, .padding = ADJ_VALID},
    {3, 9, 8, 48, 5, 5, 16, .padding = ADJ_SAME},
    {1, 3, 4, 16, 5, 5, 32, .padding = ADJ_EXPLICIT, .pad = {4, 5, 6, 1}},
    {9, 14, 14, 16, 5, 5, 64, .padding = ADJ_SAME},
    {5, 14, 7, 80, 5, 5, 64, .padding = ADJ_SAME},
    {90, 13, 14, 16, 3, 3, 16, .padding = ADJ_SAME},
    {8, 20, 20, 64, 3, 3, 80, .padding = ADJ_SAME},
};

static void listed(const char *isa)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_row(rows[i], isa);
}

Test(direct_winograd, listed) { for_each_isa(N_ISA, all_isas, listed); }

/* In bf16 all but the stored result is as in f32. */
static void expect_near_bf16(const double *got, const double *want, int64_t n, const char *label)
{
    double size = 0;
    for (int64_t i = 0; i < n; i++)
        size += want[i] * want[i];
    for (int64_t i = 0; i < n; i++)
        cr_assert_leq(fabs(got[i] - want[i]),
                      0x1p-8 * fabs(want[i]) + 3e-5 * sqrt(size / (double)n),
                      "%s: [%ld] %g, not %g", label, (long)i, got[i], want[i]);
}

static void expect_bf16(oracle_conv row, const char *isa)
{
    scoped(conv_problem_free) conv_problem p = conv_problem_new(row, ADJ_BF16, REALS);
    for (int direction = 0; direction < DIRECTIONS; direction++) {
        char label[256];
        double *want = conv_problem_exact(&p, direction), *got = run_direction(&p, isa, direction);
        snprintf(label, sizeof label, "%s %s %s", isa, p.result[direction]->op->name, p.text);
        expect_near_bf16(got, want, p.n[direction], label);
        free(got);
        if (direction == ORACLE_DW) { /* with the cast behind it the sum is not rounded */
            const adj_node *group[] = {p.result[ORACLE_DW], adj_cast(p.result[ORACLE_DW], ADJ_F32)};
            got = run_ours(&p, isa, 2, 2, group);
            expect_near(got, want, p.n[direction], bound_of(&p), isa);
            free(got);
        }
        free(want);
    }
}

static const oracle_conv rows_bf16[] = {
    {2, 29, 26, 16, 3, 3, 48, .padding = ADJ_SAME},
    {6, 13, 18, 80, 3, 3, 64, .padding = ADJ_VALID},
    {5, 14, 14, 32, 5, 5, 16, .padding = ADJ_SAME},
};

static void listed_bf16(const char *isa)
{
    for (size_t i = 0; i < sizeof rows_bf16 / sizeof *rows_bf16; i++)
        expect_bf16(rows_bf16[i], isa);
}

Test(direct_winograd, bf16) { for_each_isa(2, all_isas + 1, listed_bf16); }

static const oracle_conv usual = {2, 8, 8, 32, 3, 3, 64, .padding = ADJ_SAME};

static void expect_bias(oracle_conv row, adj_dtype dtype, int first_isa)
{
    scoped(conv_problem_free) conv_problem p = conv_problem_new(row, dtype, REALS);
    adj_node *b = given_random(&p.f, dtype, (adj_shape){1, {row.last}}, -30, 30);
    const adj_node *group[] = {p.result[ORACLE_Y], adj_bias_add(p.result[ORACLE_Y], b, ADJ_NHWC)};
    scoped(release) double *want = conv_problem_exact(&p, ORACLE_Y);
    for (int64_t i = 0; i < elements(group[1]); i++)
        want[i] += p.f.value[3][i % row.last];
    for (int k = first_isa; k < N_ISA; k++) {
        if (!can_test(all_isas[k]))
            continue;
        scoped(release) double *got = run_ours(&p, all_isas[k], 2, 2, group);
        if (dtype == ADJ_BF16)
            expect_near_bf16(got, want, elements(group[1]), all_isas[k]);
        else
            expect_near(got, want, elements(group[1]), bound_of(&p), all_isas[k]);
    }
}

/* Also of more channels than are computed at a time. */
Test(direct_winograd, with_bias)
{
    expect_bias(usual, ADJ_F32, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_bias(rows[i], ADJ_F32, 0);
    for (size_t i = 0; i < sizeof rows_bf16 / sizeof *rows_bf16; i++)
        expect_bias(rows_bf16[i], ADJ_BF16, 1);
}

/* A NaN reaches every result that reads it (and its neighbors in the tile). */
static void expect_nan(adj_dtype dtype, const char *isa)
{
    const oracle_conv row = {20, 8, 8, 32, 3, 3, 64, .padding = ADJ_SAME};
    scoped(conv_problem_free) conv_problem p = conv_problem_new(row, dtype, REALS);
    const adj_node *y = p.result[ORACLE_Y];
    p.f.value[0][(3 * 8 + 4) * 32 + 7] = NAN; /* image 0, row 3, column 4 */
    scoped(release) double *got = run_ours(&p, isa, 2, 1, &y);
    for (int h = 2; h <= 4; h++)
        for (int w = 3; w <= 5; w++)
            cr_assert(isnan(got[(h * 8 + w) * 64 + 5]), "%d %d", h, w);
    cr_assert(isfinite(got[64 * 64 + 5]), "the other image");
}

Test(direct_winograd, nan_is_not_lost) { expect_nan(ADJ_F32, best_isa()); }

static void expect_added(const char *isa)
{
    scoped(conv_problem_free) conv_problem p = conv_problem_new(
        (oracle_conv){3, 3, 16, 16, 3, 3, 16, .padding = ADJ_SAME}, ADJ_F32, REALS);
    adj_node *sum = adj_add(p.result[ORACLE_Y], p.f.in[1]);
    const adj_node *group[] = {p.result[ORACLE_Y], sum};
    scoped(release) double *want = by_naive(&p.f, sum);
    scoped(backend_close) test_backend t = direct_open(isa, 2, ADJ_MATH_FAST);
    t.invariant = UINT32_MAX;
    outcome o = run_kernel(&p.f, &t, "winograd", 2, group);
    cr_assert_eq(o.status, ADJ_OK, "%s", o.why);
    cr_expect_null(strstr(o.layouts, "points"), "%s", o.layouts);
    expect_near(o.y, want, elements(sum), bound_of(&p), isa);
    free(o.y);
}

/* A filter that is also what is added to y is read as it lies by both. */
Test(direct_winograd, a_filter_that_is_added_as_well)
{
    for_each_isa(2, all_isas + 1, expect_added);
}

Test(direct_winograd, nan_is_not_lost_in_bf16)
{
    need_isa("avx2");
    expect_nan(ADJ_BF16, "avx2");
}

static void expect_refused(oracle_conv row, adj_dtype dtype, adj_math math)
{
    scoped(conv_problem_free) conv_problem p = conv_problem_new(row, dtype, REALS);
    scoped(backend_close) test_backend t = backend_open_math("direct", 2, math);
    for (int direction = 0; direction < DIRECTIONS; direction++) {
        const adj_node *node = p.result[direction];
        outcome o = run_candidate(&p.f, &t, 1, &node, 0);
        const int is_next = o.status == ADJ_OK && (strncmp(o.impl, "gemm:", 5) == 0 ||
                                                   strncmp(o.impl, "conv_bf16", 9) == 0 ||
                                                   strncmp(o.impl, "filter_", 7) == 0);
        cr_assert(is_next || o.status == ADJ_ENOKERNEL, "%s: %s", p.text, o.impl);
        cr_assert(math != ADJ_MATH_FAST || is_next ||
                      strstr(o.why, "3x3 and 5x5, stride 1") != NULL ||
                      strstr(o.why, "f64 in NHWC") != NULL,
                  "%s", o.why);
        free(o.y);
    }
}

Test(direct_winograd, refused)
{
    static const oracle_conv bad[] = {
        {1, 8, 8, 16, 3, 3, 24, .padding = ADJ_VALID},
        {1, 8, 8, 24, 3, 3, 16, .padding = ADJ_VALID},
        {1, 8, 8, 32, 3, 3, 32, .in = 16},
        {1, 8, 8, 16, 3, 3, 16, .sw = 2},
        {1, 8, 8, 16, 3, 3, 16, .dh = 2},
        {1, 8, 8, 16, 5, 3, 16, .padding = ADJ_VALID},
        {1, 8, 8, 16, 7, 7, 16, .padding = ADJ_VALID},
        {1, 8, 8, 16, 3, 3, 16, .format = ADJ_NCHW},
        {0, 8, 8, 16, 3, 3, 16, .padding = ADJ_VALID},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_refused(bad[i], ADJ_F32, ADJ_MATH_FAST);
    expect_refused(usual, ADJ_F32, ADJ_MATH_EXACT);
}

static void expect_why(oracle_conv row, const char *isa, const char *why)
{
    scoped(conv_problem_free) conv_problem p = conv_problem_new(row, ADJ_BF16, REALS);
    scoped(backend_close) test_backend t = direct_open(isa, 2, ADJ_MATH_FAST);
    t.invariant = UINT32_MAX; /* lowers the bound of tiles in f32 alone */
    for (int direction = 0; direction < DIRECTIONS; direction++) {
        const adj_node *node = p.result[direction];
        expect_no_kernel(&p.f, &t, "winograd", 1, &node, why);
    }
}

/* bf16 not for few tiles or small vectors. */
Test(direct_winograd, bf16_refused)
{
    static const oracle_conv of_32_tiles = {2, 16, 16, 32, 3, 3, 64, .padding = ADJ_SAME};
    expect_why(of_32_tiles, best_isa(), "is slower in bf16");
    expect_why(rows_bf16[0], "base", "is slower in bf16");
}

/* A bias that counts rows as channels is no bias of the convolution's channels. */
Test(direct_winograd, bias_of_rows_refused)
{
    static const oracle_conv square = {1, 16, 16, 32, 3, 3, 64, .padding = ADJ_SAME};
    scoped(conv_problem_free) conv_problem p = conv_problem_new(square, ADJ_F32, REALS);
    adj_node *b = given_random(&p.f, ADJ_F32, (adj_shape){1, {16}}, -1, 1);
    const adj_node *group[] = {p.result[ORACLE_Y], adj_bias_add(p.result[ORACLE_Y], b, ADJ_NCHW)};
    scoped(backend_close) test_backend t = backend_open_math("direct", 1, ADJ_MATH_FAST);
    outcome o = run_candidate(&p.f, &t, 2, group, 0);
    cr_assert_eq(o.status, ADJ_ENOKERNEL, "%s", o.impl);
}

static int planned(fixture *f, adj_node *y, adj_math math)
{
    adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .math = math};
    int found = 0;
    scoped(release_exec) adj_exec *e = plan_of(f->g, &o);
    for (int i = 0; i < adj_exec_step_count(e); i++)
        found += strncmp(adj_exec_step_at(e, i).impl, "winograd:", 9) == 0;
    return found;
}

/* The plan takes it where it pays, with what follows it, and only with math fast. */
static void expect_planned(oracle_conv row, adj_dtype dtype, int is_fast_here)
{
    unsetenv("ADJOINT_PLAN"); /* that other plans be tried, whatever all tests are run with */
    scoped(conv_problem_free) conv_problem p = conv_problem_new(row, dtype, REALS),
                                           small = conv_problem_new(usual, dtype, REALS);
    for (int k = 0; k < DIRECTIONS; k++) {
        cr_assert_eq(planned(&p.f, p.result[k], ADJ_MATH_FAST), is_fast_here);
        cr_assert_eq(planned(&p.f, p.result[k], ADJ_MATH_EXACT), 0);
        cr_assert_eq(planned(&small.f, small.result[k], ADJ_MATH_FAST), 0);
    }
    adj_node *b = given_random(&p.f, dtype, (adj_shape){1, {row.last}}, -1, 1);
    adj_node *biased = adj_bias_add(p.result[ORACLE_Y], b, ADJ_NHWC);
    adj_node *wide = adj_cast(p.result[ORACLE_DW], ADJ_F32); /* in f32 the same node */
    cr_assert_eq(planned(&p.f, biased, ADJ_MATH_FAST), is_fast_here);
    cr_assert_eq(planned(&p.f, wide, ADJ_MATH_FAST), is_fast_here);
}

Test(direct_winograd, planned)
{
    static const oracle_conv large = {4, 16, 16, 32, 3, 3, 64, .padding = ADJ_SAME};
    setenv("ADJOINT_MAX_ISA", "avx512_bf16", 1); /* by AMX there are other kernels of ours */
    expect_planned(large, ADJ_F32, cpu_has("avx2"));
}

/* Half types are stored in bf16 where it is taken, and otherwise computed in f32. */
Test(direct_winograd, planned_in_bf16)
{
    need_isa("avx2");
    setenv("ADJOINT_MAX_ISA", "avx2", 1);
    setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
    expect_planned(rows_bf16[0], ADJ_BF16, 1);
}

/* By avx512_bf16 products are faster for y and dx. */
Test(direct_winograd, beside_products_of_bf16)
{
    const oracle_conv row = {8, 16, 16, 16, 3, 3, 16, .padding = ADJ_SAME};
    need_isa("avx512_bf16");
    unsetenv("ADJOINT_PLAN");
    scoped(conv_problem_free) conv_problem p = conv_problem_new(row, ADJ_BF16, REALS);
    cr_expect_eq(planned(&p.f, p.result[ORACLE_Y], ADJ_MATH_FAST), 0);
    cr_expect_eq(planned(&p.f, p.result[ORACLE_DX], ADJ_MATH_FAST), 0);
}
