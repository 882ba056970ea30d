/* sums.h - checksums for comparing trainings (64-bit FNV-1a). */
#ifndef TRAIN_SUMS_H
#define TRAIN_SUMS_H

#include <stdlib.h>
#include <string.h>

#include "adjoint_data.h"

static const uint64_t fnv_start = UINT64_C(0xcbf29ce484222325);

static inline uint64_t fnv(uint64_t sum, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; i++)
        sum = (sum ^ p[i]) * UINT64_C(0x100000001b3);
    return sum;
}

/* Computes an FNV checksum over 64-bit words and the remaining bytes: faster than over bytes, with
 * another result. Each round also folds the high bits down, since a product carries bits only
 * upward. */
static inline uint64_t fnv_words(uint64_t sum, const void *data, size_t bytes)
{
    const char *p = data;
    for (; bytes >= 8; bytes -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        sum = (sum ^ word) * UINT64_C(0x100000001b3);
        sum ^= sum >> 32;
    }
    return fnv(sum, p, bytes);
}

/* Adds a number's eight bytes to the checksum, lowest first. */
static inline uint64_t fnv_number(uint64_t sum, int64_t number)
{
    for (int shift = 0; shift < 64; shift += 8)
        sum = (sum ^ ((uint64_t)number >> shift & 0xff)) * UINT64_C(0x100000001b3);
    return sum;
}

/* Adds up to 64 images, evenly spread, to the checksum; skips one that cannot be read. */
static inline uint64_t sum_of_sample(uint64_t sum, const adj_dataset *d)
{
    const size_t elems = (size_t)(d->size.h * d->size.w * d->size.c);
    const int64_t n = d->n < 64 ? d->n : 64;
    float *image = malloc(elems * sizeof *image);

    for (int64_t i = 0; image != NULL && i < n; i++)
        if (adj_dataset_read(d, i * d->n / n, image, NULL) == ADJ_OK)
            sum = fnv_words(sum, image, elems * sizeof *image);
    free(image);
    return sum;
}

/* Returns a checksum of images and labels or targets. Images that are not in memory are represented
 * by a sample and by their mean and deviation. */
static inline uint64_t data_sum(const adj_dataset *d)
{
    uint64_t sum = fnv_number(fnv_start, d->n);
    sum = fnv_number(fnv_number(fnv_number(sum, d->size.h), d->size.w), d->size.c);
    if (d->images != NULL)
        sum = fnv(sum, d->images, (size_t)(d->n * d->size.h * d->size.w * d->size.c));
    else
        sum = sum_of_sample(sum, d);
    sum = fnv(sum, d->mean, (size_t)d->size.c * sizeof *d->mean);
    sum = fnv(sum, d->deviation, (size_t)d->size.c * sizeof *d->deviation);
    if (d->targets != NULL)
        return fnv(sum, d->targets, (size_t)(d->n * d->classes) * sizeof *d->targets);
    return fnv(sum, d->labels, (size_t)d->n * sizeof *d->labels);
}

#endif
