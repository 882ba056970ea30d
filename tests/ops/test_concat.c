/* test_concat.c - concat, pad and slice in every dtype. */
#include "expect.h"

enum { MAX = 4 };

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
    expect_exact(&f, y, want);
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
        expect_exact(&f, adj_concat(2, (adj_node *[]){x, column}, 1), (double[]){1, 2, 5, 3, 4, 6});
        expect_exact(&f, adj_concat(2, (adj_node *[]){row, x}, 0), (double[]){5, 6, 1, 2, 3, 4});
        expect_exact(&f, adj_concat(2, (adj_node *[]){x, x}, 1),
                     (double[]){1, 2, 1, 2, 3, 4, 3, 4});
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
        expect_gradient(&f, adj_square(joined(&f, &joints[i], ADJ_F64)), 1e-3, 1e-9, 1e-9);
    }
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_random(&f, ADJ_F64, (adj_shape){2, {2, 3}}, -1, 1);
    adj_node *const ten[] = {x, x, x, x, x, x, x, x, x, x}; /* more than adj_grad's short list */
    expect_gradient(&f, adj_concat(10, ten, 1), 0.5, 1e-12, 1e-12);
}

static adj_node *pair(const char *a, const char *b, int axis)
{
    return adj_concat(2, (adj_node *[]){of_type(a), of_type(b)}, axis);
}

static adj_node *too_large(void)
{
    adj_node *x = of_type("f32[8796093022208]"), *many[16];
    for (int i = 0; i < 16; i++)
        many[i] = x;
    return adj_concat(16, many, 0);
}

Test(concat, refusals)
{
    expect_refused(pair("f32[2, 3]", "f32[2, 3]", 2), ADJ_EARG, "concat: axis|got 2|-2 to 1");
    expect_refused(pair("f32[2, 3]", "f32[3, 3]", 1), ADJ_ESHAPE,
                   "concat: values[1]|[3, 3]|[2, 3]");
    expect_refused(pair("f32[2, 3]", "f32[3]", 1), ADJ_ESHAPE, "concat: values[1]|[3]|[2, 3]");
    expect_refused(pair("f32[2, 3]", "i32[2, 3]", 1), ADJ_EDTYPE, "concat: values[1]|i32|f32");
    expect_refused(pair("f32[]", "f32[]", 0), ADJ_EARG, "concat: axis|got 0");
    expect_refused(too_large(), ADJ_ESHAPE, "concat|too large");
    cr_assert_null(adj_concat(0, NULL, 0));
    cr_assert_null(adj_concat(1, (adj_node *[]){NULL}, 0));
}

/* ---- pad and slice, each the other's adjoint ---- */

/* A box in the middle of a larger tensor: pad goes from the box, slice to it. */
typedef struct {
    adj_shape box, before, after;
} frame;

static const frame frames[] = {
    {{0}, {0}, {0}},
    {{1, {3}}, {1, {2}}, {1, {1}}},
    {{1, {3}}, {1, {0}}, {1, {0}}},
    {{2, {2, 3}}, {2, {1, 0}}, {2, {0, 2}}},
    {{2, {2, 3}}, {2, {0, 2}}, {2, {0, 0}}},
    {{3, {2, 1, 3}}, {3, {0, 2, 1}}, {3, {1, 0, 1}}},
    {{4, {2, 3, 2, 2}}, {4, {0, 1, 1, 0}}, {4, {0, 1, 1, 0}}},
    {{6, {1, 2, 1, 2, 1, 2}}, {6, {1, 0, 1, 0, 1, 0}}, {6, {0, 1, 0, 1, 0, 1}}},
    {{2, {0, 3}}, {2, {2, 1}}, {2, {1, 0}}},
    {{2, {0, 3}}, {2, {0, 1}}, {2, {0, 1}}},
    {{3, {3, 100, 150}}, {3, {0, 1, 2}}, {3, {1, 1, 1}}},
};
enum { N_FRAMES = sizeof frames / sizeof *frames, N_FRAMES_SMALL = 10 };

static adj_shape whole(const frame *f)
{
    adj_shape shape = f->box;
    for (int64_t d = 0; d < shape.rank; d++)
        shape.dim[d] += f->before.dim[d] + f->after.dim[d];
    return shape;
}

static void check_frame(const frame *r, adj_dtype dtype)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *box = given_integers(&f, dtype, r->box, -9, 9);
    adj_node *large = given_integers(&f, dtype, whole(r), -9, 9);
    int64_t n = elems_of(large);
    scoped(release) double *padded = malloc((size_t)n * sizeof *padded + 1);
    scoped(release) double *sliced = malloc((size_t)elems_of(box) * sizeof *sliced + 1);
    for (int64_t i = 0; i < n; i++) {
        adj_shape index = unravel(i, whole(r));
        int inside = 1;
        for (int64_t d = 0; d < index.rank; d++) {
            index.dim[d] -= r->before.dim[d];
            inside &= index.dim[d] >= 0 && index.dim[d] < r->box.dim[d];
        }
        padded[i] = inside ? f.value[0][ravel(index, r->box)] : 0;
        if (inside)
            sliced[ravel(index, r->box)] = f.value[1][i];
    }
    expect_exact(&f, adj_pad(box, r->before, r->after), padded);
    expect_exact(&f, adj_slice(large, r->before, r->box), sliced);
}

Test(pad, every_frame_against_index_arithmetic)
{
    for (int d = 0; d < N_DTYPES; d++)
        for (int i = 0; i < N_FRAMES; i++)
            check_frame(&frames[i], dtypes[d]);
}

/* By hand. */
Test(pad, literal_numbers)
{
    const double x[] = {1, 2, 3, 4, 5, 6};
    for (int d = 0; d < N_DTYPES; d++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *v = given(&f, dtypes[d], (adj_shape){2, {2, 3}}, x);
        expect_exact(&f, adj_pad(v, (adj_shape){2, {0, 1}}, (adj_shape){2, {1, 0}}),
                     (double[]){0, 1, 2, 3, 0, 4, 5, 6, 0, 0, 0, 0});
        expect_exact(&f, adj_slice(v, (adj_shape){2, {0, 1}}, (adj_shape){2, {2, 2}}),
                     (double[]){2, 3, 5, 6});
    }
}

Test(pad, adjoint_on_integers)
{
    for (int d = 0; d < 4; d++)
        for (int i = 0; i < N_FRAMES_SMALL; i++) {
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *box = given_integers(&f, dtypes[d], frames[i].box, -3, 3);
            adj_node *large = given_integers(&f, dtypes[d], whole(&frames[i]), -3, 3);
            expect_adjoint(&f, adj_pad(box, frames[i].before, frames[i].after), 2);
            expect_adjoint(&f, adj_slice(large, frames[i].before, frames[i].box), 2);
        }
}

Test(pad, gradient_against_differences)
{
    for (int i = 0; i < N_FRAMES_SMALL; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *box = given_random(&f, ADJ_F64, frames[i].box, -1, 1);
        adj_node *large = given_random(&f, ADJ_F64, whole(&frames[i]), -1, 1);
        adj_node *padded = adj_pad(box, frames[i].before, frames[i].after);
        adj_node *sliced = adj_slice(large, frames[i].before, frames[i].box);
        expect_gradient(&f, adj_square(padded), 1e-3, 1e-9, 1e-9);
        expect_gradient(&f, adj_square(sliced), 1e-3, 1e-9, 1e-9);
    }
}

/* A padded fill is none; a sliced one is. */
Test(pad, simplified)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *fill = adj_fill(f.g, ADJ_F32, (adj_shape){1, {2}}, 0.1);
    adj_node *padded = adj_pad(fill, (adj_shape){1, {1}}, (adj_shape){1, {0}});
    adj_node *first = adj_slice(fill, (adj_shape){1, {1}}, (adj_shape){1, {1}});
    expect_exact(&f, padded, (double[]){0, 0.1f, 0.1f});
    expect_exact(&f, first, (double[]){0.1f});
}

static adj_node *six(void) { return of_type("f32[2, 3]"); }

Test(pad, refusals)
{
    const adj_shape huge = {2, {1, INT64_MAX}};
    expect_refused(adj_pad(six(), (adj_shape){2, {1, 1}}, (adj_shape){1, {1}}), ADJ_ESHAPE,
                   "pad: paddings|got 1|expected 2");
    expect_refused(adj_pad(six(), (adj_shape){2, {1, -1}}, (adj_shape){2, {1, 1}}), ADJ_EARG,
                   "pad: paddings|negative|-1");
    expect_refused(adj_pad(six(), huge, huge), ADJ_ESHAPE, "pad: paddings|overflow");
    expect_refused(adj_pad(six(), (adj_shape){2, {1 << 30, 1 << 30}}, (adj_shape){2, {0, 0}}),
                   ADJ_ESHAPE, "pad|too large");
    expect_refused(adj_slice(six(), (adj_shape){2, {1, 1}}, (adj_shape){2, {1, 3}}), ADJ_ESHAPE,
                   "slice: begin and size|axis 1|got 1 and 3");
    expect_refused(adj_slice(six(), (adj_shape){2, {3, 0}}, (adj_shape){2, {0, 0}}), ADJ_ESHAPE,
                   "slice: begin|axis 0|got 3 and 0");
    expect_refused(adj_slice(six(), (adj_shape){2, {1, 1}}, huge), ADJ_ESHAPE,
                   "slice: begin and size|axis 1");
    expect_refused(adj_slice(six(), (adj_shape){2, {-1, 0}}, (adj_shape){2, {1, 1}}), ADJ_EARG,
                   "slice: begin|negative");
    expect_refused(adj_slice(six(), (adj_shape){2, {0, 0}}, (adj_shape){2, {1, -1}}), ADJ_EARG,
                   "slice: size|negative");
    expect_refused(adj_slice(six(), (adj_shape){.rank = 9}, (adj_shape){2, {1, 1}}), ADJ_ESHAPE,
                   "slice: begin|got 9");
    cr_assert_null(adj_pad(NULL, (adj_shape){0}, (adj_shape){0}));
    cr_assert_null(adj_slice(NULL, (adj_shape){0}, (adj_shape){0}));
}
