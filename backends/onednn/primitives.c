/* primitives.c - lists of one or two primitives, executed in order.
 *
 * Each primitive has a memory object per argument; running sets their buffers to the call's. A
 * buffer that has not changed, which is every one after the first run, is not set again: oneDNN
 * 2.x would zero the padding of blocked memory each time. */
#include <omp.h>
#include <stdio.h>

#include "onednn.h"

enum { MAX_ARGS = 6, MAX_PRIMITIVES = 2, ALIGNMENT = 64 };

typedef struct {
    dnnl_primitive_t primitive;
    int n_arg;
    primitive_arg arg[MAX_ARGS]; /* .memory is not stored: its descriptor is freed after planning */
    void *pointed[MAX_ARGS];
    dnnl_exec_arg_t exec[MAX_ARGS];
} prepared_primitive;

struct primitives {
    onednn *o;
    int threads; /* OpenMP's number when they were created: they are made for it */
    int n_primitive;
    prepared_primitive primitive[MAX_PRIMITIVES];
};

size_t primitives_scratch(size_t *scratch, size_t bytes)
{
    size_t at = *scratch;
    *scratch += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return at;
}

primitives *primitives_new(onednn *o)
{
    primitives *all = adj_alloc(&o->allocator, sizeof *all);
    if (all != NULL)
        *all = (primitives){.o = o, .threads = omp_get_max_threads()};
    return all;
}

static dnnl_status_t add_arg(onednn *o, prepared_primitive *p, const primitive_arg *a)
{
    int i = p->n_arg;
    p->arg[i] = *a;
    p->arg[i].memory = NULL;
    p->exec[i].arg = a->arg;
    dnnl_status_t status =
        dnnl_memory_create(&p->exec[i].memory, a->memory, o->engine, DNNL_MEMORY_NONE);
    if (status == dnnl_success)
        p->n_arg++;
    return status;
}

/* Appends d's primitive and its memory objects. */
static dnnl_status_t primitives_add(primitives *all, const_pd d, const primitive_arg *args,
                                    size_t *scratch)
{
    prepared_primitive *p = &all->primitive[all->n_primitive++];
    dnnl_status_t status = dnnl_primitive_create(&p->primitive, d);
    for (const primitive_arg *a = args; a->arg != 0 && status == dnnl_success; a++)
        status = add_arg(all->o, p, a);

    const_md pad = dnnl_primitive_desc_query_md(d, dnnl_query_scratchpad_md, 0);
    size_t bytes = pad != NULL ? dnnl_memory_desc_get_size(pad) : 0;
    if (status == dnnl_success && bytes > 0)
        status = add_arg(all->o, p,
                         &(primitive_arg){DNNL_ARG_SCRATCHPAD, AT_SCRATCH,
                                          primitives_scratch(scratch, bytes), pad});
    return status;
}

dnnl_status_t primitives_add_reorder(primitives *all, const primitive_arg *from,
                                     const primitive_arg *to, size_t *scratch)
{
    const onednn *o = all->o;
    pd d = NULL;
    dnnl_status_t status = dnnl_reorder_primitive_desc_create(&d, from->memory, o->engine,
                                                              to->memory, o->engine, o->attr);
    if (status == dnnl_success)
        status = primitives_add(all, d, (primitive_arg[]){*from, *to, {0}}, scratch);
    if (d != NULL)
        dnnl_primitive_desc_destroy(d);
    return status;
}

static void *buffer(const adj_call *c, const primitive_arg *a)
{
    switch (a->at) {
    case AT_IN: return (void *)c->in[a->where]; /* oneDNN's handles are not const */
    case AT_OUT: return c->out[a->where];
    default: return (char *)c->scratch + a->where;
    }
}

static dnnl_status_t run_one(const onednn *o, prepared_primitive *p, const adj_call *c)
{
    for (int i = 0; i < p->n_arg; i++) {
        void *data = buffer(c, &p->arg[i]);
        if (data == p->pointed[i])
            continue;
        dnnl_status_t status = md_point(p->exec[i].memory, data, o->stream);
        if (status != dnnl_success)
            return status;
        p->pointed[i] = data;
    }
    return dnnl_primitive_execute(p->primitive, o->stream, p->n_arg, p->exec);
}

adj_status primitives_run(const adj_call *c)
{
    primitives *all = c->state;
    dnnl_status_t status = dnnl_success;
    const int callers = omp_get_max_threads();
    omp_set_num_threads(all->threads);
    for (int i = 0; i < all->n_primitive && status == dnnl_success; i++)
        status = run_one(all->o, &all->primitive[i], c);
    if (status == dnnl_success)
        status = dnnl_stream_wait(all->o->stream);
    omp_set_num_threads(callers);
    if (status == dnnl_success)
        return ADJ_OK;
    if (c->message != NULL)
        snprintf(c->message, ADJ_WHY, "%s: oneDNN failed while running (status %d)",
                 c->group != NULL ? c->group->node[0]->op->name : "reorder", (int)status);
    return status == dnnl_out_of_memory ? ADJ_ENOMEM : ADJ_EBACKEND;
}

void primitives_drop(void *backend, void *state)
{
    (void)backend;
    primitives *all = state;
    if (all == NULL)
        return;
    for (int k = all->n_primitive - 1; k >= 0; k--) {
        prepared_primitive *p = &all->primitive[k];
        for (int i = p->n_arg - 1; i >= 0; i--)
            dnnl_memory_destroy(p->exec[i].memory);
        if (p->primitive != NULL)
            dnnl_primitive_destroy(p->primitive);
    }
    adj_release(&all->o->allocator, all);
}

adj_status primitives_prepare(onednn *o, const adj_node *n, const_pd d, const primitive_arg *args,
                              adj_prep *p)
{
    primitives *all = primitives_new(o);
    dnnl_status_t status =
        all != NULL ? primitives_add(all, d, args, &p->scratch) : dnnl_out_of_memory;
    if (status != dnnl_success) {
        primitives_drop(o, all);
        return onednn_refuse(status, n->op->name, p->why);
    }
    p->state = all;
    snprintf(p->impl, sizeof p->impl, "%s", pd_name(d));
    return ADJ_OK;
}
