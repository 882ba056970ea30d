/* test_layer_norm.c - layer norm against PyTorch's numbers, over one, two and all axes; and what is
 * refused. Its ops are group norm's, whose test has the rest. */
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
static const adj_shape image = {3, {2, 3, 4}}, axes[] = {{1, {4}}, {2, {3, 4}}, {3, {2, 3, 4}}};

/* Returns the reference over the last axes, 1, 2 or 3: group norm of rows as long as these. */
static norm_answers reference_over(int last)
{
    const int64_t n = adj_shape_elems(axes[last - 1]);
    const norm_problem rows = {{2, {adj_shape_elems(image) / n, n}}, 1, eps, ADJ_NHWC};
    return norm_reference(&rows, x_given, gamma_of[last - 1], beta_of[last - 1], dy_given);
}

/* The reference has PyTorch's numbers; its gradients: test_group_norm.c. */
Test(layer_norm, torch_reference)
{
    scoped(norm_answers_free) norm_answers got = reference_over(2);
    expect_close(got.y, torch_y, 24, 1e-11, 1e-11, "y");
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

static adj_node *norm(const char *gamma, const char *beta, double epsilon)
{
    return adj_layer_norm(of_type("f32[2, 3, 5]"), of_type(gamma), of_type(beta), epsilon);
}

Test(layer_norm, refused)
{
    expect_refused(norm("f32[4]", "f32[5]", eps), ADJ_ESHAPE,
                   "layer_norm|gamma|got [4]|expected [5]");
    expect_refused(norm("f32[5]", "f32[5, 1]", eps), ADJ_ESHAPE,
                   "layer_norm|beta|got [5, 1]|expected [5]");
    expect_refused(norm("f32[]", "f32[]", eps), ADJ_ESHAPE, "layer_norm|gamma|rank|got []");
    expect_refused(norm("f32[1, 2, 3, 5]", "f32[1, 2, 3, 5]", eps), ADJ_ESHAPE,
                   "layer_norm|gamma|rank|1 to 3");
    expect_refused(norm("f64[5]", "f32[5]", eps), ADJ_EDTYPE, "gamma|type|f64|f32");
    expect_refused(norm("f32[5]", "f32[5]", (double)NAN), ADJ_EARG, "epsilon|nan");
    cr_assert_null(adj_layer_norm(NULL, NULL, NULL, eps));
}
