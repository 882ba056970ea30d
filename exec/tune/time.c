/* time.c - times a prepared step on separate memory.
 *
 * Within a graph, the values of the whole graph pass through the caches between the write of an
 * operand and its use. Timing a step repeatedly on the same memory would favor steps that fit the
 * caches. So before each run as much memory is read as the graph's values occupy, at most the size
 * of a large last-level cache. All candidates share the same buffers; each is bound to them once,
 * as binding is expensive in some backends. */
#include <math.h>
#include <string.h>

#include "tune.h"

enum { RUNS_OF_REORDER = 2 };

/* ---- memory ---- */

/* Writes ordinary numbers in every float type: halves from 0x3f00 to 0x3fff. */
static void fill(exec_area *a)
{
    uint32_t x = 1;
    for (size_t i = 0; i + 1 < a->bytes; i += 2) {
        x = x * 1664525U + 1013904223U;
        uint16_t half = (uint16_t)(0x3f00U | (x >> 24));
        memcpy(a->data + i, &half, sizeof half);
    }
}

/* Grows the areas, zeroed but for the filled floats. Every page is written: the first candidate's
 * first run must not pay for it. */
static adj_status grow(adj_exec *e, const size_t bytes[N_AREA], size_t scratch)
{
    tuner *t = e->planning->tuner;
    const adj_allocator *allocator = &e->region.allocator;
    const size_t wanted[N_TUNE_AREA] = {bytes[0], bytes[1], bytes[2], scratch, t->cold};
    for (int k = 0; k < N_TUNE_AREA && e->status == ADJ_OK; k++) {
        exec_area *a = &t->area[k];
        if (a->data != NULL && wanted[k] <= a->bytes)
            continue;
        adj_release(allocator, a->data);
        *a = (exec_area){0};
        if (check_memory(e, wanted[k]) == ADJ_OK)
            *a = (exec_area){adj_alloc(allocator, wanted[k]), wanted[k]};
        if (a->data == NULL)
            no_memory(e);
        else if (k == FLOAT_AREA)
            fill(a);
        else
            memset(a->data, 0, a->bytes);
    }
    return e->status;
}

/* Points the call's operands and results into areas; NULL: finds the areas' bytes. */
static void point_call(const adj_exec *e, step *s, char *const area[N_AREA], size_t bytes[N_AREA])
{
    const candidate c = {
        .backend = e->backends.list[s->backend], .group = &s->group, .prep = &s->prep};
    bind_areas(&c, 0, area, bytes, (const void **)s->call.in, (void **)s->call.out);
}

adj_status make_areas(adj_exec *e, step *s)
{
    size_t bytes[N_AREA];
    point_call(e, s, NULL, bytes);
    return grow(e, bytes, s->prep.scratch);
}

void bind_step(const adj_exec *e, step *s)
{
    const exec_area *a = e->planning->tuner->area;
    size_t bytes[N_AREA];
    point_call(e, s, (char *const[N_AREA]){a[0].data, a[1].data, a[2].data}, bytes);
    bind_call(e, s, a[SCRATCH_AREA].data);
}

/* ---- time ---- */

static void cool(tuner *t)
{
    t->seen += cool_caches(t->area[COLD_AREA].data, t->area[COLD_AREA].bytes);
}

double tune_run(adj_exec *e, step *s)
{
    progress_backends(e); /* other processes wait while one times kernels for all */
    cool(e->planning->tuner);
    const double start = seconds_now();
    return run_kernel(e, s, &s->call) == ADJ_OK ? seconds_now() - start : HUGE_VAL;
}

/* ---- reorders ---- */

static adj_status time_runs(adj_exec *e, reorder_cost *c, void *state, size_t scratch)
{
    tuner *t = e->planning->tuner;
    const adj_backend *b = e->backends.list[c->backend];
    const size_t bytes[N_AREA] = {[FLOAT_AREA] = layout_bytes_of(b, c->from, c->type),
                                  [RESULT_AREA] = layout_bytes_of(b, c->to, c->type)};
    grow(e, bytes, scratch);
    for (int i = 0; i < RUNS_OF_REORDER && e->status == ADJ_OK; i++) {
        cool(t);
        double start = seconds_now();
        const adj_status status = b->reorder_run(
            state, t->area[FLOAT_AREA].data, t->area[RESULT_AREA].data, t->area[SCRATCH_AREA].data);
        double took = seconds_now() - start;
        if (status == ADJ_OK && took < c->seconds)
            c->seconds = took;
    }
    return e->status;
}

/* Finds the reorder's seconds; HUGE_VAL: there is no such reorder. */
static adj_status find_cost(adj_exec *e, reorder_cost *c)
{
    const adj_backend *b = e->backends.list[c->backend];
    void *state = NULL;
    size_t scratch = 0;
    adj_status status = b->reorder_prepare(e->backends.opened[c->backend], c->from, c->to, c->type,
                                           &state, &scratch);
    if (status == ADJ_ENOMEM)
        return no_memory(e);
    if (status != ADJ_OK)
        return ADJ_OK;
    if (c->is_free)
        c->seconds = 0;
    else if (!budget_is_open(e->planning->tuner))
        c->seconds = nominal_copy(c->type); /* about */
    else
        time_runs(e, c, state, scratch);
    b->reorder_drop(e->backends.opened[c->backend], state);
    return e->status;
}

adj_status tune_reorder(adj_exec *e, const reorder_cost *wanted, double *seconds)
{
    tuner *t = e->planning->tuner;
    reorder_cost *c = t->cost;
    while (c != NULL &&
           (c->from != wanted->from || c->to != wanted->to || c->backend != wanted->backend ||
            c->is_free != wanted->is_free || !is_same_type(c->type, wanted->type)))
        c = c->next;
    if (c == NULL) {
        if ((c = region_alloc(t->region, 1, sizeof *c)) == NULL)
            return no_memory(e);
        *c = *wanted;
        c->seconds = HUGE_VAL;
        if (find_cost(e, c) != ADJ_OK)
            return e->status;
        c->next = t->cost;
        t->cost = c;
    }
    *seconds += c->seconds;
    return ADJ_OK;
}
