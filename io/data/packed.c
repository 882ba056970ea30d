/* packed.c - see packed.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "packed.h"

/* ---- gzip ---- */

enum { GZIP_ONLY = 15 + 16 };

/* Reads a block if the current one is used up; true if there is input. */
static int has_input(unzip *u)
{
    if (u->z.avail_in == 0 && u->wrong == NULL) {
        const int64_t got = io_read(u->fd, u->block, BLOCK);
        if (got < 0)
            u->wrong = strerror(errno);
        u->z.next_in = u->block;
        u->z.avail_in = got > 0 ? (uInt)got : 0;
    }
    return u->z.avail_in > 0;
}

void unzip_close(unzip *u)
{
    if (u->is_gzip)
        inflateEnd(&u->z);
    close(u->fd);
    free(u);
}

adj_status unzip_open(const char *path, unzip **u, const char **why)
{
    int64_t size;
    unzip *own = *u = calloc(1, sizeof *own);
    *why = "out of memory";
    if (own == NULL)
        return ADJ_ENOMEM;
    *why = io_open(path, &own->fd, &size);
    if (*why == NULL) {
        own->is_gzip = has_input(own) && own->z.avail_in >= 2 && own->block[0] == 0x1f &&
                       own->block[1] == 0x8b;
        if (!own->is_gzip || inflateInit2(&own->z, GZIP_ONLY) == Z_OK)
            return ADJ_OK;
        *why = "out of memory";
        close(own->fd);
    }
    const adj_status status = own->is_gzip ? ADJ_ENOMEM : ADJ_EIO;
    free(own);
    *u = NULL;
    return status;
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

int64_t unzip_read(void *from, void *to, int64_t n)
{
    unzip *u = from;
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

/* ---- zip ---- */

zip_t *zipped_open(const char *path, adj_error *error)
{
    int why = 0;
    errno = 0;
    zip_t *archive = zip_open(path, ZIP_RDONLY, &why);
    if (archive == NULL && (why == ZIP_ER_MEMORY || errno == ENOMEM))
        adj_error_set(error, ADJ_ENOMEM, "npz: %.300s: out of memory", path);
    else if (archive == NULL)
        adj_error_set(error, ADJ_EIO, "npz: %.300s: is not a complete archive", path);
    return archive;
}

int zipped_has(zip_t *archive, const char *name)
{
    zip_error_clear(archive);
    if (zip_name_locate(archive, name, 0) >= 0)
        return 1;
    return zip_error_code_zip(zip_get_error(archive)) == ZIP_ER_NOENT ? 0 : -1;
}

int64_t zipped_read(void *file, void *to, int64_t n)
{
    int64_t got = 0, more = 1;
    while (got < n && more > 0) {
        more = zip_fread(file, (char *)to + got, (zip_uint64_t)(n - got));
        got += more > 0 ? more : 0;
    }
    return more < 0 ? -1 : got;
}
