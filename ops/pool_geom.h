/* pool_geom.h - the attributes of max and average pooling checked, and their geometry. */
#ifndef POOL_GEOM_H
#define POOL_GEOM_H

#include "adjoint_ext.h"
#include "conv_geom.h"

/* A pool's input, or the shape it is said to have: fills in n, ih, iw and ic of a->geom. */
adj_status pool_set_input(const adj_node *n, const char *name, adj_shape shape, adj_pool_attrs *a);
/* Which rules hold: only max pooling may have a window over channels or EXPLICIT padding; only the
 * gradient of average pooling may have a result without elements because no window has room (there
 * it is no result, but an operand without elements, and the gradient is zeros, as in TensorFlow).
 */
typedef enum { POOL_MAX, POOL_AVERAGE, POOL_AVERAGE_GRAD } pool_kind;
/* Checks a->pool, fills in its defaults and the rest of a->geom. */
adj_status pool_resolve(const adj_node *n, pool_kind kind, adj_pool_attrs *a);
/* adj_pool_attrs; shown as " SAME k3x3 s2x2 NCHW". */
extern const adj_schema pool_schema;

#endif
