/* counter.h - an allocator that counts, and fails at the n-th call. */
#ifndef TESTS_COUNTER_H
#define TESTS_COUNTER_H

#include <stdlib.h>

typedef struct {
    long calls, live, fail_at; /* fail_at 0: never */
} counter;

static inline void *count_alloc(void *user, size_t bytes)
{
    counter *c = user;
    if (++c->calls == c->fail_at)
        return NULL;
    c->live++;
    return malloc(bytes);
}

static inline void count_free(void *user, void *p)
{
    ((counter *)user)->live--;
    free(p);
}

#endif
