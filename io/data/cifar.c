/* cifar.c - CIFAR-10's and CIFAR-100's binary files: records of one label (CIFAR-100: the coarse
 * and the fine one, of which the fine one is taken) and the planes R, G, B of 32x32 bytes. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/room.h"
#include "data.h"
#include "packed.h"

enum { SIDE = 32, PIXELS = SIDE * SIDE, IMAGE = 3 * PIXELS };

typedef struct {
    const char *const *train; /* files, up to a NULL; those that are there are read */
    const char *const *test;
    const char *names; /* a class name a line */
    int classes, label_bytes;
} cifar_kind;

static const char *const train10[] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                      "data_batch_4.bin", "data_batch_5.bin", NULL};
static const char *const test10[] = {"test_batch.bin", NULL};
static const char *const train100[] = {"train.bin", NULL}, *const test100[] = {"test.bin", NULL};
static const cifar_kind kinds[] = {{train10, test10, "batches.meta.txt", 10, 1},
                                   {train100, test100, "fine_label_names.txt", 100, 2}};

static int is_there(const char *folder, const char *name)
{
    char path[PATH_MAX];
    return io_join(path, folder, name) && access(path, F_OK) == 0;
}

static const char *const *files_of(const cifar_kind *k, adj_dataset_part part)
{
    return part == ADJ_TRAIN ? k->train : k->test;
}

/* Returns the kind of the files in the folder, or NULL if there are none. */
static const cifar_kind *find_kind(const char *folder, adj_dataset_part part)
{
    for (int i = 0; i < 2 && part != ADJ_VALIDATION; i++)
        for (const char *const *file = files_of(&kinds[i], part); *file != NULL; file++)
            if (is_there(folder, *file))
                return &kinds[i];
    return NULL;
}

int io_cifar_has(const char *folder, adj_dataset_part part)
{
    return find_kind(folder, part) != NULL;
}

/* True if path is a file that begins like a Python pickle of protocol 2 to 5. */
static int is_pickle(const char *path)
{
    uint8_t start[2];
    const char *why;
    return io_read_start(path, start, sizeof start, &why) == sizeof start && start[0] == 0x80 &&
           start[1] >= 2 && start[1] <= 5;
}

adj_status io_cifar_refuse_pickle(dataset *d, const char *where)
{
    static const char *const names[] = {"",
                                        "data_batch_1",
                                        "test_batch",
                                        "train",
                                        "test",
                                        "cifar-10-batches-py/data_batch_1",
                                        "cifar-100-python/train"};
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (snprintf(path, PATH_MAX, "%s%s%s", where, i > 0 ? "/" : "", names[i]) < PATH_MAX &&
            is_pickle(path))
            return io_dataset_fail(d, ADJ_EIO,
                                   "data: %.200s: is a Python pickle (expected CIFAR's binary "
                                   "version, cifar-10-binary.tar.gz or cifar-100-binary.tar.gz "
                                   "unpacked, or an .npz)",
                                   path);
    return ADJ_OK;
}

/* ---- records ---- */

/* Makes room for one more image and label; returns 0 when out of memory. */
static int make_room(dataset *d)
{
    uint8_t *images = with_room(d->images, d->public.n, IMAGE);
    if (images == NULL)
        return 0;
    d->images = images;
    int32_t *labels = with_room(d->labels, d->public.n, sizeof *labels);
    if (labels == NULL)
        return 0;
    d->labels = labels;
    return 1;
}

static adj_status add_record(dataset *d, const cifar_kind *k, const char *path, int64_t offset,
                             const uint8_t *record)
{
    int label = record[k->label_bytes - 1];
    if (label >= k->classes)
        return io_dataset_fail(
            d, ADJ_EIO, "cifar: %s: offset %lld: label is out of range (got %d, expected 0 to %d)",
            path, (long long)offset, label, k->classes - 1);
    if (!make_room(d))
        return io_dataset_fail(d, ADJ_ENOMEM, "cifar: out of memory");
    io_interleave(record + k->label_bytes, 3, PIXELS, 1, d->images + d->public.n * IMAGE);
    d->labels[d->public.n++] = label;
    return ADJ_OK;
}

static adj_status read_records(dataset *d, const cifar_kind *k, const char *path)
{
    uint8_t record[2 + IMAGE];
    int64_t bytes = k->label_bytes + IMAGE, got = 0;
    const char *why;
    unzip *u;
    adj_status status = unzip_open(path, &u, &why);

    if (status != ADJ_OK)
        return io_dataset_fail(d, status, "cifar: %s: %s", path, why);
    for (int64_t at = 0; status == ADJ_OK && (got = unzip_read(u, record, bytes)) == bytes;
         at += got)
        status = add_record(d, k, path, at, record);
    if (status == ADJ_OK && (u->wrong != NULL || got != 0))
        status = io_dataset_fail(d, ADJ_EIO, "cifar: %s: %s", path,
                                 u->wrong != NULL ? u->wrong : "the file ends within an image");
    unzip_close(u);
    return status;
}

/* ---- names ---- */

/* Returns the lines of the file of class names as text to be freed, or NULL unless it has one line
 * for each class. */
static char *read_names(const char *folder, const cifar_kind *k)
{
    char path[PATH_MAX], line[256];
    FILE *f = io_join(path, folder, k->names) ? fopen(path, "r") : NULL;
    char *text = f != NULL ? calloc((size_t)k->classes, sizeof line) : NULL, *end = text;
    int n = 0;

    while (text != NULL && n < k->classes && fgets(line, sizeof line, f) != NULL) {
        size_t length = strcspn(line, "\r\n");
        if (length == 0)
            continue;
        memcpy(end, line, length);
        end += length + 1;
        n++;
    }
    if (f != NULL)
        fclose(f);
    if (n == k->classes)
        return text;
    free(text);
    return NULL;
}

adj_status io_cifar_read(dataset *d, const char *folder, adj_dataset_part part)
{
    const cifar_kind *k = find_kind(folder, part);
    char path[PATH_MAX];
    adj_status status = ADJ_OK;

    if (k == NULL)
        return io_dataset_fail(d, ADJ_EIO, "cifar: %s: its files were removed", folder);
    for (const char *const *file = files_of(k, part); *file != NULL && status == ADJ_OK; file++)
        if (is_there(folder, *file))
            status = io_join(path, folder, *file)
                         ? read_records(d, k, path)
                         : io_dataset_fail(d, ADJ_EIO, "cifar: %s: the name is too long", folder);
    if (status != ADJ_OK)
        return status;
    d->stored = (adj_image_size){SIDE, SIDE, 3};
    d->public.classes = k->classes;
    char *names = read_names(folder, k);
    return names != NULL ? io_dataset_set_names(d, names, k->classes) : ADJ_OK;
}
