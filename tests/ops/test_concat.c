/* test_concat.c - tensors one after the other, in every dtype. */
#include "expect.h"

static const adj_dtype dtypes[] = {ADJ_F64, ADJ_F32, ADJ_F16, ADJ_BF16, ADJ_I32};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes, MAX = 4 };

typedef struct {
    int n, axis;
    adj_shape x[MAX];
} joint;

static const joint joints[] = {
    {1, 0, {{1, {3}}}},
    {2, 0, {{1, {3}}, {1, {2}}}},
    {2, 0, {{2, {2, 3}}, {2, {1, 3}}}},
    {3, 1, {{2, {2, 3}}, {2, {2, 1}}, {2, {2, 2}}}},
    {2, -1, {{3, {2, 3, 4}}, {3, {2, 3, 1}}}},
    {2, -3, {{3, {2, 3, 4}}, {3, {1, 3, 4}}}},
    {3, 1, {{4, {2, 1, 2, 3}}, {4, {2, 2, 2, 3}}, {4, {2, 3, 2, 3}}}},
    {2, 5, {{6, {1, 2, 1, 2, 1, 2}}, {6, {1, 2, 1, 2, 1, 3}}}},
    /* empty operands */
    {3, 0, {{1, {2}}, {1, {0}}, {1, {3}}}},
    {2, 1, {{2, {2, 0}}, {2, {2, 3}}}},
    {2, 0, {{2, {0, 3}}, {2, {0, 3}}}},
    {4, 1, {{2, {70, 100}}, {2, {70, 200}}, {2, {70, 1}}, {2, {70, 300}}}},
};
enum { N_JOINTS = sizeof joints / sizeof *joints, N_SMALL = 11 };

static adj_node *joined(fixture *f, const joint *j, adj_dtype dtype)
{
    for (int i = 0; i < j->n; i++)
        given_integers(f, dtype, j->x[i], -9, 9);
    return adj_concat(j->n, f->in, j->axis);
}

static void check_joint(const joint *j, adj_dtype dtype)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *y = joined(&f, j, dtype);
    cr_assert_not_null(y, "%s", adj_graph_message(f.g));
    adj_shape shape = adj_node_type(y).shape;
    int axis = j->axis < 0 ? j->axis + (int)shape.rank : j->axis;
    int64_t n = elems_of(y);
    scoped(release) double *want = malloc((size_t)n * sizeof *want + 1);
    for (int64_t i = 0; i < n; i++) {
        adj_shape index = unravel(i, shape);
        int k = 0;
        while (index.dim[axis] >= j->x[k].dim[axis])
            index.dim[axis] -= j->x[k++].dim[axis];
        want[i] = f.value[k][ravel(index, j->x[k])];
    }
    expect_values(&f, y, "naive", want, 0, 0);
}

Test(concat, every_joint_against_index_arithmetic)
{
    for (int d = 0; d < N_DTYPES; d++)
        for (int i = 0; i < N_JOINTS; i++)
            check_joint(&joints[i], dtypes[d]);
}

/* By hand. */
Test(concat, literal_numbers)
{
    const double a[] = {1, 2, 3, 4}, b[] = {5, 6};
    for (int d = 0; d < N_DTYPES; d++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given(&f, dtypes[d], (adj_shape){2, {2, 2}}, a);
        adj_node *column = given(&f, dtypes[d], (adj_shape){2, {2, 1}}, b);
        adj_node *row = given(&f, dtypes[d], (adj_shape){2, {1, 2}}, b);
        expect_values(&f, adj_concat(2, (adj_node *[]){x, column}, 1), "naive",
                      (double[]){1, 2, 5, 3, 4, 6}, 0, 0);
        expect_values(&f, adj_concat(2, (adj_node *[]){row, x}, 0), "naive",
                      (double[]){5, 6, 1, 2, 3, 4}, 0, 0);
        expect_values(&f, adj_concat(2, (adj_node *[]){x, x}, 1), "naive",
                      (double[]){1, 2, 1, 2, 3, 4, 3, 4}, 0, 0);
    }
}

Test(concat, adjoint_on_integers)
{
    for (int d = 0; d < 4; d++)
        for (int i = 0; i < N_SMALL; i++) {
            scoped(fixture_free) fixture f = fixture_new();
            expect_adjoint(&f, joined(&f, &joints[i], dtypes[d]), joints[i].n);
        }
}

Test(concat, gradient_against_differences)
{
    for (int i = 0; i < N_SMALL; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        expect_gradient(&f, adj_square(joined(&f, &joints[i], ADJ_F64)), "naive", 1e-3, 1e-9, 1e-9);
    }
    fixture f =
        fixture_new(); /* twice the same operand; more operands than adj_grad's short list */
    adj_node *x = given_random(&f, ADJ_F64, (adj_shape){2, {2, 3}}, -1, 1);
    expect_gradient(&f, adj_concat(10, (adj_node *[]){x, x, x, x, x, x, x, x, x, x}, 1), "naive",
                    0.5, 1e-12, 1e-12);
    fixture_free(&f);
}

static adj_node *pair(fixture *f, adj_shape a, adj_shape b, adj_dtype dtype, int axis)
{
    adj_node *x[] = {given_integers(f, ADJ_F32, a, 0, 1), given_integers(f, dtype, b, 0, 1)};
    return adj_concat(2, x, axis);
}

static adj_node *too_large(fixture *f)
{
    adj_node *x = adj_input(f->g, "x", ADJ_F32, (adj_shape){1, {INT64_C(1) << 43}}), *many[16];
    for (int i = 0; i < 16; i++)
        many[i] = x;
    return adj_concat(16, many, 0);
}

Test(concat, refusals)
{
    scoped(fixture_free) fixture f = fixture_new();
    expect_refusal(&f, pair(&f, (adj_shape){2, {2, 3}}, (adj_shape){2, {2, 3}}, ADJ_F32, 2),
                   ADJ_EARG, "concat: axis", "got 2", "-2 to 1", NULL);
    expect_refusal(&f, pair(&f, (adj_shape){2, {2, 3}}, (adj_shape){2, {3, 3}}, ADJ_F32, 1),
                   ADJ_ESHAPE, "concat: values[1]", "[3, 3]", "[2, 3]", NULL);
    expect_refusal(&f, pair(&f, (adj_shape){2, {2, 3}}, (adj_shape){1, {3}}, ADJ_F32, 1),
                   ADJ_ESHAPE, "concat: values[1]", "[3]", "[2, 3]", NULL);
    expect_refusal(&f, pair(&f, (adj_shape){2, {2, 3}}, (adj_shape){2, {2, 3}}, ADJ_I32, 1),
                   ADJ_EDTYPE, "concat: values[1]", "i32", "f32", NULL);
    expect_refusal(&f, pair(&f, (adj_shape){0}, (adj_shape){0}, ADJ_F32, 0), ADJ_EARG,
                   "concat: axis", "got 0", NULL);
    expect_refusal(&f, too_large(&f), ADJ_ESHAPE, "concat", "too large", NULL);
    cr_assert_null(adj_concat(0, NULL, 0));
    cr_assert_null(adj_concat(1, (adj_node *[]){NULL}, 0));
}
