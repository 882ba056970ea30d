/* x86_features.c - see x86_features.h; the bits are those of CPUID in the processor manuals. */
#include <stdint.h>
#include <stdio.h>

#include "x86_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { A, B, C, D };

/* Bits of XCR0: the registers that the system saves. */
enum { XMM = 0x2, YMM = 0x6, ZMM = 0xe6, TILES = 0x60000 };

static const struct {
    const char *name;
    unsigned leaf, subleaf, state;
    int word, bit;
} features[] = {
    {"sse4_2", 1, 0, XMM, C, 20},      {"avx", 1, 0, YMM, C, 28},
    {"f16c", 1, 0, YMM, C, 29},        {"fma", 1, 0, YMM, C, 12},
    {"avx2", 7, 0, YMM, B, 5},         {"avx_vnni", 7, 1, YMM, A, 4},
    {"avx512f", 7, 0, ZMM, B, 16},     {"avx512dq", 7, 0, ZMM, B, 17},
    {"avx512bw", 7, 0, ZMM, B, 30},    {"avx512vl", 7, 0, ZMM, B, 31},
    {"avx512_vnni", 7, 0, ZMM, C, 11}, {"avx512_bf16", 7, 1, ZMM, A, 5},
    {"avx512_fp16", 7, 0, ZMM, D, 23}, {"amx_tile", 7, 0, TILES, D, 24},
    {"amx_int8", 7, 0, TILES, D, 25},  {"amx_bf16", 7, 0, TILES, D, 22},
};

static uint64_t kept_registers(void)
{
    unsigned a, b, c, d, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & bit_OSXSAVE) == 0)
        return XMM;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | a;
}

int x86_features(size_t size, char *names)
{
    const uint64_t kept = kept_registers();
    size_t used = 0;
    names[0] = '\0';
    for (size_t i = 0; i < sizeof features / sizeof *features; i++) {
        unsigned word[4];
        if (!__get_cpuid_count(features[i].leaf, features[i].subleaf, &word[A], &word[B], &word[C],
                               &word[D]) ||
            (word[features[i].word] >> features[i].bit & 1) == 0 ||
            (kept & features[i].state) != features[i].state)
            continue;
        used += (size_t)snprintf(names + used, size - used, "%s%s", used > 0 ? " " : "",
                                 features[i].name);
        if (used >= size)
            break;
    }
    return 1;
}

int x86_allow_tiles(void)
{
    const long ask_permission = 0x1023, tile_data = 18; /* ARCH_REQ_XCOMP_PERM, XTILEDATA */
    return syscall(SYS_arch_prctl, ask_permission, tile_data) == 0;
}

#else

int x86_features(size_t size, char *names)
{
    (void)size;
    names[0] = '\0';
    return 0;
}

int x86_allow_tiles(void) { return 0; }

#endif
