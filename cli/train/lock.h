/* lock.h - keeps two trainings from writing one file. */
#ifndef CLI_TRAIN_LOCK_H
#define CLI_TRAIN_LOCK_H

/* A file that is replaced has a lock of its own beside it, FILE.lock: the file's own lock would go
 * with the old file. A killed training leaves an unlocked FILE.lock, which the next one takes. */
typedef struct {
    char *path; /* NULL: not held */
    int fd;
} file_lock;

/* Locks an open file. Returns 0, or -1 with errno EWOULDBLOCK if another training holds it. Pipes,
 * devices and some file systems have no locks, and are not refused. */
int lock_open_file(int fd);

/* Creates and locks FILE.lock; does nothing for path NULL. Returns 0, or -1 with errno. */
int lock_take(file_lock *l, const char *path);
/* Removes FILE.lock, if it is held. */
void lock_release(file_lock *l);

/* Returns the message for errno after a lock failed or a file could not be opened. */
const char *lock_error(void);

#endif
