/* test_batch_norm.c - the four pieces of batch normalization against the reference, and finite
 * differences to second order; PyTorch's numbers with given statistics. Those of training:
 * tests/nn/test_torch.c. */
#include "ops/norm_cases.h"

/* PyTorch 1.13 in float64. */
static const double x43[] = {1, -2, 0.5, 2, 0.25, -1, -0.5, 3, 1.5, 4, -1, 2};
static const double dy43[] = {1, 0.5, -1, -2, 0.25, 3, 0.5, -1.5, 1, 0.75, 2, -0.25};
static const double gamma3[] = {1.5, -0.5, 2}, beta3[] = {0.25, -1, 0.5};

Test(batch_norm, inference_numbers)
{
    const double running[] = {0.5, -0.25, 1, 2, 0.5, 1.25};
    const double y_want[] = {0.780197553066, 0.236201283276, -0.394069634643, 1.8405926592,
                             -1.35320036665, -3.07627853857, -0.810395106132, -3.29580238323,
                             1.39406963464,  3.96138287146,  -0.470199450024, 2.28813926929};
    const double dx_want[] = {1.06039510613,   -0.35320036665, -1.78813926929, -2.12079021226,
                              -0.176600183325, 5.36441780786,  0.530197553066, 1.05960109995,
                              1.78813926929,   0.795296329599, -1.4128014666,  -0.447034817322};
    const double drunning[] = {-0.265098776533, 0.883000916626, -4.91738299054,
                               0.0993623600199, -5.02305910656, 3.75209079287};
    const double dgamma[] = {-0.265098776533, -10.0662104495, -4.69386558188};
    const double dbeta[] = {0.25, 1.25, 2.75};
    for (int d = 0; d < N_PRECISIONS; d++) {
        adj_dtype t = dtypes[d], s = stats_dtype(t);
        double r = rounding[t];
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *in[] = {given(&f, t, (adj_shape){2, {4, 3}}, x43),
                          given(&f, s, (adj_shape){2, {2, 3}}, running),
                          given(&f, s, (adj_shape){1, {3}}, gamma3),
                          given(&f, s, (adj_shape){1, {3}}, beta3)};
        adj_node *dy = given(&f, t, (adj_shape){2, {4, 3}}, dy43), *dx[4];
        adj_node *y = adj_batch_norm(in[0], in[1], in[2], in[3], 1e-3, ADJ_NCHW);
        expect_values(&f, y, "naive", y_want, r, r);
        cr_assert_eq(adj_grad(y, dy, 4, in, dx), ADJ_OK, "%s", adj_graph_message(f.g));
        expect_values(&f, dx[0], "naive", dx_want, r, r);
        expect_values(&f, dx[1], "naive", drunning, r, r);
        expect_values(&f, dx[2], "naive", dgamma, r, r);
        expect_values(&f, dx[3], "naive", dbeta, r, r);
    }
}

/* ---- the reference ---- */

static const adj_shape shapes[] = {
    {2, {7, 5}},        {3, {3, 20, 4}},      {4, {2, 5, 3, 17}},
    {4, {3, 19, 6, 2}}, {5, {2, 3, 2, 3, 4}}, {4, {4, 33, 9, 20}},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

Test(batch_norm, reference)
{
    for (int i = 0; i < SHAPES * N_PRECISIONS * 2; i++) {
        adj_shape s = shapes[i / (N_PRECISIONS * 2)];
        adj_dtype t = dtypes[i / 2 % N_PRECISIONS];
        adj_format format = i % 2 ? ADJ_NCHW : ADJ_NHWC;
        const norm_problem p = {s, 0, eps, format};
        const adj_shape channels = {1, {norm_channels(&p)}};
        double r = rounding[t];
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given_random(&f, t, s, -2, 4), *dy = given_random(&f, t, s, -1, 1);
        adj_node *gamma = given_random(&f, stats_dtype(t), channels, -2, 2);
        adj_node *beta = given_random(&f, stats_dtype(t), channels, -2, 2);
        scoped(norm_answers_free) norm_answers want =
            norm_reference(&p, f.value[0], f.value[2], f.value[3], f.value[1]);
        adj_node *stats = adj_batch_norm_stats(x, format);
        adj_node *sums = adj_batch_norm_grad_sums(x, stats, dy, eps, format);
        expect_values(&f, stats, "naive", want.stats, 1e-6, 1e-6);
        expect_values(&f, adj_batch_norm(x, stats, gamma, beta, eps, format), "naive", want.y, r,
                      r);
        expect_values(&f, sums, "naive", want.sums, 1e-5, 1e-4);
        expect_values(&f, adj_batch_norm_grad(x, stats, gamma, dy, sums, eps, format), "naive",
                      want.dx, r, r);
    }
}

/* A mean far from zero: E[x^2] - E[x]^2 would have no correct digit left. */
Test(batch_norm, variance_does_not_cancel)
{
    enum { M = 4096 };
    scoped(release) double *v = malloc(M * sizeof *v);
    for (int i = 0; i < M; i++)
        v[i] = 1e6 + (i % 2 ? 0.25 : -0.25);
    for (int d = 0; d < 2; d++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given(&f, dtypes[d], (adj_shape){2, {M, 1}}, v);
        expect_exact(&f, adj_batch_norm_stats(x, ADJ_NHWC), (double[]){1e6, 0.0625});
    }
}

/* ---- gradients ---- */

/* The sums are linear in dy, exactly where xhat is an integer. */
Test(batch_norm, sums_adjoint)
{
    const double stats[] = {1, -2, 3, 1, 1, 0.25};
    for (int d = 0; d < N_PRECISIONS; d++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *dy = given_integers(&f, dtypes[d], (adj_shape){3, {4, 5, 3}}, -3, 3);
        adj_node *x = given_integers(&f, dtypes[d], (adj_shape){3, {4, 5, 3}}, -4, 4);
        adj_node *fixed = given(&f, stats_dtype(dtypes[d]), (adj_shape){2, {2, 3}}, stats);
        expect_adjoint(&f, adj_batch_norm_grad_sums(x, fixed, dy, 0, ADJ_NHWC), 1);
    }
}

/* Inputs x, dy, gamma, beta, stats or sums; result: the node whose gradient is checked. */
static adj_node *piece(fixture *f, int result, adj_shape s, adj_format format)
{
    int64_t c = s.dim[format == ADJ_NCHW ? 1 : s.rank - 1];
    adj_shape channels = {1, {c}}, rows = {2, {2, c}};
    adj_node *x = given_random(f, ADJ_F64, s, -1, 2);
    if (result == 0)
        return adj_batch_norm_stats(x, format);
    adj_node *stats = result == 1 || result > 4 ? adj_batch_norm_stats(x, format)
                                                : given_random(f, ADJ_F64, rows, 0.5, 1.5);
    adj_node *gamma = given_random(f, ADJ_F64, channels, 0.5, 2);
    adj_node *dy = given_random(f, ADJ_F64, s, -1, 1);
    adj_node *y =
        adj_batch_norm(x, stats, gamma, given_random(f, ADJ_F64, channels, -1, 1), eps, format);
    switch (result) {
    case 1: /* training */
    case 2: /* running statistics */ return y;
    case 3: return adj_batch_norm_grad_sums(x, stats, dy, eps, format);
    case 4:
        return adj_batch_norm_grad(x, stats, gamma, dy, given_random(f, ADJ_F64, rows, -1, 1), eps,
                                   format);
    default: return gradient_of(y, dy, result == 5 ? x : gamma); /* second order */
    }
}

Test(batch_norm, gradients)
{
    const adj_shape checked[] = {{2, {5, 2}}, {4, {2, 3, 2, 2}}, {3, {3, 2, 2}}};
    for (int i = 0; i < 3 * 7; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *y = piece(&f, i % 7, checked[i / 7], i / 7 == 1 ? ADJ_NCHW : ADJ_NHWC);
        expect_gradient(&f, y, 1e-5, 1e-5, 1e-6);
    }
}

/* Half inputs: the same rules with casts between, first and second order, against float64. */
Test(batch_norm, half_gradients)
{
    for (int i = 0; i < 7; i++) {
        adj_shape s = {3, {6, 4, 2}};
        scoped(release) double *want = NULL;
        for (int d = 0; d < 3; d++) {
            adj_dtype t = (adj_dtype[]){ADJ_F64, ADJ_F16, ADJ_BF16}[d], wide = stats_dtype(t);
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *x = given_integers(&f, t, s, -3, 3), *dy = given_integers(&f, t, s, -2, 2);
            adj_node *fixed = given(&f, wide, (adj_shape){2, {2, 2}}, (double[]){0.5, -0.25, 2, 3});
            adj_node *gamma = given(&f, wide, (adj_shape){1, {2}}, (double[]){1.5, -0.5}), *dx[3];
            adj_node *stats = i < 4 ? fixed : adj_batch_norm_stats(x, ADJ_NHWC);
            adj_node *y = adj_batch_norm(x, stats, gamma, gamma, eps, ADJ_NHWC);
            adj_node *const of[] = {x, fixed, gamma};
            cr_assert_eq(adj_grad(y, dy, 3, of, dx), ADJ_OK, "%s", adj_graph_message(f.g));
            if (i == 3 || i == 6)
                dx[0] = gradient_of(dx[0], dy, x);
            adj_node *r = dx[i % 3];
            if (want == NULL)
                want = evaluate(&f, r, "naive");
            else
                expect_values(&f, r, "naive", want, 4 * rounding[t], 4 * rounding[t]);
        }
    }
}

/* ---- limits ---- */

Test(batch_norm, empty)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given(&f, ADJ_F32, (adj_shape){4, {0, 2, 2, 3}}, NULL);
    adj_node *ones = given(&f, ADJ_F32, (adj_shape){1, {3}}, (double[]){1, 1, 1});
    adj_node *stats = adj_batch_norm_stats(x, ADJ_NHWC), *dx[2];
    adj_node *y = adj_batch_norm(x, stats, ones, ones, eps, ADJ_NHWC);
    expect_exact(&f, stats, (double[6]){0});
    adj_node *const of[] = {x, ones};
    cr_assert_eq(adj_grad(y, x, 2, of, dx), ADJ_OK);
    expect_exact(&f, dx[1], (double[3]){0});
    free(evaluate(&f, dx[0], "naive"));
}

static const char image[] = "f16[2, 3, 3, 4]";

static adj_node *norm(const char *stats, const char *gamma, double epsilon, adj_format format)
{
    return adj_batch_norm(of_type(image), of_type(stats), of_type(gamma), of_type("f32[4]"),
                          epsilon, format);
}

Test(batch_norm, refused)
{
    expect_refused(adj_batch_norm_stats(of_type("f32[4]"), ADJ_NHWC), ADJ_ESHAPE,
                   "batch_norm_stats|rank");
    expect_refused(norm("f32[2, 4]", "f32[3]", eps, ADJ_NHWC), ADJ_ESHAPE,
                   "batch_norm|gamma|shape");
    expect_refused(norm("f32[4]", "f32[4]", eps, ADJ_NHWC), ADJ_ESHAPE, "batch_norm|stats|shape");
    expect_refused(norm("f32[2, 4]", "f16[4]", eps, ADJ_NHWC), ADJ_EDTYPE, "gamma|type");
    expect_refused(norm("f32[2, 4]", "f32[4]", -1, ADJ_NHWC), ADJ_EARG, "epsilon|-1");
    expect_refused(norm("f32[2, 4]", "f32[4]", eps, (adj_format)7), ADJ_EARG, "data_format");
    expect_refused(adj_batch_norm_grad_sums(of_type(image), of_type("f32[2, 4]"), of_type("f16[4]"),
                                            eps, ADJ_NHWC),
                   ADJ_ESHAPE, "dy|shape");
    expect_refused(adj_batch_norm_grad(of_type(image), of_type("f32[2, 4]"), of_type("f32[4]"),
                                       of_type(image), of_type("f32[4]"), eps, ADJ_NHWC),
                   ADJ_ESHAPE, "sums|shape");
    cr_assert_null(adj_batch_norm_stats(NULL, ADJ_NHWC));
    cr_assert_null(adj_batch_norm(NULL, NULL, NULL, NULL, eps, ADJ_NHWC));
}
