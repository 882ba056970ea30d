/* test_layer_norm.c - layer norm against PyTorch's numbers, over one, two and all axes; as ConvNeXt
 * writes it; and what is refused. Its ops are group norm's, whose test has the rest. */
#include "ops/norm_cases.h"

/* torch.nn.functional.layer_norm, PyTorch 1.13 in float64, of [2, 3, 4] over the last 1, 2 and 3
 * axes. */
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
static const double y_of[3][24] = {
    {-1.65139956235, 0.963501641188,  0.743798030574, -2.51550492356, -1.72894907858,
     3.30160754094,  1.0927708536,    0.985843719602, -1.6477296769,  3.02269661957,
     0.863645739896, -0.170452742328, -1.96448209034, 0.684263064603, 2.6000798582,
     3.02002054886,  -1.01115194991,  1.39260311698,  2.1068068033,   -1.07981006262,
     -2.61110973318, 0.754567534954,  0.917033722983, 1.30756334183},
    {0.048410787183,  1.4080143642,    -3.85649345149,  1.70114490917,   0.351016758231,
     -3.79332699603,  -0.848154485303, 1.89567666519,   -0.613995211934, 5.05586114608,
     -0.592429939447, 1.90426348398,   -0.466679107347, 1.96252883976,   -0.524799818144,
     0.762365979944,  -0.402239690065, -2.86478549439,  -1.34586330406,  -0.22933348488,
     -0.745866696976, 1.54580562455,   0.133436251689,  0.676988614517},
    {-2.58702864765,  1.16933155375,   -1.98157731484,  -0.662600097693, 1.0432741833,
     -1.20608011573,  1.49884582121,   0.782228655165,  1.42650287604,   -2.65471446285,
     -1.1335999474,   0.932520019539,  1.02127993537,   2.62592014729,   3.09512011723,
     -0.340119929361, -0.120851347841, -0.918314598116, -4.60277172058,  -0.325200195385,
     -2.08516015631,  -1.44842851238,  -0.4016513779,   -0.414399977456}};
static const double dx_of[3][24] = {
    {1.26713221498,   4.78871297138,    -2.44078223945,   -3.61506294691,  1.19520294529,
     -0.140809236537, -0.0948743839764, -0.959519324777,  -0.231194646346, -1.81391069873,
     -1.97381883204,  4.01892417712,    -0.0120999573559, 1.49357209927,   -1.03110869351,
     -0.4503634484,   0.10939645147,    1.65984971917,    -0.856413099769, -0.912833070874,
     0.228680216146,  -0.400521762612,  0.19928004382,    -0.0274384973542},
    {0.562649113329,  0.472078683123,   -0.161031970278, 1.4237501906,   -0.700443496768,
     3.08014371491,   -0.0392284977683, -1.20461092621,  0.380171234668, -3.00264934784,
     -0.139612715924, -0.671215981838,  0.272213002433,  0.817337554967, -0.467482731504,
     0.421474554379,  -0.203610268441,  -1.7476058616,   0.287569147428, 0.682673342485,
     0.532652985008,  0.0370293479461,  -0.518754193213, -0.113496879884},
    {-0.579968973886, -0.646670303186, 0.0282752705273,  2.19892582213,   -0.634636016183,
     1.96387010308,   0.242715805144,  -0.485871309295,  0.673899134094,  2.68375069181,
     -0.244034439386, -1.7274538737,   -0.0196106209077, 1.15757287391,   -0.47025800443,
     -0.492401203581, 0.205587442566,  -2.92742918438,   -0.997590001113, 0.203662067712,
     0.348073511743,  -0.145457883649, -0.415842218709,  0.0808913096828}};
static const double dgamma_of[3][24] = {
    {0.87161483, -4.22367536, -1.91675283, 0.5851044},
    {1.05852697, -0.03703772, -0.73760009, -1.10162923, 0.67119698, -1.13075791, 0.96742653,
     -0.87284036, -0.89071664, -3.52740877, -1.73090911, -0.88517511},
    {1.4240573,  -0.53151434, 0,           -0.98280011, 0.63781721,  -1.47420016,
     0.49942291, -0.9126001,  0.15444002,  -1.65471446, -0.21060002, -0.15444002,
     0,          0.68796007,  -1.09512012, -0.56561149, 0.18853716,  3.1128689,
     0.85242866, -0.36504004, -0.73008008, -0.05014286, -1.0650344,  0.14040002}};
static const double dbeta_of[3][24] = {
    {-3.625, -0.375, 1, 1.5},
    {-1.25, 1.5, -0.75, 2.5, -1, 0.125, 0.25, 0.625, -1.375, -2, 1.5, -1.625},
    {-1.25, 0.625, 0,     1.75, -0.75, -1.875, -0.375, 0.875, -0.875, -1.875, 0.375, -1.375,
     0,     0.875, -0.75, 0.75, -0.25, 2,      0.625,  -0.25, -0.5,   -0.125, 1.125, -0.25}};

Test(layer_norm, torch_numbers)
{
    for (int i = 0; i < 3 * N_PRECISIONS; i++) {
        const int k = i / N_PRECISIONS;
        const adj_dtype t = dtypes[i % N_PRECISIONS], s = stats_dtype(t);
        const adj_shape shape = {3, {2, 3, 4}};
        const adj_shape axes[] = {{1, {4}}, {2, {3, 4}}, {3, {2, 3, 4}}};
        const double r = rounding[t];
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given(&f, t, shape, x_given), *dy = given(&f, t, shape, dy_given), *dx[3];
        adj_node *gamma = given(&f, s, axes[k], gamma_of[k]);
        adj_node *beta = given(&f, s, axes[k], beta_of[k]);
        adj_node *const of[] = {x, gamma, beta};
        adj_node *y = adj_layer_norm(x, gamma, beta, eps);
        expect_values(&f, y, "naive", y_of[k], r, r);
        cr_assert_eq(adj_grad(y, dy, 3, of, dx), ADJ_OK, "%s", adj_graph_message(f.g));
        expect_values(&f, dx[0], "naive", dx_of[k], r, 2 * r);
        expect_values(&f, dx[1], "naive", dgamma_of[k], 2e-6, 2e-6);
        expect_values(&f, dx[2], "naive", dbeta_of[k], 2e-6, 2e-6);
    }
}

/* ConvNeXt: each pixel of an NHWC image over its channels; a slow loop, on every backend. */
Test(layer_norm, channels_of_a_pixel)
{
    enum { PIXELS = 2 * 5 * 3, C = 24 };
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_random(&f, ADJ_F32, (adj_shape){4, {2, 5, 3, C}}, -1, 5);
    adj_node *gamma = given_random(&f, ADJ_F32, (adj_shape){1, {C}}, -2, 2);
    adj_node *beta = given_random(&f, ADJ_F32, (adj_shape){1, {C}}, -2, 2);
    double want[PIXELS * C];
    for (int p = 0; p < PIXELS; p++) {
        const double *v = f.value[0] + p * C;
        double mean = 0, var = 0;
        for (int c = 0; c < C; c++)
            mean += v[c] / C;
        for (int c = 0; c < C; c++)
            var += (v[c] - mean) * (v[c] - mean) / C;
        for (int c = 0; c < C; c++)
            want[p * C + c] = (v[c] - mean) / sqrt(var + 1e-6) * f.value[1][c] + f.value[2][c];
    }
    adj_node *y = adj_layer_norm(x, gamma, beta, 1e-6);
    expect_values(&f, y, "naive", want, 1e-6, 1e-6);
    expect_values(&f, y, "onednn", want, 3e-6, 3e-6);
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
    expect_refusal(&f, norm(&f, "f32[4]", "f32[5]", eps), ADJ_ESHAPE, "layer_norm", "gamma",
                   "got [4]", "expected [5]", NULL);
    expect_refusal(&f, norm(&f, "f32[5]", "f32[5, 1]", eps), ADJ_ESHAPE, "layer_norm", "beta",
                   "got [5, 1]", "expected [5]", NULL);
    expect_refusal(&f, norm(&f, "f32[]", "f32[]", eps), ADJ_ESHAPE, "layer_norm", "gamma", "rank",
                   "got []", NULL);
    expect_refusal(&f, norm(&f, "f32[1, 2, 3, 5]", "f32[1, 2, 3, 5]", eps), ADJ_ESHAPE,
                   "layer_norm", "gamma", "rank", "1 to 3", NULL);
    expect_refusal(&f, norm(&f, "f64[5]", "f32[5]", eps), ADJ_EDTYPE, "gamma", "type", "f64", "f32",
                   NULL);
    expect_refusal(&f, norm(&f, "f32[5]", "f32[5]", (double)NAN), ADJ_EARG, "epsilon", "nan", NULL);
    cr_assert_null(adj_layer_norm(NULL, NULL, NULL, eps));
}
