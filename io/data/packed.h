/* packed.h - reads the bytes of packed files: gzip by zlib, zip archives (.npz) by libzip. */
#ifndef IO_DATA_PACKED_H
#define IO_DATA_PACKED_H

#include <zip.h>
#include <zlib.h>

#include "io/io.h"

/* ---- gzip ----
 *
 * A file is plain or gzip, as its first two bytes show. Unlike zlib's gzread this refuses anything
 * but another gzip member after the compressed data, and checks each member's checksum and length.
 */

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
/* Reads up to n bytes, at most 2^30, from an unzip *; returns fewer at the end of the data or on an
 * error. */
int64_t unzip_read(void *from, void *to, int64_t n);
void unzip_close(unzip *u);

/* ---- zip ----
 *
 * A lack of memory is an error, never a missing member. */

/* Opens an archive; NULL after an error, which names the file. */
zip_t *zipped_open(const char *path, adj_error *error);
/* Returns 1 if the archive has a member of this name, 0 if not, -1 if memory is short. */
int zipped_has(zip_t *archive, const char *name);
/* The read function of an array_stream, from a zip_file_t. libzip miscounts a read of 2^32 bytes,
 * so n is at most 2^30. */
int64_t zipped_read(void *file, void *to, int64_t n);

#endif
