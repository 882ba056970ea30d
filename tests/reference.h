/* reference.h - the last of the built-in backends, which computes everything, and what a test's own
 * backend beside it opens: nothing. */
#ifndef TESTS_REFERENCE_H
#define TESTS_REFERENCE_H

#include "graph/op.h"

static inline const adj_backend *naive_backend(void)
{
    int n = 0;
    while (adj_backends[n + 1] != NULL)
        n++;
    return adj_backends[n];
}

static inline adj_status open_nothing(const adj_backend_opts *opts, void **backend)
{
    (void)opts;
    *backend = NULL;
    return ADJ_OK;
}

static inline void close_nothing(void *backend) { (void)backend; }

/* Reorders without a state. */
static inline adj_status prepare_no_state(void *backend, const adj_layout *from,
                                          const adj_layout *to, adj_type type, void **state,
                                          size_t *scratch)
{
    (void)backend, (void)from, (void)to, (void)type;
    *state = NULL;
    *scratch = 0;
    return ADJ_OK;
}

static inline void drop_nothing(void *backend, void *state) { (void)backend, (void)state; }

/* Returns a list of two backends, own, which opens nothing, and naive. It lives until the next
 * call.
 */
static inline const adj_backend *const *beside_naive(adj_backend own)
{
    static adj_backend backend;
    static const adj_backend *list[3];
    backend = own;
    backend.version = ADJ_VERSION;
    backend.open = open_nothing;
    backend.close = close_nothing;
    list[0] = &backend;
    list[1] = naive_backend();
    return list;
}

/* Returns the list of a backend of that name with this kernel alone. */
static inline const adj_backend *const *before_naive(const char *name, const adj_kernel *kernel)
{
    static const adj_kernel *kernels[2];
    kernels[0] = kernel;
    return beside_naive((adj_backend){.name = name, .kernels = kernels});
}

#endif
