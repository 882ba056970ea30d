/* new_file.h - writes a file beside the one it replaces and renames it at the end. All code that
 * replaces files uses it. Also makes temporary folders.
 *
 * It does not depend on the graph; both libraries compile a copy. */
#ifndef ADJ_NEW_FILE_H
#define ADJ_NEW_FILE_H

#include <stdio.h>
#include <stdlib.h>

#include "adjoint.h"

/* Returns the name at the end of path's symbolic links, whether a file exists or not; the caller
 * frees it. NULL with errno on failure. */
char *new_file_target(const char *path);

/* Writes a whole file. write returns 0 on success; NULL only checks that the file could be opened.
 * On failure the old file is unchanged, and *why is a sentence without the file's name. Only
 * regular files are replaced. Waits up to ten seconds for another process that writes the file. */
adj_status new_file_write(const char *path, int (*write)(FILE *f, void *user), void *user,
                          const char **why);

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
