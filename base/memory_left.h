/* memory_left.h - how much memory can still be had, as far as the system tells. */
#ifndef ADJ_MEMORY_LEFT_H
#define ADJ_MEMORY_LEFT_H

#include <stddef.h>

typedef struct {
    size_t bytes;      /* SIZE_MAX: not known */
    const char *limit; /* which leaves them: "RLIMIT_AS" */
} memory_left;

/* The limits of this process's address space (RLIMIT_AS, RLIMIT_DATA). What malloc keeps free may
 * be had beyond it. */
memory_left address_space_left(void);
/* The machine's memory and swap space, and the limits of the process's control groups. Memory
 * that holds nothing but copies of files counts as free. root: "", or for tests a folder with a
 * proc and a sys. */
memory_left physical_memory_left(const char *root);

#endif
