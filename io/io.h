/* io.h - what the files of io/ share: making and failing a data set, sentences, random numbers. */
#ifndef IO_H
#define IO_H

#include "adjoint_io.h"

/* A data set under construction: the public read-only part first, then the memory it points to. */
typedef struct {
    adj_dataset public;
    uint8_t *images;
    int32_t *labels;
} dataset;

/* Mean and deviation of MNIST's pixels; the drawn digits are close to them. */
#define DIGIT_MEAN 33.3184f
#define DIGIT_DEVIATION 78.5675f

/* A new one, also as *out. ADJ_EARG: out is NULL; ADJ_ENOMEM: *out is. */
adj_status io_dataset_new(adj_dataset **out, dataset **d);
/* Keeps the sentence, empties the data set, returns status. */
adj_status io_dataset_fail(dataset *d, adj_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Opens a regular file for reading. NULL, or a sentence without the file's name. */
const char *io_open(const char *path, int *fd, int64_t *size);

/* SplitMix64's output function: a bijection that scatters counters. */
static inline uint64_t io_mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* The key of a stream of random numbers: element k of it is io_mix(key + k). */
static inline uint64_t io_key(uint64_t seed, uint64_t a, uint64_t b)
{
    return io_mix(io_mix(io_mix(seed) + a) + b);
}

#endif
