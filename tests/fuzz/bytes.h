/* bytes.h - the fuzzer's bytes as choices; when they are used up, zeros, or numbers drawn from a
 * seed, so that a short input can make something large. */
#ifndef TESTS_FUZZ_BYTES_H
#define TESTS_FUZZ_BYTES_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const uint8_t *at, *end;
    uint32_t seed; /* 0: zeros */
} bytes;

static inline unsigned take(bytes *b)
{
    if (b->at < b->end)
        return *b->at++;
    b->seed = b->seed * 1664525U + (b->seed != 0 ? 1013904223U : 0);
    return b->seed >> 24;
}
/* 0 .. n-1 */
static inline int pick(bytes *b, int n) { return (int)(take(b) % (unsigned)n); }

/* Any number: mostly a small one, sometimes one that breaks careless arithmetic. */
static inline int64_t any_number(bytes *b)
{
    static const int64_t bad[] = {-1,
                                  INT64_MAX,
                                  INT64_MIN,
                                  INT32_MAX,
                                  (int64_t)INT32_MAX + 1,
                                  INT32_MIN,
                                  UINT32_MAX,
                                  (int64_t)1 << 62,
                                  1879048192,
                                  4538426903074820908,
                                  66,
                                  -2,
                                  1024,
                                  65536,
                                  ((int64_t)1 << 32) + 1,
                                  3037000500};
    unsigned v = take(b);
    return v < 200 ? (int64_t)(v % 8) : bad[v % (sizeof bad / sizeof bad[0])];
}

#endif
