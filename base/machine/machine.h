/* machine.h - this machine: its processor and caches as the system describes them. Unknown values
 * are 0 or ""; no processor vendor is assumed. */
#ifndef ADJ_MACHINE_H
#define ADJ_MACHINE_H

#include <stddef.h>

enum { MACHINE_NAME = 96, MACHINE_FEATURES = 320, MACHINE_CACHES = 16 };

typedef struct {
    int level;
    char type[16]; /* "Data", "Instruction", "Unified" */
    size_t bytes;
} machine_cache;

/* Facts that the system reports. */
typedef struct {
    char name[MACHINE_NAME]; /* the model name as /proc/cpuinfo has it, or "unknown processor" */
    /* The instruction sets that kernels use and the system enables, by Linux's names: "avx2
     * avx512f amx_bf16". "" if unknown or none. */
    char features[MACHINE_FEATURES];
    int n_cache;
    machine_cache cache[MACHINE_CACHES]; /* caches of the first processor */
} machine_facts;

/* Reads the facts. root: "", or in tests a folder with a proc and a sys. */
machine_facts machine_look(const char *root);
/* Returns the first cache of the level that holds data, or NULL if unknown. */
const machine_cache *machine_data_cache(const machine_facts *m, int level);

/* Returns the bytes of the last-level cache that several cores share; 0 if unknown. A
 * second-level size does not imply it: some systems hide the third level. */
size_t machine_shared_cache(const machine_facts *m);

#endif
