/* executor.c - an executor as its user meets it: options in, made or refused, messages, freed. */
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "base/c_locale.h"
#include "exec.h"

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

void *exec_alloc(adj_exec *e, size_t count, size_t size)
{
    void *p = region_alloc(&e->region, count, size);
    if (p == NULL)
        no_memory(e);
    return p;
}

adj_status call_error(adj_exec *e, adj_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    c_vsnprintf(e->message, sizeof e->message, format, args);
    va_end(args);
    return status;
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

/* ---- making one ---- */

/* A string of the options in *to. */
static adj_status keep_text(adj_exec *e, const char *text, const char **to)
{
    if (text != NULL && (*to = region_string(&e->region, text)) == NULL)
        return no_memory(e);
    return ADJ_OK;
}

static adj_status plan_executor(adj_exec *e, const adj_graph *g, const adj_exec_opts *o)
{
    e->profile = o->debug.profile;
    e->math = o->math;
    e->canaries = o->debug.canaries;
    e->no_fusion = o->debug.no_fusion;
    e->no_sharing = o->debug.no_sharing;
    e->checksums = o->debug.checksums;
    e->same_bits = o->same_bits;
    e->before_kernel = o->debug.before_kernel;
    e->kernel_user = o->debug.user;
    if (keep_text(e, o->debug.impl, &e->impl) != ADJ_OK ||
        keep_text(e, o->debug.quarantine, &e->quarantine) != ADJ_OK)
        return e->status;
    int callers = omp_get_max_threads();
    e->threads = o->threads > 0 ? o->threads : adj_default_threads();
    omp_set_num_threads(e->threads);
    build_executor(e, g, o);
    tune_close(e);
    omp_set_num_threads(callers);
    e->info.threads = e->threads;
    return e->status;
}

adj_status adj_exec_new(adj_graph *g, const adj_exec_opts *opts, adj_exec **out)
{
    double start = seconds_now();
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
    adj_exec_opts o;
    if (read_exec_options(e, g, opts, &o) != ADJ_OK)
        return e->status;
    if (omp_in_parallel())
        return set_error(e, ADJ_EARG, "adj_exec_new: called inside a parallel region");
    plan_executor(e, g, &o);
    e->info.plan_seconds = seconds_now() - start;
    return e->status;
}

void adj_exec_free(adj_exec *e)
{
    if (e == NULL)
        return;
    adj_allocator a = e->region.allocator;
    for (int i = 0; i < e->n_step; i++) {
        step *s = &e->step[i];
        drop_prepared(e, s);
        if (s->kind == STEP_REORDER && s->prep.state != NULL)
            e->backend[s->backend]->reorder_drop(e->opened[s->backend], s->prep.state);
    }
    for (int i = 0; i < e->n_backend; i++)
        if (e->state[i] == BACKEND_OPEN)
            e->backend[i]->close(e->opened[i]);
    adj_graph_free(e->graph);
    adj_release(&a, e->arena);
    adj_release(&a, e->storage);
    region_free(&e->region);
    adj_release(&a, e); /* last: backends know the allocator in it */
}
