/* replace.c - atomic replacement of files (base/new_file.c) with messages; checks of writability
 * and of file identity. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/c_locale.h"
#include "replace.h"

adj_status io_refuse(const place *p, adj_status status, const char *format, ...)
{
    char sentence[ADJ_MESSAGE];
    va_list args;
    va_start(args, format);
    c_vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return adj_error_set(p->error, status, "%s%.200s%s%s", p->prefix, p->path,
                         p->path[0] != '\0' ? ": " : "", sentence);
}

adj_status io_out_of_memory(const place *p) { return io_refuse(p, ADJ_ENOMEM, "out of memory"); }

static adj_status system_error(const place *p)
{
    return io_refuse(p, ADJ_EIO, "%s", strerror(errno));
}

/* ---- for others ---- */

adj_status adj_file_replace(const char *path, int (*write)(FILE *f, void *user), void *user,
                            adj_error *error)
{
    const char *why = "";
    if (path == NULL || write == NULL)
        return adj_error_set(error, ADJ_EARG, "expected a file name and what writes it");
    const place p = {"", path, error};
    adj_status status = new_file_write(path, write, user, &why);
    return status == ADJ_OK ? ADJ_OK : io_refuse(&p, status, "%s", why);
}

/* Sets id to the numbers of an existing file, else to those of its folder and the name there.
 * Truncates target. */
static adj_status identify(const place *p, char *target, int there, struct stat s, adj_file_id *id)
{
    memset(id, 0, sizeof *id);
    if (!there) {
        const char *slash = strrchr(target, '/'), *name = slash != NULL ? slash + 1 : target;
        snprintf(id->name, sizeof id->name, "%s", name);
        if (stat(dirname(target), &s) != 0)
            return system_error(p);
    }
    id->device = (uint64_t)s.st_dev;
    id->number = (uint64_t)s.st_ino;
    return ADJ_OK;
}

adj_status adj_file_identify(const char *path, int partial, adj_file_id *id, adj_error *error)
{
    const place p = {"", path, error};
    struct stat s = {0};
    if (path == NULL || id == NULL)
        return adj_error_set(error, ADJ_EARG, "expected a file name");
    if (path[0] == '\0')
        return io_refuse(&p, ADJ_EARG, "the file's name is empty");
    int there = !partial && stat(path, &s) == 0;
    if (!partial && !there && errno != ENOENT)
        return system_error(&p);
    char *target = new_file_target(path), *name = target;
    if (target != NULL && partial) {
        if (asprintf(&name, "%s.partial", target) < 0)
            name = NULL;
        free(target);
        there = name != NULL && lstat(name, &s) == 0;
    }
    if (name == NULL)
        return system_error(&p);
    adj_status status = identify(&p, name, there, s, id);
    free(name);
    return status;
}

/* Checks that the file can be opened for writing; a file created by that is removed again. A pipe
 * is not opened, because closing it would end the stream for its reader. */
static adj_status open_in_place(const place *p)
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
    const place p = {"", path, error};
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
