/* hash.h - FNV-1a, 64 bits (Fowler, Noll, Vo), for hash tables and names. Not safe against
 * chosen collisions. */
#ifndef ADJ_HASH_H
#define ADJ_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t hash_bytes(uint64_t hash, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Hashes 64-bit words and the remaining bytes: faster than bytes alone, with another result. Each
 * round also folds the high bits down, since a product carries bits only upward. */
static inline uint64_t hash_words(uint64_t hash, const void *data, size_t bytes)
{
    const char *p = data;
    for (; bytes >= 8; bytes -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        hash = (hash ^ word) * UINT64_C(0x100000001b3);
        hash ^= hash >> 32;
    }
    return hash_bytes(hash, p, bytes);
}

static inline uint64_t hash_text(uint64_t hash, const char *text)
{
    return hash_bytes(hash, text, strlen(text));
}

#endif
