/* test_reduce.c - sums, means and maxima over axes; the index of the largest element along each
 * axis; checks of finite elements over several values. */
#include <math.h>
#include <string.h>

#include "expect.h"
#include "ops/grad.h"

static const adj_axes all = {.n = ADJ_ALL};

typedef struct {
    adj_shape x;
    adj_axes axes;
    adj_shape y;
} reduction;

static const reduction reductions[] = {
    {{0}, {.n = ADJ_ALL}, {0}},
    {{1, {5}}, {.n = ADJ_ALL}, {0}},
    {{2, {3, 4}}, {.n = ADJ_ALL}, {0}},
    {{2, {3, 4}}, {.n = ADJ_ALL, .keep_dims = 1}, {2, {1, 1}}},
    {{2, {3, 4}}, {1, {0}, 0}, {1, {4}}},
    {{2, {3, 4}}, {1, {1}, 0}, {1, {3}}},
    {{2, {3, 4}}, {1, {-1}, 1}, {2, {3, 1}}},
    {{3, {2, 3, 4}}, {1, {1}, 0}, {2, {2, 4}}},
    {{3, {2, 3, 4}}, {2, {2, 0}, 0}, {1, {3}}},
    {{3, {2, 3, 4}}, {2, {0, -1}, 1}, {3, {1, 3, 1}}},
    {{4, {2, 3, 2, 5}}, {2, {1, 2}, 0}, {2, {2, 5}}},
    {{4, {2, 5, 2, 3}}, {2, {-2, -1}, 0}, {2, {2, 5}}},
    {{6, {2, 1, 3, 2, 1, 2}}, {3, {0, 2, 4}, 0}, {3, {1, 2, 2}}},
    {{3, {4, 1, 2}}, {1, {1}, 0}, {2, {4, 2}}},
    /* many elements, and none */
    {{2, {40, 17}}, {1, {0}, 0}, {1, {17}}},
    {{3, {50, 40, 33}}, {2, {0, 1}, 0}, {1, {33}}},
    {{3, {50, 33, 40}}, {1, {1}, 0}, {2, {50, 40}}},
    {{2, {0, 3}}, {1, {1}, 0}, {1, {0}}},
    {{2, {0, 3}}, {1, {0}, 0}, {1, {3}}},
    {{4, {2, 0, 1 << 20, 1 << 20}}, {3, {1, 2, 3}, 0}, {1, {2}}},
};
enum { N_REDUCTIONS = sizeof reductions / sizeof *reductions, N_SMALL = 14, N_NOT_EMPTY = 18 };

/* Where element i of x goes: its index without the reduced axes. */
static int64_t target_of(int64_t i, const reduction *r)
{
    const adj_shape index = unravel(i, r->x);
    int64_t target = 0;
    for (int64_t d = 0; d < r->x.rank; d++) {
        int reduced = r->axes.n == ADJ_ALL;
        for (int k = 0; k < r->axes.n; k++)
            reduced |= r->axes.axis[k] == d || r->axes.axis[k] + r->x.rank == d;
        if (!reduced)
            target = target * r->x.dim[d] + index.dim[d];
    }
    return target;
}

static void check_reduction(const reduction *r, const precision *p, int with_max)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given_integers(&f, p->dtype, r->x, -1, 1);
    adj_node *y = adj_reduce_sum(x, r->axes);
    expect_shape(&f, y, r->y);
    int64_t n = elems_of(x), n_y = elems_of(y);
    scoped(release) double *sum = calloc((size_t)n_y + 1, sizeof *sum),
                           *mean = malloc((size_t)n_y * sizeof *mean + 1);
    scoped(release) double *largest = malloc((size_t)n_y * sizeof *largest + 1);
    for (int64_t i = 0; i < n_y; i++)
        largest[i] = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        sum[target_of(i, r)] += f.value[0][i];
        largest[target_of(i, r)] = fmax(largest[target_of(i, r)], f.value[0][i]);
    }
    for (int64_t i = 0; i < n_y; i++)
        mean[i] = sum[i] / ((double)n / (double)n_y);
    expect_values(&f, y, "naive", sum, p->rtol, 0);
    expect_values(&f, adj_reduce_mean(x, r->axes), "naive", mean, p->rtol, 0);
    if (with_max)
        expect_exact(&f, adj_reduce_max(x, r->axes), largest);
}

Test(reduce, every_set_of_axes_against_index_arithmetic)
{
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int i = 0; i < N_REDUCTIONS; i++)
            check_reduction(&reductions[i], &precisions[p], i < N_NOT_EMPTY);
}

/* By hand. */
Test(reduce, literal_numbers)
{
    const double x[] = {1, -2, 4, 0.5, 3, -1.5};
    const adj_axes rows = {1, {1}, 0}, columns = {1, {0}, 0};
    for (int p = 0; p < N_PRECISIONS; p++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *v = given(&f, precisions[p].dtype, (adj_shape){2, {2, 3}}, x);
        expect_exact(&f, adj_reduce_sum(v, rows), (double[]){3, 2});
        expect_exact(&f, adj_reduce_sum(v, columns), (double[]){1.5, 1, 2.5});
        expect_exact(&f, adj_reduce_sum(v, all), (double[]){5});
        expect_exact(&f, adj_reduce_mean(v, columns), (double[]){0.75, 0.5, 1.25});
        expect_values(&f, adj_reduce_mean(v, rows), "naive", (double[]){1, 2.0 / 3},
                      precisions[p].rtol, 0);
        expect_exact(&f, adj_reduce_max(v, rows), (double[]){4, 3});
        expect_exact(&f, adj_reduce_max(v, columns), (double[]){1, 3, 4});
        expect_exact(&f, adj_reduce_max(v, all), (double[]){4});
        expect_exact(&f, adj_reduce_min(v, rows), (double[]){-2, -1.5});
    }
}

/* 4096 ones: sums kept in half precision would stop at 2048 or 256. */
Test(reduce, half_sums_are_kept_in_float)
{
    for (int p = 0; p < N_PRECISIONS; p++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *column = given_integers(&f, precisions[p].dtype, (adj_shape){2, {4096, 1}}, 1, 1);
        adj_node *minus =
            given_integers(&f, precisions[p].dtype, (adj_shape){2, {4096, 1}}, -1, -1);
        expect_exact(&f, adj_reduce_sum(column, all), (double[]){4096});
        expect_exact(&f, adj_bias_add_grad(column, ADJ_NHWC), (double[]){4096});
        expect_exact(&f, adj_matmul(column, column, ADJ_TRANSPOSE_A), (double[]){4096});
        expect_exact(&f, adj_prelu_grad_slope(column, minus, 1, ADJ_NHWC), (double[]){-4096});
    }
}

/* Number k of the 24 orders of four axes. */
static void order(int k, int perm[4])
{
    int left[4] = {0, 1, 2, 3};
    for (int i = 0, n = 4; i < 4; k /= n--, i++) {
        const int at = k % n;
        perm[i] = left[at];
        memmove(&left[at], &left[at + 1], (size_t)(3 - at) * sizeof *left);
    }
}

/* True if the axes that are kept, of more than one element, have x's order. */
static int is_in_order(adj_shape x, const int perm[], int reduced)
{
    int last = -1;
    for (int i = 0; i < 4; i++) {
        const int is_kept = (reduced >> i & 1) == 0 && x.dim[perm[i]] > 1;
        if (is_kept && perm[i] < last)
            return 0;
        last = is_kept ? perm[i] : last;
    }
    return 1;
}

static int has_transpose(const fixture *f, adj_node *y)
{
    scoped(release_exec) adj_exec *e =
        plan_of(f->g, &(adj_exec_opts){.n_fetch = 1, .fetch = &y, .backend = "naive"});
    scoped(release) char *plan = plan_text(e);
    return strstr(plan, " perm=") != NULL;
}

/* A reduction of x in another order of axes: by index arithmetic; without a transpose where the
 * kept axes have their order. */
static void check_behind_transpose(int k, int reduced, int keep_dims)
{
    static const adj_shape shapes[] = {{4, {2, 3, 4, 3}}, {4, {2, 1, 4, 3}}};
    scoped(fixture_free) fixture f = fixture_new();
    const adj_shape s = shapes[k % 2];
    adj_node *x = given_integers(&f, ADJ_F32, s, -9, 9);
    adj_axes axes = {.keep_dims = keep_dims};
    int perm[4];
    order(k, perm);
    for (int i = 0; i < 4; i++)
        if (reduced >> i & 1)
            axes.axis[axes.n++] = i;
    adj_node *turned = adj_transpose(x, 4, perm);
    adj_node *y[] = {adj_reduce_sum(turned, axes), adj_reduce_mean(turned, axes),
                     adj_reduce_max(turned, axes)};
    const int64_t n_y = elems_of(y[0]), n = elems_of(x);
    double want[3][72];
    for (int64_t i = 0; i < n_y; i++)
        want[0][i] = 0, want[2][i] = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        const adj_shape from = unravel(i, s);
        int64_t at = 0;
        for (int d = 0; d < 4; d++)
            if ((reduced >> d & 1) == 0)
                at = at * s.dim[perm[d]] + from.dim[perm[d]];
        want[0][at] += f.value[0][i];
        want[2][at] = fmax(want[2][at], f.value[0][i]);
    }
    for (int64_t i = 0; i < n_y; i++)
        want[1][i] = want[0][i] * (double)n_y / (double)n;
    for (int op = 0; op < 3; op++)
        expect_values(&f, y[op], "naive", want[op], op == 1 ? 1e-6 : 0, 0);
    if (is_in_order(s, perm, reduced))
        cr_expect_not(has_transpose(&f, y[k % 3]), "order %d, axes %x", k, reduced);
}

Test(reduce, behind_a_transpose)
{
    for (int k = 0; k < 24; k++)
        for (int reduced = 1; reduced < 16; reduced++)
            check_behind_transpose(k, reduced, (k + reduced) % 2);
}

/* The maximum of a NaN is NaN wherever it stands; the sum of nothing is 0, its mean NaN. */
Test(reduce, nan_and_nothing)
{
    const double x[] = {NAN, 1, 2, NAN, -INFINITY, -INFINITY};
    const adj_axes rows = {1, {1}, 0};
    for (int p = 0; p < N_PRECISIONS; p++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *v = given(&f, precisions[p].dtype, (adj_shape){2, {3, 2}}, x);
        adj_node *none = given(&f, precisions[p].dtype, (adj_shape){2, {2, 0}}, NULL);
        expect_exact(&f, adj_reduce_max(v, rows), (double[]){NAN, NAN, -INFINITY});
        expect_exact(&f, adj_reduce_sum(none, rows), (double[]){0, 0});
        expect_exact(&f, adj_reduce_mean(none, rows), (double[]){NAN, NAN});
    }
}

Test(reduce, adjoint_on_integers)
{
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int i = 0; i < N_REDUCTIONS; i++) {
            if (i == 15 || i == 16) /* sums too large for halves to hold exactly */
                continue;
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *x = given_integers(&f, precisions[p].dtype, reductions[i].x, -2, 2);
            expect_adjoint(&f, adj_reduce_sum(x, reductions[i].axes), 1);
        }
}

Test(reduce, gradient_against_differences)
{
    for (int i = 0; i < N_SMALL; i++) {
        scoped(fixture_free) fixture f = fixture_new();
        adj_node *x = given_random(&f, ADJ_F64, reductions[i].x, -1, 1);
        adj_node *y = adj_reduce_max(x, reductions[i].axes);
        adj_node *dy = given_random(&f, ADJ_F64, reductions[i].y, -1, 1);
        expect_gradient(&f, adj_reduce_sum(x, reductions[i].axes), 0.5, 1e-12, 1e-12);
        expect_gradient(&f, adj_reduce_mean(x, reductions[i].axes), 0.5, 1e-12, 1e-12);
        expect_gradient(&f, y, 1e-6, 1e-7, 1e-9);
        expect_gradient(&f, gradient_of(y, dy, x), 1e-6, 1e-7, 1e-9);
    }
}

Test(reduce, ties_share_the_gradient)
{
    const double x[] = {1, 3, 3, 3, 2, 5, 5, 0, NAN, 1, 1, 1}, dy[] = {6, INFINITY, 2};
    const double want[] = {0, 2, 2, 2, 0, INFINITY, INFINITY, 0, 0, 0, 0, 0};
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *v = given(&f, ADJ_F32, (adj_shape){2, {3, 4}}, x);
    adj_node *d = given(&f, ADJ_F32, (adj_shape){1, {3}}, dy);
    adj_node *y = adj_reduce_max(v, (adj_axes){1, {1}, 0});
    expect_values(&f, gradient_of(y, d, v), "naive", want, 1e-6, 0);
}

static adj_node *matrix(void) { return of_type("f32[2, 3]"); }

Test(reduce, refusals)
{
    const adj_axes twice = {2, {1, -1}, 0};
    expect_refused(adj_reduce_sum(matrix(), (adj_axes){1, {2}, 0}), ADJ_EARG,
                   "reduce_sum: axis|got 2|-2 to 1");
    expect_refused(adj_reduce_mean(matrix(), (adj_axes){1, {-3}, 0}), ADJ_EARG,
                   "reduce_mean: axis|got -3");
    expect_refused(adj_reduce_max(matrix(), twice), ADJ_EARG, "reduce_max: axis 1|twice");
    expect_refused(adj_reduce_sum(matrix(), (adj_axes){.n = 7}), ADJ_EARG,
                   "reduce_sum: axis|got 7");
    expect_refused(adj_reduce_sum(matrix(), (adj_axes){0}), ADJ_EARG,
                   "reduce_sum: axis|got 0|ADJ_ALL");
    expect_refused(adj_reduce_sum(of_type("i32[4]"), all), ADJ_EDTYPE, "reduce_sum|i32");
    expect_refused(adj_reduce_max(of_type("f32[2, 0]"), (adj_axes){1, {1}, 0}), ADJ_ESHAPE,
                   "reduce_max|[2, 0]");
    cr_assert_null(adj_reduce_sum(NULL, all));
    cr_assert_null(adj_reduce_max(NULL, all));
}

/* ---- argmax ---- */

/* NaN is the largest, and of several the first. */
Test(argmax, literal_numbers)
{
    const double x[] = {1, 4, 4, -2, 3, 0.5, 7, -1, NAN, INFINITY, NAN, NAN};
    const struct {
        int axis;
        double want[6];
    } cases[] = {
        {2, {1, 1, 2, 1}}, {-1, {1, 1, 2, 1}}, {1, {0, 0, 0, 1, 1, 0}}, {0, {1, 0, 1, 1, 1, 1}}};
    for (int p = 0; p < N_PRECISIONS; p++)
        for (int k = 0; k < 4; k++) {
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *v = given(&f, precisions[p].dtype, (adj_shape){3, {2, 2, 3}}, x);
            adj_node *y = adj_argmax(v, cases[k].axis);
            cr_assert_eq(adj_node_type(y).dtype, ADJ_I32);
            expect_exact(&f, y, cases[k].want);
        }
}

/* Many rows, which several threads share, against a loop. */
Test(argmax, rows_against_a_loop)
{
    enum { ROWS = 3000, N = 17 };
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *v = given_integers(&f, ADJ_F32, (adj_shape){2, {ROWS, N}}, -9, 9);
    double want[ROWS] = {0};
    for (int r = 0; r < ROWS; r++)
        for (int i = 1; i < N; i++)
            if (f.value[0][r * N + i] > f.value[0][r * N + (int)want[r]])
                want[r] = i;
    expect_values(&f, adj_argmax(v, 1), "onednn", want, 0, 0);
}

Test(argmax, refuses)
{
    expect_refused(adj_argmax(of_type("f32[3, 4]"), 2), ADJ_EARG,
                   "axis is out of range (got 2, expected -2 to 1)");
    expect_refused(adj_argmax(of_type("f32[3, 0]"), 1), ADJ_ESHAPE, "argmax");
    cr_assert_null(adj_argmax(NULL, 0));
}

/* ---- all_finite ---- */

static const char *const backends[] = {"naive", "onednn"};
enum { BACKENDS = 2 };

static const double max_of[] = {0x1.fffffffffffffp1023, 0x1.fffffep127, 65504, 0x1.fep127};
static const double least_of[] = {0x1p-1074, 0x1p-149, 0x1p-24, 0x1p-133};

/* 1 for numbers of every size, subnormal ones too; 0 for each that is none, wherever it is. */
Test(all_finite, literal_numbers)
{
    const double broken[] = {NAN, -NAN, INFINITY, -INFINITY}, yes = 1, no = 0;
    for (int k = 0; k < BACKENDS; k++)
        for (int d = 0; d < N_PRECISIONS; d++)
            for (int at = -1; at < 5; at++)
                for (int b = 0; b < 4; b++) {
                    double v[] = {max_of[d], -max_of[d], least_of[d], -0.0, 1};
                    if (at >= 0)
                        v[at] = broken[b];
                    scoped(fixture_free) fixture f = fixture_new();
                    adj_node *x = given(&f, dtypes[d], (adj_shape){1, {5}}, v);
                    expect_values(&f, adj_all_finite(1, &x), backends[k], at < 0 ? &yes : &no, 0,
                                  0);
                }
}

/* Values of other shapes, scalars, empty ones, the same one twice; a NaN in each place of a value
 * that several threads read. */
Test(all_finite, several_values)
{
    enum { LARGE = 100003 };
    static const int64_t places[] = {-1, 0, 1, 4999, LARGE / 2, LARGE - 2, LARGE - 1};
    double *v = malloc(LARGE * sizeof *v), two[] = {3, -4};
    for (int d = 0; d < N_PRECISIONS; d++)
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            const double want = places[i] < 0;
            for (int64_t j = 0; j < LARGE; j++)
                v[j] = j == places[i] ? NAN : (double)(j % 7);
            scoped(fixture_free) fixture f = fixture_new();
            adj_node *large = given(&f, dtypes[d], (adj_shape){1, {LARGE}}, v);
            adj_node *scalar = given(&f, dtypes[d], (adj_shape){0}, two);
            adj_node *empty = given(&f, dtypes[d], (adj_shape){2, {3, 0}}, two);
            adj_node *pair = given(&f, dtypes[d], (adj_shape){2, {1, 2}}, two);
            adj_node *const first[] = {large, scalar, empty, pair}, *const last[] = {pair,  scalar,
                                                                                     pair,  empty,
                                                                                     large, scalar},
                            *const numbers[] = {pair, scalar, empty};
            expect_exact(&f, adj_all_finite(4, first), &want);
            expect_exact(&f, adj_all_finite(6, last), &want);
            expect_exact(&f, adj_all_finite(3, numbers), (double[]){1});
            expect_exact(&f, adj_all_finite(1, &empty), (double[]){1});
        }
    free(v);
}

Test(all_finite, no_gradient_flows)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given(&f, ADJ_F32, (adj_shape){1, {2}}, (double[]){3, 4});
    adj_node *y = adj_mul(adj_all_finite(1, &x), adj_reduce_sum(x, all));
    expect_exact(&f, gradient_of(y, NULL, x), (double[]){1, 1});
}

Test(all_finite, refusals)
{
    adj_node *const mixed[] = {of_type("f32[3]"), of_type("f16[3]")};
    expect_refused(adj_all_finite(2, mixed), ADJ_EDTYPE, "all_finite|f16|f32");
    adj_node *const integers = of_type("i32[3]");
    expect_refused(adj_all_finite(1, &integers), ADJ_EDTYPE, "all_finite|i32");
    cr_assert_null(adj_all_finite(0, NULL));
    cr_assert_null(adj_all_finite(1, (adj_node *[]){NULL}));
}
