/* expect.h - declarations that tests of ops share on top of harness.h: dtypes with tolerances,
 * inputs by the text of their type, shapes, the adjoint identity. */
#ifndef EXPECT_H
#define EXPECT_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "ops/attr_lists.h"
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

/* Reads "1, 2, 3"; returns how many numbers there are, at most 8. */
static inline int read_list(const char *text, int64_t list[8])
{
    int n = 0;
    while (n < 8 && (*text == '-' || (*text >= '0' && *text <= '9'))) {
        char *end;
        list[n++] = strtoll(text, &end, 10);
        text = end + strspn(end, ", ");
    }
    return n;
}

static inline adj_shape shape_of(const char *text)
{
    int64_t list[8];
    adj_shape shape;
    cr_assert_eq(adj_shape_from_list(read_list(text, list), list, &shape), ADJ_OK, "%s", text);
    return shape;
}

/* An input of a type such as "f32[2, 3]", whose values are not read. */
static inline adj_node *input(fixture *f, const char *type)
{
    char name[16], word[8];
    adj_dtype dtype = ADJ_F32;
    const adj_shape shape = shape_of(strchr(type, '[') + 1);
    snprintf(word, sizeof word, "%.*s", (int)strcspn(type, "["), type);
    cr_assert_eq(adj_dtype_from_name(word, &dtype), ADJ_OK, "%s", type);
    snprintf(name, sizeof name, "input%d", adj_graph_node_count(f->g));
    return adj_input(f->g, name, dtype, shape);
}

/* ---- calls that are refused, each in a graph of its own ---- */

static fixture refusals; /* the graph of the next call */

/* An operand of that call. */
static inline adj_node *of_type(const char *type)
{
    if (refusals.g == NULL)
        refusals = fixture_new();
    return input(&refusals, type);
}

/* The call's result y is NULL, and its graph has failed with this status and the words. */
static inline void expect_refused(const adj_node *y, adj_status status, const char *words)
{
    expect_refusal(&refusals, y, status, "%s", words);
}

/* ---- oracles ---- */

static inline adj_node *scalar(fixture *f, adj_dtype dtype, double value)
{
    return given(f, dtype, (adj_shape){0}, &value);
}

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

/* Element of x at index i of y, to which x is broadcast: its axes are y's last, and size 1 repeats.
 */
static inline double repeated(const double *x, adj_shape shape, adj_shape i)
{
    adj_shape index = {.rank = shape.rank};
    for (int64_t d = 0; d < shape.rank; d++)
        index.dim[d] = shape.dim[d] == 1 ? 0 : i.dim[i.rank - shape.rank + d];
    return x[ravel(index, shape)];
}

/* Turns the sizes or the strides of NHWC into those of NCHW. */
static inline void to_nchw(int64_t v[4])
{
    const int64_t c = v[3];
    v[3] = v[2], v[2] = v[1], v[1] = c;
}

static inline int64_t elems_of(const adj_node *n)
{
    return adj_shape_elems(adj_node_type(n).shape);
}

/* y was built, and has this shape; sizes past the rank are 0. */
static inline void expect_shape(const fixture *f, const adj_node *y, adj_shape want)
{
    cr_assert_not_null(y, "%s", adj_graph_message(f->g));
    const adj_shape got = adj_node_type(y).shape;
    cr_assert_eq(memcmp(&got, &want, sizeof got), 0, "%s", adj_node_op(y));
}

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
