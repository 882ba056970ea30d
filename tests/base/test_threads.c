/* test_threads.c - number of threads within the control groups' quotas; and work stealing: each job
 * runs once, for any speed of the threads. */
#include <criterion/criterion.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "adjoint.h"
#include "base/machine/job_shares.h"
#include "base/limits.h"
#include "system_root.h"
#include "tests/plan.h"

Test(threads, of_quotas)
{
    static const struct {
        const char *cgroup, *inner, *outer;
        int expected;
    } rows[] = {
        {"0::/a/b\n", "max 100000\n", "max 100000\n", 0},
        {"0::/a/b\n", NULL, NULL, 0},
        {NULL, "200000 100000\n", NULL, 0},
        {"0::/a/b\n", "200000 100000\n", "max 100000\n", 2},
        {"0::/a/b\n", "max 100000\n", "150000 100000\n", 1}, /* half a processor is no thread */
        {"0::/a/b\n", "50000 100000\n", NULL, 1},
        {"0::/a/b\n", "400000 100000\n", "300000 100000\n", 3},
        {"0::/a/b\n", "300000 100000\n", "400000 100000\n", 3},
        {"1:cpu:/x\n0::/a\n", "100000 100000\n", "800000 200000\n", 4},
        {"0::/a/b\n", "0 100000\n", "100000 0\n", 0},
        {"0::/a/b\n", "much\n", "-1 100000\n", 0},
        {"0::/a/b\n", "9000000000000000000 1\n", NULL, 1 << 20},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        scoped(system_root_remove) folder root = system_root();
        put_text(&root, "proc/self/cgroup", rows[i].cgroup);
        put_text(&root, "sys/fs/cgroup/a/b/cpu.max", rows[i].inner);
        put_text(&root, "sys/fs/cgroup/a/cpu.max", rows[i].outer);
        cr_expect_eq(threads_by_quota(root.path), rows[i].expected, "%zu: %d", i,
                     threads_by_quota(root.path));
    }
}

/* Version 1: sys/fs/cgroup/cpu, and a quota of -1 where there is none. */
Test(threads, of_quotas_of_version_1)
{
    static const struct {
        const char *cgroup, *quota, *period, *outer; /* outer: a quota of 100000 microseconds */
        int expected;
    } rows[] = {
        {"4:cpu,cpuacct:/a/b\n", "200000\n", "100000\n", NULL, 2},
        {"5:cpuacct,cpu:/a/b\n0::/a\n", "350000\n", "100000\n", "-1\n", 3},
        {"4:cpu:/a/b\n", "-1\n", "100000\n", "500000\n", 5},
        {"4:cpu:/a/b\n", "400000\n", "100000\n", "300000\n", 3},
        {"4:cpu:/a/b\n", "50000\n", "100000\n", NULL, 1},
        {"4:cpu:/docker/0123\n", NULL, NULL, "200000\n", 2}, /* a container's own is outermost */
        {"4:cpuset:/a/b\n3:cpuacct:/a/b\n", "200000\n", "100000\n", NULL, 0},
        {"4:cpu:/a/b\n", "200000\n", NULL, NULL, 0},
        {"4:cpu:/a/b\n", "much\n", "100000\n", NULL, 0},
        {"4:cpu\n", "200000\n", "100000\n", "200000\n", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        scoped(system_root_remove) folder root = system_root();
        put_text(&root, "proc/self/cgroup", rows[i].cgroup);
        put_text(&root, "sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", rows[i].quota);
        put_text(&root, "sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", rows[i].period);
        put_text(&root, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", rows[i].outer);
        put_text(&root, "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
        cr_expect_eq(threads_by_quota(root.path), rows[i].expected, "%zu: %d", i,
                     threads_by_quota(root.path));
    }
}

/* Who sets the number knows it. */
Test(threads, as_openmp_is_told)
{
    setenv("OMP_NUM_THREADS", "3", 1);
    omp_set_num_threads(3);
    cr_expect_eq(adj_default_threads(), 3);
    unsetenv("OMP_NUM_THREADS");
    cr_expect(adj_default_threads() >= 1 && adj_default_threads() <= 3);
}

/* ---- jobs that threads share ---- */

static const ptrdiff_t counts[] = {0, 1, 2, 7, 8, 9, 63, 64, 100, 1000};
static const int threads[] = {1, 2, 3, 8, 64, 100};
enum { N_COUNT = sizeof counts / sizeof *counts, N_THREADS = sizeof threads / sizeof *threads };

/* Jobs that the thread is given until none are left. */
static void take_all(job_shares *s, int thread, int done[])
{
    for (job_range r; take_jobs(s, thread, &r);) {
        cr_assert(r.first >= 0 && r.first < r.end && r.end <= s->jobs);
        for (ptrdiff_t job = r.first; job < r.end; job++)
#pragma omp atomic
            done[job]++;
    }
}

static void expect_once(ptrdiff_t jobs, const int done[])
{
    for (ptrdiff_t i = 0; i < jobs; i++)
        cr_assert_eq(done[i], 1, "job %td of %td was done %d times", i, jobs, done[i]);
}

Test(job_shares, one_thread_does_the_others_jobs)
{
    for (int i = 0; i < N_COUNT; i++)
        for (int k = 0; k < N_THREADS; k++) {
            scoped(release) int *done = calloc((size_t)counts[i] + 1, sizeof *done);
            job_shares s;
            share_jobs(&s, counts[i], threads[k]);
            take_all(&s, threads[k] - 1, done);
            expect_once(counts[i], done);
        }
}

Test(job_shares, threads_do_each_job_once)
{
    for (int turn = 0; turn < 200; turn++)
        for (int i = 0; i < N_COUNT; i++) {
            scoped(release) int *done = calloc((size_t)counts[i] + 1, sizeof *done);
            job_shares s;
            share_jobs(&s, counts[i], 4);
#pragma omp parallel num_threads(4)
            take_all(&s, omp_get_thread_num(), done);
            expect_once(counts[i], done);
        }
}

/* 3 threads and 30 jobs: shares of 10, of which a thread takes its own from the front, an eighth of
 * what is left at a time, and others' from the end. */
Test(job_shares, own_ones_first)
{
    static const job_range own[] = {{10, 12}, {12, 13}, {13, 14}, {14, 15}, {15, 16},
                                    {16, 17}, {17, 18}, {18, 19}, {19, 20}},
                           next[] = {{28, 30}, {27, 28}};
    job_shares s;
    job_range r;
    share_jobs(&s, 30, 3);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        cr_assert(take_jobs(&s, 1, &r));
        cr_assert(r.first == own[i].first && r.end == own[i].end, "%td to %td", r.first, r.end);
    }
    for (size_t i = 0; i < sizeof next / sizeof *next; i++) {
        cr_assert(take_jobs(&s, 1, &r));
        cr_assert(r.first == next[i].first && r.end == next[i].end, "%td to %td", r.first, r.end);
    }
}

/* A single thread takes all its jobs at once. */
Test(job_shares, all_at_once_for_one_thread)
{
    job_shares s;
    job_range r;
    share_jobs(&s, 100, 1);
    cr_assert(take_jobs(&s, 0, &r) && r.first == 0 && r.end == 100);
    cr_assert(!take_jobs(&s, 0, &r));
}

/* More than 32 bits count. */
Test(job_shares, many)
{
    const ptrdiff_t jobs = PTRDIFF_MAX / 4;
    job_shares s;
    ptrdiff_t sum = 0;
    share_jobs(&s, jobs, 2);
    for (job_range r; take_jobs(&s, 0, &r);) {
        cr_assert(r.first >= 0 && r.first < r.end && r.end <= jobs);
        sum += r.end - r.first;
    }
    cr_assert_eq(sum, jobs);
}
