/* prediction.c - see prediction.h. */
#include "prediction.h"

#include <math.h>

enum { SHORT = 2048 * 4 /* bytes: as in backends/mpi/reduction.c */ };

static double levels_of(int ranks) { return ceil(log2(ranks)); }

double scale_reduction(const scale_link *l, int ranks, double bytes)
{
    const double levels = levels_of(ranks), message = 8 * bytes / l->bits_per_second;
    const double part = (double)(ranks - 1) / ranks;
    if (ranks < 2)
        return 0;
    if ((ranks & (ranks - 1)) != 0)
        return levels * (2 * (l->latency + message) + bytes / l->adds);
    if (bytes < SHORT)
        return levels * (l->latency + message + bytes / l->adds);
    return 2 * levels * l->latency + 2 * part * message + part * bytes / l->adds;
}

double scale_ring(const scale_link *l, int ranks, double bytes)
{
    const double part = (double)(ranks - 1) / ranks;
    return 2 * (ranks - 1) * l->latency + 2 * part * 8 * bytes / l->bits_per_second +
           part * bytes / l->adds;
}

double scale_predict(const scale_step *s, const scale_link *l, int ranks, double *exposed)
{
    double arrived = 0, now = s->backward, bytes = 0;
    for (int i = 0; i < s->n; i++)
        bytes += s->bucket[i].bytes;
    for (int i = 0; i < s->n; i++) {
        const scale_bucket *b = &s->bucket[i];
        arrived = fmax(arrived, b->at) + scale_reduction(l, ranks, b->bytes);
        now = fmax(now, arrived) + s->updates * b->bytes / bytes;
    }
    const double alone = s->backward + s->updates;
    now = s->n > 0 ? now : alone;
    *exposed = now > alone ? now - alone : 0;
    return now;
}
