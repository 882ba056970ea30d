/* threads.c - see threads.h and adj_default_threads. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "adjoint.h"
#include "control_group.h"
#include "threads.h"

/* cpu.max: "150000 100000", microseconds of processors in each period, or "max 100000". A part of a
 * processor is no thread: at a barrier the others would wait for the one that is paused. */
static void lower_to_group(void *user, const char *folder)
{
    char path[CONTROL_GROUP_PATH + 16], line[64] = "", *end;
    long long *min = user;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return;
    char *text = fgets(line, sizeof line, f);
    fclose(f);
    if (text == NULL)
        return;
    const long long quota = strtoll(line, &end, 10), period = strtoll(end, NULL, 10);
    if (quota > 0 && period > 0 && (*min == 0 || quota / period < *min))
        *min = quota / period > 1 ? quota / period : 1;
}

int threads_by_quota(const char *root)
{
    long long min = 0;
    control_groups_visit(root, lower_to_group, &min);
    return min < 1 << 20 ? (int)min : 1 << 20;
}

int adj_default_threads(void)
{
    const int n = omp_get_max_threads();
    const int quota = getenv("OMP_NUM_THREADS") == NULL ? threads_by_quota("") : 0;
    return quota > 0 && quota < n ? quota : n;
}
