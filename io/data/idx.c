/* idx.c - a data set of IDX files: a pair of images, bytes, and labels. Labels are bytes [n], or
 * QMNIST's int32 [n, 8], whose column 0 is the class. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

/* ---- a pair of images and labels ---- */

static int is_bytes(const file_array *a) { return a->kind == 'u' && a->bytes == 1; }
static int are_images(const file_array *a) { return is_bytes(a) && (a->rank == 3 || a->rank == 4); }
static int are_labels(const file_array *a)
{
    return (is_bytes(a) && a->rank == 1) || (a->kind == 'i' && a->bytes == 4 && a->rank == 2);
}

static const idx_content image_file = {"images", are_images, "00000803 or 00000804"},
                         label_file = {"labels", are_labels, "00000801 or 00000c02"};

/* Takes the first element of each row as the label. */
static adj_status take_labels(dataset *d, const file_array *a, const char *path)
{
    const int64_t n = a->size[0], row = array_elems(a) / n, header = 4 + 4 * a->rank;

    if (n != d->public.n)
        return io_dataset_fail(
            d, ADJ_EIO, "idx: %s: offset 4: number of labels differs (got %lld, expected %lld)",
            path, (long long)n, (long long)d->public.n);
    d->labels = malloc((size_t)n * sizeof *d->labels);
    if (d->labels == NULL)
        return io_dataset_no_memory(d);
    for (int64_t i = 0; i < n; i++) {
        const int64_t label = array_integer(a, i * row);
        if (label < 0 || label >= ADJ_MAX_CLASSES)
            return io_dataset_fail(d, ADJ_EIO,
                                   "idx: %s: offset %lld: label is out of range (got %lld, "
                                   "expected 0 to %d)",
                                   path, (long long)(header + i * row * a->bytes), (long long)label,
                                   ADJ_MAX_CLASSES - 1);
        d->labels[i] = (int32_t)label;
    }
    return ADJ_OK;
}

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
    else if ((status = take_labels(d, &y, labels)) == ADJ_OK)
        status = io_dataset_take_axes(d, images, x.rank, x.size);
    free(y.data);
    return status;
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
