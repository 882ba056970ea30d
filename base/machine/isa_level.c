/* isa_level.c - see isa_level.h. */
#include "isa_level.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Compilers have no feature name for AMX tiles. The emulator of the tests has them wherever it
 * has avx512_bf16. */
static int may_use_tiles(void)
{
#if defined(EMULATED_TILES)
    return 1;
#else
    const unsigned bf16 = 1U << 22, tile = 1U << 24;    /* bits of register d of CPUID leaf 7 */
    const long ask_permission = 0x1023, tile_data = 18; /* ARCH_REQ_XCOMP_PERM, XTILEDATA */
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & bf16) != 0 && (d & tile) != 0 &&
           syscall(SYS_arch_prctl, ask_permission, tile_data) == 0;
#endif
}

isa_level machine_isa_level(void)
{
    unsigned a, b, c, d;
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
        !__get_cpuid(1, &a, &b, &c, &d) || (c & bit_F16C) == 0)
        return ISA_LEVEL_BASE;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl"))
        return ISA_LEVEL_AVX2;
    if (!__builtin_cpu_supports("avx512bf16"))
        return ISA_LEVEL_AVX512;
    return may_use_tiles() ? ISA_LEVEL_AMX : ISA_LEVEL_AVX512_BF16;
}
#else
isa_level machine_isa_level(void) { return ISA_LEVEL_BASE; }
#endif
