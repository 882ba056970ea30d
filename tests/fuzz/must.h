/* must.h - ends the run, as a find, when something that must hold does not. */
#ifndef TESTS_FUZZ_MUST_H
#define TESTS_FUZZ_MUST_H

#include <stdio.h>
#include <stdlib.h>

static inline void must_hold(int holds, const char *condition, const char *file, int line)
{
    if (holds)
        return;
    fprintf(stderr, "%s:%d: %s\n", file, line, condition);
    abort();
}

/* A macro for its text, as assert is one. */
#define must(condition) must_hold((condition), #condition, __FILE__, __LINE__)

#endif
