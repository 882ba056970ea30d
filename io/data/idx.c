/* idx.c - a reader for IDX, the format of MNIST and its likes, plain or gzip.
 *
 * A file is 00 00 TT RR (TT the element type, 08 unsigned byte; RR the rank), RR big-endian 32-bit
 * sizes, then the bytes, and nothing else. Nothing in it is believed: sizes are multiplied in
 * checked arithmetic and limited, and memory grows with the bytes that were really read. Offsets in
 * messages count the uncompressed bytes. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "data.h"

/* ---- the bytes of a file, plain or gzip: its first two bytes tell ----
 *
 * zlib's own gzread passes over whatever follows the compressed data; here only a further gzip
 * member may, and a member is whole only with its sum and length. */

enum { BLOCK = 1 << 16, GZIP_ONLY = 15 + 16 };

typedef struct {
    int fd, is_gzip;
    int inside, members; /* of a gzip file: within a member; members begun */
    z_stream z;          /* next_in, avail_in: what is left of the block */
    const char *wrong;
    uint8_t block[BLOCK];
} unzip;

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

static void unzip_close(unzip *u)
{
    if (u->is_gzip)
        inflateEnd(&u->z);
    close(u->fd);
    free(u);
}

/* Takes fd over, and closes it on failure too; NULL: out of memory. */
static unzip *unzip_open(int fd)
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

/* Reads up to n bytes (n < 2^32); fewer at the end of the data, or when something is wrong. */
static int64_t unzip_read(unzip *u, void *to, int64_t n)
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

/* ---- IDX ---- */

enum { IDX_MAX_RANK = 3, FIRST_CHUNK = 1 << 16 };
static const int64_t max_bytes = INT64_C(1) << 31; /* bytes of data in one file */

typedef struct {
    dataset *owner; /* of the message */
    const char *path;
    unzip *file;
    int64_t offset, size[IDX_MAX_RANK], bytes;
} idx_file;

/* The sentence, behind the file's name and, unless it is negative, an offset. */
__attribute__((format(printf, 4, 5))) static adj_status
fail(idx_file *f, adj_status status, int64_t offset, const char *format, ...)
{
    char sentence[ADJ_MESSAGE], at[40] = "";
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    if (offset >= 0)
        snprintf(at, sizeof at, "offset %lld: ", (long long)offset);
    io_dataset_fail(f->owner, status, "idx: %s: %s%s", f->path, at, sentence);
    return status;
}

static adj_status open_idx(idx_file *f)
{
    int fd;
    int64_t size;
    const char *why = io_open(f->path, &fd, &size);
    if (why != NULL)
        return fail(f, ADJ_EIO, -1, "%s", why);
    f->file = unzip_open(fd);
    return f->file != NULL ? ADJ_OK : fail(f, ADJ_ENOMEM, -1, "out of memory");
}

/* Reads exactly n bytes or fails. */
static adj_status read_bytes(idx_file *f, void *to, int64_t n, const char *part)
{
    int64_t got = unzip_read(f->file, to, n), end = f->offset + got;
    if (got == n)
        return f->offset += n, ADJ_OK;
    if (f->file->wrong != NULL)
        return fail(f, ADJ_EIO, end, "%s", f->file->wrong);
    return fail(f, ADJ_EIO, end, "the file ends within its %s (expected %lld bytes up to there)",
                part, (long long)(f->offset + n));
}

/* The header: magic number, then rank sizes. Fills f->size and f->bytes. */
static adj_status read_header(idx_file *f, int rank)
{
    uint8_t magic[4], size[4];
    const uint8_t wanted[4] = {0, 0, 8, (uint8_t)rank};

    adj_status status = read_bytes(f, magic, 4, "magic number");
    if (status != ADJ_OK)
        return status;
    if (memcmp(magic, wanted, 4) != 0)
        return fail(f, ADJ_EIO, 0, "wrong magic number (got %02x%02x%02x%02x, expected 0000080%d)",
                    magic[0], magic[1], magic[2], magic[3], rank);
    f->bytes = 1;
    for (int i = 0; i < rank; i++) {
        int64_t at = f->offset;
        if ((status = read_bytes(f, size, 4, "header")) != ADJ_OK)
            return status;
        f->size[i] = (int64_t)size[0] << 24 | size[1] << 16 | size[2] << 8 | size[3];
        if (f->size[i] == 0)
            return fail(f, ADJ_EIO, at, "size %d is 0", i);
        if (__builtin_mul_overflow(f->bytes, f->size[i], &f->bytes) || f->bytes > max_bytes)
            return fail(f, ADJ_EIO, at,
                        "the header claims too much data (got a size of %lld, expected at most "
                        "%lld bytes in all)",
                        (long long)f->size[i], (long long)max_bytes);
    }
    return ADJ_OK;
}

/* The f->bytes bytes behind the header into *data (the caller frees it, on failure too), in chunks
 * that double what has been read: a lying header costs at most twice the file. */
static adj_status read_data(idx_file *f, const char *part, uint8_t **data)
{
    int64_t have = 0, room = 0;

    while (have < f->bytes) {
        room = room == 0 ? FIRST_CHUNK : 2 * room;
        if (room > f->bytes)
            room = f->bytes;
        uint8_t *grown = realloc(*data, (size_t)room);
        if (grown == NULL)
            return fail(f, ADJ_ENOMEM, -1, "out of memory");
        *data = grown;
        adj_status status = read_bytes(f, grown + have, room - have, part);
        if (status != ADJ_OK)
            return status;
        have = room;
    }
    return ADJ_OK;
}

/* Nothing may follow; in a gzip file, reading up to the end also checks its sum. */
static adj_status expect_end(idx_file *f)
{
    uint8_t more;

    if (unzip_read(f->file, &more, 1) == 1)
        return fail(f, ADJ_EIO, f->offset, "more bytes than the header says");
    if (f->file->wrong != NULL)
        return fail(f, ADJ_EIO, f->offset, "%s", f->file->wrong);
    return ADJ_OK;
}

/* One whole file of the given rank; *data is the caller's to free, on failure too. */
static adj_status read_idx(idx_file *f, int rank, const char *part, uint8_t **data)
{
    adj_status status = open_idx(f);
    if (status != ADJ_OK)
        return status;
    if ((status = read_header(f, rank)) == ADJ_OK && (status = read_data(f, part, data)) == ADJ_OK)
        status = expect_end(f);
    unzip_close(f->file);
    return status;
}

static adj_status take_labels(dataset *d, idx_file *f, const uint8_t *bytes)
{
    int64_t n = f->size[0];
    d->labels = malloc((size_t)n * sizeof *d->labels);
    if (d->labels == NULL)
        return fail(f, ADJ_ENOMEM, -1, "out of memory");
    for (int64_t i = 0; i < n; i++) {
        if (bytes[i] >= d->public.classes)
            return fail(f, ADJ_EIO, 8 + i, "label out of range (got %d, expected 0 to %d)",
                        bytes[i], d->public.classes - 1);
        d->labels[i] = bytes[i];
    }
    return ADJ_OK;
}

static adj_status read_pair(dataset *d, const char *images, const char *labels)
{
    idx_file x = {.owner = d, .path = images}, y = {.owner = d, .path = labels};
    uint8_t *bytes = NULL;

    adj_status status = read_idx(&x, 3, "images", &d->images);
    if (status == ADJ_OK)
        status = read_idx(&y, 1, "labels", &bytes);
    if (status == ADJ_OK && y.size[0] != x.size[0])
        status = fail(&y, ADJ_EIO, 4, "number of labels differs from %s (got %lld, expected %lld)",
                      images, (long long)y.size[0], (long long)x.size[0]);
    if (status == ADJ_OK)
        status = take_labels(d, &y, bytes);
    free(bytes);
    if (status != ADJ_OK)
        return status;
    d->public.n = x.size[0];
    d->public.labels = d->labels;
    d->stored = (image_size){x.size[1], x.size[2], 1};
    d->stored_images = d->images;
    io_dataset_use_memory(d, d->stored);
    d->public.mean[0] = DIGIT_MEAN;
    d->public.deviation[0] = DIGIT_DEVIATION;
    return ADJ_OK;
}

adj_status adj_dataset_idx(const char *images, const char *labels, int classes, adj_dataset **out)
{
    dataset *d;
    adj_status status = io_dataset_new(out, &d);
    if (status != ADJ_OK)
        return status;
    if (images == NULL || labels == NULL)
        return io_dataset_fail(d, ADJ_EARG, "idx: a file name is missing");
    if (classes < 1 || classes > 256)
        return io_dataset_fail(d, ADJ_EARG, "idx: classes (got %d, expected 1 to 256)", classes);
    d->public.classes = classes;
    return read_pair(d, images, labels);
}

/* folder/name, or folder/name.gz if only that exists; NULL when out of memory. */
static char *find_file(const char *folder, const char *name)
{
    size_t size = strlen(folder) + strlen(name) + sizeof "/.gz";
    char *path = malloc(size);
    if (path == NULL)
        return NULL;
    int plain = snprintf(path, size, "%s/%s", folder, name);
    if (access(path, F_OK) == 0)
        return path;
    snprintf(path + plain, size - (size_t)plain, ".gz");
    if (access(path, F_OK) != 0) /* neither: the message names the plain one */
        path[plain] = '\0';
    return path;
}

adj_status adj_dataset_mnist(const char *folder, adj_dataset_part part, adj_dataset **out)
{
    static const char *const names[2][2] = {{"train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
                                            {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}};
    dataset *d;
    adj_status status = io_dataset_new(out, &d);
    if (status != ADJ_OK)
        return status;
    if (folder == NULL || (part != ADJ_TRAIN && part != ADJ_TEST))
        return io_dataset_fail(d, ADJ_EARG, "mnist: bad folder or part");
    d->public.classes = 10;
    char *images = find_file(folder, names[part][0]), *labels = find_file(folder, names[part][1]);
    status = images != NULL && labels != NULL
                 ? read_pair(d, images, labels)
                 : io_dataset_fail(d, ADJ_ENOMEM, "mnist: out of memory");
    free(images);
    free(labels);
    return status;
}
