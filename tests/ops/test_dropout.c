/* test_dropout.c - dropout's mask against the Philox of tests/oracle.h, and its gradient. */
#include <math.h>

#include "expect.h"
#include "graph/op.h"
#include "tests/oracle.h"

static adj_node *step_of(fixture *f, int step) { return scalar(f, ADJ_I32, step); }

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
    for (int i = 0; i < 5 * N_PRECISIONS; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x =
            given(&f, dtypes[i % N_PRECISIONS], (adj_shape){1, {4}}, (double[]){1, 2, 3, 4});
        adj_node *y = adj_dropout(x, step_of(&f, 0), cases[i / N_PRECISIONS].rate, 0);
        expect_values(&f, y, "naive", cases[i / N_PRECISIONS].want,
                      dtypes[i % N_PRECISIONS] == ADJ_BF16 ? 4e-3 : 1e-3, 0);
    }
}

/* A mask is that of step, seed and the elements' numbers, from any on, also within a block of four.
 */
Test(dropout, reference)
{
    enum { N = 5003 };
    for (int64_t first = 0; first < 7000; first = first * 3 + 1)
        for (int i = 0; i < N_PRECISIONS; i++) {
            const int step = i < 2 ? 1234567 : -5;
            const adj_dropout_attrs a = {
                .rate = 0.75, .seed = i % 2 ? 9 : 0xdeadbeefcafe1234u, .first = first};
            double want[N], kept = 0;
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *x = given_integers(&f, dtypes[i], (adj_shape){1, {N}}, 1, 8);
            adj_node *y = adj_node_new2(&adj_op_dropout, x, step_of(&f, step), &a);
            for (int k = 0; k < N; k++) {
                want[k] = dropped_out(f.value[0][k], &a, step, k);
                kept += want[k] > 0;
            }
            cr_assert_float_eq(kept / N, 0.25, 0.03);
            expect_exact(&f, y, want);
        }
}

/* Linear and its own adjoint. */
Test(dropout, adjoint)
{
    for (int i = 0; i < N_PRECISIONS; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given_integers(&f, dtypes[i], (adj_shape){2, {9, 7}}, -9, 9);
        expect_adjoint(&f, adj_dropout(x, step_of(&f, 5), 0.5, 6), 1);
    }
}

/* Gradients of dropout and of x times it, in which the mask is the same. */
Test(dropout, gradients)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_random(&f, ADJ_F64, (adj_shape){2, {3, 7}}, -1, 1);
    expect_gradient(&f, adj_dropout(x, step_of(&f, -1), 0.3, 11), 0.5, 1e-12, 1e-12);
    expect_gradient(&f, adj_mul(x, adj_dropout(x, step_of(&f, 2), 0.3, 11)), 1e-4, 1e-8, 1e-10);
}

/* A dropped NaN is gone. */
Test(dropout, nan)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given(&f, ADJ_F32, (adj_shape){1, {2}}, (double[]){NAN, NAN});
    expect_exact(&f, adj_dropout(x, step_of(&f, 0), 0.5, 0), (double[]){0, NAN});
}

static adj_node *dropped(const char *x, const char *step, double rate)
{
    return adj_dropout(of_type(x), of_type(step), rate, 0);
}

Test(dropout, refused)
{
    expect_refused(dropped("f32[4]", "i32[]", 1), ADJ_EARG, "rate|got 1");
    expect_refused(dropped("f32[4]", "i32[]", -0.1), ADJ_EARG, "rate|-0.1");
    expect_refused(dropped("f32[4]", "i32[]", NAN), ADJ_EARG, "rate|nan");
    expect_refused(dropped("f32[4]", "f32[4]", 0.5), ADJ_EDTYPE, "step|i32");
    expect_refused(dropped("f32[4]", "i32[4]", 0.5), ADJ_ESHAPE, "step|scalar");
    expect_refused(dropped("i32[4]", "i32[]", 0.5), ADJ_EDTYPE, "x|i32");
    cr_assert_null(adj_dropout(NULL, NULL, 0.5, 0));
}
