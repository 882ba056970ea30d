/* test_onednn_ops.c - the oneDNN backend's ops besides convolutions, every candidate against naive,
 * and the cases that it must not support; its Winograd kernel: only with math fast, only in f32,
 * and its errors. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/report.h"
#include "ops/grad.h"
#include "tests/backends/candidates.h"
#include "tests/conv_problem.h"
#include "tests/plan.h"

/* Closes the fixture; at_least: candidates in f32. */
static void expect_node(fixture *f, adj_node *y, int at_least, double rtol, double atol)
{
    cr_assert_not_null(y, "%s", adj_graph_message(f->g));
    const adj_node *node = y;
    scoped(backend_close) test_backend onednn = backend_open("onednn");
    int n = expect_candidates(f, &onednn, 1, &node, rtol, atol, y->op->name);
    cr_assert(n >= at_least || y->type.dtype != ADJ_F32, "%s: %d candidates", y->op->name, n);
    fixture_free(f);
}

static const adj_dtype dtypes[] = {ADJ_F32, ADJ_BF16};
enum { DTYPES = 2 };

static double rounding(adj_dtype dtype) { return dtype == ADJ_BF16 ? 0x1p-7 : 1e-6; }

Test(onednn_ops, matmul_agrees_exactly_on_integers)
{
    static const int64_t sizes[][3] = {
        {64, 120, 84}, {1, 7, 5}, {5, 1, 3}, {17, 33, 1}, {2, 256, 10}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int t = 0; t < 4; t++)
            for (int d = 0; d < DTYPES; d++) {
                int64_t m = sizes[i][0], k = sizes[i][1], n = sizes[i][2];
                fixture f = fixture_new();
                adj_shape a = {2, {t & 1 ? k : m, t & 1 ? m : k}};
                adj_shape b = {2, {t & 2 ? n : k, t & 2 ? k : n}};
                expect_node(&f,
                            adj_matmul(given_integers(&f, dtypes[d], a, -3, 3),
                                       given_integers(&f, dtypes[d], b, -3, 3), t),
                            1, 0, 0);
            }
}

Test(onednn_ops, matmul_adds_the_bias)
{
    const adj_node *group[2];
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *a = given_integers(&f, ADJ_F32, (adj_shape){2, {9, 20}}, -3, 3);
    adj_node *b = given_integers(&f, ADJ_F32, (adj_shape){2, {20, 6}}, -3, 3);
    adj_node *y = adj_matmul(a, b, 0);
    group[0] = y;
    group[1] = adj_bias_add(y, given_integers(&f, ADJ_F32, (adj_shape){1, {6}}, -3, 3), ADJ_NHWC);
    scoped(backend_close) test_backend onednn = backend_open("onednn");
    cr_assert_geq(expect_candidates(&f, &onednn, 2, group, 0, 0, "matmul + bias_add"), 1);
}

/* The square of one matrix: one value as both operands. */
Test(onednn_ops, matmul_of_one_value_with_itself)
{
    fixture f = fixture_new();
    adj_node *a = given_integers(&f, ADJ_F32, (adj_shape){2, {12, 12}}, -3, 3);
    expect_node(&f, adj_matmul(a, a, ADJ_TRANSPOSE_A), 1, 0, 0);
}

/* A plan for x b, b [64, 256] transposed. */
static adj_exec *plan_of_product(adj_node *x, adj_node *b)
{
    adj_node *y = adj_matmul(x, b, ADJ_TRANSPOSE_B);
    return plan_of(adj_node_graph(b), &(adj_exec_opts){.n_fetch = 1, .fetch = &y});
}

/* oneDNN prefers another layout for b: a parameter is reordered when it changes, an input would be
 * in every run. */
Test(onednn_ops, matmul_reorders_parameters_alone)
{
    const adj_shape shape = {2, {64, 256}};
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){2, {1, 256}});
    scoped(release_exec) adj_exec *of_input = plan_of_product(x, adj_input(g, "b", ADJ_F32, shape));
    scoped(release_exec) adj_exec *of_param = plan_of_product(
        x, adj_param(g, "w", ADJ_F32, shape, (adj_init){.kind = ADJ_INIT_CONSTANT}));
    cr_expect_eq(adj_exec_details(of_input).reorders, 0);
    cr_expect_eq(adj_exec_details(of_param).reorders, 1);
}

static adj_node *(*const function[])(adj_node *) = {adj_sigmoid, adj_tanh, adj_silu};

Test(onednn_ops, functions)
{
    for (size_t i = 0; i < sizeof function / sizeof *function; i++)
        for (int d = 0; d < DTYPES; d++) {
            double tolerance = rounding(dtypes[d]);
            fixture f = fixture_new();
            adj_node *x = given_random(&f, dtypes[d], (adj_shape){3, {3, 5, 37}}, -20, 20);
            expect_node(&f, function[i](x), 1, 4 * tolerance, tolerance);
        }
    for (int d = 0; d < DTYPES; d++) {
        double tolerance = rounding(dtypes[d]);
        fixture f = fixture_new();
        adj_node *x = given_random(&f, dtypes[d], (adj_shape){2, {3, 37}}, -20, 20);
        adj_node *dy = given_random(&f, dtypes[d], (adj_shape){2, {3, 37}}, -1, 1);
        expect_node(&f, adj_silu_grad(dy, x), 1, 4 * tolerance, tolerance);
    }
}

/* A NaN stays one, and infinities give what naive gives. */
Test(onednn_ops, functions_of_extreme_values)
{
    static const double extreme[] = {NAN,   -INFINITY, INFINITY, -0.0, 0,         -100,     100,
                                     1e-40, -88,       3e38,     NAN,  -INFINITY, INFINITY, 1,
                                     -1,    NAN,       2,        -2,   1e-30,     -3e38};
    for (size_t i = 0; i < sizeof function / sizeof *function; i++) {
        fixture f = fixture_new();
        adj_node *x = given(&f, ADJ_F32, (adj_shape){2, {4, 5}}, extreme);
        expect_node(&f, function[i](x), 1, 4e-6, 1e-30);
    }
}

static adj_pool window(int k, int s, adj_padding padding)
{
    return (adj_pool){.ksize = {1, k, k, 1}, .stride = {1, s, s, 1}, .padding = padding};
}

/* Every order of four axes, and of two. For none at all, which no plan keeps, oneDNN may have its
 * generic code only. */
Test(onednn_ops, transpose)
{
    for (int code = 0; code < 256; code++)
        for (int d = 0; d < DTYPES; d++) {
            const int perm[] = {code >> 6, code >> 4 & 3, code >> 2 & 3, code & 3};
            const int is_moved = code != (0 << 6 | 1 << 4 | 2 << 2 | 3);
            if ((1 << perm[0] | 1 << perm[1] | 1 << perm[2] | 1 << perm[3]) != 15)
                continue;
            fixture f = fixture_new();
            adj_node *x = given_integers(&f, dtypes[d], (adj_shape){4, {2, 3, 17, 5}}, -99, 99);
            expect_node(&f, adj_transpose(x, 4, perm), is_moved, 0, 0);
        }
    fixture f = fixture_new();
    adj_node *x = given_integers(&f, ADJ_F32, (adj_shape){2, {130, 70}}, -99, 99);
    expect_node(&f, adj_transpose(x, 2, (const int[]){1, 0}), 1, 0, 0);
}

Test(onednn_ops, avg_pool_and_its_gradient)
{
    static const int cases[][3] = {
        {2, 2, ADJ_VALID}, {3, 2, ADJ_SAME}, {3, 1, ADJ_SAME}, {2, 3, ADJ_VALID}, {5, 5, ADJ_SAME}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int gradient = 0; gradient < 2; gradient++)
            for (int d = 0; d < DTYPES; d++) {
                adj_pool a = window(cases[i][0], cases[i][1], (adj_padding)cases[i][2]);
                adj_shape xs = {4, {2, 9, 8, 19}};
                double tolerance = rounding(dtypes[d]);
                fixture f = fixture_new();
                adj_node *x = given_random(&f, dtypes[d], xs, -1, 1);
                adj_node *y = adj_avg_pool(x, &a);
                cr_assert_not_null(y, "%s", adj_graph_message(f.g));
                if (gradient)
                    y = adj_avg_pool_grad(xs, given_random(&f, dtypes[d], y->type.shape, -1, 1),
                                          &a);
                expect_node(&f, y, 0, tolerance, tolerance);
            }
}

/* Where oneDNN's numbers are not ours, or there is nothing to compute. */
Test(onednn_ops, refusals)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_random(&f, ADJ_F32, (adj_shape){4, {1, 4, 4, 2}}, -1, 1);
    adj_pool nchw = {.ksize = {1, 1, 2, 2}, .stride = {1, 1, 2, 2}, .format = ADJ_NCHW};
    adj_node *wide = given_random(&f, ADJ_F64, (adj_shape){1, {4}}, 0, 1);
    adj_node *none = given_random(&f, ADJ_F32, (adj_shape){2, {3, 0}}, 0, 1);
    adj_node *other = given_random(&f, ADJ_F32, (adj_shape){2, {0, 2}}, 0, 1);
    const struct {
        const adj_node *y;
        const char *why;
    } cases[] = {{adj_avg_pool(x, &nchw), "NHWC"},
                 {adj_softmax(x), "NaN"},
                 {adj_sigmoid(wide), "f64"},
                 {adj_matmul(none, other, 0), "size"}};
    scoped(backend_close) test_backend onednn = backend_open("onednn");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_no_kernel(&f, &onednn, NULL, 1, &cases[i].y, cases[i].why);
}

/* ---- Winograd ---- */

/* ||y - want|| / ||want|| of y by oneDNN; *winograd: steps by a Winograd kernel. */
static double error_by(fixture *f, adj_node *y, adj_math math, const double *want, int *winograd)
{
    adj_exec_opts o = {.n_fetch = 1,
                       .fetch = &y,
                       .backend = "onednn",
                       .debug = &(adj_exec_debug){.impl = "jit_wino"},
                       .math = math};
    scoped(release_exec) adj_exec *e = fixture_run(f, &o);
    scoped(release) double *got = fixture_get(e, y);
    double error = 0, size = 0;
    for (int64_t i = 0; i < adj_shape_elems(y->type.shape); i++) {
        error += (got[i] - want[i]) * (got[i] - want[i]);
        size += want[i] * want[i];
    }
    *winograd = 0;
    for (int i = 0; i < adj_exec_step_count(e); i++)
        *winograd += strstr(adj_exec_step_at(e, i).impl, "jit_wino") != NULL;
    return sqrt(error / size);
}

/* True if oneDNN offers a Winograd kernel for y, which depends on its version and on the CPU. */
static int is_offered(fixture *f, const adj_node *y)
{
    scoped(backend_close) test_backend t = backend_open_math("onednn", 1, ADJ_MATH_FAST);
    int found = 0;
    for (int candidate = 0; !found; candidate++) {
        outcome o = run_candidate(f, &t, 1, &y, candidate);
        free(o.y);
        found = o.status == ADJ_OK && strstr(o.impl, "jit_wino") != NULL;
        if (o.status == ADJ_ENOKERNEL)
            break;
    }
    return found;
}

/* Returns the rounding error of sums in f32 with products of either sign: partial sums, and so
 * their rounding errors, grow like a random walk. Sequential summation has 0.56 times this error.
 */
static double error_of(double terms) { return ldexp(1, -25) * sqrt(terms); }

static void expect_direction(fixture *f, adj_node *y, double terms, int *offered, int *used)
{
    int in_exact, in_fast;
    scoped(release) double *want = evaluate(f, y, "naive");
    const double exact = error_by(f, y, ADJ_MATH_EXACT, want, &in_exact),
                 fast = error_by(f, y, ADJ_MATH_FAST, want, &in_fast);
    cr_assert_eq(in_exact, 0);
    cr_assert_lt(exact, error_of(terms), "%s: %g, not %g", y->op->name, exact, error_of(terms));
    cr_assert_lt(fast, 5e-6, "%s: %g", y->op->name, fast);
    *used += in_fast;
    *offered += is_offered(f, y);
}

Test(onednn_winograd, errors_are_small_and_opted_for, .init = plan_as_usual)
{
    static const oracle_conv rows[] = {{16, 16, 16, 64, 3, 3, 64, .padding = ADJ_SAME},
                                       {64, 8, 8, 128, 3, 3, 64, .padding = ADJ_SAME},
                                       {25, 13, 13, 64, 3, 3, 80, .padding = ADJ_SAME},
                                       {1, 16, 16, 64, 3, 3, 64, .padding = ADJ_SAME}};
    int used = 0, offered = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const oracle_conv *row = &rows[i];
        const double terms[] = {9.0 * row->c, 9.0 * row->last, (double)(row->n * row->h * row->w)};
        scoped(conv_problem_free) conv_problem p = conv_problem_new(*row, ADJ_F32, REALS);
        for (int d = ORACLE_Y; d <= ORACLE_DW; d++)
            expect_direction(&p.f, p.result[d], terms[d], &offered, &used);
    }
    cr_assert_eq(used, offered, "%d of %d by Winograd", used, offered);
    if (offered == 0)
        printf("[SKIP] this oneDNN has no Winograd kernel on this CPU: its errors are not seen\n");
}
