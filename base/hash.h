/* hash.h - FNV-1a, 64 bits (Fowler, Noll, Vo), for hash tables and names. Not safe against
 * chosen collisions. */
#ifndef ADJ_HASH_H
#define ADJ_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static inline uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = hash_bytes(hash, text, 1);
    return hash;
}

#endif
