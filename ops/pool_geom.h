/* pool_geom.h - checks the attributes of max and average pooling and computes their geometry. */
#ifndef POOL_GEOM_H
#define POOL_GEOM_H

#include "conv_geom.h"
#include "graph/op.h"

/* Sets n, ih, iw and ic of a->geom from the shape of a pool's input, or from a given input
 * shape. */
adj_status pool_set_input(const adj_node *n, const char *name, adj_shape shape, adj_pool_attrs *a);
/* The rules that apply: only max pooling may have a window over channels or EXPLICIT padding.
 * Only the gradient of average pooling may have no window that fits: dy is then empty and the
 * gradient is zeros, as in TensorFlow. */
typedef enum { POOL_MAX, POOL_AVERAGE, POOL_AVERAGE_GRAD } pool_kind;
/* Checks a->pool, fills in its defaults and the rest of a->geom. */
adj_status pool_resolve(const adj_node *n, pool_kind kind, adj_pool_attrs *a);
/* Schema of adj_pool_attrs; printed as " SAME k3x3 s2x2 NCHW". */
extern const adj_schema pool_schema;

#endif
