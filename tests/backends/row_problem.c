/* row_problem.c - see row_problem.h. */
#include "exec/report.h"
#include "ops/grad.h"
#include "tests/backends/row_problem.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const int row_patterns[] = {NORM,
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
const int n_row_pattern = sizeof row_patterns / sizeof *row_patterns;

/* ---- nodes ---- */

double *row_input(const row_problem *s, const adj_node *n)
{
    int i = 0;
    while (s->f.in[i] != n)
        i++;
    return s->f.value[i];
}

void row_fill(row_problem *s, const adj_node *n, double v)
{
    double *value = row_input(s, n);
    for (int64_t k = 0; k < adj_shape_elems(n->type.shape); k++)
        value[k] = v;
}

/* True if d = relu_grad is not stored, since only its sums are wanted. */
static int only_masks(int bits) { return (bits & ~NORM_OUT) == (NORM_MASK | SUMS); }

/* Adds recomputed nodes as the passes make them: a copy of relu(norm), and sums masked by another
 * copy of the norm. */
static void add_recomputed(row_problem *s)
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

static void add_pattern(row_problem *s)
{
    const int bits = s->bits;
    adj_node *d = s->a;
    if (bits & NORM)
        d = adj_batch_norm(d, s->stats, s->gamma, s->beta, epsilon, ADJ_NHWC);
    if (bits & NORM_MASK)
        d = adj_relu_grad(s->b,
                          adj_batch_norm(s->x[0], s->stats, s->gamma, s->beta, epsilon, ADJ_NHWC));
    if (bits & GRAD)
        d = adj_batch_norm_grad(bits & NORM_MASK ? s->x[0] : s->a, s->stats, s->gamma,
                                bits & NORM_MASK ? d : s->b, s->sums, epsilon, ADJ_NHWC);
    if (bits & ADD)
        d = adj_add(d, s->b);
    if (bits & RELU)
        d = adj_relu(d);
    if (bits & MASK)
        d = adj_relu_grad(d, s->mask);
    if (d != s->a && !only_masks(bits))
        s->out[s->n++] = d;
    if (bits & SUM)
        s->out[s->n++] = adj_bias_add_grad(bits & CAST ? adj_cast(d, ADJ_F32) : d, ADJ_NHWC);
    for (int i = 0; i < 2; i++)
        if (bits & (i == 0 ? SUMS : MORE))
            s->out[s->n++] = adj_batch_norm_grad_sums(s->x[i], s->stats, d, epsilon, ADJ_NHWC);
}

row_problem row_problem_new(int bits, adj_dtype dtype, int64_t pixels, int64_t c)
{
    row_problem s = {.f = fixture_new(), .bits = bits, .pixels = pixels, .c = c};
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
    if (bits & NORM_OUT)
        add_recomputed(&s);
    else
        add_pattern(&s);
    return s;
}

void row_problem_free(row_problem *s)
{
    for (int i = 0; i < s->n; i++)
        free(s->got[i]);
    fixture_free(&s->f);
}

/* ---- a run ---- */

static void expect_one_kernel(const row_problem *s, const adj_exec *e)
{
    cr_assert_eq(adj_exec_step_count(e), 1, "%x: %d steps", (unsigned)s->bits,
                 adj_exec_step_count(e));
    cr_assert_not_null(strstr(adj_exec_step_at(e, 0).impl, "fused_row_kernel:"), "%x is a %s",
                       (unsigned)s->bits, adj_exec_step_at(e, 0).impl);
}

int row_run_steps(row_problem *s, int threads, int nodes)
{
    adj_exec_opts o = {.n_fetch = s->n,
                       .fetch = s->out,
                       .backend = "direct",
                       .threads = threads,
                       .debug = &(adj_exec_debug){.canaries = 1}};
    scoped(release_exec) adj_exec *e = fixture_run(&s->f, &o);
    int steps = 0;
    for (int i = 0; i < adj_exec_step_count(e); i++)
        steps += adj_exec_step_at(e, i).n_node == nodes;
    if (s->bits != 0)
        expect_one_kernel(s, e);
    for (int i = 0; i < s->n; i++)
        s->got[i] = fixture_get(e, s->out[i]);
    return steps;
}

void row_run(row_problem *s, int threads) { row_run_steps(s, threads, 0); }

/* ---- what is wanted ---- */

static double deviation(const row_problem *s, int64_t k)
{
    return sqrt(row_input(s, s->stats)[s->c + k] + epsilon);
}

double row_wanted_norm(const row_problem *s, int64_t i)
{
    int64_t k = i % s->c;
    double hat = (row_input(s, s->x[0])[i] - row_input(s, s->stats)[k]) / deviation(s, k);
    return hat * row_input(s, s->gamma)[k] + row_input(s, s->beta)[k];
}

/* True if out[0] is a full value, not a sum. */
static int has_full(const row_problem *s)
{
    return (s->bits & ~(CAST | SUM | SUMS | MORE)) != 0 && s->bits != (NORM_MASK | SUMS);
}

/* Element i of the full value. */
static double wanted(const row_problem *s, int64_t i)
{
    int64_t k = i % s->c;
    double v = row_input(s, s->a)[i], b = row_input(s, s->b)[i];
    double mean = row_input(s, s->stats)[k], factor = row_input(s, s->gamma)[k] / deviation(s, k);
    if (s->bits & NORM_OUT)
        return row_wanted_norm(s, i) > 0 ? row_wanted_norm(s, i) : 0;
    if (s->bits & NORM_MASK) {
        v = row_input(s, s->x[0])[i];
        b = row_wanted_norm(s, i) > 0 ? b : 0;
    }
    if (s->bits & NORM)
        v = (v - mean) * factor + row_input(s, s->beta)[k];
    if (s->bits & GRAD) {
        double m = (double)s->pixels, hat = (v - mean) / deviation(s, k);
        v = factor * (b - (row_input(s, s->sums)[s->c + k] + hat * row_input(s, s->sums)[k]) / m);
    }
    if (s->bits & ADD)
        v += b;
    if (s->bits & RELU)
        v = v > 0 ? v : 0;
    if (s->bits & MASK)
        v = row_input(s, s->mask)[i] > 0 ? v : 0;
    return v;
}

/* out[number] is a sum over d. */
static void expect_sums(const row_problem *s, int number, const double *d)
{
    const double *got = s->got[number];
    int sum_number = number - has_full(s);
    int is_sum = (s->bits & SUM) && sum_number == 0;
    const double *x = row_input(s, s->x[sum_number - ((s->bits & SUM) != 0 && !is_sum)]);
    for (int64_t k = 0; k < s->c; k++) {
        double sum = 0, product = 0;
        for (int64_t i = k; i < s->pixels * s->c; i += s->c) {
            sum += d[i];
            product += d[i] * (x[i] - row_input(s, s->stats)[k]) / deviation(s, k);
        }
        double slack = 1e-6 * (double)s->pixels + 1e-5;
        int is_rounded = is_sum && s->a->type.dtype == ADJ_BF16 && !(s->bits & CAST);
        double rounding = is_rounded ? 0x1p-8 * fabs(sum) : 0;
        cr_assert_float_eq(got[is_sum ? k : s->c + k], sum, slack + rounding, "%x: %g, not %g",
                           (unsigned)s->bits, got[is_sum ? k : s->c + k], sum);
        if (!is_sum)
            cr_assert_float_eq(got[k], product, 3 * slack, "%x, channel %d: %g, not %g",
                               (unsigned)s->bits, (int)k, got[k], product);
    }
}

void expect_row_values(const row_problem *s)
{
    int64_t n = s->pixels * s->c;
    double u = s->a->type.dtype == ADJ_BF16 ? 0x1p-8 : 1e-6;
    for (int64_t i = 0; i < n && has_full(s); i++) {
        /* a norm that is added to is rounded as well; it is |want| + |b| at most */
        double want = wanted(s, i), b = s->bits & ADD ? row_input(s, s->b)[i] : 0;
        cr_assert_float_eq(
            s->got[0][i], want, u * ((s->bits & ADD ? 2 : 1) * fabs(want) + fabs(b)) + 1e-5,
            "%x, element %d: %g, not %g", (unsigned)s->bits, (int)i, s->got[0][i], want);
    }
    scoped(release) double *d = malloc((size_t)n * sizeof *d);
    for (int64_t i = 0; i < n; i++) {
        int is_on = s->bits & NORM_MASK && row_wanted_norm(s, i) > 0;
        d[i] = has_full(s) ? s->got[0][i] : row_input(s, s->bits & NORM_MASK ? s->b : s->a)[i];
        if (only_masks(s->bits))
            d[i] = is_on ? row_input(s, s->b)[i] : 0;
    }
    for (int i = has_full(s); i < s->n; i++)
        expect_sums(s, i, d);
}
