/* test_direct_bands.c - fused groups that read a product's bands (direct/fused_pointwise/bands.h):
 * batch norm statistics behind a convolution; relu's mask and the gradient of a bias behind an
 * input's gradient. On integers against arithmetic in the test; what is not finite, and the bits
 * for any number of threads, too. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/backends/conv_problem.h"
#include "tests/isa.h"

/* Slices are plans of their own, and unfused ones have no groups. */
static void plan_as_usual(void) { unsetenv("ADJOINT_PLAN"); }
TestSuite(direct_bands, .init = plan_as_usual);

enum { MAX_OUT = 3 };
/* 1 / sqrt(variance + epsilon) is 2 where the variance is 0. */
static const double epsilon = 0.25;

typedef struct {
    conv_problem c;
    enum oracle_result direction;
    adj_node *product;
    int64_t n, channels;
    int n_out;
    adj_node *out[MAX_OUT];
    double *got[MAX_OUT];
} problem;

static problem problem_new(oracle_conv row, enum oracle_result direction, adj_dtype dtype)
{
    row.in = row.c;
    problem p = {.c = conv_problem_new(row, dtype), .direction = direction};
    p.product = p.c.result[direction];
    p.n = p.c.n[direction];
    p.channels = p.product->type.shape.dim[3];
    return p;
}

static void forget(problem *p)
{
    for (int i = 0; i < p->n_out; i++) {
        free(p->got[i]);
        p->got[i] = NULL;
    }
}

static void problem_free(problem *p)
{
    forget(p);
    conv_problem_free(&p->c);
}

/* Integers of the product's type and shape, or one for each channel. */
static adj_node *like(problem *p, int lo, int hi)
{
    return given_integers(&p->c.f, p->product->type.dtype, p->product->type.shape, lo, hi);
}
static adj_node *by_channel(problem *p, int lo, int hi)
{
    return given_integers(&p->c.f, p->product->type.dtype, (adj_shape){1, {p->channels}}, lo, hi);
}

/* Values of an input, which the caller may change. */
static double *values_of(const problem *p, const adj_node *n)
{
    int i = 0;
    while (i < p->c.f.n_in && p->c.f.in[i] != n)
        i++;
    cr_assert_lt(i, p->c.f.n_in, "no input");
    return p->c.f.value[i];
}

/* Integers as means, no variance. */
static adj_node *statistics(problem *p)
{
    const int64_t c = p->channels;
    adj_node *stats =
        given_integers(&p->c.f, p->product->type.dtype, (adj_shape){2, {2, c}}, -2, 2);
    double *v = values_of(p, stats);
    for (int64_t k = 0; k < c; k++)
        v[c + k] = 0;
    return stats;
}

/* Returns how many nodes the step has that computes the product. */
static int run_plan(problem *p, const char *isa, int threads, int no_fusion)
{
    adj_exec_opts o = {.n_fetch = p->n_out,
                       .fetch = p->out,
                       .backend = "direct",
                       .threads = threads,
                       .debug = {.canaries = 1, .impl = "gemm:", .no_fusion = no_fusion}};
    adj_exec *e = NULL;
    int n_node = 0;
    setenv("ADJOINT_MAX_ISA", isa, 1);
    cr_assert_eq(adj_exec_new(p->c.f.g, &o, &e), ADJ_OK, "%s%s", adj_graph_message(p->c.f.g),
                 adj_exec_message(e));
    fixture_set(&p->c.f, e);
    cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    forget(p);
    for (int i = 0; i < p->n_out; i++)
        p->got[i] = fixture_get(e, p->out[i]);
    for (int i = 0; i < adj_exec_step_count(e); i++)
        if (strstr(adj_exec_step_at(e, i).impl, "gemm:") != NULL)
            n_node = adj_exec_step_at(e, i).n_node;
    adj_exec_free(e);
    return n_node;
}

static int run_isa(problem *p, const char *isa, int threads)
{
    return run_plan(p, isa, threads, 0);
}

typedef void check(const problem *p, const char *text);

/* The product and n_node - 1 others are one step, of one thread at least; the results are right. */
static void expect_one_step(problem *p, int n_node, check *expect)
{
    for (int i = 0; i < N_ISA; i++)
        for (int threads = 1; threads <= 2 && cpu_has(all_isas[i]); threads++) {
            char text[300];
            snprintf(text, sizeof text, "%s, %s, %d threads", p->c.text, all_isas[i], threads);
            const int got = run_isa(p, all_isas[i], threads);
            cr_assert(got == n_node || (threads > 1 && p->n < 128 * 4096), "%s: %d", text, got);
            expect(p, text);
        }
}

/* The first has parts enough for two threads. Some rows of an image in a band; some images;
 * gathered windows; pixels in flat rows; channels that fill no columns of a row kernel; strided
 * gradients in phases. */
static const oracle_conv rows[] = {
    {.n = 128, .h = 16, .w = 16, .c = 16, .kh = 1, .kw = 1, .last = 16},
    {.n = 32, .h = 16, .w = 16, .c = 16, .kh = 3, .kw = 3, .last = 16, .padding = ADJ_SAME},
    {.n = 32, .h = 8, .w = 8, .c = 16, .kh = 3, .kw = 3, .last = 32, .padding = ADJ_SAME},
    {.n = 1728, .h = 4, .w = 4, .c = 5, .kh = 3, .kw = 3, .last = 7, .padding = ADJ_SAME},
    {.n = 33, .h = 18, .w = 18, .c = 16, .kh = 1, .kw = 1, .last = 24},
    {.n = 33, .h = 16, .w = 15, .c = 24, .kh = 3, .kw = 3, .last = 40, .padding = ADJ_SAME},
    {.n = 32,
     .h = 16,
     .w = 16,
     .c = 16,
     .kh = 3,
     .kw = 3,
     .last = 16,
     .sh = 2,
     .sw = 2,
     .padding = ADJ_SAME},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* ---- statistics ---- */

static void expect_statistics(const problem *p, const char *text)
{
    const double *y = p->got[0], *stats = p->got[1];
    const int64_t c = p->channels, m = p->n / c;
    expect_close(y, p->c.want[p->direction], p->n, 0, 0, text);
    for (int64_t k = 0; k < c; k++) {
        double mean = 0, variance = 0;
        for (int64_t i = k; i < p->n; i += c)
            mean += y[i] / (double)m;
        for (int64_t i = k; i < p->n; i += c)
            variance += (y[i] - mean) * (y[i] - mean) / (double)m;
        cr_assert_float_eq(stats[k], mean, 1e-6 * (1 + sqrt(variance)), "%s: mean %d is %g, not %g",
                           text, (int)k, stats[k], mean);
        cr_assert_float_eq(stats[c + k], variance, 1e-5 * variance, "%s: variance %d is %g, not %g",
                           text, (int)k, stats[c + k], variance);
    }
}

Test(direct_bands, statistics_of_a_convolution)
{
    for (int i = 0; i < ROWS; i++) {
        problem p = problem_new(rows[i], ORACLE_Y, ADJ_F32);
        p.out[p.n_out++] = p.product;
        p.out[p.n_out++] = adj_batch_norm_stats(p.product, ADJ_NHWC);
        expect_one_step(&p, 2, expect_statistics);
        problem_free(&p);
    }
}

Test(direct_bands, statistics_behind_a_bias)
{
    problem p = problem_new(rows[0], ORACLE_Y, ADJ_F32);
    adj_node *bias = by_channel(&p, -90, 90);
    for (int64_t i = 0; i < p.n; i++)
        p.c.want[ORACLE_Y][i] += values_of(&p, bias)[i % p.channels];
    p.out[p.n_out++] = adj_bias_add(p.product, bias, ADJ_NHWC);
    p.out[p.n_out++] = adj_batch_norm_stats(p.out[0], ADJ_NHWC);
    expect_one_step(&p, 3, expect_statistics);
    problem_free(&p);
}

/* ---- gradients ---- */

/* What sums the test expects for d: sum(d * xhat) and sum(d). */
static void expect_norm_sums(const problem *p, const double *d, const adj_node *x,
                             const adj_node *stats, const double *got, const char *text)
{
    const int64_t c = p->channels;
    for (int64_t k = 0; k < c; k++) {
        double product = 0, sum = 0;
        for (int64_t i = k; i < p->n; i += c) {
            product += d[i] * 2 * (values_of(p, x)[i] - values_of(p, stats)[k]);
            sum += d[i];
        }
        cr_assert_eq(got[k], product, "%s: %d: %g, not %g", text, (int)k, got[k], product);
        cr_assert_eq(got[c + k], sum, "%s: %d: %g, not %g", text, (int)k, got[c + k], sum);
    }
}

/* out: the product, and sums of it where batch_norm(x) > 0, which is written nowhere. */
static void expect_masked_by_norm(const problem *p, const char *text)
{
    const adj_node *d = p->out[1]->in[2], *z = d->in[1];
    const double *x = values_of(p, z->in[0]), *mean = values_of(p, z->in[1]),
                 *gamma = values_of(p, z->in[2]), *beta = values_of(p, z->in[3]);
    double *masked = malloc((size_t)p->n * sizeof *masked);
    for (int64_t i = 0; i < p->n; i++) {
        const int64_t k = i % p->channels;
        const int is_on = (x[i] - mean[k]) * 2 * gamma[k] + beta[k] > 0;
        masked[i] = is_on ? p->c.want[p->direction][i] : 0;
    }
    expect_close(p->got[0], p->c.want[p->direction], p->n, 0, 0, text);
    expect_norm_sums(p, masked, z->in[0], z->in[1], p->got[1], text);
    free(masked);
}

/* The mask is by a value that is newer than the product. */
Test(direct_bands, sums_of_what_a_norm_masks_are_a_step_of_their_own)
{
    problem p = problem_new(rows[0], ORACLE_DX, ADJ_F32);
    adj_node *x = like(&p, -5, 5), *stats = statistics(&p);
    adj_node *gamma = by_channel(&p, -2, 2), *beta = by_channel(&p, -3, 3);
    adj_node *z = adj_batch_norm(x, stats, gamma, beta, epsilon, ADJ_NHWC);
    adj_node *d = adj_relu_grad(p.product, z);
    p.out[p.n_out++] = p.product;
    p.out[p.n_out++] = adj_batch_norm_grad_sums(x, stats, d, epsilon, ADJ_NHWC);
    expect_one_step(&p, 1, expect_masked_by_norm);
    problem_free(&p);
}

/* out: (product + other) where y > 0, and its sums. */
static void expect_masked_sum(const problem *p, const char *text)
{
    const adj_node *d = p->out[0], *sums = p->out[1], *t = d->in[0];
    const double *y = values_of(p, d->in[1]), *other = values_of(p, t->in[t->in[0] == p->product]);
    double *masked = malloc((size_t)p->n * sizeof *masked);
    for (int64_t i = 0; i < p->n; i++)
        masked[i] = y[i] > 0 ? p->c.want[p->direction][i] + other[i] : 0;
    expect_close(p->got[0], masked, p->n, 0, 0, text);
    expect_norm_sums(p, masked, sums->in[0], sums->in[1], p->got[1], text);
    free(masked);
}

/* The product's place is saved, too, and three others are read. */
Test(direct_bands, sums_that_read_more_than_is_saved_are_a_step_of_their_own)
{
    for (int is_first = 0; is_first < 2; is_first++) {
        problem p = problem_new(rows[0], ORACLE_DX, ADJ_F32);
        adj_node *x = like(&p, -5, 5), *stats = statistics(&p), *other = like(&p, -9, 9);
        adj_node *t = is_first ? adj_add(p.product, other) : adj_add(other, p.product);
        p.out[p.n_out++] = adj_relu_grad(t, like(&p, -1, 1));
        p.out[p.n_out++] = adj_batch_norm_grad_sums(x, stats, p.out[0], epsilon, ADJ_NHWC);
        expect_one_step(&p, 1, expect_masked_sum);
        problem_free(&p);
    }
}

static void expect_bias_sum(const problem *p, const char *text)
{
    const double *y = values_of(p, p->out[0]->in[1]);
    const int64_t c = p->channels;
    for (int64_t k = 0; k < c; k++) {
        double sum = 0;
        for (int64_t i = k; i < p->n; i += c) {
            const double want = y[i] > 0 ? p->c.want[p->direction][i] : 0;
            cr_assert_eq(p->got[0][i], want, "%s: %d: %g", text, (int)i, p->got[0][i]);
            sum += want;
        }
        cr_assert_eq(p->got[1][k], sum, "%s: %d: %g, not %g", text, (int)k, p->got[1][k], sum);
    }
}

Test(direct_bands, a_mask_and_the_gradient_of_a_bias)
{
    for (int i = 0; i < ROWS; i++) {
        problem p = problem_new(rows[i], ORACLE_DX, ADJ_F32);
        p.out[p.n_out++] = adj_relu_grad(p.product, like(&p, -1, 1));
        p.out[p.n_out++] = adj_bias_add_grad(p.out[0], ADJ_NHWC);
        expect_one_step(&p, 3, expect_bias_sum);
        problem_free(&p);
    }
}

static void expect_mask(const problem *p, const char *text)
{
    const double *y = values_of(p, p->out[0]->in[1]);
    for (int64_t i = 0; i < p->n; i++) {
        const double want = y[i] > 0 ? p->c.want[p->direction][i] : 0;
        cr_assert_eq(p->got[0][i], want, "%s: %d: %g", text, (int)i, p->got[0][i]);
    }
}

/* Without sums; also of channels that divide no chunk. */
Test(direct_bands, a_mask_alone)
{
    oracle_conv wide = rows[1];
    wide.c = 100;
    wide.kh = wide.kw = 1;
    for (int i = 0; i <= ROWS; i++) {
        problem p = problem_new(i < ROWS ? rows[i] : wide, ORACLE_DX, ADJ_F32);
        p.out[p.n_out++] = adj_relu_grad(p.product, like(&p, -1, 1));
        expect_one_step(&p, 2, expect_mask);
        problem_free(&p);
    }
}

/* Behind the mask, which therefore cannot take the product's place. */
Test(direct_bands, sums_that_read_the_product_again)
{
    problem p = problem_new(rows[0], ORACLE_DX, ADJ_F32);
    adj_node *stats = statistics(&p), *d = adj_relu_grad(p.product, like(&p, -1, 1));
    p.out[p.n_out++] = d;
    p.out[p.n_out++] = adj_batch_norm_grad_sums(p.product, stats, d, epsilon, ADJ_NHWC);
    cr_assert_eq(run_isa(&p, "amx", 2), 1);
    expect_mask(&p, p.c.text);
    const double *dx = p.c.want[ORACLE_DX], *mean = values_of(&p, stats);
    for (int64_t k = 0; k < p.channels; k++) {
        double product = 0;
        for (int64_t i = k; i < p.n; i += p.channels)
            product += values_of(&p, d->in[1])[i] > 0 ? dx[i] * 2 * (dx[i] - mean[k]) : 0;
        cr_assert_float_eq(p.got[1][k], product, 1e-6 * fabs(product), "%d: %g, not %g", (int)k,
                           p.got[1][k], product);
    }
    problem_free(&p);
}

/* ---- what is not finite, and bits ---- */

Test(direct_bands, what_is_not_finite_reaches_sums_as_in_naive)
{
    problem p = problem_new(rows[1], ORACLE_DX, ADJ_F32);
    p.c.f.value[1][3] = INFINITY; /* of the filter: mended at the borders */
    p.c.f.value[2][100] = NAN;    /* of dy */
    adj_node *y = like(&p, -1, 1);
    p.out[p.n_out++] = adj_relu_grad(p.product, y);
    p.out[p.n_out++] = adj_bias_add_grad(p.out[0], ADJ_NHWC);
    double *d = evaluate(&p.c.f, p.out[0], "naive"), *sum = evaluate(&p.c.f, p.out[1], "naive");
    for (int i = 0; i < N_ISA; i++)
        if (cpu_has(all_isas[i])) {
            cr_assert_eq(run_isa(&p, all_isas[i], 1), 3);
            expect_close(p.got[0], d, p.n, 0, 0, all_isas[i]);
            expect_close(p.got[1], sum, p.channels, 0, 0, all_isas[i]);
        }
    free(d);
    free(sum);
    problem_free(&p);
}

/* As by a pass of its own. */
Test(direct_bands, the_same_bits_as_alone_for_any_number_of_threads)
{
    oracle_conv many = rows[1]; /* parts for four threads */
    many.n = 256;
    many.c = 2;
    for (int i = 0; i <= ROWS; i++) {
        problem p = problem_new(i < ROWS ? rows[i] : many, ORACLE_Y, ADJ_F32);
        const int64_t c = p.channels;
        double alone[2 * 80];
        for (int64_t k = 0; k < adj_shape_elems(p.product->in[0]->type.shape); k++)
            p.c.f.value[0][k] = (float)(p.c.f.value[0][k] + sin((double)k));
        p.out[p.n_out++] = p.product;
        p.out[p.n_out++] = adj_batch_norm_stats(p.product, ADJ_NHWC);
        cr_assert_eq(run_plan(&p, "amx", 2, 1), 1);
        memcpy(alone, p.got[1], (size_t)(2 * c) * sizeof *alone);
        for (int threads = 1; threads <= 4; threads++) {
            const int n_node = run_isa(&p, "amx", threads); /* of many threads each has few bands */
            cr_assert(n_node == 2 || (threads > 1 && i < ROWS), "%s, %d threads", p.c.text,
                      threads);
            for (int64_t k = 0; k < 2 * c; k++)
                cr_assert_eq(p.got[1][k], alone[k], "%s: %d, %d threads", p.c.text, (int)k,
                             threads);
        }
        problem_free(&p);
    }
}

/* ---- what is no such group ---- */

/* relu(c + bias_add(c)): c itself is read behind its bias, which therefore is no part of the
 * product. */
Test(direct_bands, a_convolution_that_is_read_beside_its_bias)
{
    problem p = problem_new(rows[1], ORACLE_Y, ADJ_F32);
    adj_node *bias = by_channel(&p, -9, 9);
    p.out[p.n_out++] = adj_relu(adj_add(p.product, adj_bias_add(p.product, bias, ADJ_NHWC)));
    run_isa(&p, "amx", 1);
    for (int64_t i = 0; i < p.n; i++) {
        const double sum = 2 * p.c.want[ORACLE_Y][i] + values_of(&p, bias)[i % p.channels];
        cr_assert_eq(p.got[0][i], sum > 0 ? sum : 0, "%d: %g, not %g", (int)i, p.got[0][i], sum);
    }
    problem_free(&p);
}

/* A transposed convolution with strides: an Inf of the filter is mended phase by phase. */
Test(direct_bands, an_input_gradient_has_no_bias)
{
    problem p = problem_new(rows[ROWS - 1], ORACLE_DX, ADJ_F32);
    p.c.f.value[1][3] = INFINITY;
    p.out[p.n_out++] = adj_bias_add(p.product, by_channel(&p, -9, 9), ADJ_NHWC);
    cr_assert_eq(run_isa(&p, "amx", 1), 1);
    double *want = evaluate(&p.c.f, p.out[0], "naive");
    expect_close(p.got[0], want, p.n, 0, 0, "bias");
    free(want);
    problem_free(&p);
}

static void expect_apart(oracle_conv row, adj_dtype dtype, int threads)
{
    problem p = problem_new(row, ORACLE_Y, dtype);
    p.out[p.n_out++] = p.product;
    p.out[p.n_out++] = adj_batch_norm_stats(p.product, ADJ_NHWC);
    cr_assert_eq(run_isa(&p, "amx", threads), 1, "%s", p.c.text);
    expect_statistics(&p, p.c.text);
    problem_free(&p);
}

/* Images whose rows, a prime number of them, make no bands but single ones, too short to be any;
 * and of which bands are odd numbers of rows, where a product takes four at a time. */
Test(direct_bands, bands_that_do_not_fit_are_steps_of_their_own)
{
    static const oracle_conv prime = {
        .n = 8, .h = 37, .w = 96, .c = 2, .kh = 3, .kw = 3, .last = 8, .padding = ADJ_SAME};
    static const oracle_conv odd = {
        .n = 33, .h = 14, .w = 15, .c = 24, .kh = 3, .kw = 3, .last = 40, .padding = ADJ_SAME};
    expect_apart(prime, ADJ_F32, 1);
    expect_apart(odd, ADJ_F32, 1);
}

/* A product of matrices is no image. */
Test(direct_bands, a_matmul_is_a_step_of_its_own)
{
    fixture f = fixture_new();
    adj_node *a = given_integers(&f, ADJ_F32, (adj_shape){2, {4096, 3}}, -3, 3);
    adj_node *b = given_integers(&f, ADJ_F32, (adj_shape){2, {3, 10}}, -3, 3);
    problem p = {.c.f = f, .product = adj_matmul(a, b, 0), .n = 40960, .channels = 10};
    p.out[p.n_out++] = adj_relu_grad(p.product, like(&p, -1, 1));
    cr_assert_eq(run_isa(&p, "amx", 1), 1);
    double *want = evaluate(&p.c.f, p.out[0], "naive");
    expect_close(p.got[0], want, p.n, 0, 0, "matmul");
    free(want);
    forget(&p);
    fixture_free(&p.c.f);
}

/* The first reader waits for something; the second one's statistics are computed along. */
Test(direct_bands, of_several_readers_one_that_waits_for_nothing)
{
    problem p = problem_new(rows[0], ORACLE_Y, ADJ_F32);
    adj_node *newer = adj_square(adj_tanh(like(&p, -1, 1)));
    adj_node *first = adj_relu_grad(p.product, newer);
    p.out[p.n_out++] = p.product;
    p.out[p.n_out++] = adj_batch_norm_stats(p.product, ADJ_NHWC);
    p.out[p.n_out++] = first;
    expect_one_step(&p, 2, expect_statistics);
    problem_free(&p);
}

/* f64 has no row kernels; of few bands threads share out the outputs. */
Test(direct_bands, other_types_and_few_bands_are_steps_of_their_own)
{
    oracle_conv few = rows[0];
    few.n = 2;
    expect_apart(rows[0], ADJ_F64, 2);
    expect_apart(few, ADJ_F32, 2);
}

/* What else the group reads is computed after the product. */
Test(direct_bands, a_newer_operand_is_waited_for)
{
    problem p = problem_new(rows[0], ORACLE_DX, ADJ_F32);
    adj_node *newer = adj_square(adj_tanh(like(&p, -1, 1)));
    p.out[p.n_out++] = adj_relu_grad(p.product, newer);
    p.out[p.n_out++] = adj_bias_add_grad(p.out[0], ADJ_NHWC);
    cr_assert_eq(run_isa(&p, "amx", 2), 1);
    double *want = evaluate(&p.c.f, p.out[1], "naive");
    expect_close(p.got[1], want, p.channels, 0, 0, "sums");
    free(want);
    problem_free(&p);
}
