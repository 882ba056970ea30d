/* isa_level.c - see isa_level.h. */
#include "isa_level.h"

#if defined(__x86_64__)
#include <cpuid.h>

isa_level machine_isa_level(void)
{
    unsigned a, b, c, d;
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
        !__get_cpuid(1, &a, &b, &c, &d) || (c & bit_F16C) == 0)
        return ISA_LEVEL_BASE;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")
               ? ISA_LEVEL_AVX512
               : ISA_LEVEL_AVX2;
}
#else
isa_level machine_isa_level(void) { return ISA_LEVEL_BASE; }
#endif
