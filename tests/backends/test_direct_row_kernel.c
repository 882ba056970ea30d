/* test_direct_row_kernel.c - fused groups that are one loop (direct/fused_pointwise/row_kernel.h),
 * each against plain loops in double, for every instruction set and both types, with rows that are
 * shorter and longer than a row kernel's width, and that are no multiple of it. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_ext.h"
#include "harness.h"
#include "tests/isa.h"

enum {
    NORM = 1,
    GRAD = 2,
    ADD = 4,
    RELU = 8,
    MASK = 16,
    SUM = 32,
    SUMS = 64,
    MORE = 128,
    NORM_MASK = 256,
    CAST = 512,     /* to f32, before the sum; of bf16 alone */
    NORM_OUT = 1024 /* with NORM_MASK and SUMS: relu of the norm is a result, as recomputed */
};

static const int patterns[] = {NORM,
                               NORM | RELU,
                               NORM | ADD,
                               NORM | ADD | RELU,
                               GRAD,
                               GRAD | SUM,
                               MASK,
                               MASK | SUM,
                               MASK | SUMS,
                               MASK | SUMS | MORE,
                               ADD | MASK,
                               ADD | MASK | SUMS,
                               ADD | MASK | SUMS | MORE,
                               SUMS,
                               SUM,
                               RELU,
                               ADD | RELU,
                               GRAD | CAST | SUM,
                               MASK | CAST | SUM,
                               CAST | SUM,
                               NORM_MASK | GRAD | CAST | SUM,
                               NORM_MASK | SUMS,
                               NORM_MASK | SUMS | NORM_OUT,
                               NORM_MASK | GRAD,
                               NORM_MASK | GRAD | SUM};
static const int64_t sizes[][2] = {/* pixels and channels */
                                   {8, 8},     {64, 3},    {1024, 16}, {16, 12},
                                   {33, 64},   {201, 128}, {40, 96},   {1500, 32},
                                   {64, 1001}, {1, 1},     {3, 21},    {5, 37},
                                   {700, 37},  {129, 100}, {77, 3},    {31, 136}};
static const double epsilon = 0x1p-10;

typedef struct {
    fixture f;
    int bits;
    int64_t pixels, c;
    adj_node *a, *b, *mask, *x[2], *stats, *gamma, *beta, *sums;
    int n;
    adj_node *out[4];
} problem;

/* Input number i, as the kernel sees it. */
static const double *input(const problem *s, const adj_node *n)
{
    int i = 0;
    while (s->f.in[i] != n)
        i++;
    return s->f.value[i];
}

/* Is d = relu_grad written nowhere, as only sums of it are wanted? */
static int only_masks(int bits) { return (bits & ~NORM_OUT) == (NORM_MASK | SUMS); }

/* What is recomputed for the gradient: relu(norm), and of another copy of the norm the sums over
 * what it masks. Copies, all of them, as the passes make them. */
static void add_recomputed(problem *s)
{
    adj_node *norm = adj_batch_norm(s->x[0], s->stats, s->gamma, s->beta, epsilon, ADJ_NHWC);
    adj_node *const norm_in[] = {s->x[0], s->stats, s->gamma, s->beta};
    adj_node *z = adj_node_clone(norm, norm_in, 1);
    s->out[s->n++] = adj_node_clone(adj_relu(z), &z, 1);
    adj_node *mask = adj_node_clone(norm, norm_in, 2);
    adj_node *const mask_in[] = {s->b, mask};
    adj_node *d = adj_node_clone(adj_relu_grad(s->b, mask), mask_in, 2);
    adj_node *const sums_in[] = {s->x[0], s->stats, d};
    adj_node *sums = adj_batch_norm_grad_sums(s->x[0], s->stats, d, epsilon, ADJ_NHWC);
    s->out[s->n++] = adj_node_clone(sums, sums_in, 2);
}

static problem build(int bits, adj_dtype dtype, int64_t pixels, int64_t c)
{
    problem s = {.f = fixture_new(), .bits = bits, .pixels = pixels, .c = c};
    adj_shape full = {2, {pixels, c}}, pair = {2, {2, c}}, vector = {1, {c}};
    fixture *f = &s.f;
    s.a = given_random(f, dtype, full, -1, 1);
    s.b = given_random(f, dtype, full, -1, 1);
    s.mask = given_random(f, dtype, full, -1, 1);
    s.x[0] = given_random(f, dtype, full, -1, 1);
    s.x[1] = given_random(f, dtype, full, -1, 1);
    s.stats = given_random(f, ADJ_F32, pair, 0.5, 1.5);
    s.gamma = given_random(f, ADJ_F32, vector, -1, 1);
    s.beta = given_random(f, ADJ_F32, vector, -1, 1);
    s.sums = given_random(f, ADJ_F32, pair, -9, 9);
    adj_node *d = s.a;
    if (bits & NORM_OUT) {
        add_recomputed(&s);
        return s;
    }
    if (bits & NORM)
        d = adj_batch_norm(d, s.stats, s.gamma, s.beta, epsilon, ADJ_NHWC);
    if (bits & NORM_MASK)
        d = adj_relu_grad(s.b, adj_batch_norm(s.x[0], s.stats, s.gamma, s.beta, epsilon, ADJ_NHWC));
    if (bits & GRAD)
        d = adj_batch_norm_grad(bits & NORM_MASK ? s.x[0] : s.a, s.stats, s.gamma,
                                bits & NORM_MASK ? d : s.b, s.sums, epsilon, ADJ_NHWC);
    if (bits & ADD)
        d = adj_add(d, s.b);
    if (bits & RELU)
        d = adj_relu(d);
    if (bits & MASK)
        d = adj_relu_grad(d, s.mask);
    if (d != s.a && !only_masks(bits))
        s.out[s.n++] = d;
    if (bits & SUM)
        s.out[s.n++] = adj_bias_add_grad(bits & CAST ? adj_cast(d, ADJ_F32) : d, ADJ_NHWC);
    for (int i = 0; i < 2; i++)
        if (bits & (i == 0 ? SUMS : MORE))
            s.out[s.n++] = adj_batch_norm_grad_sums(s.x[i], s.stats, d, epsilon, ADJ_NHWC);
    return s;
}

static double deviation(const problem *s, int64_t k)
{
    return sqrt(input(s, s->stats)[s->c + k] + epsilon);
}

/* batch_norm of x[0], in double. */
static double wanted_norm(const problem *s, int64_t i)
{
    int64_t k = i % s->c;
    double hat = (input(s, s->x[0])[i] - input(s, s->stats)[k]) / deviation(s, k);
    return hat * input(s, s->gamma)[k] + input(s, s->beta)[k];
}

/* Is out[0] a full value, not a sum? */
static int has_full(const problem *s)
{
    return (s->bits & ~(CAST | SUM | SUMS | MORE)) != 0 && s->bits != (NORM_MASK | SUMS);
}

/* The full value that the kernel computes, in double. */
static double wanted(const problem *s, int64_t i)
{
    int64_t k = i % s->c;
    double v = input(s, s->a)[i], b = input(s, s->b)[i];
    double mean = input(s, s->stats)[k], factor = input(s, s->gamma)[k] / deviation(s, k);
    if (s->bits & NORM_OUT)
        return wanted_norm(s, i) > 0 ? wanted_norm(s, i) : 0;
    if (s->bits & NORM_MASK) {
        v = input(s, s->x[0])[i];
        b = wanted_norm(s, i) > 0 ? b : 0;
    }
    if (s->bits & NORM)
        v = (v - mean) * factor + input(s, s->beta)[k];
    if (s->bits & GRAD) {
        double m = (double)s->pixels, hat = (v - mean) / deviation(s, k);
        v = factor * (b - (input(s, s->sums)[s->c + k] + hat * input(s, s->sums)[k]) / m);
    }
    if (s->bits & ADD)
        v += b;
    if (s->bits & RELU)
        v = v > 0 ? v : 0;
    if (s->bits & MASK)
        v = input(s, s->mask)[i] > 0 ? v : 0;
    return v;
}

/* got: of out[number], a sum over d. */
static void expect_sums(const problem *s, adj_dtype dtype, int number, const double *got,
                        const double *d)
{
    int sum_number = number - has_full(s);
    int is_sum = (s->bits & SUM) && sum_number == 0;
    const double *x = input(s, s->x[sum_number - ((s->bits & SUM) != 0 && !is_sum)]);
    for (int64_t k = 0; k < s->c; k++) {
        double sum = 0, product = 0;
        for (int64_t i = k; i < s->pixels * s->c; i += s->c) {
            sum += d[i];
            product += d[i] * (x[i] - input(s, s->stats)[k]) / deviation(s, k);
        }
        double slack = 1e-6 * (double)s->pixels + 1e-5;
        int is_rounded = is_sum && dtype == ADJ_BF16 && !(s->bits & CAST);
        double rounding = is_rounded ? 0x1p-8 * fabs(sum) : 0;
        cr_assert_float_eq(got[is_sum ? k : s->c + k], sum, slack + rounding, "%x: %g, not %g",
                           (unsigned)s->bits, got[is_sum ? k : s->c + k], sum);
        if (!is_sum)
            cr_assert_float_eq(got[k], product, 3 * slack, "%x, channel %d: %g, not %g",
                               (unsigned)s->bits, (int)k, got[k], product);
    }
}

static void expect_values_of(const problem *s, adj_dtype dtype, double *const got[])
{
    int64_t n = s->pixels * s->c;
    double u = dtype == ADJ_BF16 ? 0x1p-8 : 1e-6;
    for (int64_t i = 0; i < n && has_full(s); i++) {
        double want = wanted(s, i);
        cr_assert_float_eq(got[0][i], want, u * fabs(want) + 1e-5, "%x, element %d: %g, not %g",
                           (unsigned)s->bits, (int)i, got[0][i], want);
    }
    double *d = malloc((size_t)n * sizeof *d);
    for (int64_t i = 0; i < n; i++) {
        int is_on = s->bits & NORM_MASK && wanted_norm(s, i) > 0;
        d[i] = has_full(s) ? got[0][i] : input(s, s->bits & NORM_MASK ? s->b : s->a)[i];
        if (only_masks(s->bits))
            d[i] = is_on ? input(s, s->b)[i] : 0;
    }
    for (int i = has_full(s); i < s->n; i++)
        expect_sums(s, dtype, i, got[i], d);
    free(d);
}

static void expect_one_kernel(const problem *s, const adj_exec *e)
{
    cr_assert_eq(adj_exec_step_count(e), 1, "%x: %d steps", (unsigned)s->bits,
                 adj_exec_step_count(e));
    cr_assert_not_null(strstr(adj_exec_step_at(e, 0).impl, "fused_row_kernel:"), "%x is a %s",
                       (unsigned)s->bits, adj_exec_step_at(e, 0).impl);
}

/* Runs the graph; malloc'ed values of s->out. How many steps compute so many nodes? */
static int run_plan(problem *s, int threads, double *got[], int nodes)
{
    adj_exec_opts o = {.n_fetch = s->n,
                       .fetch = s->out,
                       .backend = "direct",
                       .threads = threads,
                       .debug.canaries = 1};
    adj_exec *e = NULL;
    cr_assert_eq(adj_exec_new(s->f.g, &o, &e), ADJ_OK, "%s%s", adj_graph_message(s->f.g),
                 adj_exec_message(e));
    for (int i = 0; i < s->f.n_in; i++) {
        adj_type t = adj_node_type(s->f.in[i]);
        int64_t n = adj_shape_elems(t.shape);
        char *data = malloc((size_t)n * adj_dtype_size(t.dtype));
        adj_convert(ADJ_F64, s->f.value[i], t.dtype, data, n);
        adj_set(e, s->f.in[i], data, (size_t)n * adj_dtype_size(t.dtype));
        free(data);
    }
    cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    int steps = 0;
    for (int i = 0; i < adj_exec_step_count(e); i++)
        steps += adj_exec_step_at(e, i).n_node == nodes;
    if (s->bits != 0)
        expect_one_kernel(s, e);
    for (int i = 0; i < s->n; i++) {
        adj_type t = adj_node_type(s->out[i]);
        int64_t n = adj_shape_elems(t.shape);
        size_t bytes = (size_t)n * adj_dtype_size(t.dtype);
        char *data = malloc(bytes);
        cr_assert_eq(adj_get(e, s->out[i], data, bytes), ADJ_OK);
        got[i] = malloc((size_t)n * sizeof(double));
        adj_convert(t.dtype, data, ADJ_F64, got[i], n);
        free(data);
    }
    adj_exec_free(e);
    return steps;
}

static void run(problem *s, int threads, double *got[]) { run_plan(s, threads, got, 0); }

static void expect_pattern(int bits, adj_dtype dtype, const int64_t size[2])
{
    double *got[4] = {NULL};
    problem s = build(bits, dtype, size[0], size[1]);
    run(&s, size[0] % 2 + 1, got);
    expect_values_of(&s, dtype, got);
    for (int i = 0; i < s.n; i++)
        free(got[i]);
    fixture_free(&s.f);
}

/* What is fused is looked at here: no other plans, whatever all tests are run with. */
static void plan_as_usual(void) { unsetenv("ADJOINT_PLAN"); }
TestSuite(direct_row_kernel, .init = plan_as_usual);

/* Held to each instruction set in turn. */
static void in_every_isa(void (*expect)(const char *isa))
{
    for (int k = 0; k < N_ROW_ISA; k++)
        if (can_test(row_isas[k])) {
            setenv("ADJOINT_MAX_ISA", row_isas[k], 1);
            expect(row_isas[k]);
        }
}

static void expect_every_pattern(const char *isa)
{
    (void)isa;
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++)
        for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++)
            for (int half = (patterns[i] & CAST) != 0; half < 2; half++)
                expect_pattern(patterns[i], half ? ADJ_BF16 : ADJ_F32, sizes[j]);
}

Test(direct_row_kernel, every_pattern_in_every_size) { in_every_isa(expect_every_pattern); }

/* A value that dies with the sums over it, which d is as large as: d may not take its place. */
Test(direct_row_kernel, sums_read_what_nothing_else_needs)
{
    for (int half = 0; half < 2; half++) {
        problem s = {.f = fixture_new()};
        adj_dtype dtype = half ? ADJ_BF16 : ADJ_F32;
        adj_shape full = {2, {64, 64}};
        adj_node *x = adj_tanh(given_random(&s.f, dtype, full, -1, 1)); /* never in a group */
        adj_node *dy = given_random(&s.f, dtype, full, -1, 1);
        adj_node *stats = given_random(&s.f, ADJ_F32, (adj_shape){2, {2, 64}}, 0.5, 1.5);
        adj_node *d = adj_relu_grad(dy, given_random(&s.f, dtype, full, -1, 1));
        s.out[s.n++] = adj_batch_norm_grad_sums(x, stats, d, epsilon, ADJ_NHWC);
        s.out[s.n++] = adj_tanh(d); /* d is not fetched, so it needs no memory of its own */
        double *got[4] = {NULL}, *want = evaluate(&s.f, s.out[0], "naive");
        run(&s, 1, got);
        for (int i = 0; i < 128; i++)
            cr_expect_float_eq(got[0][i], want[i], 1e-4 + 1e-5 * fabs(want[i]), "%d: %g, not %g", i,
                               got[0][i], want[i]);
        free(want);
        free(got[0]);
        free(got[1]);
        fixture_free(&s.f);
    }
}

/* Sums over what one norm masks, by another's mean. */
Test(direct_row_kernel, sums_by_another_mean_than_the_mask)
{
    problem s = build(NORM_MASK | SUMS, ADJ_F32, 64, 16);
    adj_node *other = given_random(&s.f, ADJ_F32, (adj_shape){2, {2, 16}}, 2.5, 3.5);
    adj_node *mask = adj_batch_norm(s.x[0], s.stats, s.gamma, s.beta, epsilon, ADJ_NHWC);
    s.out[0] = adj_batch_norm_grad_sums(s.x[0], other, adj_relu_grad(s.b, mask), epsilon, ADJ_NHWC);
    s.bits = 0;
    double *got[4] = {NULL}, *want = evaluate(&s.f, s.out[0], "naive");
    run(&s, 1, got);
    for (int i = 0; i < 2 * 16; i++)
        cr_expect_float_eq(got[0][i], want[i], 1e-4 + 1e-5 * fabs(want[i]), "%d: %g, not %g", i,
                           got[0][i], want[i]);
    free(want);
    free(got[0]);
    fixture_free(&s.f);
}

/* The norm that is recomputed for its relu is read by another node, too. */
Test(direct_row_kernel, a_recomputed_norm_that_others_read)
{
    problem s = build(NORM_MASK | SUMS | NORM_OUT, ADJ_F32, 64, 16);
    s.out[s.n++] = adj_tanh(s.out[0]->in[0]);
    s.bits = 0; /* no one kernel */
    double *got[4] = {NULL};
    run(&s, 1, got);
    for (int64_t i = 0; i < 64 * 16; i++) {
        const double z = wanted_norm(&s, i);
        cr_assert_float_eq(got[0][i], z > 0 ? z : 0, 1e-5, "relu, %d: %g", (int)i, got[0][i]);
        cr_assert_float_eq(got[2][i], tanh(z), 1e-5, "tanh, %d: %g", (int)i, got[2][i]);
    }
    for (int i = 0; i < s.n; i++)
        free(got[i]);
    fixture_free(&s.f);
}

/* A cast before a sum is written where it is a result, too. */
Test(direct_row_kernel, a_cast_that_is_fetched)
{
    problem s = {.f = fixture_new(), .pixels = 64, .c = 16};
    const adj_shape full = {2, {64, 16}};
    adj_node *dy = given_random(&s.f, ADJ_BF16, full, -1, 1);
    adj_node *y = given_random(&s.f, ADJ_BF16, full, -1, 1);
    adj_node *d = adj_relu_grad(dy, y), *wide = adj_cast(d, ADJ_F32);
    s.out[s.n++] = d;
    s.out[s.n++] = wide;
    s.out[s.n++] = adj_bias_add_grad(wide, ADJ_NHWC);
    double *got[4] = {NULL};
    cr_assert_eq(run_plan(&s, 1, got, 3), 1, "one step of three nodes");
    for (int i = 0; i < 64 * 16; i++) {
        const double want = s.f.value[1][i] > 0 ? s.f.value[0][i] : 0;
        cr_assert_eq(got[0][i], want);
        cr_assert_eq(got[1][i], want);
    }
    for (int i = 0; i < s.n; i++)
        free(got[i]);
    fixture_free(&s.f);
}

static void fill_with(problem *s, const adj_node *n, double v)
{
    for (int i = 0; i < s->f.n_in; i++)
        for (int64_t k = 0; s->f.in[i] == n && k < adj_shape_elems(n->type.shape); k++)
            s->f.value[i][k] = v;
}

/* In float, 256 tenths are 2.4e-6 of their sum off, and 1,875, a segment of 16, 1.2e-5. */
Test(direct_row_kernel, sums_of_many_rows)
{
    double *got[4] = {NULL};
    problem s = build(SUM, ADJ_F32, 30000, 64);
    fill_with(&s, s.a, (double)0.1F);
    run(&s, 1, got);
    for (int k = 0; k < 64; k++)
        cr_assert_float_eq(got[0][k], 3000, 5e-6 * 3000, "%g, not 3000", got[0][k]);
    free(got[0]);
    fixture_free(&s.f);
}

static void expect_subnormal(const char *isa)
{
    double *got[4] = {NULL};
    problem s = build(RELU, ADJ_BF16, 5, 64);
    fill_with(&s, s.a, 0x1p-130);
    s.f.value[0][7] = 0x1p-126;
    run(&s, 1, got);
    cr_expect_eq(got[0][6], strcmp(isa, "avx512_bf16") == 0 ? 0 : 0x1p-130, "%s: %g", isa,
                 got[0][6]);
    cr_expect_eq(got[0][7], 0x1p-126, "%s: %g", isa, got[0][7]);
    free(got[0]);
    fixture_free(&s.f);
}

/* What is below 2^-126 stays, or becomes 0 where avx512_bf16 rounds. */
Test(direct_row_kernel, subnormal) { in_every_isa(expect_subnormal); }

static void expect_nan_and_infinity(const char *isa)
{
    for (int half = 0; half < 2; half++) {
        double *got[4] = {NULL};
        problem s = build(NORM | RELU, half ? ADJ_BF16 : ADJ_F32, 64, 16);
        s.f.value[0][7] = NAN;
        s.f.value[0][8] = INFINITY;
        s.f.value[6][8 % 16] = 1;                                                  /* gamma */
        memcpy(&s.f.value[7][9], &(uint64_t){0x7fffffffffffffff}, sizeof(double)); /* beta */
        run(&s, 1, got);
        cr_assert(isnan(got[0][7]), "%s: %g", isa, got[0][7]);
        cr_assert_eq(got[0][8], INFINITY, "%s: %g", isa, got[0][8]);
        cr_assert(isnan(got[0][9]), "%s: %g", isa, got[0][9]);
        free(got[0]);
        fixture_free(&s.f);
    }
}

/* What is not a number stays so through relu and rounding, whatever its bits. */
Test(direct_row_kernel, nan_and_infinity) { in_every_isa(expect_nan_and_infinity); }

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
    double *got[4] = {NULL};
    problem s = build(bits, ADJ_BF16, size[0], size[1]);
    fill_with(&s, s.gamma, 1);
    fill_with(&s, s.beta, 0);
    fill_with(&s, s.mask, 1);
    double *a = (double *)input(&s, s.a), *b = (double *)input(&s, s.b);
    double *stats = (double *)input(&s, s.stats);
    for (int64_t k = 0; k < s.c; k++) {
        stats[k] = bits & ADD ? 0 : -value_of_bf16(ties[(k + first) % TIES].b);
        stats[s.c + k] = 1 - epsilon;
    }
    for (int64_t i = 0; i < s.pixels * s.c; i++) {
        a[i] = value_of_bf16(ties[(i % s.c + first) % TIES].a);
        b[i] = value_of_bf16(ties[(i % s.c + first) % TIES].b);
    }
    run(&s, 1, got);
    for (int64_t i = 0; i < s.pixels * s.c; i++) {
        const int tie = (int)((i % s.c + first) % TIES);
        const double want = value_of_bf16(ties[tie].sum);
        cr_assert_eq(got[0][i], want, "%x, %d channels, element %d, tie %d: %a, not %a",
                     (unsigned)bits, (int)s.c, (int)i, tie, got[0][i], want);
    }
    free(got[0]);
    fixture_free(&s.f);
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
Test(direct_row_kernel, ties_are_rounded_to_even) { in_every_isa(expect_every_tie); }

/* Of a batch norm and a relu: dx, dgamma and dbeta of dy, each from two passes that read x and dy.
 */
static void expect_masked_twice(adj_dtype dtype, int64_t pixels, int64_t c)
{
    fixture f = fixture_new();
    adj_node *x = given_random(&f, dtype, (adj_shape){2, {pixels, c}}, -1, 1);
    adj_node *dy = given_random(&f, dtype, (adj_shape){2, {pixels, c}}, -1, 1);
    adj_node *gamma = given_random(&f, ADJ_F32, (adj_shape){1, {c}}, -1, 1);
    adj_node *beta = given_random(&f, ADJ_F32, (adj_shape){1, {c}}, -1, 1);
    adj_node *stats = adj_batch_norm_stats(x, ADJ_NHWC), *dx[3];
    adj_node *y = adj_relu(adj_batch_norm(x, stats, gamma, beta, epsilon, ADJ_NHWC));
    cr_assert_eq(adj_grad(y, dy, 3, (adj_node *[]){x, gamma, beta}, dx), ADJ_OK);
    problem s = {.f = f, .n = 3, .out = {dx[0], dx[1], dx[2]}};
    double *got[4] = {NULL};
    cr_assert_eq(run_plan(&s, 2, got, 3), 2, "two steps of three nodes");
    for (int64_t k = 0; k < c; k++) {
        double m = (double)pixels, mean = 0, var = 0, dbeta = 0, dgamma = 0;
        for (int64_t i = k; i < pixels * c; i += c)
            mean += f.value[0][i] / m;
        for (int64_t i = k; i < pixels * c; i += c)
            var += (f.value[0][i] - mean) * (f.value[0][i] - mean) / m;
        double r = 1 / sqrt(var + epsilon), slack = 1e-5 * m;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t i = k; i < pixels * c; i += c) {
                double hat = (f.value[0][i] - mean) * r;
                double d = hat * f.value[2][k] + f.value[3][k] > 0 ? f.value[1][i] : 0;
                double want = f.value[2][k] * r * (d - (dbeta + hat * dgamma) / m);
                double u = dtype == ADJ_BF16 ? 0x1p-8 : 1e-5;
                if (pass == 1)
                    cr_assert_float_eq(got[0][i], want, u * fabs(want) + 1e-5);
                dbeta += pass == 0 ? d : 0;
                dgamma += pass == 0 ? d * hat : 0;
            }
        cr_assert_float_eq(got[1][k], dgamma, slack);
        cr_assert_float_eq(got[2][k], dbeta, slack);
    }
    for (int i = 0; i < 3; i++)
        free(got[i]);
    fixture_free(&f);
}

Test(direct_row_kernel, a_mask_is_made_twice)
{
    for (int half = 0; half < 2; half++) {
        expect_masked_twice(half ? ADJ_BF16 : ADJ_F32, 1024, 16);
        expect_masked_twice(half ? ADJ_BF16 : ADJ_F32, 200, 128);
        expect_masked_twice(half ? ADJ_BF16 : ADJ_F32, 33, 5);
    }
}
