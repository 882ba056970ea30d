/* run.c - runs a group over the batch: each thread has slices that follow each other, and sums of
 * its own, which are added up in the threads' order. Without sums it takes others' slices when its
 * own are done. */
#include <omp.h>
#include <string.h>

#include "exec/machine/job_shares.h"
#include "run.h"

static size_t stride_of(const slices *s, adj_type whole)
{
    return adj_type_bytes(whole) / (size_t)s->n_slice;
}

static void point(const places *p, char *data)
{
    for (int i = 0; i < p->n; i++)
        *p->at[i] = data;
}

static char *sums_of(const slices *s, const adj_call *c, int thread)
{
    return (char *)c->scratch + (size_t)thread * s->thread_bytes;
}

/* Where the thread's plan has what follows from whole operands. */
static char *kept_of(const slices *s, const adj_call *c, int thread)
{
    char *first =
        s->part_of != NULL ? s->part_of->storage + s->kept_at : sums_of(s, c, s->n_thread);
    return first + (size_t)(thread % s->n_kept) * s->kept_bytes;
}

static char *parts_of(const slices *s, const adj_call *c, int out)
{
    const size_t kept = s->part_of == NULL ? (size_t)s->n_kept * s->kept_bytes : 0;
    return sums_of(s, c, s->n_thread) + kept + s->out_at[out];
}

/* Where a value that is no images comes from in a slice's plan. */
static const void *result_of(const slice_plan *p, int out)
{
    return slot_of(p->plan, p->plan->fetch[out])->data;
}

static void add_f32(float *sum, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] += x[i];
}

static void add_f64(double *sum, const double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] += x[i];
}

/* Of f32 or f64: find.c takes no other sums. */
static void add(adj_dtype dtype, void *sum, const void *x, int64_t n)
{
    if (dtype == ADJ_F64)
        add_f64(sum, x, n);
    else if (dtype == ADJ_F32)
        add_f32(sum, x, n);
}

/* What the slice gives beside images. */
static void keep_results(const slices *s, const adj_call *c, int thread, int64_t slice,
                         int is_first)
{
    for (int i = 0; i < s->group.n_out; i++) {
        const adj_node *n = s->group.out[i];
        const size_t bytes = adj_type_bytes(n->type);
        const void *x = result_of(&s->thread[thread], i);
        if (s->out_is_batch[i])
            continue;
        if (n->op->merge != NULL)
            memcpy(parts_of(s, c, i) + (size_t)slice * bytes, x, bytes);
        else if (is_first)
            memcpy(sums_of(s, c, thread) + s->out_at[i], x, bytes);
        else
            add(n->type.dtype, sums_of(s, c, thread) + s->out_at[i], x,
                adj_shape_elems(n->type.shape));
    }
}

static adj_status run_slice(const slices *s, const adj_call *c, int thread, int64_t slice)
{
    const slice_plan *p = &s->thread[thread];
    const adj_group *g = &s->group;
    for (int i = 0; i < g->n_in; i++)
        if (s->in_is_batch[i])
            point(&p->in[i], (char *)c->in[i] + (size_t)slice * stride_of(s, g->in[i]->type));
    for (int i = 0; i < g->n_out; i++)
        if (s->out_is_batch[i])
            point(&p->out[i], (char *)c->out[i] + (size_t)slice * stride_of(s, g->out[i]->type));
    const adj_status status = run_steps(p->plan);
    for (int i = 0; i < p->plan->n_step && status == ADJ_OK && p->plan->profile; i++)
        p->seconds[i] += p->plan->step[i].seconds;
    return status;
}

/* What follows from whole operands alone is computed before the first slice, where these may have
 * changed since the last run, by the thread that keeps it. */
static adj_status begin(const slices *s, const adj_call *c, int thread)
{
    slice_plan *p = &s->thread[thread];
    const uint64_t version = s->part_of != NULL ? invariant_version(s->part_of) : 0;
    place_slice(p->plan, sums_of(s, c, thread) + s->sum_bytes, kept_of(s, c, thread));
    if (s->part_of == NULL || p->version != version)
        p->plan->invariant_seen = 0;
    p->version = version;
    p->plan->overrun = 0;
    for (int i = 0; i < s->group.n_in; i++)
        if (!s->in_is_batch[i])
            point(&p->in[i], (char *)c->in[i]);
    if (thread >= s->n_kept) {
        p->plan->invariant_seen = invariant_version(p->plan);
        return ADJ_OK;
    }
    if (p->plan->canaries)
        draw_canaries(p->plan, NONE);
    const adj_status status = run_invariants(p->plan);
    for (int i = 0; i < p->plan->n_invariant && p->plan->profile; i++)
        p->seconds[i] += p->plan->step[i].seconds;
    return status;
}

/* Those slices; is_first: their sums begin with the first. */
static adj_status run_slices(const slices *s, const adj_call *c, int t, job_range r, int is_first)
{
    adj_status status = ADJ_OK;
    for (int64_t i = r.first; i < r.end && status == ADJ_OK; i++) {
        status = run_slice(s, c, t, i);
        if (status == ADJ_OK)
            keep_results(s, c, t, i, is_first && i == r.first);
    }
    return status;
}

/* Thread t of n. Sums have one order only where it always has the same slices; and before_kernel is
 * told of the first thread's. */
static adj_status run_thread(const slices *s, const adj_call *c, int t, int n, job_shares *shares)
{
    adj_status status = ADJ_OK;
    job_range r = {s->n_slice * t / n, s->n_slice * (t + 1) / n};
    if (s->sum_bytes > 0 || s->thread[0].plan->before_kernel != NULL)
        return run_slices(s, c, t, r, 1);
    while (status == ADJ_OK && take_jobs(shares, t, &r))
        status = run_slices(s, c, t, r, 0);
    return status;
}

/* Elements first to end - 1 of what the n threads have added up. */
static void add_up(const slices *s, const adj_call *c, int out, int n, int64_t first, int64_t end)
{
    const adj_dtype dtype = s->group.out[out]->type.dtype;
    const size_t at = (size_t)first * adj_dtype_size(dtype);
    char *result = (char *)c->out[out] + at;
    memcpy(result, sums_of(s, c, 0) + s->out_at[out] + at,
           (size_t)(end - first) * adj_dtype_size(dtype));
    for (int t = 1; t < n; t++)
        add(dtype, result, sums_of(s, c, t) + s->out_at[out] + at, end - first);
}

static void finish(const slices *s, const adj_call *c, int t, int n)
{
    for (int i = 0; i < s->group.n_out; i++) {
        const adj_node *value = s->group.out[i];
        const int64_t elems = adj_shape_elems(value->type.shape);
        if (s->out_is_batch[i])
            continue;
        if (value->op->merge == NULL)
            add_up(s, c, i, n, elems * t / n, elems * (t + 1) / n);
        else if (t == 0)
            value->op->merge(value, s->n_slice, parts_of(s, c, i), c->out[i]);
    }
}

/* The first of n threads whose slices failed, or NONE. */
static int failed_thread(const slices *s, int n)
{
    for (int t = 0; t < n; t++)
        if (s->thread[t].status != ADJ_OK)
            return t;
    return NONE;
}

/* By a team of threads; the number of the first that failed, or NONE. */
static int run_team(const slices *s, const adj_call *c)
{
    int failed = NONE;
    job_shares shares;
    share_jobs(&shares, s->n_slice, s->n_thread);
#pragma omp parallel num_threads(s->n_thread)
    {
        const int t = omp_get_thread_num(), n = omp_get_num_threads();
        omp_set_num_threads(1); /* of what a kernel opens, in this region alone */
        s->thread[t].status = begin(s, c, t);
#pragma omp barrier
        const int has_begun = failed_thread(s, n) == NONE;
#pragma omp barrier
        if (has_begun)
            s->thread[t].status = run_thread(s, c, t, n, &shares);
#pragma omp barrier
        if (failed_thread(s, n) == NONE)
            finish(s, c, t, n);
        else if (t == 0)
            failed = failed_thread(s, n);
    }
    return failed;
}

/* The whole batch as one slice, whose kernels have all threads: within a parallel region, of one
 * thread, too, each of theirs would create threads anew. */
static int run_alone(const slices *s, const adj_call *c)
{
    s->thread[0].status = begin(s, c, 0);
    if (s->thread[0].status == ADJ_OK)
        s->thread[0].status = run_slices(s, c, 0, (job_range){0, s->n_slice}, 1);
    if (s->thread[0].status != ADJ_OK)
        return 0;
    finish(s, c, 0, 1);
    return NONE;
}

/* Of all threads': fewer may run. */
static void clear_seconds(const slices *s)
{
    for (int t = 0; t < s->n_thread; t++)
        memset(s->thread[t].seconds, 0,
               (size_t)s->thread[t].plan->n_step * sizeof *s->thread[t].seconds);
}

static adj_status run(const adj_call *c)
{
    const slices *s = c->state;
    if (s->thread[0].plan->profile)
        clear_seconds(s);
    const int failed = s->n_slice > 1 ? run_team(s, c) : run_alone(s, c);
    if (failed == NONE)
        return ADJ_OK;
    snprintf(c->message, ADJ_WHY, "%.150s", s->thread[failed].plan->message);
    return s->thread[failed].status;
}

static adj_status prepare(void *backend, const adj_group *g, int candidate, adj_prep *p)
{
    (void)backend, (void)g, (void)candidate;
    snprintf(p->why, sizeof p->why, "slices are planned with the groups");
    return ADJ_ENOKERNEL;
}

static const adj_kernel kernel = {.name = "slices", .prepare = prepare, .run = run};
static const adj_kernel *const kernels[] = {&kernel, NULL};

const adj_backend slices_backend = {.version = ADJ_VERSION, .name = "slices", .kernels = kernels};
