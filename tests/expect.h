/* expect.h - what the tests of ops share on top of harness.h: dtypes with their tolerances,
 * shapes, the adjoint identity. */
#ifndef EXPECT_H
#define EXPECT_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "ops/grad.h"

/* A dtype and the relative error of a few roundings in it. */
typedef struct {
    adj_dtype dtype;
    double rtol;
} precision;
static const precision precisions[] = {
    {ADJ_F64, 1e-13}, {ADJ_F32, 2e-7}, {ADJ_F16, 1e-3}, {ADJ_BF16, 8e-3}};
enum { N_PRECISIONS = sizeof precisions / sizeof *precisions };

/* Types of ops that move elements: the first four have gradients. */
static const adj_dtype dtypes[] = {ADJ_F64, ADJ_F32, ADJ_F16, ADJ_BF16, ADJ_I32};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

/* Where one linear index of a row-major tensor is along each axis. */
static inline adj_shape unravel(int64_t i, adj_shape shape)
{
    adj_shape index = {.rank = shape.rank};
    for (int64_t d = shape.rank - 1; d >= 0; d--) {
        index.dim[d] = i % shape.dim[d];
        i /= shape.dim[d];
    }
    return index;
}

static inline int64_t ravel(adj_shape index, adj_shape shape)
{
    int64_t i = 0;
    for (int64_t d = 0; d < shape.rank; d++)
        i = i * shape.dim[d] + index.dim[d];
    return i;
}

static inline int64_t elems_of(adj_node *n) { return adj_shape_elems(adj_node_type(n).shape); }

/* Every element of build(x) is value of that of x, which is random in [lo, hi). */
static inline void expect_function(adj_node *(*build)(adj_node *), double (*value)(double),
                                   precision p, adj_shape shape, double lo, double hi)
{
    scoped(fixture_free) fixture f = fixture_new();
    adj_node *y = build(given_random(&f, p.dtype, shape, lo, hi));
    int64_t n = elems_of(y);
    scoped(release) double *want = malloc((size_t)n * sizeof *want + 1);
    for (int64_t i = 0; i < n; i++)
        want[i] = value(f.value[0][i]);
    expect_values(&f, y, "naive", want, p.rtol, p.rtol / 8);
}

static inline double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* <dy, y> == <dx, x> exactly: y is linear in inputs 0 to n_x - 1 taken together, and all values are
 * small integers. */
static inline void expect_adjoint(fixture *f, adj_node *y, int n_x)
{
    cr_assert_not_null(y, "%s", adj_graph_message(f->g));
    adj_node *dx[FIXTURE_INPUTS];
    adj_node *dy = given_integers(f, adj_node_type(y).dtype, adj_node_type(y).shape, -2, 2);
    cr_assert_eq(adj_grad(y, dy, n_x, f->in, dx), ADJ_OK, "%s", adj_graph_message(f->g));
    double *value = evaluate(f, y, "naive"), right = 0;
    double left = dot(f->value[f->n_in - 1], value, elems_of(y));
    free(value);
    for (int i = 0; i < n_x; i++) {
        value = evaluate(f, dx[i], "naive");
        right += dot(value, f->value[i], elems_of(dx[i]));
        free(value);
    }
    cr_assert_eq(left, right, "adjoint of %s: <dy, y> is %.17g, <dx, x> is %.17g", adj_node_op(y),
                 left, right);
}

#endif
