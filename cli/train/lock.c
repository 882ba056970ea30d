/* lock.c - see lock.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lock.h"

int lock_open_file(int fd)
{
    struct stat s;
    const int is_locked = fstat(fd, &s) == 0 && S_ISREG(s.st_mode) &&
                          flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    return is_locked ? -1 : 0;
}

/* Returns the name of the lock of the file that path leads to, or NULL with errno. */
static char *name_of(const char *path)
{
    char *name = NULL, *file = realpath(path, NULL);
    if (asprintf(&name, "%s.lock", file != NULL ? file : path) < 0)
        name = NULL;
    free(file);
    return name;
}

/* True if the open file still has its name: its previous owner may have removed it. */
static int is_named(int fd, const char *name)
{
    struct stat opened, named;
    return fstat(fd, &opened) == 0 && lstat(name, &named) == 0 && opened.st_ino == named.st_ino &&
           opened.st_dev == named.st_dev;
}

int lock_take(file_lock *l, const char *path)
{
    if (path == NULL)
        return 0;
    char *name = name_of(path);
    int fd = -1, is_held = 0;
    while (name != NULL && !is_held) {
        fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd < 0 || lock_open_file(fd) != 0)
            break;
        is_held = is_named(fd, name);
        if (!is_held)
            close(fd);
    }
    if (is_held) {
        *l = (file_lock){name, fd};
        return 0;
    }
    const int why = name == NULL ? ENOMEM : errno;
    if (fd >= 0)
        close(fd);
    free(name);
    errno = why;
    return -1;
}

void lock_release(file_lock *l)
{
    if (l->path == NULL)
        return;
    unlink(l->path); /* before unlocking, while no other process can have the name */
    close(l->fd);
    free(l->path);
    *l = (file_lock){0};
}

const char *lock_error(void)
{
    return errno == EWOULDBLOCK ? "in use by another training run" : strerror(errno);
}
