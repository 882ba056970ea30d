/* nearest.h - "did you mean": the name with the smallest edit distance. It needs nothing of the
 * graph's and is compiled into the library and into the tool, each with its own copy. */
#ifndef ADJ_NEAREST_H
#define ADJ_NEAREST_H

#include <stddef.h>

/* The one of n names (at stride bytes from each other, each a const char *) that is most like name,
 * n > 0. */
const char *nearest_of(const char *name, const void *names, int n, size_t stride);
/* The same, but NULL if none is close. */
const char *nearest_name(const char *name, const void *names, int n, size_t stride);

#endif
