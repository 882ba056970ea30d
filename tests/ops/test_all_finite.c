/* test_all_finite.c - checks of finite elements over several values. */
#include <math.h>

#include "expect.h"
#include "ops/grad.h"

static const adj_dtype dtypes[] = {ADJ_F64, ADJ_F32, ADJ_F16, ADJ_BF16};
static const char *const backends[] = {"naive", "onednn"};
enum { N_DTYPES = 4, BACKENDS = 2 };

static const double max_of[] = {0x1.fffffffffffffp1023, 0x1.fffffep127, 65504, 0x1.fep127};
static const double least_of[] = {0x1p-1074, 0x1p-149, 0x1p-24, 0x1p-133};

/* 1 for numbers of every size, subnormal ones too; 0 for each that is none, wherever it is. */
Test(all_finite, literal_numbers)
{
    const double broken[] = {NAN, -NAN, INFINITY, -INFINITY}, yes = 1, no = 0;
    for (int k = 0; k < BACKENDS; k++)
        for (int d = 0; d < N_DTYPES; d++)
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
    for (int d = 0; d < N_DTYPES; d++)
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
            expect_values(&f, adj_all_finite(4, first), "naive", &want, 0, 0);
            expect_values(&f, adj_all_finite(6, last), "naive", &want, 0, 0);
            expect_values(&f, adj_all_finite(3, numbers), "naive", (double[]){1}, 0, 0);
            expect_values(&f, adj_all_finite(1, &empty), "naive", (double[]){1}, 0, 0);
        }
    free(v);
}

Test(all_finite, no_gradient_flows)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *x = given(&f, ADJ_F32, (adj_shape){1, {2}}, (double[]){3, 4}), *dx;
    adj_node *y = adj_mul(adj_all_finite(1, &x), adj_reduce_sum(x, (adj_axes){.n = ADJ_ALL}));
    cr_assert_eq(adj_grad(y, NULL, 1, &x, &dx), ADJ_OK, "%s", adj_graph_message(f.g));
    expect_values(&f, dx, "naive", (double[]){1, 1}, 0, 0);
}

static adj_node *mixed(fixture *f)
{
    adj_node *x[] = {given_integers(f, ADJ_F32, (adj_shape){1, {3}}, 0, 1),
                     given_integers(f, ADJ_F16, (adj_shape){1, {3}}, 0, 1)};
    return adj_all_finite(2, x);
}

static adj_node *integers(fixture *f)
{
    adj_node *x = given_integers(f, ADJ_I32, (adj_shape){1, {3}}, 0, 1);
    return adj_all_finite(1, &x);
}

Test(all_finite, refusals)
{
    scoped(fixture_free) fixture f = fixture_new();
    expect_refusal(&f, mixed(&f), ADJ_EDTYPE, "all_finite", "f16", "f32", NULL);
    expect_refusal(&f, integers(&f), ADJ_EDTYPE, "all_finite", "i32", NULL);
    cr_assert_null(adj_all_finite(0, NULL));
    cr_assert_null(adj_all_finite(1, (adj_node *[]){NULL}));
}
