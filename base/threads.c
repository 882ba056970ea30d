/* threads.c - limits the number of threads to the CPU quotas of control groups; see limits.h and
 * adj_default_threads. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "adjoint.h"
#include "limits.h"

enum { LINE = 64 };

/* Reads the file's first line into text; "" if there is none. */
static void read_line(const char *folder, const char *file, char text[LINE])
{
    char path[CONTROL_GROUP_PATH + 32];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "re");
    if (f == NULL || fgets(text, LINE, f) == NULL)
        text[0] = '\0';
    if (f != NULL)
        fclose(f);
}

/* Lowers *min to the whole processors of a quota, both times in microseconds. A fraction of a
 * processor is not counted as a thread: at a barrier the others would wait for the one that is
 * paused. */
static void lower_to_quota(long long *min, long long quota, long long period)
{
    if (quota > 0 && period > 0 && (*min == 0 || quota / period < *min))
        *min = quota / period > 1 ? quota / period : 1;
}

/* Reads the file of version 2: "150000 100000", or "max 100000" without a quota. */
static void lower_to_max(void *user, const char *folder)
{
    char text[LINE], *end;
    read_line(folder, "cpu.max", text);
    const long long quota = strtoll(text, &end, 10);
    lower_to_quota(user, quota, strtoll(end, NULL, 10));
}

/* Reads the quota and period files of version 1; the quota is -1 if there is none. */
static void lower_to_cfs(void *user, const char *folder)
{
    char quota[LINE], period[LINE];
    read_line(folder, "cpu.cfs_quota_us", quota);
    read_line(folder, "cpu.cfs_period_us", period);
    lower_to_quota(user, strtoll(quota, NULL, 10), strtoll(period, NULL, 10));
}

int threads_by_quota(const char *root)
{
    long long min = 0;
    control_groups_visit(root, "", lower_to_max, &min);
    control_groups_visit(root, "cpu", lower_to_cfs, &min);
    return min < 1 << 20 ? (int)min : 1 << 20;
}

int adj_default_threads(void)
{
    const int n = omp_get_max_threads();
    const int quota = getenv("OMP_NUM_THREADS") == NULL ? threads_by_quota("") : 0;
    return quota > 0 && quota < n ? quota : n;
}
