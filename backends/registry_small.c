/* registry_small.c - registry.c of the small library: the backends that need no other library. */
#include "graph/op.h"

extern const adj_backend adj_backend_direct, adj_backend_naive;

const adj_backend *const adj_backends[] = {
    &adj_backend_direct,
    &adj_backend_naive,
    NULL,
};
