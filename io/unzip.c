/* unzip.c - see unzip.h. zlib's own gzread passes over whatever follows the compressed data; here
 * only a further gzip member may, and a member is whole only with its sum and length. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "unzip.h"

enum { BLOCK = 1 << 16, GZIP_ONLY = 15 + 16 };

struct unzip {
    int fd, is_gzip;
    int inside, members; /* of a gzip file: within a member; members begun */
    z_stream z;          /* next_in, avail_in: what is left of the block */
    const char *wrong;
    uint8_t block[BLOCK];
};

/* Is there a byte in the block, after reading if need be? */
static int has_input(unzip *u)
{
    while (u->z.avail_in == 0 && u->wrong == NULL) {
        ssize_t got = read(u->fd, u->block, BLOCK);
        if (got == 0)
            return 0;
        if (got < 0 && errno != EINTR)
            u->wrong = strerror(errno);
        u->z.next_in = u->block;
        u->z.avail_in = got > 0 ? (uInt)got : 0;
    }
    return u->wrong == NULL;
}

unzip *unzip_open(int fd)
{
    unzip *u = calloc(1, sizeof *u);
    if (u == NULL) {
        close(fd);
        return NULL;
    }
    u->fd = fd;
    u->is_gzip = has_input(u) && u->z.avail_in >= 2 && u->block[0] == 0x1f && u->block[1] == 0x8b;
    if (u->is_gzip && inflateInit2(&u->z, GZIP_ONLY) != Z_OK) {
        u->is_gzip = 0;
        unzip_close(u);
        return NULL;
    }
    return u;
}

static void copy_some(unzip *u)
{
    uInt n = u->z.avail_in < u->z.avail_out ? u->z.avail_in : u->z.avail_out;
    memcpy(u->z.next_out, u->z.next_in, n);
    u->z.next_in += n;
    u->z.avail_in -= n;
    u->z.next_out += n;
    u->z.avail_out -= n;
}

static void inflate_some(unzip *u)
{
    if (!u->inside) {
        inflateReset(&u->z);
        u->inside = 1;
        u->members++;
    }
    switch (inflate(&u->z, Z_NO_FLUSH)) {
    case Z_OK:
    case Z_BUF_ERROR: break;
    case Z_STREAM_END: u->inside = 0; break;
    case Z_MEM_ERROR: u->wrong = "out of memory"; break;
    default:
        u->wrong = u->members > 1 && u->z.total_out == 0 ? "more bytes follow the compressed data"
                                                         : "the compressed data is corrupt";
    }
}

int64_t unzip_read(unzip *u, void *to, int64_t n)
{
    u->z.next_out = to;
    u->z.avail_out = (uInt)n;
    while (u->z.avail_out > 0 && has_input(u) && u->wrong == NULL) {
        if (u->is_gzip)
            inflate_some(u);
        else
            copy_some(u);
    }
    if (u->z.avail_out > 0 && u->inside && u->wrong == NULL)
        u->wrong = "the compressed file ends early";
    return n - u->z.avail_out;
}

const char *unzip_wrong(const unzip *u) { return u->wrong; }

void unzip_close(unzip *u)
{
    if (u->is_gzip)
        inflateEnd(&u->z);
    close(u->fd);
    free(u);
}
