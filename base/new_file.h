/* new_file.h - a file that is written beside the one it replaces and then takes its name.
 *
 * It needs nothing of the graph's and is compiled into both libraries, each with its own copy: the
 * one place that knows how a file is replaced. */
#ifndef ADJ_NEW_FILE_H
#define ADJ_NEW_FILE_H

#include <stdio.h>
#include <sys/stat.h>

#include "adjoint.h"

/* The new file is open and locked between begin and end. */
typedef struct {
    char *target;  /* the file itself: symbolic links are followed */
    char *partial; /* the new one's name until it is whole: TARGET.partial */
    int fd;        /* -1: it is not open */
    mode_t mode;   /* what it has at last */
} new_file;

/* The name at the end of path's symbolic links, whether there is a file or not; to be freed. NULL
 * with errno on failure. */
char *new_file_target(const char *path);

/* On failure *why is a sentence without the file's name. What is there and is no regular file is
 * never replaced. wait: for another process that writes the file, up to ten seconds. */
adj_status new_file_begin(new_file *f, const char *path, int wait, const char **why);
/* status != ADJ_OK throws the new file away, and is returned; *why is then left as it is. */
adj_status new_file_end(new_file *f, adj_status status, const char **why);

/* All of it; write returns 0 on success. */
adj_status new_file_write(const char *path, int wait, int (*write)(FILE *f, void *user), void *user,
                          const char **why);

#endif
