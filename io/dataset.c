/* dataset.c - making, failing and freeing a data set; opening a file; shuffling. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io.h"

adj_status io_dataset_new(adj_dataset **out, dataset **d)
{
    if (out == NULL)
        return ADJ_EARG;
    *d = calloc(1, sizeof **d);
    *out = (adj_dataset *)*d;
    if (*d == NULL)
        return ADJ_ENOMEM;
    (*d)->public.mean = DIGIT_MEAN;
    (*d)->public.deviation = DIGIT_DEVIATION;
    return ADJ_OK;
}

adj_status io_dataset_fail(dataset *d, adj_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(d->public.message, sizeof d->public.message, format, args);
    va_end(args);
    d->public.n = 0;
    return status;
}

adj_status io_fail(char *message, size_t size, adj_status status, const char *format, ...)
{
    if (message != NULL && size > 0) {
        va_list args;
        va_start(args, format);
        vsnprintf(message, size, format, args);
        va_end(args);
    }
    return status;
}

const char *io_open(const char *path, int *fd, int64_t *size)
{
    struct stat s;
    /* O_NONBLOCK: opening a pipe that nobody writes to must not hang. */
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0)
        return strerror(errno);
    const char *why = fstat(*fd, &s) != 0   ? strerror(errno)
                      : !S_ISREG(s.st_mode) ? "is not a regular file"
                                            : NULL;
    if (why != NULL)
        close(*fd);
    else
        *size = s.st_size;
    return why;
}

void adj_dataset_free(adj_dataset *public)
{
    if (public == NULL)
        return;
    dataset *d = (dataset *)public; /* its first member */
    free(d->images);
    free(d->labels);
    free(d);
}

/* Fisher and Yates: order[i] changes places with one of order[0 .. i]. The draw is the high half of
 * random * (i + 1), whose bias of (i + 1) / 2^64 is nothing. */
void adj_shuffle(int64_t n, uint64_t seed, uint64_t epoch, int64_t order[])
{
    uint64_t key = io_key(seed, 0x73687566666c65u, epoch);

    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t i = n - 1; i > 0; i--) {
        __extension__ typedef unsigned __int128 wide;
        int64_t j = (int64_t)(((wide)io_mix(key + (uint64_t)i) * (uint64_t)(i + 1)) >> 64);
        int64_t kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}
