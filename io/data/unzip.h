/* unzip.h - reads the bytes of a file, plain or gzip, as its first two bytes show. Unlike zlib's
 * gzread it refuses anything but another gzip member after the compressed data, and checks each
 * member's checksum and length. */
#ifndef IO_DATA_UNZIP_H
#define IO_DATA_UNZIP_H

#include <zlib.h>

#include "io/io.h"

enum { BLOCK = 1 << 16 };

typedef struct {
    int fd, is_gzip;
    int inside, members; /* 1: within a member of a gzip file; number of members started */
    z_stream z;          /* next_in, avail_in: what is left of the block */
    const char *wrong;
    uint8_t block[BLOCK];
} unzip;

/* Opens a regular file. On failure *u is NULL and *why a message without the file's name. */
adj_status unzip_open(const char *path, unzip **u, const char **why);
/* Reads up to n bytes from an unzip *; returns fewer at the end of the data or on an error. */
int64_t unzip_read(void *from, void *to, int64_t n);
void unzip_close(unzip *u);

#endif
