/* executor.c - an executor as its user meets it: options in, made or refused, messages, freed. */
#include <math.h>
#include <omp.h>

#include "backends.h"
#include "exec.h"

adj_status set_error(adj_exec *e, adj_status status, const char *format, ...)
{
    if (e->status != ADJ_OK)
        return e->status;
    va_list args;
    va_start(args, format);
    write_message(e->message, format, args);
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
    write_message(e->message, format, args);
    va_end(args);
    return status;
}

const char *adj_exec_message(const adj_exec *e)
{
    return e != NULL ? e->message : "adj_exec_new: out of memory";
}
const char *adj_exec_warning(const adj_exec *e) { return e != NULL ? e->warning : ""; }
adj_exec_info adj_exec_stats(const adj_exec *e) { return e != NULL ? e->info : (adj_exec_info){0}; }

/* ---- making one ---- */

static adj_status check_options(adj_exec *e, const adj_graph *g, const adj_exec_opts *o)
{
    if (g == NULL || o == NULL)
        return set_error(e, ADJ_EARG, "adj_exec_new: %s is NULL", g == NULL ? "graph" : "options");
    if (g->status != ADJ_OK)
        return set_error(e, g->status, "%s", g->message);
    if (o->n_fetch < 0 || (o->n_fetch > 0 && o->fetch == NULL))
        return set_error(e, ADJ_EARG, "adj_exec_new: fetch is wrong (got n_fetch %d)", o->n_fetch);
    for (int i = 0; i < o->n_fetch; i++)
        if (o->fetch[i] == NULL || o->fetch[i]->graph != g)
            return set_error(e, ADJ_EARG, "adj_exec_new: fetch[%d] is %s", i,
                             o->fetch[i] == NULL ? "NULL" : "of another graph");
    if (o->updates != NULL && o->updates->graph != g)
        return set_error(e, ADJ_EARG, "adj_exec_new: updates are of another graph");
    if (o->n_fetch + adj_updates_count(o->updates) == 0)
        return set_error(e, ADJ_EARG, "adj_exec_new: nothing to compute (no fetch, no updates)");
    if (o->threads < 0 || o->threads > 4096)
        return set_error(e, ADJ_EARG, "adj_exec_new: threads is wrong (got %d, expected 0 to 4096)",
                         o->threads);
    if (o->precision != ADJ_PRECISION_AS_BUILT && o->precision != ADJ_PRECISION_BF16 &&
        o->precision != ADJ_PRECISION_F16)
        return set_error(
            e, ADJ_EARG,
            "adj_exec_new: precision is wrong (got %d, expected as built, bf16 or f16)",
            (int)o->precision);
    if (o->loss_scale != 0 && !(o->loss_scale > 0 && isnormal((float)o->loss_scale)))
        return set_error(e, ADJ_EARG,
                         "adj_exec_new: loss_scale is wrong (got %g, expected a positive number, "
                         "or 0 for the default)",
                         o->loss_scale);
    if (o->math != ADJ_MATH_EXACT && o->math != ADJ_MATH_FAST)
        return set_error(e, ADJ_EARG,
                         "adj_exec_new: math is wrong (got %d, expected exact or fast)",
                         (int)o->math);
    return ADJ_OK;
}

adj_status adj_exec_new(adj_graph *g, const adj_exec_opts *opts, adj_exec **out)
{
    double start = seconds_now();
    if (out == NULL)
        return ADJ_EARG;
    adj_allocator a = default_allocator();
    if (g != NULL)
        a = g->region.allocator;
    int is_known =
        g == NULL || g->status != ADJ_EVERSION; /* else laid out in another way, perhaps */
    int own = is_known && opts != NULL && opts->allocator != NULL;
    int whole = !own || allocator_is_whole(opts->allocator);
    if (own && whole)
        a = *opts->allocator;
    adj_exec *e = *out = adj_alloc(&a, sizeof *e);
    if (e == NULL)
        return ADJ_ENOMEM;
    e->region.allocator = a;
    if (!whole)
        return set_error(e, ADJ_EARG, "adj_exec_new: allocator: a function is NULL");
    if (check_options(e, g, opts) != ADJ_OK)
        return e->status;
    adj_exec_opts o = *opts;
    if (read_environment(e, &o) != ADJ_OK)
        return e->status;
    if (omp_in_parallel())
        return set_error(e, ADJ_EARG, "adj_exec_new: called inside a parallel region");
    e->profile = opts->debug.profile;
    e->math = opts->math;
    e->canaries = opts->debug.canaries;
    e->no_fusion = o.debug.no_fusion;
    if (opts->debug.impl != NULL && (e->impl = region_string(&e->region, opts->debug.impl)) == NULL)
        return no_memory(e);
    if (opts->debug.quarantine != NULL &&
        (e->quarantine = region_string(&e->region, opts->debug.quarantine)) == NULL)
        return no_memory(e);
    int callers = omp_get_max_threads();
    e->threads = opts->threads > 0 ? opts->threads : callers;
    omp_set_num_threads(e->threads);
    build_executor(e, g, &o);
    tune_close(e);
    omp_set_num_threads(callers);
    e->info.plan_seconds = seconds_now() - start;
    return e->status;
}

static void drop_steps(adj_exec *e)
{
    for (int i = 0; i < e->n_step; i++) {
        step *s = &e->step[i];
        drop_prepared(e, s);
        if (s->kind == STEP_REORDER && s->prep.state != NULL)
            e->backend[s->backend]->reorder_drop(e->opened[s->backend], s->prep.state);
    }
}

void adj_exec_free(adj_exec *e)
{
    if (e == NULL)
        return;
    adj_allocator a = e->region.allocator;
    drop_steps(e);
    for (int i = 0; i < e->n_backend; i++)
        if (e->is_open[i])
            e->backend[i]->close(e->opened[i]);
    adj_graph_free(e->graph);
    adj_release(&a, e->arena);
    adj_release(&a, e->storage);
    region_free(&e->region);
    adj_release(&a, e);
}
