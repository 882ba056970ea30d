/* test_resize.c - resizing by nearest and bilinear sampling, and its adjoint. */
#include <math.h>

#include "expect.h"
#include "ops/grad.h"
#include "tests/resize_reference.h"

/* PyTorch's interpolate in float64 (nearest, nearest-exact, bilinear without and with
 * align_corners) of x [1, 3, 4, 1], and its gradient for the first of these dy. */
static const double x_values[] = {1, -2, 3.5, 0.25, 4, 0, -1.5, 2, -3, 5, 0.5, -0.75};
static const double dy_values[] = {-2.5, 2.5,  -2,   0.5, -1,  -1,  0.5, -2,  2.5, -2.5,
                                   -0.5, -2.5, 2.5,  -2,  0.5, -1,  -1,  0.5, -2,  2.5,
                                   -2.5, -0.5, -2.5, 2.5, -2,  0.5, -1,  -1,  0.5, -2};
typedef struct {
    adj_resize_mode mode;
    adj_coordinates coordinates;
    int h, w;
} target;
static const struct {
    target to;
    double y[30], dx[12];
} literal[] = {
    {{ADJ_NEAREST, ADJ_ASYMMETRIC, 5, 6},
     {1,    1,    -2, 3.5, 3.5, 0.25, 1,    1,    -2, 3.5, 3.5, 0.25, 4,   4,   0,
      -1.5, -1.5, 2,  4,   4,   0,    -1.5, -1.5, 2,  -3,  -3,  5,    0.5, 0.5, -0.75},
     {-1.5, 0.5, -3.5, -3.5, 1, -2, -5, 3, -1.5, -1, -0.5, -2}},
    {{ADJ_NEAREST, ADJ_HALF_PIXEL, 5, 6},
     {1,    -2, -2, 3.5, 0.25, 0.25, 1,   -2,    -2,    3.5, 0.25, 0.25, 4,   0,     0,
      -1.5, 2,  2,  -3,  5,    5,    0.5, -0.75, -0.75, -3,  5,    5,    0.5, -0.75, -0.75},
     {-2, 1, -2, -5, 2.5, -1.5, -1, -0.5, -4, -0.5, -1.5, -1.5}},
    {{ADJ_BILINEAR, ADJ_HALF_PIXEL, 5, 6},
     {1,     -0.5, -13. / 12, 31. / 12, 1.875, 0.25,  2.2,  0.5,  -0.75,  1.05,
      1.225, 0.95, 4,         2,        -0.25, -1.25, 0.25, 2,    -0.2,   1.4,
      2.45,  0.25, 0.025,     0.35,     -3,    1,     4.25, 1.25, -0.125, -0.75},
     {-1.55, 0.06666666666667, -1.56666666666667, -3.15, 1, -0.85, -2.85, -0.6, -2.2, -1.3, -2,
      -1}},
    {{ADJ_BILINEAR, ADJ_ALIGN_CORNERS, 5, 6},
     {1,    -0.8, -0.9, 2.4, 2.2, 0.25, 2.5, 0.4,   -0.6,  0.6, 1.05, 1.125, 4,   1.6, -0.3,
      -1.2, -0.1, 2,    0.5, 1.7, 1.9,  0.1, -0.05, 0.625, -3,  1.8,  4.1,   1.4, 0,   -0.75},
     {-1.65, 0.15, -1.5, -2.75, 1.05, -1.15, -3.4, -0.5, -2.3, -1, -1.9, -1.05}},
    {{ADJ_NEAREST, ADJ_ASYMMETRIC, 2, 3},
     {1, -2, 3.5, 4, 0, -1.5},
     {-2.5, 2.5, -2, 0, 0.5, -1, -1, 0, 0, 0, 0, 0}},
    {{ADJ_NEAREST, ADJ_HALF_PIXEL, 2, 3},
     {1, 3.5, 0.25, -3, 0.5, -0.75},
     {-2.5, 0, 2.5, -2, 0, 0, 0, 0, 0.5, 0, -1, -1}},
    {{ADJ_BILINEAR, ADJ_HALF_PIXEL, 2, 3},
     {1.20833333333333, 0.375, 0.94791666666667, -0.41666666666667, 1.875, -0.05208333333333},
     {-1.5625, 0.625, 0.6875, -1.25, -0.41666666666667, 0.10416666666667, 0.0625, -0.625, 0.3125,
      -0.3125, -0.5, -0.625}},
    {{ADJ_BILINEAR, ADJ_ALIGN_CORNERS, 2, 3},
     {1, 0.75, 0.25, -3, 2.75, -0.75},
     {-2.5, 1.25, 1.25, -2, 0, 0, 0, 0, 0.5, -0.5, -0.5, -1}},
    {{ADJ_NEAREST, ADJ_ASYMMETRIC, 1, 7},
     {1, 1, -2, -2, 3.5, 3.5, 0.25},
     {0, -1.5, -2, 0.5, 0, 0, 0, 0, 0, 0, 0, 0}},
    {{ADJ_NEAREST, ADJ_HALF_PIXEL, 1, 7},
     {4, 4, 0, -1.5, -1.5, 2, 2},
     {0, 0, 0, 0, 0, -2, -0.5, -0.5, 0, 0, 0, 0}},
    {{ADJ_BILINEAR, ADJ_HALF_PIXEL, 1, 7},
     {4, 2.57142857142857, 0.28571428571429, -0.75, -1.25, 0.75, 2},
     {0, 0, 0, 0, -1.03571428571429, -0.71428571428571, -1.03571428571429, -0.21428571428571, 0, 0,
      0, 0}},
    {{ADJ_BILINEAR, ADJ_ALIGN_CORNERS, 1, 7},
     {1, -0.5, -2, 0.75, 3.5, 1.875, 0.25},
     {-1.25, -0.5, -1.25, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
};
enum { N_LITERAL = sizeof literal / sizeof *literal };

Test(resize, literal_numbers)
{
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int k = 0; k < 2 * N_LITERAL; k++) {
            const precision *t = &precisions[p];
            const target *to = &literal[k / 2].to;
            const int h = to->h, w = to->w;
            adj_sampling s = {to->mode, to->coordinates, ADJ_NHWC};
            adj_shape in = {4, {1, 3, 4, 1}}, out = {4, {1, h, w, 1}};
            if (k % 2) { /* one channel: the same numbers */
                s.format = ADJ_NCHW;
                in = (adj_shape){4, {1, 1, 3, 4}};
                out = (adj_shape){4, {1, 1, h, w}};
            }
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *x = given(&f, t->dtype, in, x_values);
            adj_node *dy = given(&f, t->dtype, out, dy_values);
            adj_node *y = adj_resize(x, h, w, &s);
            expect_values(&f, y, "naive", literal[k / 2].y, t->rtol, 4 * t->rtol);
            expect_values(&f, gradient_of(y, dy, x), "naive", literal[k / 2].dx, t->rtol,
                          8 * t->rtol);
        }
}

/* ---- the reference ---- */

static adj_shape image_shape(const resize_sizes *z, adj_format format, int is_out)
{
    int64_t h = is_out ? z->oh : z->ih, w = is_out ? z->ow : z->iw;
    return format == ADJ_NCHW ? (adj_shape){4, {z->n, z->c, h, w}}
                              : (adj_shape){4, {z->n, h, w, z->c}};
}

static void check_sizes(const resize_sizes *z, const adj_sampling *s, const precision *t)
{
    const resize_sizes planes = {z->n * z->c, z->ih, z->iw, 1, z->oh, z->ow};
    const resize_sizes *of = s->format == ADJ_NCHW ? &planes : z;
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_random(&f, t->dtype, image_shape(z, s->format, 0), 0.5, 1);
    adj_node *dy = given_random(&f, t->dtype, image_shape(z, s->format, 1), 0.5, 1);
    scoped(resized_free) resized want = resize_reference(of, s, 0, f.value[0]),
                                 dx = resize_reference(of, s, 1, f.value[1]);
    expect_values(&f, adj_resize(x, z->oh, z->ow, s), "naive", want.y, t->rtol, 0);
    expect_values(&f, adj_resize_grad(dy, z->ih, z->iw, s), "naive", dx.y, t->rtol, t->rtol / 8);
}

static const resize_sizes some[] = {{2, 3, 4, 3, 5, 6}, {1, 5, 6, 2, 3, 4},  {2, 1, 1, 1, 4, 3},
                                    {1, 4, 3, 3, 1, 1}, {1, 3, 2, 70, 3, 2}, {1, 2, 9, 2, 13, 2},
                                    {0, 3, 4, 2, 5, 6}, {2, 3, 4, 0, 5, 6},  {1, 4, 4, 65, 8, 2}};
enum { N_SOME = sizeof some / sizeof *some, SAMPLINGS = 12 };

static adj_sampling sampling(int i)
{
    return (adj_sampling){(adj_resize_mode)(i % 2), (adj_coordinates)(i / 2 % 3),
                          (adj_format)(i / 6)};
}

Test(resize, every_sampling_against_a_matrix)
{
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int i = 0; i < N_SOME * SAMPLINGS; i++) {
            const adj_sampling s = sampling(i % SAMPLINGS);
            check_sizes(&some[i / SAMPLINGS], &s, &precisions[p]);
        }
}

/* Weights that are halves and quarters. */
Test(resize, adjoint_on_integers)
{
    const resize_sizes twice = {2, 3, 2, 3, 6, 4}, corners = {2, 3, 2, 3, 5, 3};
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int i = 0; i < SAMPLINGS; i++) {
            const adj_sampling s = sampling(i);
            const resize_sizes *z = s.coordinates == ADJ_ALIGN_CORNERS ? &corners : &twice;
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *x =
                given_integers(&f, precisions[p].dtype, image_shape(z, s.format, 0), -2, 2);
            adj_node *dy =
                given_integers(&f, precisions[p].dtype, image_shape(z, s.format, 1), -2, 2);
            expect_adjoint(&f, adj_resize(x, z->oh, z->ow, &s), 2);
            expect_adjoint(&f, adj_resize_grad(dy, z->ih, z->iw, &s), 2);
        }
}

Test(resize, gradients_against_differences)
{
    for (int i = 0; i < N_SOME * SAMPLINGS; i++) {
        const resize_sizes *z = &some[i / SAMPLINGS];
        const adj_sampling s = sampling(i % SAMPLINGS);
        if (z->c > 3)
            continue;
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given_random(&f, ADJ_F64, image_shape(z, s.format, 0), -1, 1);
        adj_node *dy = given_random(&f, ADJ_F64, image_shape(z, s.format, 1), -1, 1);
        expect_gradient(&f, adj_resize(x, z->oh, z->ow, &s), 0.5, 1e-12, 1e-12);
        expect_gradient(&f, adj_resize_grad(dy, z->ih, z->iw, &s), 0.5, 1e-12, 1e-12);
    }
}

/* A neighbor of weight 0 is not read: the results at the corners are the inputs there. */
Test(resize, nan_stays_where_it_is)
{
    const adj_sampling s = {ADJ_BILINEAR, ADJ_ALIGN_CORNERS, ADJ_NHWC};
    for (int p = 0; p < N_PRECISIONS; p++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x =
            given(&f, precisions[p].dtype, (adj_shape){4, {1, 1, 3, 1}}, (double[]){1, NAN, 3});
        adj_node *dy = given(&f, precisions[p].dtype, (adj_shape){4, {1, 1, 5, 1}},
                             (double[]){INFINITY, 2, 4, 6, 8});
        expect_exact(&f, adj_resize(x, 1, 5, &s), (double[]){1, NAN, NAN, NAN, 3});
        expect_exact(&f, adj_resize_grad(dy, 1, 3, &s), (double[]){INFINITY, 8, 11});
    }
}

static adj_node *small(void) { return of_type("f32[1, 3, 4, 1]"); }

Test(resize, refusals)
{
    const adj_sampling mode = {.mode = (adj_resize_mode)2};
    const adj_sampling coordinates = {.coordinates = (adj_coordinates)3};
    const adj_sampling format = {.format = (adj_format)7};
    expect_refused(adj_resize(of_type("f32[3, 4, 1]"), 2, 2, NULL), ADJ_ESHAPE,
                   "resize: x|[3, 4, 1]|rank 4");
    expect_refused(adj_resize(small(), 0, 2, NULL), ADJ_ESHAPE,
                   "resize|the result must be at least 1|got 0 and 2");
    expect_refused(adj_resize_grad(small(), 3, -4, NULL), ADJ_ESHAPE,
                   "resize_grad|the result|got 3 and -4");
    expect_refused(adj_resize(small(), 2, 1LL << 31, NULL), ADJ_ESHAPE, "resize|int32|2147483648");
    expect_refused(adj_resize(of_type("f32[1, 0, 4, 1]"), 2, 2, NULL), ADJ_ESHAPE,
                   "resize|x|got 0 and 4");
    expect_refused(adj_resize(of_type("f32[4, 1, 1, 1]"), INT32_MAX, INT32_MAX, NULL), ADJ_ESHAPE,
                   "resize|the result");
    expect_refused(adj_resize(small(), 2, 2, &mode), ADJ_EARG, "resize|mode|got 2");
    expect_refused(adj_resize_grad(small(), 2, 2, &coordinates), ADJ_EARG,
                   "resize_grad|coordinates|got 3");
    expect_refused(adj_resize(small(), 2, 2, &format), ADJ_EARG, "resize|data_format|7");
    expect_refused(adj_resize(of_type("i32[1, 3, 4, 1]"), 2, 2, NULL), ADJ_EDTYPE, "resize|i32");
    cr_assert_null(adj_resize(NULL, 1, 1, NULL));
    cr_assert_null(adj_resize_grad(NULL, 1, 1, NULL));
}

/* The largest sizes, of no image: the shape is known. */
Test(resize, largest_sizes)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *y = adj_resize(input(&f, "f32[0, 2147483647, 1, 1]"), 1, INT32_MAX, NULL);
    cr_assert_not_null(y, "%s", adj_graph_message(f.g));
    cr_assert_eq(adj_node_type(y).shape.dim[2], INT32_MAX);
}
