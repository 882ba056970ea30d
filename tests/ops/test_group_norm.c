/* test_group_norm.c - group norm and its two gradients against PyTorch's numbers to second order,
 * the reference, and finite differences. */
#include "ops/norm_cases.h"

/* ---- torch.nn.functional.group_norm of two groups, PyTorch 1.13 in float64; [2, 2, 3, 4] in NHWC
 * ---- */

static const adj_shape nhwc = {4, {2, 2, 3, 4}};
static const double gamma4[] = {1.5, -0.5, 2, 0.25}, beta4[] = {0.25, -1, 0.5, 3};
static const double x_given[] = {
    0.5,   -0.875, 1.125,  -1.625, -1.5,   -1.25,  0.875,  -1.625, 2,      -0.375, -1.75, -1.375,
    1.375, 1.25,   -1.5,   -0.125, -1.375, 1.375,  -1.625, -1.125, -0.25,  -1.625, 1.125, -1.625,
    -0.25, -1.75,  -1,     0.25,   1.25,   -0.875, -1.125, 0.375,  -0.625, -1.25,  -0.5,  0.875,
    -1.25, -1.5,   -1.625, -0.375, 1.875,  1.375,  0.5,    1.625,  1.625,  0.875,  0.375, -0.125};
static const double dy_given[] = {
    -0.625, -0.125, -1.375, 0.375,  1.875, 0.625,  1.5,    0.25, -1.5,  -1.125, 2,     1.25,
    -0.75,  0.625,  -0.875, 1.875,  1.25,  -1.75,  -1.5,   0.5,  0.625, 0.75,   1.875, 1.625,
    -1.5,   -1.375, 0.125,  1.75,   -1.5,  -1.625, 0.375,  1.5,  0.25,  1,      0.75,  -1.875,
    1.625,  0.75,   -0.75,  -1.125, 1.875, -1.625, -0.375, 0.25, -1,    -0.125, 1.125, 1.125};
static const double torch_y[] = {
    0.923037680397,  -0.67594482055,  3.8674712509,    2.81034845977,   -1.46998518324,
    -0.526380891572, 3.42340910793,   2.81034845977,   2.71780482812,   -0.875363392519,
    -1.23924339332,  2.86585622764,   1.96998518324,   -1.52347375142,  -0.795181250348,
    3.143395067,     -1.32042125426,  -1.57332839441,  -1.01721232184,  2.92136399551,
    0.0256541065343, -0.376816962595, 3.8674712509,    2.81034845977,   0.00800227870142,
    -0.338539561784, -1.63379023408,  3.08890792642,   1.75038587205,   -0.677336371602,
    -1.91829559862,  3.12447109699,   -0.427593619636, -0.532137738823, -0.495768775904,
    3.26672377926,   -1.15358678353,  -0.435338650303, -3.0563170568,   2.91109207358,
    2.47637903595,   -1.54852816828,  1.78027414045,   3.48010280267,   2.18598177039,
    -1.35492999124,  1.4957687759,    2.98221841472};
static const double torch_dx[] = {
    -0.58550128039,  -0.479116904141, -3.49372957354,  0.0503792128641, 1.40026470042,
    -0.966778374357, 1.70557646598,   0.0226253289281, -0.878314334181, 0.171098389481,
    3.56591040251,   0.152065005123,  -0.295153447422, 0.290112374058,  -1.63339563701,
    -0.172122551661, 0.715289592955,  1.30019512833,   -2.6972552968,   -0.107049693786,
    0.533070784856,  -1.20516662961,  2.27907828516,   0.327918052224,  -1.8327452596,
    0.314144401616,  0.153495488204,  0.174068250863,  -1.70485634061,  0.485545359547,
    0.741786843367,  0.0836612836519, 0.168063369561,  -0.562817299655, 1.49889980662,
    -0.953666825984, 1.71196128055,   -0.487333030967, -1.74163893323,  -0.547481541827,
    2.26879379401,   0.677378738034,  -1.21589348287,  -0.464776682777, -1.09208957974,
    0.0539545672536, 2.21745151773,   0.0540942762475};
static const double torch_dgamma[] = {-8.55992658796, -3.30415206534, 3.69321411483, -1.2904666701};
static const double torch_dbeta[] = {0.625, -4, 2.875, 7.5};
static const double e_given[] = {
    1.875, -1.375, -0.75,  1.5,    1.125,  0.125, -1,    1.375,  0.125, 1.25,   0.75,   1,
    -0.25, -0.875, -1.375, -0.625, -0.875, -0.25, -0.25, -2,     1.875, -0.625, 0,      0.25,
    -2,    -0.875, 1.25,   0.875,  0.5,    -1,    2,     -1.625, 1.625, 1.125,  1.125,  1.125,
    1.125, -1.25,  1.75,   1.125,  -1.625, -0.5,  -1.5,  -0.375, 1.5,   -0.75,  -1.125, 0.625};
static const double of_x[] = {
    0.804587981432,  -0.696846533269,  -2.18261725659,   -0.053713705809,  0.60283670388,
    0.0983534022132, -0.0400405528379, -0.0175512788737, -0.218122497645,  0.568134770656,
    1.58345106777,   0.0169384821455,  -0.351513626636,  -0.659172815111,  0.320492619299,
    -0.257868582941, -0.408289393902,  -0.366713619913,  -0.40876773916,   0.881772103785,
    0.866768963122,  -0.240023334828,  -0.352671134552,  0.510575977767,   -0.213658235244,
    -0.181642035039, -0.0436762754661, 0.106224192254,   0.116085423364,   -0.12204308725,
    0.358062071231,  0.418558675023,   0.113346910491,   0.00643945462528, 1.20527184513,
    -0.901494198105, 0.0591344258763,  -0.21324157129,   -1.8482306041,    -0.612857875242,
    0.0743056342686, 0.0954797428474,  -0.752635574797,  -0.189782212709,  0.243947602977,
    0.0218457343727, 2.24491073252,    0.0156492242593};
static const double of_gamma[] = {0.639658781957, 1.38923223824, 3.24197396669, -4.53379833401};
static const double of_dy[] = {
    2.02516420478,    0.615940985188,   0.0638403876375, 0.284618003658,   1.15058062083,
    0.0162602699094,  -0.542354086717,  0.256864119722,  -0.0858307933407, -0.429106518493,
    0.863691434648,   0.193869009336,   -0.527397583424, 0.424597409646,   -2.74870444927,
    -0.0655987747206, -1.24386724218,   0.175799194475,  -0.831490971569,  -0.451957663706,
    2.03371420099,    0.313963128494,   1.39602681657,   0.00707916429801, -2.12308590937,
    0.285553439998,   -0.0541896922578, 0.203782537063,  0.821248851854,   0.32610479705,
    1.39904588677,    -0.475756298268,  2.07758391482,   -0.493323946562,  0.676491376155,
    0.433531758348,   1.47997183968,    0.428509733575,  -0.185151275278,  0.116285998049,
    -1.63031036138,   0.112325567192,   -3.26774841336,  0.197121167712,   1.9929284405,
    0.213609334116,   -2.66802892796,   0.0374824678371};

typedef struct {
    fixture f;
    adj_node *x, *dy, *gamma, *beta, *y;
} torch_case;

/* Returns a case with the image in either format; y and gradients are always NHWC. */
static torch_case torch_case_of(adj_dtype t, int64_t groups, adj_format format)
{
    torch_case c = {.f = fixture_new()};
    c.x = given(&c.f, t, nhwc, x_given);
    c.dy = given(&c.f, t, nhwc, dy_given);
    c.gamma = given(&c.f, stats_dtype(t), (adj_shape){1, {4}}, gamma4);
    c.beta = given(&c.f, stats_dtype(t), (adj_shape){1, {4}}, beta4);
    adj_node *x = format == ADJ_NCHW ? adj_transpose(c.x, 4, (int[]){0, 3, 1, 2}) : c.x;
    c.y = adj_group_norm(x, c.gamma, c.beta, groups, eps, format);
    if (format == ADJ_NCHW)
        c.y = adj_transpose(c.y, 4, (int[]){0, 2, 3, 1});
    return c;
}

/* The reference has PyTorch's numbers. */
Test(group_norm, torch_reference)
{
    const norm_problem p = {nhwc, 2, eps, ADJ_NHWC};
    scoped(norm_answers_free) norm_answers got =
        norm_reference(&p, x_given, gamma4, beta4, dy_given);
    expect_close(got.y, torch_y, 48, 1e-11, 1e-11, "y");
    expect_close(got.dx, torch_dx, 48, 1e-11, 1e-11, "dx");
    expect_close(got.sums, torch_dgamma, 4, 1e-11, 1e-11, "dgamma");
    expect_close(got.sums + 4, torch_dbeta, 4, 0, 0, "dbeta");
}

Test(group_norm, torch_second_order)
{
    for (int i = 0; i < N_PRECISIONS * 2; i++) {
        const adj_dtype t = dtypes[i / 2];
        const double r = 2 * rounding[t], wide = rounding[stats_dtype(t)];
        torch_case c = torch_case_of(t, 2, i % 2 ? ADJ_NCHW : ADJ_NHWC);
        adj_node *e = given(&c.f, t, nhwc, e_given), *second[3];
        adj_node *const of[] = {c.x, c.gamma, c.dy};
        adj_node *dx = gradient_of(c.y, c.dy, c.x);
        cr_assert_eq(adj_grad(dx, e, 3, of, second), ADJ_OK, "%s", adj_graph_message(c.f.g));
        expect_values(&c.f, second[0], "naive", of_x, r, r);
        expect_values(&c.f, second[1], "naive", of_gamma, wide, wide);
        expect_values(&c.f, second[2], "naive", of_dy, r, r);
        fixture_free(&c.f);
    }
}

/* ---- the reference ---- */

static const struct {
    adj_shape s;
    int64_t groups;
} shapes[] = {
    {{4, {2, 2, 3, 4}}, 1}, {{4, {2, 2, 3, 4}}, 2},     {{4, {2, 4, 2, 4}}, 4},
    {{2, {7, 6}}, 3},       {{3, {3, 6, 6}}, 2},        {{4, {2, 6, 3, 12}}, 3},
    {{4, {3, 4, 5, 4}}, 4}, {{5, {2, 4, 2, 3, 4}}, 1},  {{4, {2, 8, 9, 24}}, 8},
    {{4, {1, 1, 1, 1}}, 1}, {{4, {1, 32, 17, 32}}, 16},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

Test(group_norm, reference)
{
    for (int i = 0; i < SHAPES * N_PRECISIONS * 2; i++) {
        adj_shape s = shapes[i / (N_PRECISIONS * 2)].s;
        const norm_problem p = {s, shapes[i / (N_PRECISIONS * 2)].groups, eps,
                                i % 2 ? ADJ_NCHW : ADJ_NHWC};
        const adj_shape channels = {1, {norm_channels(&p)}};
        adj_dtype t = dtypes[i / 2 % N_PRECISIONS];
        double r = rounding[t];
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given_random(&f, t, s, -2, 4), *dy = given_random(&f, t, s, -1, 1);
        adj_node *gamma = given_random(&f, stats_dtype(t), channels, -2, 2);
        adj_node *beta = given_random(&f, stats_dtype(t), channels, -2, 2);
        scoped(norm_answers_free) norm_answers want =
            norm_reference(&p, f.value[0], f.value[2], f.value[3], f.value[1]);
        adj_node *const of[] = {x, gamma, beta};
        adj_node *y = adj_group_norm(x, gamma, beta, p.groups, eps, p.format), *dx[3];
        expect_values(&f, y, "naive", want.y, r, r);
        cr_assert_eq(adj_grad(y, dy, 3, of, dx), ADJ_OK, "%s", adj_graph_message(f.g));
        expect_values(&f, dx[0], "naive", want.dx, r, r);
        expect_values(&f, dx[1], "naive", want.sums, 2e-6, 2e-6);
        expect_values(&f, dx[2], "naive", want.sums + norm_channels(&p), 2e-6, 2e-6);
    }
}

/* ---- numbers that are hard ---- */

/* A mean far from zero: E[x^2] - E[x]^2 would have no correct digit left, and a mean rounded to f32
 * two. 1e6 + 1/4 and 1e6 - 1/4 are floats. */
Test(group_norm, large_mean)
{
    enum { PIXELS = 1024, C = 4 };
    const double one[] = {1, 1, 1, 1}, zero[] = {0, 0, 0, 0};
    const norm_problem p = {{3, {1, PIXELS, C}}, 1, eps, ADJ_NHWC};
    double v[PIXELS * C];
    for (int i = 0; i < PIXELS * C; i++)
        v[i] = 1e6 + (i % 3 == 0 ? 0.5 : -0.25);
    scoped(norm_answers_free) norm_answers want = norm_reference(&p, v, one, zero, v);
    for (int d = 0; d < 2; d++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given(&f, dtypes[d], p.s, v);
        adj_node *gamma = given(&f, dtypes[d], (adj_shape){1, {C}}, one);
        adj_node *beta = given(&f, dtypes[d], (adj_shape){1, {C}}, zero);
        adj_node *y = adj_group_norm(x, gamma, beta, 1, eps, ADJ_NHWC);
        expect_values(&f, y, "naive", want.y, 1e-6, 0);
        expect_values(&f, y, "onednn", want.y, 1e-6, 0);
    }
}

/* A constant group: xhat is 0, y is beta, and dx is (w - mean(w)) / sqrt(epsilon). */
Test(group_norm, no_variance)
{
    const double v[] = {3, 3, -7, -7, 3, 3, -7, -7}, dy[] = {1, 2, 4, -4, 3, 2, 0, 0};
    const double gamma[] = {1, 2, 3, 1}, beta[] = {5, 6, 7, 8};
    const double y[] = {5, 6, 7, 8, 5, 6, 7, 8};
    const double dx[] = {-4, 2, 20, -12, 0, 2, -4, -4}; /* epsilon: 1/4 */
    const double sums[] = {0, 0, 0, 0, 4, 4, 4, -4};
    for (int d = 0; d < N_PRECISIONS; d++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_dtype t = dtypes[d], s = stats_dtype(t);
        adj_shape shape = {3, {1, 2, 4}};
        adj_node *x = given(&f, t, shape, v), *in = given(&f, t, shape, dy);
        adj_node *g = given(&f, s, (adj_shape){1, {4}}, gamma);
        adj_node *b = given(&f, s, (adj_shape){1, {4}}, beta);
        expect_values(&f, adj_group_norm(x, g, b, 2, 0.25, ADJ_NHWC), "onednn", y, 0, 0);
        expect_values(&f, adj_group_norm_grad(x, g, in, 2, 0.25, ADJ_NHWC), "onednn", dx, 0, 0);
        expect_values(&f, adj_group_norm_grad_sums(x, in, 2, 0.25, ADJ_NHWC), "onednn", sums, 0, 0);
    }
}

/* A NaN or an infinity makes its own group NaN, and no other. */
Test(group_norm, not_finite)
{
    static const char *const backends[] = {"naive", "onednn"};
    for (int i = 0; i < 2 * 2 * N_PRECISIONS; i++) {
        double v[16];
        for (int k = 0; k < 16; k++)
            v[k] = k % 5;
        v[4] = i % 2 ? (double)NAN : (double)INFINITY; /* image 0, channel 0 */
        scoped(fixture_free) fixture f = fixture_new();
        adj_dtype t = dtypes[i / 4];
        adj_node *x = given(&f, t, (adj_shape){3, {2, 2, 4}}, v);
        adj_node *g = given(&f, stats_dtype(t), (adj_shape){1, {4}}, gamma4);
        adj_node *const results[] = {adj_group_norm(x, g, g, 2, eps, ADJ_NHWC),
                                     adj_group_norm_grad(x, g, x, 2, eps, ADJ_NHWC)};
        for (int r = 0; r < 2; r++) {
            scoped(release) double *y = evaluate(&f, results[r], backends[i / 2 % 2]);
            for (int k = 0; k < 16; k++)
                cr_expect_eq(isnan(y[k]) != 0, k < 8 && k % 4 < 2, "%d: %g", k, y[k]);
        }
    }
}

/* ---- gradients ---- */

/* Inputs x, gamma, dy, beta; result: the node whose gradient is checked. */
static adj_node *piece(fixture *f, int result, const norm_problem *p)
{
    adj_node *x = given_random(f, ADJ_F64, p->s, -1, 2);
    adj_node *gamma = given_random(f, ADJ_F64, (adj_shape){1, {norm_channels(p)}}, 0.5, 2);
    adj_node *dy = given_random(f, ADJ_F64, p->s, -1, 1);
    adj_node *beta = given_random(f, ADJ_F64, (adj_shape){1, {norm_channels(p)}}, -1, 1);
    adj_node *y = adj_group_norm(x, gamma, beta, p->groups, eps, p->format);
    switch (result) {
    case 0: return y;
    case 1: return adj_group_norm_grad_sums(x, dy, p->groups, eps, p->format);
    case 2: return adj_group_norm_grad(x, gamma, dy, p->groups, eps, p->format);
    case 3: return gradient_of(y, dy, gamma);                  /* second order */
    default: return gradient_of(gradient_of(y, dy, x), dy, x); /* third order */
    }
}

Test(group_norm, gradients)
{
    const norm_problem checked[] = {
        {{2, {3, 6}}, 2, eps, ADJ_NHWC},
        {{4, {2, 4, 2, 2}}, 2, eps, ADJ_NCHW},
        {{3, {2, 3, 4}}, 1, eps, ADJ_NHWC},
        {{3, {2, 4, 3}}, 4, eps, ADJ_NCHW},
    };
    for (int i = 0; i < 4 * 5; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *y = piece(&f, i % 5, &checked[i / 5]);
        expect_gradient(&f, y, 1e-5, 1e-5, 1e-6);
    }
}

/* The sums are linear in dy, exactly where xhat is an integer: of groups of +1 and -1 without
 * epsilon. */
Test(group_norm, sums_adjoint)
{
    double v[2 * 6 * 4];
    for (int i = 0; i < 2 * 6 * 4; i++)
        v[i] = (i / 4 + i) % 2 ? 1 : -1;
    for (int d = 0; d < N_PRECISIONS; d++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *dy = given_integers(&f, dtypes[d], (adj_shape){3, {2, 6, 4}}, -3, 3);
        adj_node *x = given(&f, dtypes[d], (adj_shape){3, {2, 6, 4}}, v);
        expect_adjoint(&f, adj_group_norm_grad_sums(x, dy, 2, 0, ADJ_NHWC), 1);
    }
}

/* ---- limits ---- */

Test(group_norm, empty)
{
    const adj_shape empty[] = {{4, {0, 2, 2, 3}}, {4, {2, 0, 2, 3}}};
    for (int i = 0; i < 2; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given(&f, ADJ_F32, empty[i], NULL), *dx[3];
        adj_node *ones = given(&f, ADJ_F32, (adj_shape){1, {3}}, (double[]){1, 1, 1});
        adj_node *zeros = given(&f, ADJ_F32, (adj_shape){1, {3}}, (double[]){0, 0, 0});
        adj_node *y = adj_group_norm(x, ones, zeros, 3, eps, ADJ_NHWC);
        adj_node *const of[] = {x, ones, zeros};
        free(evaluate(&f, y, "onednn"));
        cr_assert_eq(adj_grad(y, x, 3, of, dx), ADJ_OK);
        expect_values(&f, dx[1], "onednn", (double[3]){0}, 0, 0);
        expect_values(&f, dx[2], "onednn", (double[3]){0}, 0, 0);
        free(evaluate(&f, dx[0], "onednn"));
        free(evaluate(&f, gradient_of(dx[0], x, x), "naive"));
    }
}

static adj_node *norm(const char *x, const char *gamma, const char *beta, int64_t groups)
{
    return adj_group_norm(of_type(x), of_type(gamma), of_type(beta), groups, eps, ADJ_NHWC);
}

Test(group_norm, refused)
{
    const char *const image = "f16[2, 3, 3, 4]";
    expect_refused(norm("f32[4]", "f32[4]", "f32[4]", 1), ADJ_ESHAPE, "group_norm|rank|[4]");
    expect_refused(norm(image, "f32[3]", "f32[4]", 1), ADJ_ESHAPE, "gamma|shape|[3]|[4]");
    expect_refused(norm(image, "f32[4]", "f32[3]", 1), ADJ_ESHAPE, "beta|shape|[3]|[4]");
    expect_refused(norm(image, "f16[4]", "f32[4]", 1), ADJ_EDTYPE, "gamma|type|f16|f32");
    expect_refused(
        adj_group_norm(of_type(image), of_type("f32[4]"), of_type("f32[4]"), 1, -1, ADJ_NHWC),
        ADJ_EARG, "epsilon|-1");
    expect_refused(
        adj_group_norm(of_type(image), of_type("f32[4]"), of_type("f32[4]"), 1, eps, (adj_format)7),
        ADJ_EARG, "data_format");
    expect_refused(norm(image, "f32[4]", "f32[4]", 3), ADJ_EARG, "groups|got 3|divisor of the 4");
    expect_refused(
        adj_group_norm_grad(of_type(image), of_type("f32[4]"), of_type(image), 0, eps, ADJ_NHWC),
        ADJ_EARG, "groups|got 0");
    expect_refused(
        adj_group_norm_grad(of_type(image), of_type("f32[4]"), of_type("f16[4]"), 1, eps, ADJ_NHWC),
        ADJ_ESHAPE, "group_norm_grad|dy|shape");
    expect_refused(
        adj_group_norm_grad_sums(of_type(image), of_type("f32[2, 3, 3, 4]"), 1, eps, ADJ_NHWC),
        ADJ_EDTYPE, "group_norm_grad_sums|dy|type");
    cr_assert_null(adj_group_norm(NULL, NULL, NULL, 1, eps, ADJ_NHWC));
    cr_assert_null(adj_group_norm_grad_sums(NULL, NULL, 1, eps, ADJ_NHWC));
    cr_assert_null(adj_group_norm_grad(NULL, NULL, NULL, 1, eps, ADJ_NHWC));
}
