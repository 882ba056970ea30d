/* io.h - what the files of io/ share: reading a file, random numbers. */
#ifndef IO_H
#define IO_H

#include "adjoint_io.h"

/* Opens a regular file for reading. Returns NULL, or a message without the file's name. */
const char *io_open(const char *path, int *fd, int64_t *size);
/* Reads up to n bytes; returns how many, fewer only at the end, or -1 with errno. */
int64_t io_read(int fd, void *to, int64_t n);
/* Reads the first n bytes of a regular file; returns how many, or -1 with *why. */
int64_t io_read_start(const char *path, void *to, int64_t n, const char **why);
/* Reads a regular file, of a longer one the first `most` bytes, and puts a 0 behind them. *bytes is
 * to be freed in every case; *why is the message of a failure, without the file's name. */
adj_status io_load(const char *path, int64_t most, char **bytes, int64_t *n, const char **why);

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

/* Returns a number from 0 to n-1: the high half of bits * n, with a negligible bias of n / 2^64. */
static inline int64_t io_below(uint64_t bits, int64_t n)
{
    __extension__ typedef unsigned __int128 wide;
    return (int64_t)(((wide)bits * (uint64_t)n) >> 64);
}

/* Uniform in [0, 1), a multiple of 2^-53. */
static inline double io_unit(uint64_t bits) { return (double)(bits >> 11) * 0x1p-53; }

#endif
