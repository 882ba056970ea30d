/* region.c - memory: the caller's allocator or malloc, with huge pages; aligned blocks, and
 * regions that are freed all at once. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "graph.h"

enum { ALIGNMENT = 64, REGION_ALIGNMENT = 16, BLOCK_BYTES = 16 * 1024 };
/* Bytes of a huge page of x86-64 and of most aarch64. Less memory than two of them uses small
 * pages. */
enum { HUGE_PAGE = 2 << 20, MIN_HUGE_BYTES = 2 * HUGE_PAGE };

/* Requests huge pages for the part of a block that covers whole ones; no effect where the system
 * does not offer them. TLBs reach more memory with them. */
static void ask_for_huge_pages(void *p, size_t bytes)
{
    const uintptr_t start = (uintptr_t)p, lead = (HUGE_PAGE - start % HUGE_PAGE) % HUGE_PAGE;
    (void)madvise((char *)p + lead, (bytes - lead) / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
}

static void *default_alloc(void *user, size_t bytes)
{
    void *p = malloc(bytes);
    (void)user;
    if (p != NULL && bytes >= MIN_HUGE_BYTES)
        ask_for_huge_pages(p, bytes);
    return p;
}

static void default_free(void *user, void *p)
{
    (void)user;
    free(p);
}

adj_allocator default_allocator(void)
{
    return (adj_allocator){.alloc = default_alloc, .free = default_free};
}

int take_allocator(adj_allocator *a, const adj_allocator *given)
{
    int is_whole = given == NULL || (given->alloc != NULL && given->free != NULL);
    if (given != NULL && is_whole)
        *a = *given;
    return is_whole;
}

/* The pointer from the allocator is stored right before the aligned block. */
void *adj_alloc(const adj_allocator *a, size_t bytes)
{
    size_t extra = ALIGNMENT + sizeof(void *);
    if (bytes > SIZE_MAX - extra)
        return NULL;
    void *given = a->alloc(a->user, bytes + extra);
    if (given == NULL)
        return NULL;
    uintptr_t start = (uintptr_t)given + sizeof(void *);
    void *p = (char *)given + sizeof(void *) + (ALIGNMENT - start % ALIGNMENT) % ALIGNMENT;
    ((void **)p)[-1] = given;
    return memset(p, 0, bytes);
}

void adj_release(const adj_allocator *a, void *p)
{
    if (p != NULL)
        a->free(a->user, ((void **)p)[-1]);
}

struct region_block {
    region_block *older;
    size_t used, bytes; /* bytes that follow the struct */
};

void region_free(region *p)
{
    while (p->block != NULL) {
        region_block *older = p->block->older;
        adj_release(&p->allocator, p->block);
        p->block = older;
    }
}

static region_block *add_block(region *p, size_t bytes)
{
    size_t header =
        (sizeof(region_block) + REGION_ALIGNMENT - 1) / REGION_ALIGNMENT * REGION_ALIGNMENT;
    size_t wanted = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
    if (wanted > SIZE_MAX - header)
        return NULL;
    region_block *b = adj_alloc(&p->allocator, header + wanted);
    if (b == NULL)
        return NULL;
    b->older = p->block;
    b->used = header;
    b->bytes = header + wanted;
    p->block = b;
    return b;
}

void *region_alloc(region *p, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2)
        return NULL;
    bytes = (bytes + REGION_ALIGNMENT - 1) / REGION_ALIGNMENT * REGION_ALIGNMENT;
    region_block *b = p->block;
    if (b == NULL || b->bytes - b->used < bytes)
        b = add_block(p, bytes);
    if (b == NULL)
        return NULL;
    void *piece = (char *)b + b->used;
    b->used += bytes;
    return piece;
}

char *region_string(region *p, const char *s)
{
    size_t n = strlen(s) + 1;
    char *copy = region_alloc(p, n, 1);
    return copy != NULL ? memcpy(copy, s, n) : NULL;
}

void *region_grow(region *p, void *list, int n, int *capacity, size_t size)
{
    int more = *capacity > 0 ? 2 * *capacity : 64;
    if (n < *capacity)
        return list;
    void *bigger = region_alloc(p, (size_t)more, size);
    if (bigger == NULL)
        return NULL;
    *capacity = more;
    return n > 0 ? memcpy(bigger, list, (size_t)n * size) : bigger;
}
