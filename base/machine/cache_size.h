/* cache_size.h - the size of a core's private cache, for blocking. */
#ifndef ADJ_CACHE_SIZE_H
#define ADJ_CACHE_SIZE_H

#include <stddef.h>

/* Returns the bytes of the second-level cache of one core, clamped to 256 KB .. 4 MB; 1 MB if
 * unknown. Cheap enough to read at each call. */
size_t machine_second_cache(void);

#endif
