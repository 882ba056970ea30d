/* philox.h - Philox4x32-10 once more, for tests of dropout: with 64-bit halves instead of words. */
#ifndef TESTS_PHILOX_H
#define TESTS_PHILOX_H

#include <stdint.h>

/* Word 0 to 3 of the block that counter {block, step, 0} and the key give. */
static inline uint32_t philox_word(uint64_t block, uint32_t step, uint64_t key, int word)
{
    uint64_t low = block, high = step;
    for (int round = 0; round < 10; round++) {
        uint64_t a = (low & 0xffffffff) * 3528531795u, b = (high & 0xffffffff) * 3449720151u;
        uint64_t next_low = (b << 32) | ((b >> 32) ^ (low >> 32) ^ (key & 0xffffffff));
        high = (a << 32) | ((a >> 32) ^ (high >> 32) ^ (key >> 32));
        low = next_low;
        key = (((key >> 32) + 3144134277u) << 32) | (uint32_t)(key + 2654435769u);
    }
    return (uint32_t)((word < 2 ? low : high) >> (word % 2 * 32));
}

#endif
