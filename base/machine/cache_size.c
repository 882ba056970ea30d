/* cache_size.c - see cache_size.h. sysconf opens no file, so creating an executor stays cheap.
 * Its figure for the third-level cache is ignored: in a virtual machine it is the host's, many
 * times what one core gets. */
#include "cache_size.h"

#include <unistd.h>

size_t machine_second_cache(void)
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
