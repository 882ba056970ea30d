/* test_threads.c - how many threads the quotas of control groups leave. */
#include <criterion/criterion.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "adjoint.h"
#include "exec/threads.h"
#include "tests/io/folder.h"

static void put(const folder *root, const char *name, const char *text)
{
    if (text != NULL)
        put_file(in_folder(root, name).s, text, strlen(text));
}

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
    static const char *const folders[] = {"proc",
                                          "proc/self",
                                          "sys",
                                          "sys/fs",
                                          "sys/fs/cgroup",
                                          "sys/fs/cgroup/a",
                                          "sys/fs/cgroup/a/b"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        folder root = folder_new();
        for (size_t k = 0; k < sizeof folders / sizeof *folders; k++)
            cr_assert_eq(mkdir(in_folder(&root, folders[k]).s, 0700), 0);
        put(&root, "proc/self/cgroup", rows[i].cgroup);
        put(&root, "sys/fs/cgroup/a/b/cpu.max", rows[i].inner);
        put(&root, "sys/fs/cgroup/a/cpu.max", rows[i].outer);
        cr_expect_eq(threads_by_quota(root.path), rows[i].expected, "%zu: %d", i,
                     threads_by_quota(root.path));
        char command[200];
        snprintf(command, sizeof command, "rm -r %s", root.path);
        cr_assert_eq(system(command), 0);
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
