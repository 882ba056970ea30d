/* registry.c - every backend. Of kernels with equal estimates that of the first is taken; naive,
 * the fallback, is last. The small library, compiled with -DSMALL, has those that need no other
 * library. */
#include "graph/op.h"

extern const adj_backend adj_backend_direct, adj_backend_naive, adj_backend_onednn;

const adj_backend *const adj_backends[] = {
#ifndef SMALL
    &adj_backend_onednn,
#endif
    &adj_backend_direct,
    &adj_backend_naive,
    NULL,
};
