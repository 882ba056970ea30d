/* loops.h - the loops that measure a machine, compiled once per instruction set. */
#ifndef ADJ_MACHINE_LOOPS_H
#define ADJ_MACHINE_LOOPS_H

#include <stddef.h>
#include <stdint.h>

/* Multiply-adds in registers, as many independent ones as hide their latency. */
typedef struct {
    const char *unit; /* name of the instruction set; NULL if this compilation has no such loop */
    double flop;      /* operations of one iteration */
    void (*run)(int64_t turns, float *result);
} arithmetic_loop;

typedef struct {
    arithmetic_loop f32, amx_bf16, bf16, f16;
    /* bytes: a multiple of READ_BLOCK; data is 64-aligned. */
    void (*read)(const void *data, size_t bytes, uint64_t *result);
} machine_loops;

enum { READ_BLOCK = 1024 };

extern const machine_loops machine_loops_base, machine_loops_avx2, machine_loops_avx512;

#endif
