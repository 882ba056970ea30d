/* file.c - opens and reads files for the readers. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
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

int64_t io_read(int fd, void *to, int64_t n)
{
    int64_t have = 0;
    while (have < n) {
        const ssize_t got = read(fd, (char *)to + have, (size_t)(n - have));
        if (got == 0)
            break;
        if (got < 0 && errno != EINTR)
            return -1;
        have += got > 0 ? got : 0;
    }
    return have;
}

int64_t io_read_start(const char *path, void *to, int64_t n, const char **why)
{
    int fd;
    int64_t size;
    *why = io_open(path, &fd, &size);
    if (*why != NULL)
        return -1;
    const int64_t got = io_read(fd, to, n);
    *why = got < 0 ? strerror(errno) : NULL;
    close(fd);
    return got;
}

adj_status io_load(const char *path, int64_t most, char **bytes, int64_t *n, const char **why)
{
    int fd;
    int64_t size = 0;
    *bytes = NULL;
    *n = 0;
    *why = io_open(path, &fd, &size);
    if (*why != NULL)
        return ADJ_EIO;
    size = size < most ? size : most;
    *bytes = malloc((size_t)size + 1);
    if (*bytes == NULL)
        *why = "out of memory";
    else if ((*n = io_read(fd, *bytes, size)) < 0)
        *why = strerror(errno);
    else
        (*bytes)[*n] = '\0';
    close(fd);
    return *why == NULL ? ADJ_OK : *bytes == NULL ? ADJ_ENOMEM : ADJ_EIO;
}
