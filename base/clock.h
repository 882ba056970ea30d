/* clock.h - the time, for plans, profiles and comparisons. */
#ifndef ADJ_CLOCK_H
#define ADJ_CLOCK_H

#include <time.h>

/* Seconds of the monotonic clock. */
static inline double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
