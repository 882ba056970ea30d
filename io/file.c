/* file.c - opens files for the readers. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"

const char *io_open(const char *path, int *fd, int64_t *size)
{
    struct stat s;
    /* O_NONBLOCK: opening a pipe without a writer must not hang. */
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0)
        return strerror(errno);
    const char *why = fstat(*fd, &s) != 0   ? strerror(errno)
                      : S_ISDIR(s.st_mode)  ? "is a folder"
                      : !S_ISREG(s.st_mode) ? "is not a regular file"
                                            : NULL;
    if (why != NULL)
        close(*fd);
    else
        *size = s.st_size;
    return why;
}
