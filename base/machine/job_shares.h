/* job_shares.h - jobs shared out among threads whose processors may not be equally fast: others
 * work on some of them, or they are of two kinds. Each thread has as many neighboring jobs as the
 * others, in order, so that they are where they would be without this header; when its own are
 * done, it takes from the end of another's. Nothing else may follow from who does what. There is no
 * barrier at the end: when take_jobs says that none are left, others may be at their last ones.
 *
 *     share_jobs(&shares, jobs, threads);
 * in each thread:
 *     for (job_range r; take_jobs(&shares, thread, &r);)
 *         ... jobs from r.first to r.end - 1 ... */
#ifndef ADJ_JOB_SHARES_H
#define ADJ_JOB_SHARES_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { JOB_SHARES = 64, JOB_LINE = 64 }; /* shares at most; bytes of a line of the cache */

/* Jobs from `first` to `end` - 1. */
typedef struct {
    ptrdiff_t first, end;
} job_range;

typedef struct { /* what is left of one: the first in the low half, the end in the high half */
    _Alignas(JOB_LINE) _Atomic uint64_t left;
} job_share;

typedef struct {
    int n;
    ptrdiff_t jobs, unit; /* in all; how many are counted as one, so that 32 bits are enough */
    job_share share[JOB_SHARES];
} job_shares;

static inline uint64_t job_share_of(uint64_t first, uint64_t end) { return end << 32 | first; }

/* Before the threads begin. */
static inline void share_jobs(job_shares *s, ptrdiff_t jobs, int threads)
{
    s->n = threads < JOB_SHARES ? threads : JOB_SHARES;
    s->jobs = jobs;
    s->unit = jobs / INT32_MAX + 1;
    const uint64_t units = (uint64_t)((jobs + s->unit - 1) / s->unit), n = (uint64_t)s->n;
    for (uint64_t i = 0; i < n; i++)
        atomic_init(&s->share[i].left, job_share_of(units * i / n, units * (i + 1) / n));
}

/* A part of what is left, so that the last parts are small, or for one thread all: of one's own
 * from the front, of another's from its end. */
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

/* The next jobs for a thread; 0: all are taken, and some may still be running. */
static inline int take_jobs(job_shares *s, int thread, job_range *r)
{
    for (int i = 0; i < s->n; i++)
        if (take_part(s, &s->share[(thread + i) % s->n], i == 0, r))
            return 1;
    return 0;
}

#endif
