/* nn_test.h - fixtures that the tests of this folder share: leaves filled with a sine that PyTorch
 * programs can make too, executors on the naive backend. */
#ifndef NN_TEST_H
#define NN_TEST_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "adjoint_nn.h"
#include "harness.h"
#include "graph/op.h"

/* sin(0.37 i + phase) * scale */
static inline double sine(int64_t i, double phase, double scale)
{
    return sin((double)i * 0.37 + phase) * scale;
}

static inline void set_sine(adj_exec *e, const adj_node *leaf, double phase, double scale)
{
    int64_t n = adj_shape_elems(adj_node_type(leaf).shape);
    scoped(release) double *v = malloc((size_t)(n + 1) * sizeof *v);

    for (int64_t i = 0; i < n; i++)
        v[i] = sine(i, phase, scale);
    set_values(e, leaf, v);
}

static inline double get_scalar(adj_exec *e, const adj_node *node)
{
    scoped(release) double *v = fixture_get(e, node);
    return v[0];
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
