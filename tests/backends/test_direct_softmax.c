/* test_direct_softmax.c - direct softmax, log_softmax, softmax cross-entropy and its gradient
 * against their definitions in long double: every instruction set, type and kind of label, rows
 * that fill jobs and not, one class and many; infinities and NaN; labels out of range; what is
 * refused. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_ext.h"
#include "candidates.h"
#include "tests/isa.h"

typedef long double real;

static const adj_dtype dtypes[] = {ADJ_F32, ADJ_BF16, ADJ_F16};
enum { DTYPES = 3, MAX_CLASSES = 1 << 14 };

typedef enum { SOFTMAX, LOG_SOFTMAX, DENSE, DENSE_GRAD, SPARSE, SPARSE_GRAD, N_OP } op;
static const char *const names[] = {"softmax",    "log_softmax", "dense",
                                    "dense_grad", "sparse",      "sparse_grad"};

typedef struct {
    op op;
    adj_dtype dtype;
    int64_t n, k;
    double smoothing;
} problem;

static int has_labels(op o) { return o >= DENSE; }
static int is_loss(op o) { return o == DENSE || o == SPARSE; }
static int is_sparse(op o) { return o >= SPARSE; }

static adj_node *build(const problem *p, adj_node *z, adj_node *labels)
{
    switch (p->op) {
    case SOFTMAX: return adj_softmax(z);
    case LOG_SOFTMAX: return adj_log_softmax(z);
    case DENSE: return adj_softmax_cross_entropy(z, labels, p->smoothing);
    case DENSE_GRAD: return adj_softmax_cross_entropy_grad(z, labels, p->smoothing);
    case SPARSE: return adj_sparse_softmax_cross_entropy(z, labels, p->smoothing);
    default: return adj_sparse_softmax_cross_entropy_grad(z, labels, p->smoothing);
    }
}

/* ---- the definitions ---- */

/* A result, and what it was summed from in absolute values. */
typedef struct {
    real v, size;
} value;

static value plus(value a, real v) { return (value){a.v + v, a.size + fabsl(v)}; }

/* Label j of row i, smoothed. */
static real target_of(const problem *p, const double *label, int64_t i, int64_t j)
{
    const real s = p->smoothing;
    const real hot = is_sparse(p->op) ? label[i] == (double)j : (real)label[i * p->k + j];
    return (1 - s) * hot + s / (real)p->k;
}

/* Of element j of row i; of a loss of the row. */
static value want_of(const problem *p, const double *z, const double *label, int64_t i, int64_t j)
{
    const double *row = z + i * p->k;
    real m = -INFINITY, sum = 0;
    for (int64_t c = 0; c < p->k; c++)
        m = fmaxl(m, row[c]);
    for (int64_t c = 0; c < p->k; c++)
        sum += expl(row[c] - m);
    if (is_sparse(p->op) && label[i] < 0)
        return (value){0, 0};
    const value log_p = plus((value){row[j] - m, fabsl(row[j] - m)}, -logl(sum)), none = {0, 0};
    if (p->op == LOG_SOFTMAX)
        return log_p;
    value v = plus(none, expl(row[j] - m) / sum);
    if (!has_labels(p->op))
        return v;
    if (!is_loss(p->op))
        return plus(v, -target_of(p, label, i, j));
    v = none;
    for (int64_t c = 0; c < p->k; c++) {
        const real t = target_of(p, label, i, c);
        v = t == 0 ? v : plus(v, t * (logl(sum) - (row[c] - m)));
    }
    return v;
}

/* Rounded once to the type, from what is right to 2^-31 of its terms. */
static void expect_value(const problem *p, const double *z, const double *label, int64_t i,
                         int64_t j, double got)
{
    const adj_dtype_traits *t = adj_traits_of(p->dtype);
    const value want = want_of(p, z, label, i, j);
    const real bound = (real)t->unit * fabsl(want.v) + ldexpl(want.size, -31) +
                       ldexpl(1, t->min_exponent - t->significand);
    cr_assert((isnan(got) && isnan(want.v)) || (real)got == want.v || fabsl(got - want.v) <= bound,
              "%s, %s, %dx%d, row %d, class %d: %.9g, not %.9Lg", names[p->op],
              adj_dtype_name(p->dtype), (int)p->n, (int)p->k, (int)i, (int)j, got, want.v);
}

/* ---- cases ---- */

static adj_node *labels_for(fixture *f, const problem *p)
{
    if (is_sparse(p->op))
        return given_integers(f, ADJ_I32, (adj_shape){1, {p->n}}, -1, (int)p->k - 1);
    return has_labels(p->op) ? given_random(f, p->dtype, (adj_shape){2, {p->n, p->k}}, 0, 1) : NULL;
}

static void expect_case(const problem *p, const char *isa)
{
    fixture f = fixture_new();
    adj_node *z = given_random(&f, p->dtype, (adj_shape){2, {p->n, p->k}}, -9, 9);
    const adj_node *y = build(p, z, labels_for(&f, p));
    test_backend t = backend_open_for("direct", 3);
    outcome o = run_kernel(&f, &t, "softmax", 1, &y);
    char impl[32];
    snprintf(impl, sizeof impl, "softmax:%s", isa);
    cr_assert_eq(o.status, ADJ_OK, "%s: %s", names[p->op], o.why);
    cr_assert_str_eq(o.impl, impl);
    const int64_t columns = is_loss(p->op) ? 1 : p->k;
    for (int64_t i = 0; i < p->n; i++)
        for (int64_t j = 0; j < columns; j++)
            expect_value(p, f.value[0], f.value[1], i, j, o.y[i * columns + j]);
    free(o.y);
    backend_close(&t);
    fixture_free(&f);
}

static void expect_every_case(const char *isa)
{
    static const int64_t sizes[][2] = {{1, 1},  {1, 10},  {15, 2},  {16, 3},   {17, 8},
                                       {33, 5}, {3, 100}, {31, 21}, {700, 10}, {2, 1000}};
    for (int t = 0; t < DTYPES; t++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (int o = 0; o < N_OP; o++)
                for (int smooth = 0; smooth <= (o >= DENSE); smooth++)
                    expect_case(&(problem){.op = (op)o,
                                           .dtype = dtypes[t],
                                           .n = sizes[i][0],
                                           .k = sizes[i][1],
                                           .smoothing = smooth ? 0.1 : 0},
                                isa);
}

Test(direct_softmax, every_case) { for_each_isa(N_ISA, all_isas, expect_every_case); }

/* Rows are those of the last axis. */
Test(direct_softmax, images)
{
    fixture f = fixture_new();
    const problem p = {.op = SOFTMAX, .dtype = ADJ_F32, .n = 2 * 3 * 5, .k = 4};
    const adj_node *y = adj_softmax(given_random(&f, ADJ_F32, (adj_shape){4, {2, 3, 5, 4}}, -2, 2));
    test_backend t = backend_open("direct");
    outcome o = run_kernel(&f, &t, "softmax", 1, &y);
    cr_assert_eq(o.status, ADJ_OK, "%s", o.why);
    for (int64_t i = 0; i < p.n; i++)
        for (int64_t j = 0; j < p.k; j++)
            expect_value(&p, f.value[0], NULL, i, j, o.y[i * p.k + j]);
    free(o.y);
    backend_close(&t);
    fixture_free(&f);
}

/* Logits far apart, and such that are none: one row's keep to it. A class of probability 0 and
 * target 0 adds nothing to a loss. */
static void expect_special(const char *isa)
{
    enum { N = 9, K = 4 };
    static const double z[N * K] = {1e38,      -1e38,     0,         3, /* finite */
                                    -INFINITY, 0,         1,         2, /* probability 0 */
                                    INFINITY,  0,         1,         2, /* NaN */
                                    NAN,       0,         1,         2,         0, 1, NAN, 2,
                                    -INFINITY, -INFINITY, -INFINITY, -INFINITY, /* NaN */
                                    -104,      0,         -87,       -90,       /* subnormal */
                                    200,       -200,      0,         0,         1, 2, 3,   4};
    static const double label[N] = {0, 3, 1, 2, 3, 0, 1, 0, -1};
    (void)isa;
    for (int o = 0; o < N_OP; o++) {
        if (o == DENSE || o == DENSE_GRAD)
            continue;
        const problem p = {.op = (op)o, .dtype = ADJ_F32, .n = N, .k = K};
        fixture f = fixture_new();
        adj_node *x = given(&f, ADJ_F32, (adj_shape){2, {N, K}}, z);
        adj_node *labels = is_sparse(p.op) ? given(&f, ADJ_I32, (adj_shape){1, {N}}, label) : NULL;
        const adj_node *y = build(&p, x, labels);
        test_backend t = backend_open("direct");
        outcome got = run_kernel(&f, &t, "softmax", 1, &y);
        const int columns = is_loss(p.op) ? 1 : K;
        for (int i = 0; i < N; i++)
            for (int j = 0; j < columns; j++) {
                const double v = got.y[i * columns + j];
                if (i >= 2 && i <= 5)
                    cr_expect(isnan(v), "%s: row %d: %g", names[o], i, v);
                else
                    expect_value(&p, f.value[0], label, i, j, v);
            }
        free(got.y);
        backend_close(&t);
        fixture_free(&f);
    }
}

Test(direct_softmax, special_values) { for_each_isa(N_ISA, all_isas, expect_special); }

static void expect_refused(op o, adj_dtype dtype, int64_t k, double label, adj_status status,
                           const char *why)
{
    const problem p = {.op = o, .dtype = dtype, .n = 2, .k = k};
    const double labels[2] = {0, label};
    fixture f = fixture_new();
    adj_node *z = given_random(&f, dtype, (adj_shape){2, {2, k}}, -1, 1);
    const adj_node *y =
        build(&p, z, is_sparse(o) ? given(&f, ADJ_I32, (adj_shape){1, {2}}, labels) : NULL);
    test_backend t = backend_open("direct");
    outcome got = run_kernel(&f, &t, "softmax", 1, &y);
    cr_expect_eq(got.status, status, "%s %s", names[o], got.impl);
    cr_expect_not_null(strstr(got.why, why), "%s, not %s", got.why, why);
    free(got.y);
    backend_close(&t);
    fixture_free(&f);
}

Test(direct_softmax, refused)
{
    expect_refused(SOFTMAX, ADJ_F64, 3, 0, ADJ_ENOKERNEL, "f64");
    expect_refused(LOG_SOFTMAX, ADJ_F32, MAX_CLASSES + 1, 0, ADJ_ENOKERNEL, "1 to 16384 classes");
    expect_refused(SPARSE, ADJ_F32, 3, 3, ADJ_EARG,
                   "labels is out of range in row 1 (got 3, expected -1 to 2)");
    expect_refused(SPARSE_GRAD, ADJ_BF16, 3, -2, ADJ_EARG,
                   "labels is out of range in row 1 (got -2, expected -1 to 2)");
}
