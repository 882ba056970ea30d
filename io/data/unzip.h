/* unzip.h - the bytes of a file, plain or gzip: its first two bytes tell.
 *
 * zlib's own gzread passes over whatever follows the compressed data; here only a further gzip
 * member may, and a member is whole only with its sum and length. */
#ifndef IO_DATA_UNZIP_H
#define IO_DATA_UNZIP_H

#include <stdint.h>
#include <zlib.h>

enum { BLOCK = 1 << 16 };

typedef struct {
    int fd, is_gzip;
    int inside, members; /* of a gzip file: within a member; members begun */
    z_stream z;          /* next_in, avail_in: what is left of the block */
    const char *wrong;
    uint8_t block[BLOCK];
} unzip;

/* Takes fd over, and closes it on failure too; NULL: out of memory. */
unzip *unzip_open(int fd);
/* Reads up to n bytes from an unzip *; fewer at the end of the data, or when something is wrong. */
int64_t unzip_read(void *from, void *to, int64_t n);
void unzip_close(unzip *u);

#endif
