/* test_pool.c - max and average pooling and their gradients against literal numbers, a reference
 * written here, the adjoint identity and finite differences. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "harness.h"
#include "graph/op.h"
#include "ops/grad.h"

static const adj_dtype dtypes[] = {ADJ_F32, ADJ_F64, ADJ_F16, ADJ_BF16};
enum { DTYPES = 4 };

static double rounding(adj_dtype dtype)
{
    switch (dtype) {
    case ADJ_F64: return 1e-14;
    case ADJ_F32: return 1e-6;
    case ADJ_F16: return 1e-3;
    default: return 8e-3;
    }
}

/* ---- the reference: windows by definition, in double, on images given as [n][c][h][w] ---- */

typedef struct {
    int n, h, w, c; /* input */
    int kh, kw, kc; /* window; kc is its own stride */
    int sh, sw;     /* stride */
    adj_padding padding;
    int pt, pb, pl, pr; /* EXPLICIT */
    adj_format format;
} problem;

static const problem problems[] = {
    {1, 4, 4, 3, 2, 2, 1, 2, 2, ADJ_VALID, 0, 0, 0, 0, ADJ_NHWC},
    {2, 7, 5, 3, 3, 2, 1, 2, 1, ADJ_VALID, 0, 0, 0, 0, ADJ_NHWC},
    {2, 7, 5, 3, 3, 2, 1, 2, 1, ADJ_SAME, 0, 0, 0, 0, ADJ_NHWC},
    {2, 7, 5, 3, 3, 2, 1, 2, 1, ADJ_SAME, 0, 0, 0, 0, ADJ_NCHW},
    {2, 6, 6, 4, 3, 3, 1, 1, 1, ADJ_SAME, 0, 0, 0, 0, ADJ_NHWC},
    {1, 5, 8, 2, 1, 1, 1, 2, 3, ADJ_SAME, 0, 0, 0, 0, ADJ_NHWC},
    {1, 7, 7, 2, 2, 2, 1, 3, 3, ADJ_VALID, 0, 0, 0, 0, ADJ_NCHW},
    {1, 3, 3, 2, 5, 5, 1, 1, 1, ADJ_SAME, 0, 0, 0, 0, ADJ_NHWC},
    {1, 5, 4, 2, 3, 4, 1, 2, 1, ADJ_EXPLICIT, 2, 0, 1, 3, ADJ_NHWC},
    {1, 5, 4, 2, 3, 4, 1, 2, 1, ADJ_EXPLICIT, 0, 2, 3, 1, ADJ_NCHW},
    {2, 2, 3, 6, 1, 1, 3, 1, 1, ADJ_VALID, 0, 0, 0, 0, ADJ_NHWC},
    {2, 2, 3, 6, 1, 1, 2, 1, 2, ADJ_SAME, 0, 0, 0, 0, ADJ_NCHW},
    {2, 40, 40, 5, 3, 3, 1, 2, 2, ADJ_SAME, 0, 0, 0, 0, ADJ_NHWC}, /* several threads */
};
enum { PROBLEMS = sizeof problems / sizeof *problems };

static int output_size(int in, int k, int stride, adj_padding padding, int before, int after)
{
    if (padding == ADJ_SAME)
        return (int)ceil((double)in / stride);
    return (int)floor((double)(in + before + after - k) / stride) + 1;
}

static int pad_before(const problem *p, int in, int k, int stride, int given)
{
    if (p->padding != ADJ_SAME)
        return given;
    int total = (output_size(in, k, stride, ADJ_SAME, 0, 0) - 1) * stride + k - in;
    return total > 0 ? total / 2 : 0;
}

static int out_h(const problem *p)
{
    return output_size(p->h, p->kh, p->sh, p->padding, p->pt, p->pb);
}
static int out_w(const problem *p)
{
    return output_size(p->w, p->kw, p->sw, p->padding, p->pl, p->pr);
}

/* Position of an element in row-major order of the format. */
static int at(adj_format format, int n, int h, int w, int c, int H, int W, int C)
{
    return format == ADJ_NHWC ? ((n * H + h) * W + w) * C + c : ((n * C + c) * H + h) * W + w;
}

/* The elements of x that result number i (of y) is computed from, in row-major order. */
static int window(const problem *p, int i, int *element)
{
    int oh = out_h(p), ow = out_w(p), oc = p->c / p->kc, found = 0, r[4] = {0};
    for (int n = 0; n < p->n; n++)
        for (int h = 0; h < oh; h++)
            for (int w = 0; w < ow; w++)
                for (int c = 0; c < oc; c++)
                    if (at(p->format, n, h, w, c, oh, ow, oc) == i)
                        r[0] = n, r[1] = h, r[2] = w, r[3] = c;
    int top = r[1] * p->sh - pad_before(p, p->h, p->kh, p->sh, p->pt);
    int left = r[2] * p->sw - pad_before(p, p->w, p->kw, p->sw, p->pl);
    for (int h = top; h < top + p->kh; h++)
        for (int w = left; w < left + p->kw; w++)
            for (int c = r[3] * p->kc; c < (r[3] + 1) * p->kc; c++)
                if (h >= 0 && h < p->h && w >= 0 && w < p->w)
                    element[found++] = at(p->format, r[0], h, w, c, p->h, p->w, p->c);
    return found;
}

static int outputs(const problem *p) { return p->n * out_h(p) * out_w(p) * (p->c / p->kc); }
static int inputs(const problem *p) { return p->n * p->h * p->w * p->c; }

/* Expected results of the five ops for x, dy and e. */
typedef struct {
    double *max, *max_grad, *max_grad_grad, *avg, *avg_grad;
} answers;

static answers reference(const problem *p, const double *x, const double *dy, const double *e)
{
    int n_y = outputs(p), n_x = inputs(p), *element = malloc(256 * sizeof *element);
    answers r = {calloc(n_y, 8), calloc(n_x, 8), calloc(n_y, 8), calloc(n_y, 8), calloc(n_x, 8)};
    for (int i = 0; i < n_y; i++) {
        int n = window(p, i, element), first = element[0];
        for (int k = 0; k < n; k++) {
            r.avg[i] += x[element[k]] / n;
            r.avg_grad[element[k]] += dy[i] / n;
            if (x[element[k]] > x[first])
                first = element[k];
        }
        r.max[i] = x[first];
        r.max_grad[first] += dy[i];
        r.max_grad_grad[i] = e[first];
    }
    free(element);
    return r;
}

static void answers_free(answers r)
{
    free(r.max), free(r.max_grad), free(r.max_grad_grad), free(r.avg), free(r.avg_grad);
}

/* ---- the library's view of a problem ---- */

static adj_shape image(adj_format format, int n, int h, int w, int c)
{
    return format == ADJ_NHWC ? (adj_shape){4, {n, h, w, c}} : (adj_shape){4, {n, c, h, w}};
}

static adj_pool pool_of(const problem *p)
{
    int h = p->format == ADJ_NHWC ? 1 : 2, w = h + 1, c = p->format == ADJ_NHWC ? 3 : 1;
    adj_pool a = {.padding = p->padding, .format = p->format};
    a.ksize[0] = a.stride[0] = 1;
    a.ksize[h] = p->kh, a.ksize[w] = p->kw, a.ksize[c] = a.stride[c] = p->kc;
    a.stride[h] = p->sh, a.stride[w] = p->sw;
    a.pad[h][0] = p->pt, a.pad[h][1] = p->pb, a.pad[w][0] = p->pl, a.pad[w][1] = p->pr;
    return a;
}

static adj_shape x_shape(const problem *p) { return image(p->format, p->n, p->h, p->w, p->c); }

static adj_shape y_shape(const problem *p)
{
    return image(p->format, p->n, out_h(p), out_w(p), p->c / p->kc);
}

static int averages(const problem *p) { return p->kc == 1 && p->padding != ADJ_EXPLICIT; }

/* Small integers: many ties; every max pool result is exact in every dtype. */
Test(pool, reference)
{
    for (int i = 0; i < PROBLEMS * DTYPES; i++) {
        const problem *p = &problems[i / DTYPES];
        adj_dtype dtype = dtypes[i % DTYPES];
        adj_pool a = pool_of(p);
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given_integers(&f, dtype, x_shape(p), -2, 2);
        adj_node *dy = given_integers(&f, dtype, y_shape(p), -4, 4);
        adj_node *e = given_integers(&f, dtype, x_shape(p), -9, 9);
        answers want = reference(p, f.value[0], f.value[1], f.value[2]);
        adj_node *y = adj_max_pool(x, &a);
        cr_assert_not_null(y, "problem %d: %s", i / DTYPES, adj_graph_message(f.g));
        cr_assert(adj_shape_equal(adj_node_type(y).shape, y_shape(p)), "problem %d", i / DTYPES);
        expect_exact(&f, y, want.max);
        expect_exact(&f, adj_max_pool_grad(x, y, dy, &a), want.max_grad);
        expect_exact(&f, adj_max_pool_grad_grad(x, y, e, &a), want.max_grad_grad);
        if (averages(p)) {
            double r = rounding(dtype);
            expect_values(&f, adj_avg_pool(x, &a), "naive", want.avg, r, r / 10);
            expect_values(&f, adj_avg_pool_grad(x_shape(p), dy, &a), "naive", want.avg_grad, r,
                          r / 10);
        }
        answers_free(want);
    }
}

/* TensorFlow's pooling_ops_test: values 1, 2, 3, ... */
Test(pool, numbers)
{
    double count[64];
    for (int i = 0; i < 64; i++)
        count[i] = i + 1;
    const struct {
        problem p;
        double max[8], avg[8];
    } cases[] = {
        {{1, 3, 3, 3, 2, 2, 1, 2, 2, ADJ_VALID, 0, 0, 0, 0, ADJ_NHWC}, {13, 14, 15}, {7, 8, 9}},
        {{1, 2, 4, 3, 2, 2, 1, 2, 2, ADJ_SAME, 0, 0, 0, 0, ADJ_NHWC},
         {16, 17, 18, 22, 23, 24},
         {8.5, 9.5, 10.5, 14.5, 15.5, 16.5}},
        {{1, 2, 2, 1, 2, 1, 1, 1, 1, ADJ_SAME, 0, 0, 0, 0, ADJ_NCHW}, {3, 4, 3, 4}, {2, 3, 3, 4}},
        {{1, 7, 7, 1, 2, 2, 1, 3, 3, ADJ_VALID, 0, 0, 0, 0, ADJ_NHWC},
         {9, 12, 30, 33},
         {5, 8, 26, 29}},
        {{1, 3, 3, 1, 3, 3, 1, 2, 2, ADJ_EXPLICIT, 0, 2, 0, 1, ADJ_NHWC}, {9, 9}, {0}},
        {{1, 2, 2, 6, 1, 1, 3, 1, 1, ADJ_SAME, 0, 0, 0, 0, ADJ_NHWC},
         {3, 6, 9, 12, 15, 18, 21, 24},
         {0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases * DTYPES; i++) {
        const problem *p = &cases[i / DTYPES].p;
        adj_pool a = pool_of(p);
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given(&f, dtypes[i % DTYPES], x_shape(p), count);
        expect_exact(&f, adj_max_pool(x, &a), cases[i / DTYPES].max);
        if (averages(p))
            expect_exact(&f, adj_avg_pool(x, &a), cases[i / DTYPES].avg);
    }
}

/* A tie goes to the window's first maximum; a NaN is the largest. */
Test(pool, ties_and_nan)
{
    const double x_tie[16] = {1, 0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 0, 0, 1, 0, 1};
    const double dy_value[9] = {11, 12, 13, 15, 16, 17, 19, 20, 21};
    const double dx_tie[16] = {11, 0, 25, 0, 0, 31, 0, 17, 19, 0, 41, 0, 0, 0, 0, 0};
    const double x_nan[16] = {1, 2, 3, 4, 5, NAN, 7, 8, 9, 10, NAN, 12, 13, 14, 15, -INFINITY};
    const double y_nan[9] = {NAN, NAN, 8, NAN, NAN, NAN, 14, NAN, NAN};
    const double dx_nan[16] = {0, 0, 0, 0, 0, 11 + 12 + 15 + 16, 0, 13, 0, 0, 17 + 20 + 21,
                               0, 0, 19};
    double x_all[16], dx_all[16] = {11, 12, 13, 0, 15, 16, 17, 0, 19, 20, 21};
    const adj_pool a = {.ksize = {1, 2, 2, 1}, .stride = {1, 1, 1, 1}};
    for (int i = 0; i < 16; i++)
        x_all[i] = NAN;
    for (int d = 0; d < DTYPES; d++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *dy = given(&f, dtypes[d], (adj_shape){4, {1, 3, 3, 1}}, dy_value);
        adj_node *tie = given(&f, dtypes[d], (adj_shape){4, {1, 4, 4, 1}}, x_tie);
        adj_node *nan = given(&f, dtypes[d], (adj_shape){4, {1, 4, 4, 1}}, x_nan);
        adj_node *all = given(&f, dtypes[d], (adj_shape){4, {1, 4, 4, 1}}, x_all);
        expect_exact(&f, adj_max_pool_grad(tie, adj_max_pool(tie, &a), dy, &a), dx_tie);
        expect_exact(&f, adj_max_pool(nan, &a), y_nan);
        expect_exact(&f, adj_max_pool_grad(nan, adj_max_pool(nan, &a), dy, &a), dx_nan);
        expect_exact(&f, adj_max_pool_grad(all, adj_max_pool(all, &a), dy, &a), dx_all);
    }
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* <d, f(v)> == <f^T(d), v> exactly, f and f^T being linear in v and d. */
static void expect_adjoint(fixture *f, adj_node *of_v, const double *d, adj_node *of_d,
                           const double *v)
{
    scoped(release) double *forward = evaluate(f, of_v, "naive"),
                           *back = evaluate(f, of_d, "naive");
    double left = dot(d, forward, adj_shape_elems(adj_node_type(of_v).shape));
    double right = dot(back, v, adj_shape_elems(adj_node_type(of_d).shape));
    cr_assert_eq(left, right, "%s: %.17g and %.17g", adj_node_op(of_v), left, right);
}

Test(pool, adjoint)
{
    for (int i = 0; i < PROBLEMS * DTYPES; i++) {
        const problem *p = &problems[i / DTYPES];
        adj_dtype dtype = dtypes[i % DTYPES];
        adj_pool a = pool_of(p);
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given_integers(&f, dtype, x_shape(p), -2, 2);
        adj_node *d = given_integers(&f, dtype, y_shape(p), -4, 4);
        adj_node *v = given_integers(&f, dtype, x_shape(p), -4, 4);
        adj_node *y = adj_max_pool(x, &a);
        expect_adjoint(&f, adj_max_pool_grad_grad(x, y, v, &a), f.value[1],
                       adj_max_pool_grad(x, y, d, &a), f.value[2]);
        if (p->padding == ADJ_VALID && p->kc == 1 && (p->kh * p->kw & (p->kh * p->kw - 1)) == 0)
            expect_adjoint(&f, adj_avg_pool(v, &a), f.value[1],
                           adj_avg_pool_grad(x_shape(p), d, &a), f.value[2]);
    }
}

Test(pool, gradients)
{
    for (int i = 0; i < PROBLEMS - 1; i++) {
        const problem *p = &problems[i];
        adj_pool a = pool_of(p);
        fixture f = fixture_new();
        adj_node *x = given_random(&f, ADJ_F64, x_shape(p), -1, 1);
        expect_gradient(&f, adj_max_pool(x, &a), 1e-6, 1e-6, 1e-8);
        fixture_free(&f);

        f = fixture_new(); /* second order: no gradient flows to x and y */
        x = given_random(&f, ADJ_F64, x_shape(p), -1, 1);
        adj_node *y = given_random(&f, ADJ_F64, y_shape(p), -1, 1);
        adj_node *dy = given_random(&f, ADJ_F64, y_shape(p), -1, 1);
        expect_gradient(&f, adj_max_pool_grad(x, y, dy, &a), 1e-6, 1e-6, 1e-8);
        fixture_free(&f);

        f = fixture_new();
        x = given_random(&f, ADJ_F64, x_shape(p), -1, 1);
        y = given_random(&f, ADJ_F64, y_shape(p), -1, 1);
        adj_node *e = given_random(&f, ADJ_F64, x_shape(p), -1, 1);
        expect_gradient(&f, adj_max_pool_grad_grad(x, y, e, &a), 1e-6, 1e-6, 1e-8);
        fixture_free(&f);
        if (!averages(p))
            continue;

        f = fixture_new();
        x = given_random(&f, ADJ_F64, x_shape(p), -1, 1);
        expect_gradient(&f, adj_avg_pool(x, &a), 0.5, 1e-12, 1e-12);
        fixture_renew(&f);
        dy = given_random(&f, ADJ_F64, y_shape(p), -1, 1);
        expect_gradient(&f, adj_avg_pool_grad(x_shape(p), dy, &a), 0.5, 1e-12, 1e-12);
        fixture_free(&f);
    }
}

Test(pool, global_average)
{
    const double x_value[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *last = given(&f, ADJ_F32, (adj_shape){4, {1, 2, 2, 2}}, x_value);
    adj_node *y = adj_global_avg_pool(last, ADJ_NHWC);
    cr_assert(adj_shape_equal(adj_node_type(y).shape, (adj_shape){2, {1, 2}}));
    expect_exact(&f, y, (double[]){4, 5});
    expect_exact(&f, adj_global_avg_pool(last, ADJ_NCHW), (double[]){2.5, 6.5});
}

/* Empty batches, channels and sides: empty results, and zeros for the gradient of a side. */
Test(pool, empty)
{
    const adj_pool same = {.ksize = {1, 3, 3, 1}, .stride = {1, 2, 2, 1}, .padding = ADJ_SAME};
    const adj_pool valid = {.ksize = {1, 2, 2, 1}};
    const int64_t sizes[][4] = {{0, 8, 8, 8}, {1, 0, 8, 2}, {1, 3, 3, 0}};
    for (int i = 0; i < 3; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_shape shape = {4, {sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3]}};
        adj_node *x = given(&f, ADJ_F32, shape, NULL), *y = adj_max_pool(x, &same), *dx;
        adj_node *dy = given(&f, ADJ_F32, adj_node_type(y).shape, NULL);
        cr_assert_eq(adj_shape_elems(adj_node_type(y).shape), 0);
        dx = gradient_of(y, dy, x);
        cr_assert(adj_shape_equal(adj_node_type(dx).shape, shape));
        free(evaluate(&f, y, "naive"));
        free(evaluate(&f, dx, "naive"));
        if (i != 1)
            free(evaluate(&f, adj_avg_pool(x, &valid), "naive"));
    }
    /* A stride beyond the input: columns that no window covers get zeros. */
    scoped(fixture_free) fixture f = fixture_new();
    const adj_pool a = {.ksize = {1, 1, 1, 1}, .stride = {1, 3, 3, 1}};
    adj_node *dy = given(&f, ADJ_F32, (adj_shape){4, {1, 1, 1, 1}}, (double[]){5});
    expect_exact(&f, adj_avg_pool_grad((adj_shape){4, {1, 2, 2, 1}}, dy, &a),
                 (double[]){5, 0, 0, 0});
}

/* Where no window of an average pool has room, its gradient arrives without an element, and is
 * zeros, as TensorFlow's is; and has a gradient itself. A much larger window gives no shape at all.
 */
Test(pool, average_gradient_without_room)
{
    static const struct {
        int64_t in[4], ksize[4], stride[4], out[4];
        adj_format format;
    } rows[] = {
        {{1, 2, 1, 1}, {1, 1, 2, 1}, {1, 1, 1, 1}, {1, 2, 0, 1}, ADJ_NHWC},
        {{1, 1, 2, 1}, {1, 1, 1, 2}, {1, 1, 1, 1}, {1, 1, 2, 0}, ADJ_NCHW},
        {{2, 1, 1, 3}, {1, 2, 2, 1}, {1, 1, 1, 1}, {2, 0, 0, 3}, ADJ_NHWC},
        {{2, 3, 2, 2}, {1, 1, 4, 4}, {1, 1, 3, 3}, {2, 3, 0, 0}, ADJ_NCHW},
    };
    static const char *const backends[] = {"naive", "onednn", "direct"};
    static const double zeros[24];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_pool a = {.format = rows[i].format};
        adj_shape in = {.rank = 4}, out = {.rank = 4};
        for (int d = 0; d < 4; d++) {
            a.ksize[d] = rows[i].ksize[d];
            a.stride[d] = rows[i].stride[d];
            in.dim[d] = rows[i].in[d];
            out.dim[d] = rows[i].out[d];
        }
        adj_node *dy = given(&f, ADJ_F32, out, NULL), *e = given_random(&f, ADJ_F32, in, -1, 1),
                 *de;
        adj_node *dx = adj_avg_pool_grad(in, dy, &a);
        cr_assert_not_null(dx, "%s", adj_graph_message(f.g));
        for (int b = 0; b < 3; b++)
            expect_values(&f, dx, backends[b], zeros, 0, 0);
        de = gradient_of(dx, e, dy);
        cr_assert(adj_shape_equal(adj_node_type(de).shape, out));
        a.ksize[rows[i].format == ADJ_NCHW ? 3 : 2] = 9;
        cr_assert_null(adj_avg_pool_grad(in, dy, &a));
        expect_error(f.g, ADJ_ESHAPE, (const char *[]){"avg_pool_grad", "width", NULL});
    }
}
