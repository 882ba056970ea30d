/* memory.c - see memory.h. */
#include "memory.h"

#include <stdlib.h>

typedef struct chunk {
    struct chunk *next;
    _Alignas(16) char data[];
} chunk;

void *chunk_alloc(chunk **list, int64_t count, size_t size)
{
    int64_t bytes = 0;
    if (__builtin_mul_overflow(count, (int64_t)size, &bytes) || bytes > INT64_MAX - 64)
        return NULL;
    chunk *c = calloc(1, sizeof *c + (size_t)bytes);
    if (c == NULL)
        return NULL;
    c->next = *list;
    *list = c;
    return c->data;
}

void chunk_free(chunk *list)
{
    while (list != NULL) {
        chunk *next = list->next;
        free(list);
        list = next;
    }
}
