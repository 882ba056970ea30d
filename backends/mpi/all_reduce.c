/* all_reduce.c - the kernels of all_reduce over a group of processes: start, wait, and both at
 * once. Half types are summed in f32 and rounded once.
 *
 * A wait finds its start by the buffer of the pending reduction: the wait reads where the start
 * has written. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/op.h"
#include "mpi.h"

/* A prepared start or all_reduce. */
struct prepared {
    reduction *reduction;
    float *wide;    /* f32 values that are reduced for half types; NULL for others */
    const void *at; /* result of the pending start; NULL if none */
    prepared *next; /* in group->prepared */
};

static int is_half(adj_dtype t) { return t == ADJ_F16 || t == ADJ_BF16; }

static void drop(void *backend, void *state)
{
    adj_mpi *g = backend;
    prepared *s = state;
    if (s == NULL)
        return;
    prepared **at = &g->prepared;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    reduction_free(s->reduction);
    free(s->wide);
    free(s);
}

static adj_status prepare(void *backend, const adj_group *g, const adj_op *op, int candidate,
                          adj_prep *p)
{
    const adj_type type = g->node[0]->type;
    const int64_t n = adj_shape_elems(type.shape);
    adj_mpi *group = backend;
    if (g->node[0]->op != op || g->n_node > 1 || candidate > 0)
        return ADJ_ENOKERNEL;
    if (n > INT_MAX) {
        snprintf(p->why, sizeof p->why, "MPI counts elements in int");
        return ADJ_ENOKERNEL;
    }
    prepared *s = calloc(1, sizeof *s);
    if (s == NULL)
        return ADJ_ENOMEM;
    s->reduction = reduction_new(group, n, type.dtype == ADJ_F64);
    s->wide = is_half(type.dtype) ? malloc((size_t)n * sizeof *s->wide) : NULL;
    s->next = group->prepared;
    group->prepared = s;
    if (s->reduction == NULL || (is_half(type.dtype) && s->wide == NULL)) {
        drop(backend, s);
        return ADJ_ENOMEM;
    }
    p->state = s;
    p->alias[0] = (adj_alias){0, 1};
    snprintf(p->impl, sizeof p->impl, "%s:%d", op->name, group->size);
    return ADJ_OK;
}

static adj_status prepare_both(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    return prepare(backend, g, &adj_op_all_reduce, candidate, p);
}

static adj_status prepare_start(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    return prepare(backend, g, &adj_op_all_reduce_start, candidate, p);
}

static adj_status prepare_wait(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    if (g->node[0]->op != &adj_op_all_reduce_wait || g->n_node > 1 || candidate > 0)
        return ADJ_ENOKERNEL;
    p->state = backend;
    p->alias[0] = (adj_alias){0, 1};
    snprintf(p->impl, sizeof p->impl, "all_reduce_wait:%d", ((const adj_mpi *)backend)->size);
    return ADJ_OK;
}

static adj_status start(const adj_call *c)
{
    prepared *s = c->state;
    const adj_type type = c->group->out[0]->type;
    void *v = s->wide != NULL ? s->wide : c->out[0];
    if (s->wide != NULL)
        adj_convert(type.dtype, c->in[0], ADJ_F32, v, adj_shape_elems(type.shape));
    else if (v != c->in[0])
        memcpy(v, c->in[0], adj_type_bytes(type));
    s->at = c->out[0];
    return reduction_start(s->reduction, v, c->message);
}

static adj_status finish(prepared *s, const adj_call *c, void *out)
{
    const adj_type type = c->group->out[0]->type;
    adj_status status = reduction_finish(s->reduction, c->message);
    if (status != ADJ_OK)
        return status;
    if (s->wide != NULL)
        adj_convert(ADJ_F32, s->wide, type.dtype, out, adj_shape_elems(type.shape));
    else if (out != s->at)
        memcpy(out, s->at, adj_type_bytes(type));
    s->at = NULL;
    return ADJ_OK;
}

static adj_status wait(const adj_call *c)
{
    const adj_mpi *g = c->state;
    prepared *s = g->prepared;
    while (s != NULL && s->at != c->in[0])
        s = s->next;
    if (s == NULL) {
        snprintf(c->message, ADJ_WHY, "no reduction is in progress");
        return ADJ_EBACKEND;
    }
    return finish(s, c, c->out[0]);
}

static adj_status both(const adj_call *c)
{
    adj_status status = start(c);
    return status == ADJ_OK ? finish(c->state, c, c->out[0]) : status;
}

const adj_kernel mpi_all_reduce = {
    .name = "all_reduce", .prepare = prepare_both, .run = both, .drop = drop};
const adj_kernel mpi_all_reduce_start = {
    .name = "all_reduce_start", .prepare = prepare_start, .run = start, .drop = drop};
const adj_kernel mpi_all_reduce_wait = {
    .name = "all_reduce_wait", .prepare = prepare_wait, .run = wait};
