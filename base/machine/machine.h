/* machine.h - this machine: its processor and caches as the system describes them, and the
 * measured speed of its arithmetic and memory. Choices that depend on a machine should be
 * fractions of these. Unknown values are 0 or ""; no processor vendor is assumed. */
#ifndef ADJ_MACHINE_H
#define ADJ_MACHINE_H

#include <stddef.h>

enum { MACHINE_NAME = 96, MACHINE_FEATURES = 320, MACHINE_CACHES = 16, MACHINE_UNIT = 16 };

typedef struct {
    int level;
    char type[16]; /* "Data", "Instruction", "Unified" */
    size_t bytes;
    int shared; /* processors that share it; 0 if unknown */
} machine_cache;

/* Facts that the system reports. */
typedef struct {
    char name[MACHINE_NAME]; /* the model name as /proc/cpuinfo has it, or "unknown processor" */
    /* The instruction sets that kernels use and the system enables, by Linux's names: "avx2
     * avx512f amx_bf16". "" if unknown or none. */
    char features[MACHINE_FEATURES];
    int processors, cores; /* hardware threads and cores of the machine */
    int n_cache;
    machine_cache cache[MACHINE_CACHES]; /* caches of the first processor */
} machine_facts;

/* A multiply-add with f32 sums (f16: with f16 sums, the only kind there) counts as two
 * operations. */
typedef struct {
    int is_native;           /* 1: the type has its own arithmetic; negative if unknown */
    double flops;            /* operations a second, all threads together; 0 if not measured */
    char unit[MACHINE_UNIT]; /* the measured instruction set: "avx2", "amx_bf16" */
} machine_peak;

/* Speeds measured with this many threads together. */
typedef struct {
    int threads;
    machine_peak f32, bf16, f16;
    double l2, l3, memory; /* bytes read a second; 0 if unknown */
    double seconds;        /* duration of the measurement */
} machine_speed;

/* Reads the facts. root: "", or in tests a folder with a proc and a sys. */
machine_facts machine_look(const char *root);
/* True if the machine has the instruction set, by Linux's name. */
int machine_has(const machine_facts *m, const char *feature);
/* Returns the first cache of the level that holds data, or NULL if unknown. */
const machine_cache *machine_data_cache(const machine_facts *m, int level);

/* Returns the bytes of the last-level cache that several cores share; 0 if unknown. A
 * second-level size does not imply it: some systems hide the third level. */
size_t machine_shared_cache(const machine_facts *m);

/* Measures with at most `threads` threads; the result holds the number used. Takes about a tenth
 * of a second, and up to 256 MB of memory if twice as much is free. */
machine_speed machine_measure(const machine_facts *facts, int threads);

#endif
