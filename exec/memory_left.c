/* memory_left.c - see memory_left.h. The only file that reads Linux's /proc; where something cannot
 * be read nothing is known, and no plan is refused. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "memory_left.h"

enum { PATH = 4352, LINE = 4096 };
static const size_t unknown = SIZE_MAX;

static size_t sum(size_t a, size_t b) { return a < unknown - b ? a + b : unknown; }
static size_t difference(size_t a, size_t b) { return a > b ? a - b : 0; }

static void lower(memory_left *m, size_t bytes, const char *limit)
{
    if (bytes < m->bytes)
        *m = (memory_left){bytes, limit};
}

/* The number of bytes behind the key in the file ("VmSize:    1234 kB", "file 5678"), or with the
 * key "" the file's only number; unknown if there is none, such as in "max". */
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

/* Of the control group in this folder. */
static void lower_to_group(memory_left *m, const char *folder, size_t swap)
{
    static const char *const reclaimable[] = {"inactive_file ", "active_file ",
                                              "slab_reclaimable "};
    size_t max = in_group(folder, "memory.max", ""), used = in_group(folder, "memory.current", "");
    if (max == unknown || used == unknown)
        return;
    for (size_t i = 0; i < sizeof reclaimable / sizeof *reclaimable; i++) {
        size_t bytes = in_group(folder, "memory.stat", reclaimable[i]);
        used = bytes != unknown ? difference(used, bytes) : used;
    }
    lower(m, sum(difference(max, used), swap), "the control group's memory.max");
}

/* Of the process's control group and those that it is in. */
static void lower_to_groups(memory_left *m, const char *root, size_t swap)
{
    char line[LINE], folder[PATH];
    snprintf(folder, sizeof folder, "%s/proc/self/cgroup", root);
    FILE *f = fopen(folder, "re");
    int found = 0;
    while (f != NULL && !found && fgets(line, sizeof line, f) != NULL)
        found = strncmp(line, "0::/", 4) == 0;
    if (f != NULL)
        fclose(f);
    if (!found)
        return;
    line[strcspn(line, "\n")] = '\0';
    int top = snprintf(folder, sizeof folder, "%s/sys/fs/cgroup", root);
    if (top < 0 || (size_t)top + strlen(line) >= sizeof folder)
        return;
    memcpy(folder + top, line + 3, strlen(line + 3) + 1);
    for (char *end; (end = strrchr(folder + top, '/')) != NULL; *end = '\0')
        lower_to_group(m, folder, swap);
    lower_to_group(m, folder, swap);
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
    lower_to_groups(&m, root, swap);
    return m;
}
