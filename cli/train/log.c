/* log.c - see log.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/json.h"
#include "lock.h"
#include "log.h"

/* True if the file ends in a complete line. */
static int ends_in_a_line(const char *path)
{
    struct stat s;
    int last = '\n';
    if (stat(path, &s) != 0 || !S_ISREG(s.st_mode)) /* a pipe must not be read */
        return 1;
    FILE *f = fopen(path, "r");
    if (f != NULL && fseek(f, -1, SEEK_END) == 0)
        last = fgetc(f);
    if (f != NULL)
        fclose(f);
    return last == '\n';
}

/* Opens and locks the file, and empties it unless append is set. Returns -1 with errno on failure.
 */
static int open_file(const char *path, int append)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND, 0666);
    if (fd < 0)
        return -1;
    const int locked = lock_open_file(fd) != 0;
    if (!locked && (append || ftruncate(fd, 0) == 0 || errno == EINVAL)) /* EINVAL: a pipe */
        return fd;
    const int why = locked ? EWOULDBLOCK : errno;
    close(fd);
    errno = why;
    return -1;
}

FILE *log_open(const char *path, int append)
{
    int whole = !append || ends_in_a_line(path);
    const int fd = open_file(path, append);
    FILE *f = fd >= 0 ? fdopen(fd, "a") : NULL;
    if (f == NULL) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    if (setvbuf(f, NULL, _IONBF, 0) != 0) {
        fclose(f);
        return NULL;
    }
    if (!whole)
        fputc('\n', f); /* a failure shows in the next line */
    return f;
}

int log_line(FILE *f, json_t *object)
{
    char *text = f != NULL && object != NULL
                     ? json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9))
                     : NULL;
    size_t n = text != NULL ? strlen(text) : 0;
    int failed = object == NULL || (f != NULL && text == NULL) || json_is_out_of_memory();
    if (text != NULL && !failed) {
        text[n] = '\n'; /* instead of the final 0: one write of the whole line */
        failed |= fwrite(text, 1, n + 1, f) != n + 1;
    }
    json_decref(object);
    free(text);
    return failed;
}
