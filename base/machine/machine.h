/* machine.h - this machine: what the system tells of its processor and caches, and what its
 * arithmetic and its memory were measured to reach. Choices that depend on a machine are to be
 * fractions of these. What is not known is 0 or "": nothing here assumes a kind of processor. */
#ifndef ADJ_MACHINE_H
#define ADJ_MACHINE_H

#include <stddef.h>

enum { MACHINE_NAME = 96, MACHINE_FEATURES = 320, MACHINE_CACHES = 16, MACHINE_UNIT = 16 };

typedef struct {
    int level;
    char type[16]; /* "Data", "Instruction", "Unified" */
    size_t bytes;
    int shared; /* processors that have it together; 0: not known */
} machine_cache;

/* What the system tells. */
typedef struct {
    char name[MACHINE_NAME]; /* "AMD EPYC 7763 64-Core Processor", or "unknown processor" */
    /* The instruction sets that count for kernels and that the system lets programs use, by Linux's
     * names: "avx2 avx512f amx_bf16". "": not known, or none of them. */
    char features[MACHINE_FEATURES];
    int processors, cores; /* of the machine: threads of hardware, and what they are of */
    int n_cache;
    machine_cache cache[MACHINE_CACHES]; /* of the first processor */
} machine_facts;

/* A multiply-add with sums in f32 (f16: in f16, which is all there is) counts as two operations. */
typedef struct {
    int is_native;           /* the type has arithmetic of its own; negative: not known */
    double flops;            /* a second, of all threads; 0: it was not measured */
    char unit[MACHINE_UNIT]; /* the instructions that were: "avx2", "amx_bf16" */
} machine_peak;

/* What was measured, by so many threads together. */
typedef struct {
    int threads;
    machine_peak f32, bf16, f16;
    double l2, l3, memory; /* bytes read a second; 0: not known */
    double seconds;        /* that measuring took */
} machine_speed;

/* root: "", or for tests a folder with a proc and a sys. */
machine_facts machine_look(const char *root);
/* Does the machine have the instruction set, by Linux's name? */
int machine_has(const machine_facts *m, const char *feature);
/* The first cache of the level that holds data; NULL: it is not told. */
const machine_cache *machine_data_cache(const machine_facts *m, int level);

/* Bytes of the last cache that several cores have together; 0: it is not told. (What a second cache
 * holds says nothing of it: some systems hide the third.) */
size_t machine_shared_cache(const machine_facts *m);

/* threads: asked for; there may be fewer, which the result says. Takes about a tenth of a second,
 * and up to 256 MB of memory if there is twice as much. */
machine_speed machine_measure(const machine_facts *facts, int threads);

#endif
