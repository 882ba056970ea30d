/* run.c - one run: the steps in order, then the updates. Nothing is allocated. */
#include <omp.h>
#include <string.h>

#include "exec.h"
#include "sharing.h"

adj_status run_kernel(const adj_exec *e, const step *s, adj_call *call)
{
    if (e->before_kernel != NULL)
        e->before_kernel(e->kernel_user, s->group.node[0], e->backend[s->backend]->name,
                         s->prep.impl);
    return s->kernel->run(call);
}

adj_status run_step(adj_exec *e, step *s)
{
    if (s->kind == STEP_KERNEL)
        return run_kernel(e, s, &s->call);
    if (s->kind == STEP_COPY) {
        memcpy(s->call.out[0], s->call.in[0], slot_of(e, s->out[0])->bytes);
        return ADJ_OK;
    }
    return e->backend[s->backend]->reorder_run(s->prep.state, s->call.in[0], s->call.out[0],
                                               s->call.scratch);
}

static adj_status step_failed(adj_exec *e, const step *s, adj_status status)
{
    const adj_node *n = e->buffer[s->out[0]].value;
    const char *reason = s->call.message[0] != '\0' ? s->call.message : adj_status_name(status);
    return call_error(e, status, "adj_run: %s \"%s\" on %s: %s", n->op->name, adj_node_name(n),
                      s->kind == STEP_COPY ? "copy" : e->backend[s->backend]->name, reason);
}

void progress_backends(const adj_exec *e)
{
    for (int i = 0; i < e->n_backend; i++)
        if (e->state[i] == BACKEND_OPEN && e->backend[i]->progress != NULL)
            e->backend[i]->progress(e->opened[i]);
}

static adj_status run_range(adj_exec *e, int first, int end)
{
    for (int i = first; i < end; i++) {
        step *s = &e->step[i];
        s->call.message[0] = '\0';
        if (e->canaries)
            draw_canaries(e, i);
        if (s->sums != NULL)
            sum_operands(e, s);
        double start = e->profile ? seconds_now() : 0;
        adj_status status = run_step(e, s);
        if (status != ADJ_OK)
            return step_failed(e, s, status);
        if (e->profile)
            s->seconds = seconds_now() - start;
        progress_backends(e);
        if (s->sums != NULL)
            sum_results(e, s);
        if (e->canaries && check_canaries(e, i) != ADJ_OK)
            return ADJ_EBACKEND;
    }
    return ADJ_OK;
}

adj_status run_invariants(adj_exec *e)
{
    const uint64_t version = invariant_version(e);
    if (e->invariant_seen == version) {
        for (int i = 0; i < e->n_invariant; i++)
            e->step[i].seconds = 0;
        return ADJ_OK;
    }
    const adj_status status = run_range(e, 0, e->n_invariant);
    if (status == ADJ_OK)
        e->invariant_seen = version;
    return status;
}

adj_status run_steps(adj_exec *e)
{
    adj_status status = run_invariants(e);
    if (status == ADJ_OK)
        status = run_range(e, e->n_invariant, e->n_step);
    if (status != ADJ_OK)
        return status;
    if (e->end_sums != NULL)
        sum_end(e);
    for (int i = 0; i < e->n_update; i++) {
        const update *u = &e->update[i];
        leaf *l = &e->leaf[u->leaf];
        const slot *next = slot_of(e, u->next);
        if (!u->in_place && next->data != leaf_data(e, l))
            memcpy(leaf_data(e, l), next->data, slot_of(e, l->buffer)->bytes);
        l->version++;
    }
    return ADJ_OK;
}

static adj_status check_ready(adj_exec *e)
{
    if (e == NULL)
        return ADJ_EARG;
    if (e->status != ADJ_OK)
        return e->status;
    if (omp_in_parallel())
        return call_error(e, ADJ_EARG, "adj_run: called inside a parallel region");
    for (int i = 0; i < e->n_leaf; i++)
        if (!is_set(e, &e->leaf[i]))
            return call_error(e, ADJ_EARG, "adj_run: input \"%s\" has not been set",
                              adj_node_name(e->leaf[i].node));
    return ADJ_OK;
}

/* Runs the steps; kernels run on as many threads as omp_get_max_threads() says. */
static adj_status run_once(adj_exec *e)
{
    e->overrun = 0;
    e->run_status = run_steps(e);
    e->last_run = e->run_status == ADJ_OK ? RUN_COMPLETED : RUN_FAILED;
    return e->run_status;
}

adj_status adj_run_each(int n, adj_exec *const list[])
{
    if (n < 0 || (n > 0 && list == NULL))
        return ADJ_EARG;
    for (int i = 0; i < n; i++) {
        adj_status status = check_ready(list[i]);
        if (status == ADJ_OK && list[i]->threads != 1)
            status = call_error(list[i], ADJ_EARG,
                                "adj_run_each: threads of executor %d (got %d, expected 1)", i,
                                list[i]->threads);
        if (status != ADJ_OK)
            return status;
    }
#pragma omp parallel for num_threads(n > 0 ? n : 1) schedule(static, 1)
    for (int i = 0; i < n; i++) {
        omp_set_num_threads(1); /* of the regions inside this one */
        (void)run_once(list[i]);
    }
    adj_status status = ADJ_OK;
    for (int i = 0; i < n && status == ADJ_OK; i++)
        status = list[i]->run_status;
    return status;
}

adj_status adj_run(adj_exec *e)
{
    adj_status status = check_ready(e);
    if (status != ADJ_OK)
        return status;
    int callers = omp_get_max_threads();
    omp_set_num_threads(e->threads);
    status = run_once(e);
    omp_set_num_threads(callers);
    return status;
}
