/* executor.c - the public functions of an executor: creation from options, messages, figures,
 * destruction. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/limits.h"
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

adj_status adj_exec_fail(adj_exec *e, adj_status status, const char *format, ...)
{
    if (e == NULL || e->status != ADJ_OK)
        return e != NULL ? e->status : status;
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
adj_exec_info adj_exec_stats(const adj_exec *e)
{
    return e != NULL && e->status == ADJ_OK ? e->info : (adj_exec_info){0};
}
exec_details adj_exec_details(const adj_exec *e)
{
    return e != NULL ? e->details : (exec_details){0};
}

/* ---- options ---- */

static adj_status check_options(adj_exec *e, const adj_graph *g, const adj_exec_opts *o)
{
    if (g == NULL || o == NULL)
        return set_error(e, ADJ_EARG, "adj_exec_new: %s is NULL", g == NULL ? "graph" : "options");
    if (g->status != ADJ_OK)
        return set_error(e, g->status, "%s", g->message);
    if (o->n_fetch < 0 || (o->n_fetch > 0 && o->fetch == NULL))
        return set_error(e, ADJ_EARG,
                         "adj_exec_new: n_fetch is negative, or fetch is NULL (got n_fetch %d)",
                         o->n_fetch);
    for (int i = 0; i < o->n_fetch; i++)
        if (o->fetch[i] == NULL || o->fetch[i]->graph != g)
            return set_error(e, ADJ_EARG, "adj_exec_new: fetch[%d] is %s", i,
                             o->fetch[i] == NULL ? "NULL" : "of another graph");
    if (o->updates != NULL && o->updates->graph != g)
        return set_error(e, ADJ_EARG, "adj_exec_new: updates are of another graph");
    if (o->n_fetch + adj_updates_count(o->updates) == 0)
        return set_error(e, ADJ_EARG, "adj_exec_new: nothing to compute (no fetch, no updates)");
    if (o->threads < 0 || o->threads > 4096)
        return set_error(e, ADJ_EARG,
                         "adj_exec_new: threads is out of range (got %d, expected 0 to 4096)",
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

/* Seconds of tuning that ADJOINT_PLAN asks for: there may be thousands of small plans. */
static const double plan_tune_seconds = 0.05;

static adj_status read_environment(adj_exec *e)
{
    adj_exec_opts *o = &e->opts;
    const char *word = getenv("ADJOINT_PLAN");
    for (size_t n; word != NULL && word[0] != '\0'; word += n + (word[n] == ',')) {
        n = strcspn(word, ",");
        const int is_tune = n == 4 && memcmp(word, "tune", n) == 0;
        if (n == 7 && memcmp(word, "unfused", n) == 0)
            e->debug.no_fusion = 1;
        else if (!is_tune)
            return set_error(e, ADJ_EARG,
                             "adj_exec_new: ADJOINT_PLAN: unknown word (got \"%.*s\", expected "
                             "unfused or tune)",
                             (int)(n < 64 ? n : 64), word);
        if (is_tune && !o->tune)
            o->tune_seconds = plan_tune_seconds;
        o->tune |= is_tune;
    }
    return ADJ_OK;
}

/* Copies the options and adds those of ADJOINT_PLAN, so that programs without options, such as
 * tests, can run with other plans. The first invalid option is the executor's error. */
static adj_status read_options(adj_exec *e, const adj_graph *g, const adj_exec_opts *opts)
{
    if (check_options(e, g, opts) != ADJ_OK)
        return e->status;
    e->opts = *opts;
    if (opts->debug != NULL)
        e->debug = *opts->debug;
    if (e->debug.internal != NULL)
        e->internal = *e->debug.internal;
    e->opts.debug = &e->debug;
    return read_environment(e);
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
    if (read_options(e, g, opts) != ADJ_OK)
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
        if (e->backends.is_open[i])
            e->backends.list[i]->close(e->backends.opened[i]);
    adj_graph_free(e->plan.graph);
    adj_release(&a, e->memory.arena.data);
    adj_release(&a, e->memory.storage.data);
    region_free(&e->region);
    adj_release(&a, e); /* last: backends know the allocator in it */
}
