/* replace.c - replaces a file by one that is whole, or leaves it as it is.
 *
 * The bytes go to FILE.partial beside the old one, are flushed to the disk, and the new file takes
 * the old one's name. A lock keeps two writers of one file apart. A symbolic link stays: the file
 * that it leads to is replaced, or made. The new file has the old one's mode from before the first
 * byte is in it, and its owner as far as that is permitted. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "replace.h"

static const char partial[] = ".partial";

static adj_status refuse(const place *p, adj_status status, const char *sentence)
{
    const char *colon = p->path[0] != '\0' ? ": " : "";
    io_fail(p->message, p->size, status, "%s%.200s%s%s", p->what, p->path, colon, sentence);
    return status;
}

adj_status io_out_of_memory(const place *p) { return refuse(p, ADJ_ENOMEM, "out of memory"); }

adj_status io_system_error(const place *p) { return refuse(p, ADJ_EIO, strerror(errno)); }

/* ---- names ---- */

/* What the link at path says, seen from the link's folder; NULL with errno on failure. */
static char *read_link(const char *path)
{
    char to[4096];
    ssize_t n = readlink(path, to, sizeof to);
    if (n < 0 || (size_t)n == sizeof to) {
        errno = n < 0 ? errno : ENAMETOOLONG;
        return NULL;
    }
    const char *slash = strrchr(path, '/');
    size_t folder = to[0] != '/' && slash != NULL ? (size_t)(slash - path) + 1 : 0;
    char *joined = malloc(folder + (size_t)n + 1);
    if (joined == NULL)
        return NULL;
    memcpy(joined, path, folder);
    memcpy(joined + folder, to, (size_t)n);
    joined[folder + (size_t)n] = '\0';
    return joined;
}

/* The name at the end of path's symbolic links, whether there is a file or not; NULL with errno. */
static char *follow_links(const char *path)
{
    enum { MOST_LINKS = 40 };
    struct stat s;
    char *name = strdup(path);
    for (int i = 0; name != NULL && lstat(name, &s) == 0 && S_ISLNK(s.st_mode); i++) {
        char *next = i < MOST_LINKS ? read_link(name) : NULL;
        errno = i < MOST_LINKS ? errno : ELOOP;
        free(name);
        name = next;
    }
    return name;
}

static int same_inode(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

/* The name of path's file in *target, to be freed, and what is there in *old, whose st_nlink is 0
 * if that is nothing. A link of /proc may read as a name that leads elsewhere. */
static adj_status find_target(const place *p, char **target, struct stat *old)
{
    struct stat named;
    *target = NULL;
    *old = (struct stat){0};
    if (p->path[0] == '\0')
        return refuse(p, ADJ_EARG, "the file's name is empty");
    int there = stat(p->path, old) == 0;
    if (!there && errno != ENOENT)
        return io_system_error(p);
    if (there && !S_ISREG(old->st_mode)) /* never rename over a device */
        return refuse(p, ADJ_EIO, "is not a regular file");
    *target = follow_links(p->path);
    if (*target == NULL)
        return io_system_error(p);
    int found = lstat(*target, &named) == 0;
    if (found != there || (found && !same_inode(&named, old)))
        return refuse(p, ADJ_EIO, "its link leads to no name");
    return ADJ_OK;
}

/* ---- the new file ---- */

/* Waits for the lock, but not for ever. 0: it is held, or there are no locks on this file system.
 */
static int lock(int fd)
{
    enum { TRIES = 200, PAUSE = 50 * 1000 * 1000 };
    const struct timespec pause = {0, PAUSE};
    for (int i = 0; i < TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && errno != EINTR))
            return 0;
        nanosleep(&pause, NULL);
    }
    errno = EBUSY;
    return -1;
}

/* The empty file of that name, for this process alone; -1 on failure. The name is always the same,
 * so what a killed process left behind is used by the next. Whoever held the lock before may have
 * renamed the file meanwhile: then it is the finished one, and the name is opened again. */
static int open_partial(const char *name)
{
    struct stat held, named;
    for (;;) {
        int fd = open(name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
        if (fd < 0)
            return -1;
        int failed = fstat(fd, &held) != 0 || lock(fd) != 0;
        if (!failed && !S_ISREG(held.st_mode)) {
            errno = EEXIST;
            failed = 1;
        }
        int same = !failed && lstat(name, &named) == 0 && same_inode(&named, &held);
        if (same && ftruncate(fd, 0) == 0)
            return fd;
        int error = errno;
        close(fd);
        errno = error;
        if (failed || same)
            return -1;
    }
}

/* Owner first: changing it may take bits of the mode away. */
static int keep_mode(int fd, const struct stat *old)
{
    if (old->st_nlink == 0)
        return 0;
    if (fchown(fd, old->st_uid, old->st_gid) != 0)
        (void)fchown(fd, (uid_t)-1, old->st_gid);
    return fchmod(fd, old->st_mode & 0777);
}

/* The rename itself reaches the disk with the folder. Not every file system can do that: no error.
 */
static void flush_folder(char *name)
{
    int fd = open(dirname(name), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

adj_status io_replace_begin(const place *p, replacement *r)
{
    struct stat old;
    *r = (replacement){.fd = -1};
    adj_status status = find_target(p, &r->target, &old);
    if (status == ADJ_OK) {
        size_t size = strlen(r->target) + sizeof partial;
        r->partial = malloc(size);
        if (r->partial == NULL)
            status = io_out_of_memory(p);
        else
            snprintf(r->partial, size, "%s%s", r->target, partial);
    }
    if (status == ADJ_OK && (r->fd = open_partial(r->partial)) < 0)
        status = io_system_error(p);
    if (status == ADJ_OK && keep_mode(r->fd, &old) != 0)
        status = io_system_error(p);
    return status == ADJ_OK ? ADJ_OK : io_replace_end(p, r, status);
}

adj_status io_replace_end(const place *p, replacement *r, adj_status status)
{
    if (r->fd >= 0) {
        if (status == ADJ_OK && fsync(r->fd) != 0)
            status = io_system_error(p);
        if (status == ADJ_OK && rename(r->partial, r->target) != 0)
            status = io_system_error(p);
        if (status != ADJ_OK)
            unlink(r->partial);
        close(r->fd); /* and with it the lock, not before the name is free for others */
        if (status == ADJ_OK)
            flush_folder(r->partial);
    }
    free(r->partial);
    free(r->target);
    *r = (replacement){.fd = -1};
    return status;
}

/* ---- for others ---- */

adj_status adj_file_replace(const char *path, int (*write)(FILE *f, void *user), void *user,
                            char *message, size_t size)
{
    const place p = {"", path, message, size};
    replacement r;
    if (path == NULL || write == NULL)
        return io_fail(message, size, ADJ_EARG, "expected a file name and what writes it");
    adj_status status = io_replace_begin(&p, &r);
    if (status != ADJ_OK)
        return status;
    int fd = dup(r.fd); /* the stream closes its own; the lock stays */
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (f == NULL) {
        status = io_system_error(&p);
        if (fd >= 0)
            close(fd);
    } else {
        errno = 0;
        int failed = write(f, user) != 0;
        failed |= fclose(f) != 0;
        if (failed)
            status = errno != 0 ? io_system_error(&p) : refuse(&p, ADJ_EIO, "cannot be written");
    }
    return io_replace_end(&p, &r, status);
}

/* The numbers of a file that is there; of one that is not, its folder's and its name. */
static adj_status identify(const place *p, char *target, const struct stat *old, adj_file_id *id)
{
    struct stat s = *old;
    memset(id, 0, sizeof *id);
    if (old->st_nlink == 0) {
        const char *slash = strrchr(target, '/'), *name = slash != NULL ? slash + 1 : target;
        snprintf(id->name, sizeof id->name, "%s", name);
        if (stat(dirname(target), &s) != 0)
            return io_system_error(p);
    }
    id->device = (uint64_t)s.st_dev;
    id->number = (uint64_t)s.st_ino;
    return ADJ_OK;
}

/* Whether the file can be opened for writing; a new one is removed again. */
static adj_status open_in_place(const place *p, const char *target, int new)
{
    int flags = new ? O_CREAT | O_EXCL : O_NONBLOCK | O_NOCTTY;
    int fd = open(target, O_WRONLY | O_CLOEXEC | flags, 0666);
    if (fd < 0)
        return io_system_error(p);
    if (new)
        unlink(target);
    close(fd);
    return ADJ_OK;
}

adj_status adj_file_check(const char *path, int in_place, adj_file_id *id, char *message,
                          size_t size)
{
    const place p = {"", path, message, size};
    struct stat old;
    char *target;
    replacement r;
    if (path == NULL || id == NULL)
        return io_fail(message, size, ADJ_EARG, "expected a file name");
    adj_status status = find_target(&p, &target, &old);
    if (status == ADJ_OK && in_place)
        status = open_in_place(&p, target, old.st_nlink == 0);
    else if (status == ADJ_OK && (status = io_replace_begin(&p, &r)) == ADJ_OK)
        (void)io_replace_end(&p, &r, ADJ_EIO); /* which throws the empty file away */
    if (status == ADJ_OK)
        status = identify(&p, target, &old, id);
    free(target);
    return status;
}
