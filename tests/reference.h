/* reference.h - the last of the built-in backends, which computes everything, and what a test's own
 * backend beside it has. */
#ifndef TESTS_REFERENCE_H
#define TESTS_REFERENCE_H

#include <stdio.h>
#include <string.h>

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

/* A layout of a test's own backend. */
struct adj_layout {
    size_t bytes;
    const char *name;
};
static inline size_t layout_bytes(const adj_layout *l) { return l->bytes; }
static inline const char *layout_name(const adj_layout *l) { return l->name; }

/* How a planted kernel prepares one node alone, of this op and type: one candidate, plain layouts.
 */
static inline adj_status prepare_one(const adj_op *op, adj_dtype dtype, const char *impl,
                                     const adj_group *g, int candidate, adj_prep *p)
{
    if (candidate > 0 || g->n_node > 1 || g->node[0]->op != op || g->node[0]->type.dtype != dtype)
        return ADJ_ENOKERNEL;
    for (int k = 0; k < g->n_in; k++)
        p->in[k] = NULL;
    p->out[0] = NULL;
    snprintf(p->impl, sizeof p->impl, "%s", impl);
    return ADJ_OK;
}

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

/* Returns the list of own, which opens nothing, and these others, up to 6. It lives until the next
 * call. */
static inline const adj_backend *const *list_before(adj_backend own,
                                                    const adj_backend *const others[])
{
    static adj_backend backend;
    static const adj_backend *list[8];
    backend = own;
    backend.version = ADJ_VERSION;
    backend.open = open_nothing;
    backend.close = close_nothing;
    memset(list, 0, sizeof list);
    list[0] = &backend;
    for (int i = 0; i < 6 && others[i] != NULL; i++)
        list[i + 1] = others[i];
    return list;
}

static inline const adj_backend *const *beside_naive(adj_backend own)
{
    return list_before(own, (const adj_backend *const[]){naive_backend(), NULL});
}

/* Returns the list of a backend of that name with this kernel alone. */
static inline const adj_backend *const *before_naive(const char *name, const adj_kernel *kernel)
{
    static const adj_kernel *kernels[2];
    kernels[0] = kernel;
    return beside_naive((adj_backend){.name = name, .kernels = kernels});
}

#endif
