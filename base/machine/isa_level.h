/* isa_level.h - the compilation of a loop (build.ninja's rule cc_isa) that this processor can run.
 * Above ISA_LEVEL_AVX512, the AVX-512 one may call functions for further extensions. */
#ifndef ADJ_ISA_LEVEL_H
#define ADJ_ISA_LEVEL_H

typedef enum {
    ISA_LEVEL_BASE,
    ISA_LEVEL_AVX2,
    ISA_LEVEL_AVX512,
    ISA_LEVEL_AVX512_BF16, /* AVX512, with avx512_bf16 */
    ISA_LEVEL_AMX,         /* AVX512_BF16, with amx_tile and amx_bf16 */
    N_ISA_LEVEL
} isa_level;

/* Returns the highest level that can run: the processor has every extension that isa_avx2,
 * isa_avx512 or isa_avx512_bf16 let the compiler use, the system saves their registers, and for
 * AMX it has permitted this process to use tiles. */
isa_level machine_isa_level(void);
/* Returns how many floats the processor's widest vector holds. */
static inline int machine_vector_floats(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") ? 16 : __builtin_cpu_supports("avx2") ? 8 : 4;
#else
    return 4;
#endif
}

#endif
