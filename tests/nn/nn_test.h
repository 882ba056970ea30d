/* nn_test.h - what the tests of this folder share: leaves filled with a sine that PyTorch programs
 * can make too, executors on the naive backend, values read back. */
#ifndef NN_TEST_H
#define NN_TEST_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "adjoint_ext.h"
#include "adjoint_nn.h"
#include "harness.h"

/* sin(0.37 i + phase) * scale */
static inline double sine(int64_t i, double phase, double scale)
{
    return sin((double)i * 0.37 + phase) * scale;
}

static inline void set_values(adj_exec *e, const adj_node *leaf, const double *values)
{
    adj_type t = adj_node_type(leaf);
    int64_t n = adj_shape_elems(t.shape);
    size_t bytes = (size_t)n * adj_dtype_size(t.dtype);
    scoped(release) char *data = malloc(bytes + 1);

    cr_assert_not_null(leaf);
    adj_convert(ADJ_F64, values, t.dtype, data, n);
    cr_assert_eq(adj_set(e, leaf, data, bytes), ADJ_OK, "%s: %s", adj_node_name(leaf),
                 adj_exec_message(e));
}

static inline void set_sine(adj_exec *e, const adj_node *leaf, double phase, double scale)
{
    int64_t n = adj_shape_elems(adj_node_type(leaf).shape);
    scoped(release) double *v = malloc((size_t)(n + 1) * sizeof *v);

    for (int64_t i = 0; i < n; i++)
        v[i] = sine(i, phase, scale);
    set_values(e, leaf, v);
}

/* malloc'ed */
static inline double *get_values(adj_exec *e, const adj_node *node)
{
    adj_type t = adj_node_type(node);
    int64_t n = adj_shape_elems(t.shape);
    size_t bytes = (size_t)n * adj_dtype_size(t.dtype);
    scoped(release) char *data = malloc(bytes + 1);
    double *v = malloc((size_t)(n + 1) * sizeof *v);

    cr_assert_eq(adj_get(e, node, data, bytes), ADJ_OK, "%s", adj_exec_message(e));
    adj_convert(t.dtype, data, ADJ_F64, v, n);
    return v;
}

static inline double get_scalar(adj_exec *e, const adj_node *node)
{
    double *v = get_values(e, node), first = v[0];
    free(v);
    return first;
}

static inline adj_exec *exec_new(adj_graph *g, int n, adj_node *const fetch[],
                                 const adj_updates *updates)
{
    adj_exec_opts opts = {
        .n_fetch = n, .fetch = fetch, .updates = updates, .backend = "naive", .seed = 1};

    cr_assert_eq(adj_graph_status(g), ADJ_OK, "%s", adj_graph_message(g));
    return plan_of(g, &opts);
}

static inline void run(adj_exec *e) { cr_assert_eq(adj_run(e), ADJ_OK, "%s", adj_exec_message(e)); }

#endif
