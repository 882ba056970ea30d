/* test_direct_winograd.c - our own F(4x4, 3x3) and F(4x4, 5x5) against the definition in double:
 * every instruction set, direction and type, one thread and three; where it is taken, and where it
 * must not be.
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

#include "tests/backends/candidates.h"
#include "tests/isa.h"
#include "tests/oracle.h"

enum { DIRECTIONS = 3 };

static test_backend direct_open(const char *isa, int threads)
{
    setenv("ADJOINT_MAX_ISA", isa, 1);
    return backend_open_math("direct", threads, ADJ_MATH_FAST);
}

typedef struct {
    oracle_sizes s;
    fixture f;
    adj_node *x, *w, *dy, *result[DIRECTIONS];
    char text[120];
} problem;

static problem problem_new(oracle_conv row, adj_dtype dtype)
{
    row.in = row.in > 0 ? row.in : row.c;
    row.kh = row.kh > 0 ? row.kh : 3;
    row.kw = row.kw > 0 ? row.kw : 3;
    problem p = {.s = oracle_sizes_of(row), .f = fixture_new()};
    const oracle_sizes *s = &p.s;
    p.x = given_random(&p.f, dtype, s->x, -1, 1);
    p.w = given_random(&p.f, dtype, s->w, -1, 1);
    p.dy = given_random(&p.f, dtype, s->y, -1, 1);
    p.result[ORACLE_Y] = adj_conv2d(p.x, p.w, &s->attrs);
    p.result[ORACLE_DX] = adj_conv2d_backprop_input(s->x, p.w, p.dy, &s->attrs);
    p.result[ORACLE_DW] = adj_conv2d_backprop_filter(p.x, s->w, p.dy, &s->attrs);
    for (int k = 0; k < DIRECTIONS; k++)
        cr_assert_not_null(p.result[k], "%s", adj_graph_message(p.f.g));
    snprintf(p.text, sizeof p.text, "n%d %dx%d %dx%d %d->%d padding %d (%d %d %d %d)", row.n, row.h,
             row.w, row.kh, row.kw, row.c, row.last, (int)row.padding, row.pad[0], row.pad[1],
             row.pad[2], row.pad[3]);
    return p;
}

static int64_t elements(const adj_node *n) { return adj_shape_elems(n->type.shape); }

static double *oracle_of(problem *p, int direction)
{
    return oracle_convolve(&p->s, (enum oracle_result)direction, p->f.value[0], p->f.value[1],
                           p->f.value[2]);
}

static double bound_of(const problem *p) { return p->s.w.dim[0] == 5 ? 1e-5 : 5e-6; }

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

/* The outcome of the only candidate, which is ours; the same to the last bit whether the filter of
 * y or dx may change in every run or is transformed once for many. */
static double *run_ours(problem *p, const char *isa, int threads, int n,
                        const adj_node *const node[])
{
    test_backend t = direct_open(isa, threads);
    const int is_dw = node[0]->op == &adj_op_conv2d_backprop_filter;
    char impl[64];
    outcome o[2];
    snprintf(impl, sizeof impl, "winograd:%s", isa);
    for (int is_kept = 0; is_kept < 2; is_kept++) {
        t.invariant = is_kept ? UINT32_MAX : 0;
        o[is_kept] = run_candidate(&p->f, &t, n, node, 0);
        cr_assert_eq(o[is_kept].status, ADJ_OK, "%s %s: %s", p->text, node[0]->op->name,
                     o[is_kept].why);
        cr_assert_str_eq(o[is_kept].impl, impl);
        cr_assert_eq(strstr(o[is_kept].layouts, "points") != NULL, is_kept && !is_dw, "%s: %s",
                     p->text, o[is_kept].layouts);
        cr_assert_eq(run_candidate(&p->f, &t, n, node, 1).status, ADJ_ENOKERNEL);
    }
    cr_assert_eq(memcmp(o[0].y, o[1].y, (size_t)elements(node[n - 1]) * sizeof *o[0].y), 0,
                 "%s %s: transformed once it has other bits", p->text, node[0]->op->name);
    free(o[1].y);
    backend_close(&t);
    return o[0].y;
}

static void expect_row(oracle_conv row, const char *isa)
{
    problem p = problem_new(row, ADJ_F32);
    for (int direction = 0; direction < DIRECTIONS; direction++) {
        const adj_node *node = p.result[direction];
        char label[256];
        double *want = oracle_of(&p, direction), *first = run_ours(&p, isa, 1, 1, &node);
        double *other = run_ours(&p, isa, 3, 1, &node);
        snprintf(label, sizeof label, "%s %s %s", isa, node->op->name, p.text);
        expect_near(first, want, elements(node), bound_of(&p), label);
        cr_assert(memcmp(first, other, (size_t)elements(node) * sizeof *first) == 0,
                  "%s: three threads give other bits", label);
        free(want);
        free(first);
        free(other);
    }
    fixture_free(&p.f);
}

/* Partial tiles, rests of panels and of rows, several blocks, also of a segment, pads larger than
 * the filter. */
static const oracle_conv rows[] = {
    {.n = 1, .h = 1, .w = 1, .c = 16, .last = 16, .padding = ADJ_SAME},
    {.n = 1, .h = 3, .w = 3, .c = 64, .last = 64, .padding = ADJ_VALID},
    {.n = 2, .h = 5, .w = 6, .c = 16, .last = 48, .padding = ADJ_SAME},
    {.n = 3, .h = 13, .w = 9, .c = 48, .last = 80, .padding = ADJ_VALID},
    {.n = 1, .h = 7, .w = 8, .c = 32, .last = 112, .padding = ADJ_EXPLICIT, .pad = {3, 0, 1, 5}},
    {.n = 1, .h = 6, .w = 2, .c = 16, .last = 16, .padding = ADJ_EXPLICIT, .pad = {0, 9, 7, 6}},
    {.n = 2, .h = 4, .w = 10, .c = 272, .last = 32, .padding = ADJ_SAME},
    {.n = 19, .h = 14, .w = 15, .c = 16, .last = 32, .padding = ADJ_SAME},
    {.n = 1, .h = 1, .w = 1, .kh = 5, .kw = 5, .c = 16, .last = 16, .padding = ADJ_SAME},
    {.n = 2, .h = 6, .w = 5, .kh = 5, .kw = 5, .c = 32, .last = 80, .padding = ADJ_VALID},
    {.n = 3, .h = 9, .w = 8, .kh = 5, .kw = 5, .c = 48, .last = 16, .padding = ADJ_SAME},
    {.n = 1,
     .h = 3,
     .w = 4,
     .kh = 5,
     .kw = 5,
     .c = 16,
     .last = 32,
     .padding = ADJ_EXPLICIT,
     .pad = {4, 5, 6, 1}},
    {.n = 9, .h = 14, .w = 14, .kh = 5, .kw = 5, .c = 16, .last = 64, .padding = ADJ_SAME},
    {.n = 5, .h = 14, .w = 7, .kh = 5, .kw = 5, .c = 80, .last = 64, .padding = ADJ_SAME},
    {.n = 90, .h = 13, .w = 14, .c = 16, .last = 16, .padding = ADJ_SAME},
    {.n = 8, .h = 20, .w = 20, .c = 64, .last = 80, .padding = ADJ_SAME},
};

static void listed(const char *isa)
{
    need_isa(isa);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_row(rows[i], isa);
}

Test(direct_winograd, listed_base) { listed("base"); }
Test(direct_winograd, listed_avx2) { listed("avx2"); }
Test(direct_winograd, listed_avx512) { listed("avx512"); }

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
    problem p = problem_new(row, ADJ_BF16);
    const adj_node *sum = adj_cast(p.result[ORACLE_DW], ADJ_F32);
    double *want[DIRECTIONS];
    for (int direction = 0; direction < DIRECTIONS; direction++) {
        const adj_node *node = p.result[direction];
        char label[256];
        double *first = run_ours(&p, isa, 1, 1, &node), *other = run_ours(&p, isa, 3, 1, &node);
        want[direction] = oracle_of(&p, direction);
        snprintf(label, sizeof label, "%s %s bf16 %s", isa, node->op->name, p.text);
        expect_near_bf16(first, want[direction], elements(node), label);
        cr_assert(memcmp(first, other, (size_t)elements(node) * sizeof *first) == 0,
                  "%s: three threads give other bits", label);
        free(first);
        free(other);
    }
    /* with the cast behind it the sum is not rounded */
    const adj_node *group[] = {p.result[ORACLE_DW], sum};
    double *got = run_ours(&p, isa, 2, 2, group);
    expect_near(got, want[ORACLE_DW], elements(sum), bound_of(&p), isa);
    free(got);
    for (int direction = 0; direction < DIRECTIONS; direction++)
        free(want[direction]);
    fixture_free(&p.f);
}

static const oracle_conv rows_bf16[] = {
    {.n = 2, .h = 29, .w = 26, .c = 16, .last = 48, .padding = ADJ_SAME},
    {.n = 6, .h = 13, .w = 18, .c = 80, .last = 64, .padding = ADJ_VALID},
    {.n = 5, .h = 14, .w = 14, .kh = 5, .kw = 5, .c = 32, .last = 16, .padding = ADJ_SAME},
};

static void listed_bf16(const char *isa)
{
    need_isa(isa);
    for (size_t i = 0; i < sizeof rows_bf16 / sizeof *rows_bf16; i++)
        expect_bf16(rows_bf16[i], isa);
}

Test(direct_winograd, bf16_avx2) { listed_bf16("avx2"); }
Test(direct_winograd, bf16_avx512) { listed_bf16("avx512"); }

static const oracle_conv usual = {.n = 2, .h = 8, .w = 8, .c = 32, .last = 64, .padding = ADJ_SAME};

static void expect_bias(oracle_conv row, adj_dtype dtype, int first_isa)
{
    problem p = problem_new(row, dtype);
    adj_node *b = given_random(&p.f, dtype, (adj_shape){1, {row.last}}, -30, 30);
    const adj_node *group[] = {p.result[ORACLE_Y], adj_bias_add(p.result[ORACLE_Y], b, ADJ_NHWC)};
    double *want = oracle_of(&p, ORACLE_Y);
    for (int64_t i = 0; i < elements(group[1]); i++)
        want[i] += p.f.value[3][i % row.last];
    for (int k = first_isa; k < N_ISA; k++) {
        if (!can_test(all_isas[k]))
            continue;
        double *got = run_ours(&p, all_isas[k], 2, 2, group);
        if (dtype == ADJ_BF16)
            expect_near_bf16(got, want, elements(group[1]), all_isas[k]);
        else
            expect_near(got, want, elements(group[1]), bound_of(&p), all_isas[k]);
        free(got);
    }
    free(want);
    fixture_free(&p.f);
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

/* Ones everywhere: a result counts the taps inside the image, 16 channels each. */
Test(direct_winograd, ones)
{
    const oracle_conv row = {.n = 1, .h = 6, .w = 5, .c = 16, .last = 16, .padding = ADJ_SAME};
    problem p = problem_new(row, ADJ_F32);
    for (int i = 0; i < 3; i++)
        for (int64_t k = 0; k < elements(p.f.in[i]); k++)
            p.f.value[i][k] = 1;
    const adj_node *y = p.result[ORACLE_Y], *dx = p.result[ORACLE_DX], *dw = p.result[ORACLE_DW];
    const char *isa = best_isa();
    double *got[DIRECTIONS] = {run_ours(&p, isa, 1, 1, &y), run_ours(&p, isa, 1, 1, &dx),
                               run_ours(&p, isa, 1, 1, &dw)};
    for (int h = 0; h < 6; h++)
        for (int w = 0; w < 5; w++)
            for (int c = 0; c < 16; c++) {
                int inside = (h == 0 || h == 5 ? 2 : 3) * (w == 0 || w == 4 ? 2 : 3);
                int64_t i = (h * 5 + w) * 16 + c;
                cr_assert_float_eq(got[ORACLE_Y][i], 16 * inside, 1e-3);
                cr_assert_float_eq(got[ORACLE_DX][i], 16 * inside, 1e-3);
            }
    for (int i = 0; i < 9; i++) /* pixels whose tap i is inside */
        for (int k = 0; k < 256; k++)
            cr_assert_float_eq(got[ORACLE_DW][i * 256 + k],
                               (i / 3 == 1 ? 6 : 5) * (i % 3 == 1 ? 5 : 4), 1e-3);
    for (int i = 0; i < DIRECTIONS; i++)
        free(got[i]);
    fixture_free(&p.f);
}

/* A NaN reaches every result that reads it (and its neighbours in the tile). */
static void expect_nan(adj_dtype dtype, const char *isa)
{
    const oracle_conv row = {.n = 20, .h = 8, .w = 8, .c = 32, .last = 64, .padding = ADJ_SAME};
    problem p = problem_new(row, dtype);
    const adj_node *y = p.result[ORACLE_Y];
    p.f.value[0][(3 * 8 + 4) * 32 + 7] = NAN; /* image 0, row 3, column 4 */
    double *got = run_ours(&p, isa, 2, 1, &y);
    for (int h = 2; h <= 4; h++)
        for (int w = 3; w <= 5; w++)
            cr_assert(isnan(got[(h * 8 + w) * 64 + 5]), "%d %d", h, w);
    cr_assert(isfinite(got[64 * 64 + 5]), "the other image");
    free(got);
    fixture_free(&p.f);
}

Test(direct_winograd, nan_is_not_lost) { expect_nan(ADJ_F32, best_isa()); }

static void expect_added(const char *isa)
{
    problem p = problem_new(
        (oracle_conv){.n = 3, .h = 3, .w = 16, .c = 16, .last = 16, .padding = ADJ_SAME}, ADJ_F32);
    adj_node *sum = adj_add(p.result[ORACLE_Y], p.w);
    const adj_node *group[] = {p.result[ORACLE_Y], sum};
    double *want = by_naive(&p.f, sum);
    test_backend t = direct_open(isa, 2);
    t.invariant = UINT32_MAX;
    outcome o = run_kernel(&p.f, &t, "winograd", 2, group);
    cr_assert_eq(o.status, ADJ_OK, "%s", o.why);
    cr_expect_null(strstr(o.layouts, "points"), "%s", o.layouts);
    expect_near(o.y, want, elements(sum), bound_of(&p), isa);
    free(o.y);
    free(want);
    backend_close(&t);
    fixture_free(&p.f);
}

/* A filter that is also what is added to y is read as it lies by both. */
Test(direct_winograd, a_filter_that_is_added_as_well)
{
    static const char *const isas[] = {"avx2", "avx512"};
    for_each_isa(2, isas, expect_added);
}

Test(direct_winograd, nan_is_not_lost_in_bf16)
{
    need_isa("avx2");
    expect_nan(ADJ_BF16, "avx2");
}

static void expect_refused(oracle_conv row, adj_dtype dtype, adj_math math)
{
    problem p = problem_new(row, dtype);
    test_backend t = backend_open_math("direct", 2, math);
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
    backend_close(&t);
    fixture_free(&p.f);
}

Test(direct_winograd, refused)
{
    static const oracle_conv bad[] = {
        {.n = 1, .h = 8, .w = 8, .c = 16, .last = 24},
        {.n = 1, .h = 8, .w = 8, .c = 24, .last = 16},
        {.n = 1, .h = 8, .w = 8, .c = 32, .in = 16, .last = 32},
        {.n = 1, .h = 8, .w = 8, .c = 16, .last = 16, .sw = 2},
        {.n = 1, .h = 8, .w = 8, .c = 16, .last = 16, .dh = 2},
        {.n = 1, .h = 8, .w = 8, .c = 16, .last = 16, .kh = 5},
        {.n = 1, .h = 8, .w = 8, .c = 16, .last = 16, .kh = 7, .kw = 7},
        {.n = 1, .h = 8, .w = 8, .c = 16, .last = 16, .format = ADJ_NCHW},
        {.n = 0, .h = 8, .w = 8, .c = 16, .last = 16},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_refused(bad[i], ADJ_F32, ADJ_MATH_FAST);
    expect_refused(usual, ADJ_F32, ADJ_MATH_EXACT);
}

static void expect_why(oracle_conv row, const char *isa, const char *why)
{
    problem p = problem_new(row, ADJ_BF16);
    test_backend t = direct_open(isa, 2);
    t.invariant = UINT32_MAX; /* which lowers the bound of tiles in f32 alone */
    for (int direction = 0; direction < DIRECTIONS; direction++) {
        const adj_node *node = p.result[direction];
        outcome o = run_kernel(&p.f, &t, "winograd", 1, &node);
        cr_assert_eq(o.status, ADJ_ENOKERNEL);
        cr_assert(strstr(o.why, why) != NULL, "%s", o.why);
    }
    backend_close(&t);
    fixture_free(&p.f);
}

/* bf16 not for few tiles or small vectors. */
Test(direct_winograd, bf16_refused)
{
    static const oracle_conv of_32_tiles = {
        .n = 2, .h = 16, .w = 16, .c = 32, .last = 64, .padding = ADJ_SAME};
    expect_why(of_32_tiles, best_isa(), "does not pay in bf16");
    expect_why(rows_bf16[0], "base", "does not pay in bf16");
}

/* A bias that counts rows as channels is no bias of the convolution's channels. */
Test(direct_winograd, bias_of_rows_refused)
{
    static const oracle_conv square = {
        .n = 1, .h = 16, .w = 16, .c = 32, .last = 64, .padding = ADJ_SAME};
    problem p = problem_new(square, ADJ_F32);
    adj_node *b = given_random(&p.f, ADJ_F32, (adj_shape){1, {16}}, -1, 1);
    const adj_node *group[] = {p.result[ORACLE_Y], adj_bias_add(p.result[ORACLE_Y], b, ADJ_NCHW)};
    test_backend t = backend_open_math("direct", 1, ADJ_MATH_FAST);
    outcome o = run_candidate(&p.f, &t, 2, group, 0);
    cr_assert_eq(o.status, ADJ_ENOKERNEL, "%s", o.impl);
    backend_close(&t);
    fixture_free(&p.f);
}

static int planned(fixture *f, adj_node *y, adj_math math)
{
    adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .math = math};
    adj_exec *e = NULL;
    int found = 0;
    cr_assert_eq(adj_exec_new(f->g, &o, &e), ADJ_OK, "%s", adj_exec_message(e));
    for (int i = 0; i < adj_exec_step_count(e); i++)
        found += strncmp(adj_exec_step_at(e, i).impl, "winograd:", 9) == 0;
    adj_exec_free(e);
    return found;
}

/* The plan takes it where it pays, with the bias, and only with math fast. */
Test(direct_winograd, planned)
{
    static const oracle_conv large = {
        .n = 4, .h = 16, .w = 16, .c = 32, .last = 64, .padding = ADJ_SAME};
    unsetenv("ADJOINT_PLAN"); /* that other plans be tried, whatever all tests are run with */
    setenv("ADJOINT_MAX_ISA", "avx512_bf16", 1); /* by AMX there are other kernels of ours */
    problem p = problem_new(large, ADJ_F32), small = problem_new(usual, ADJ_F32);
    const adj_node *y = p.result[ORACLE_Y];
    test_backend t = backend_open_math("direct", 1, ADJ_MATH_FAST);
    outcome o = run_candidate(&p.f, &t, 1, &y, 0);
    int is_fast_here = strstr(o.impl, "base") == NULL;
    free(o.y);
    backend_close(&t);
    for (int k = 0; k < DIRECTIONS; k++) {
        cr_assert_eq(planned(&p.f, p.result[k], ADJ_MATH_FAST), is_fast_here);
        cr_assert_eq(planned(&p.f, p.result[k], ADJ_MATH_EXACT), 0);
        cr_assert_eq(planned(&small.f, small.result[k], ADJ_MATH_FAST), 0);
    }
    adj_node *b = given_random(&p.f, ADJ_F32, (adj_shape){1, {64}}, -1, 1);
    cr_assert_eq(planned(&p.f, adj_bias_add(p.result[ORACLE_Y], b, ADJ_NHWC), ADJ_MATH_FAST),
                 is_fast_here);
    fixture_free(&p.f);
    fixture_free(&small.f);
}

/* Half types are stored in bf16 where it is taken, and otherwise computed in f32. */
Test(direct_winograd, planned_in_bf16)
{
    need_isa("avx2");
    unsetenv("ADJOINT_PLAN");
    setenv("ADJOINT_MAX_ISA", "avx2", 1);
    setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
    problem p = problem_new(rows_bf16[0], ADJ_BF16), small = problem_new(usual, ADJ_BF16);
    for (int k = 0; k < DIRECTIONS; k++) {
        cr_assert_eq(planned(&p.f, p.result[k], ADJ_MATH_FAST), 1, "%s", p.result[k]->op->name);
        cr_assert_eq(planned(&p.f, p.result[k], ADJ_MATH_EXACT), 0);
        cr_assert_eq(planned(&small.f, small.result[k], ADJ_MATH_FAST), 0);
    }
    /* the cast behind the filter's gradient is part of it */
    cr_assert_eq(planned(&p.f, adj_cast(p.result[ORACLE_DW], ADJ_F32), ADJ_MATH_FAST), 1);
    fixture_free(&p.f);
    fixture_free(&small.f);
}

/* By avx512_bf16 products are faster for y and dx. */
Test(direct_winograd, beside_products_of_bf16)
{
    const oracle_conv row = {.n = 8, .h = 16, .w = 16, .c = 16, .last = 16, .padding = ADJ_SAME};
    need_isa("avx512_bf16");
    unsetenv("ADJOINT_PLAN");
    problem p = problem_new(row, ADJ_BF16);
    cr_expect_eq(planned(&p.f, p.result[ORACLE_Y], ADJ_MATH_FAST), 0);
    cr_expect_eq(planned(&p.f, p.result[ORACLE_DX], ADJ_MATH_FAST), 0);
    fixture_free(&p.f);
}
