/* memory.h - memory of an import or export: blocks in a list, freed together. */
#ifndef ONNX_MEMORY_H
#define ONNX_MEMORY_H

#include <stddef.h>
#include <stdint.h>

struct chunk;
/* Returns zeroed memory; NULL when out of memory or if the size overflows. */
void *chunk_alloc(struct chunk **list, int64_t count, size_t size);
void chunk_free(struct chunk *list);

#endif
