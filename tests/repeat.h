/* repeat.h - tests that try many seeds, or kill a process at many moments, do so a few times in the
 * suite; with REPEAT=N in the environment N times as often. */
#ifndef TESTS_REPEAT_H
#define TESTS_REPEAT_H

#include <stdlib.h>

static inline int repeats(int usual)
{
    const char *times = getenv("REPEAT");
    int n = times != NULL ? atoi(times) : 1;
    return usual * (n > 0 ? n : 1);
}

#endif
