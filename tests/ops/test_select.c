/* test_select.c - one of two values by a scalar, on every backend that has a kernel of it. */
#include <math.h>

#include "expect.h"

static const char *const backends[] = {"naive", "onednn"};
enum { BACKENDS = 2 };

/* Values of cond with C's v != 0; the smallest f16 is not 0 either. */
static const struct {
    double cond;
    int is_a;
} conditions[] = {{1, 1},   {0, 0},        {-0.0, 0},    {-3, 1},
                  {NAN, 1}, {INFINITY, 1}, {0x1p-24, 1}, {-0x1p-24, 1}};
enum { CONDITIONS = sizeof conditions / sizeof *conditions };

/* Bit by bit: NaNs, infinities and the sign of 0 are copied, and harm nothing where they are not
 * chosen. */
Test(select, literal_numbers)
{
    const double a[] = {1, -0.0, NAN, 7}, b[] = {-2, 0.0, 3, INFINITY};
    for (int k = 0; k < BACKENDS; k++)
        for (int c = 0; c < N_PRECISIONS; c++)
            for (int d = 0; d < N_PRECISIONS; d++)
                for (int i = 0; i < CONDITIONS; i++) {
                    scoped(fixture_free) fixture f = fixture_new();
                    adj_node *cond = scalar(&f, dtypes[c], conditions[i].cond);
                    adj_node *x = given(&f, dtypes[d], (adj_shape){2, {2, 2}}, a);
                    adj_node *y = given(&f, dtypes[d], (adj_shape){2, {2, 2}}, b);
                    scoped(release) double *got = evaluate(&f, adj_select(cond, x, y), backends[k]);
                    expect_same_bits(got, conditions[i].is_a ? a : b, 4, backends[k]);
                }
}

/* Scalars, integers, nothing at all, and enough for several threads. */
Test(select, shapes)
{
    static const adj_shape shapes[] = {{0},         {1, {1}},          {1, {0}},
                                       {2, {3, 0}}, {4, {1, 5, 1, 7}}, {1, {100003}}};
    for (int k = 0; k < BACKENDS; k++)
        for (int d = 0; d < N_DTYPES; d++)
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
                for (int is_a = 0; is_a < 2; is_a++) {
                    scoped(fixture_free) fixture f = fixture_new();
                    adj_node *cond = scalar(&f, ADJ_F32, is_a);
                    adj_node *a = given_integers(&f, dtypes[d], shapes[s], -9, 9);
                    adj_node *b = given_integers(&f, dtypes[d], shapes[s], -9, 9);
                    expect_values(&f, adj_select(cond, a, b), backends[k], f.value[is_a ? 1 : 2], 0,
                                  0);
                }
}

Test(select, same_and_known)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *a = given_integers(&f, ADJ_F32, (adj_shape){1, {4}}, -9, 9);
    adj_node *b = given_integers(&f, ADJ_F32, (adj_shape){1, {4}}, -9, 9);
    adj_node *yes = adj_fill(f.g, ADJ_F32, (adj_shape){0}, 2);
    adj_node *no = adj_fill(f.g, ADJ_F64, (adj_shape){0}, 0);
    expect_exact(&f, adj_select(yes, a, b), f.value[0]);
    expect_exact(&f, adj_select(no, a, b), f.value[1]);
    expect_exact(&f, adj_select(scalar(&f, ADJ_F32, 0), a, a), f.value[0]);
}

/* select(c, a, b) is linear in a and b together; dy goes whole to the one, zeros to the other. */
Test(select, gradients)
{
    const double dy[] = {1, NAN, -3}, zero[] = {0, 0, 0};
    for (int d = 0; d < N_PRECISIONS; d++)
        for (int is_a = 0; is_a < 2; is_a++) {
            scoped(fixture_free) fixture f = fixture_new();
            const adj_shape s = {1, {3}};
            adj_node *x[] = {given_integers(&f, dtypes[d], s, -9, 9),
                             given_integers(&f, dtypes[d], s, -9, 9)};
            adj_node *y = adj_select(scalar(&f, dtypes[d], is_a), x[0], x[1]), *dx[2];
            cr_assert_eq(adj_grad(y, given(&f, dtypes[d], s, dy), 2, x, dx), ADJ_OK);
            expect_exact(&f, dx[0], is_a ? dy : zero);
            expect_exact(&f, dx[1], is_a ? zero : dy);
            expect_adjoint(&f, y, 2);
        }
}

Test(select, gradient_against_differences)
{
    for (int is_a = 0; is_a < 2; is_a++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *a = given_random(&f, ADJ_F64, (adj_shape){2, {2, 3}}, -1, 1);
        adj_node *b = given_random(&f, ADJ_F64, (adj_shape){2, {2, 3}}, -1, 1);
        adj_node *cond = adj_fill(f.g, ADJ_F64, (adj_shape){0}, is_a);
        adj_node *y = adj_mul(adj_select(adj_square(cond), a, adj_mul(a, b)), b);
        expect_gradient(&f, y, 1e-3, 1e-8, 1e-8);
    }
}

static adj_node *selected(const char *cond, const char *a, const char *b)
{
    return adj_select(of_type(cond), of_type(a), of_type(b));
}

Test(select, refusals)
{
    expect_refused(selected("f32[4]", "f32[4]", "f32[4]"), ADJ_ESHAPE, "select: cond|[4]|scalar");
    expect_refused(selected("i32[]", "f32[4]", "f32[4]"), ADJ_EDTYPE,
                   "select: cond is not a float|i32");
    expect_refused(selected("f32[]", "f32[4]", "f32[3]"), ADJ_ESHAPE, "select: b|[3]|[4]");
    expect_refused(selected("f32[]", "f32[4]", "f16[4]"), ADJ_EDTYPE, "select: b|f16|f32");
    cr_assert_null(adj_select(NULL, NULL, NULL));
}
