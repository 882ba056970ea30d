/* dataset.c - making, failing and freeing a data set; shuffling. */
#include <stdarg.h>
#include <stdlib.h>

#include "io.h"

dataset *io_dataset_new(void)
{
    dataset *d = calloc(1, sizeof *d);
    if (d != NULL) {
        d->public.mean = DIGIT_MEAN;
        d->public.deviation = DIGIT_DEVIATION;
    }
    return d;
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
