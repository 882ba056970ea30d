/* isa_level.h - which of the three compilations of a loop (build.ninja's rule cc_isa) this
 * processor can run. */
#ifndef ADJ_ISA_LEVEL_H
#define ADJ_ISA_LEVEL_H

typedef enum { ISA_LEVEL_BASE, ISA_LEVEL_AVX2, ISA_LEVEL_AVX512, N_ISA_LEVEL } isa_level;

/* The highest: the processor has everything that isa_avx2 or isa_avx512 let the compiler use, and
 * the system keeps its registers. */
isa_level machine_isa_level(void);

#endif
