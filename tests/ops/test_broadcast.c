/* test_broadcast.c - broadcast_to and its adjoint adj_sum_to. */

#include "expect.h"
#include "graph/op.h"

static const adj_dtype dtypes[] = {ADJ_F64, ADJ_F32, ADJ_F16, ADJ_BF16, ADJ_I32};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

typedef struct {
    adj_shape x, y;
} broadcast;

static const broadcast broadcasts[] = {
    {{0}, {0}},
    {{0}, {2, {2, 3}}},
    {{1, {3}}, {1, {3}}},
    {{1, {1}}, {1, {4}}},
    {{1, {3}}, {2, {1, 3}}},
    {{1, {3}}, {2, {2, 3}}},
    {{2, {2, 1}}, {2, {2, 3}}},
    {{2, {1, 3}}, {2, {2, 3}}},
    {{3, {2, 1, 3}}, {3, {2, 4, 3}}},
    {{2, {4, 1}}, {4, {2, 3, 4, 2}}},
    {{2, {1, 1}}, {3, {1, 1, 1}}},
    {{6, {1, 2, 1, 2, 1, 2}}, {6, {2, 2, 2, 2, 2, 2}}},
    {{1, {0}}, {2, {3, 0}}},
    {{2, {1, 3}}, {2, {0, 3}}},
    {{1, {1}}, {1, {0}}},
    {{2, {300, 1}}, {2, {300, 200}}},
    {{1, {50}}, {3, {40, 30, 50}}},
};
enum { N_BROADCASTS = sizeof broadcasts / sizeof *broadcasts, N_SMALL = 15, N_FULL = 12 };

static void check_broadcast(const broadcast *b, adj_dtype dtype)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *y = adj_broadcast_to(given_integers(&f, dtype, b->x, -9, 9), b->y);
    cr_assert_not_null(y, "%s", adj_graph_message(f.g));
    int64_t n = elems_of(y);
    scoped(release) double *want = malloc((size_t)n * sizeof *want + 1);
    for (int64_t i = 0; i < n; i++) {
        adj_shape from = unravel(i, b->y), at = {.rank = b->x.rank};
        for (int64_t d = 0; d < b->x.rank; d++)
            at.dim[d] = b->x.dim[d] == 1 ? 0 : from.dim[b->y.rank - b->x.rank + d];
        want[i] = f.value[0][ravel(at, b->x)];
    }
    expect_values(&f, y, "naive", want, 0, 0);
}

Test(broadcast, every_shape_against_index_arithmetic)
{
    for (int d = 0; d < N_DTYPES; d++)
        for (int i = 0; i < N_BROADCASTS; i++)
            check_broadcast(&broadcasts[i], dtypes[d]);
}

/* By hand. */
Test(broadcast, literal_numbers)
{
    const double x[] = {1, 2}, y[] = {1, 2, 3, 4, 5, 6};
    for (int d = 0; d < N_DTYPES; d++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *column = given(&f, dtypes[d], (adj_shape){2, {2, 1}}, x);
        expect_values(&f, adj_broadcast_to(column, (adj_shape){2, {2, 3}}), "naive",
                      (double[]){1, 1, 1, 2, 2, 2}, 0, 0);
        if (dtypes[d] != ADJ_I32) {
            adj_node *v = given(&f, dtypes[d], (adj_shape){2, {2, 3}}, y);
            expect_values(&f, adj_sum_to(v, (adj_shape){2, {2, 1}}), "naive", (double[]){6, 15}, 0,
                          0);
            expect_values(&f, adj_sum_to(v, (adj_shape){1, {3}}), "naive", (double[]){5, 7, 9}, 0,
                          0);
            expect_values(&f, adj_sum_to(v, (adj_shape){0}), "naive", (double[]){21}, 0, 0);
        }
    }
}

Test(broadcast, adjoint_on_integers)
{
    for (int d = 0; d < 4; d++)
        for (int i = 0; i < N_SMALL; i++) {
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *x = given_integers(&f, dtypes[d], broadcasts[i].x, -2, 2);
            expect_adjoint(&f, adj_broadcast_to(x, broadcasts[i].y), 1);
            fixture_free(&f);
            f = fixture_new();
            x = given_integers(&f, dtypes[d], broadcasts[i].y, -2, 2);
            expect_adjoint(&f, adj_sum_to(x, broadcasts[i].x), 1);
        }
}

Test(broadcast, gradient_against_differences)
{
    for (int i = 0; i < N_FULL; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given_random(&f, ADJ_F64, broadcasts[i].x, -1, 1);
        adj_node *y = adj_broadcast_to(x, broadcasts[i].y);
        expect_gradient(&f, y, "naive", 0.5, 1e-12, 1e-12);
        expect_gradient(&f, adj_square(y), "naive", 1e-3, 1e-9, 1e-9);
    }
}

/* A repeated fill is a fill. */
Test(broadcast, simplified)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *fill = adj_fill(f.g, ADJ_F16, (adj_shape){1, {1}}, -2);
    adj_node *ones = adj_fill(f.g, ADJ_F16, (adj_shape){2, {2, 1}}, 1);
    adj_node *y = adj_mul(adj_broadcast_to(fill, (adj_shape){2, {1, 2}}), ones);
    expect_values(&f, y, "naive", (double[]){-2, -2, -2, -2}, 0, 0);
}

static adj_node *six(fixture *f) { return given_random(f, ADJ_F32, (adj_shape){2, {2, 3}}, 0, 1); }
static adj_node *negative(fixture *f)
{
    return adj_broadcast_to(six(f), (adj_shape){3, {-1, 2, 3}});
}

Test(broadcast, refusals)
{
    scoped(fixture_free) fixture f = fixture_new();
    expect_refusal(&f, adj_broadcast_to(six(&f), (adj_shape){2, {4, 3}}), ADJ_ESHAPE,
                   "broadcast_to: input", "[2, 3]", "[4, 3]", NULL);
    expect_refusal(&f, adj_broadcast_to(six(&f), (adj_shape){1, {3}}), ADJ_ESHAPE,
                   "broadcast_to: input", "[2, 3]", "[3]", NULL);
    expect_refusal(&f, negative(&f), ADJ_ESHAPE, "broadcast_to: shape", "negative", NULL);
    expect_refusal(&f, adj_broadcast_to(six(&f), (adj_shape){.rank = 7}), ADJ_ESHAPE,
                   "broadcast_to: shape", "rank", NULL);
    expect_refusal(&f, adj_broadcast_to(six(&f), (adj_shape){4, {1 << 30, 1 << 30, 2, 3}}),
                   ADJ_ESHAPE, "broadcast_to: shape", "too large", NULL);
    cr_assert_null(adj_broadcast_to(NULL, (adj_shape){0}));
    cr_assert_null(adj_sum_to(NULL, (adj_shape){0}));
}
