/* temporary.h - a folder for files that are removed again. */
#ifndef ADJ_TEMPORARY_H
#define ADJ_TEMPORARY_H

#include <stdio.h>
#include <stdlib.h>

/* Creates a folder in the one that the environment variable TMPDIR names, else in /tmp, and writes
 * its path. Returns 0 on failure, with errno and the path that was tried. */
static inline int temporary_folder_new(char *path, size_t size)
{
    const char *top = getenv("TMPDIR");
    const int n =
        snprintf(path, size, "%s/adjoint-XXXXXX", top != NULL && top[0] != '\0' ? top : "/tmp");
    return n < (int)size && mkdtemp(path) != NULL;
}

#endif
