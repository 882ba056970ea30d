/* run.c - executes the steps in order, then the updates. Nothing is allocated. */
#include <omp.h>
#include <string.h>

#include "exec.h"
#include "invariant.h"
#include "run.h"

adj_status run_kernel(const adj_exec *e, const step *s, const adj_call *call)
{
    if (e->internal.before_kernel != NULL)
        e->internal.before_kernel(e->internal.user, s->group.node[0],
                                  e->backends.list[s->backend]->name, s->prep.impl,
                                  s->prep.seconds);
    return s->kernel->run(call);
}

adj_status run_step(adj_exec *e, const step *s)
{
    e->run.message[0] = '\0';
    if (s->kind == STEP_KERNEL)
        return run_kernel(e, s, &s->call);
    if (s->kind == STEP_COPY) {
        memcpy(s->call.out[0], s->call.in[0], slot_of(&e->plan, s->out[0])->bytes);
        return ADJ_OK;
    }
    return e->backends.list[s->backend]->reorder_run(s->prep.state, s->call.in[0], s->call.out[0],
                                                     s->call.scratch);
}

static adj_status step_failed(adj_exec *e, const step *s, adj_status status)
{
    const adj_node *n = e->plan.buffer[s->out[0]].value;
    const char *reason = e->run.message[0] != '\0' ? e->run.message : adj_status_name(status);
    return adj_exec_fail(e, status, "adj_run: %s \"%s\" on %s: %s", n->op->name, adj_node_name(n),
                         s->kind == STEP_COPY ? "copy" : e->backends.list[s->backend]->name,
                         reason);
}

void progress_backends(const adj_exec *e)
{
    for (int i = 0; i < e->backends.n; i++)
        if (e->backends.is_open[i] && e->backends.list[i]->progress != NULL)
            e->backends.list[i]->progress(e->backends.opened[i]);
}

static adj_status run_range(adj_exec *e, int first, int end)
{
    const adj_exec_debug *debug = &e->debug;
    for (int i = first; i < end; i++) {
        const step *s = &e->plan.step[i];
        if (debug->canaries)
            draw_canaries(&e->plan, i);
        const double start = e->internal.profile ? seconds_now() : 0;
        adj_status status = run_step(e, s);
        if (status != ADJ_OK)
            return step_failed(e, s, status);
        if (e->internal.profile)
            e->run.seconds[i] = seconds_now() - start;
        progress_backends(e);
        if (debug->canaries && check_canaries(e, i) != ADJ_OK)
            return ADJ_EBACKEND;
    }
    return ADJ_OK;
}

/* Runs the invariant steps, unless they have run since a parameter was set. */
static adj_status run_invariants(adj_exec *e)
{
    const uint64_t version = invariant_version(e);
    if (e->run.invariant_seen == version) {
        for (int i = 0; i < e->plan.n_invariant; i++)
            e->run.seconds[i] = 0;
        return ADJ_OK;
    }
    const adj_status status = run_range(e, 0, e->plan.n_invariant);
    if (status == ADJ_OK)
        e->run.invariant_seen = version;
    return status;
}

/* Runs the steps, invariant ones only if a leaf of theirs was set, then the updates. */
static adj_status run_steps(adj_exec *e)
{
    adj_status status = run_invariants(e);
    if (status == ADJ_OK)
        status = run_range(e, e->plan.n_invariant, e->plan.n_step);
    if (status != ADJ_OK)
        return status;
    for (int i = 0; i < e->plan.n_update; i++) {
        const update *u = &e->plan.update[i];
        const leaf *l = &e->plan.leaf[u->leaf];
        const slot *next = slot_of(&e->plan, u->next);
        if (!u->in_place && next->data != leaf_data(&e->plan, l))
            memcpy(leaf_data(&e->plan, l), next->data, slot_of(&e->plan, l->buffer)->bytes);
        ++*leaf_version(e, l);
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
        return adj_exec_fail(e, ADJ_EARG, "adj_run: called inside a parallel region");
    for (int i = 0; i < e->plan.n_leaf; i++)
        if (!is_set(e, &e->plan.leaf[i]))
            return adj_exec_fail(e, ADJ_EARG, "adj_run: input \"%s\" has not been set",
                                 adj_node_name(e->plan.leaf[i].node));
    return ADJ_OK;
}

/* Runs the steps; kernels run on as many threads as omp_get_max_threads() says. */
static adj_status run_once(adj_exec *e)
{
    e->run.overrun = 0;
    e->run.status = run_steps(e);
    e->run.last = e->run.status == ADJ_OK ? RUN_COMPLETED : RUN_FAILED;
    return e->run.status;
}

adj_status adj_run_each(int n, adj_exec *const list[])
{
    if (n < 0 || (n > 0 && list == NULL))
        return ADJ_EARG;
    for (int i = 0; i < n; i++) {
        adj_status status = check_ready(list[i]);
        if (status == ADJ_OK && list[i]->opts.threads != 1)
            status =
                adj_exec_fail(list[i], ADJ_EARG,
                              "adj_run_each: executor %d has too many threads (got %d, expected 1)",
                              i, list[i]->opts.threads);
        for (int k = 0; status == ADJ_OK && k < i; k++)
            if (list[k] == list[i])
                status = adj_exec_fail(list[i], ADJ_EARG,
                                       "adj_run_each: executor %d is also executor %d (expected "
                                       "different ones)",
                                       i, k);
        if (status != ADJ_OK)
            return status;
    }
#pragma omp parallel for num_threads(n > 0 ? n : 1) schedule(static, 1)
    for (int i = 0; i < n; i++) {
        omp_set_num_threads(1); /* for the regions inside this one */
        (void)run_once(list[i]);
    }
    adj_status status = ADJ_OK;
    for (int i = 0; i < n && status == ADJ_OK; i++)
        status = list[i]->run.status;
    return status;
}

adj_status adj_run(adj_exec *e)
{
    adj_status status = check_ready(e);
    if (status != ADJ_OK)
        return status;
    int callers = omp_get_max_threads();
    omp_set_num_threads(e->opts.threads);
    status = run_once(e);
    omp_set_num_threads(callers);
    return status;
}
