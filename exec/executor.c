/* executor.c - an executor as its user meets it: options in, made or refused, messages, freed. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "backends.h"
#include "exec.h"
#include "exec/slices/slices.h"
#include "yield.h"

adj_status set_error(adj_exec *e, adj_status status, const char *format, ...)
{
    if (e->status != ADJ_OK)
        return e->status;
    va_list args;
    va_start(args, format);
    vsnprintf(e->message, sizeof e->message, format, args);
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
    vsnprintf(e->message, sizeof e->message, format, args);
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
    if (o->yield != ADJ_YIELD_NEVER && o->yield != ADJ_YIELD_SAME_BITS &&
        o->yield != ADJ_YIELD_ALWAYS)
        return set_error(e, ADJ_EARG,
                         "adj_exec_new: yield is wrong (got %d, expected never, same bits or "
                         "always)",
                         (int)o->yield);
    return ADJ_OK;
}

/* Of tuning that ADJOINT_PLAN asks for: there may be thousands of small plans. */
static const double plan_tune_seconds = 0.05;

static adj_status read_word(adj_exec *e, const char *word, size_t length, adj_exec_opts *o)
{
    if (length == 7 && memcmp(word, "unfused", length) == 0) {
        o->debug.no_fusion = 1;
        return ADJ_OK;
    }
    if (length == 6 && memcmp(word, "slices", length) == 0) {
        o->slices = 1;
        return ADJ_OK;
    }
    if (length == 4 && memcmp(word, "tune", length) == 0) {
        if (!o->tune)
            o->tune_seconds = plan_tune_seconds;
        o->tune = 1;
        return ADJ_OK;
    }
    return set_error(e, ADJ_EARG,
                     "adj_exec_new: ADJOINT_PLAN: unknown word (got \"%.*s\", expected unfused, "
                     "tune or slices)",
                     (int)(length < 64 ? length : 64), word);
}

/* What ADJOINT_PLAN adds, so that programs that set no options, tests above all, can be run with
 * other plans. */
static adj_status read_environment(adj_exec *e, adj_exec_opts *o)
{
    const char *word = getenv("ADJOINT_PLAN");
    while (word != NULL && word[0] != '\0') {
        size_t length = strcspn(word, ",");
        if (read_word(e, word, length, o) != ADJ_OK)
            return e->status;
        word += length + (word[length] == ',');
    }
    return ADJ_OK;
}

/* A string of the options in *to. */
static adj_status keep_text(adj_exec *e, const char *text, const char **to)
{
    if (text != NULL && (*to = region_string(&e->region, text)) == NULL)
        return no_memory(e);
    return ADJ_OK;
}

adj_status plan_executor(adj_exec *e, const adj_graph *g, const adj_exec_opts *o)
{
    e->profile = o->debug.profile;
    e->math = o->math;
    e->canaries = o->debug.canaries;
    e->no_fusion = o->debug.no_fusion;
    e->no_sharing = o->debug.no_sharing;
    e->checksums = o->debug.checksums;
    e->before_kernel = o->debug.before_kernel;
    e->kernel_user = o->debug.user;
    if (keep_text(e, o->debug.impl, &e->impl) != ADJ_OK ||
        keep_text(e, o->debug.quarantine, &e->quarantine) != ADJ_OK)
        return e->status;
    int callers = omp_get_max_threads();
    e->threads = o->threads > 0 ? o->threads : adj_default_threads();
    if (e->tuned_threads == 0)
        e->tuned_threads = e->threads;
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
    if (check_options(e, g, opts) != ADJ_OK)
        return e->status;
    adj_exec_opts o = *opts;
    if (read_environment(e, &o) != ADJ_OK)
        return e->status;
    if (omp_in_parallel())
        return set_error(e, ADJ_EARG, "adj_exec_new: called inside a parallel region");
    plan_executor(e, g, &o);
    if (e->status == ADJ_OK && o.yield != ADJ_YIELD_NEVER)
        add_second_plan(e, g, &o);
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

/* All but the struct itself, in which backends know the allocator. */
static void drop_plan(adj_exec *e)
{
    drop_steps(e);
    for (int i = 0; i < e->n_slices; i++)
        drop_slices(e->slices[i]);
    for (int i = 0; i < e->n_backend; i++)
        if (e->state[i] == BACKEND_OPEN)
            e->backend[i]->close(e->opened[i]);
    adj_graph_free(e->graph);
    if (e->arena != e->lent && e->slice == NULL)
        adj_release(&e->region.allocator, e->arena);
    if (e->slice == NULL)
        adj_release(&e->region.allocator, e->storage);
    region_free(&e->region);
}

void adj_exec_free(adj_exec *e)
{
    if (e == NULL)
        return;
    adj_allocator a = e->region.allocator;
    adj_exec *second = second_plan(e);
    drop_plan(e);
    if (second != NULL)
        drop_plan(second);
    adj_release(&a, second);
    adj_release(&a, e);
}
