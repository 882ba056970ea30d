/* test_elementwise.c - neg, scale, square, sqrt, exp and log; and arithmetic of two operands, with
 * every kind of broadcasting. */
#include <math.h>

#include "expect.h"

/* ---- one operand ---- */

static adj_node *scale_by_three(adj_node *x) { return adj_scale(x, 3); }
static double neg(double x) { return -x; }
static double three_times(double x) { return 3 * x; }
static double squared(double x) { return x * x; }

static const struct {
    adj_node *(*build)(adj_node *x);
    double (*value)(double x);
    double literal[4]; /* values for 0.25, 1, 2, 9, by PyTorch */
} unary_ops[] = {
    {adj_neg, neg, {-0.25, -1, -2, -9}},
    {scale_by_three, three_times, {0.75, 3, 6, 27}},
    {adj_abs, fabs, {0.25, 1, 2, 9}},
    {adj_square, squared, {0.0625, 1, 4, 81}},
    {adj_sqrt, sqrt, {0.5, 1, 1.4142135623730951, 3}},
    {adj_exp, exp, {1.2840254166877414, 2.718281828459045, 7.38905609893065, 8103.083927575384}},
    {adj_log, log, {-1.3862943611198906, 0, 0.6931471805599453, 2.1972245773362196}},
};
enum { N_UNARY = sizeof unary_ops / sizeof *unary_ops };

Test(elementwise_unary, literal_numbers)
{
    const double x[] = {0.25, 1, 2, 9};
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int k = 0; k < N_UNARY; k++) {
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *y =
                unary_ops[k].build(given(&f, precisions[p].dtype, (adj_shape){1, {4}}, x));
            expect_values(&f, y, "naive", unary_ops[k].literal, precisions[p].rtol, 0);
        }
}

Test(elementwise_unary, every_shape_against_a_loop)
{
    const adj_shape shapes[] = {{0}, {1, {0}}, {1, {1}}, {3, {2, 3, 5}}, {1, {1024}}, {1, {40001}}};
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int s = 0; s < 6; s++)
            for (int k = 0; k < N_UNARY; k++)
                expect_function(unary_ops[k].build, unary_ops[k].value, precisions[p], shapes[s],
                                0.5, 4);
}

Test(elementwise_unary, adjoint_on_integers)
{
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int k = 0; k < 2; k++) { /* the linear ones */
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *x = given_integers(&f, precisions[p].dtype, (adj_shape){2, {3, 4}}, -3, 3);
            expect_adjoint(&f, unary_ops[k].build(x), 1);
        }
}

Test(elementwise_unary, first_and_second_derivative_against_differences)
{
    for (int k = 0; k < N_UNARY; k++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given_random(&f, ADJ_F64, (adj_shape){2, {3, 4}}, 0.5, 2);
        adj_node *y = unary_ops[k].build(x);
        expect_gradient(&f, y, 1e-5, 1e-7, 1e-8);
        expect_gradient(&f, gradient_of(y, f.in[1], x), 1e-5, 1e-7, 1e-8); /* in[1]: dy */
    }
}

Test(elementwise_unary, refusals)
{
    expect_refused(adj_exp(of_type("i32[4]")), ADJ_EDTYPE, "exp|i32");
    expect_refused(adj_scale(of_type("f32[4]"), NAN), ADJ_EARG, "scale|factor|nan");
    for (int k = 0; k < N_UNARY; k++)
        cr_assert_null(unary_ops[k].build(NULL));
}

/* Simplifying must not change a bit. A fill's value is rounded before it is scaled (the last value
 * and the last factor, in f16), and for halves the factor is rounded to float (1 + 2^-11 + 2^-30,
 * and the next). */
Test(elementwise_unary, scaled_fills_keep_their_rounding)
{
    const double values[] = {0.5, 0.1, 3, 0, 1, (2 - 0x1p-10) / (2 - 0x1p-9)};
    const double factors[] = {
        1, 2, 0.1, -4, 1.0 / 3, 10, 1 + 0x1p-11 + 0x1p-30, 1 + 0x1p-8 + 0x1p-30, 2 - 0x1p-9};
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int v = 0; v < 6; v++)
            for (int k = 0; k < 9; k++) {
                scoped(fixture_free) fixture f = fixture_new();
                adj_shape two = {1, {2}};
                adj_node *x = given(&f, precisions[p].dtype, two, (double[]){values[v], values[v]});
                scoped(release) double *want = evaluate(&f, adj_scale(x, factors[k]), "naive");
                adj_node *fill = adj_fill(f.g, precisions[p].dtype, two, values[v]);
                expect_exact(&f, adj_scale(fill, factors[k]), want);
            }
}

/* ---- two operands ---- */

typedef struct {
    adj_node *(*build)(adj_node *a, adj_node *b);
    double (*value)(double a, double b);
    double literal[6]; /* values for -2, 0.5, 4 by 4, -0.25, by NumPy */
} binary;

static double add(double a, double b) { return a + b; }
static double sub(double a, double b) { return a - b; }
static double mul(double a, double b) { return a * b; }
static double quotient(double a, double b) { return a / b; }
static double max(double a, double b) { return a > b ? a : b; }
static double min(double a, double b) { return a < b ? a : b; }
static double same(double a, double b) { return a == b; }
static double not_less(double a, double b) { return !(a < b); }

static const binary ops[] = {
    {adj_add, add, {2, -2.25, 4.5, 0.25, 8, 3.75}},
    {adj_sub, sub, {-6, -1.75, -3.5, 0.75, 0, 4.25}},
    {adj_mul, mul, {-8, 0.5, 2, -0.125, 16, -1}},
    {adj_div, quotient, {-0.5, 8, 0.125, -2, 1, -16}},
    {adj_maximum, max, {4, -0.25, 4, 0.5, 4, 4}},
    {adj_minimum, min, {-2, -2, 0.5, -0.25, 4, -0.25}},
    {adj_pow, pow, {16, NAN, 0.0625, 1.189207115002721, 256, 0.7071067811865476}},
    {adj_equal, same, {0, 0, 0, 0, 1, 0}},
    {adj_greater_equal, not_less, {0, 0, 0, 1, 1, 1}},
};
enum { N_OPS = sizeof ops / sizeof *ops, N_DIFFERENTIABLE = 7 };

typedef struct {
    adj_shape a, b, y;
} shapes;

static const shapes broadcasts[] = {
    {{0}, {0}, {0}},
    {{2, {2, 3}}, {2, {2, 3}}, {2, {2, 3}}},
    {{2, {2, 3}}, {0}, {2, {2, 3}}},
    {{0}, {2, {2, 3}}, {2, {2, 3}}},
    {{2, {2, 3}}, {1, {3}}, {2, {2, 3}}},
    {{1, {3}}, {2, {2, 3}}, {2, {2, 3}}},
    {{2, {2, 3}}, {2, {2, 1}}, {2, {2, 3}}},
    {{2, {4, 1}}, {2, {1, 3}}, {2, {4, 3}}},
    {{2, {1, 3}}, {2, {1, 1}}, {2, {1, 3}}},
    {{3, {2, 1, 3}}, {2, {4, 1}}, {3, {2, 4, 3}}},
    {{1, {1}}, {4, {1, 1, 1, 1}}, {4, {1, 1, 1, 1}}},
    {{4, {2, 1, 3, 1}}, {4, {1, 2, 1, 2}}, {4, {2, 2, 3, 2}}},
    {{6, {2, 1, 2, 1, 2, 1}}, {6, {1, 2, 1, 2, 1, 2}}, {6, {2, 2, 2, 2, 2, 2}}},
    {{4, {2, 3, 2, 2}}, {3, {3, 1, 1}}, {4, {2, 3, 2, 2}}},
    /* empty ones */
    {{2, {0, 3}}, {2, {1, 3}}, {2, {0, 3}}},
    {{2, {2, 0}}, {0}, {2, {2, 0}}},
    {{1, {1}}, {1, {0}}, {1, {0}}},
    /* longer than one part */
    {{1, {2500}}, {0}, {1, {2500}}},
    {{2, {2, 1025}}, {2, {2, 1}}, {2, {2, 1025}}},
    {{2, {1030, 3}}, {1, {3}}, {2, {1030, 3}}},
};
enum { N_BROADCASTS = sizeof broadcasts / sizeof *broadcasts, N_SMALL = 14 };

static void check_values(const binary *op, const shapes *s, const precision *p)
{
    scoped(fixture_free) fixture f = fixture_new();
    /* few distinct values, so that some are equal; none 0 */
    adj_node *a = given_integers(&f, p->dtype, s->a, 1, 5);
    adj_node *b = given_integers(&f, p->dtype, s->b, 1, 5);
    adj_node *y = op->build(a, b);
    expect_shape(&f, y, s->y);
    int64_t n = elems_of(y);
    scoped(release) double *want = malloc((size_t)n * sizeof *want + 1);
    for (int64_t i = 0; i < n; i++) {
        adj_shape index = unravel(i, s->y);
        want[i] = op->value(repeated(f.value[0], s->a, index), repeated(f.value[1], s->b, index));
    }
    expect_values(&f, y, "naive", want, op->value == quotient || op->value == pow ? p->rtol : 0, 0);
}

Test(elementwise_binary, every_broadcast_against_index_arithmetic)
{
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int i = 0; i < N_BROADCASTS; i++)
            for (int k = 0; k < N_OPS; k++)
                check_values(&ops[k], &broadcasts[i], &precisions[p]);
}

Test(elementwise_binary, literal_numbers)
{
    const adj_shape column = {2, {3, 1}}, row = {1, {2}};
    const double a[] = {-2, 0.5, 4}, b[] = {4, -0.25};
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int k = 0; k < N_OPS; k++) {
            scoped(fixture_free) fixture f = fixture_new();
            adj_dtype dtype = precisions[p].dtype;
            adj_node *y = ops[k].build(given(&f, dtype, column, a), given(&f, dtype, row, b));
            expect_values(&f, y, "naive", ops[k].literal,
                          ops[k].value == pow ? precisions[p].rtol : 0, 0);
        }
}

/* Both gradients where the base or the exponent is 0, and |x| on both sides of its bend; PyTorch's.
 */
Test(elementwise_binary, powers_of_zero)
{
    scoped(fixture_free) fixture f = fixture_new();
    const adj_shape five = {1, {5}};
    adj_node *in[] = {given(&f, ADJ_F64, five, (double[]){0, 0, -2, 0, 1}),
                      given(&f, ADJ_F64, five, (double[]){2, 1, 3, 0, 0})},
             *dx[2];
    adj_node *ones = adj_fill(f.g, ADJ_F64, five, 1);
    cr_assert_eq(adj_grad(adj_pow(in[0], in[1]), ones, 2, in, dx), ADJ_OK);
    expect_exact(&f, dx[0], (double[]){0, 1, 12, 0, 0});
    expect_exact(&f, dx[1], (double[]){0, 0, NAN, 0, 0});
    /* d2y / da db = a^(b - 1) (1 + b log(a)) */
    adj_node *base = given(&f, ADJ_F64, five, (double[]){2, 0.5, 4, 1, 1});
    adj_node *exponent = given(&f, ADJ_F64, five, (double[]){0, 0, 0, 3, -2});
    adj_node *da = gradient_of(adj_pow(base, exponent), ones, base);
    expect_exact(&f, gradient_of(da, ones, exponent), (double[]){0.5, 2, 0.25, 1, 1});
    adj_node *v = given(&f, ADJ_F64, five, (double[]){-3, 0, 2, -0.0, 1});
    expect_exact(&f, gradient_of(adj_abs(v), ones, v), (double[]){-1, 0, 1, 0, 1});
}

Test(elementwise_binary, nan_and_infinity)
{
    const adj_shape six = {1, {6}};
    const double a[] = {NAN, 1, INFINITY, -INFINITY, 0, 1}, b[] = {1, NAN, INFINITY, 2, 0, 0};
    const double maxima[] = {NAN, NAN, INFINITY, 2, 0, 1};
    const double minima[] = {NAN, NAN, INFINITY, -INFINITY, 0, 0};
    const double equals[] = {0, 0, 1, 0, 1, 0}, ratio[] = {NAN, NAN, NAN, -INFINITY, NAN, INFINITY};

    for (int p = 0; p < N_PRECISIONS; p++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given(&f, precisions[p].dtype, six, a);
        adj_node *y = given(&f, precisions[p].dtype, six, b);
        expect_exact(&f, adj_maximum(x, y), maxima);
        expect_exact(&f, adj_minimum(x, y), minima);
        expect_exact(&f, adj_equal(x, y), equals);
        expect_exact(&f, adj_div(x, y), ratio);
    }
}

/* The result takes over an operand's buffer where it can: others must still see the old values. */
Test(elementwise_binary, in_place)
{
    const adj_shape wide = {2, {3, 4}}, row = {1, {4}};
    for (int p = 0; p < N_PRECISIONS; p++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *a = given_integers(&f, precisions[p].dtype, wide, -4, 4);
        adj_node *b = given_integers(&f, precisions[p].dtype, row, -4, 4);
        adj_node *u = adj_neg(a), *v = adj_sub(u, b), *w = adj_add(adj_mul(v, v), u);
        double want[12];
        for (int i = 0; i < 12; i++) {
            double x = -f.value[0][i], y = x - f.value[1][i % 4];
            want[i] = y * y + x;
        }
        expect_exact(&f, w, want);
    }
}

/* add and sub are linear in both operands together, mul in the first. */
Test(elementwise_binary, adjoint_on_integers)
{
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int i = 0; i < N_SMALL + 3; i++)
            for (int k = 0; k < 3; k++) {
                scoped(fixture_free) fixture f = fixture_new();
                adj_node *a = given_integers(&f, precisions[p].dtype, broadcasts[i].a, -2, 2);
                adj_node *b = given_integers(&f, precisions[p].dtype, broadcasts[i].b, -2, 2);
                expect_adjoint(&f, ops[k].build(a, b), ops[k].value == mul ? 1 : 2);
            }
}

/* Operands apart from each other and from 0, so that no difference crosses a kink or a pole. */
Test(elementwise_binary, gradient_against_differences)
{
    for (int i = 0; i < N_SMALL; i++)
        for (int k = 0; k < N_DIFFERENTIABLE; k++)
            for (int low = 0; low < 2; low++) {
                scoped(fixture_free) fixture f = fixture_new();
                adj_node *a =
                    given_random(&f, ADJ_F64, broadcasts[i].a, low ? 0.5 : 2, low ? 1 : 3);
                adj_node *b = given_random(&f, ADJ_F64, broadcasts[i].b, 1.25, 1.75);
                expect_gradient(&f, ops[k].build(a, b), 1e-5, 1e-7, 1e-8);
            }
}

Test(elementwise_binary, second_derivative_against_differences)
{
    for (int i = 0; i < N_SMALL; i++)
        for (int k = 2; k < N_DIFFERENTIABLE; k++) /* 0 for add and sub */
            for (int operand = 0; operand < 2; operand++) {
                scoped(fixture_free) fixture f = fixture_new();
                adj_node *a = given_random(&f, ADJ_F64, broadcasts[i].a, 2, 3);
                adj_node *b = given_random(&f, ADJ_F64, broadcasts[i].b, 1.25, 1.75);
                adj_node *dy = given_random(&f, ADJ_F64, broadcasts[i].y, -1, 1);
                adj_node *dx = gradient_of(ops[k].build(a, b), dy, operand == 0 ? a : b);
                expect_gradient(&f, dx, 1e-5, 1e-7, 1e-8);
            }
}

/* The gradient of a tie goes to the first operand, and an infinite one stays where it belongs. */
Test(elementwise_binary, ties_go_to_the_first_operand)
{
    const adj_shape three = {1, {3}};
    const double a[] = {1, 2, 3}, b[] = {1, 3, 2}, dy[] = {5, INFINITY, INFINITY};
    const double to_a[] = {5, 0, INFINITY}, to_b[] = {0, INFINITY, 0};
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *in[] = {given(&f, ADJ_F32, three, a), given(&f, ADJ_F32, three, b)}, *dx[2];
    adj_node *d = given(&f, ADJ_F32, three, dy);

    cr_assert_eq(adj_grad(adj_maximum(in[0], in[1]), d, 2, in, dx), ADJ_OK);
    expect_exact(&f, dx[0], to_a);
    expect_exact(&f, dx[1], to_b);
    cr_assert_eq(adj_grad(adj_minimum(in[1], in[0]), d, 2, in, dx), ADJ_OK);
    expect_exact(&f, dx[0], (double[]){0, INFINITY, 0});
    expect_exact(&f, dx[1], (double[]){5, 0, INFINITY});
    cr_assert_eq(adj_grad(adj_equal(in[0], in[1]), d, 2, in, dx), ADJ_OK);
    expect_exact(&f, dx[0], (double[]){0, 0, 0});
}

/* x * 1 and x / 1 are x, but not where the 1 repeats x. */
Test(elementwise_binary, simplified)
{
    const adj_shape row = {2, {1, 2}};
    const double x[] = {3, -0.0}, four[] = {3, -0.0, 3, -0.0};
    for (int p = 0; p < N_PRECISIONS; p++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *v = given(&f, precisions[p].dtype, row, x);
        adj_node *one = adj_fill(f.g, precisions[p].dtype, (adj_shape){0}, 1);
        adj_node *ones = adj_fill(f.g, precisions[p].dtype, (adj_shape){2, {2, 1}}, 1);
        expect_exact(&f, adj_div(adj_mul(one, adj_mul(v, one)), one), x);
        expect_exact(&f, adj_mul(v, ones), four);
        expect_exact(&f, adj_mul(ones, v), four);
        expect_exact(&f, adj_div(v, ones), four);
    }
}

/* Only 1 leaves x as it is, whichever operand it is, and not as a dividend. */
Test(elementwise_binary, other_constants_are_not_left_out)
{
    static const struct {
        double value, product[3], quotient[3], inverse[3]; /* x * value, x / value, value / x */
    } rows[] = {{2, {6, -8, 1}, {1.5, -2, 0.25}, {0.6666666667, -0.5, 4}},
                {0.5, {1.5, -2, 0.25}, {6, -8, 1}, {0.1666666667, -0.125, 1}},
                {-1, {-3, 4, -0.5}, {-3, 4, -0.5}, {-0.3333333333, 0.25, -2}},
                {1, {3, -4, 0.5}, {3, -4, 0.5}, {0.3333333333, -0.25, 2}}};
    const adj_shape shapes[] = {{0}, {1, {1}}, {1, {3}}};
    const double x[] = {3, -4, 0.5};
    for (int p = 0; p < N_PRECISIONS; p++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            for (int k = 0; k < 3; k++) {
                scoped(fixture_free) fixture f = fixture_new();
                adj_node *v = given(&f, precisions[p].dtype, (adj_shape){1, {3}}, x);
                adj_node *fill = adj_fill(f.g, precisions[p].dtype, shapes[k], rows[i].value);
                expect_exact(&f, adj_mul(v, fill), rows[i].product);
                expect_exact(&f, adj_mul(fill, v), rows[i].product);
                expect_exact(&f, adj_div(v, fill), rows[i].quotient);
                expect_values(&f, adj_div(fill, v), "naive", rows[i].inverse,
                              precisions[p].rtol + 1e-9, 0);
            }
}

Test(elementwise_binary, refusals)
{
    expect_refused(adj_add(of_type("f32[2, 3]"), of_type("f32[4]")), ADJ_ESHAPE, "add|[2, 3]|[4]");
    expect_refused(adj_mul(of_type("f32[2, 0]"), of_type("f32[2, 2]")), ADJ_ESHAPE,
                   "mul|[2, 0]|[2, 2]");
    expect_refused(adj_div(of_type("f32[4]"), of_type("f64[4]")), ADJ_EDTYPE, "div|f32|f64");
    expect_refused(adj_maximum(of_type("i32[4]"), of_type("i32[4]")), ADJ_EDTYPE, "maximum|i32");
    expect_refused(adj_sub(of_type("f32[1073741824, 1]"), of_type("f32[1, 1073741824]")),
                   ADJ_ESHAPE, "sub|too large");
    for (int k = 0; k < N_OPS; k++)
        cr_assert_null(ops[k].build(NULL, NULL));
}
