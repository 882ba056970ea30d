/* neighbors.h - load of this process's processors by other processes. A step waits for its slowest
 * thread, so on a busy machine fewer threads, or threads that do not spin, are faster. */
#ifndef CLI_TRAIN_NEIGHBORS_H
#define CLI_TRAIN_NEIGHBORS_H

#include <sched.h>
#include <stdio.h>

/* Seconds since arbitrary starting points. busy: of all processes on the processors that this one
 * may use, with time that a hypervisor gave to other machines; < 0: unknown. */
typedef struct {
    double at, busy, own;
} cpu_times;

cpu_times cpu_times_now(void);
/* Returns the average number of processors that other processes used between two times; 0: none or
 * unknown. */
double cpu_neighbors(const cpu_times *from, const cpu_times *to);

enum { ADVICE_TEXT = 240 };
/* Writes a note for a machine on which other processes keep this many processors busy. It advises
 * fewer threads, and waiting without spinning unless OMP_WAIT_POLICY is set. */
const char *cpu_advice(double others, int processors, char text[ADVICE_TEXT]);

/* Returns the busy seconds in a file like /proc/stat; ticks: ticks per second. For tests. */
double cpu_busy(FILE *stat, const cpu_set_t *ours, double ticks);

#endif
