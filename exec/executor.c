/* executor.c - the public functions of an executor: creation from options, messages, figures,
 * destruction. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/threads.h"
#include "exec.h"
#include "internal.h"
#include "planning.h"
#include "select_kernel.h"

adj_status set_error(adj_exec *e, adj_status status, const char *format, ...)
{
    if (e->status != ADJ_OK)
        return e->status;
    va_list args;
    va_start(args, format);
    c_vsnprintf(e->message, sizeof e->message, format, args);
    va_end(args);
    e->status = status;
    return status;
}

adj_status no_memory(adj_exec *e)
{
    return set_error(e, ADJ_ENOMEM, "adj_exec_new: out of memory");
}

static void *alloc_in(adj_exec *e, region *r, size_t count, size_t size)
{
    void *p = region_alloc(r, count, size);
    if (p == NULL)
        no_memory(e);
    return p;
}

void *exec_alloc(adj_exec *e, size_t count, size_t size)
{
    return alloc_in(e, &e->region, count, size);
}

void *planning_alloc(adj_exec *e, size_t count, size_t size)
{
    return alloc_in(e, &e->planning->region, count, size);
}

adj_status call_error(adj_exec *e, adj_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    c_vsnprintf(e->message, sizeof e->message, format, args);
    va_end(args);
    return status;
}

adj_graph *adj_exec_graph(const adj_exec *e)
{
    return e != NULL ? (adj_graph *)e->plan.user : NULL;
}

const char *adj_exec_message(const adj_exec *e)
{
    return e != NULL ? e->message : "adj_exec_new: out of memory";
}
const char *adj_exec_warning(const adj_exec *e) { return e != NULL ? e->warning : ""; }

const char *adj_exec_selection(const adj_exec *e)
{
    return e != NULL && e->selection != NULL ? e->selection : "";
}
adj_exec_info adj_exec_stats(const adj_exec *e) { return e != NULL ? e->info : (adj_exec_info){0}; }
exec_details adj_exec_details(const adj_exec *e)
{
    return e != NULL ? e->details : (exec_details){0};
}

/* ---- making one ---- */

static adj_status plan_executor(adj_exec *e, const adj_graph *g)
{
    planning p = {.region.allocator = e->region.allocator};
    int callers = omp_get_max_threads();
    if (e->opts.threads == 0)
        e->opts.threads = adj_default_threads();
    omp_set_num_threads(e->opts.threads);
    e->planning = &p;
    build_executor(e, g);
    tune_close(e);
    e->planning = NULL;
    region_free(&p.region);
    omp_set_num_threads(callers);
    e->info.threads = e->opts.threads;
    return e->status;
}

adj_status adj_exec_new(adj_graph *g, const adj_exec_opts *opts, adj_exec **out)
{
    if (out == NULL)
        return ADJ_EARG;
    adj_allocator a = default_allocator();
    if (g != NULL)
        a = g->region.allocator;
    int may_read = opts != NULL && (g == NULL || g->status != ADJ_EVERSION); /* its layout */
    int is_whole = take_allocator(&a, may_read ? opts->allocator : NULL);
    adj_exec *e = *out = adj_alloc(&a, sizeof *e);
    if (e == NULL)
        return ADJ_ENOMEM;
    e->region.allocator = a;
    if (!is_whole)
        return set_error(e, ADJ_EARG, "adj_exec_new: allocator: a function is NULL");
    if (read_exec_options(e, g, opts) != ADJ_OK)
        return e->status;
    if (omp_in_parallel())
        return set_error(e, ADJ_EARG, "adj_exec_new: called inside a parallel region");
    plan_executor(e, g);
    return e->status;
}

void adj_exec_free(adj_exec *e)
{
    if (e == NULL)
        return;
    adj_allocator a = e->region.allocator;
    for (int i = 0; i < e->plan.n_step; i++)
        drop_step(e, &e->plan.step[i]);
    for (int i = 0; i < e->backends.n; i++)
        if (e->backends.state[i] == BACKEND_OPEN)
            e->backends.list[i]->close(e->backends.opened[i]);
    adj_graph_free(e->plan.graph);
    adj_release(&a, e->memory.arena.data);
    adj_release(&a, e->memory.storage.data);
    region_free(&e->region);
    adj_release(&a, e); /* last: backends know the allocator in it */
}
