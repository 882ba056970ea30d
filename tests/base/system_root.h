/* system_root.h - a folder that replaces / in a test, with /proc and the control groups /a and
 * /a/b, in version 2 and for two controllers in version 1. */
#ifndef TESTS_SYSTEM_ROOT_H
#define TESTS_SYSTEM_ROOT_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/io/folder.h"

static inline folder system_root(void)
{
    static const char *const folders[] = {"proc",
                                          "proc/self",
                                          "sys",
                                          "sys/fs",
                                          "sys/fs/cgroup",
                                          "sys/fs/cgroup/a",
                                          "sys/fs/cgroup/a/b",
                                          "sys/fs/cgroup/cpu",
                                          "sys/fs/cgroup/cpu/a",
                                          "sys/fs/cgroup/cpu/a/b",
                                          "sys/fs/cgroup/memory",
                                          "sys/fs/cgroup/memory/a"};
    folder root = folder_new();
    for (size_t k = 0; k < sizeof folders / sizeof *folders; k++)
        cr_assert_eq(mkdir(in_folder(&root, folders[k]).s, 0700), 0);
    return root;
}

/* NULL: no such file. */
static inline void put_text(const folder *root, const char *name, const char *text)
{
    if (text != NULL)
        put_file(in_folder(root, name).s, text, strlen(text));
}

static inline void system_root_remove(const folder *root)
{
    char command[200];
    snprintf(command, sizeof command, "rm -r %s", root->path);
    cr_assert_eq(system(command), 0); // NOLINT(cert-env33-c): the test's own words
}

#endif
