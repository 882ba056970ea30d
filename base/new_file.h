/* new_file.h - writes a file beside the one it replaces and renames it at the end. All code that
 * replaces files uses it.
 *
 * It does not depend on the graph; both libraries compile a copy. */
#ifndef ADJ_NEW_FILE_H
#define ADJ_NEW_FILE_H

#include <stdio.h>
#include <sys/stat.h>

#include "adjoint.h"

/* The new file is open and locked between begin and end. */
typedef struct {
    char *target;  /* the file itself: symbolic links are followed */
    char *partial; /* name of the new file until it is complete: TARGET.partial */
    int fd;        /* -1 if it is not open */
    mode_t mode;   /* mode at the end */
} new_file;

/* Returns the name at the end of path's symbolic links, whether a file exists or not; the caller
 * frees it. NULL with errno on failure. */
char *new_file_target(const char *path);

/* Opens the new file. On failure *why is a sentence without the file's name. Only regular files
 * are replaced. wait: wait up to ten seconds for another process that writes the file. */
adj_status new_file_begin(new_file *f, const char *path, int wait, const char **why);
/* Finishes the new file. If status is not ADJ_OK it is removed instead, status is returned, and
 * *why is unchanged. */
adj_status new_file_end(new_file *f, adj_status status, const char **why);

/* Writes a whole file; write returns 0 on success. */
adj_status new_file_write(const char *path, int wait, int (*write)(FILE *f, void *user), void *user,
                          const char **why);

#endif
