/* test_direct_winograd.c - our own F(4x4, 3x3) against the definition in double: every instruction
 * set, direction, one thread and three; where it is taken, and where it must not be.
 *
 * Its errors are relative to the whole result, not to an element's own products: in the L2 norm
 * 5e-6, as oneDNN's kernel has them, and nowhere more than 3e-5 of the results' root mean square.
 * A transform with one wrong constant is off by a thousand times that. */
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
    snprintf(p.text, sizeof p.text, "n%d %dx%d %d->%d padding %d (%d %d %d %d)", row.n, row.h,
             row.w, row.c, row.last, (int)row.padding, row.pad[0], row.pad[1], row.pad[2],
             row.pad[3]);
    return p;
}

static int64_t elements(const adj_node *n) { return adj_shape_elems(n->type.shape); }

static double *oracle_of(problem *p, int direction)
{
    return oracle_convolve(&p->s, (enum oracle_result)direction, p->f.value[0], p->f.value[1],
                           p->f.value[2]);
}

static void expect_near(const double *got, const double *want, int64_t n, const char *label)
{
    double error = 0, size = 0, worst = 0;
    for (int64_t i = 0; i < n; i++) {
        double e = fabs(got[i] - want[i]);
        cr_assert(isfinite(got[i]), "%s: [%ld] is %g", label, (long)i, got[i]);
        worst = fmax(worst, e);
        error += e * e;
        size += want[i] * want[i];
    }
    cr_assert_leq(sqrt(error), 5e-6 * sqrt(size), "%s: %g", label, sqrt(error / size));
    cr_assert_leq(worst, 3e-5 * sqrt(size / (double)n), "%s: worst %g", label, worst);
}

/* The outcome of the only candidate, which is ours. */
static double *run_ours(problem *p, const char *isa, int threads, int n,
                        const adj_node *const node[])
{
    test_backend t = direct_open(isa, threads);
    char impl[64];
    snprintf(impl, sizeof impl, "winograd:%s", isa);
    outcome o = run_candidate(&p->f, &t, n, node, 0);
    cr_assert_eq(o.status, ADJ_OK, "%s %s: %s", p->text, node[0]->op->name, o.why);
    cr_assert_str_eq(o.impl, impl);
    cr_assert_eq(run_candidate(&p->f, &t, n, node, 1).status, ADJ_ENOKERNEL);
    backend_close(&t);
    return o.y;
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
        expect_near(first, want, elements(node), label);
        cr_assert(memcmp(first, other, (size_t)elements(node) * sizeof *first) == 0,
                  "%s: three threads give other bits", label);
        free(want);
        free(first);
        free(other);
    }
    fixture_free(&p.f);
}

/* Partial tiles, rests of panels and of rows, several blocks, pads larger than the filter. */
static const oracle_conv rows[] = {
    {.n = 1, .h = 1, .w = 1, .c = 16, .last = 16, .padding = ADJ_SAME},
    {.n = 1, .h = 3, .w = 3, .c = 64, .last = 64, .padding = ADJ_VALID},
    {.n = 2, .h = 5, .w = 6, .c = 16, .last = 48, .padding = ADJ_SAME},
    {.n = 3, .h = 13, .w = 9, .c = 48, .last = 80, .padding = ADJ_VALID},
    {.n = 1, .h = 7, .w = 8, .c = 32, .last = 112, .padding = ADJ_EXPLICIT, .pad = {3, 0, 1, 5}},
    {.n = 1, .h = 6, .w = 2, .c = 16, .last = 16, .padding = ADJ_EXPLICIT, .pad = {0, 9, 7, 6}},
    {.n = 2, .h = 4, .w = 10, .c = 272, .last = 32, .padding = ADJ_SAME},
    {.n = 19, .h = 14, .w = 15, .c = 16, .last = 32, .padding = ADJ_SAME},
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

static const oracle_conv usual = {.n = 2, .h = 8, .w = 8, .c = 32, .last = 64, .padding = ADJ_SAME};

static void expect_bias(oracle_conv row)
{
    problem p = problem_new(row, ADJ_F32);
    adj_node *b = given_random(&p.f, ADJ_F32, (adj_shape){1, {row.last}}, -30, 30);
    const adj_node *group[] = {p.result[ORACLE_Y], adj_bias_add(p.result[ORACLE_Y], b, ADJ_NHWC)};
    double *want = oracle_of(&p, ORACLE_Y);
    for (int64_t i = 0; i < elements(group[1]); i++)
        want[i] += p.f.value[3][i % row.last];
    for (int k = 0; k < N_ISA; k++) {
        if (!can_test(all_isas[k]))
            continue;
        double *got = run_ours(&p, all_isas[k], 2, 2, group);
        expect_near(got, want, elements(group[1]), all_isas[k]);
        free(got);
    }
    free(want);
    fixture_free(&p.f);
}

/* Also of more channels than are computed at a time. */
Test(direct_winograd, with_bias)
{
    expect_bias(usual);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_bias(rows[i]);
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
Test(direct_winograd, nan_is_not_lost)
{
    problem p = problem_new(usual, ADJ_F32);
    const adj_node *y = p.result[ORACLE_Y];
    p.f.value[0][(3 * 8 + 4) * 32 + 7] = NAN; /* image 0, row 3, column 4 */
    double *got = run_ours(&p, best_isa(), 2, 1, &y);
    for (int h = 2; h <= 4; h++)
        for (int w = 3; w <= 5; w++)
            cr_assert(isnan(got[(h * 8 + w) * 64 + 5]), "%d %d", h, w);
    cr_assert(isfinite(got[64 * 64 + 5]), "the other image");
    free(got);
    fixture_free(&p.f);
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
        cr_assert(math != ADJ_MATH_FAST || is_next || strstr(o.why, "3x3, stride 1") != NULL ||
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
        {.n = 1, .h = 8, .w = 8, .c = 16, .last = 16, .format = ADJ_NCHW},
        {.n = 0, .h = 8, .w = 8, .c = 16, .last = 16},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_refused(bad[i], ADJ_F32, ADJ_MATH_FAST);
    expect_refused(usual, ADJ_BF16, ADJ_MATH_FAST);
    expect_refused(usual, ADJ_F32, ADJ_MATH_EXACT);
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
