/* spoil.h - a backend that computes one op by naive's kernel and then spoils the result. */
#ifndef TESTS_CHECK_SPOIL_H
#define TESTS_CHECK_SPOIL_H

#include <string.h>

#include "graph/op.h"
#include "tests/check/checked.h"
#include "tests/reference.h"

static struct {
    const char *op;
    double factor;                             /* factor of all elements */
    void (*spoil)(const adj_node *n, void *y); /* instead of the factor; NULL: none */
    adj_status (*run)(const adj_call *c);      /* instead of naive's kernel; NULL: none */
} spoiled;

static adj_status spoil_prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    if (strcmp(g->node[0]->op->name, spoiled.op) != 0)
        return ADJ_ENOKERNEL;
    adj_status status = naive_backend()->kernels[0]->prepare(backend, g, candidate, p);
    strcpy(p->impl, "spoiled:1");
    return status;
}

static adj_status spoil_run(const adj_call *c)
{
    if (spoiled.run != NULL)
        return spoiled.run(c);
    adj_status status = naive_backend()->kernels[0]->run(c);
    const adj_node *n = c->group->node[0];
    if (spoiled.spoil != NULL)
        spoiled.spoil(n, c->out[0]);
    for (int64_t i = 0; spoiled.spoil == NULL && i < adj_shape_elems(n->type.shape); i++)
        adj_store(n->type.dtype, c->out[0], i,
                  spoiled.factor * adj_load(n->type.dtype, c->out[0], i));
    return status;
}

/* Returns "spoiled" and naive; until the next call. */
static inline const adj_backend *const *spoiled_backends(void)
{
    static const adj_kernel kernel = {
        .name = "spoiled", .prepare = spoil_prepare, .run = spoil_run};
    return before_naive("spoiled", &kernel);
}

/* Checks the op with its gradient's op spoiled. */
static inline const adj_gradcheck_report *check_spoiled(adj_graph *g, const op_args *args,
                                                        const adj_gradcheck_opts *opts)
{
    adj_gradcheck_opts o = *opts;
    o.exec.backend = "spoiled";
    o.exec.backends = spoiled_backends();
    return checked(built(g, args), &o);
}

#endif
