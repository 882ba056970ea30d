/* test_channel.c - ops with a number for each channel, in both formats and ranks 2 to 5: bias_add;
 * prelu and its gradients, with a slope for each channel or one. PyTorch's prelu:
 * tests/nn/test_layers.c. */
#include <math.h>

#include "expect.h"
#include "ops/grad.h"

typedef struct {
    adj_shape x;
    adj_format format;
} layout;

static const layout layouts[] = {
    {{2, {3, 4}}, ADJ_NHWC},          {{2, {3, 4}}, ADJ_NCHW},
    {{3, {2, 3, 4}}, ADJ_NHWC},       {{3, {2, 3, 4}}, ADJ_NCHW},
    {{4, {2, 3, 4, 5}}, ADJ_NHWC},    {{4, {2, 5, 3, 4}}, ADJ_NCHW},
    {{5, {2, 1, 3, 2, 2}}, ADJ_NHWC}, {{5, {2, 3, 2, 1, 2}}, ADJ_NCHW},
    {{2, {1, 1}}, ADJ_NHWC},          {{4, {1, 1, 1, 1}}, ADJ_NCHW},
    {{2, {0, 2}}, ADJ_NHWC},          {{2, {0, 0}}, ADJ_NHWC},
    {{3, {4, 0, 3}}, ADJ_NCHW},       {{3, {0, 4, 3}}, ADJ_NHWC},
    {{4, {2, 3, 0, 2}}, ADJ_NCHW},    {{4, {3, 40, 41, 17}}, ADJ_NHWC},
    {{4, {3, 17, 40, 41}}, ADJ_NCHW},
};
enum { N_LAYOUTS = sizeof layouts / sizeof *layouts, N_SMALL = 15, N_SLOPED = 9 };

static int channel_axis(const layout *l) { return l->format == ADJ_NHWC ? (int)l->x.rank - 1 : 1; }

static int64_t channel_of(int64_t i, const layout *l)
{
    return unravel(i, l->x).dim[channel_axis(l)];
}

static adj_shape bias_shape(const layout *l) { return (adj_shape){1, {l->x.dim[channel_axis(l)]}}; }

static void check_layout(const layout *l, const precision *p)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_integers(&f, p->dtype, l->x, -1, 1);
    adj_node *b = given_integers(&f, p->dtype, bias_shape(l), -9, 9);
    int64_t n = elems_of(x), c = elems_of(b);
    scoped(release) double *y = malloc((size_t)n * sizeof *y + 1),
                           *db = calloc((size_t)c + 1, sizeof *db);
    for (int64_t i = 0; i < n; i++) {
        y[i] = f.value[0][i] + f.value[1][channel_of(i, l)];
        db[channel_of(i, l)] += f.value[0][i];
    }
    expect_exact(&f, adj_bias_add(x, b, l->format), y);
    expect_values(&f, adj_bias_add_grad(x, l->format), "naive", db, p->rtol / 2, 0);
}

Test(bias_add, every_layout_against_index_arithmetic)
{
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int i = 0; i < N_LAYOUTS; i++)
            check_layout(&layouts[i], &precisions[p]);
}

/* TensorFlow's bias_op_base.py: testGradientTensor2D and 3D, and its NumPy reference by hand. */
Test(bias_add, literal_numbers)
{
    const double six[] = {1, 2, 3, 4, 5, 6}, nchw[] = {1, 3, 5, 2, 4, 6}, b[] = {10, 20};
    for (int p = 0; p < N_PRECISIONS; p++) {
        adj_dtype dtype = precisions[p].dtype;
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given(&f, dtype, (adj_shape){2, {3, 2}}, six);
        adj_node *z = given(&f, dtype, (adj_shape){3, {1, 2, 3}}, nchw);
        adj_node *bias = given(&f, dtype, (adj_shape){1, {2}}, b);
        expect_exact(&f, adj_bias_add(x, bias, ADJ_NHWC), (double[]){11, 22, 13, 24, 15, 26});
        expect_exact(&f, adj_bias_add(z, bias, ADJ_NCHW), (double[]){11, 13, 15, 22, 24, 26});
        expect_exact(&f, adj_bias_add_grad(x, ADJ_NHWC), (double[]){9, 12});
        expect_exact(&f, adj_bias_add_grad(z, ADJ_NCHW), (double[]){9, 12});
    }
}

Test(bias_add, adjoint_on_integers)
{
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int i = 0; i < N_SMALL; i++) {
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *x = given_integers(&f, precisions[p].dtype, layouts[i].x, -2, 2);
            adj_node *b = given_integers(&f, precisions[p].dtype, bias_shape(&layouts[i]), -2, 2);
            expect_adjoint(&f, adj_bias_add(x, b, layouts[i].format), 2);
            expect_adjoint(&f, adj_bias_add_grad(x, layouts[i].format), 1);
        }
}

Test(bias_add, gradient_against_differences)
{
    for (int i = 0; i < 10; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given_random(&f, ADJ_F64, layouts[i].x, -1, 1);
        adj_node *b = given_random(&f, ADJ_F64, bias_shape(&layouts[i]), -1, 1);
        expect_gradient(&f, adj_bias_add(x, b, layouts[i].format), 0.5, 1e-12, 1e-12);
        expect_gradient(&f, adj_bias_add_grad(x, layouts[i].format), 0.5, 1e-12, 1e-12);
    }
}

Test(bias_add, refusals)
{
    expect_refused(adj_bias_add(of_type("f32[3]"), of_type("f32[3]"), ADJ_NHWC), ADJ_ESHAPE,
                   "bias_add|input|[3]");
    expect_refused(adj_bias_add_grad(of_type("f32[1, 1, 1, 1, 1, 1]"), ADJ_NCHW), ADJ_ESHAPE,
                   "bias_add_grad|out_backprop|rank 2 to 5");
    expect_refused(adj_bias_add(of_type("f32[2, 3, 4]"), of_type("f32[4]"), ADJ_NCHW), ADJ_ESHAPE,
                   "bias|[4]|[3]");
    expect_refused(adj_bias_add(of_type("f32[2, 3]"), of_type("f32[3, 1]"), ADJ_NHWC), ADJ_ESHAPE,
                   "bias|[3, 1]");
    expect_refused(adj_bias_add_grad(of_type("f32[]"), ADJ_NHWC), ADJ_ESHAPE, "out_backprop|[]");
    expect_refused(adj_bias_add_grad(of_type("f32[2, 3]"), (adj_format)7), ADJ_EARG,
                   "data_format|7");
    expect_refused(adj_bias_add(of_type("f32[2, 3]"), of_type("bf16[3]"), ADJ_NHWC), ADJ_EDTYPE,
                   "bias_add|f32|bf16");
    cr_assert_null(adj_bias_add(NULL, NULL, ADJ_NHWC));
    cr_assert_null(adj_bias_add_grad(NULL, ADJ_NHWC));
}

/* ---- prelu ---- */

static int64_t slopes_of(const layout *l, int one) { return one ? 1 : l->x.dim[channel_axis(l)]; }

/* Values by PyTorch, in float64; x is [1, 2, 2, 3]. */
static const double x_values[] = {-1.5, 2, 0, 0.25, -0.75, -4, 3, -2, 0.5, -0.125, 0, 1};
static const double dy_values[] = {1, -2, 3, 0.5, -1, 2, 4, -3, 1.5, 8, -0.5, 0.25};

static const struct {
    int slopes;
    double slope[2], y[12], dx[12], dslope[2];
} literal_slopes[] = {
    {2,
     {0.3, -0.7},
     {-0.45, 2, 0, 0.25, -0.225, -1.2, 3, 1.4, 0.5, 0.0875, 0, 1},
     {0.3, -2, 0.9, 0.5, -0.3, 0.6, 4, 2.1, 1.5, -5.6, 0.35, 0.25},
     {-8.75, 5}},
    {1,
     {0.1},
     {-0.15, 2, 0, 0.25, -0.075, -0.4, 3, -0.2, 0.5, -0.0125, 0, 1},
     {0.1, -2, 0.3, 0.5, -0.1, 0.2, 4, -0.3, 1.5, 0.8, -0.05, 0.25},
     {-3.75}},
};

Test(prelu, literal_numbers)
{
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int k = 0; k < 2; k++) {
            const precision *t = &precisions[p];
            const adj_shape shape = {4, {1, 2, 2, 3}};
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *in[2], *dx[2];
            in[0] = given(&f, t->dtype, shape, x_values);
            in[1] = given(&f, t->dtype, (adj_shape){1, {literal_slopes[k].slopes}},
                          literal_slopes[k].slope);
            adj_node *dy = given(&f, t->dtype, shape, dy_values);
            adj_node *y = adj_prelu(in[0], in[1], ADJ_NCHW);
            expect_values(&f, y, "naive", literal_slopes[k].y, t->rtol, 0);
            cr_assert_eq(adj_grad(y, dy, 2, in, dx), ADJ_OK);
            expect_values(&f, dx[0], "naive", literal_slopes[k].dx, t->rtol, 0);
            expect_values(&f, dx[1], "naive", literal_slopes[k].dslope, t->rtol, 0);
        }
}

/* Integers: nothing is rounded but the sums, once. */
static void check_slopes(const layout *l, const precision *p, int one)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *dy = given_integers(&f, p->dtype, l->x, -1, 1);
    adj_node *x = given_integers(&f, p->dtype, l->x, -2, 2);
    adj_node *slope = given_integers(&f, p->dtype, (adj_shape){1, {slopes_of(l, one)}}, -9, 9);
    int64_t n = elems_of(x);
    scoped(release) double *y = malloc((size_t)n * sizeof *y + 1),
                           *dx = malloc((size_t)n * sizeof *dx + 1);
    scoped(release) double *ds = calloc((size_t)elems_of(slope) + 1, sizeof *ds);
    for (int64_t i = 0; i < n; i++) {
        double d = f.value[0][i], at = f.value[1][i];
        int64_t k = one ? 0 : channel_of(i, l);
        y[i] = fmax(at, 0) + f.value[2][k] * fmin(at, 0);
        dx[i] = at > 0 ? d : f.value[2][k] * d;
        ds[k] += d * fmin(at, 0);
    }
    expect_exact(&f, adj_prelu(x, slope, l->format), y);
    expect_exact(&f, adj_prelu_grad(dy, x, slope, l->format), dx);
    expect_values(&f, adj_prelu_grad_slope(dy, x, slopes_of(l, one), l->format), "naive", ds,
                  p->rtol / 2, 0);
}

Test(prelu, every_layout_against_index_arithmetic)
{
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int i = 0; i < N_LAYOUTS; i++)
            for (int one = 0; one < 2; one++)
                check_slopes(&layouts[i], &precisions[p], one);
}

/* The gradients are linear in dy. */
Test(prelu, adjoint_on_integers)
{
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int i = 0; i < 2 * N_SLOPED; i++) {
            const layout *l = &layouts[i / 2];
            adj_dtype dtype = precisions[p].dtype;
            int64_t slopes = slopes_of(l, i % 2);
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *dy = given_integers(&f, dtype, l->x, -1, 1);
            adj_node *x = given_integers(&f, dtype, l->x, -1, 1);
            adj_node *slope = given_integers(&f, dtype, (adj_shape){1, {slopes}}, -2, 2);
            expect_adjoint(&f, adj_prelu_grad(dy, x, slope, l->format), 1);
            expect_adjoint(&f, adj_prelu_grad_slope(dy, x, slopes, l->format), 1);
        }
}

/* All three, differentiated by every operand. x away from its kink by more than the step. */
Test(prelu, gradients_against_differences)
{
    for (int i = 0; i < 2 * N_SLOPED; i++)
        for (int op = 0; op < 3; op++) {
            const layout *l = &layouts[i / 2];
            int64_t slopes = slopes_of(l, i % 2);
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *x = given_random(&f, ADJ_F64, l->x, -1, 1);
            for (int64_t k = 0; k < elems_of(x); k++)
                f.value[0][k] += f.value[0][k] < 0 ? -0.1 : 0.1;
            adj_node *dy = given_random(&f, ADJ_F64, l->x, -1, 1);
            adj_node *slope = given_random(&f, ADJ_F64, (adj_shape){1, {slopes}}, -1, 1);
            adj_node *const y[] = {adj_prelu(x, slope, l->format),
                                   adj_prelu_grad(dy, x, slope, l->format),
                                   adj_prelu_grad_slope(dy, x, slopes, l->format)};
            expect_gradient(&f, y[op], 1e-5, 1e-7, 1e-9);
        }
}

/* PyTorch's choices: x = 0 belongs to the slope's side; a NaN stays one; an infinite dy stays out
 * of the slope's gradient where x > 0. */
Test(prelu, zero_nan_and_infinity)
{
    const double x[] = {0, -0.0, NAN, INFINITY, -INFINITY, 2};
    const double dy[] = {1, 1, 1, INFINITY, 1, NAN}, half = 0.5;
    const double y[] = {0, 0, NAN, INFINITY, -INFINITY, 2}, dx[] = {.5, .5, .5, INFINITY, .5, NAN};
    const adj_shape shape = {2, {1, 6}};
    for (int p = 0; p < N_PRECISIONS; p++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *at = given(&f, precisions[p].dtype, shape, x);
        adj_node *d = given(&f, precisions[p].dtype, shape, dy);
        adj_node *slope = given(&f, precisions[p].dtype, (adj_shape){1, {1}}, &half);
        expect_exact(&f, adj_prelu(at, slope, ADJ_NHWC), y);
        expect_exact(&f, adj_prelu_grad(d, at, slope, ADJ_NHWC), dx);
        expect_exact(&f, adj_prelu_grad_slope(d, at, 6, ADJ_NHWC),
                     (double[]){0, 0, NAN, 0, -INFINITY, 0});
    }
}

Test(prelu, refusals)
{
    expect_refused(adj_prelu(of_type("f32[3]"), of_type("f32[3]"), ADJ_NHWC), ADJ_ESHAPE,
                   "prelu: x|[3]|rank 2 to 5");
    expect_refused(adj_prelu(of_type("f32[2, 3, 4]"), of_type("f32[4]"), ADJ_NCHW), ADJ_ESHAPE,
                   "prelu: slope|[4]|[3] or [1]");
    expect_refused(
        adj_prelu_grad(of_type("f32[2, 3]"), of_type("f32[2, 3]"), of_type("f32[]"), ADJ_NHWC),
        ADJ_ESHAPE, "prelu_grad|slope|[]");
    expect_refused(
        adj_prelu_grad(of_type("f32[3, 2]"), of_type("f32[2, 3]"), of_type("f32[3]"), ADJ_NHWC),
        ADJ_ESHAPE, "prelu_grad|[3, 2]|[2, 3]");
    expect_refused(adj_prelu_grad_slope(of_type("f32[2, 3]"), of_type("f32[2, 3]"), 2, ADJ_NHWC),
                   ADJ_EARG, "prelu_grad_slope: slopes|got 2|3 or 1");
    expect_refused(
        adj_prelu_grad_slope(of_type("f32[2, 3]"), of_type("f32[2, 3]"), 1, (adj_format)7),
        ADJ_EARG, "prelu_grad_slope|data_format|7");
    expect_refused(adj_prelu(of_type("f32[2, 3]"), of_type("bf16[3]"), ADJ_NHWC), ADJ_EDTYPE,
                   "prelu|f32|bf16");
    cr_assert_null(adj_prelu(NULL, NULL, ADJ_NHWC));
    cr_assert_null(adj_prelu_grad(NULL, NULL, NULL, ADJ_NHWC));
    cr_assert_null(adj_prelu_grad_slope(NULL, NULL, 1, ADJ_NHWC));
}
