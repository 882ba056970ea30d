/* choose.c - which kernel computes a group.
 *
 * "Is it supported?" is asked by preparing: the preferred backend's kernels in its order, then
 * those of the backends after it; of several answers the lowest rank is taken. With tune the
 * candidates are timed instead (tune.c), where there is more than one. */
#include <string.h>

#include "exec.h"

/* Offers each operand in the layout that it already has, if the backend knows it. */
static void offer(const adj_exec *e, int backend, const adj_group *g, adj_prep *p)
{
    for (int i = 0; i < g->n_in; i++) {
        int b = e->first_buffer != NULL ? e->first_buffer[g->in[i]->id] : NONE;
        p->in[i] = b != NONE && e->buffer[b].backend == backend ? e->buffer[b].layout : NULL;
    }
    for (int i = 0; i < g->n_out; i++)
        p->out[i] = NULL;
    p->scratch = 0;
    p->in_place = p->in_place_too = 0;
    p->writer = p->writer_too = p->rank = p->sums_by_threads = 0;
    p->impl[0] = p->why[0] = '\0';
    p->state = NULL;
}

adj_status prepare_candidate(adj_exec *e, step *s, const answer *a, char why[ADJ_WHY])
{
    offer(e, a->backend, &s->group, &s->prep);
    adj_status status =
        a->kernel->prepare(e->opened[a->backend], &s->group, a->candidate, &s->prep);
    s->prep.why[ADJ_WHY - 1] = '\0';
    if (status == ADJ_OK) {
        s->kernel = a->kernel;
        s->backend = a->backend;
    } else if (status == ADJ_ENOMEM)
        set_error(e, status, "adj_exec_new: out of memory while preparing %s",
                  s->group.node[0]->op->name);
    else if (s->prep.why[0] != '\0')
        memcpy(why, s->prep.why, ADJ_WHY);
    return status;
}

void drop_prepared(adj_exec *e, const step *s)
{
    if (s->kernel != NULL && s->kernel->drop != NULL)
        s->kernel->drop(e->opened[s->backend], s->prep.state);
}

int kernel_takes(const adj_exec *e, const node_group *g, int backend, const adj_kernel *kernel)
{
    if (g->n == 1 || kernel == g->kernel)
        return 1;
    for (int i = 0; i < g->n; i++)
        if (!may_compute(e, backend, g->node[i]->op))
            return 0;
    int n = 0;
    if (kernel->match != NULL)
        n = kernel->match(g->node[0], e->uses, e->graph->n_node, e->proposed);
    for (int i = 0; i < n && n == g->n; i++)
        for (int k = 0; k <= g->n; k++) {
            if (k == g->n)
                return 0;
            if (g->node[k] == e->proposed[i])
                break;
        }
    return n == g->n;
}

/* The kernel's first candidate, or the first of the implementation that the options want. */
static adj_status prepare_wanted(adj_exec *e, step *s, answer a, char why[ADJ_WHY])
{
    char ignored[ADJ_WHY];
    for (a.candidate = 0; e->impl != NULL; a.candidate++) {
        adj_status status = prepare_candidate(e, s, &a, ignored);
        if (status != ADJ_OK)
            break;
        if (strstr(s->prep.impl, e->impl) != NULL) {
            s->prep.rank = 0;
            return ADJ_OK;
        }
        drop_prepared(e, s);
    }
    a.candidate = 0;
    return e->status == ADJ_OK ? prepare_candidate(e, s, &a, why) : e->status;
}

/* Asks a backend's kernels to take the step's group, until one does with rank 0: then s is
 * prepared. ADJ_ENOKERNEL: none did so, but *best may have been improved. */
static adj_status ask(adj_exec *e, step *s, const node_group *g, int backend, answer *best,
                      char why[ADJ_WHY])
{
    const adj_kernel *const *kernel = e->backend[backend]->kernels;
    for (; *kernel != NULL; kernel++) {
        if (!kernel_takes(e, g, backend, *kernel))
            continue;
        answer a = {.backend = backend, .kernel = *kernel};
        adj_status status = prepare_wanted(e, s, a, why);
        if (status == ADJ_ENOMEM || (status == ADJ_OK && s->prep.rank == 0))
            return status;
        if (status != ADJ_OK)
            continue;
        a.rank = s->prep.rank;
        if (best->backend == NONE || a.rank < best->rank)
            *best = a;
        drop_prepared(e, s);
    }
    return ADJ_ENOKERNEL;
}

/* The first backend that takes the group with the lowest rank; notes why the first one of all did
 * not take a single node. */
static adj_status choose_by_rank(adj_exec *e, step *s, const node_group *g)
{
    const adj_op *op = g->node[0]->op;
    char why[ADJ_WHY] = "";
    answer best = {.backend = NONE};
    for (int k = 0, backend; (backend = backend_for(e, op, k)) != NONE; k++) {
        if (open_backend(e, backend) != ADJ_OK)
            return e->status;
        adj_status status = ask(e, s, g, backend, &best, why);
        if (status != ADJ_ENOKERNEL)
            return status;
        if (g->n > 1)
            continue;
        if (why[0] == '\0')
            snprintf(why, sizeof why, "%s has no kernel for %s", e->backend[backend]->name,
                     op->name);
        if (k == 0 && best.backend == NONE && (s->why = region_string(&e->region, why)) == NULL)
            return set_error(e, ADJ_ENOMEM, "adj_exec_new: out of memory");
    }
    if (best.backend != NONE)
        return prepare_wanted(e, s, best, why);
    if (g->n > 1)
        return ADJ_ENOKERNEL;
    return set_error(e, ADJ_ENOKERNEL, "adj_exec_new: no backend computes %s %s (%s)", op->name,
                     adj_dtype_name(g->node[0]->type.dtype), why);
}

adj_status choose(adj_exec *e, step *s, const node_group *g)
{
    if (e->tuner != NULL && e->impl == NULL) {
        adj_status status = tune_group(e, s, g);
        if (status != ADJ_ENOKERNEL)
            return status;
    }
    return choose_by_rank(e, s, g);
}

/* A step for n alone, its operands in order of first use. */
static adj_status describe_alone(adj_exec *e, const adj_node *const *n, step *s)
{
    size_t max = (size_t)(*n)->n_in;
    const adj_node **in = exec_alloc(e, max, sizeof(adj_node *));
    s->prep.in = exec_alloc(e, max, sizeof(adj_layout *));
    s->prep.out = exec_alloc(e, 1, sizeof(adj_layout *));
    int n_in = 0;
    for (int k = 0; k < (*n)->n_in && e->status == ADJ_OK; k++) {
        int known = 0;
        for (int j = 0; j < n_in; j++)
            known |= in[j] == (*n)->in[k];
        if (!known)
            in[n_in++] = (*n)->in[k];
    }
    s->group = (adj_group){1, n, n_in, in, 1, n};
    return e->status;
}

int has_non_reference_kernel(void *of, const adj_node *n)
{
    adj_exec *e = of;
    step s = {.kind = STEP_KERNEL};
    char why[ADJ_WHY];
    if (adj_shape_elems(n->type.shape) == 0 || describe_alone(e, &n, &s) != ADJ_OK)
        return 0;
    for (int k = 0, b; (b = backend_for(e, n->op, k)) != NONE && b != e->fallback; k++) {
        if (open_backend(e, b) != ADJ_OK)
            return 0;
        const adj_kernel *const *kernel = e->backend[b]->kernels;
        for (; *kernel != NULL && e->status == ADJ_OK; kernel++) {
            answer a = {.backend = b, .kernel = *kernel};
            if (prepare_candidate(e, &s, &a, why) != ADJ_OK)
                continue;
            int rank = s.prep.rank;
            drop_prepared(e, &s);
            if (rank < ADJ_RANK_FALLBACK)
                return 1;
        }
    }
    return 0;
}
