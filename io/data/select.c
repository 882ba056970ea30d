/* select.c - selects the images of a split: a fraction of each class, and at most a given number.
 *
 * All images are visited in one order drawn from the seed; a class gives its first ones. So the
 * training and the validation images of a seed never overlap and together are all. */
#include <math.h>
#include <stdlib.h>

#include "data.h"

enum { REST, VALIDATION, TAKEN };

typedef struct {
    int64_t n;
    const int32_t *labels;
    int classes;
    int64_t *order; /* [n] in which images are visited */
    int64_t *quota; /* [classes] images that a class still gives */
    uint8_t *group; /* [n] REST, VALIDATION or TAKEN */
} drawing;

static void count_classes(const drawing *d, uint8_t group)
{
    for (int k = 0; k < d->classes; k++)
        d->quota[k] = 0;
    for (int64_t i = 0; i < d->n; i++)
        d->quota[d->labels[i]] += d->group[i] == group;
}

/* Moves the first quota[k] images of class k from one group to the other. */
static void move(const drawing *d, uint8_t from, uint8_t to)
{
    for (int64_t j = 0; j < d->n; j++) {
        int64_t i = d->order[j];
        if (d->group[i] == from && d->quota[d->labels[i]] > 0) {
            d->quota[d->labels[i]]--;
            d->group[i] = to;
        }
    }
}

/* Splits each class; a class of two or more images keeps at least one on either side. */
static void split(const drawing *d, double fraction)
{
    count_classes(d, REST);
    for (int k = 0; k < d->classes; k++) {
        int64_t have = d->quota[k], part = (int64_t)floor(fraction * (double)have + 0.5);
        if (have > 1)
            part = part < 1 ? 1 : part > have - 1 ? have - 1 : part;
        d->quota[k] = part;
    }
    move(d, REST, VALIDATION);
}

/* Distributes limit over the classes by their sizes, as differences of rounded cumulative sums, so
 * that the total is limit. */
static void take_share(const drawing *d, uint8_t group, int64_t limit)
{
    int64_t total = 0, before = 0, given = 0;

    count_classes(d, group);
    for (int k = 0; k < d->classes; k++)
        total += d->quota[k];
    for (int k = 0; k < d->classes; k++) {
        before += d->quota[k];
        int64_t until = limit >= total
                            ? before
                            : (int64_t)((double)limit * (double)before / (double)total + 1e-9);
        d->quota[k] = until - given;
        given = until;
    }
    move(d, group, TAKEN);
}

static void draw(const drawing *d, const selection *s, int64_t *keep, int64_t *kept)
{
    adj_shuffle(d->n, io_mix(s->seed), 0x73706c6974u, d->order);
    if (s->val_split > 0)
        split(d, s->val_split);
    take_share(d, s->validation ? VALIDATION : REST, s->limit > 0 ? s->limit : d->n);
    *kept = 0;
    for (int64_t i = 0; i < d->n; i++)
        if (d->group[i] == TAKEN)
            keep[(*kept)++] = i;
}

adj_status io_select(int64_t n, const int32_t *labels, int classes, const selection *s,
                     int64_t *keep, int64_t *kept)
{
    drawing d = {n, labels, classes, NULL, NULL, NULL};
    d.order = malloc((size_t)n * sizeof *d.order + 1);
    d.quota = malloc((size_t)classes * sizeof *d.quota + 1);
    d.group = calloc((size_t)n + 1, 1);
    adj_status status = d.order != NULL && d.quota != NULL && d.group != NULL ? ADJ_OK : ADJ_ENOMEM;
    if (status == ADJ_OK)
        draw(&d, s, keep, kept);
    free(d.order);
    free(d.quota);
    free(d.group);
    return status;
}
