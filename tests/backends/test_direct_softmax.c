/* test_direct_softmax.c - direct softmax, log_softmax, softmax cross-entropy and its gradient
 * against the reference: every instruction set, type and kind of label, full and
 * partial jobs of rows, one class and many; infinities and NaN; labels out of range; unsupported
 * cases. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "candidates.h"
#include "graph/op.h"
#include "ops/grad.h"
#include "tests/isa.h"
#include "tests/plan.h"
#include "tests/softmax_reference.h"

typedef long double real;
typedef softmax_problem problem;

static const adj_dtype dtypes[] = {ADJ_F32, ADJ_BF16, ADJ_F16};
enum { DTYPES = 3, MAX_CLASSES = 1 << 14 };
static const char *const names[] = {"softmax",    "log_softmax", "dense",
                                    "dense_grad", "sparse",      "sparse_grad"};

/* Rounded once to the type, from what is right to 2^-31 of its terms. */
static void expect_value(const problem *p, const double *z, const double *label, softmax_sums s,
                         int64_t i, int64_t j, double got)
{
    const adj_dtype_traits *t = adj_traits_of(p->dtype);
    const softmax_value want = softmax_want(p, z, label, s, i, j);
    const real bound = (real)t->unit * fabsl(want.v) + ldexpl(want.size, -31) +
                       ldexpl(1, t->min_exponent - t->significand);
    cr_assert((isnan(got) && isnan(want.v)) || (real)got == want.v ||
                  (!isinf(want.v) && fabsl(got - want.v) <= bound),
              "%s, %s, %dx%d, row %d, class %d: %.9g, not %.9Lg", names[p->op],
              adj_dtype_name(p->dtype), (int)p->n, (int)p->k, (int)i, (int)j, got, want.v);
}

/* ---- cases ---- */

static void expect_values_of(const problem *p, const double *z, const double *label,
                             const double *y)
{
    const int64_t columns = is_loss(p->op) ? 1 : p->k;
    for (int64_t i = 0; i < p->n; i++) {
        const softmax_sums s = softmax_sums_of(z + i * p->k, p->k);
        for (int64_t j = 0; j < columns; j++)
            expect_value(p, z, label, s, i, j, y[i * columns + j]);
    }
}

/* The number of threads changes no bit. */
static void expect_case(const problem *p, const char *isa)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *z = given_random(&f, p->dtype, (adj_shape){2, {p->n, p->k}}, -9, 9);
    const adj_node *y = softmax_build(p, z, softmax_labels(&f, p));
    scoped(release) double *of_one = run_direct(&f, "softmax:", isa, 1, 1, &y),
                           *of_five = run_direct(&f, "softmax:", isa, 5, 1, &y);
    expect_values_of(p, f.value[0], f.value[1], of_one);
    cr_assert_arr_eq(of_one, of_five, (size_t)adj_shape_elems(y->type.shape) * sizeof *of_one);
}

/* On either side of where rows get a gap between them, and such as would be in one set of a cache
 * without it. */
static void expect_every_case(const char *isa)
{
    static const int64_t sizes[][2] = {{12, 1},   {13, 10},  {15, 2},   {16, 3},   {17, 8},
                                       {33, 5},   {12, 100}, {31, 21},  {700, 10}, {12, 1000},
                                       {12, 255}, {17, 256}, {18, 1024}};
    for (int t = 0; t < DTYPES; t++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (int o = 0; o < N_OP; o++)
                for (int smooth = 0; smooth <= (o >= DENSE); smooth++)
                    expect_case(&(problem){.op = (softmax_op)o,
                                           .dtype = dtypes[t],
                                           .n = sizes[i][0],
                                           .k = sizes[i][1],
                                           .smoothing = smooth ? 0.1 : 0},
                                isa);
}

Test(direct_softmax, every_case) { for_each_isa(N_ISA, all_isas, expect_every_case); }

static void expect_max_classes(const char *isa)
{
    expect_case(&(problem){.op = SOFTMAX, .dtype = ADJ_F32, .n = 12, .k = MAX_CLASSES}, isa);
}

Test(direct_softmax, max_classes) { for_each_isa(N_ISA, all_isas, expect_max_classes); }

/* Rows are those of the last axis. */
static void expect_images(const char *isa)
{
    scoped(fixture_free) fixture f = fixture_new();
    const problem p = {.op = SOFTMAX, .dtype = ADJ_F32, .n = 2 * 3 * 5, .k = 4};
    const adj_node *y = adj_softmax(given_random(&f, ADJ_F32, (adj_shape){4, {2, 3, 5, 4}}, -2, 2));
    scoped(release) double *got = run_direct(&f, "softmax:", isa, 2, 1, &y);
    expect_values_of(&p, f.value[0], NULL, got);
}

Test(direct_softmax, images) { for_each_isa(N_ISA, all_isas, expect_images); }

/* Written over the logits, as the plan does, or over the labels; of logits that are their own
 * labels. */
static void expect_in_place(softmax_op o, int are_own_labels)
{
    const problem p = {.op = o, .dtype = ADJ_F32, .n = 50, .k = 7};
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_random(&f, ADJ_F32, (adj_shape){2, {p.n, p.k}}, 0, 3);
    adj_node *labels = are_own_labels ? NULL : softmax_labels(&f, &p),
             *z = adj_reshape(adj_neg(x), x->type.shape);
    adj_node *y = softmax_build(&p, z, are_own_labels ? z : labels);
    scoped(release) double *got = evaluate(&f, y, "direct");
    for (int64_t i = 0; i < p.n * p.k; i++)
        f.value[0][i] = -f.value[0][i];
    expect_values_of(&p, f.value[0], f.value[are_own_labels ? 0 : 1], got);
}

Test(direct_softmax, in_place)
{
    for (int o = SOFTMAX; o < N_OP; o++)
        expect_in_place((softmax_op)o, 0);
    expect_in_place(DENSE, 1);
    expect_in_place(DENSE_GRAD, 1);
}

/* Logits far apart, and such that are none, whose rows are NaN; labels that are none. A class of
 * probability 0 and target 0 adds nothing to a loss, nor does a row without a label. */
static void expect_special(const char *isa)
{
    enum { N = 12, K = 4 };
    static const double z[N * K] = {1e38,      -1e38,     0,         3, /* finite */
                                    -INFINITY, 0,         1,         2, /* probability 0 */
                                    INFINITY,  0,         1,         2, /* NaN */
                                    NAN,       0,         1,         2, /**/
                                    0,         1,         NAN,       2, /**/
                                    -INFINITY, -INFINITY, -INFINITY, -INFINITY,
                                    -104,      0,         -87,       -90,   /* subnormal */
                                    200,       -200,      0,         0,     /**/
                                    1,         2,         3,         4,     /**/
                                    NAN,       0,         1,         2,     /**/
                                    1e-45,     0,         -0.0,      1e-40, /**/
                                    3,         3,         3,         3};
    static const double label[N] = {0, 3, 1, 2, 3, 0, 1, 0, -1, -1, 0, 3};
    for (int i = 0; i < 2 * N_OP; i++) {
        const problem p = {(softmax_op)(i / 2), ADJ_F32, N, K, .smoothing = i % 2 == 0 ? 0 : 0.5};
        double dense[N * K] = {[7 * K + 2] = INFINITY, [8 * K] = NAN};
        for (int r = 0; r < 7; r++)
            dense[r * K + (int)label[r]] = 1;
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given(&f, ADJ_F32, (adj_shape){2, {N, K}}, z);
        adj_node *labels = is_sparse(p.op) ? given(&f, ADJ_I32, (adj_shape){1, {N}}, label)
                                           : given(&f, ADJ_F32, (adj_shape){2, {N, K}}, dense);
        const adj_node *y = softmax_build(&p, x, labels);
        scoped(release) double *got = run_direct(&f, "softmax:", isa, 1, 1, &y);
        expect_values_of(&p, f.value[0], f.value[1], got);
    }
}

Test(direct_softmax, special_values) { for_each_isa(N_ISA, all_isas, expect_special); }

/* Runs n rows, the second with this label. */
static void expect_refused(const problem *p, double label, adj_status status, const char *why)
{
    const double labels[16] = {0, label};
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *z = given_random(&f, p->dtype, (adj_shape){2, {p->n, p->k}}, -1, 1);
    const adj_node *y = softmax_build(
        p, z, is_sparse(p->op) ? given(&f, ADJ_I32, (adj_shape){1, {p->n}}, labels) : NULL);
    scoped(backend_close) test_backend t = backend_open("direct");
    outcome got = run_kernel(&f, &t, "softmax", 1, &y);
    cr_expect_eq(got.status, status, "%s %s", names[p->op], got.impl);
    cr_expect_not_null(strstr(got.why, why), "%s, not %s", got.why, why);
    free(got.y);
}

/* Lanes beyond the rows change nothing. */
static void expect_few_rows(const char *isa)
{
    for (int n = 1; n <= 3; n++)
        expect_case(&(problem){.op = n == 2 ? SPARSE_GRAD : SOFTMAX, .n = n, .k = 3}, isa);
}

Test(direct_softmax, few_rows) { for_each_isa(N_ISA, all_isas, expect_few_rows); }

Test(direct_softmax, refused)
{
    expect_refused(&(problem){.op = SOFTMAX, .dtype = ADJ_F64, .n = 12, .k = 3}, 0, ADJ_ENOKERNEL,
                   "f64");
    expect_refused(&(problem){.op = LOG_SOFTMAX, .n = 12, .k = MAX_CLASSES + 1}, 0, ADJ_ENOKERNEL,
                   "1 to 16384 classes");
    expect_refused(&(problem){.op = SPARSE, .n = 12, .k = 3}, 3, ADJ_EARG,
                   "labels is out of range in row 1 (got 3, expected -1 to 2)");
    expect_refused(&(problem){.op = SPARSE_GRAD, .dtype = ADJ_BF16, .n = 12, .k = 3}, -2, ADJ_EARG,
                   "labels is out of range in row 1 (got -2, expected -1 to 2)");
}
