/* registry.c - every backend, in order of preference; naive, the fallback, is last. */
#include "adjoint_ext.h"

extern const adj_backend adj_backend_naive;

const adj_backend *const adj_backends[] = {
    &adj_backend_naive,
    NULL,
};
