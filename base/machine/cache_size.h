/* cache_size.h - the size of a core's private cache, for blocking. */
#ifndef ADJ_CACHE_SIZE_H
#define ADJ_CACHE_SIZE_H

#include <stddef.h>

/* Returns the bytes of the second-level cache of one core, clamped to 256 KB .. 4 MB; 1 MB if
 * unknown. Read anew at each call, in some nanoseconds. */
size_t machine_second_cache(void);

#endif
