/* text_file.c - small text files that others wrote: rules. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "onednn.h"

FILE *open_regular(const char *path, const char **why)
{
    struct stat s;
    FILE *f = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &s) == 0 && !S_ISREG(s.st_mode))
        *why = "is not a regular file";
    else if (fd < 0 || (f = fdopen(fd, "r")) == NULL)
        *why = strerror(errno);
    if (fd >= 0 && f == NULL)
        close(fd);
    return f;
}

int next_line(FILE *f, char line[LINE])
{
    int n = 0, c;
    while ((c = fgetc(f)) != EOF && c != '\n') {
        if (n == LINE - 1 || (c < ' ' && c != '\t' && c != '\r'))
            return -1;
        line[n++] = (char)c;
    }
    line[n] = '\0';
    if (n > 0 && line[n - 1] == '\r')
        line[n - 1] = '\0';
    return c == EOF ? (n > 0 ? -1 : 0) : 1;
}
