/* io.h - what the files of io/ share: opening a file, random numbers. */
#ifndef IO_H
#define IO_H

#include "adjoint_io.h"

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
