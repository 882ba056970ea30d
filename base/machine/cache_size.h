/* cache_size.h - how large a core's own caches are, for blocks that are to stay in them. */
#ifndef ADJ_CACHE_SIZE_H
#define ADJ_CACHE_SIZE_H

#include <stddef.h>

/* Bytes of the second cache, of a core that has it to itself, from 256 KB to 4 MB; 1 MB where
 * nobody tells. Read anew at each call, in some nanoseconds. */
size_t machine_second_cache(void);

#endif
