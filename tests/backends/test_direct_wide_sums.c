/* test_direct_wide_sums.c - sums of fused groups whose terms, squares or partial sums float does
 * not hold: a batch norm's statistics, the sums of its gradient, the gradient of a bias. Against
 * NumPy, x from 2^-100 to 2^126, for every instruction set and both types, in row kernels and
 * node by node; the same bits for any number of threads. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/grad.h"
#include "tests/backends/row_problem.h"
#include "tests/isa.h"

TestSuite(direct_wide_sums, .init = plan_as_usual);

/* Rows of x and dy, which repeat along pixels and channels. By NumPy in float64: mean and variance
 * over the rows; the sums of dy (x - mean) and of dy over all rows and over those where x > mean.
 */
enum { PERIOD = 16, COLUMNS = 4 };
static const double base_x[PERIOD][COLUMNS] = {
    {3.75, -3.75, 0.5, -1.25},  {-3.75, 3.75, 2.25, 3.5},   {3.75, -3.5, -1.75, -1},
    {0.5, -0.75, -2.75, -3.5},  {-3.75, -3.5, -2.75, 3.75}, {-2.5, 1.25, 2, -2},
    {-1.75, -0.5, -1.75, 3.75}, {-2.5, 3, 2.25, 2.75},      {-3, -0.75, 1, 0},
    {1.25, 1.25, 1.25, -3.5},   {3.5, 0.5, 3.25, -1.75},    {-1, 3, -2.5, -3.5},
    {-1, 1.5, -3, 2.75},        {-1.25, -2, 0.25, 3},       {3, 3, -1.5, -3.75},
    {2.25, 1.5, 2, -3.75}};
static const double base_dy[PERIOD][COLUMNS] = {
    {0.25, 3.75, 1.5, 1.75},   {3.5, 3.5, 2, 1.25},          {1.25, -3.75, 0.75, 1.25},
    {0.5, 1, 1.25, 2.75},      {2.25, 1.5, 0.75, 3},         {3, 0.75, 0.25, 1.25},
    {0.75, 2, 2, 2},           {1.25, -0.5, 3.75, 1.5},      {-2, -0.75, -1.25, -2.5},
    {-2.5, 1.5, -3.25, -2.25}, {-0.75, -2.25, -3.75, -2.75}, {-1.75, -1.5, -0.25, -2.75},
    {-0.25, -1.5, -1.75, 0},   {-0.25, -1.5, 0.25, -1.75},   {-2.75, -2.75, -1.5, -0.75},
    {-2.75, 0.5, -0.5, -1.5}};
static const double base_mean[COLUMNS] = {-0.15625, 0.25, -0.078125, -0.28125};
static const double base_variance[COLUMNS] = {7.0068359375, 5.7421875, 4.388427734375,
                                              8.6083984375};
static const struct {
    double product[COLUMNS], sum[COLUMNS];
} all_rows = {{-39.5390625, -5.3125, -6.41796875, 37.328125}, {-0.25, 0, 0.25, 0.5}},
  above_mean = {{-15.3671875, -0.375, -4.328125, 22.984375}, {-6.75, -2.25, -1, 3.5}};

/* Pixels, a multiple of PERIOD, and channels, one of COLUMNS: parts of a row kernel's width, tails,
 * several segments, chunks of few rows. */
static const int64_t sizes[][2] = {{16, 4}, {112, 100}, {1200, 16}, {144, 128}, {48, 1100}};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* Only odd channels are scaled, by 2^power. */
static double scaled(double v, int64_t channel, int power)
{
    return channel % 2 ? ldexp(v, power) : v;
}

static void fill_rows(double *to, const row_problem *s, const double rows[PERIOD][COLUMNS],
                      int power)
{
    for (int64_t i = 0; i < s->pixels; i++)
        for (int64_t k = 0; k < s->c; k++)
            to[i * s->c + k] = scaled(rows[i % PERIOD][k % COLUMNS], k, power);
}

/* ---- runs ---- */

enum { RUNS = 4 }; /* 1 thread and 3, fused or not */

static double *values_by(const row_problem *s, adj_node *y, int threads, int no_fusion)
{
    adj_exec_opts o = {.n_fetch = s->n,
                       .fetch = s->out,
                       .backend = "direct",
                       .threads = threads,
                       .debug = &(adj_exec_debug){.canaries = 1, .no_fusion = no_fusion}};
    scoped(release_exec) adj_exec *e = fixture_run(&s->f, &o);
    return fixture_get(e, y);
}

/* y's two rows of s->c values, or one, in every way; want is rounded to float, the gradient of a
 * bias to its type. */
static void expect_sums(const row_problem *s, adj_node *y, const double *want, const char *label)
{
    const int64_t n = adj_shape_elems(y->type.shape);
    const double rtol = y->type.dtype == ADJ_F32 ? 1e-6 : 0x1p-8;
    scoped(release) double *first = NULL;
    for (int run = 0; run < RUNS; run++) {
        double *got = values_by(s, y, run % 2 ? 3 : 1, run / 2);
        for (int64_t i = 0; i < n; i++) {
            const double w = (double)(float)want[i];
            cr_assert(got[i] == w || fabs(got[i] - w) <= rtol * fabs(w) + 0x1p-148,
                      "%s, %s, %d x %d, run %d: element %d is %a, not %a", label,
                      getenv("ADJOINT_MAX_ISA"), (int)s->pixels, (int)s->c, run, (int)i, got[i], w);
        }
        cr_assert(run == 0 || memcmp(got, first, (size_t)n * sizeof *got) == 0,
                  "%s, %d x %d: run %d has other bits", label, (int)s->pixels, (int)s->c, run);
        free(first);
        first = got;
    }
}

/* ---- statistics ---- */

static const int powers[] = {-100, -70, 0, 28, 58, 60, 62, 63, 64, 100, 125, 126};

/* Computes sums of x by a row kernel, or of -x node by node. */
static void expect_statistics(adj_dtype dtype, const int64_t size[2], int power, int is_negated)
{
    scoped(row_problem_free) row_problem s = row_problem_new(0, dtype, size[0], size[1]);
    adj_node *x = s.x[0], *y;
    scoped(release) double *want = malloc(2 * (size_t)s.c * sizeof *want);
    char label[80];
    snprintf(label, sizeof label, "statistics, %s, 2^%d%s", adj_dtype_name(dtype), power,
             is_negated ? ", negated" : "");
    fill_rows(row_input(&s, x), &s, base_x, power);
    y = adj_batch_norm_stats(is_negated ? adj_neg(x) : x, ADJ_NHWC);
    s.n = 0;
    s.out[s.n++] = y;
    for (int64_t k = 0; k < s.c; k++) {
        want[k] = scaled(base_mean[k % COLUMNS], k, power) * (is_negated ? -1 : 1);
        want[s.c + k] = scaled(base_variance[k % COLUMNS], k, 2 * power);
    }
    expect_sums(&s, y, want, label);
}

static void expect_all_statistics(const char *isa)
{
    (void)isa;
    for (size_t i = 0; i < sizeof powers / sizeof *powers; i++)
        for (int k = 0; k < SIZES; k++)
            for (int is_half = 0; is_half < 2; is_half++)
                expect_statistics(is_half ? ADJ_BF16 : ADJ_F32, sizes[k], powers[i],
                                  (i + (size_t)k) % 2);
}

Test(direct_wide_sums, statistics) { for_each_isa(N_ROW_ISA, row_isas, expect_all_statistics); }

/* An Inf and a NaN reach the statistics of their channels alone. NumPy's mean of a column with Inf
 * is Inf, of one with both infinities or a NaN NaN, and the variance of each NaN. */
static void expect_not_finite(const char *isa)
{
    enum { PIXELS = 2400, C = 16 };
    for (int at = 0; at < PIXELS; at += 799) {
        scoped(row_problem_free) row_problem s = row_problem_new(0, ADJ_F32, PIXELS, C);
        double *x = row_input(&s, s.x[0]);
        fill_rows(x, &s, base_x, 125);
        x[at * C + 2] = INFINITY;
        x[at * C + 3] = NAN;
        x[at * C + 4] = -INFINITY;
        x[at * C + 5] = INFINITY;
        x[(PIXELS - 1 - at) * C + 5] = -INFINITY;
        s.n = 1;
        s.out[0] = adj_batch_norm_stats(s.x[0], ADJ_NHWC);
        scoped(release) double *got = values_by(&s, s.out[0], 2, 0);
        for (int k = 0; k < C; k++) {
            static const double special[] = {INFINITY, NAN, -INFINITY, NAN};
            const int is_finite = k < 2 || k > 5;
            const double want = is_finite ? scaled(base_mean[k % COLUMNS], k, 125) : special[k - 2];
            cr_assert(got[k] == want || (isnan(got[k]) && isnan(want)),
                      "%s: mean %d is %g, not %g, for an Inf in row %d", isa, k, got[k], want, at);
            cr_assert(is_finite ? got[C + k] > 0 : isnan(got[C + k]), "%s: variance %d is %g", isa,
                      k, got[C + k]);
        }
    }
}

Test(direct_wide_sums, not_finite) { for_each_isa(N_ISA, all_isas, expect_not_finite); }

/* ---- sums of gradients ---- */

typedef struct {
    int x, dy, deviation; /* powers of two; the variance is 2^(2 deviation) */
} magnitude;

/* The last ones' terms or partial sums are not finite in float. */
static const magnitude magnitudes[] = {{0, 0, 0},    {-100, 0, 0},  {100, -100, 0},
                                       {125, 0, 63}, {125, 40, 63}, {64, 64, 30},
                                       {62, 62, 20}, {0, 125, 0},   {0, 125, 20}};
enum { MAGNITUDES = sizeof magnitudes / sizeof *magnitudes };

static void fill_operands(row_problem *s, const magnitude *m)
{
    adj_node *dy = s->bits & (GRAD | NORM_MASK | ADD) ? s->b : s->a;
    row_fill(s, s->mask, 1);
    row_fill(s, s->gamma, 1);
    row_fill(s, s->beta, 0);
    row_fill(s, s->sums, 0);
    if (s->bits & GRAD)
        fill_rows(row_input(s, s->a), s, base_x, m->x);
    else
        row_fill(s, s->a, 0);
    fill_rows(row_input(s, dy), s, base_dy, m->dy);
    fill_rows(row_input(s, s->x[0]), s, base_x, m->x);
    for (int64_t i = 0; i < s->pixels * s->c; i++)
        row_input(s, s->x[1])[i] = row_input(s, s->x[0])[i] / 2;
    for (int64_t k = 0; k < s->c; k++) {
        double *stats = row_input(s, s->stats);
        stats[k] = scaled(base_mean[k % COLUMNS], k, m->x);
        stats[s->c + k] = (double)(float)(scaled(1, k, 2 * m->deviation) - epsilon);
    }
}

/* Expected out[i]: a bias gradient, or norm sums with x[0] or x[1] = x[0] / 2, whose distance
 * from x[0]'s mean is half of x[0]'s less half of the mean. */
static void set_wanted(const row_problem *s, int i, const magnitude *m, double sign, double *want)
{
    const double times = (double)(s->pixels / PERIOD);
    const int is_masked = (s->bits & NORM_MASK) != 0, is_bias = (s->bits & SUM) != 0;
    const int is_half = (s->bits & MORE) != 0 && i == s->n - 1;
    for (int64_t k = 0; k < s->c; k++) {
        const int64_t j = k % COLUMNS;
        const double product = is_masked ? above_mean.product[j] : all_rows.product[j];
        const double sum = sign * times * (is_masked ? above_mean.sum[j] : all_rows.sum[j]);
        const double all = sign * times * product;
        const double with_x = is_half ? (all - base_mean[j] * sum) / 2 : all;
        if (is_bias)
            want[k] = scaled(sum, k, m->dy - (s->bits & GRAD ? m->deviation : 0));
        else {
            want[k] = scaled(with_x, k, m->x + m->dy - m->deviation);
            want[s->c + k] = scaled(sum, k, m->dy);
        }
    }
}

static void expect_gradient_sums(row_problem *s, const magnitude *m, double sign, int first)
{
    scoped(release) double *want = malloc(2 * (size_t)s->c * sizeof *want);
    char label[120];
    fill_operands(s, m);
    for (int i = first; i < s->n; i++) {
        snprintf(label, sizeof label, "%x, %s, 2^%d 2^%d 2^%d, result %d", (unsigned)s->bits,
                 adj_dtype_name(s->a->type.dtype), m->x, m->dy, m->deviation, i);
        set_wanted(s, i, m, sign, want);
        expect_sums(s, s->out[i], want, label);
    }
}

static int n_sums(int bits)
{
    return ((bits & SUM) != 0) + ((bits & SUMS) != 0) + ((bits & MORE) != 0);
}

/* Each pattern with each magnitude, of one size. */
static void expect_row_kernels(const char *isa)
{
    (void)isa;
    for (int i = 0; i < n_row_pattern; i++)
        for (int j = 0; j < MAGNITUDES && n_sums(row_patterns[i]) > 0; j++)
            for (int half = (row_patterns[i] & CAST) != 0; half < 2; half++) {
                const int64_t *size = sizes[(i + j) % SIZES];
                row_problem s =
                    row_problem_new(row_patterns[i], half ? ADJ_BF16 : ADJ_F32, size[0], size[1]);
                expect_gradient_sums(&s, &magnitudes[j], 1, s.n - n_sums(s.bits));
                row_problem_free(&s);
            }
}

Test(direct_wide_sums, row_kernels) { for_each_isa(N_ROW_ISA, row_isas, expect_row_kernels); }

/* Computes sums of -dy node by node. It stays inside the group: no row kernel. */
static void expect_nodes(const char *isa)
{
    (void)isa;
    for (int j = 0; j < SIZES * MAGNITUDES; j++) {
        const int64_t *size = sizes[j % SIZES];
        const int is_bias = j % 2, is_half = j / 2 % 2;
        row_problem s =
            row_problem_new(is_bias ? SUM : SUMS, is_half ? ADJ_BF16 : ADJ_F32, size[0], size[1]);
        adj_node *d = adj_neg(s.a);
        s.out[0] = is_bias ? adj_bias_add_grad(d, ADJ_NHWC)
                           : adj_batch_norm_grad_sums(s.x[0], s.stats, d, epsilon, ADJ_NHWC);
        expect_gradient_sums(&s, &magnitudes[j / SIZES], -1, 0);
        row_problem_free(&s);
    }
}

Test(direct_wide_sums, node_by_node) { for_each_isa(N_ROW_ISA, row_isas, expect_nodes); }
