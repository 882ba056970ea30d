/* sums.h - checksums for comparing trainings (hash.h). */
#ifndef TRAIN_SUMS_H
#define TRAIN_SUMS_H

#include <stdlib.h>

#include "adjoint_data.h"
#include "base/hash.h"

static inline uint64_t hash_number(uint64_t sum, int64_t number)
{
    return hash_bytes(sum, &number, sizeof number);
}

/* Adds up to 64 images, evenly spread, to the checksum; skips one that cannot be read. */
static inline uint64_t sum_of_sample(uint64_t sum, const adj_dataset *d)
{
    const size_t elems = (size_t)(d->size.h * d->size.w * d->size.c);
    const int64_t n = d->n < 64 ? d->n : 64;
    float *image = malloc(elems * sizeof *image);

    for (int64_t i = 0; image != NULL && i < n; i++)
        if (adj_dataset_read(d, i * d->n / n, image, NULL) == ADJ_OK)
            sum = hash_words(sum, image, elems * sizeof *image);
    free(image);
    return sum;
}

/* Returns a checksum of images and labels or targets. Images that are not in memory are represented
 * by a sample and by their mean and deviation. */
static inline uint64_t data_sum(const adj_dataset *d)
{
    uint64_t sum = hash_number(HASH_START, d->n);
    sum = hash_number(hash_number(hash_number(sum, d->size.h), d->size.w), d->size.c);
    if (d->images != NULL)
        sum = hash_bytes(sum, d->images, (size_t)(d->n * d->size.h * d->size.w * d->size.c));
    else
        sum = sum_of_sample(sum, d);
    sum = hash_bytes(sum, d->mean, (size_t)d->size.c * sizeof *d->mean);
    sum = hash_bytes(sum, d->deviation, (size_t)d->size.c * sizeof *d->deviation);
    if (d->targets != NULL)
        return hash_bytes(sum, d->targets, (size_t)(d->n * d->classes) * sizeof *d->targets);
    return hash_bytes(sum, d->labels, (size_t)d->n * sizeof *d->labels);
}

#endif
