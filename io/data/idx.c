/* idx.c - a reader for IDX, the format of MNIST and its likes, plain or gzip.
 *
 * A file is 00 00 TT RR (TT the element type, 08 unsigned byte or 0C int32; RR the rank), RR
 * big-endian 32-bit sizes, then the elements, big-endian, and nothing else. Labels are bytes [n],
 * or QMNIST's int32 [n, 8], whose column 0 is the class. The file is not trusted: sizes are
 * multiplied in checked arithmetic and limited, and memory grows with the bytes that were really
 * read. Offsets in messages count the uncompressed bytes. */
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/c_locale.h"
#include "layouts.h"
#include "origin.h"
#include "unzip.h"

/* ---- a file ---- */

enum { IDX_MAX_RANK = 4, FIRST_CHUNK = 1 << 16 };
static const int64_t max_bytes = INT64_C(1) << 31; /* bytes of data in one file */

typedef struct {
    dataset *owner; /* of the message */
    const char *path;
    unzip *file;
    int rank, elem; /* of an image file 3 or 4, of labels 1 or 2; bytes of an element */
    int64_t offset, size[IDX_MAX_RANK], bytes;
} idx_file;

/* Sets the message, preceded by the file's name and, unless it is negative, an offset. */
__attribute__((format(printf, 4, 5))) static adj_status
fail(idx_file *f, adj_status status, int64_t offset, const char *format, ...)
{
    char sentence[ADJ_MESSAGE], at[40] = "";
    va_list args;
    va_start(args, format);
    c_vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    if (offset >= 0)
        snprintf(at, sizeof at, "offset %lld: ", (long long)offset);
    io_dataset_fail(f->owner, status, "idx: %s: %s%s", f->path, at, sentence);
    return status;
}

static adj_status open_idx(idx_file *f)
{
    const char *why;
    const adj_status status = unzip_open(f->path, &f->file, &why);
    return status == ADJ_OK ? ADJ_OK : fail(f, status, -1, "%s", why);
}

/* Reads exactly n bytes or fails. */
static adj_status read_bytes(idx_file *f, void *to, int64_t n, const char *part)
{
    int64_t got = unzip_read(f->file, to, n), end = f->offset + got;
    if (got == n)
        return f->offset += n, ADJ_OK;
    if (f->file->wrong != NULL)
        return fail(f, ADJ_EIO, end, "%s", f->file->wrong);
    return fail(f, ADJ_EIO, end, "the file ends within its %s (expected at least %lld bytes)", part,
                (long long)(f->offset + n));
}

/* Reads the magic number. Images have a rank of 3 or 4, labels of 1 or, as int32, 2. */
static adj_status read_magic(idx_file *f, int is_images)
{
    uint8_t magic[4];
    adj_status status = read_bytes(f, magic, 4, "magic number");
    if (status != ADJ_OK)
        return status;
    const int is_bytes = magic[2] == 8, is_ints = magic[2] == 12;
    f->rank = magic[3];
    f->elem = is_ints ? 4 : 1;
    if (magic[0] == 0 && magic[1] == 0 &&
        (is_images ? is_bytes && (f->rank == 3 || f->rank == 4)
                   : (is_bytes && f->rank == 1) || (is_ints && f->rank == 2)))
        return ADJ_OK;
    return fail(f, ADJ_EIO, 0, "wrong magic number (got %02x%02x%02x%02x, expected %s)", magic[0],
                magic[1], magic[2], magic[3],
                is_images ? "00000803 or 00000804" : "00000801 or 00000c02");
}

/* Reads the sizes after the magic number into f->size and f->bytes. */
static adj_status read_sizes(idx_file *f)
{
    uint8_t size[4];
    adj_status status;

    f->bytes = f->elem;
    for (int i = 0; i < f->rank; i++) {
        int64_t at = f->offset;
        if ((status = read_bytes(f, size, 4, "header")) != ADJ_OK)
            return status;
        f->size[i] = (int64_t)size[0] << 24 | size[1] << 16 | size[2] << 8 | size[3];
        if (f->size[i] == 0)
            return fail(f, ADJ_EIO, at, "dimension %d is 0", i);
        if (__builtin_mul_overflow(f->bytes, f->size[i], &f->bytes) || f->bytes > max_bytes)
            return fail(f, ADJ_EIO, at,
                        "the header claims too much data (got a size of %lld, expected at most "
                        "%lld bytes in all)",
                        (long long)f->size[i], (long long)max_bytes);
    }
    return ADJ_OK;
}

/* Reads the f->bytes bytes after the header into *data, which the caller frees also on failure, in
 * chunks of doubling size: a wrong header costs at most twice the file in memory. */
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

/* Checks that the file ends here; in a gzip file reading to the end also checks its checksum. */
static adj_status expect_end(idx_file *f)
{
    uint8_t more;

    if (unzip_read(f->file, &more, 1) == 1)
        return fail(f, ADJ_EIO, f->offset, "more bytes than the header says");
    if (f->file->wrong != NULL)
        return fail(f, ADJ_EIO, f->offset, "%s", f->file->wrong);
    return ADJ_OK;
}

/* Reads a whole file; the caller frees *data, also on failure. */
static adj_status read_idx(idx_file *f, const char *part, int is_images, uint8_t **data)
{
    adj_status status = open_idx(f);
    if (status != ADJ_OK)
        return status;
    if ((status = read_magic(f, is_images)) == ADJ_OK && (status = read_sizes(f)) == ADJ_OK &&
        (status = read_data(f, part, data)) == ADJ_OK)
        status = expect_end(f);
    unzip_close(f->file);
    return status;
}

/* ---- a pair of images and labels ---- */

static int64_t label_at(const idx_file *f, const uint8_t *label)
{
    if (f->elem == 1)
        return label[0];
    return (int32_t)((uint32_t)label[0] << 24 | (uint32_t)label[1] << 16 | (uint32_t)label[2] << 8 |
                     label[3]);
}

/* Takes the first element of each row as the label. If d->public.classes is 0, labels may be up to
 * ADJ_MAX_CLASSES - 1. */
static adj_status take_labels(dataset *d, idx_file *f, const uint8_t *bytes)
{
    const int64_t n = f->size[0], row = f->bytes / n, header = 4 + 4 * f->rank;
    const int64_t classes = d->public.classes > 0 ? d->public.classes : ADJ_MAX_CLASSES;

    d->labels = malloc((size_t)n * sizeof *d->labels);
    if (d->labels == NULL)
        return fail(f, ADJ_ENOMEM, -1, "out of memory");
    for (int64_t i = 0; i < n; i++) {
        const int64_t label = label_at(f, bytes + i * row);
        if (label < 0 || label >= classes)
            return fail(f, ADJ_EIO, header + i * row,
                        "label is out of range (got %lld, expected 0 to %lld)", (long long)label,
                        (long long)classes - 1);
        d->labels[i] = (int32_t)label;
    }
    return ADJ_OK;
}

/* Makes bytes of only 0 and 1 black and white, as the reader of NumPy's files does. */
static void settle_bits(dataset *d, const idx_file *f)
{
    int largest = 0;
    for (int64_t i = 0; i < f->bytes && largest <= 1; i++)
        largest = d->images[i] > largest ? d->images[i] : largest;
    if (largest != 1)
        return;
    for (int64_t i = 0; i < f->bytes; i++)
        d->images[i] *= 255;
    d->origin.high = 1;
    snprintf(d->origin.values_of, sizeof d->origin.values_of, "%.250s", f->path);
}

static adj_status read_pair(dataset *d, const char *images, const char *labels)
{
    idx_file x = {.owner = d, .path = images}, y = {.owner = d, .path = labels};
    uint8_t *bytes = NULL;

    adj_status status = read_idx(&x, "images", 1, &d->images);
    if (status == ADJ_OK)
        status = read_idx(&y, "labels", 0, &bytes);
    if (status == ADJ_OK && y.size[0] != x.size[0])
        status = fail(&y, ADJ_EIO, 4, "number of labels differs from %s (got %lld, expected %lld)",
                      images, (long long)y.size[0], (long long)x.size[0]);
    if (status == ADJ_OK)
        status = take_labels(d, &y, bytes);
    free(bytes);
    if (status != ADJ_OK)
        return status;
    settle_bits(d, &x);
    d->public.n = x.size[0];
    return io_dataset_take_axes(d, images, x.rank, x.size);
}

adj_status adj_dataset_idx(const char *images, const char *labels, int classes, adj_dataset **out)
{
    dataset *d;
    adj_status status = io_dataset_new(out, &d);
    if (status != ADJ_OK)
        return status;
    if (images == NULL || labels == NULL)
        return io_dataset_fail(d, ADJ_EARG, "idx: a file name is missing");
    if (classes < 0 || classes == 1 || classes > 256)
        return io_dataset_fail(d, ADJ_EARG,
                               "idx: number of classes is out of range (got %d, expected 2 to 256)",
                               classes);
    d->public.classes = classes;
    status = read_pair(d, images, labels);
    return status == ADJ_OK ? io_dataset_finish(d, images, ADJ_TEST, NULL) : status;
}

/* ---- a folder ---- */

/* Parsed name of a file in a folder. */
typedef struct {
    size_t prefix; /* bytes of "emnist-letters-" */
    int is_train, is_images, is_packed;
} idx_name;

/* Moves *text past word if the text begins with it. */
static int skip(const char **text, const char *word)
{
    size_t n = strlen(word);
    if (strncmp(*text, word, n) != 0)
        return 0;
    *text += n;
    return 1;
}

static int parse_rest(const char *text, idx_name *n)
{
    n->is_train = skip(&text, "train");
    if (!n->is_train && !skip(&text, "t10k") && !skip(&text, "test"))
        return 0;
    n->is_images = skip(&text, "-images");
    if (!n->is_images && !skip(&text, "-labels"))
        return 0;
    if (!skip(&text, "-idx") && !skip(&text, ".idx"))
        return 0;
    if (!skip(&text, "1-ubyte") && !skip(&text, "3-ubyte") && !skip(&text, "4-ubyte") &&
        (n->is_images || !skip(&text, "2-int")))
        return 0;
    n->is_packed = skip(&text, ".gz");
    return *text == '\0';
}

/* Parses the name of a split at the beginning of the text or after a "-" or "_". */
static int parse_name(const char *text, idx_name *n)
{
    for (const char *at = text; *at != '\0'; at++)
        if ((at == text || at[-1] == '-' || at[-1] == '_') && parse_rest(at, n)) {
            n->prefix = (size_t)(at - text);
            return 1;
        }
    return 0;
}

typedef struct {
    char images[NAME_MAX + 1], labels[NAME_MAX + 1]; /* "": none */
    size_t prefix;
    int many; /* sets with different prefixes */
} idx_pair;

/* Adds a file to the pair; a plain file has precedence over a gzip one. */
static void add_name(idx_pair *p, const char *text, const idx_name *n)
{
    char *to = n->is_images ? p->images : p->labels;
    const char *other = p->images[0] != '\0' ? p->images : p->labels;

    if (other[0] != '\0' && (p->prefix != n->prefix || strncmp(other, text, n->prefix) != 0)) {
        p->many = 1;
        return;
    }
    p->prefix = n->prefix;
    if (to[0] == '\0' || !n->is_packed)
        memcpy(to, text, strlen(text) + 1);
}

/* Returns the files of a split in a folder. */
static idx_pair find_pair(const char *folder, int is_train)
{
    idx_pair p = {.many = 0};
    DIR *d = opendir(folder);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        idx_name n;
        if (parse_name(e->d_name, &n) && n.is_train == is_train && strlen(e->d_name) <= NAME_MAX)
            add_name(&p, e->d_name, &n);
    }
    if (d != NULL)
        closedir(d);
    return p;
}

int io_idx_has(const char *folder, adj_dataset_part part)
{
    if (part == ADJ_VALIDATION)
        return 0;
    idx_pair p = find_pair(folder, part == ADJ_TRAIN);
    return p.images[0] != '\0' || p.labels[0] != '\0';
}

adj_status io_idx_read(dataset *d, const char *folder, adj_dataset_part part)
{
    idx_pair p = find_pair(folder, part == ADJ_TRAIN);
    const char *part_name = part == ADJ_TRAIN ? "train" : "t10k";
    char images[PATH_MAX], labels[PATH_MAX];

    if (p.many)
        return io_dataset_fail(d, ADJ_EIO,
                               "idx: %s has several data sets, %s and others (expected one)",
                               folder, p.images[0] != '\0' ? p.images : p.labels);
    if (p.images[0] == '\0')
        snprintf(p.images, sizeof p.images, "%s-images-idx3-ubyte", part_name);
    if (p.labels[0] == '\0')
        snprintf(p.labels, sizeof p.labels, "%s-labels-idx1-ubyte", part_name);
    if (!io_join(images, folder, p.images) || !io_join(labels, folder, p.labels))
        return io_dataset_fail(d, ADJ_EIO, "idx: %s: the name is too long", folder);
    return read_pair(d, images, labels);
}

adj_status adj_dataset_mnist(const char *folder, adj_dataset_part part, adj_dataset **out)
{
    dataset *d;
    adj_status status = io_dataset_new(out, &d);
    if (status != ADJ_OK)
        return status;
    if (folder == NULL || (part != ADJ_TRAIN && part != ADJ_TEST))
        return io_dataset_fail(d, ADJ_EARG, "mnist: folder is NULL or unknown split");
    d->public.classes = 10;
    io_dataset_set_moments(d, DIGIT_MEAN, DIGIT_DEVIATION);
    status = io_idx_read(d, folder, part);
    return status == ADJ_OK ? io_dataset_finish(d, folder, part, NULL) : status;
}
