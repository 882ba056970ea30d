/* idx.c - arrays in IDX, the format of MNIST and its likes, and data sets of them: a pair of
 * images, bytes, and labels. Labels are bytes [n], or QMNIST's int32 [n, 8], whose column 0 is the
 * class.
 *
 * A file is 00 00 TT RR (TT the element type, RR the rank), RR big-endian 32-bit sizes, then the
 * elements, big-endian, and nothing else. Offsets in messages count the uncompressed bytes. */
#include <dirent.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"
#include "packed.h"

/* ---- an array ---- */

static const int64_t max_bytes = INT64_C(1) << 31; /* size limit of an array */

typedef struct {
    io_place place;
    unzip *file;
    int64_t offset;
} reader;

/* Moves on by n bytes, of which the file had `got`. */
static adj_status advance(reader *r, int64_t got, int64_t n, const char *part)
{
    const int64_t end = r->offset + got;
    r->offset += n;
    if (got == n)
        return ADJ_OK;
    if (r->file->wrong != NULL)
        return io_refuse(&r->place, ADJ_EIO, "offset %lld: %s", (long long)end, r->file->wrong);
    return io_refuse(&r->place, ADJ_EIO,
                     "offset %lld: the file ends within its %s (expected at least %lld bytes)",
                     (long long)end, part, (long long)r->offset);
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
    return io_refuse(&r->place, ADJ_EIO,
                     "offset 0: wrong magic number (got %02x%02x%02x%02x, expected %s)", magic[0],
                     magic[1], magic[2], magic[3], expected->magic);
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
            return io_refuse(&r->place, ADJ_EIO, "offset %lld: dimension %d is 0", (long long)at,
                             i);
        if (__builtin_mul_overflow(*bytes, a->size[i], bytes) || *bytes > max_bytes)
            return io_refuse(&r->place, ADJ_EIO,
                             "offset %lld: the header claims too much data (got a size of %lld, "
                             "expected at most %lld bytes in all)",
                             (long long)at, (long long)a->size[i], (long long)max_bytes);
    }
    return ADJ_OK;
}

/* Reads the data to the end of the file: there is a gzip file's checksum. */
static adj_status read_to_end(reader *r, const char *part, int64_t bytes, file_array *a)
{
    const array_stream s = {unzip_read, r->file, r->place.path};
    const int64_t got = array_read_bytes(&s, bytes, &a->data);
    uint8_t more;
    if (got < 0)
        return io_out_of_memory(&r->place);
    adj_status status = advance(r, got, bytes, part);
    if (status != ADJ_OK)
        return status;
    const char *wrong =
        unzip_read(r->file, &more, 1) == 1 ? "more bytes than the header says" : r->file->wrong;
    if (wrong != NULL)
        return io_refuse(&r->place, ADJ_EIO, "offset %lld: %s", (long long)r->offset, wrong);
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
        array_swap(a);
    return ADJ_OK;
}

adj_status io_idx_read_file(const char *path, const idx_content *expected, file_array *a,
                            adj_error *error)
{
    reader r = {.place = {"idx: ", path, error}};
    const char *why;
    int64_t bytes = 0;

    *a = (file_array){0};
    adj_status status = unzip_open(path, &r.file, &why);
    if (status != ADJ_OK)
        return io_refuse(&r.place, status, "%s", why);
    status = read_magic(&r, expected, a);
    if (status == ADJ_OK)
        status = read_sizes(&r, a, &bytes);
    if (status == ADJ_OK)
        status = read_to_end(&r, expected->part, bytes, a);
    if (status != ADJ_OK) {
        free(a->data);
        a->data = NULL;
    }
    unzip_close(r.file);
    return status;
}

/* ---- a pair of images and labels ---- */

static int is_bytes(const file_array *a) { return a->kind == 'u' && a->bytes == 1; }
static int are_images(const file_array *a) { return is_bytes(a) && (a->rank == 3 || a->rank == 4); }
static int are_labels(const file_array *a)
{
    return (is_bytes(a) && a->rank == 1) || (a->kind == 'i' && a->bytes == 4 && a->rank == 2);
}

static const idx_content image_file = {"images", are_images, "00000803 or 00000804"},
                         label_file = {"labels", are_labels, "00000801 or 00000c02"};

/* Takes the bytes. Those of only 0 and 1 become black and white, as in the reader of NumPy's files.
 */
static void take_images(dataset *d, file_array *a, const char *path)
{
    const int64_t n = array_elems(a);
    int largest = 0;
    d->public.n = a->size[0];
    d->images = a->data;
    a->data = NULL;
    for (int64_t i = 0; i < n && largest <= 1; i++)
        largest = d->images[i] > largest ? d->images[i] : largest;
    if (largest != 1)
        return;
    for (int64_t i = 0; i < n; i++)
        d->images[i] *= 255;
    d->origin.high = 1;
    snprintf(d->origin.values_of, sizeof d->origin.values_of, "%.250s", path);
}

static adj_status read_pair(dataset *d, const char *images, const char *labels)
{
    file_array x, y = {0};
    adj_error error = {0};

    adj_status status = io_idx_read_file(images, &image_file, &x, &error);
    if (status == ADJ_OK) {
        take_images(d, &x, images);
        status = io_idx_read_file(labels, &label_file, &y, &error);
    }
    if (status != ADJ_OK)
        io_dataset_fail(d, status, "%s", error.message);
    else if ((status = array_take_labels(d, &y, "idx", labels, 4 + 4 * y.rank)) == ADJ_OK)
        status = io_dataset_take_axes(d, images, x.rank, x.size);
    free(y.data);
    return status;
}

/* ---- a folder ---- */

/* Names of files: what is before the split is empty or ends in - or _. */
static const char name_pattern[] = "^(.*[-_])?(train|t10k|test)-((images)[-.]idx[134]-ubyte|"
                                   "labels[-.]idx([134]-ubyte|2-int))(\\.gz)?$";

/* Parsed name of a file in a folder. */
typedef struct {
    size_t prefix; /* bytes of "emnist-letters-" */
    int is_train, is_images, is_packed;
} idx_name;

static int parse_name(const regex_t *names, const char *text, idx_name *n)
{
    enum { SPLIT = 2, IMAGES = 4, PACKED = 6, GROUPS };
    regmatch_t group[GROUPS];
    if (regexec(names, text, GROUPS, group, 0) != 0)
        return 0;
    *n = (idx_name){.prefix = (size_t)group[SPLIT].rm_so,
                    .is_train = strncmp(text + group[SPLIT].rm_so, "train", 5) == 0,
                    .is_images = group[IMAGES].rm_so >= 0,
                    .is_packed = group[PACKED].rm_so >= 0};
    return 1;
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
    regex_t names;
    if (regcomp(&names, name_pattern, REG_EXTENDED) != 0)
        return p; /* memory is short */
    DIR *d = opendir(folder);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        idx_name n;
        if (strlen(e->d_name) <= NAME_MAX && parse_name(&names, e->d_name, &n) &&
            n.is_train == is_train)
            add_name(&p, e->d_name, &n);
    }
    if (d != NULL)
        closedir(d);
    regfree(&names);
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
