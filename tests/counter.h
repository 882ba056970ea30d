/* counter.h - an allocator that counts calls by their origin and fails at the n-th one. */
#ifndef TESTS_COUNTER_H
#define TESTS_COUNTER_H

#include <criterion/criterion.h>
#include <execinfo.h>
#include <stdint.h>
#include <stdlib.h>

#include "adjoint.h"

enum { MAX_CALLS = 20000 };

typedef struct {
    long calls, live, fail_at; /* fail_at 0: never */
    int fails_on;              /* and so do all calls behind it */
    uint64_t *stack;           /* hash of each call's stack, from 1 to MAX_CALLS; NULL: not kept */
} counter;

/* A hash of the return addresses. */
static inline uint64_t call_stack(void)
{
    enum { MAX_DEPTH = 64 };
    const uint64_t offset = 14695981039346656037U, prime = 1099511628211U; /* FNV-1a's */
    void *at[MAX_DEPTH];
    const int depth = backtrace(at, MAX_DEPTH);
    uint64_t hash = offset;
    for (int i = 0; i < depth; i++)
        hash = (hash ^ (uintptr_t)at[i]) * prime;
    return hash;
}

/* True if this is the first or the last call from its place in the code, so that repeated
 * allocations fail at least twice, first and last. */
static inline int is_first_or_last_from_there(const counter *c, long call)
{
    int before = 0, after = 0;
    for (long i = 1; i <= c->calls; i++)
        if (c->stack[i] == c->stack[call]) {
            before |= i < call;
            after |= i > call;
        }
    return !before || !after;
}

static inline void *count_alloc(void *user, size_t bytes)
{
    counter *c = user;
    c->calls++;
    if (c->calls == c->fail_at || (c->fails_on && c->fail_at > 0 && c->calls > c->fail_at))
        return NULL;
    if (c->stack != NULL && c->calls <= MAX_CALLS)
        c->stack[c->calls] = call_stack();
    c->live++;
    return malloc(bytes);
}

static inline void count_free(void *user, void *p)
{
    ((counter *)user)->live--;
    free(p);
}

/* Runs the trial, which succeeds and frees all, and again with each of its allocations failing in
 * turn: it runs out of memory, unless it makes fewer by then, and leaks none. */
static inline void run_out_of_memory(adj_status (*trial)(counter *c))
{
    counter c = {0};
    cr_assert_eq(trial(&c), ADJ_OK);
    cr_assert_eq(c.live, 0);
    const long total = c.calls;
    for (long n = 1; n <= total; n++) {
        c = (counter){.fail_at = n};
        const adj_status status = trial(&c);
        cr_assert(status == ADJ_ENOMEM || (status == ADJ_OK && c.calls < n),
                  "allocation %ld of %ld failed, status: %s", n, total, adj_status_name(status));
        cr_assert_eq(c.live, 0, "allocation %ld of %ld failed, %ld leaked", n, total, c.live);
    }
}

#endif
