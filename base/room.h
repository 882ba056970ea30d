/* room.h - memory of a list that grows by one element at a time, without a count of its room. */
#ifndef BASE_ROOM_H
#define BASE_ROOM_H

#include <stdint.h>
#include <stdlib.h>

/* Returns the list of n elements, of that size, with room for one more; it may have moved. NULL
 * when out of memory: then the list stays where it is. Its room is n rounded up to a power of two,
 * so all of its elements must have been added so. */
static inline void *with_room(void *list, int64_t n, size_t size)
{
    const int is_full = (n & (n - 1)) == 0;
    return is_full ? realloc(list, (size_t)(n > 0 ? 2 * n : 1) * size) : list;
}

#endif
