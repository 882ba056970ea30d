/* cache_size.h - the size of a core's private cache, for blocking. sysconf opens no file, so
 * creating an executor stays cheap. Its figure for the third-level cache is ignored: in a virtual
 * machine it is the host's, many times what one core gets. */
#ifndef ADJ_CACHE_SIZE_H
#define ADJ_CACHE_SIZE_H

#include <stddef.h>
#include <unistd.h>

/* Returns the bytes of the second-level cache of one core, clamped to 256 KB .. 4 MB; 1 MB if
 * unknown. Cheap enough to read at each call. */
static inline size_t machine_second_cache(void)
{
    const long usual = 1L << 20, min = 256L << 10, max = 4L << 20;
    long bytes = 0;
#ifdef _SC_LEVEL2_CACHE_SIZE /* glibc only */
    bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
    if (bytes <= 0)
        bytes = usual;
    return (size_t)(bytes < min ? min : bytes > max ? max : bytes);
}

#endif
