/* cache_size.c - see cache_size.h. The C library is asked, which takes no file: executors are made
 * by the thousand. What it tells of the third cache is not used: in a virtual machine that is the
 * host's, many times what a core gets. */
#include "cache_size.h"

#include <unistd.h>

size_t machine_second_cache(void)
{
    const long usual = 1L << 20, min = 256L << 10, max = 4L << 20;
    long bytes = 0;
#ifdef _SC_LEVEL2_CACHE_SIZE /* glibc's */
    bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
    if (bytes <= 0)
        bytes = usual;
    return (size_t)(bytes < min ? min : bytes > max ? max : bytes);
}
