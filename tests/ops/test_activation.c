/* test_activation.c - the activations and their gradient ops. */
#include <math.h>

#include "expect.h"
#include "ops/grad.h"

static adj_node *leaky(adj_node *x) { return adj_leaky_relu(x, 0.2); }
static adj_node *leaky_negative(adj_node *x) { return adj_leaky_relu(x, -0.5); }
static adj_node *clip(adj_node *x) { return adj_clip(x, -1, 2.5); }
static adj_node *clip_crossed(adj_node *x) { return adj_clip(x, 2, 1); }
static adj_node *elu(adj_node *x) { return adj_elu(x, 0.75); }
static adj_node *elu_negative(adj_node *x) { return adj_elu(x, -1.5); }
static adj_node *gelu_erf(adj_node *x) { return adj_gelu(x, ADJ_GELU_ERF); }
static adj_node *gelu_tanh(adj_node *x) { return adj_gelu(x, ADJ_GELU_TANH); }
static double relu(double x) { return x > 0 ? x : 0; }
static double relu6(double x) { return fmin(fmax(x, 0), 6); }
static double leaky_value(double x) { return x > 0 ? x : 0.2 * x; }
static double leaky_negative_value(double x) { return x > 0 ? x : -0.5 * x; }
static double sigmoid(double x) { return 0.5 * (1 + tanh(x / 2)); }
static double silu(double x) { return x * sigmoid(x); }
static double hard_sigmoid(double x) { return fmin(fmax(x + 3, 0), 6) / 6; }
static double hard_swish(double x) { return x * hard_sigmoid(x); }
static double clip_value(double x) { return fmin(fmax(x, -1), 2.5); }
static double elu_value(double x) { return x > 0 ? x : 0.75 * (exp(x) - 1); }
static double elu_negative_value(double x) { return x > 0 ? x : -1.5 * (exp(x) - 1); }
static double gelu_erf_value(double x) { return 0.5 * x * (1 + erf(x / sqrt(2))); }
static double softplus(double x) { return log(1 + exp(x)); }
static double gelu_tanh_value(double x)
{
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}
static double one(double x)
{
    (void)x;
    return 1;
}

enum { N = 8 };
/* Values and gradients by PyTorch, in float64, of these x and dy. */
static const double x_values[N] = {-3, -1, -0.5, 0, 0.25, 1, 2.5, 7};
static const double dy_values[N] = {1, -2, 3, 0.5, -1, 2, 4, -3};

static const struct {
    struct {
        adj_node *(*build)(adj_node *x);
        double (*value)(double x);
    } of;
    double y[N], dx[N];
} ops[] = {
    {{adj_relu, relu}, {0, 0, 0, 0, 0.25, 1, 2.5, 7}, {0, 0, 0, 0, -1, 2, 4, -3}},
    {{adj_relu6, relu6}, {0, 0, 0, 0, 0.25, 1, 2.5, 6}, {0, 0, 0, 0, -1, 2, 4, 0}},
    {{leaky, leaky_value},
     {-0.6, -0.2, -0.1, 0, 0.25, 1, 2.5, 7},
     {0.2, -0.4, 0.6, 0.1, -1, 2, 4, -3}},
    {{leaky_negative, leaky_negative_value},
     {1.5, 0.5, 0.25, 0, 0.25, 1, 2.5, 7},
     {-0.5, 1, -1.5, -0.25, -1, 2, 4, -3}},
    {{adj_sigmoid, sigmoid},
     {0.04742587317756678, 0.2689414213699951, 0.3775406687981454, 0.5, 0.5621765008857981,
      0.7310585786300049, 0.9241418199787566, 0.9990889488055994},
     {0.04517665973091214, -0.3932238664829637, 0.7050111366047835, 0.125, -0.24613408273759835,
      0.3932238664829637, 0.28041486618043227, -0.0027306635403653522}},
    {{adj_tanh, tanh},
     {-0.9950547536867305, -0.7615941559557649, -0.46211715726000974, 0, 0.24491866240370913,
      0.7615941559557649, 0.9866142981514303, 0.9999983369439447},
     {0.009866037165440166, -0.8399486832280523, 2.359343198897782, 0.5, -0.940014848806378,
      0.8399486832280523, 0.10636890673264228, -9.978328034606509e-06}},
    {{adj_silu, silu},
     {-0.14227761953270035, -0.2689414213699951, -0.1887703343990727, 0, 0.14054412522144952,
      0.7310585786300049, 2.3103545499468914, 6.993622641639196},
     {-0.08810410601516962, -0.1446589762570265, 0.7801164380920445, 0.25, -0.6237100215701977,
      1.8553410237429737, 4.397604445366107, -3.016381491199356}},
    {{adj_hard_sigmoid, hard_sigmoid},
     {0, 0.3333333333333333, 0.4166666666666667, 0.5, 0.5416666666666666, 0.6666666666666666,
      0.9166666666666666, 1},
     {0, -0.3333333333333333, 0.5, 0.08333333333333333, -0.16666666666666666, 0.3333333333333333,
      0.6666666666666666, 0}},
    {{adj_hard_swish, hard_swish},
     {0, -0.3333333333333333, -0.20833333333333334, 0, 0.13541666666666666, 0.6666666666666666,
      2.2916666666666665, 7},
     {0, -0.33333333333333337, 1, 0.25, -0.5833333333333334, 1.6666666666666665, 5.333333333333334,
      -3}},
    {{clip, clip_value}, {-1, -1, -0.5, 0, 0.25, 1, 2.5, 2.5}, {0, -2, 3, 0.5, -1, 2, 4, 0}},
    {{clip_crossed, one}, {1, 1, 1, 1, 1, 1, 1, 1}, {0}},
    {{elu, elu_value},
     {-0.7126596987241021, -0.47409041912141825, -0.29510200521552493, 0, 0.25, 1, 2.5, 7},
     {0.03734030127589796, -0.5518191617571635, 1.3646939843534251, 0.375, -1, 2, 4, -3}},
    {{elu_negative, elu_negative_value},
     {1.4253193974482041, 0.9481808382428365, 0.5902040104310499, 0, 0.25, 1, 2.5, 7},
     {-0.07468060255179591, 1.103638323514327, -2.7293879687068503, -0.75, -1, 2, 4, -3}},
    {{gelu_erf, gelu_erf_value},
     {-0.00404969409489031, -0.15865525393145702, -0.15426876936299344, 0, 0.14967658142073093,
      0.841344746068543, 2.4844758366855597, 6.999999999991041},
     {-0.01194564720418392, 0.1666309411753727, 0.39751462603151133, 0.25, -0.695373354883636,
      2.166630941175373, 4.15044434363258, -3.0000000001879896}},
    {{adj_softplus, softplus},
     {0.04858735157374206, 0.3132616875182229, 0.4740769841801067, 0.6931471805599453,
      0.8259394198788436, 1.313261687518223, 2.57888973429255, 7.000911466453775},
     {0.04742587317756678, -0.5378828427399902, 1.132622006394436, 0.25, -0.5621765008857981,
      1.46211715726001, 3.696567279915026, -2.997266846416798}},
    {{adj_erf, erf},
     {-0.9999779095030014, -0.8427007929497149, -0.5204998778130465, 0.0, 0.27632639016823696,
      0.8427007929497149, 0.999593047982555, 1.0},
     {0.00013925305194674786, -0.8302149948411894, 2.6363477368063344, 0.5641895835477563,
      -1.0600141293761143, 0.8302149948411894, 0.00871313692141084, -1.774788887400921e-21}},
    {{gelu_tanh, gelu_tanh_value},
     {-0.0036373920817729943, -0.1588080093917233, -0.15428599017485606, 0, 0.149675350701685,
      0.8411919906082768, 2.484915733910001, 6.999999999999997},
     {-0.011584166630969648, 0.16592816769156515, 0.39789028939607296, 0.25, -0.6953540951510604,
      2.165928167691565, 4.151806304850664, -3.0000000000000835}},
};
enum { N_OPS = sizeof ops / sizeof *ops };

/* A gradient in terms of y loses what rounding y lost: the error is absolute. */
Test(activation, literal_numbers)
{
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int k = 0; k < N_OPS; k++) {
            const precision *t = &precisions[p];
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *x = given(&f, t->dtype, (adj_shape){1, {N}}, x_values);
            adj_node *dy = given(&f, t->dtype, (adj_shape){1, {N}}, dy_values);
            adj_node *y = ops[k].of.build(x);
            expect_values(&f, y, "naive", ops[k].y, t->rtol, t->rtol / 8);
            expect_values(&f, gradient_of(y, dy, x), "naive", ops[k].dx, 2 * t->rtol, 4 * t->rtol);
        }
}

Test(activation, every_shape_against_a_loop)
{
    const adj_shape shapes[] = {{0}, {2, {3, 0}}, {4, {2, 3, 2, 5}}, {1, {1025}}, {2, {200, 201}}};
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int s = 0; s < 5; s++)
            for (int k = 0; k < N_OPS; k++)
                expect_function(ops[k].of.build, ops[k].of.value, precisions[p], shapes[s], -8, 8);
}

/* x away from the kinks at -3, 0, 3 and 6 by more than the step; first, second and third
 * derivative. */
Test(activation, derivatives_against_differences)
{
    for (int k = 0; k < N_OPS; k++) {
        const double x_apart[] = {-3.4, -1.2, -0.4, 0.3, 0.9, 2.2, 5.5, 6.5};
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given(&f, ADJ_F64, (adj_shape){2, {2, 4}}, x_apart);
        adj_node *y = ops[k].of.build(x);
        for (int order = 1; order <= 3; order++) {
            expect_gradient(&f, y, 1e-5, 1e-7, 1e-9);
            y = gradient_of(y, f.in[order], x); /* in[order]: dy, of expect_gradient */
        }
    }
}

static adj_node *elu_gradient(adj_node *dy, adj_node *x) { return adj_elu_grad(dy, x, 0.75); }
static adj_node *gelu_erf_gradient(adj_node *dy, adj_node *x)
{
    return adj_gelu_grad(dy, x, ADJ_GELU_ERF);
}
static adj_node *gelu_tanh_gradient(adj_node *dy, adj_node *x)
{
    return adj_gelu_grad(dy, x, ADJ_GELU_TANH);
}

/* The gradient ops on operands of their own, differentiated by both. */
Test(activation, gradient_ops_against_differences)
{
    adj_node *(*const smooth[])(adj_node *, adj_node *) = {
        adj_sigmoid_grad,    adj_tanh_grad, adj_silu_grad,     adj_hard_sigmoid_grad,
        adj_hard_swish_grad, elu_gradient,  gelu_erf_gradient, gelu_tanh_gradient};
    for (size_t k = 0; k < sizeof smooth / sizeof *smooth; k++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *dy = given_random(&f, ADJ_F64, (adj_shape){2, {3, 4}}, -1, 1);
        adj_node *y = given_random(&f, ADJ_F64, (adj_shape){2, {3, 4}}, -2, 2);
        expect_gradient(&f, smooth[k](dy, y), 1e-5, 1e-7, 1e-8);
    }
}

static adj_node *clip_mask(adj_node *dy, adj_node *y) { return adj_clip_grad(dy, y, -0.0, 6); }
static adj_node *leaky_half(adj_node *dy, adj_node *y) { return adj_leaky_relu_grad(dy, y, 0.5); }

/* Where dy passes, on values given by hand; dy is passed on as it is, NaN or not. The hard ones at
 * their bends and beyond, where dy does not matter, and at NaN, where hard_swish's gradient is one.
 */
Test(activation, masks)
{
    static const double y[N] = {-1, -0.0, 0, 1e-7, 5.5, 6, 7, NAN},
                        dy[N] = {2, INFINITY, NAN, 3, -4, 5, NAN, 1};
    static const double hard_x[N] = {-3, -4, -INFINITY, 0, 3, 4, INFINITY, NAN},
                        hard_dy[N] = {1, INFINITY, NAN, 6, 6, 6, 6, 6};
    const struct {
        adj_node *(*build)(adj_node *dy, adj_node *y);
        double want[N];
    } cases[] = {
        {adj_relu_grad, {0, 0, 0, 3, -4, 5, NAN, 0}},
        {adj_relu6_grad, {0, 0, 0, 3, -4, 0, 0, 0}},
        {leaky_half, {1, INFINITY, NAN, 3, -4, 5, NAN, 0.5}},
        {clip_mask, {0, INFINITY, NAN, 3, -4, 5, 0, 0}},
        {adj_hard_sigmoid_grad, {0, 0, 0, 1, 0, 0, 0, 0}},
        {adj_hard_swish_grad, {0, 0, 0, 3, 6, 6, 6, NAN}},
    };
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int k = 0; k < 6; k++) {
            scoped(fixture_free) fixture f = fixture_new();
            const adj_dtype dtype = precisions[p].dtype;
            adj_node *d = given(&f, dtype, (adj_shape){1, {N}}, k < 4 ? dy : hard_dy);
            adj_node *features = given(&f, dtype, (adj_shape){1, {N}}, k < 4 ? y : hard_x);
            expect_exact(&f, cases[k].build(d, features), cases[k].want);
        }
}

/* 0.1 is compared as it is: bf16's and f16's nearest numbers to it lie above and below. */
Test(activation, clip_compares_with_the_bound_as_given)
{
    const double x[] = {0.10009765625, 0.0999755859375}, dy[] = {1, 1};
    for (int p = 0; p < N_PRECISIONS; p++) {
        adj_dtype dtype = precisions[p].dtype;
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *at = given(&f, dtype, (adj_shape){1, {2}}, x),
                 *d = given(&f, dtype, (adj_shape){1, {2}}, dy);
        const double *v = f.value[0], mask[] = {v[0] <= 0.1, v[1] <= 0.1},
                     clipped[] = {fmin(v[0], 0.1), fmin(v[1], 0.1)};
        expect_values(&f, adj_clip(at, -INFINITY, 0.1), "naive", clipped, precisions[p].rtol / 2,
                      0);
        expect_exact(&f, adj_clip_grad(d, at, -INFINITY, 0.1), mask);
    }
}

/* Far from 0, where squares are infinite in f16: gelu is x or 0, its slope 1 or 0, and its second
 * derivative 0. */
Test(activation, gelu_far_from_zero)
{
    const double x[] = {-60000, -100, 100, 60000}, dy[] = {2, 2, 2, 2};
    const double y[] = {0, 0, 100, 60000}, slope[] = {0, 0, 2, 2}, none[4] = {0};
    for (int p = 0; p < N_PRECISIONS; p++)
        for (adj_gelu_form form = ADJ_GELU_ERF; form <= ADJ_GELU_TANH; form++) {
            const adj_shape four = {1, {4}};
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *at = given(&f, precisions[p].dtype, four, x);
            adj_node *d = given(&f, precisions[p].dtype, four, dy);
            adj_node *n = adj_gelu(at, form), *dx = gradient_of(n, d, at);
            expect_values(&f, n, "naive", y, precisions[p].rtol, 0);
            expect_exact(&f, dx, slope);
            expect_exact(&f, gradient_of(dx, d, at), none);
        }
}

/* The gradient ops are linear in dy. */
Test(activation, adjoint_on_integers)
{
    adj_node *(*const linear[])(adj_node *, adj_node *) = {adj_relu_grad, adj_relu6_grad,
                                                           leaky_half, clip_mask};
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int k = 0; k < 4; k++) {
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *dy = given_integers(&f, precisions[p].dtype, (adj_shape){2, {4, 5}}, -3, 3);
            adj_node *y = given_integers(&f, precisions[p].dtype, (adj_shape){2, {4, 5}}, -8, 8);
            expect_adjoint(&f, linear[k](dy, y), 1);
        }
}

static adj_node *clip_below(adj_node *x) { return adj_clip(x, 3, INFINITY); }

Test(activation, nan_and_infinity)
{
    const double x[] = {NAN, INFINITY, -INFINITY, 1000, -1000};
    const struct {
        adj_node *(*build)(adj_node *x);
        double want[5];
    } cases[] = {
        {adj_relu, {NAN, INFINITY, 0, 1000, 0}},
        {adj_relu6, {NAN, 6, 0, 6, 0}},
        {adj_sigmoid, {NAN, 1, 0, 1, 0}},
        {adj_tanh, {NAN, 1, -1, 1, -1}},
        {adj_hard_sigmoid, {NAN, 1, 0, 1, 0}},
        {adj_hard_swish, {NAN, INFINITY, 0, 1000, 0}},
        {clip, {NAN, 2.5, -1, 2.5, -1}},
        {clip_below, {NAN, INFINITY, 3, 1000, 3}},
        {elu, {NAN, INFINITY, -0.75, 1000, -0.75}},
        {gelu_erf, {NAN, INFINITY, 0, 1000, 0}},
        {gelu_tanh, {NAN, INFINITY, 0, 1000, 0}},
        {adj_softplus, {NAN, INFINITY, 0, 1000, 0}},
        {adj_erf, {NAN, 1, -1, 1, -1}},
    };
    for (int p = 0; p < N_PRECISIONS; p++)
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *at = given(&f, precisions[p].dtype, (adj_shape){1, {5}}, x);
            expect_exact(&f, cases[k].build(at), cases[k].want);
        }
}

Test(activation, refusals)
{
    expect_refused(adj_relu_grad(of_type("f32[4]"), of_type("f16[4]")), ADJ_EDTYPE,
                   "relu_grad|f32|f16");
    expect_refused(adj_tanh_grad(of_type("f32[4]"), of_type("f32[4, 1]")), ADJ_ESHAPE,
                   "tanh_grad|[4]|[4, 1]");
    expect_refused(adj_relu(of_type("i32[4]")), ADJ_EDTYPE, "relu|i32");
    expect_refused(adj_leaky_relu(of_type("f32[4]"), INFINITY), ADJ_EARG, "leaky_relu|alpha|inf");
    expect_refused(adj_clip(of_type("f32[4]"), 0, NAN), ADJ_EARG, "clip|max|nan");
    expect_refused(adj_gelu(of_type("f32[4]"), (adj_gelu_form)2), ADJ_EARG, "gelu|form|2");
    for (int k = 0; k < N_OPS; k++)
        cr_assert_null(ops[k].of.build(NULL));
    cr_assert_null(adj_silu_grad(NULL, NULL));
}
