/* test_direct_fused_pointwise.c - fused pointwise groups against plain loops in double, for every
 * instruction set, three types, and sizes around the rows and chunks that the pass is cut into. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "exec/report.h"
#include "graph/op.h"
#include "ops/grad.h"
#include "tests/isa.h"
#include "tests/norm_reference.h"

enum { FETCHES = 4 };

static const adj_dtype dtypes[] = {ADJ_F32, ADJ_BF16, ADJ_F16};
static const int64_t sizes[][2] = {/* pixels and channels */
                                   {1, 1},   {7, 1},     {5000, 1}, {3, 3},    {700, 3},  {9, 8},
                                   {641, 8}, {1024, 16}, {129, 37}, {33, 64},  {200, 96}, {17, 100},
                                   {5, 128}, {6, 1000},  {3, 1001}, {9000, 16}};

typedef struct {
    int n, steps;
    adj_node *node[FETCHES];
    double *value[FETCHES];
} fetched;

static void fetch(fixture *f, int threads, fetched *out)
{
    adj_exec_opts o = {.n_fetch = out->n,
                       .fetch = out->node,
                       .backend = "direct",
                       .threads = threads,
                       .debug = &(adj_exec_debug){.canaries = 1}};
    scoped(release_exec) adj_exec *e = fixture_run(f, &o);
    for (int i = 0; i < out->n; i++)
        out->value[i] = fixture_get(e, out->node[i]);
    out->steps = adj_exec_step_count(e);
    for (int i = 0; i < out->steps; i++) /* maximum is never part of a group */
        cr_assert(strcmp(adj_exec_step_at(e, i).backend, "direct") == 0 ||
                      strcmp(adj_exec_step_at(e, i).op, "maximum") == 0,
                  "%s", adj_exec_step_at(e, i).op);
}

static void discard(fetched *out)
{
    for (int i = 0; i < out->n; i++)
        free(out->value[i]);
}

typedef void test_case(adj_dtype dtype, int64_t pixels, int64_t channels, int threads);

static void in_every_way(test_case *run)
{
    for (int i = 0; i < N_ROW_ISA; i++) {
        if (!can_test(row_isas[i]))
            continue;
        setenv("ADJOINT_MAX_ISA", row_isas[i], 1);
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
                run(dtypes[d], sizes[s][0], sizes[s][1], (s + d) % 2 == 0 ? 1 : 3);
    }
}

static double positive(double v) { return v > 0 ? v : 0; }

/* Small integers: every bit has to be right, in the half types as well. */
static void elementwise(adj_dtype dtype, int64_t pixels, int64_t channels, int threads)
{
    scoped(fixture_free) fixture f = fixture_new();
    const adj_shape full = {2, {pixels, channels}}, vector = {1, {channels}}, scalar = {0};
    adj_node *a = given_integers(&f, dtype, full, -4, 4),
             *b = given_integers(&f, dtype, full, -4, 4);
    adj_node *v = given_integers(&f, dtype, vector, -2, 2),
             *s = given_integers(&f, dtype, scalar, 2, 3);
    adj_node *ss = adj_mul(s, s), *r = adj_relu(adj_add(adj_scale(a, 2), b));
    adj_node *m = adj_sub(adj_mul(v, r), adj_bias_add(adj_square(a), v, ADJ_NHWC));
    adj_node *y = adj_div(adj_relu_grad(m, b), ss);
    adj_node *z = adj_leaky_relu_grad(adj_leaky_relu(m, 0.5), a, 2);
    scoped(discard) fetched got = {.n = 3, .node = {r, y, z}};
    fetch(&f, threads, &got);
    cr_assert_eq(got.steps, 2, "%d steps", got.steps); /* s * s has another shape */
    const double *A = f.value[0], *B = f.value[1], *V = f.value[2], S = *f.value[3];
    for (int64_t i = 0; i < pixels * channels; i++) {
        double c = V[i % channels], R = positive(2 * A[i] + B[i]);
        double M = c * R - (A[i] * A[i] + c), leaky = M > 0 ? M : M / 2;
        cr_assert_eq(got.value[0][i], R);
        cr_assert_float_eq(got.value[1][i], B[i] > 0 ? M / (S * S) : 0,
                           dtype == ADJ_F32 ? 1e-5 : .1);
        cr_assert_eq(got.value[2][i], A[i] > 0 ? leaky : 2 * leaky);
    }
}

/* Fused groups are inspected, so plans are the default ones even if ADJOINT_PLAN is set. */
TestSuite(direct_fused_pointwise, .init = plan_as_usual);

Test(direct_fused_pointwise, elementwise) { in_every_way(elementwise); }

/* An operand that dies in the group gives its memory to the first result, unless a later node reads
 * it as well. */
static void in_place(adj_dtype dtype, int64_t pixels, int64_t channels, int threads)
{
    scoped(fixture_free) fixture f = fixture_new();
    const adj_shape full = {2, {pixels, channels}};
    adj_node *a = given_integers(&f, dtype, full, -4, 4);
    adj_node *b = given_integers(&f, dtype, full, -4, 4);
    adj_node *m = adj_maximum(a, b), *r = adj_relu(m);
    adj_node *c = given_integers(&f, dtype, full, -4, 4); /* these two are row kernels */
    adj_node *alone = adj_relu(adj_maximum(b, c));
    adj_node *added = adj_relu(adj_add(adj_maximum(c, b), adj_maximum(c, a)));
    scoped(discard) fetched got = {.n = 4, .node = {r, adj_add(r, m), alone, added}};
    fetch(&f, threads, &got);
    cr_assert_eq(got.steps, 7, "%d steps", got.steps);
    for (int64_t i = 0; i < pixels * channels; i++) {
        double A = f.value[0][i], B = f.value[1][i], C = f.value[2][i], max = fmax(A, B);
        cr_assert_eq(got.value[0][i], positive(max));
        cr_assert_eq(got.value[1][i], positive(max) + max);
        cr_assert_eq(got.value[2][i], positive(fmax(B, C)));
        cr_assert_eq(got.value[3][i], positive(fmax(C, B) + fmax(C, A)));
    }
}

Test(direct_fused_pointwise, in_place) { in_every_way(in_place); }

/* One channel's mean is far from zero. */
static void batch_norm(adj_dtype dtype, int64_t pixels, int64_t channels, int threads)
{
    scoped(fixture_free) fixture f = fixture_new();
    const adj_shape full = {2, {pixels, channels}}, vector = {1, {channels}};
    adj_node *x = given_random(&f, dtype, full, -1, 1), *e = given_random(&f, dtype, full, -1, 1);
    adj_node *gamma = given_random(&f, ADJ_F32, vector, -1, 1);
    adj_node *beta = given_random(&f, ADJ_F32, vector, -1, 1);
    for (int64_t i = 0; i < pixels && dtype == ADJ_F32; i++)
        f.value[0][i * channels] = (double)(float)(f.value[0][i * channels] + 100);
    adj_node *stats = adj_batch_norm_stats(x, ADJ_NHWC);
    adj_node *y = adj_relu(adj_add(adj_batch_norm(x, stats, gamma, beta, 1e-5, ADJ_NHWC), e));
    adj_node *sums = adj_batch_norm_grad_sums(x, stats, e, 1e-5, ADJ_NHWC);
    adj_node *dx = adj_batch_norm_grad(x, stats, gamma, e, sums, 1e-5, ADJ_NHWC);
    scoped(discard) fetched got = {.n = 4, .node = {stats, y, sums, dx}};
    fetch(&f, threads, &got);
    cr_assert_eq(got.steps, 4);
    const norm_problem whole = {full, 0, 1e-5, ADJ_NHWC};
    scoped(norm_answers_free) norm_answers want =
        norm_reference(&whole, f.value[0], f.value[2], f.value[3], f.value[1]);
    const double m = (double)pixels, u = dtype == ADJ_F32 ? 1e-5 : 1e-2;
    for (int64_t i = 0; i < pixels * channels; i++) {
        const int64_t k = i % channels;
        const double mean = want.stats[k], var = want.stats[channels + k];
        const double slack = u * m * (k == 0 ? 10 : 1),
                     scale = fabs(f.value[2][k]) / sqrt(var + 1e-5) + 1;
        cr_assert_float_eq(got.value[0][k], mean, 1e-6 * (1 + fabs(mean)));
        cr_assert_float_eq(got.value[0][channels + k], var, 2e-5 * var + 1e-9);
        cr_assert_float_eq(got.value[2][k], want.sums[k], slack, "channel %d of %d: %g %g", (int)k,
                           (int)channels, got.value[2][k], want.sums[k]);
        cr_assert_float_eq(got.value[2][channels + k], want.sums[channels + k], slack);
        cr_assert_float_eq(got.value[1][i], positive(want.y[i] + f.value[1][i]), 10 * u * scale);
        cr_assert_float_eq(got.value[3][i], want.dx[i], 30 * u * scale, "%g %g", got.value[3][i],
                           want.dx[i]);
    }
}

Test(direct_fused_pointwise, batch_norm) { in_every_way(batch_norm); }

/* A step that is taken or not, as one group: momentum and parameter, each its next value or, bit by
 * bit, what it was - though the gradient is no number. */
static void guarded(adj_dtype dtype, int64_t pixels, int64_t channels, int threads)
{
    for (int is_taken = 0; is_taken < 2; is_taken++) {
        scoped(fixture_free) fixture f = fixture_new();
        const adj_shape full = {2, {pixels, channels}};
        adj_node *p = given_integers(&f, dtype, full, -4, 4);
        adj_node *v = given_integers(&f, dtype, full, -4, 4);
        adj_node *g = given_integers(&f, dtype, full, -4, 4);
        adj_node *taken = given_integers(&f, ADJ_F32, (adj_shape){0}, is_taken, is_taken);
        adj_node *lr = given_integers(&f, dtype, (adj_shape){0}, 2, 2);
        if (!is_taken)
            f.value[2][pixels * channels - 1] = pixels % 2 ? NAN : INFINITY;
        adj_node *next = adj_momentum(v, g, p, 0.5, 0);
        adj_node *step = adj_sgd_step(p, next, lr, 0);
        scoped(discard) fetched got = {
            .n = 2, .node = {adj_select(taken, next, v), adj_select(taken, step, p)}};
        fetch(&f, threads, &got);
        cr_assert_eq(got.steps, 1, "%d steps", got.steps);
        for (int64_t i = 0; i < pixels * channels; i++) {
            double P = f.value[0][i], V = f.value[1][i], moved = 0.5 * V + f.value[2][i];
            cr_assert_eq(got.value[0][i], is_taken ? moved : V);
            cr_assert_eq(got.value[1][i], is_taken ? P - 2 * moved : P);
        }
    }
}

Test(direct_fused_pointwise, guarded) { in_every_way(guarded); }

/* Every f16 to f32; and to f16 around each number that is halfway between two of them. */
static void expect_every_f16(const char *isa)
{
    enum { HALVES = 1 << 16, NEAR = 4 };
    static double half[HALVES], near[NEAR * HALVES], rounded[NEAR * HALVES];
    for (int k = 0; k < HALVES; k++) {
        const uint16_t bits = (uint16_t)k;
        const double low = half[k] = adj_load(ADJ_F16, &bits, 0);
        const int is_normal = fabs(low) >= ldexp(1, -14) && isfinite(low);
        const float middle = (float)(low + ldexp(1, is_normal ? ilogb(low) - 11 : -25));
        const float four[NEAR] = {(float)low, middle, nextafterf(middle, INFINITY),
                                  nextafterf(middle, -INFINITY)};
        for (int i = 0; i < NEAR; i++) {
            near[NEAR * k + i] = (double)four[i];
            rounded[NEAR * k + i] = as_stored(ADJ_F16, (double)four[i]);
        }
    }
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *wide = adj_cast(given(&f, ADJ_F16, (adj_shape){1, {HALVES}}, half), ADJ_F32);
    adj_node *narrow = adj_cast(given(&f, ADJ_F32, (adj_shape){1, {NEAR * HALVES}}, near), ADJ_F16);
    scoped(discard) fetched got = {.n = 2, .node = {wide, narrow}};
    fetch(&f, 2, &got);
    expect_same_bits(got.value[0], half, HALVES, isa);
    expect_same_bits(got.value[1], rounded, NEAR * HALVES, isa);
    for (int k = 0; k < HALVES; k++) /* signs, of NaNs as well */
        cr_assert_eq(signbit(got.value[0][k]) != 0, k >> 15, "%s: %04x", isa, (unsigned)k);
}

Test(direct_fused_pointwise, every_f16) { for_each_isa(N_ISA, all_isas, expect_every_f16); }

/* Values needed before the pass, such as a rate or statistics, are not computed in it. */
Test(direct_fused_pointwise, known_before_the_pass)
{
    static const adj_shape scalar = {0}, square = {2, {2, 2}};
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *p = given(&f, ADJ_F32, scalar, (double[]){3});
    adj_node *d = given(&f, ADJ_F32, scalar, (double[]){2});
    adj_node *rate = adj_scale(given(&f, ADJ_F32, scalar, (double[]){1}), 0.5);
    expect_values(&f, adj_sgd_step(p, d, rate, 0), "direct", (double[]){2}, 0, 0);

    adj_node *x = adj_scale(given(&f, ADJ_F32, square, (double[]){2, 4, 6, 8}), 0.5);
    adj_node *sums = adj_batch_norm_grad_sums(x, x, x, 1, ADJ_NHWC);
    expect_values(&f, sums, "direct", (double[]){3, 8 / sqrt(5), 4, 6}, 1e-6, 0);
}

/* Channels that no pass has made the last axis are left to other kernels: as many columns as
 * channels. */
Test(direct_fused_pointwise, channels_that_are_not_last)
{
    static const double data[] = {1, 2, 3, 4}, added[] = {10, 20}, wanted[] = {11, 12, 23, 24};
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given(&f, ADJ_F32, (adj_shape){4, {1, 2, 1, 2}}, data);
    adj_node *y = adj_bias_add(x, given(&f, ADJ_F32, (adj_shape){1, {2}}, added), ADJ_NCHW);
    const adj_exec_opts o = {
        .n_fetch = 1, .fetch = &y, .backend = "direct", .debug = &(adj_exec_debug){.no_passes = 1}};
    scoped(release_exec) adj_exec *e = fixture_run(&f, &o);
    scoped(release) double *got = fixture_get(e, y);
    expect_close(got, wanted, 4, 0, 0, "bias_add");
}
