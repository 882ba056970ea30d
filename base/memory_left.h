/* memory_left.h - how much memory this process can still allocate. */
#ifndef ADJ_MEMORY_LEFT_H
#define ADJ_MEMORY_LEFT_H

#include <stddef.h>

typedef struct {
    size_t bytes;      /* SIZE_MAX if unknown */
    const char *limit; /* the limit that leaves them: "RLIMIT_AS" */
} memory_left;

/* Returns what the limits of this process's address space leave (RLIMIT_AS, RLIMIT_DATA). Memory
 * that malloc holds free is not counted. */
memory_left address_space_left(void);
/* Returns what the machine's memory and swap space and the limits of the process's control
 * groups leave. The page cache counts as free. root: "", or in tests a folder with a proc and a
 * sys. */
memory_left physical_memory_left(const char *root);

#endif
