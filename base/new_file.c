/* new_file.c - replaces a file by a complete new one, or leaves the old one unchanged.
 *
 * Bytes go to FILE.partial beside the old file and are flushed to the disk; then the new file is
 * renamed over the old one. A lock keeps two writers of one file apart. A symbolic link stays:
 * the file that it leads to is replaced or created. Before its first byte is written, the new
 * file gets the old one's mode and owner as far as the system permits; otherwise it is readable
 * by fewer users, never by more. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "new_file.h"

/* The new file is open and locked between begin and end. */
typedef struct {
    char *target;  /* the file itself: symbolic links are followed */
    char *partial; /* name of the new file until it is complete: TARGET.partial */
    int fd;        /* -1 if it is not open */
    mode_t mode;   /* mode at the end */
} new_file;

static const char in_use[] = "in use by another process";

static adj_status fail(adj_status status, const char *sentence, const char **why)
{
    *why = sentence;
    return status;
}

static adj_status system_error(const char **why)
{
    return errno == ENOMEM ? fail(ADJ_ENOMEM, "out of memory", why)
                           : fail(ADJ_EIO, strerror(errno), why);
}

/* ---- names ---- */

/* Returns the target of the link at path, relative to the link's folder; NULL with errno on
 * failure. */
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

char *new_file_target(const char *path)
{
    enum { MAX_LINKS = 40 };
    struct stat s;
    char *name = strdup(path);
    for (int i = 0; name != NULL && lstat(name, &s) == 0 && S_ISLNK(s.st_mode); i++) {
        char *next = i < MAX_LINKS ? read_link(name) : NULL;
        errno = i < MAX_LINKS ? errno : ELOOP;
        free(name);
        name = next;
    }
    return name;
}

static int same_inode(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

/* True if the name is that of the open file. */
static int is_named(int fd, const char *name)
{
    struct stat opened, named;
    return fstat(fd, &opened) == 0 && lstat(name, &named) == 0 && same_inode(&named, &opened);
}

/* Sets *file to the status of what path leads to (st_nlink 0: nothing) and *target to the name
 * that its links spell. *same is 0 if the two differ: a link in /proc may spell a name that
 * leads elsewhere, and another process may have replaced the file between the two calls. */
static adj_status look_at(const char *path, char **target, struct stat *file, int *same,
                          const char **why)
{
    struct stat named;
    *file = (struct stat){0};
    int there = stat(path, file) == 0;
    if (!there && errno != ENOENT)
        return system_error(why);
    if (there && !S_ISREG(file->st_mode)) /* never rename over a device */
        return fail(ADJ_EIO, "is not a regular file", why);
    *target = new_file_target(path);
    if (*target == NULL)
        return system_error(why);
    int found = lstat(*target, &named) == 0;
    *same = found == there && (!found || same_inode(&named, file));
    return ADJ_OK;
}

/* Sets *target to the name of path's file and *old to its status; st_nlink is 0 if there is no
 * file. */
static adj_status find_target(const char *path, char **target, struct stat *old, const char **why)
{
    enum { TRIES = 100 };
    if (path[0] == '\0')
        return fail(ADJ_EARG, "the file's name is empty", why);
    for (int i = 0; i < TRIES; i++) {
        int same = 0;
        free(*target);
        *target = NULL;
        adj_status status = look_at(path, target, old, &same, why);
        if (status != ADJ_OK || same)
            return status;
    }
    return fail(ADJ_EIO, "cannot resolve symbolic link", why);
}

/* ---- the new file ---- */

/* Waits for the lock up to a time limit. Returns 0 if it is locked, or if this file system has
 * no locks. */
static int lock(int fd)
{
    enum { TRIES = 200, PAUSE = 50 * 1000 * 1000 };
    const struct timespec pause = {0, PAUSE};
    for (int i = 0; i < TRIES; i++) {
        if (i > 0)
            nanosleep(&pause, NULL);
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && errno != EINTR))
            return 0;
    }
    return -1;
}

/* Removes a file with the new file's name: a killed process left it, or another process is
 * writing it, which is waited for. Nothing is ever written into it, since it may belong to
 * another user or have another name too. */
static adj_status clear_name(const char *name, const char **why)
{
    struct stat s;
    if (lstat(name, &s) != 0)
        return errno == ENOENT ? ADJ_OK : system_error(why);
    if (!S_ISREG(s.st_mode))
        return fail(ADJ_EIO, "its temporary file, .partial, is not a regular file", why);
    const int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = open(name, O_WRONLY | flags);
    if (fd < 0)
        fd = open(name, O_RDONLY | flags);
    if (fd < 0 && errno == ENOENT) /* the writer has ended; the name is another new file's */
        return ADJ_OK;
    int locked = fd < 0 || lock(fd) == 0; /* unreadable: its lock cannot be tested */
    adj_status status = locked ? ADJ_OK : fail(ADJ_EIO, in_use, why);
    if (locked && (fd < 0 || is_named(fd, name)) && unlink(name) != 0 && errno != ENOENT)
        status = system_error(why);
    if (fd >= 0)
        close(fd);
    return status;
}

/* Creates and locks the empty file of that name. The name is always the same, so that killed
 * processes leave at most one file. Retries if another process removed the file before it was
 * locked. */
static adj_status open_new(new_file *f, mode_t mode, const char **why)
{
    enum { TRIES = 100 };
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    for (int i = 0; i < TRIES; i++) {
        f->fd = open(f->partial, flags, mode);
        if (f->fd < 0 && errno != EEXIST)
            return system_error(why);
        if (f->fd >= 0) {
            if (lock(f->fd) == 0 && is_named(f->fd, f->partial))
                return ADJ_OK;
            close(f->fd);
            f->fd = -1;
        }
        adj_status status = clear_name(f->partial, why);
        if (status != ADJ_OK)
            return status;
    }
    return fail(ADJ_EIO, in_use, why);
}

/* Sets the owner first, since that may clear bits of the mode. If the group differs from the old
 * one, it gets no more than others do. The owner may write until the end, so that the lock of a
 * killed process's file can be tested. */
static adj_status keep_mode(new_file *f, const struct stat *old, const char **why)
{
    struct stat s;
    if (old->st_nlink == 0)
        return fstat(f->fd, &s) == 0 ? (f->mode = s.st_mode & 0777, ADJ_OK) : system_error(why);
    int kept =
        fchown(f->fd, old->st_uid, old->st_gid) == 0 || fchown(f->fd, (uid_t)-1, old->st_gid) == 0;
    if (fstat(f->fd, &s) != 0)
        return system_error(why);
    f->mode = old->st_mode & 0777;
    if (!kept || s.st_gid != old->st_gid)
        f->mode &= ~(mode_t)070 | (f->mode & 07) << 3;
    return fchmod(f->fd, f->mode | 0200) == 0 ? ADJ_OK : system_error(why);
}

/* Flushes the folder, so that the rename reaches the disk. An error is ignored: some file
 * systems cannot. */
static void flush_folder(char *name)
{
    int fd = open(dirname(name), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
}

/* Flushes the file, gives it its final mode and renames it. */
static adj_status finish(const new_file *f, const char **why)
{
    if (!is_named(f->fd, f->partial))
        return fail(ADJ_EIO, "its temporary file, .partial, was removed", why);
    if ((!(f->mode & 0200) && fchmod(f->fd, f->mode) != 0) || fsync(f->fd) != 0 ||
        rename(f->partial, f->target) != 0)
        return system_error(why);
    return ADJ_OK;
}

/* Finishes the new file. If status is not ADJ_OK it is removed instead, status is returned, and
 * *why is unchanged. */
static adj_status end(const new_file *f, adj_status status, const char **why)
{
    if (f->fd >= 0) {
        if (status == ADJ_OK)
            status = finish(f, why);
        if (status != ADJ_OK && is_named(f->fd, f->partial))
            unlink(f->partial);
        close(f->fd); /* also releases the lock, after the name is free for others */
        if (status == ADJ_OK)
            flush_folder(f->partial);
    }
    free(f->partial);
    free(f->target);
    return status;
}

/* Opens the new file. */
static adj_status begin(new_file *f, const char *path, const char **why)
{
    struct stat old;
    adj_status status = find_target(path, &f->target, &old, why);
    char *partial = NULL;
    if (status == ADJ_OK && asprintf(&partial, "%s.partial", f->target) < 0)
        return fail(ADJ_ENOMEM, "out of memory", why);
    f->partial = partial;
    if (status == ADJ_OK) /* a file that may be secret is never open to others, not even empty */
        status = open_new(f, old.st_nlink == 0 ? 0666 : 0600, why);
    return status == ADJ_OK ? keep_mode(f, &old, why) : status;
}

static adj_status fill(const new_file *f, int (*write)(FILE *f, void *user), void *user,
                       const char **why)
{
    int fd = dup(f->fd); /* fclose closes the duplicate only; the lock stays */
    FILE *stream = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (stream == NULL) {
        const adj_status status = system_error(why);
        if (fd >= 0)
            close(fd);
        return status;
    }
    errno = 0;
    int failed = write(stream, user) != 0;
    failed |= fclose(stream) != 0;
    if (!failed)
        return ADJ_OK;
    return errno != 0 ? system_error(why) : fail(ADJ_EIO, "cannot be written", why);
}

adj_status new_file_write(const char *path, int (*write)(FILE *f, void *user), void *user,
                          const char **why)
{
    new_file f = {.fd = -1};
    adj_status status = begin(&f, path, why);
    const int is_check = status == ADJ_OK && write == NULL;
    if (status == ADJ_OK)
        status = is_check ? ADJ_EIO : fill(&f, write, user, why);
    status = end(&f, status, why); /* deletes the empty file of a check */
    return is_check ? ADJ_OK : status;
}
