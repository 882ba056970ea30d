/* all_reduce.c - the kernel of all_reduce over a group: in f32 for half types, whose sum is rounded
 * once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi.h"

typedef struct {
    adj_mpi *group;
    MPI_Datatype type;
} reduction;

enum { AT_ONCE = 1 << 28 }; /* elements: MPI counts in int */

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    const adj_node *n = g->node[0];
    const adj_dtype dtype = n->type.dtype;
    if (n->op != &adj_op_all_reduce || g->n_node > 1 || candidate > 0)
        return ADJ_ENOKERNEL;
    reduction *r = malloc(sizeof *r);
    if (r == NULL)
        return ADJ_ENOMEM;
    r->group = backend;
    r->type = dtype == ADJ_F64 ? MPI_DOUBLE : MPI_FLOAT;
    p->state = r;
    p->alias[0] = (adj_alias){0, 1};
    if (dtype == ADJ_F16 || dtype == ADJ_BF16)
        p->scratch = (size_t)adj_shape_elems(n->type.shape) * sizeof(float);
    snprintf(p->impl, sizeof p->impl, "all_reduce:%d", r->group->size);
    return ADJ_OK;
}

static int reduce(const reduction *r, char *v, int64_t n)
{
    const size_t bytes = r->type == MPI_DOUBLE ? sizeof(double) : sizeof(float);
    int code = MPI_SUCCESS;
    for (int64_t at = 0; at < n && code == MPI_SUCCESS; at += AT_ONCE) {
        const int count = (int)(n - at < AT_ONCE ? n - at : AT_ONCE);
        code = MPI_Allreduce(MPI_IN_PLACE, v + (size_t)at * bytes, count, r->type, MPI_SUM,
                             r->group->all);
    }
    return code;
}

static adj_status run(const adj_call *c)
{
    const reduction *r = c->state;
    const adj_type type = c->group->out[0]->type;
    const int64_t n = adj_shape_elems(type.shape);
    const void *x = c->in[0];
    void *v = c->scratch != NULL ? c->scratch : c->out[0];
    if (c->scratch != NULL)
        adj_convert(type.dtype, x, ADJ_F32, v, n);
    else if (v != x)
        memcpy(v, x, adj_type_bytes(type));
    const int code = reduce(r, v, n);
    if (code != MPI_SUCCESS) {
        mpi_sentence(code, c->message, ADJ_WHY);
        return ADJ_EBACKEND;
    }
    if (c->scratch != NULL)
        adj_convert(ADJ_F32, v, type.dtype, c->out[0], n);
    return ADJ_OK;
}

static void drop(void *backend, void *state)
{
    (void)backend;
    free(state);
}

const adj_kernel mpi_all_reduce = {
    .name = "all_reduce", .prepare = prepare, .run = run, .drop = drop};
