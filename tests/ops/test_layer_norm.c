/* test_layer_norm.c - layer norm against PyTorch's numbers, over one, two and all axes; as ConvNeXt
 * writes it; and what is refused. Its ops are group norm's, whose test has the rest. */
#include "ops/norm_cases.h"

/* torch.nn.functional.layer_norm, PyTorch 1.13 in float64, of [2, 3, 4] over the last two axes;
 * parameters for one, two and all axes. */
static const double x_given[] = {-1.625, -1.25, -2,     -0.875, -1.25, 0.875, -1.875, -1.5,
                                 -0.375, 1,     -0.875, 0,      0.75,  0.875, 1.75,   -1.125,
                                 -1.125, 1.875, 1.625,  1.75,   1.75,  0.375, -1.375, -0.875};
static const double dy_given[] = {-1.25,  0.625,  0,     1.75,   -0.75, -1.875, -0.375, 0.875,
                                  -0.875, -1.875, 0.375, -1.375, 0,     0.875,  -0.75,  0.75,
                                  -0.25,  2,      0.625, -0.25,  -0.5,  -0.125, 1.125,  -0.25};
static const double gamma_of[3][24] = {
    {-0.5, 1.875, 0.75, -1.875},
    {-0.5, 0.75, 1.5, 0.75, 0.875, -1.375, -0.25, -1.25, -0.25, 1.75, -0.5, 0.625},
    {0.625,  -1.375, 1.125, 1.625,  1.125, -1.375, -0.75, -0.75, -1, -1.875, -0.875, 1.625,
     -0.875, 1.75,   0.75,  -0.875, -1,    -1.875, -2,    -1.25, -1, 1.375,  -0.5,   -0.375}};
static const double beta_of[3][24] = {
    {-1.875, 0.125, 1.75, 0},
    {-0.375, 1.75, -2, 1.75, 0.75, -1.375, -1.125, 1, -0.5, 1.75, -0.625, 1.375},
    {-1.875, 0,    -0.375, 0.25, 2,      -0.125, 0.5,    0,   1.25,   -1, -1.625, 0.75,
     1.625,  1.25, 2,      -1,   -0.875, 2,      -1.875, 1.5, -0.625, -2, -0.875, -0.625}};
static const double torch_y[] = {0.048410787183,  1.4080143642,   -3.85649345149,  1.70114490917,
                                 0.351016758231,  -3.79332699603, -0.848154485303, 1.89567666519,
                                 -0.613995211934, 5.05586114608,  -0.592429939447, 1.90426348398,
                                 -0.466679107347, 1.96252883976,  -0.524799818144, 0.762365979944,
                                 -0.402239690065, -2.86478549439, -1.34586330406,  -0.22933348488,
                                 -0.745866696976, 1.54580562455,  0.133436251689,  0.676988614517};
static const double torch_dx[] = {
    0.562649113329,  0.472078683123,   -0.161031970278, 1.4237501906,   -0.700443496768,
    3.08014371491,   -0.0392284977683, -1.20461092621,  0.380171234668, -3.00264934784,
    -0.139612715924, -0.671215981838,  0.272213002433,  0.817337554967, -0.467482731504,
    0.421474554379,  -0.203610268441,  -1.7476058616,   0.287569147428, 0.682673342485,
    0.532652985008,  0.0370293479461,  -0.518754193213, -0.113496879884};
static const double torch_dgamma[] = {1.05852697,  -0.03703772, -0.73760009, -1.10162923,
                                      0.67119698,  -1.13075791, 0.96742653,  -0.87284036,
                                      -0.89071664, -3.52740877, -1.73090911, -0.88517511};
static const double torch_dbeta[] = {-1.25, 1.5,   -0.75,  2.5, -1,  0.125,
                                     0.25,  0.625, -1.375, -2,  1.5, -1.625};

static const adj_shape image = {3, {2, 3, 4}}, axes[] = {{1, {4}}, {2, {3, 4}}, {3, {2, 3, 4}}};

/* Returns the reference over the last axes, 1, 2 or 3: group norm of rows as long as these. */
static norm_answers reference_over(int last)
{
    const int64_t n = adj_shape_elems(axes[last - 1]);
    const norm_problem rows = {{2, {adj_shape_elems(image) / n, n}}, 1, eps, ADJ_NHWC};
    return norm_reference(&rows, x_given, gamma_of[last - 1], beta_of[last - 1], dy_given);
}

/* The reference has PyTorch's numbers. */
Test(layer_norm, torch_reference)
{
    scoped(norm_answers_free) norm_answers got = reference_over(2);
    expect_close(got.y, torch_y, 24, 1e-11, 1e-11, "y");
    expect_close(got.dx, torch_dx, 24, 1e-11, 1e-11, "dx");
    expect_close(got.sums, torch_dgamma, 12, 1e-8, 1e-8, "dgamma");
    expect_close(got.sums + 12, torch_dbeta, 12, 0, 0, "dbeta");
}

Test(layer_norm, torch_numbers)
{
    for (int i = 0; i < 3 * N_PRECISIONS; i++) {
        const int k = i / N_PRECISIONS;
        const adj_dtype t = dtypes[i % N_PRECISIONS], s = stats_dtype(t);
        const double r = rounding[t];
        scoped(norm_answers_free) norm_answers want = reference_over(k + 1);
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given(&f, t, image, x_given), *dy = given(&f, t, image, dy_given), *dx[3];
        adj_node *gamma = given(&f, s, axes[k], gamma_of[k]);
        adj_node *beta = given(&f, s, axes[k], beta_of[k]);
        adj_node *const of[] = {x, gamma, beta};
        adj_node *y = adj_layer_norm(x, gamma, beta, eps);
        expect_values(&f, y, "naive", want.y, r, r);
        cr_assert_eq(adj_grad(y, dy, 3, of, dx), ADJ_OK, "%s", adj_graph_message(f.g));
        expect_values(&f, dx[0], "naive", want.dx, r, 2 * r);
        expect_values(&f, dx[1], "naive", want.sums, 2e-6, 2e-6);
        expect_values(&f, dx[2], "naive", want.sums + elems_of(gamma), 2e-6, 2e-6);
    }
}

/* ConvNeXt: each pixel of an NHWC image over its channels, on every backend. */
Test(layer_norm, channels_of_a_pixel)
{
    enum { PIXELS = 2 * 5 * 3, C = 24 };
    const norm_problem pixels = {{2, {PIXELS, C}}, 1, 1e-6, ADJ_NHWC};
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_random(&f, ADJ_F32, (adj_shape){4, {2, 5, 3, C}}, -1, 5);
    adj_node *gamma = given_random(&f, ADJ_F32, (adj_shape){1, {C}}, -2, 2);
    adj_node *beta = given_random(&f, ADJ_F32, (adj_shape){1, {C}}, -2, 2);
    scoped(norm_answers_free) norm_answers want =
        norm_reference(&pixels, f.value[0], f.value[1], f.value[2], f.value[0]);
    adj_node *y = adj_layer_norm(x, gamma, beta, 1e-6);
    expect_values(&f, y, "naive", want.y, 1e-6, 1e-6);
    expect_values(&f, y, "onednn", want.y, 3e-6, 3e-6);
}

Test(layer_norm, gradients)
{
    for (int order = 1; order <= 2; order++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given_random(&f, ADJ_F64, (adj_shape){4, {2, 2, 2, 3}}, -1, 2), *dx;
        adj_node *gamma = given_random(&f, ADJ_F64, (adj_shape){2, {2, 3}}, 0.5, 2);
        adj_node *beta = given_random(&f, ADJ_F64, (adj_shape){2, {2, 3}}, -1, 1);
        adj_node *dy = given_random(&f, ADJ_F64, (adj_shape){4, {2, 2, 2, 3}}, -1, 1);
        adj_node *y = adj_layer_norm(x, gamma, beta, eps);
        dx = gradient_of(y, dy, x);
        expect_gradient(&f, order == 1 ? y : dx, 1e-5, 1e-5, 1e-6);
    }
}

Test(layer_norm, empty)
{
    const adj_shape empty[] = {{3, {0, 2, 3}}, {3, {2, 4, 0}}};
    for (int i = 0; i < 2; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given(&f, ADJ_F32, empty[i], NULL), *dx[2];
        adj_node *gamma = given(&f, ADJ_F32, (adj_shape){1, {empty[i].dim[2]}}, (double[3]){0});
        adj_node *y = adj_layer_norm(x, gamma, gamma, eps);
        adj_node *const of[] = {x, gamma};
        free(evaluate(&f, y, "onednn"));
        cr_assert_eq(adj_grad(y, x, 2, of, dx), ADJ_OK, "%s", adj_graph_message(f.g));
        free(evaluate(&f, dx[0], "onednn"));
        expect_values(&f, dx[1], "onednn", (double[3]){0}, 0, 0);
    }
}

static adj_node *norm(fixture *f, const char *gamma, const char *beta, double epsilon)
{
    return adj_layer_norm(input(f, "f32[2, 3, 5]"), input(f, gamma), input(f, beta), epsilon);
}

Test(layer_norm, refused)
{
    scoped(fixture_free) fixture f = fixture_new();
    expect_refusal(&f, norm(&f, "f32[4]", "f32[5]", eps), ADJ_ESHAPE,
                   "layer_norm|gamma|got [4]|expected [5]");
    expect_refusal(&f, norm(&f, "f32[5]", "f32[5, 1]", eps), ADJ_ESHAPE,
                   "layer_norm|beta|got [5, 1]|expected [5]");
    expect_refusal(&f, norm(&f, "f32[]", "f32[]", eps), ADJ_ESHAPE, "layer_norm|gamma|rank|got []");
    expect_refusal(&f, norm(&f, "f32[1, 2, 3, 5]", "f32[1, 2, 3, 5]", eps), ADJ_ESHAPE,
                   "layer_norm|gamma|rank|1 to 3");
    expect_refusal(&f, norm(&f, "f64[5]", "f32[5]", eps), ADJ_EDTYPE, "gamma|type|f64|f32");
    expect_refusal(&f, norm(&f, "f32[5]", "f32[5]", (double)NAN), ADJ_EARG, "epsilon|nan");
    cr_assert_null(adj_layer_norm(NULL, NULL, NULL, eps));
}
