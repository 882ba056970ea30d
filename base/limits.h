/* limits.h - limits on threads and memory by the machine and control groups (threads.c,
 * memory_left.c, control_group.c). */
#ifndef ADJ_LIMITS_H
#define ADJ_LIMITS_H

#include <stddef.h>

#include "adjoint.h"

/* Returns the default of adj_exec_opts.threads. Exported, as libadjoint_io calls it. */
ADJ_API int adj_default_threads(void);
/* Returns the whole processors within the quotas (cpu.max) of this process's control groups
 * (version 2), at least one; 0 if there is no quota. root: as in control_groups_visit. */
int threads_by_quota(const char *root);

typedef struct {
    size_t bytes;      /* SIZE_MAX if unknown */
    const char *limit; /* the limit that leaves them: "RLIMIT_AS" */
} memory_left;

/* Returns what the limits of this process's address space leave (RLIMIT_AS, RLIMIT_DATA). Memory
 * that malloc holds free is not counted. */
memory_left address_space_left(void);
/* Returns what the machine's memory and swap space and the limits of the process's control groups
 * leave. The page cache counts as free. */
memory_left physical_memory_left(const char *root);

/* Calls visit with the folder of each control group of /proc and /sys, the innermost first; never
 * where no group is listed. controller: "" for version 2; "cpu" or "memory" for that controller of
 * version 1, whose groups are below sys/fs/cgroup/cpu. A container may see only the outermost
 * folder of the path, which holds its limits. root: "", or in tests a folder with a proc and a sys.
 */
void control_groups_visit(const char *root, const char *controller,
                          void (*visit)(void *user, const char *folder), void *user);

enum { CONTROL_GROUP_PATH = 4352 }; /* bytes of a folder's path */

#endif
