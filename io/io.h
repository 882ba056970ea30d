/* io.h - functions that io/, training and the tool share: reading and replacing a file, random
 * numbers. */
#ifndef IO_H
#define IO_H

#include "adjoint_io.h"
#include "base/new_file.h"

/* ---- reading ---- */

/* Opens a regular file for reading. Returns NULL, or a message without the file's name. */
const char *io_open(const char *path, int *fd, int64_t *size);
/* Reads up to n bytes; returns how many, fewer only at the end, or -1 with errno. */
int64_t io_read(int fd, void *to, int64_t n);
/* Reads the first n bytes of a regular file; returns how many, or -1 with *why. */
int64_t io_read_start(const char *path, void *to, int64_t n, const char **why);
/* Reads a regular file, of a longer one the first `most` bytes, and puts a 0 behind them. *bytes is
 * to be freed in every case; *why is the message of a failure, without the file's name. */
adj_status io_load(const char *path, int64_t most, char **bytes, int64_t *n, const char **why);

/* ---- replacing: a new file is written beside the old one, then renamed ---- */

/* Prefix of messages and the file they are about. */
typedef struct {
    const char *prefix; /* prefix of messages: "safetensors: " or "" */
    const char *path;
    adj_error *error;
} io_place;

adj_status io_refuse(const io_place *p, adj_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
adj_status io_out_of_memory(const io_place *p);

/* Replaces a file atomically: write fills FILE.partial, which is flushed to the disk and renamed,
 * so that the file is either the old or the complete new one. write returns 0 on success. If path
 * is a symbolic link, its target is replaced or created. The new file gets mode and owner of the
 * old one as far as permitted; if the group cannot be set, group permissions are reduced to those
 * of others. A FILE.partial left by a killed process is removed by the next call; processes that
 * write one file at the same time wait for each other. */
ADJ_API adj_status adj_file_replace(const char *path, int (*write)(FILE *f, void *user), void *user,
                                    adj_error *error);
/* Checks that a file can be written, in place (in_place 1) or by adj_file_replace, without changing
 * it or its folder; only a FILE.partial left behind is removed. Only regular files can be replaced;
 * in place, anything but a folder that can be opened is accepted. A pipe is not opened, because
 * that would wait for its reader and closing would end the stream. */
ADJ_API adj_status adj_file_check(const char *path, int in_place, adj_error *error);

typedef struct { /* identity of a file: equal (memcmp) for all its names, spellings, symbolic and
                    hard links */
    /* Device and inode of the file, or of its folder if the file does not exist. */
    uint64_t device, number;
    char name[256]; /* "", or the name in that folder if the file does not exist */
} adj_file_id;
/* Sets *id to the identity of the file. */
ADJ_API adj_status adj_file_identify(const char *path, adj_file_id *id, adj_error *error);

/* ---- random numbers ---- */

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
