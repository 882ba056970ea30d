/* nn.h - what the files of this folder share. */
#ifndef NN_H
#define NN_H

#include "adjoint_nn.h"

/* "layer/part"; longer ones are refused, since two of them could be cut to the same name. */
enum { NN_NAME = 160 };

typedef struct {
    char s[NN_NAME];
} nn_name;

/* Joins layer and part with a slash. On failure the graph has the error and the result is "". */
nn_name nn_join(adj_graph *g, const char *layer, const char *part);
/* The type that parameters and statistics have beside values of this type: f32 for half types. */
adj_dtype nn_kept_dtype(adj_dtype dtype);
/* x as dtype: x itself if it is. */
adj_node *nn_cast(adj_node *x, adj_dtype dtype);
/* The state of that name, made with a constant value if the graph has none yet. */
adj_node *nn_state(adj_graph *g, const char *name, adj_dtype dtype, adj_shape shape, double value);

/* adj_trainable_except's, malloc'ed; *n is -1 when out of memory. */
adj_node **nn_trainable(const adj_node *y, const char *frozen, int *n);
int nn_is_among(const adj_node *p, int n, adj_node *const list[]);
/* The graph's layer updates, but those of states of frozen layers. */
adj_updates *nn_layer_updates(const adj_node *loss, const adj_optimiser_opts *o);

/* Options say by 0 that they are left out. */
static inline double nn_or_default(double value, double fallback)
{
    return value != 0 ? value : fallback;
}

#endif
