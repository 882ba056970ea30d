/* test_dropout.c - dropout's mask against the Philox of tests/oracle.h, its gradient, and its
 * independence of threads. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "harness.h"
#include "graph/op.h"
#include "tests/oracle.h"

static const adj_dtype dtypes[] = {ADJ_F32, ADJ_F64, ADJ_F16, ADJ_BF16};
enum { DTYPES = 4 };

static adj_node *step_of(fixture *f, int step)
{
    return given(f, ADJ_I32, (adj_shape){0}, (double[]){step});
}

/* Philox4x32-10's published answer for counter 0, key 0: 6627e8d5 e169c58d bc57ac4c 9b00dbd8. */
Test(dropout, numbers)
{
    const struct {
        double rate, want[4];
    } cases[] = {
        {0.5, {0, 4, 6, 8}},
        {0.75, {0, 8, 0, 0}},
        {0.625, {0, 2 / 0.375, 3 / 0.375, 0}},
        {0.375, {1 / 0.625, 2 / 0.625, 3 / 0.625, 4 / 0.625}},
        {0, {1, 2, 3, 4}},
    };
    for (int i = 0; i < 5 * DTYPES; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given(&f, dtypes[i % DTYPES], (adj_shape){1, {4}}, (double[]){1, 2, 3, 4});
        adj_node *y = adj_dropout(x, step_of(&f, 0), cases[i / DTYPES].rate, 0);
        expect_values(&f, y, "naive", cases[i / DTYPES].want,
                      dtypes[i % DTYPES] == ADJ_BF16 ? 4e-3 : 1e-3, 0);
    }
}

Test(dropout, reference)
{
    enum { N = 5003 };
    const uint64_t seeds[] = {1, 0xdeadbeefcafe1234u};
    for (int i = 0; i < 2 * DTYPES; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        double want[N], kept = 0;
        adj_node *x = given_integers(&f, dtypes[i / 2], (adj_shape){1, {N}}, 1, 8);
        adj_node *y = adj_dropout(x, step_of(&f, 1234567), 0.75, seeds[i % 2]);
        for (int k = 0; k < N; k++) {
            int keep = philox_word(k / 4, 1234567, seeds[i % 2], k % 4) >= 3u << 30;
            want[k] = keep ? 4 * f.value[0][k] : 0;
            kept += keep;
        }
        cr_assert_float_eq(kept / N, 0.25, 0.03);
        expect_exact(&f, y, want);
    }
}

/* Masks of elements from any number on, also within a block of four. */
Test(dropout, part)
{
    enum { N = 2000 };
    for (int64_t first = 0; first < 7000; first = first * 3 + 1) {
        scoped(fixture_free) fixture f = fixture_new();
        double want[N];
        adj_node *x = given_integers(&f, ADJ_F32, (adj_shape){1, {N}}, 1, 8);
        adj_node *step = step_of(&f, 5);
        const adj_dropout_attrs attrs = {.rate = 0.75, .seed = 9, .first = first};
        adj_node *y = adj_node_new2(&adj_op_dropout, x, step, &attrs);
        for (int64_t k = 0; k < N; k++) {
            const int64_t at = first + k;
            const int keep = philox_word((uint64_t)at / 4, 5, 9, at % 4) >= 3u << 30;
            want[k] = keep ? 4 * f.value[0][k] : 0;
        }
        expect_exact(&f, y, want);
    }
}

static double *with_threads(adj_node *y, int threads, int step)
{
    enum { N = 10000 };
    adj_graph *g = adj_node_graph(y);
    adj_exec_opts opts = {.n_fetch = 1, .fetch = &y, .backend = "naive", .threads = threads};
    int32_t value = step;
    double *got = malloc(N * sizeof *got);
    scoped(release_exec) adj_exec *e = plan_of(g, &opts);
    cr_assert_eq(adj_set(e, adj_find(g, "step"), &value, sizeof value), ADJ_OK);
    cr_assert_eq(adj_run(e), ADJ_OK);
    cr_assert_eq(adj_get(e, y, got, N * sizeof *got), ADJ_OK);
    return got;
}

static int differences(const double *a, const double *b)
{
    int n = 0;
    for (int i = 0; i < 10000; i++)
        n += a[i] != b[i];
    return n;
}

/* The mask is that of (step, seed), and nothing else. */
Test(dropout, resumable)
{
    scoped(release_graph) adj_graph *g = adj_graph_new();
    adj_node *x = adj_fill(g, ADJ_F64, (adj_shape){2, {100, 100}}, 1);
    adj_node *step = adj_input(g, "step", ADJ_I32, (adj_shape){0});
    adj_node *y = adj_dropout(x, step, 0.5, 3), *other = adj_dropout(x, step, 0.5, 4);
    double *one = with_threads(y, 1, 7), *three = with_threads(y, 3, 7);
    double *next = with_threads(y, 1, 8), *seed = with_threads(other, 1, 7);
    cr_assert_eq(differences(one, three), 0);
    cr_assert_float_eq(differences(one, next), 5000, 300);
    cr_assert_float_eq(differences(one, seed), 5000, 300);
    free(one), free(three), free(next), free(seed);
}

/* Linear and its own adjoint: <d, dropout(x)> == <dropout(d), x>. */
Test(dropout, adjoint)
{
    for (int i = 0; i < DTYPES; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_shape s = {2, {9, 7}};
        double left = 0, right = 0;
        adj_node *x = given_integers(&f, dtypes[i], s, -9, 9),
                 *d = given_integers(&f, dtypes[i], s, -9, 9);
        adj_node *y = adj_dropout(x, step_of(&f, 5), 0.5, 6), *dx;
        dx = gradient_of(y, d, x);
        scoped(release) double *a = evaluate(&f, y, "naive"), *b = evaluate(&f, dx, "naive");
        for (int k = 0; k < 63; k++)
            left += a[k] * f.value[1][k], right += b[k] * f.value[0][k];
        cr_assert_eq(left, right, "%g and %g", left, right);
    }
}

Test(dropout, gradients)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_random(&f, ADJ_F64, (adj_shape){2, {3, 7}}, -1, 1);
    adj_node *y = adj_dropout(x, step_of(&f, -1), 0.3, 11);
    expect_gradient(&f, y, 0.5, 1e-12, 1e-12);
    fixture_renew(&f); /* of x * dropout(x): the mask is the same in both */
    x = given_random(&f, ADJ_F64, (adj_shape){2, {3, 7}}, -1, 1);
    expect_gradient(&f, adj_mul(x, adj_dropout(x, step_of(&f, 2), 0.3, 11)), 1e-4, 1e-8, 1e-10);
}

/* A dropped NaN is gone. */
Test(dropout, nan)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given(&f, ADJ_F32, (adj_shape){1, {2}}, (double[]){NAN, NAN});
    expect_exact(&f, adj_dropout(x, step_of(&f, 0), 0.5, 0), (double[]){0, NAN});
}

Test(dropout, refused)
{
    const char *const words[][3] = {{"rate", "got 1"}, {"rate", "-0.1"},   {"rate", "nan"},
                                    {"step", "i32"},   {"step", "scalar"}, {"x", "i32"}};
    const adj_status status[] = {ADJ_EARG, ADJ_EARG, ADJ_EARG, ADJ_EDTYPE, ADJ_ESHAPE, ADJ_EDTYPE};
    for (int i = 0; i < 6; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = adj_input(f.g, "x", ADJ_F32, (adj_shape){1, {4}});
        adj_node *step = adj_input(f.g, "step", ADJ_I32, (adj_shape){0});
        adj_node *steps = adj_input(f.g, "steps", ADJ_I32, (adj_shape){1, {4}});
        adj_node *y = x;
        switch (i) {
        case 0: y = adj_dropout(x, step, 1, 0); break;
        case 1: y = adj_dropout(x, step, -0.1, 0); break;
        case 2: y = adj_dropout(x, step, NAN, 0); break;
        case 3: y = adj_dropout(x, x, 0.5, 0); break;
        case 4: y = adj_dropout(x, steps, 0.5, 0); break;
        default: y = adj_dropout(steps, step, 0.5, 0); break;
        }
        cr_assert_null(y, "case %d", i);
        expect_error(f.g, status[i], words[i]);
    }
    cr_assert_null(adj_dropout(NULL, NULL, 0.5, 0));
}
