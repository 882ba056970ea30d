/* registry.c - every backend, in order of preference; naive, the fallback, is last. */
#include "graph/op.h"

extern const adj_backend adj_backend_direct, adj_backend_naive, adj_backend_onednn;

const adj_backend *const adj_backends[] = {
    &adj_backend_onednn,
    &adj_backend_direct,
    &adj_backend_naive,
    NULL,
};
