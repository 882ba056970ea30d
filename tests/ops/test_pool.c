/* test_pool.c - max and average pooling and their gradients against a reference written here, the
 * adjoint identity and finite differences. Literal numbers: test_pool_argmax.c; TensorFlow's, and
 * windows without room: tests/conformance. */
#include <math.h>

#include "expect.h"
#include "graph/op.h"
#include "tests/oracle.h"

static const double rounding[] = {
    [ADJ_F32] = 1e-6, [ADJ_F64] = 1e-14, [ADJ_F16] = 1e-3, [ADJ_BF16] = 8e-3};

/* ---- the reference: windows by definition, in double ---- */

typedef struct {
    int n, h, w, c; /* input */
    int kh, kw, kc; /* window; kc is its own stride */
    int sh, sw;     /* stride */
    adj_padding padding;
    int pad[4]; /* EXPLICIT: top, bottom, left, right */
    adj_format format;
} problem;

static const problem problems[] = {
    {1, 4, 4, 3, 2, 2, 1, 2, 2, ADJ_VALID, {0}, ADJ_NHWC},
    {2, 7, 5, 3, 3, 2, 1, 2, 1, ADJ_VALID, {0}, ADJ_NHWC},
    {2, 7, 5, 3, 3, 2, 1, 2, 1, ADJ_SAME, {0}, ADJ_NHWC},
    {2, 7, 5, 3, 3, 2, 1, 2, 1, ADJ_SAME, {0}, ADJ_NCHW},
    {2, 6, 6, 4, 3, 3, 1, 1, 1, ADJ_SAME, {0}, ADJ_NHWC},
    {1, 5, 8, 2, 1, 1, 1, 2, 3, ADJ_SAME, {0}, ADJ_NHWC},
    {1, 7, 7, 2, 2, 2, 1, 3, 3, ADJ_VALID, {0}, ADJ_NCHW},
    {1, 3, 3, 2, 5, 5, 1, 1, 1, ADJ_SAME, {0}, ADJ_NHWC},
    {1, 5, 4, 2, 3, 4, 1, 2, 1, ADJ_EXPLICIT, {2, 0, 1, 3}, ADJ_NHWC},
    {1, 5, 4, 2, 3, 4, 1, 2, 1, ADJ_EXPLICIT, {0, 2, 3, 1}, ADJ_NCHW},
    {2, 2, 3, 6, 1, 1, 3, 1, 1, ADJ_VALID, {0}, ADJ_NHWC},
    {2, 2, 3, 6, 1, 1, 2, 1, 2, ADJ_SAME, {0}, ADJ_NCHW},
    {2, 40, 40, 5, 3, 3, 1, 2, 2, ADJ_SAME, {0}, ADJ_NHWC}, /* several threads */
};
enum { PROBLEMS = sizeof problems / sizeof *problems };

/* Sizes as a convolution with this window has them, whose outputs are groups of kc channels. */
static oracle_sizes sizes_of(const problem *p)
{
    oracle_conv a = {p->n, p->h, p->w, p->c, p->kh, p->kw, p->c / p->kc, .sh = p->sh, .sw = p->sw};
    a.padding = p->padding;
    a.format = p->format;
    memcpy(a.pad, p->pad, sizeof a.pad);
    return oracle_sizes_of(a);
}

/* The elements of x that result number i (of y) is computed from, in row-major order. */
static int window(const problem *p, const oracle_sizes *s, int64_t i, int64_t *element)
{
    const int is_nhwc = p->format == ADJ_NHWC, h_axis = is_nhwc ? 1 : 2;
    const adj_shape r = unravel(i, s->y);
    const int64_t top = r.dim[h_axis] * p->sh - s->a.pad[0], n = r.dim[0];
    const int64_t left = r.dim[h_axis + 1] * p->sw - s->a.pad[2];
    const int64_t first = r.dim[is_nhwc ? 3 : 1] * p->kc;
    int found = 0;
    for (int64_t h = top; h < top + p->kh; h++)
        for (int64_t w = left; w < left + p->kw; w++)
            for (int64_t c = first; c < first + p->kc; c++)
                if (h >= 0 && h < p->h && w >= 0 && w < p->w)
                    element[found++] =
                        ravel(is_nhwc ? (adj_shape){4, {n, h, w, c}} : (adj_shape){4, {n, c, h, w}},
                              s->x);
    return found;
}

/* Expected results of the five ops for x, dy and e. */
typedef struct {
    double *max, *max_grad, *max_grad_grad, *avg, *avg_grad;
} answers;

static answers reference(const problem *p, const double *x, const double *dy, const double *e)
{
    const oracle_sizes s = sizes_of(p);
    const int64_t n_y = adj_shape_elems(s.y), n_x = adj_shape_elems(s.x);
    int64_t element[64];
    answers r = {calloc(n_y, 8), calloc(n_x, 8), calloc(n_y, 8), calloc(n_y, 8), calloc(n_x, 8)};
    for (int64_t i = 0; i < n_y; i++) {
        const int n = window(p, &s, i, element);
        int64_t first = element[0];
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
    return r;
}

static void answers_free(answers *r)
{
    free(r->max), free(r->max_grad), free(r->max_grad_grad), free(r->avg), free(r->avg_grad);
}

/* ---- the library's view of a problem ---- */

static adj_pool pool_of(const problem *p)
{
    int h = p->format == ADJ_NHWC ? 1 : 2, w = h + 1, c = p->format == ADJ_NHWC ? 3 : 1;
    adj_pool a = {.padding = p->padding, .format = p->format};
    a.ksize[0] = a.stride[0] = 1;
    a.ksize[h] = p->kh, a.ksize[w] = p->kw, a.ksize[c] = a.stride[c] = p->kc;
    a.stride[h] = p->sh, a.stride[w] = p->sw;
    a.pad[h][0] = p->pad[0], a.pad[h][1] = p->pad[1], a.pad[w][0] = p->pad[2],
    a.pad[w][1] = p->pad[3];
    return a;
}

static int averages(const problem *p) { return p->kc == 1 && p->padding != ADJ_EXPLICIT; }

/* Small integers: many ties; every max pool result is exact in every dtype. */
Test(pool, reference)
{
    for (int i = 0; i < PROBLEMS * N_PRECISIONS; i++) {
        const problem *p = &problems[i / N_PRECISIONS];
        adj_dtype dtype = dtypes[i % N_PRECISIONS];
        const oracle_sizes s = sizes_of(p);
        adj_pool a = pool_of(p);
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given_integers(&f, dtype, s.x, -2, 2);
        adj_node *dy = given_integers(&f, dtype, s.y, -4, 4);
        adj_node *e = given_integers(&f, dtype, s.x, -9, 9);
        scoped(answers_free) answers want = reference(p, f.value[0], f.value[1], f.value[2]);
        adj_node *y = adj_max_pool(x, &a);
        expect_shape(&f, y, s.y);
        expect_exact(&f, y, want.max);
        expect_exact(&f, adj_max_pool_grad(x, y, dy, &a), want.max_grad);
        expect_exact(&f, adj_max_pool_grad_grad(x, y, e, &a), want.max_grad_grad);
        if (averages(p)) {
            double r = rounding[dtype];
            expect_values(&f, adj_avg_pool(x, &a), "naive", want.avg, r, r / 10);
            expect_values(&f, adj_avg_pool_grad(s.x, dy, &a), "naive", want.avg_grad, r, r / 10);
        }
    }
}

/* max_pool_grad_grad is linear in v, and its gradient is max_pool_grad; avg_pool's is
 * avg_pool_grad.
 */
Test(pool, adjoint)
{
    for (int i = 0; i < PROBLEMS * N_PRECISIONS; i++) {
        const problem *p = &problems[i / N_PRECISIONS];
        adj_dtype dtype = dtypes[i % N_PRECISIONS];
        const oracle_sizes s = sizes_of(p);
        adj_pool a = pool_of(p);
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *v = given_integers(&f, dtype, s.x, -4, 4);
        adj_node *x = given_integers(&f, dtype, s.x, -2, 2);
        expect_adjoint(&f, adj_max_pool_grad_grad(x, adj_max_pool(x, &a), v, &a), 1);
        if (p->padding == ADJ_VALID && p->kc == 1 && (p->kh * p->kw & (p->kh * p->kw - 1)) == 0)
            expect_adjoint(&f, adj_avg_pool(v, &a), 1);
    }
}

Test(pool, gradients)
{
    for (int i = 0; i < PROBLEMS - 1; i++) {
        const problem *p = &problems[i];
        const oracle_sizes s = sizes_of(p);
        adj_pool a = pool_of(p);
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given_random(&f, ADJ_F64, s.x, -1, 1);
        adj_node *y = given_random(&f, ADJ_F64, s.y, -1, 1);
        adj_node *dy = given_random(&f, ADJ_F64, s.y, -1, 1);
        adj_node *e = given_random(&f, ADJ_F64, s.x, -1, 1);
        expect_gradient(&f, adj_max_pool(x, &a), 1e-6, 1e-6, 1e-8);
        /* second order: no gradient flows to x and y */
        expect_gradient(&f, adj_max_pool_grad(x, y, dy, &a), 1e-6, 1e-6, 1e-8);
        expect_gradient(&f, adj_max_pool_grad_grad(x, y, e, &a), 1e-6, 1e-6, 1e-8);
        if (!averages(p))
            continue;
        expect_gradient(&f, adj_avg_pool(x, &a), 0.5, 1e-12, 1e-12);
        expect_gradient(&f, adj_avg_pool_grad(s.x, dy, &a), 0.5, 1e-12, 1e-12);
    }
}

Test(pool, global_average)
{
    const double x_value[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *last = given(&f, ADJ_F32, (adj_shape){4, {1, 2, 2, 2}}, x_value);
    adj_node *y = adj_global_avg_pool(last, ADJ_NHWC);
    expect_shape(&f, y, (adj_shape){2, {1, 2}});
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
        adj_node *x = given(&f, ADJ_F32, shape, NULL), *y = adj_max_pool(x, &same);
        adj_node *dy = given(&f, ADJ_F32, adj_node_type(y).shape, NULL);
        cr_assert_eq(adj_shape_elems(adj_node_type(y).shape), 0);
        adj_node *dx = gradient_of(y, dy, x);
        expect_shape(&f, dx, shape);
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
