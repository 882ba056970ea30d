/* test_pool_argmax.c - literals of max_pool, its gradient, and max_pool_argmax and
 * max_pool_grad_argmax, which passes make; the last two give together the same bits as
 * max_pool_grad, in every type and format; and wrong calls of all pools and their gradients: a
 * status and a message that names the argument. */
#include <math.h>

#include "expect.h"
#include "graph/op.h"
#include "tests/isa.h"

static adj_node *argmax_of(const adj_node *y)
{
    return adj_node_new1(&adj_op_max_pool_argmax, y->in[0], y->attrs);
}

static adj_node *argmax_gradient(const adj_node *y, adj_node *argmax, adj_node *dy)
{
    return adj_node_new2(&adj_op_max_pool_grad_argmax, argmax, dy, y->attrs);
}

/* One image; its channels are all the same. The argmax is there where windows do not overlap. */
typedef struct {
    struct {
        const char *label;
        int h, w, k, s;
        adj_padding padding;
    } of;
    double x[16], y[9], dy[9], dx[16], argmax[4];
} literal;

static const literal literals[] = {
    {{"ties: the first takes the gradient", 2, 4, 2, 2, ADJ_VALID},
     {3, 3, 1, 2, 3, 0, 2, 2},
     {3, 2},
     {10, 20},
     {10, 0, 0, 20},
     {0, 1}},
    {{"the first NaN is the maximum", 2, 4, 2, 2, ADJ_VALID},
     {1, NAN, INFINITY, 2, NAN, 5, 0, NAN},
     {NAN, NAN},
     {10, 20},
     {0, 10, 0, 0, 0, 0, 0, 20},
     {1, 3}},
    {{"zeros are equal whatever their signs", 2, 4, 2, 2, ADJ_VALID},
     {-1, -0.0, -2, -3, 0, -1, -1, -1},
     {-0.0, -1},
     {5, 6},
     {0, 5, 0, 0, 0, 0, 6},
     {1, 2}},
    {{"only -infinity, zeros of both signs", 2, 4, 2, 2, ADJ_VALID},
     {-INFINITY, -INFINITY, -0.0, 0, -INFINITY, -INFINITY, 0, -1},
     {-INFINITY, -0.0},
     {10, -0.0},
     {10},
     {0, 0}},
    {{"a column and a row of no window", 3, 3, 2, 2, ADJ_VALID},
     {1, 2, 9, 4, 3, 9, 9, 9, 9},
     {4},
     {7},
     {0, 0, 0, 7},
     {2}},
    {{"the pad above and to the left has places, too", 3, 3, 3, 2, ADJ_SAME},
     {1, 2, 3, 4, 5, 6, 7, 8, 9},
     {5, 6, 8, 9},
     {1, 2, 3, 4},
     {0, 0, 0, 0, 1, 2, 0, 3, 4},
     {8, 7, 5, 4}},
    {{"rounded once: 256 + 1 + 1 in bf16", 3, 3, 2, 1, ADJ_VALID},
     {0, 0, 0, 0, 1, 0, 0, 0, 0},
     {1, 1, 1, 1},
     {256, 1, 1, 0},
     {0, 0, 0, 0, 258},
     {0}},
    {{"overlapping ties", 4, 4, 2, 1, ADJ_VALID},
     {1, 0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 0, 0, 1, 0, 1},
     {1, 1, 1, 1, 1, 1, 1, 1, 1},
     {11, 12, 13, 15, 16, 17, 19, 20, 21},
     {11, 0, 25, 0, 0, 31, 0, 17, 19, 0, 41},
     {0}},
    {{"two NaNs", 4, 4, 2, 1, ADJ_VALID},
     {1, 2, 3, 4, 5, NAN, 7, 8, 9, 10, NAN, 12, 13, 14, 15, -INFINITY},
     {NAN, NAN, 8, NAN, NAN, NAN, 14, NAN, NAN},
     {11, 12, 13, 15, 16, 17, 19, 20, 21},
     {0, 0, 0, 0, 0, 11 + 12 + 15 + 16, 0, 13, 0, 0, 17 + 20 + 21, 0, 0, 19},
     {0}},
    {{"NaNs alone", 4, 4, 2, 1, ADJ_VALID},
     {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN},
     {NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN},
     {11, 12, 13, 15, 16, 17, 19, 20, 21},
     {11, 12, 13, 0, 15, 16, 17, 0, 19, 20, 21},
     {0}},
};

enum { CHANNELS = 70, PIXELS = 16 }; /* a vector of channels, and a rest */

/* Repeats an image's pixels in every channel. */
static const double *in_every_channel(const double *v, int pixels, double all[PIXELS * CHANNELS])
{
    for (int i = 0; i < pixels * CHANNELS; i++)
        all[i] = v[i / CHANNELS];
    return all;
}

/* isa NULL: by naive, and the argmax; else by direct's pools. */
static void expect_literal(const literal *l, adj_dtype dtype, const char *isa)
{
    const adj_pool a = {.ksize = {1, l->of.k, l->of.k, 1},
                        .stride = {1, l->of.s, l->of.s, 1},
                        .padding = l->of.padding};
    double all[PIXELS * CHANNELS];
    char impl[32];
    snprintf(impl, sizeof impl, "max_pool:%s", isa != NULL ? isa : "");
    scoped(fixture_free) fixture f = fixture_new();
    const adj_shape image = {4, {1, l->of.h, l->of.w, CHANNELS}};
    adj_node *x = given(&f, dtype, image, in_every_channel(l->x, l->of.h * l->of.w, all));
    adj_node *y = adj_max_pool(x, &a);
    const int n_y = (int)(elems_of(y) / CHANNELS);
    adj_node *dy = given(&f, dtype, y->type.shape, in_every_channel(l->dy, n_y, all));
    adj_node *dx = adj_max_pool_grad(x, dy, dy, &a); /* reads only the shape of y */
    scoped(release) double *max = isa ? evaluate_by(&f, y, impl, 2) : evaluate(&f, y, "naive"),
                           *grad = isa ? evaluate_by(&f, dx, impl, 2) : evaluate(&f, dx, "naive");
    expect_same_bits(max, in_every_channel(l->y, n_y, all), elems_of(y), l->of.label);
    expect_same_bits(grad, in_every_channel(l->dx, l->of.h * l->of.w, all), elems_of(x),
                     l->of.label);
    if (isa != NULL || (l->of.s < l->of.k && l->of.padding == ADJ_VALID))
        return;
    adj_node *argmax = argmax_of(y);
    cr_assert_eq(argmax->type.dtype, ADJ_I32);
    expect_exact(&f, argmax, in_every_channel(l->argmax, n_y, all));
    expect_exact(&f, argmax_gradient(y, argmax, dy),
                 in_every_channel(l->dx, l->of.h * l->of.w, all));
}

static void expect_literals(const char *isa)
{
    for (size_t i = 0; i < sizeof literals / sizeof *literals; i++) {
        expect_literal(&literals[i], ADJ_F32, isa);
        expect_literal(&literals[i], ADJ_BF16, isa);
    }
}

Test(pool, literals_by_direct) { for_each_isa(N_ISA, all_isas, expect_literals); }

Test(pool, literals)
{
    for (size_t i = 0; i < sizeof literals / sizeof *literals; i++)
        for (int t = 0; t < N_PRECISIONS; t++)
            expect_literal(&literals[i], dtypes[t], NULL);
}

/* Argmax and gradient by one backend each, where one of them has layouts of its own for the argmax:
 * of each window another place, of the last one never the first. */
Test(pool_argmax, by_two_backends)
{
    static const char *const backends[] = {"direct", "direct,max_pool_grad_argmax=naive",
                                           "naive,max_pool_grad_argmax=direct"};
    enum { W = 5, C = 3, N = 2 * W * C };
    const adj_pool a = {.ksize = {1, 2, 2, 1}, .stride = {1, 2, 2, 1}};
    double v[4 * N] = {0}, d[N], at[N], dx[4 * N] = {0};
    for (int i = 0; i < N; i++) {
        const int row = i / (W * C), column = i / C % W;
        at[i] = (N - i + 2) % 4; /* 3 for the last one */
        d[i] = i + 1;
        const int y = 2 * row + (int)at[i] / 2, x = 2 * column + (int)at[i] % 2;
        v[(y * 2 * W + x) * C + i % C] = 1;
        dx[(y * 2 * W + x) * C + i % C] = d[i];
    }
    for (int i = 0; i < 3 * 4; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        const adj_dtype dtype = dtypes[i % 4];
        adj_node *y = adj_max_pool(given(&f, dtype, (adj_shape){4, {1, 4, 2 * W, C}}, v), &a);
        adj_node *argmax = argmax_of(y), *dy = given(&f, dtype, y->type.shape, d);
        expect_values(&f, argmax, backends[i / 4], at, 0, 0);
        expect_values(&f, argmax_gradient(y, argmax, dy), backends[i / 4], dx, 0, 0);
    }
}

typedef struct {
    int64_t ksize[4], stride[4]; /* NHWC */
    adj_padding padding;
} pool_row;

static const pool_row rows[] = {
    {{1, 2, 2, 1}, {1, 2, 2, 1}, ADJ_VALID}, {{1, 2, 2, 1}, {1, 2, 2, 1}, ADJ_SAME},
    {{1, 3, 2, 1}, {1, 1, 2, 1}, ADJ_SAME},  {{1, 3, 3, 1}, {1, 2, 2, 1}, ADJ_VALID},
    {{1, 2, 2, 1}, {1, 3, 4, 1}, ADJ_VALID}, {{1, 1, 1, 3}, {1, 1, 1, 3}, ADJ_VALID},
};

/* x has ties, zeros of both signs and NaNs. */
static void expect_same_gradient(const pool_row *r, adj_dtype dtype, adj_format format)
{
    static const double values[] = {-2, -1, -0.0, 0, 1, 1, 2, NAN};
    adj_pool a = {.padding = r->padding, .format = format};
    adj_shape shape = {4, {2, 7, 9, 6}};
    double v[2 * 7 * 9 * 6];
    scoped(fixture_free) fixture f = fixture_new();
    memcpy(a.ksize, r->ksize, sizeof a.ksize);
    memcpy(a.stride, r->stride, sizeof a.stride);
    if (format == ADJ_NCHW)
        to_nchw(a.ksize), to_nchw(a.stride), to_nchw(shape.dim);
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        v[i] = values[(i * i + 3 * i) / 7 % 8];
    adj_node *x = given(&f, dtype, shape, v), *y = adj_max_pool(x, &a);
    cr_assert_not_null(y, "%s", adj_graph_message(f.g));
    adj_node *dy = given_integers(&f, dtype, y->type.shape, -9, 9);
    scoped(release) double *want = evaluate(&f, adj_max_pool_grad(x, y, dy, &a), "naive");
    scoped(release) double *got = evaluate(&f, argmax_gradient(y, argmax_of(y), dy), "naive");
    char label[40];
    snprintf(label, sizeof label, "row %d, %s of %s", (int)(r - rows), adj_dtype_name(dtype),
             format == ADJ_NHWC ? "NHWC" : "NCHW");
    expect_same_bits(got, want, elems_of(x), label);
}

Test(pool_argmax, same_bits_as_max_pool_grad)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int t = 0; t < 8; t++)
            expect_same_gradient(&rows[i], dtypes[t / 2], t % 2 ? ADJ_NCHW : ADJ_NHWC);
}

/* A number of no element, or of one outside the image, gets nothing. */
Test(pool_argmax, wrong_numbers)
{
    const adj_pool a = {.ksize = {1, 3, 3, 1}, .stride = {1, 3, 3, 1}, .padding = ADJ_SAME};
    static const double wrong[] = {-1, 9, INT32_MAX, 0, 6, 2, 4, INT32_MIN, 1000};
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *y = adj_max_pool(given_integers(&f, ADJ_F32, (adj_shape){4, {1, 2, 2, 9}}, 0, 9), &a);
    adj_node *argmax = given(&f, ADJ_I32, y->type.shape, wrong);
    adj_node *dy = given_integers(&f, ADJ_F32, y->type.shape, 1, 9);
    double *dx = evaluate(&f, argmax_gradient(y, argmax, dy), "naive"), sum = 0;
    for (int i = 0; i < 36; i++)
        sum += dx[i];
    /* pads are below and to the right alone: 0 and 4 are inside, 2 and 6 are not */
    cr_expect_eq(dx[3], f.value[2][3]);
    cr_expect_eq(dx[3 * 9 + 6], f.value[2][6]);
    cr_expect_eq(sum, f.value[2][3] + f.value[2][6], "%g", sum);
    free(dx);
}

Test(pool_argmax, refused)
{
    const adj_pool pool = {.ksize = {1, 2, 2, 1}}, single = {.ksize = {1, 1, 1, 1}};
    for (int i = 0; i < 4; i++) {
        adj_node *x = of_type("f32[1, 4, 4, 3]"), *y = adj_max_pool(x, &pool);
        adj_node *argmax = argmax_of(y), *wide = argmax_of(adj_max_pool(x, &single));
        const struct {
            adj_node *argmax, *grad;
            adj_status status;
            const char *words;
        } wrong[] = {{argmax, argmax, ADJ_EDTYPE, "max_pool_grad_argmax|argmax"},
                     {y, y, ADJ_EDTYPE, "max_pool_grad_argmax|argmax"},
                     {wide, y, ADJ_ESHAPE, "max_pool_grad_argmax|argmax"},
                     {argmax, x, ADJ_ESHAPE, "max_pool_grad_argmax|grad"}};
        expect_refused(argmax_gradient(y, wrong[i].argmax, wrong[i].grad), wrong[i].status,
                       wrong[i].words);
    }
}

/* ---- wrong calls ---- */

/* Attributes that no list can express; the others: test_bad_inputs.c. */
Test(pool_refused, pools)
{
    static const struct {
        adj_pool a;
        const char *words;
    } bad[] = {
        {{.ksize = {0}}, "ksize|missing"},
        {{.ksize = {1, 2, 2, 1}, .padding = (adj_padding)9}, "padding|9"},
        {{.ksize = {1, 2, 2, 1}, .format = (adj_format)9}, "data_format|9"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_refused(adj_max_pool(of_type("f32[2, 4, 4, 3]"), &bad[i].a), ADJ_EARG, bad[i].words);
}

static const adj_pool halves = {.ksize = {1, 2, 2, 1}};
static const char *const x_type = "f32[1, 4, 4, 2]", *const y_type = "f32[1, 2, 2, 2]",
                         *const wrong = "f32[1, 1, 2, 4]";

static adj_node *max_grad(const char *y, const char *dy)
{
    return adj_max_pool_grad(of_type(x_type), of_type(y), of_type(dy), &halves);
}

static adj_node *max_grad_grad(const char *y, const char *e)
{
    return adj_max_pool_grad_grad(of_type(x_type), of_type(y), of_type(e), &halves);
}

/* Gradients: every operand's shape and type is checked against what the attributes give. */
Test(pool_refused, gradients)
{
    const adj_shape x = {4, {1, 4, 4, 2}}, negative = {4, {1, -4, 4, 2}};
    expect_refused(max_grad(wrong, y_type), ADJ_ESHAPE, "orig_output");
    expect_refused(max_grad(y_type, wrong), ADJ_ESHAPE, "grad");
    expect_refused(max_grad("f16[1, 2, 2, 2]", y_type), ADJ_EDTYPE, "f16");
    expect_refused(max_grad_grad(wrong, x_type), ADJ_ESHAPE, "orig_output");
    expect_refused(max_grad_grad(y_type, y_type), ADJ_ESHAPE, "grad");
    expect_refused(adj_avg_pool_grad(x, of_type(wrong), &halves), ADJ_ESHAPE, "grad");
    expect_refused(adj_avg_pool_grad((adj_shape){2, {4, 4}}, of_type(y_type), &halves), ADJ_ESHAPE,
                   "orig_input_shape");
    expect_refused(adj_avg_pool_grad(negative, of_type(y_type), &halves), ADJ_ESHAPE,
                   "orig_input_shape");
    expect_refused(adj_avg_pool_grad(x, of_type(y_type), NULL), ADJ_EARG, "ksize");
    const adj_pool large = {.ksize = {1, 2, 9, 1}, .stride = {1, 1, 1, 1}};
    expect_refused(adj_avg_pool_grad(x, of_type("f32[1, 3, 0, 2]"), &large), ADJ_ESHAPE,
                   "avg_pool_grad|width");
    cr_assert_null(adj_max_pool(NULL, &halves));
    cr_assert_null(adj_avg_pool_grad(x, NULL, &halves));
    cr_assert_null(adj_global_avg_pool(NULL, ADJ_NHWC));
}
