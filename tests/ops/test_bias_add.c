/* test_bias_add.c - a bias added to each channel, in both formats and ranks 2 to 5. */
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
enum { N_LAYOUTS = sizeof layouts / sizeof *layouts, N_SMALL = 15 };

static int64_t channel_of(int64_t i, const layout *l)
{
    return unravel(i, l->x).dim[l->format == ADJ_NHWC ? l->x.rank - 1 : 1];
}

static adj_shape bias_shape(const layout *l)
{
    return (adj_shape){1, {l->x.dim[l->format == ADJ_NHWC ? l->x.rank - 1 : 1]}};
}

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
    expect_values(&f, adj_bias_add(x, b, l->format), "naive", y, 0, 0);
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
        expect_values(&f, adj_bias_add(x, bias, ADJ_NHWC), "naive",
                      (double[]){11, 22, 13, 24, 15, 26}, 0, 0);
        expect_values(&f, adj_bias_add(z, bias, ADJ_NCHW), "naive",
                      (double[]){11, 13, 15, 22, 24, 26}, 0, 0);
        expect_values(&f, adj_bias_add_grad(x, ADJ_NHWC), "naive", (double[]){9, 12}, 0, 0);
        expect_values(&f, adj_bias_add_grad(z, ADJ_NCHW), "naive", (double[]){9, 12}, 0, 0);
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
        expect_gradient(&f, adj_bias_add(x, b, layouts[i].format), "naive", 0.5, 1e-12, 1e-12);
        fixture_free(&f);
        f = fixture_new();
        x = given_random(&f, ADJ_F64, layouts[i].x, -1, 1);
        expect_gradient(&f, adj_bias_add_grad(x, layouts[i].format), "naive", 0.5, 1e-12, 1e-12);
    }
}

/* 4096 ones: sums kept in half precision would stop at 2048 or 256. */
Test(bias_add, half_sums_are_kept_in_float)
{
    double ones[4096];
    for (int i = 0; i < 4096; i++)
        ones[i] = 1;
    for (int p = 0; p < N_PRECISIONS; p++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *dy = given(&f, precisions[p].dtype, (adj_shape){2, {4096, 1}}, ones);
        expect_values(&f, adj_bias_add_grad(dy, ADJ_NHWC), "naive", (double[]){4096}, 0, 0);
    }
}

Test(bias_add, same_for_any_number_of_threads)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_random(&f, ADJ_F64, (adj_shape){3, {50, 30, 37}}, -1, 1);
    adj_node *b = given_random(&f, ADJ_F64, (adj_shape){1, {37}}, -1, 1);
    expect_same_for_threads(&f, adj_bias_add(x, b, ADJ_NHWC));
    fixture_free(&f);
    f = fixture_new();
    x = given_random(&f, ADJ_F64, (adj_shape){3, {50, 30, 37}}, -1, 1);
    expect_same_for_threads(&f, adj_bias_add_grad(x, ADJ_NHWC));
    expect_same_for_threads(&f, adj_bias_add_grad(x, ADJ_NCHW));
}

static adj_node *f32(fixture *f, adj_shape shape) { return given_random(f, ADJ_F32, shape, 0, 1); }

Test(bias_add, refusals)
{
    scoped(fixture_free) fixture f = fixture_new();
    expect_refusal(
        &f, adj_bias_add(f32(&f, (adj_shape){1, {3}}), f32(&f, (adj_shape){1, {3}}), ADJ_NHWC),
        ADJ_ESHAPE, "bias_add", "input", "[3]", NULL);
    expect_refusal(&f, adj_bias_add_grad(f32(&f, (adj_shape){6, {1, 1, 1, 1, 1, 1}}), ADJ_NCHW),
                   ADJ_ESHAPE, "bias_add_grad", "out_backprop", "rank 2 to 5", NULL);
    expect_refusal(
        &f,
        adj_bias_add(f32(&f, (adj_shape){3, {2, 3, 4}}), f32(&f, (adj_shape){1, {4}}), ADJ_NCHW),
        ADJ_ESHAPE, "bias", "[4]", "[3]", NULL);
    expect_refusal(
        &f,
        adj_bias_add(f32(&f, (adj_shape){2, {2, 3}}), f32(&f, (adj_shape){2, {3, 1}}), ADJ_NHWC),
        ADJ_ESHAPE, "bias", "[3, 1]", NULL);
    expect_refusal(&f, adj_bias_add_grad(f32(&f, (adj_shape){0}), ADJ_NHWC), ADJ_ESHAPE,
                   "out_backprop", "[]", NULL);
    expect_refusal(&f, adj_bias_add_grad(f32(&f, (adj_shape){2, {2, 3}}), (adj_format)7), ADJ_EARG,
                   "data_format", "7", NULL);
    expect_refusal(&f,
                   adj_bias_add(f32(&f, (adj_shape){2, {2, 3}}),
                                given_random(&f, ADJ_BF16, (adj_shape){1, {3}}, 0, 1), ADJ_NHWC),
                   ADJ_EDTYPE, "bias_add", "f32", "bf16", NULL);
    cr_assert_null(adj_bias_add(NULL, NULL, ADJ_NHWC));
    cr_assert_null(adj_bias_add_grad(NULL, ADJ_NHWC));
}
