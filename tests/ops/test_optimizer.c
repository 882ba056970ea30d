/* test_optimizer.c - the pieces of optimizers against the formulas and literals. Composed, against
 * PyTorch's numbers: tests/nn/test_optim.c. */
#include <math.h>

#include "expect.h"
#include "graph/op.h"
#include "tests/isa.h"

/* The formulas of adjoint.h, over enough elements for several threads. */
static void expect_formulas(adj_dtype t, const char *backend, double r)
{
    enum { N = 20011 };
    const adj_shape s = {1, {N}};
    const adj_adam_attrs adam = {.beta1 = 0.75, .beta2 = 0.9375, .epsilon = 1e-3, .decay = 0.25};
    double(*want)[N] = malloc(4 * sizeof *want);
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *p = given_random(&f, t, s, -2, 2), *g = given_random(&f, t, s, -2, 2);
    adj_node *v = given_random(&f, t, s, 0.01, 2), *lr = scalar(&f, t, 0.125);
    adj_node *step = scalar(&f, ADJ_I32, 3);
    for (int i = 0; i < N; i++) {
        const double P = f.value[0][i], G = f.value[1][i], V = f.value[2][i];
        const double mean = G / (1 - pow(0.75, 3)), square = V / (1 - pow(0.9375, 3));
        want[0][i] = 0.75 * V + G + 0.5 * P;
        want[1][i] = P - 0.125 * (G + 0.5 * P);
        want[2][i] = 0.75 * V + 0.25 * G;
        want[3][i] = P - 0.125 * (mean / (sqrt(square) + 1e-3) + 0.25 * P);
    }
    adj_node *steps[] = {adj_momentum(v, g, p, 0.75, 0.5), adj_sgd_step(p, g, lr, 0.5),
                         adj_ema(v, g, 0.75), adj_adam_step(p, g, v, step, lr, &adam)};
    for (int i = 0; i < 4; i++) {
        expect_values(&f, steps[i], backend, want[i], r, r);
        if (strcmp(backend, "direct") == 0)
            free(evaluate_by(&f, steps[i], "fused_pointwise", 0));
    }
    free(want);
}

Test(optimizer, reference)
{
    for (int d = 0; d < N_PRECISIONS; d++) {
        const double r = (precisions[d].dtype == ADJ_F64 ? 1 : 2) * precisions[d].rtol;
        expect_formulas(precisions[d].dtype, "naive", r);
    }
}

static void expect_direct(const char *isa)
{
    (void)isa;
    expect_formulas(ADJ_F32, "direct", 1e-6);
    expect_formulas(ADJ_F16, "direct", 2e-3);
    expect_formulas(ADJ_BF16, "direct", 1e-2);
}

Test(optimizer, reference_by_direct) { for_each_isa(N_ROW_ISA, row_isas, expect_direct); }

/* On every backend; rates of 0 and below, decays of both signs, counters of every size. */
static void expect_numbers(adj_dtype t, const char *backend)
{
    static const double a_values[] = {1, -2}, b_values[] = {4, 0.5};
    static const double counters[] = {41, -1, 100, 1000000, 2147483646};
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *a = given(&f, t, (adj_shape){1, {2}}, a_values);
    adj_node *b = given(&f, t, (adj_shape){1, {2}}, b_values);
    adj_node *half = scalar(&f, t, 0.5);
    const struct {
        adj_node *y;
        double want[2];
    } cases[] = {
        {adj_momentum(a, b, b, 0.5, 0.25), {5.5, -0.375}},
        {adj_momentum(b, a, a, 0.5, 0.25), {3.25, -2.25}},
        {adj_sgd_step(a, b, half, 0), {-1, -2.25}},
        {adj_sgd_step(a, b, half, 2), {-2, -0.25}},
        {adj_sgd_step(a, b, scalar(&f, t, 0), 0.25), {1, -2}},
        {adj_sgd_step(a, b, scalar(&f, t, -0.5), 0.25), {3.125, -2}},
        {adj_ema(a, b, 0.75), {1.75, -1.375}},
        {adj_ema(a, a, 0.75), {1, -2}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_values(&f, cases[i].y, backend, cases[i].want, 0, 0);
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        expect_values(&f, adj_next_step(scalar(&f, ADJ_I32, counters[i])), backend,
                      (double[]){counters[i] + 1}, 0, 0);
}

Test(optimizer, numbers)
{
    for (int d = 0; d < N_PRECISIONS; d++) {
        expect_numbers(dtypes[d], "naive");
        expect_numbers(dtypes[d], "direct");
        expect_numbers(dtypes[d], "onednn");
    }
}

/* An update is no function to differentiate; a counter is a constant. */
Test(optimizer, no_gradient)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *p = given_random(&f, ADJ_F32, (adj_shape){1, {3}}, 0, 1), *dp;
    adj_node *y = adj_reduce_sum(adj_ema(p, p, 0.5), (adj_axes){.n = ADJ_ALL});
    cr_assert_eq(adj_grad(y, NULL, 1, &p, &dp), ADJ_ENOGRAD);
    expect_error(f.g, ADJ_ENOGRAD, "ema");
}

static adj_node *momentum(const char *g, double mu, double decay)
{
    return adj_momentum(of_type("f32[3]"), of_type(g), of_type("f32[3]"), mu, decay);
}

static adj_node *sgd_step(const char *lr, double decay)
{
    return adj_sgd_step(of_type("f32[3]"), of_type("f32[3]"), of_type(lr), decay);
}

static adj_node *adam_step(const char *t, const adj_adam_attrs *a)
{
    adj_node *p = of_type("f32[3]");
    return adj_adam_step(p, p, p, of_type(t), of_type("f32[]"), a);
}

Test(optimizer, refused)
{
    const adj_adam_attrs good = {.beta1 = 0.9, .beta2 = 0.99}, wrong = {.beta1 = 1, .beta2 = 0.99};
    expect_refused(momentum("f32[4]", 0.9, 0), ADJ_ESHAPE, "momentum|shape|[4]");
    expect_refused(sgd_step("f32[3]", 0), ADJ_ESHAPE, "sgd_step|lr|scalar");
    expect_refused(sgd_step("f64[]", 0), ADJ_EDTYPE, "sgd_step|lr|f32");
    expect_refused(adj_ema(of_type("f32[3]"), of_type("f16[3]"), 0.5), ADJ_EDTYPE, "ema|type|f16");
    expect_refused(adam_step("f32[]", &good), ADJ_EDTYPE, "adam_step|t|i32");
    expect_refused(adam_step("i32[]", &wrong), ADJ_EARG, "adam_step|beta1");
    expect_refused(adj_next_step(of_type("f32[]")), ADJ_EDTYPE, "next_step|i32");
    expect_refused(momentum("f32[3]", INFINITY, 0), ADJ_EARG, "momentum|mu|inf");
    expect_refused(momentum("f32[3]", 7, 0), ADJ_EARG, "momentum|mu|got 7, expected 0 <= mu < 1");
    expect_refused(momentum("f32[3]", 0.9, -1), ADJ_EARG, "momentum|decay|got -1");
    expect_refused(sgd_step("f32[]", -1), ADJ_EARG, "sgd_step|decay|got -1");
    expect_refused(adj_ema(of_type("f32[3]"), of_type("f32[3]"), 1.5), ADJ_EARG,
                   "ema|beta|got 1.5, expected 0 <= beta < 1");
    expect_refused(adam_step("i32[]", &(adj_adam_attrs){.decay = -1}), ADJ_EARG,
                   "adam_step|decay|got -1");
    expect_refused(adam_step("i32[]", NULL), ADJ_EARG, "adam_step");
    cr_assert_null(adj_sgd_step(NULL, NULL, NULL, 0));
    cr_assert_null(adj_adam_step(NULL, NULL, NULL, NULL, NULL, NULL));
    cr_assert_null(adj_next_step(NULL));
}
