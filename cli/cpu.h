/* cpu.h - this machine's processor and its caches, as Linux tells them. */
#ifndef CLI_CPU_H
#define CLI_CPU_H

#include <stddef.h>

typedef struct {
    int level;
    char type[16]; /* "Data", "Instruction", "Unified" */
    size_t bytes;
} cpu_cache;

enum { CPU_NAME = 96 };
/* "AMD EPYC 7763 64-Core Processor", or "unknown processor" where it is not told, as on ARM. */
const char *cpu_name(char name[CPU_NAME]);

/* The i-th of the first processor. 0: there is none, or it is not told. */
int cpu_cache_at(int i, cpu_cache *c);

#endif
