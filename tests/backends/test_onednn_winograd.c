/* test_onednn_winograd.c - oneDNN's Winograd kernel: only with math fast, only in f32, and its
 * errors. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/report.h"
#include "tests/backends/candidates.h"
#include "tests/conv_problem.h"

typedef struct {
    double *value;
    int winograd; /* steps that used it */
} result;

static result run_math(fixture *f, adj_node *y, const char *backend, adj_math math)
{
    adj_exec_opts o = {.n_fetch = 1,
                       .fetch = &y,
                       .backend = backend,
                       .debug = &(adj_exec_debug){.impl = "jit_wino"},
                       .math = math};
    scoped(release_exec) adj_exec *e = plan_of(f->g, &o);
    fixture_set(f, e);
    cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e));
    result r = {fixture_get(e, y), 0};
    for (int i = 0; i < adj_exec_step_count(e); i++)
        r.winograd += strstr(adj_exec_step_at(e, i).impl, "jit_wino") != NULL;
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
static double rounding(double terms) { return ldexp(1, -25) * sqrt(terms); }

static void expect_direction(fixture *f, adj_node *y, double terms, int *offered, int *used)
{
    int64_t n = adj_shape_elems(adj_node_type(y).shape);
    result want = run_math(f, y, "naive", ADJ_MATH_EXACT);
    result exact = run_math(f, y, "onednn", ADJ_MATH_EXACT);
    result fast = run_math(f, y, "onednn", ADJ_MATH_FAST);
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

/* An option that is neither is an error, not a guess. */
Test(onednn_winograd, unknown_math)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *y = adj_fill(g, ADJ_F32, (adj_shape){0}, 1);
    adj_exec_opts o = {.n_fetch = 1, .fetch = &y, .math = (adj_math)7};
    scoped(release_exec) adj_exec *e = NULL;
    cr_assert_eq(adj_exec_new(g, &o, &e), ADJ_EARG);
    cr_assert_not_null(strstr(adj_exec_message(e), "math is wrong (got 7"));
}
