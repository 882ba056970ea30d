/* test_matmul.c - matrix products with every pair of transposes. */
#include "expect.h"
#include "tests/oracle.h"

typedef struct {
    int64_t m, k, n;
} sizes;

/* Around the kernel's tiles of 16 x 32 results and 64 products, and empty ones. */
static const sizes products[] = {{1, 1, 1},    {2, 3, 4},    {5, 1, 3},    {1, 7, 1},
                                 {16, 64, 32}, {17, 65, 33}, {33, 130, 2}, {2, 200, 40},
                                 {3, 0, 4},    {0, 3, 2},    {3, 2, 0},    {0, 0, 0}};
enum { N_PRODUCTS = sizeof products / sizeof *products, N_SMALL = 4 };

static adj_node *operand(fixture *f, adj_dtype dtype, int64_t rows, int64_t cols, int transpose)
{
    adj_shape shape = {2, {transpose ? cols : rows, transpose ? rows : cols}};
    return given_integers(f, dtype, shape, -2, 2);
}

static void check_product(const sizes *s, int ta, int tb, const precision *p)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *a = operand(&f, p->dtype, s->m, s->k, ta), *b = operand(&f, p->dtype, s->k, s->n, tb);
    scoped(release) double *want = oracle_matmul(s->m, s->k, s->n, f.value[0], ta, f.value[1], tb);
    expect_exact(&f, adj_matmul(a, b, (ta ? ADJ_TRANSPOSE_A : 0) | (tb ? ADJ_TRANSPOSE_B : 0)),
                 want); /* sums stay exact */
}

Test(matmul, every_size_against_three_loops)
{
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int i = 0; i < N_PRODUCTS; i++)
            for (int t = 0; t < 4; t++)
                check_product(&products[i], t & 1, t >> 1, &precisions[p]);
}

/* By hand. */
Test(matmul, literal_numbers)
{
    const double a[] = {1, 2, 3, 4, 5, 6}, b[] = {7, 8, 9, 10, 11, 12};
    const double want[4][9] = {{58, 64, 139, 154},                    /* [2,3] [3,2] */
                               {39, 49, 59, 54, 68, 82, 69, 87, 105}, /* [2,3]' [3,2]' */
                               {50, 68, 122, 167},                    /* [2,3] [2,3]' */
                               {47, 52, 57, 64, 71, 78, 81, 90, 99}}; /* [2,3]' [2,3] */
    for (int p = 0; p < N_PRECISIONS; p++) {
        adj_dtype dtype = precisions[p].dtype;
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given(&f, dtype, (adj_shape){2, {2, 3}}, a);
        adj_node *tall = given(&f, dtype, (adj_shape){2, {3, 2}}, b);
        adj_node *wide = given(&f, dtype, (adj_shape){2, {2, 3}}, b);
        expect_exact(&f, adj_matmul(x, tall, 0), want[0]);
        expect_exact(&f, adj_matmul(x, tall, ADJ_TRANSPOSE_A | ADJ_TRANSPOSE_B), want[1]);
        expect_exact(&f, adj_matmul(x, wide, ADJ_TRANSPOSE_B), want[2]);
        expect_exact(&f, adj_matmul(x, wide, ADJ_TRANSPOSE_A), want[3]);
    }
}

/* Linear in each operand. */
Test(matmul, adjoint_on_integers)
{
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int i = 0; i < N_PRODUCTS; i++)
            for (int t = 0; t < 4; t++) {
                const sizes *s = &products[i];
                if (s->k > 100) /* half sums stay exact */
                    continue;
                scoped(fixture_free) fixture f = fixture_new();
                adj_node *a = operand(&f, precisions[p].dtype, s->m, s->k, t & 1);
                adj_node *b = operand(&f, precisions[p].dtype, s->k, s->n, t >> 1);
                adj_node *other =
                    given_integers(&f, precisions[p].dtype, adj_node_type(a).shape, -2, 2);
                expect_adjoint(&f, adj_matmul(a, b, t), 1);
                expect_adjoint(&f, adj_matmul(other, b, t), 2); /* a is not in it */
            }
}

/* A matrix on both sides gets both gradients. */
Test(matmul, gradient_against_differences)
{
    for (int i = 0; i < N_SMALL; i++)
        for (int t = 0; t < 4; t++) {
            const sizes *s = &products[i];
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *a = operand(&f, ADJ_F64, s->m, s->k, t & 1);
            adj_node *b = operand(&f, ADJ_F64, s->k, s->n, t >> 1);
            adj_node *y = adj_matmul(a, b, t);
            adj_node *dy = given_random(&f, ADJ_F64, adj_node_type(y).shape, -1, 1);
            expect_gradient(&f, y, 0.5, 1e-10, 1e-10);
            expect_gradient(&f, gradient_of(y, dy, a), 0.5, 1e-10, 1e-10);
            expect_gradient(&f, gradient_of(y, dy, b), 0.5, 1e-10, 1e-10);
        }
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_random(&f, ADJ_F64, (adj_shape){2, {3, 3}}, -1, 1);
    expect_gradient(&f, adj_matmul(x, x, ADJ_TRANSPOSE_B), 1e-3, 1e-9, 1e-9);
}

static adj_node *product(const char *a, const char *b, int transposes)
{
    return adj_matmul(of_type(a), of_type(b), transposes);
}

Test(matmul, refusals)
{
    expect_refused(product("f32[2, 3]", "f32[1, 3, 2]", 0), ADJ_ESHAPE,
                   "matmul: b|[1, 3, 2]|rank 2");
    expect_refused(product("f32[3]", "f32[3, 2]", 0), ADJ_ESHAPE, "matmul: a|[3]");
    expect_refused(product("f32[2, 3]", "f32[3, 2]", ADJ_TRANSPOSE_B), ADJ_ESHAPE,
                   "inner|3 and 2|[3, 2] transposed");
    expect_refused(product("f32[2, 3]", "f64[3, 2]", 0), ADJ_EDTYPE, "matmul|f32|f64");
    expect_refused(product("f32[1073741824, 0]", "f32[0, 1073741824]", 0), ADJ_ESHAPE,
                   "matmul|too large");
    cr_assert_null(adj_matmul(NULL, NULL, 0));
}
