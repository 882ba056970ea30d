/* test_reshape.c - reshape, transpose, broadcast_to and its adjoint adj_sum_to, in every dtype. */
#include "expect.h"
#include "graph/op.h"

typedef struct {
    adj_shape x;
    int perm[ADJ_MAX_RANK];
} permutation;

static const permutation permutations[] = {
    {{0}, {0}},
    {{1, {4}}, {0}},
    {{2, {3, 4}}, {1, 0}},
    {{2, {3, 4}}, {0, 1}},
    {{3, {2, 3, 4}}, {2, 0, 1}},
    {{3, {2, 3, 4}}, {0, 2, 1}},
    {{3, {2, 1, 4}}, {1, 2, 0}},
    {{4, {2, 3, 4, 5}}, {0, 3, 1, 2}},
    {{4, {2, 5, 3, 4}}, {0, 2, 3, 1}},
    {{5, {2, 3, 1, 2, 2}}, {4, 3, 2, 1, 0}},
    {{6, {2, 1, 2, 3, 1, 2}}, {5, 0, 3, 1, 4, 2}},
    {{3, {2, 0, 4}}, {1, 2, 0}},
    {{4, {2, 40, 30, 17}}, {0, 3, 1, 2}},
};
enum { N_PERMUTATIONS = sizeof permutations / sizeof *permutations, N_SMALL = 12 };

/* y has x's elements, input 0's, with its axis perm[d] at d. */
static void expect_permuted(fixture *f, adj_node *y, adj_shape x, const int perm[])
{
    cr_assert_not_null(y, "%s", adj_graph_message(f->g));
    int64_t n = elems_of(y);
    scoped(release) double *want = malloc((size_t)n * sizeof *want + 1);
    for (int64_t i = 0; i < n; i++) {
        adj_shape to = unravel(i, adj_node_type(y).shape), from = {.rank = x.rank};
        for (int d = 0; d < x.rank; d++)
            from.dim[perm[d]] = to.dim[d];
        want[i] = f->value[0][ravel(from, x)];
    }
    expect_exact(f, y, want);
}

static void check_permutation(const permutation *p, adj_dtype dtype)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_integers(&f, dtype, p->x, -100, 100);
    expect_permuted(&f, adj_transpose(x, (int)p->x.rank, p->perm), p->x, p->perm);
}

Test(reshape, every_permutation_against_index_arithmetic)
{
    for (int d = 0; d < N_DTYPES; d++)
        for (int i = 0; i < N_PERMUTATIONS; i++)
            check_permutation(&permutations[i], dtypes[d]);
}

/* By hand. */
Test(reshape, literal_numbers)
{
    const double x[] = {1, 2, 3, 4, 5, 6}, transposed[] = {1, 4, 2, 5, 3, 6};
    for (int d = 0; d < N_DTYPES; d++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *v = given(&f, dtypes[d], (adj_shape){2, {2, 3}}, x);
        expect_exact(&f, adj_transpose(v, 2, (int[]){1, 0}), transposed);
        expect_exact(&f, adj_reshape(v, (adj_shape){3, {3, 1, 2}}), x);
    }
}

typedef struct {
    adj_shape x, asked, y;
} reshaping;

static const reshaping reshapings[] = {
    {{2, {2, 3}}, {1, {6}}, {1, {6}}},
    {{2, {2, 3}}, {1, {-1}}, {1, {6}}},
    {{2, {2, 6}}, {3, {3, -1, 2}}, {3, {3, 2, 2}}},
    {{2, {2, 3}}, {2, {2, 3}}, {2, {2, 3}}},
    {{0}, {2, {1, 1}}, {2, {1, 1}}},
    {{1, {1}}, {0}, {0}},
    {{2, {0, 3}}, {2, {-1, 3}}, {2, {0, 3}}},
    {{2, {0, 3}}, {3, {5, 0, 7}}, {3, {5, 0, 7}}},
    {{1, {64}}, {6, {2, 2, 2, 2, 2, -1}}, {6, {2, 2, 2, 2, 2, 2}}},
    {{2, {2, 3}}, {1, {6, 99, -7}}, {1, {6}}}, /* sizes past the rank do not count */
};
enum { N_RESHAPINGS = sizeof reshapings / sizeof *reshapings };

Test(reshape, every_shape_keeps_the_order)
{
    for (int d = 0; d < N_DTYPES; d++)
        for (int i = 0; i < N_RESHAPINGS; i++) {
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *y = adj_reshape(given_integers(&f, dtypes[d], reshapings[i].x, -9, 9),
                                      reshapings[i].asked);
            expect_shape(&f, y, reshapings[i].y);
            cr_assert_eq(y, adj_reshape(f.in[0], reshapings[i].y)); /* the same node */
            expect_exact(&f, y, f.value[0]);
        }
}

Test(reshape, adjoint_on_integers)
{
    for (int d = 0; d < 4; d++) {
        for (int i = 0; i < N_SMALL; i++) {
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *x = given_integers(&f, dtypes[d], permutations[i].x, -3, 3);
            expect_adjoint(&f, adj_transpose(x, (int)permutations[i].x.rank, permutations[i].perm),
                           1);
        }
        for (int i = 0; i < N_RESHAPINGS; i++) {
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *x = given_integers(&f, dtypes[d], reshapings[i].x, -3, 3);
            expect_adjoint(&f, adj_reshape(x, reshapings[i].asked), 1);
        }
    }
}

/* All but the empty one: beside a 0, a -1 has no value. */
Test(reshape, gradient_against_differences)
{
    for (int i = 0; i < N_SMALL - 1; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given_random(&f, ADJ_F64, permutations[i].x, -1, 1);
        expect_gradient(&f, adj_transpose(x, (int)permutations[i].x.rank, permutations[i].perm),
                        0.5, 1e-12, 1e-12);
        expect_gradient(&f, adj_reshape(adj_square(x), (adj_shape){2, {1, -1}}), 1e-3, 1e-9, 1e-9);
    }
}

/* Rewriting chains and constants must not change values. */
Test(reshape, simplified)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_integers(&f, ADJ_F32, (adj_shape){2, {2, 6}}, -9, 9);
    adj_node *chain =
        adj_reshape(adj_reshape(adj_reshape(x, (adj_shape){1, {12}}), (adj_shape){2, {3, 4}}),
                    (adj_shape){2, {2, 6}});
    expect_exact(&f, adj_transpose(adj_transpose(chain, 2, (int[]){1, 0}), 2, (int[]){1, 0}),
                 f.value[0]);
    adj_node *fill = adj_fill(f.g, ADJ_BF16, (adj_shape){2, {2, 3}}, 0.5);
    expect_exact(&f, adj_reshape(adj_transpose(fill, 2, (int[]){1, 0}), (adj_shape){1, {6}}),
                 (double[]){0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
}

static const int of_three[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                   {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

static void check_two_permutations(adj_shape x, const int first[3], const int second[3])
{
    const int joined[] = {first[second[0]], first[second[1]], first[second[2]]};
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *once = adj_transpose(given_integers(&f, ADJ_F32, x, -100, 100), 3, first);
    expect_permuted(&f, adj_transpose(once, 3, second), x, joined);
}

/* Equal sizes, where no shape tells the order in which two permutations were joined; different
 * ones; and one of a single element, whose place does not matter in memory. */
Test(reshape, two_permutations_against_index_arithmetic)
{
    static const adj_shape shapes[] = {{3, {3, 3, 3}}, {3, {2, 3, 4}}, {3, {3, 1, 4}}};
    for (int s = 0; s < 3; s++)
        for (int i = 0; i < 36; i++)
            check_two_permutations(shapes[s], of_three[i / 6], of_three[i % 6]);
}

static adj_node *six(void) { return of_type("f32[2, 3]"); }

Test(reshape, refusals)
{
    const int64_t large = INT64_C(1) << 40;
    const adj_shape negative = {3, {-2, -3, -1}};
    expect_refused(adj_reshape(six(), (adj_shape){2, {2, 2}}), ADJ_ESHAPE, "reshape|[2, 2]|[2, 3]");
    expect_refused(adj_reshape(six(), (adj_shape){2, {-1, -1}}), ADJ_EARG,
                   "reshape: shape|more than one -1|[-1, -1]");
    expect_refused(adj_reshape(six(), (adj_shape){2, {4, -1}}), ADJ_ESHAPE,
                   "reshape|[4, -1]|[2, 3]");
    expect_refused(adj_reshape(six(), (adj_shape){2, {0, -1}}), ADJ_ESHAPE, "reshape|[0, -1]");
    expect_refused(adj_reshape(six(), negative), ADJ_ESHAPE, "reshape: shape|negative");
    expect_refused(adj_reshape(six(), (adj_shape){.rank = 7}), ADJ_ESHAPE, "reshape: shape|rank|7");
    expect_refused(adj_reshape(six(), (adj_shape){.rank = -1}), ADJ_ESHAPE,
                   "reshape: shape|rank|-1");
    expect_refused(adj_reshape(six(), (adj_shape){3, {large, large, -1}}), ADJ_ESHAPE,
                   "reshape: shape|too large");
    expect_refused(adj_transpose(six(), 2, (int[]){0, 0}), ADJ_EARG, "transpose: perm|got 0 at 1");
    expect_refused(adj_transpose(six(), 2, (int[]){0, 2}), ADJ_EARG, "transpose: perm|got 2 at 1");
    expect_refused(adj_transpose(six(), 2, (int[]){-1, 0}), ADJ_EARG,
                   "transpose: perm|got -1 at 0");
    expect_refused(adj_transpose(six(), 2, NULL), ADJ_EARG, "transpose: perm|NULL|expected 2");
    expect_refused(adj_transpose(six(), 1, (int[]){0}), ADJ_EARG,
                   "transpose: perm|got 1|expected 2");
    cr_assert_null(adj_reshape(NULL, (adj_shape){0}));
    cr_assert_null(adj_transpose(NULL, 0, NULL));
}

/* ---- broadcast_to ---- */

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
enum { N_BROADCASTS = sizeof broadcasts / sizeof *broadcasts, N_SUMMED = 15, N_FULL = 12 };

static void check_broadcast(const broadcast *b, adj_dtype dtype)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *y = adj_broadcast_to(given_integers(&f, dtype, b->x, -9, 9), b->y);
    cr_assert_not_null(y, "%s", adj_graph_message(f.g));
    int64_t n = elems_of(y);
    scoped(release) double *want = malloc((size_t)n * sizeof *want + 1);
    for (int64_t i = 0; i < n; i++)
        want[i] = repeated(f.value[0], b->x, unravel(i, b->y));
    expect_exact(&f, y, want);
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
        expect_exact(&f, adj_broadcast_to(column, (adj_shape){2, {2, 3}}),
                     (double[]){1, 1, 1, 2, 2, 2});
        if (dtypes[d] != ADJ_I32) {
            adj_node *v = given(&f, dtypes[d], (adj_shape){2, {2, 3}}, y);
            expect_exact(&f, adj_sum_to(v, (adj_shape){2, {2, 1}}), (double[]){6, 15});
            expect_exact(&f, adj_sum_to(v, (adj_shape){1, {3}}), (double[]){5, 7, 9});
            expect_exact(&f, adj_sum_to(v, (adj_shape){0}), (double[]){21});
        }
    }
}

Test(broadcast, adjoint_on_integers)
{
    for (int d = 0; d < 4; d++)
        for (int i = 0; i < N_SUMMED; i++) {
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *x = given_integers(&f, dtypes[d], broadcasts[i].x, -2, 2);
            adj_node *y = given_integers(&f, dtypes[d], broadcasts[i].y, -2, 2);
            expect_adjoint(&f, adj_broadcast_to(x, broadcasts[i].y), 2);
            expect_adjoint(&f, adj_sum_to(y, broadcasts[i].x), 2);
        }
}

Test(broadcast, gradient_against_differences)
{
    for (int i = 0; i < N_FULL; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given_random(&f, ADJ_F64, broadcasts[i].x, -1, 1);
        adj_node *y = adj_broadcast_to(x, broadcasts[i].y);
        expect_gradient(&f, y, 0.5, 1e-12, 1e-12);
        expect_gradient(&f, adj_square(y), 1e-3, 1e-9, 1e-9);
    }
}

/* A repeated fill is a fill. */
Test(broadcast, simplified)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *fill = adj_fill(f.g, ADJ_F16, (adj_shape){1, {1}}, -2);
    adj_node *ones = adj_fill(f.g, ADJ_F16, (adj_shape){2, {2, 1}}, 1);
    adj_node *y = adj_mul(adj_broadcast_to(fill, (adj_shape){2, {1, 2}}), ones);
    expect_exact(&f, y, (double[]){-2, -2, -2, -2});
}

Test(broadcast, refusals)
{
    const adj_shape negative = {3, {-1, 2, 3}};
    expect_refused(adj_broadcast_to(six(), (adj_shape){2, {4, 3}}), ADJ_ESHAPE,
                   "broadcast_to: input|[2, 3]|[4, 3]");
    expect_refused(adj_broadcast_to(six(), (adj_shape){1, {3}}), ADJ_ESHAPE,
                   "broadcast_to: input|[2, 3]|[3]");
    expect_refused(adj_broadcast_to(six(), negative), ADJ_ESHAPE, "broadcast_to: shape|negative");
    expect_refused(adj_broadcast_to(six(), (adj_shape){.rank = 7}), ADJ_ESHAPE,
                   "broadcast_to: shape|rank");
    expect_refused(adj_broadcast_to(six(), (adj_shape){4, {1 << 30, 1 << 30, 2, 3}}), ADJ_ESHAPE,
                   "broadcast_to: shape|too large");
    cr_assert_null(adj_broadcast_to(NULL, (adj_shape){0}));
    cr_assert_null(adj_sum_to(NULL, (adj_shape){0}));
}
