/* file.c - reads files for the readers; replaces files atomically (base/new_file.c) with messages;
 * checks of writability and of file identity. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/c_locale.h"
#include "io.h"

/* ---- reading ---- */

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

/* ---- replacing ---- */

adj_status io_refuse(const io_place *p, adj_status status, const char *format, ...)
{
    char sentence[ADJ_MESSAGE];
    va_list args;
    va_start(args, format);
    c_vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return adj_error_set(p->error, status, "%s%.300s%s%s", p->prefix, p->path,
                         p->path[0] != '\0' ? ": " : "", sentence);
}

adj_status io_out_of_memory(const io_place *p) { return io_refuse(p, ADJ_ENOMEM, "out of memory"); }

static adj_status system_error(const io_place *p)
{
    return io_refuse(p, ADJ_EIO, "%s", strerror(errno));
}

adj_status adj_file_replace(const char *path, int (*write)(FILE *f, void *user), void *user,
                            adj_error *error)
{
    const char *why = "";
    if (path == NULL || write == NULL)
        return adj_error_set(error, ADJ_EARG, "expected a file name and what writes it");
    const io_place p = {"", path, error};
    adj_status status = new_file_write(path, write, user, &why);
    return status == ADJ_OK ? ADJ_OK : io_refuse(&p, status, "%s", why);
}

adj_status adj_file_identify(const char *path, adj_file_id *id, adj_error *error)
{
    const io_place p = {"", path, error};
    struct stat s;
    if (path == NULL || id == NULL)
        return adj_error_set(error, ADJ_EARG, "expected a file name");
    if (path[0] == '\0')
        return io_refuse(&p, ADJ_EARG, "the file's name is empty");
    memset(id, 0, sizeof *id);
    if (stat(path, &s) != 0) {
        char *target = errno == ENOENT ? new_file_target(path) : NULL;
        if (target == NULL)
            return system_error(&p);
        const char *slash = strrchr(target, '/');
        snprintf(id->name, sizeof id->name, "%s", slash != NULL ? slash + 1 : target);
        const int has_folder = stat(dirname(target), &s) == 0; /* dirname truncates target */
        free(target);
        if (!has_folder)
            return system_error(&p);
    }
    id->device = (uint64_t)s.st_dev;
    id->number = (uint64_t)s.st_ino;
    return ADJ_OK;
}

/* Checks that the file can be opened for writing; a file created by that is removed again. A pipe
 * is not opened, because closing it would end the stream for its reader. */
static adj_status open_in_place(const io_place *p)
{
    struct stat s;
    char *target = NULL;
    int there = stat(p->path, &s) == 0, fd = -1;
    if (there && S_ISDIR(s.st_mode))
        return io_refuse(p, ADJ_EIO, "is a folder");
    if (there && S_ISFIFO(s.st_mode))
        return ADJ_OK;
    if (there)
        fd = open(p->path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    else if (errno == ENOENT && (target = new_file_target(p->path)) != NULL)
        fd = open(target, O_WRONLY | O_CLOEXEC | O_CREAT | O_EXCL, 0666);
    adj_status status = fd >= 0 ? ADJ_OK : system_error(p);
    if (fd >= 0) {
        if (!there)
            unlink(target);
        close(fd);
    }
    free(target);
    return status;
}

adj_status adj_file_check(const char *path, int in_place, adj_error *error)
{
    const io_place p = {"", path, error};
    const char *why = "";
    if (path == NULL)
        return adj_error_set(error, ADJ_EARG, "expected a file name");
    if (path[0] == '\0')
        return io_refuse(&p, ADJ_EARG, "the file's name is empty");
    if (in_place)
        return open_in_place(&p);
    const adj_status status = new_file_write(path, NULL, NULL, &why);
    return status == ADJ_OK ? ADJ_OK : io_refuse(&p, status, "%s", why);
}
