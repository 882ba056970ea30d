/* cache.h - this machine's caches, as Linux tells them. */
#ifndef CLI_CACHE_H
#define CLI_CACHE_H

#include <stddef.h>

typedef struct {
    int level;
    char type[16]; /* "Data", "Instruction", "Unified" */
    size_t bytes;
} cpu_cache;

/* The i-th of the first processor. 0: there is none, or it is not told. */
int cpu_cache_at(int i, cpu_cache *c);

#endif
