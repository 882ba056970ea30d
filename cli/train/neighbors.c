/* neighbors.c - see neighbors.h. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "neighbors.h"

/* The columns behind a processor's name (proc(5)); guests are part of the first two. */
enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, N_COLUMN };

/* Returns the busy ticks of a line "cpu0 1393280 32966 572056 13343292 6130 0 17875 0 0 0" and sets
 * *cpu to the processor; -1: not the line of a single one. */
static double busy_in(const char *line, int *cpu)
{
    char *end;
    double busy = 0;
    *cpu = -1;
    if (strncmp(line, "cpu", 3) != 0 || line[3] < '0' || line[3] > '9')
        return 0;
    long number = strtol(line + 3, &end, 10);
    for (int i = 0; i < N_COLUMN; i++) {
        double ticks = strtod(end, &end);
        busy += i != IDLE && i != IOWAIT ? ticks : 0;
    }
    *cpu = number < CPU_SETSIZE ? (int)number : -1;
    return busy;
}

double cpu_busy(FILE *stat, const cpu_set_t *ours, double ticks)
{
    char line[1024];
    double sum = 0;
    int found = 0, cpu;
    while (fgets(line, sizeof line, stat) != NULL) {
        double busy = busy_in(line, &cpu);
        if (cpu >= 0 && CPU_ISSET(cpu, ours)) {
            sum += busy / ticks;
            found++;
        }
    }
    return found > 0 ? sum : -1;
}

static double seconds_of(struct timeval t) { return (double)t.tv_sec + 1e-6 * (double)t.tv_usec; }

cpu_times cpu_times_now(void)
{
    cpu_times t = {.at = seconds_now(), .busy = -1};
    struct rusage own;
    cpu_set_t ours;
    FILE *stat = fopen("/proc/stat", "re");
    if (stat != NULL && sched_getaffinity(0, sizeof ours, &ours) == 0)
        t.busy = cpu_busy(stat, &ours, (double)sysconf(_SC_CLK_TCK));
    if (stat != NULL)
        fclose(stat);
    if (getrusage(RUSAGE_SELF, &own) == 0)
        t.own = seconds_of(own.ru_utime) + seconds_of(own.ru_stime);
    return t;
}

double cpu_neighbors(const cpu_times *from, const cpu_times *to)
{
    const double passed = to->at - from->at;
    const double others = (to->busy - from->busy) - (to->own - from->own);
    return from->busy >= 0 && to->busy >= 0 && passed > 0 && others > 0 ? others / passed : 0;
}

const char *cpu_advice(double others, int processors, char text[ADVICE_TEXT])
{
    const int left = processors - (int)(others + 0.5);
    const char *policy = getenv("OMP_WAIT_POLICY");
    const int waits = policy != NULL && policy[0] != '\0';
    snprintf(text, ADVICE_TEXT,
             "note: other processes keep %.1f of %d processors busy: --threads %d%s may be faster",
             others, processors, left > 1 ? left : 1, waits ? "" : " or OMP_WAIT_POLICY=passive");
    return text;
}
