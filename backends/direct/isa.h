/* isa.h - the instruction set that a kernel is compiled for: ISA_base, ISA_avx2 or ISA_avx512,
 * and for some that round to bf16 ISA_avx512_bf16. DIRECT(f) names the function f compiled for
 * it. */
#ifndef DIRECT_ISA_H
#define DIRECT_ISA_H

#if defined(ISA_avx512_bf16)
#define DIRECT(f) direct_##f##_avx512_bf16
#define ISA_NAME "avx512_bf16"
enum { VECTOR_BYTES = 64 };
#elif defined(ISA_avx512)
#define DIRECT(f) direct_##f##_avx512
#define ISA_NAME "avx512"
enum { VECTOR_BYTES = 64 };
#elif defined(ISA_avx2)
#define DIRECT(f) direct_##f##_avx2
#define ISA_NAME "avx2"
enum { VECTOR_BYTES = 32 };
#elif defined(ISA_base)
#define DIRECT(f) direct_##f##_base
#define ISA_NAME "base"
enum { VECTOR_BYTES = 16 };
#else
#error "compile with -DISA_base, -DISA_avx2, -DISA_avx512 or -DISA_avx512_bf16"
#endif
#endif
