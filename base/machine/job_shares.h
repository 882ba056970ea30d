/* job_shares.h - work stealing for threads that may not be equally fast, because of other
 * processes or of two kinds of core. Each thread starts with an equal contiguous range of jobs,
 * the range that a static schedule would give it. A thread that has finished its own range takes
 * jobs from the end of another thread's. Results must not depend on which thread runs a job.
 * There is no barrier at the end: when take_jobs returns 0, other threads may still run their
 * last jobs.
 *
 *     share_jobs(&shares, jobs, threads); in each thread:
 *     for (job_range r; take_jobs(&shares, thread, &r);)
 *         ... jobs from r.first to r.end - 1 ... */
#ifndef ADJ_JOB_SHARES_H
#define ADJ_JOB_SHARES_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { JOB_SHARES = 64, JOB_LINE = 64 }; /* most threads; bytes of a cache line */

/* Jobs from `first` to `end` - 1. */
typedef struct {
    ptrdiff_t first, end;
} job_range;

typedef struct { /* jobs left: the first in the low half, the end in the high half */
    _Alignas(JOB_LINE) _Atomic uint64_t left;
} job_share;

typedef struct {
    int n;
    ptrdiff_t jobs, unit; /* jobs in all; jobs per unit of counting, so that 32 bits are enough */
    job_share share[JOB_SHARES];
} job_shares;

static inline uint64_t job_share_of(uint64_t first, uint64_t end) { return end << 32 | first; }

/* Distributes the jobs; call it before the threads begin. */
static inline void share_jobs(job_shares *s, ptrdiff_t jobs, int threads)
{
    s->n = threads < JOB_SHARES ? threads : JOB_SHARES;
    s->jobs = jobs;
    s->unit = jobs / INT32_MAX + 1;
    const uint64_t units = (uint64_t)((jobs + s->unit - 1) / s->unit), n = (uint64_t)s->n;
    for (uint64_t i = 0; i < n; i++)
        atomic_init(&s->share[i].left, job_share_of(units * i / n, units * (i + 1) / n));
}

/* Takes part of a thread's remaining jobs, so that the last parts are small, or all of them if
 * there is one thread: from the front of the caller's own, from the end of another's. */
static inline int take_part(const job_shares *s, job_share *of, int is_own, job_range *r)
{
    uint64_t left = atomic_load_explicit(&of->left, memory_order_relaxed), rest;
    uint64_t first, end;
    do {
        first = left & UINT32_MAX;
        end = left >> 32;
        const uint64_t n = s->n > 1 ? (end - first + 7) / 8 : end - first;
        if (n == 0)
            return 0;
        rest = is_own ? job_share_of(first + n, end) : job_share_of(first, end - n);
        first = is_own ? first : end - n;
        end = first + n;
    } while (!atomic_compare_exchange_weak_explicit(&of->left, &left, rest, memory_order_relaxed,
                                                    memory_order_relaxed));
    r->first = (ptrdiff_t)first * s->unit;
    r->end = (ptrdiff_t)end * s->unit < s->jobs ? (ptrdiff_t)end * s->unit : s->jobs;
    return 1;
}

/* Takes the next jobs for a thread; 0 if all are taken, though some may still be running. */
static inline int take_jobs(job_shares *s, int thread, job_range *r)
{
    for (int i = 0; i < s->n; i++)
        if (take_part(s, &s->share[(thread + i) % s->n], i == 0, r))
            return 1;
    return 0;
}

#endif
