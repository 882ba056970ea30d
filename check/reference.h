/* reference.h - the backends that both checkers take as the reference. */
#ifndef ADJ_CHECK_REFERENCE_H
#define ADJ_CHECK_REFERENCE_H

#include "graph/graph.h"

/* A NULL-ended list for an executor with backend "naive": the caller's own backends, then naive.
 * The executor asks these only for the caller's own ops (exec/backends.c). A backend with the name
 * of a built-in one may be under test and is left out. Sets *list to NULL, the built-in backends,
 * if the caller has none of its own. */
adj_status reference_backends(const adj_backend *const *own, region *p,
                              const adj_backend *const **list);

#endif
