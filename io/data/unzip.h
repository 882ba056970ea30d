/* unzip.h - reads the bytes of a file, plain or gzip, as its first two bytes show. Unlike zlib's
 * gzread it refuses anything but another gzip member after the compressed data, and checks each
 * member's checksum and length. */
#ifndef IO_DATA_UNZIP_H
#define IO_DATA_UNZIP_H

#include <stdint.h>
#include <zlib.h>

enum { BLOCK = 1 << 16 };

typedef struct {
    int fd, is_gzip;
    int inside, members; /* 1: within a member of a gzip file; number of members started */
    z_stream z;          /* next_in, avail_in: what is left of the block */
    const char *wrong;
    uint8_t block[BLOCK];
} unzip;

/* Creates a reader that owns fd, which is closed on failure too; returns NULL when out of memory.
 */
unzip *unzip_open(int fd);
/* Reads up to n bytes from an unzip *; returns fewer at the end of the data or on an error. */
int64_t unzip_read(void *from, void *to, int64_t n);
void unzip_close(unzip *u);

#endif
