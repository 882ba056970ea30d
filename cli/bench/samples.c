/* samples.c - statistics of repeated measurements: median, minimum, quartiles. */
#include "samples.h"

#include <stdlib.h>

enum { MAX_SAMPLES = 1 << 20 };

int samples_add(samples *s, double seconds)
{
    if (s->n == s->max) {
        int max = s->max > 0 ? 2 * s->max : 256;
        double *more =
            max <= MAX_SAMPLES ? realloc(s->seconds, (size_t)max * sizeof *s->seconds) : NULL;
        if (more == NULL)
            return 0;
        s->seconds = more;
        s->max = max;
    }
    s->seconds[s->n++] = seconds;
    return 1;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

spread samples_spread(samples *s)
{
    if (s->n == 0)
        return (spread){0};
    qsort(s->seconds, (size_t)s->n, sizeof *s->seconds, by_value);
    return (spread){.n = s->n,
                    .median = s->seconds[s->n / 2],
                    .min = s->seconds[0],
                    .q1 = s->seconds[s->n / 4],
                    .q3 = s->seconds[(int)((int64_t)s->n * 3 / 4)]};
}

void samples_free(samples *s)
{
    free(s->seconds);
    *s = (samples){0};
}
