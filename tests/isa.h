/* isa.h - the instruction sets that the direct kernels are compiled for (all_isas; row_isas: row
 * kernels) or may use (those and amx), and which of them this CPU has: a test takes each that is
 * there and is skipped, with a line that says so, where it is not. Asked of the CPU, not of the
 * backend under test. */
#ifndef TESTS_ISA_H
#define TESTS_ISA_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { N_ISA = 3 };
static const char *const all_isas[N_ISA] = {"base", "avx2", "avx512"};
enum { N_ROW_ISA = 4 };
static const char *const row_isas[N_ROW_ISA] = {"base", "avx2", "avx512", "avx512_bf16"};

#if defined(__x86_64__)
/* Bits of word `a` of leaf 7, subleaf 1, or of `d` of subleaf 0. */
static inline int cpu_has_bf16(void)
{
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1) != 0;
}

/* The tiles, and the system keeps them; or they are emulated. */
static inline int cpu_has_tiles(void)
{
#if defined(EMULATED_TILES)
    return 1;
#else
    unsigned a, b, c, d, kept;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d >> 22 & 5) != 5)
        return 0;
    __asm__ volatile("xgetbv" : "=a"(kept), "=d"(d) : "c"(0));
    return (kept & 0x60000) == 0x60000;
#endif
}
#endif

static inline int cpu_has(const char *isa)
{
    if (strcmp(isa, "base") == 0)
        return 1;
#if defined(__x86_64__)
    unsigned a, b, c = 0, d; /* clang 14 does not know f16c by its name */
    int f16c = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
    int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && f16c;
    int avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (strcmp(isa, "avx2") == 0)
        return avx2;
    if (strcmp(isa, "avx512") == 0)
        return avx512;
    return avx512 && cpu_has_bf16() && (strcmp(isa, "avx512_bf16") == 0 || cpu_has_tiles());
#else
    return 0;
#endif
}

static inline const char *best_isa(void)
{
    int best = N_ISA - 1;
    while (!cpu_has(all_isas[best]))
        best--;
    return all_isas[best];
}

/* The running test is about this one alone. */
static inline void need_isa(const char *isa)
{
    if (!cpu_has(isa))
        cr_skip_test("this CPU has no %s\n", isa);
}

/* The running test is about kernels of oneDNN's own: held to SSE4.1 or AVX it has none for most
 * gradients of convolutions, and plans take direct's. */
static inline void need_onednn_kernels(void)
{
    const char *max = getenv("ONEDNN_MAX_CPU_ISA");
    if (max != NULL && (strcmp(max, "SSE41") == 0 || strcmp(max, "AVX") == 0))
        cr_skip_test("oneDNN is held to %s, and has no kernels of its own for what is tested\n",
                     max);
}

/* For loops over all_isas: 0, with a line as a skipped test has, if this one is not here. The
 * runner counts these lines. */
static inline int can_test(const char *isa)
{
    if (!cpu_has(isa))
        printf("[SKIP] %s::%s: %s is left out, this CPU does not have it\n",
               criterion_current_test->category, criterion_current_test->name, isa);
    return cpu_has(isa);
}

typedef void isa_test(const char *isa);

/* Runs it for each of these instruction sets that is here, with direct held to that. */
static inline void for_each_isa(int n, const char *const isas[], isa_test *run)
{
    for (int i = 0; i < n; i++)
        if (can_test(isas[i])) {
            setenv("ADJOINT_MAX_ISA", isas[i], 1);
            run(isas[i]);
        }
}

#endif
