/* virtual_clock.h - a monotonic clock that a test moves: include it in the test's only file. All
 * code in the process reads it instead of the system's, so a kernel that calls pass_ms takes
 * exactly that long under any load. Each reading takes 10 us, so that loops that wait end. */
#ifndef TESTS_VIRTUAL_CLOCK_H
#define TESTS_VIRTUAL_CLOCK_H

#include <stdatomic.h>
#include <time.h>

static _Atomic long long virtual_ns = 1000000000;

static inline void pass_ms(double ms) { atomic_fetch_add(&virtual_ns, (long long)(1e6 * ms)); }

/* Replaces the C library's. */
int clock_gettime(clockid_t clock_id, struct timespec *tp)
{
    (void)clock_id;
    const long long now = atomic_fetch_add(&virtual_ns, 10000);
    *tp = (struct timespec){.tv_sec = (time_t)(now / 1000000000),
                            .tv_nsec = (long)(now % 1000000000)};
    return 0;
}

#endif
