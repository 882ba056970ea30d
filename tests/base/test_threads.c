/* test_threads.c - how many threads the quotas of control groups leave. */
#include <criterion/criterion.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "adjoint.h"
#include "base/threads.h"
#include "system_root.h"

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
        folder root = system_root();
        put_text(&root, "proc/self/cgroup", rows[i].cgroup);
        put_text(&root, "sys/fs/cgroup/a/b/cpu.max", rows[i].inner);
        put_text(&root, "sys/fs/cgroup/a/cpu.max", rows[i].outer);
        cr_expect_eq(threads_by_quota(root.path), rows[i].expected, "%zu: %d", i,
                     threads_by_quota(root.path));
        system_root_remove(&root);
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
        folder root = system_root();
        put_text(&root, "proc/self/cgroup", rows[i].cgroup);
        put_text(&root, "sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", rows[i].quota);
        put_text(&root, "sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", rows[i].period);
        put_text(&root, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", rows[i].outer);
        put_text(&root, "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
        cr_expect_eq(threads_by_quota(root.path), rows[i].expected, "%zu: %d", i,
                     threads_by_quota(root.path));
        system_root_remove(&root);
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
