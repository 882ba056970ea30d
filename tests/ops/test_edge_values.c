/* test_edge_values.c - values at which kernel faults stay unseen: zeros of both signs, kinks, large
 * step numbers, rates of 0, on every backend, against literal numbers. */
#include <math.h>

#include "expect.h"

static const char *const backends[] = {"naive", "direct", "onednn"};
enum { BACKENDS = 3, N = 4 };

/* ---- signs of zeros ---- */

static adj_node *neg(adj_node *a, adj_node *b) { return (void)b, adj_neg(a); }
static adj_node *relu(adj_node *a, adj_node *b) { return (void)b, adj_relu(a); }
static adj_node *leaky(adj_node *a, adj_node *b) { return (void)b, adj_leaky_relu(a, 4); }
static adj_node *clip(adj_node *a, adj_node *b) { return (void)b, adj_clip(a, -2, 2); }
static adj_node *tanh_of(adj_node *a, adj_node *b) { return (void)b, adj_tanh(a); }
static adj_node *elu(adj_node *a, adj_node *b) { return (void)b, adj_elu(a, 1); }
static adj_node *scale(adj_node *a, adj_node *b) { return (void)b, adj_scale(a, -2); }
static adj_node *root(adj_node *a, adj_node *b) { return (void)b, adj_sqrt(a); }
static adj_node *join(adj_node *a, adj_node *b)
{
    return adj_slice(adj_concat(2, (adj_node *[]){a, b}, 0), (adj_shape){1, {0}},
                     (adj_shape){1, {N}});
}

/* By IEEE 754; b is {3, -3, -0, 0}; a is {0, -0, 0, -0}. */
static const struct {
    const char *name;
    adj_node *(*of)(adj_node *a, adj_node *b);
    double want[N];
} zeros[] = {
    {"neg", neg, {-0.0, 0, -0.0, 0}},
    {"relu", relu, {0, 0, 0, 0}},
    {"leaky_relu", leaky, {0, -0.0, 0, -0.0}},
    {"clip", clip, {0, -0.0, 0, -0.0}},
    {"tanh", tanh_of, {0, -0.0, 0, -0.0}},
    {"elu", elu, {0, -0.0, 0, -0.0}},
    {"scale", scale, {-0.0, 0, -0.0, 0}},
    {"sqrt", root, {0, -0.0, 0, -0.0}},
    {"concat, slice", join, {0, -0.0, 0, -0.0}},
    {"mul", adj_mul, {0, 0, -0.0, -0.0}},
    {"add", adj_add, {3, -3, 0, 0}},
    {"sub", adj_sub, {-3, 3, 0, -0.0}},
};

Test(edge_values, signs_of_zeros)
{
    static const double a_values[N] = {0, -0.0, 0, -0.0}, b_values[N] = {3, -3, -0.0, 0};
    for (size_t i = 0; i < BACKENDS * (sizeof zeros / sizeof *zeros); i++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *a = given(&f, ADJ_F32, (adj_shape){1, {N}}, a_values);
        adj_node *b = given(&f, ADJ_F32, (adj_shape){1, {N}}, b_values);
        const char *backend = backends[i % BACKENDS];
        char label[40];
        snprintf(label, sizeof label, "%s on %s", zeros[i / BACKENDS].name, backend);
        scoped(release) double *got = evaluate(&f, zeros[i / BACKENDS].of(a, b), backend);
        expect_same_bits(got, zeros[i / BACKENDS].want, N, label);
    }
}

/* ---- steps of optimizers ---- */

/* p = 1, m = 0.5, v = 0.25; beta1 = 0.9, beta2 = 0.999, epsilon = 0: by Python in float64. */
Test(edge_values, late_steps_and_rates_of_zero)
{
    static const struct {
        double step, rate, want;
    } cases[] = {{1, 0.1, 0.9683772233983162},
                 {101, 0.1, 0.9689972194160702},
                 {1000000, 0.1, 0.9},
                 {3, 0, 1}};
    const adj_adam_attrs adam = {.beta1 = 0.9, .beta2 = 0.999};
    for (size_t i = 0; i < BACKENDS * (sizeof cases / sizeof *cases); i++) {
        const int k = (int)i / BACKENDS;
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *p = scalar(&f, ADJ_F32, 1), *m = scalar(&f, ADJ_F32, 0.5);
        adj_node *v = scalar(&f, ADJ_F32, 0.25), *t = scalar(&f, ADJ_I32, cases[k].step);
        adj_node *lr = scalar(&f, ADJ_F32, cases[k].rate);
        expect_values(&f, adj_adam_step(p, m, v, t, lr, &adam), backends[i % BACKENDS],
                      &cases[k].want, 1e-6, 0);
    }
}

/* ---- kinks ---- */

/* Where a gradient of 1 goes at a kink, beside it, and beyond; x by element. */
static adj_node *prelu(adj_node *x, adj_node *slope) { return adj_prelu(x, slope, ADJ_NHWC); }
static adj_node *relu6(adj_node *x, adj_node *slope) { return (void)slope, adj_relu6(x); }

static const struct {
    adj_node *(*of)(adj_node *x, adj_node *slope);
    double x[N], y[N], dx[N];
} kinks[] = {
    {prelu, {-0.0, 0, 1, -2}, {-0.0, 0, 1, -8}, {4, 4, 1, 4}},
    {clip, {-2, 2, -1.5, 2.5}, {-2, 2, -1.5, 2}, {1, 1, 1, 0}},
    {relu, {-0.0, 0, 1, -2}, {0, 0, 1, 0}, {0, 0, 1, 0}},
    {relu6, {0, 6, 5, 7}, {0, 6, 5, 6}, {0, 0, 1, 0}},
    {leaky, {-0.0, 0, 1, -2}, {-0.0, 0, 1, -8}, {4, 4, 1, 4}},
};

Test(edge_values, gradients_at_kinks)
{
    for (size_t i = 0; i < BACKENDS * (sizeof kinks / sizeof *kinks); i++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given(&f, ADJ_F32, (adj_shape){2, {1, N}}, kinks[i / BACKENDS].x);
        adj_node *slope = given_integers(&f, ADJ_F32, (adj_shape){1, {1}}, 4, 4);
        adj_node *dy = given_integers(&f, ADJ_F32, (adj_shape){2, {1, N}}, 1, 1);
        adj_node *y = kinks[i / BACKENDS].of(x, slope);
        expect_values(&f, y, backends[i % BACKENDS], kinks[i / BACKENDS].y, 0, 0);
        expect_values(&f, gradient_of(y, dy, x), backends[i % BACKENDS], kinks[i / BACKENDS].dx, 0,
                      0);
    }
}
