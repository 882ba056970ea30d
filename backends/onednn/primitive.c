/* primitive.c - a primitive that is ready to run.
 *
 * It has a memory object per argument; running sets their buffers to the call's. A buffer that has
 * not changed, which is every one after the first run, is not set again: oneDNN 2.x would zero the
 * padding of blocked memory each time. */
#include <omp.h>
#include <stdio.h>

#include "onednn.h"

enum { MAX_ARGS = 6, ALIGNMENT = 64 };

typedef struct {
    onednn *o;
    int threads; /* OpenMP's number when the primitive was created, which fixes it */
    dnnl_primitive_t primitive;
    int n_arg;
    primitive_arg arg[MAX_ARGS]; /* .memory is not stored: its descriptor is freed after planning */
    void *pointed[MAX_ARGS];
    dnnl_exec_arg_t exec[MAX_ARGS];
} prepared;

static dnnl_status_t add_arg(prepared *p, const primitive_arg *a)
{
    int i = p->n_arg;
    p->arg[i] = *a;
    p->arg[i].memory = NULL;
    p->exec[i].arg = a->arg;
    dnnl_status_t status =
        dnnl_memory_create(&p->exec[i].memory, a->memory, p->o->engine, DNNL_MEMORY_NONE);
    if (status == dnnl_success)
        p->n_arg++;
    return status;
}

dnnl_status_t primitive_new(onednn *o, const_pd d, const primitive_arg *args, void **state,
                            size_t *scratch)
{
    prepared *p = *state = adj_alloc(&o->allocator, sizeof *p);
    if (p == NULL)
        return dnnl_out_of_memory;
    p->o = o;
    p->threads = omp_get_max_threads();
    dnnl_status_t status = dnnl_primitive_create(&p->primitive, d);
    for (const primitive_arg *a = args; a->arg != 0 && status == dnnl_success; a++)
        status = add_arg(p, a);
    const_md pad = dnnl_primitive_desc_query_md(d, dnnl_query_scratchpad_md, 0);
    size_t bytes = pad != NULL ? dnnl_memory_desc_get_size(pad) : 0;
    if (status == dnnl_success && bytes > 0)
        status = add_arg(p, &(primitive_arg){DNNL_ARG_SCRATCHPAD, AT_SCRATCH, 0, pad});
    *scratch = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (status != dnnl_success) {
        primitive_drop(o, p);
        *state = NULL;
    }
    return status;
}

static void *buffer(const adj_call *c, const primitive_arg *a)
{
    switch (a->at) {
    case AT_IN: return (void *)c->in[a->where]; /* oneDNN's handles are not const */
    case AT_OUT: return c->out[a->where];
    default: return c->scratch;
    }
}

static dnnl_status_t run_primitive(prepared *p, const adj_call *c)
{
    for (int i = 0; i < p->n_arg; i++) {
        void *data = buffer(c, &p->arg[i]);
        if (data == p->pointed[i])
            continue;
        dnnl_status_t status = md_point(p->exec[i].memory, data, p->o->stream);
        if (status != dnnl_success)
            return status;
        p->pointed[i] = data;
    }
    dnnl_status_t status = dnnl_primitive_execute(p->primitive, p->o->stream, p->n_arg, p->exec);
    return status == dnnl_success ? dnnl_stream_wait(p->o->stream) : status;
}

adj_status primitive_run(const adj_call *c)
{
    prepared *p = c->state;
    const int callers = omp_get_max_threads();
    omp_set_num_threads(p->threads);
    const dnnl_status_t status = run_primitive(p, c);
    omp_set_num_threads(callers);
    if (status == dnnl_success)
        return ADJ_OK;
    if (c->message != NULL)
        snprintf(c->message, ADJ_WHY, "%s: oneDNN failed while running (status %d)",
                 c->group != NULL ? c->group->node[0]->op->name : "reorder", (int)status);
    return status == dnnl_out_of_memory ? ADJ_ENOMEM : ADJ_EBACKEND;
}

void primitive_drop(void *backend, void *state)
{
    const onednn *o = backend;
    prepared *p = state;
    if (p == NULL)
        return;
    for (int i = p->n_arg - 1; i >= 0; i--)
        dnnl_memory_destroy(p->exec[i].memory);
    if (p->primitive != NULL)
        dnnl_primitive_destroy(p->primitive);
    adj_release(&o->allocator, p);
}

adj_status primitive_prepare(onednn *o, const adj_node *n, const_pd d, const primitive_arg *args,
                             adj_prep *p)
{
    const dnnl_status_t status = primitive_new(o, d, args, &p->state, &p->scratch);
    if (status != dnnl_success)
        return onednn_refuse(status, n->op->name, p->why);
    snprintf(p->impl, sizeof p->impl, "%s", pd_name(d));
    return ADJ_OK;
}
