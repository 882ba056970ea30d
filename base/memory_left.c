/* memory_left.c - computes the memory that the limits of the process, its control groups and the
 * machine leave; see limits.h. If a file of /proc cannot be read, the limit is unknown and no plan
 * is refused. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "limits.h"

enum { PATH = CONTROL_GROUP_PATH, LINE = 4096 };
static const size_t unknown = SIZE_MAX;

static size_t sum(size_t a, size_t b) { return a < unknown - b ? a + b : unknown; }
static size_t difference(size_t a, size_t b) { return a > b ? a - b : 0; }

static void lower(memory_left *m, size_t bytes, const char *limit)
{
    if (bytes < m->bytes)
        *m = (memory_left){bytes, limit};
}

/* Returns the number of bytes after the key in the file ("VmSize:    1234 kB", "file 5678"), or
 * with the key "" the file's only number; unknown if there is no number, such as in "max". */
static size_t entry_of(const char *path, const char *key)
{
    char line[LINE];
    size_t found = unknown, n = strlen(key);
    FILE *f = fopen(path, "re");
    while (f != NULL && found == unknown && fgets(line, sizeof line, f) != NULL) {
        char *end;
        if (strncmp(line, key, n) != 0)
            continue;
        unsigned long long v = strtoull(line + n, &end, 10);
        if (end != line + n)
            found = strncmp(end, " kB", 3) == 0 ? (size_t)v * 1024 : (size_t)v;
    }
    if (f != NULL)
        fclose(f);
    return found;
}

/* ---- the process ---- */

static void lower_to_limit(memory_left *m, int resource, const char *key, const char *limit)
{
    struct rlimit l;
    if (getrlimit(resource, &l) != 0 || l.rlim_cur == RLIM_INFINITY)
        return;
    size_t used = entry_of("/proc/self/status", key);
    if (used != unknown)
        lower(m, difference((size_t)l.rlim_cur, used), limit);
}

memory_left address_space_left(void)
{
    memory_left m = {unknown, ""};
    lower_to_limit(&m, RLIMIT_AS, "VmSize:", "RLIMIT_AS");
    lower_to_limit(&m, RLIMIT_DATA, "VmData:", "RLIMIT_DATA");
    return m;
}

/* ---- the machine ---- */

static size_t in_group(const char *folder, const char *file, const char *key)
{
    char path[PATH + 32];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return entry_of(path, key);
}

/* Files of one version of control groups. */
typedef struct {
    const char *controller, *max, *used, *limit;
    const char *reclaimable[3]; /* keys of memory.stat */
} group_files;

static const group_files versions[] = {
    {"memory",
     "memory.limit_in_bytes",
     "memory.usage_in_bytes",
     "the control group's memory.limit_in_bytes",
     {"total_inactive_file ", "total_active_file "}},
    {"",
     "memory.max",
     "memory.current",
     "the control group's memory.max",
     {"inactive_file ", "active_file ", "slab_reclaimable "}},
};

typedef struct {
    memory_left *left;
    size_t swap;
    const group_files *files;
} group_limits;

/* Lowers the minimum to the limit of the control group in this folder. */
static void lower_to_group(void *user, const char *folder)
{
    const group_limits *g = user;
    const group_files *f = g->files;
    size_t max = in_group(folder, f->max, ""), used = in_group(folder, f->used, "");
    if (max == unknown || used == unknown)
        return;
    for (int i = 0; i < 3 && f->reclaimable[i] != NULL; i++) {
        size_t bytes = in_group(folder, "memory.stat", f->reclaimable[i]);
        used = bytes != unknown ? difference(used, bytes) : used;
    }
    lower(g->left, sum(difference(max, used), g->swap), f->limit);
}

memory_left physical_memory_left(const char *root)
{
    char path[PATH];
    memory_left m = {unknown, ""};
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    size_t available = entry_of(path, "MemAvailable:"), swap = entry_of(path, "SwapFree:");
    swap = swap != unknown ? swap : 0;
    if (available != unknown)
        lower(&m, sum(available, swap), "the machine");
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        control_groups_visit(root, versions[i].controller, lower_to_group,
                             &(group_limits){&m, swap, &versions[i]});
    return m;
}
