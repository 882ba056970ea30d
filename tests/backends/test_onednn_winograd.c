/* test_onednn_winograd.c - oneDNN's Winograd kernel: only with math fast, only in f32, and its
 * errors. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/backends/candidates.h"

enum { DIRECTIONS = 3 };

typedef struct {
    double *value;
    int winograd; /* steps that used it */
} result;

static result evaluate_with(fixture *f, adj_node *y, const char *backend, adj_math math)
{
    adj_exec_opts o = {
        .n_fetch = 1, .fetch = &y, .backend = backend, .debug.impl = "jit_wino", .math = math};
    adj_exec *e = NULL;
    int64_t n = adj_shape_elems(adj_node_type(y).shape);
    result r = {malloc((size_t)n * sizeof(double)), 0};
    float *data = malloc((size_t)n * sizeof *data);

    cr_assert_eq(adj_exec_new(f->g, &o, &e), ADJ_OK, "%s", adj_exec_message(e));
    for (int i = 0; i < f->n_in; i++) {
        int64_t m = adj_shape_elems(adj_node_type(f->in[i]).shape);
        float *x = malloc((size_t)m * sizeof *x);
        for (int64_t k = 0; k < m; k++)
            x[k] = (float)f->value[i][k];
        adj_set(e, f->in[i], x, (size_t)m * sizeof *x);
        free(x);
    }
    cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    adj_get(e, y, data, (size_t)n * sizeof *data);
    for (int64_t i = 0; i < n; i++)
        r.value[i] = (double)data[i];
    for (int i = 0; i < adj_exec_step_count(e); i++)
        r.winograd += strstr(adj_exec_step_at(e, i).impl, "jit_wino") != NULL;
    free(data);
    adj_exec_free(e);
    return r;
}

/* ||a - b|| / ||b|| */
static double distance(const double *a, const double *b, int64_t n)
{
    double error = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        error += (a[i] - b[i]) * (a[i] - b[i]);
        size += b[i] * b[i];
    }
    return sqrt(error / size);
}

static void build(fixture *f, const int64_t row[4], adj_node *y[DIRECTIONS])
{
    const int64_t n = row[0], size = row[1], ic = row[2], oc = row[3];
    const adj_conv same = {.padding = ADJ_SAME};
    const adj_shape image = {4, {n, size, size, ic}}, filter = {4, {3, 3, ic, oc}};
    const adj_shape result = {4, {n, size, size, oc}};
    adj_node *x = given_random(f, ADJ_F32, image, -1, 1),
             *w = given_random(f, ADJ_F32, filter, -1, 1);
    adj_node *dy = given_random(f, ADJ_F32, result, -1, 1);
    y[0] = adj_conv2d(x, w, &same);
    y[1] = adj_conv2d_backprop_input(image, w, dy, &same);
    y[2] = adj_conv2d_backprop_filter(x, filter, dy, &same);
}

/* Of what oneDNN offers for y, is there a Winograd kernel? That depends on its version and on the
 * CPU. */
static int is_offered(fixture *f, const adj_node *y)
{
    test_backend t = backend_open_math("onednn", 1, ADJ_MATH_FAST);
    int found = 0;
    for (int candidate = 0; !found; candidate++) {
        outcome o = run_candidate(f, &t, 1, &y, candidate);
        free(o.y);
        found = o.status == ADJ_OK && strstr(o.impl, "jit_wino") != NULL;
        if (o.status == ADJ_ENOKERNEL)
            break;
    }
    backend_close(&t);
    return found;
}

/* Of sums in f32, with products of either sign: partial sums grow as a random walk does, and so do
 * their roundings. One after the other, the longest way, gives 0.56 times this. */
static double rounding(double terms) { return ldexp(1, -25) * sqrt(terms); }

static void expect_direction(fixture *f, adj_node *y, double terms, int *offered, int *used)
{
    int64_t n = adj_shape_elems(adj_node_type(y).shape);
    result want = evaluate_with(f, y, "naive", ADJ_MATH_EXACT);
    result exact = evaluate_with(f, y, "onednn", ADJ_MATH_EXACT);
    result fast = evaluate_with(f, y, "onednn", ADJ_MATH_FAST);
    const char *op = y->op->name;
    cr_assert_eq(exact.winograd, 0);
    cr_assert_lt(distance(exact.value, want.value, n), rounding(terms), "%s: %g, not %g", op,
                 distance(exact.value, want.value, n), rounding(terms));
    cr_assert_lt(distance(fast.value, want.value, n), 5e-6, "%s: %g", op,
                 distance(fast.value, want.value, n));
    *used += fast.winograd;
    *offered += is_offered(f, y);
    free(want.value);
    free(exact.value);
    free(fast.value);
}

/* That kernel is to be taken, be it the fastest or not: no other plans, whatever all tests are run
 * with. */
static void plan_as_usual(void) { unsetenv("ADJOINT_PLAN"); }

Test(onednn_winograd, errors_are_small_and_opted_for, .init = plan_as_usual)
{
    static const int64_t cases[][4] = {/* images, size, channels */
                                       {16, 16, 64, 64},
                                       {64, 8, 128, 64},
                                       {25, 13, 64, 80},
                                       {1, 16, 64, 64}};
    int used = 0, offered = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t *row = cases[i];
        const double terms[] = {9.0 * (double)row[2], 9.0 * (double)row[3],
                                (double)(row[0] * row[1] * row[1])};
        fixture f = fixture_new();
        adj_node *y[DIRECTIONS];
        build(&f, row, y);
        for (int d = 0; d < DIRECTIONS; d++)
            expect_direction(&f, y[d], terms[d], &offered, &used);
        fixture_free(&f);
    }
    cr_assert_eq(used, offered, "%d of %d by Winograd", used, offered);
    if (offered == 0)
        printf("[SKIP] this oneDNN has no Winograd kernel on this CPU: its errors are not seen\n");
}

/* An option that is neither is an error, not a guess. */
Test(onednn_winograd, unknown_math)
{
    adj_graph *g = adj_graph_new();
    adj_node *y = adj_fill(g, ADJ_F32, (adj_shape){0}, 1);
    adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .math = (adj_math)7};
    adj_exec *e = NULL;
    cr_assert_eq(adj_exec_new(g, &o, &e), ADJ_EARG);
    cr_assert_not_null(strstr(adj_exec_message(e), "math is wrong (got 7"));
    adj_exec_free(e);
    adj_graph_free(g);
}
