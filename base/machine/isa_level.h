/* isa_level.h - which of the compilations of a loop (build.ninja's rule cc_isa) this processor can
 * run, and whether those for AVX-512 may contain functions for more. */
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

/* The highest: the processor has everything that isa_avx2, isa_avx512 or isa_avx512_bf16 let the
 * compiler use, and the system keeps its registers; it has let this process use the tiles, if they
 * are among them. */
isa_level machine_isa_level(void);
/* Returns the floats in the processor's widest vectors. */
int machine_vector_floats(void);

#endif
