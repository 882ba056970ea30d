/* idx_array.c - an array in IDX, the format of MNIST and its likes.
 *
 * A file is 00 00 TT RR (TT the element type, RR the rank), RR big-endian 32-bit sizes, then the
 * elements, big-endian, and nothing else. Offsets in messages count the uncompressed bytes. */
#include <stdarg.h>
#include <stdlib.h>

#include "base/c_locale.h"
#include "array.h"
#include "packed.h"

static const int64_t max_bytes = INT64_C(1) << 31; /* of an array */

typedef struct {
    const char *path;
    unzip *file;
    int64_t offset;
    adj_error *error;
} reader;

__attribute__((format(printf, 3, 4))) static adj_status fail(const reader *r, int64_t offset,
                                                             const char *format, ...)
{
    char sentence[ADJ_MESSAGE];
    va_list args;
    va_start(args, format);
    c_vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return adj_error_set(r->error, ADJ_EIO, "idx: %.300s: offset %lld: %s", r->path,
                         (long long)offset, sentence);
}

/* Moves on by n bytes, of which the file had `got`. */
static adj_status advance(reader *r, int64_t got, int64_t n, const char *part)
{
    const int64_t end = r->offset + got;
    r->offset += n;
    if (got == n)
        return ADJ_OK;
    if (r->file->wrong != NULL)
        return fail(r, end, "%s", r->file->wrong);
    return fail(r, end, "the file ends within its %s (expected at least %lld bytes)", part,
                (long long)r->offset);
}

static adj_status read_magic(reader *r, const idx_content *expected, file_array *a)
{
    static const struct {
        char kind;
        int bytes;
    } types[] = {[8] = {'u', 1},  [9] = {'i', 1},  [11] = {'i', 2},
                 [12] = {'i', 4}, [13] = {'f', 4}, [14] = {'f', 8}};
    uint8_t magic[4];
    adj_status status = advance(r, unzip_read(r->file, magic, 4), 4, "magic number");
    if (status != ADJ_OK)
        return status;
    const size_t type = magic[2] < sizeof types / sizeof types[0] ? magic[2] : 0;
    *a = (file_array){.kind = types[type].kind, .bytes = types[type].bytes, .rank = magic[3]};
    if (magic[0] == 0 && magic[1] == 0 && a->bytes > 0 && a->rank >= 1 && a->rank <= ADJ_MAX_RANK &&
        (expected->fits == NULL || expected->fits(a)))
        return ADJ_OK;
    return fail(r, 0, "wrong magic number (got %02x%02x%02x%02x, expected %s)", magic[0], magic[1],
                magic[2], magic[3], expected->magic);
}

/* Reads the sizes after the magic number, and counts the bytes of data. */
static adj_status read_sizes(reader *r, file_array *a, int64_t *bytes)
{
    *bytes = a->bytes;
    for (int i = 0; i < a->rank; i++) {
        uint8_t size[4];
        const int64_t at = r->offset;
        adj_status status = advance(r, unzip_read(r->file, size, 4), 4, "header");
        if (status != ADJ_OK)
            return status;
        a->size[i] = (int64_t)size[0] << 24 | size[1] << 16 | size[2] << 8 | size[3];
        if (a->size[i] == 0)
            return fail(r, at, "dimension %d is 0", i);
        if (__builtin_mul_overflow(*bytes, a->size[i], bytes) || *bytes > max_bytes)
            return fail(r, at,
                        "the header claims too much data (got a size of %lld, expected at most "
                        "%lld bytes in all)",
                        (long long)a->size[i], (long long)max_bytes);
    }
    return ADJ_OK;
}

/* Reads the data to the end of the file: there is a gzip file's checksum. */
static adj_status read_data(reader *r, const char *part, int64_t bytes, file_array *a)
{
    const array_stream s = {unzip_read, r->file, r->path};
    const int64_t got = array_read_bytes(&s, bytes, &a->data);
    uint8_t more;
    if (got < 0)
        return adj_error_set(r->error, ADJ_ENOMEM, "idx: %.300s: out of memory", r->path);
    adj_status status = advance(r, got, bytes, part);
    if (status != ADJ_OK)
        return status;
    if (unzip_read(r->file, &more, 1) == 1)
        return fail(r, r->offset, "more bytes than the header says");
    if (r->file->wrong != NULL)
        return fail(r, r->offset, "%s", r->file->wrong);
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        array_swap(a);
    return ADJ_OK;
}

adj_status io_idx_read_file(const char *path, const idx_content *expected, file_array *a,
                            adj_error *error)
{
    reader r = {.path = path, .error = error};
    const char *why;
    int64_t bytes = 0;

    *a = (file_array){0};
    adj_status status = unzip_open(path, &r.file, &why);
    if (status != ADJ_OK)
        return adj_error_set(error, status, "idx: %.300s: %s", path, why);
    status = read_magic(&r, expected, a);
    if (status == ADJ_OK)
        status = read_sizes(&r, a, &bytes);
    if (status == ADJ_OK)
        status = read_data(&r, expected->part, bytes, a);
    if (status != ADJ_OK) {
        free(a->data);
        a->data = NULL;
    }
    unzip_close(r.file);
    return status;
}
