/* numpy.c - NumPy arrays of images and of labels: in one archive (.npz), or a file each (.npy). */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array.h"
#include "packed.h"

/* Keys of a split's arrays; the first pair with both arrays is used. */
static const struct {
    adj_dataset_part part;
    const char *images, *labels;
} keys[] = {
    {ADJ_TRAIN, "x_train", "y_train"},
    {ADJ_TRAIN, "X_train", "y_train"},
    {ADJ_TRAIN, "X_train", "Y_train"},
    {ADJ_TRAIN, "train_images", "train_labels"},
    {ADJ_TRAIN, "x", "y"},
    {ADJ_TRAIN, "X", "y"},
    {ADJ_TRAIN, "X", "Y"},
    {ADJ_TRAIN, "images", "labels"},
    {ADJ_TRAIN, "arr_0", "arr_1"},
    {ADJ_TEST, "x_test", "y_test"},
    {ADJ_TEST, "X_test", "y_test"},
    {ADJ_TEST, "X_test", "Y_test"},
    {ADJ_TEST, "test_images", "test_labels"},
    {ADJ_VALIDATION, "x_val", "y_val"},
    {ADJ_VALIDATION, "X_val", "y_val"},
    {ADJ_VALIDATION, "X_val", "Y_val"},
    {ADJ_VALIDATION, "val_images", "val_labels"},
    {ADJ_VALIDATION, "x_valid", "y_valid"},
    {ADJ_VALIDATION, "valid_images", "valid_labels"},
    {ADJ_VALIDATION, "x_validation", "y_validation"},
    {ADJ_VALIDATION, "validation_images", "validation_labels"},
};

/* ---- where arrays are ---- */

typedef struct {
    const char *folder; /* folder of .npy files; NULL: an archive */
    zip_t *archive;
    char path[PATH_MAX]; /* path of the archive */
    int archives;        /* in a folder */
} place;

static int has_magic(const char *path)
{
    char start[4];
    const char *why;
    return io_read_start(path, start, sizeof start, &why) == sizeof start &&
           memcmp(start, "PK\3\4", sizeof start) == 0;
}

/* True if there is an archive: the file itself, or the first of a folder by name. Sets *n to the
 * number of archives in the folder. */
static int find_archive(char path[PATH_MAX], const char *where, int *n)
{
    char best[NAME_MAX + 1] = "";
    struct stat s;
    *n = 0;
    if (stat(where, &s) == 0 && S_ISREG(s.st_mode) && strlen(where) < PATH_MAX)
        return memcpy(path, where, strlen(where) + 1), has_magic(where);
    DIR *d = opendir(where);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        const size_t length = strlen(e->d_name);
        if (e->d_name[0] == '.' || length <= 4 || strcmp(e->d_name + length - 4, ".npz") != 0)
            continue;
        if ((*n)++ == 0 || strcmp(e->d_name, best) < 0)
            memcpy(best, e->d_name, length + 1);
    }
    if (d != NULL)
        closedir(d);
    return best[0] != '\0' && io_join(path, where, best);
}

static adj_status open_place(place *p, const char *where, adj_error *error)
{
    *p = (place){.folder = NULL};
    *error = (adj_error){0};
    if (!find_archive(p->path, where, &p->archives))
        p->folder = where;
    else
        p->archive = zipped_open(p->path, error);
    return error->status;
}

static void close_place(place *p)
{
    if (p->archive != NULL)
        zip_discard(p->archive);
}

/* Writes the name "x.npy" in an archive, or the path of the file. */
static int name_of(const place *p, const char *key, char path[PATH_MAX])
{
    char file[40];
    snprintf(file, sizeof file, "%s.npy", key);
    if (p->folder != NULL)
        return io_join(path, p->folder, file);
    memcpy(path, file, strlen(file) + 1);
    return 1;
}

/* Returns 1 if the place has the array, 0 if not, -1 if memory is short. */
static int has_array(const place *p, const char *key)
{
    char name[PATH_MAX];
    if (!name_of(p, key, name))
        return 0;
    return p->archive != NULL ? zipped_has(p->archive, name) : access(name, F_OK) == 0;
}

enum { NO_KEYS = -1, NO_MEMORY = -2 };

/* Returns the index into keys, or NO_KEYS if the part is not there. */
static int find_keys(const place *p, adj_dataset_part part)
{
    for (int i = 0; i < (int)(sizeof keys / sizeof keys[0]); i++) {
        if (keys[i].part != part)
            continue;
        const int images = has_array(p, keys[i].images), labels = has_array(p, keys[i].labels);
        if (images < 0 || labels < 0)
            return NO_MEMORY;
        if (images && labels)
            return i;
    }
    return NO_KEYS;
}

int io_numpy_has(const char *where, adj_dataset_part part)
{
    place p;
    adj_error error;
    const adj_status status = open_place(&p, where, &error);
    const int found = status == ADJ_OK ? find_keys(&p, part) : NO_KEYS;
    int has = status != ADJ_OK || found != NO_KEYS;
    if (!has && part == ADJ_TRAIN && p.folder == NULL)
        has = find_keys(&p, ADJ_TEST) == NO_KEYS && find_keys(&p, ADJ_VALIDATION) == NO_KEYS;
    close_place(&p);
    return has;
}

/* ---- reading arrays ---- */

static adj_status read_array(const place *p, const char *key, file_array *a, adj_error *error)
{
    char name[PATH_MAX], full[300];

    if (!name_of(p, key, name))
        return adj_error_set(error, ADJ_EIO, "npy: %s: the name is too long", key);
    if (p->archive == NULL)
        return io_npy_read_file(name, a, error);
    snprintf(full, sizeof full, "%.250s: %.40s", p->path, name);
    zip_file_t *f = zip_fopen(p->archive, name, 0);
    if (f == NULL)
        return adj_error_set(error, ADJ_EIO, "npz: %s: %s", full, zip_strerror(p->archive));
    adj_status status = io_npy_read(&(array_stream){zipped_read, f, full}, a, error);
    zip_fclose(f);
    return status;
}

/* ---- images ---- */

static float float_at(const file_array *a, int64_t i)
{
    float f;
    double v;
    if (a->bytes == 4)
        return memcpy(&f, a->data + 4 * i, 4), f;
    return memcpy(&v, a->data + 8 * i, 8), (float)v;
}

typedef enum { UNKNOWN, ZERO_TO_ONE, PIXELS, NORMALIZED } scale;

static scale scale_of(float low, float high)
{
    if (low < 0)
        return NORMALIZED;
    return high > 1 ? PIXELS : high > 0 ? ZERO_TO_ONE : UNKNOWN;
}

/* Fails if the array and the part like have two scales. */
static adj_status check_scale(dataset *d, const char *name)
{
    const adj_dataset_origin *of = &d->origin, *like = origin_of(d->like);
    const scale own = scale_of(of->low, of->high), wanted = scale_of(like->low, like->high);
    if (own == wanted || own == UNKNOWN || wanted == UNKNOWN)
        return ADJ_OK;
    const char *cure = own == ZERO_TO_ONE && wanted == PIXELS   ? "; multiply by 255"
                       : own == PIXELS && wanted == ZERO_TO_ONE ? "; divide by 255"
                                                                : "";
    return io_dataset_fail(d, ADJ_EIO,
                           "npy: %.200s: scale of the values differs (got %g to %g, expected that "
                           "of %.200s, %g to %g%s)",
                           name, (double)of->low, (double)of->high,
                           like->values_of[0] != '\0' ? like->values_of : "the training",
                           (double)like->low, (double)like->high, cure);
}

/* Decides by the range of all values whether they are pixels: adj_dataset_layout has the rule. */
static adj_status settle_range(dataset *d, float low, float high, int64_t n, const char *name)
{
    const adj_dataset_origin *like = origin_of(d->like);
    const int like_has_pixels = scale_of(like->low, like->high) == PIXELS;
    /* Values a little above 1 may be pixels / 255 that resampling has overshot. */
    const int is_unclear =
        d->floats != NULL && low >= 0 && high > 1 && high < 128 && !like_has_pixels;
    if (low < -255 || high > 255 || is_unclear)
        return io_dataset_fail(
            d, ADJ_EIO,
            "npy: %s: unknown scale of the values (got %g to %g, expected pixels in 0 to 1, or in "
            "0 to 255 with some from 128 on, or values already normalized)",
            name, (double)low, (double)high);
    d->origin.low = low;
    d->origin.high = high;
    snprintf(d->origin.values_of, sizeof d->origin.values_of, "%s", name);
    if (low < 0) {
        d->public.normalized = 1;
        io_dataset_set_moments(d, 0, 1);
    }
    for (int64_t i = 0; scale_of(low, high) == ZERO_TO_ONE && i < n; i++)
        if (d->floats != NULL)
            d->floats[i] *= 255;
        else
            d->images[i] *= 255;
    return check_scale(d, name);
}

static adj_status take_floats(dataset *d, const file_array *a, const char *name)
{
    int64_t n = array_elems(a);
    float low = 0, high = 0;

    d->floats = malloc((size_t)n * sizeof *d->floats);
    if (d->floats == NULL)
        return io_dataset_fail(d, ADJ_ENOMEM, "npy: out of memory");
    for (int64_t i = 0; i < n; i++) {
        float v = d->floats[i] = float_at(a, i);
        if (!isfinite(v))
            return io_dataset_fail(d, ADJ_EIO, "npy: %s: element %lld is not a finite float32",
                                   name, (long long)i);
        low = v < low ? v : low;
        high = v > high ? v : high;
    }
    return settle_range(d, low, high, n, name);
}

static adj_status take_images(dataset *d, file_array *a, const char *name)
{
    const int64_t n = array_elems(a);
    adj_status status = ADJ_OK;

    if (a->rank < 3 || (a->kind == 'f' ? a->bytes < 4 : a->kind != 'u' || a->bytes != 1))
        return io_dataset_fail(d, ADJ_EIO,
                               "npy: %s: not images (got rank %d of %c%d, expected [n, h, w] or "
                               "[n, h, w, c] of u1, f4 or f8)",
                               name, a->rank, a->kind, a->bytes);
    if (a->size[0] > INT32_MAX)
        return io_dataset_fail(d, ADJ_EIO, "npy: %s: too many images", name);
    d->public.n = a->size[0];
    if (a->kind == 'f')
        status = take_floats(d, a, name);
    else {
        d->images = a->data;
        a->data = NULL;
        uint8_t high = 0;
        for (int64_t i = 0; i < n; i++)
            high = d->images[i] > high ? d->images[i] : high;
        status = settle_range(d, 0, high, n, name);
    }
    return status == ADJ_OK ? io_dataset_take_axes(d, name, a->rank, a->size) : status;
}

/* ---- labels ---- */

static adj_status take_labels(dataset *d, const file_array *a, const char *name)
{
    int is_column = a->rank == 1 || (a->rank == 2 && a->size[1] == 1);
    if (!is_column || (a->kind != 'u' && a->kind != 'i'))
        return io_dataset_fail(
            d, ADJ_EIO, "npy: %s: not labels (got rank %d of %c%d, expected [n] of integers)", name,
            a->rank, a->kind, a->bytes);
    return array_take_labels(d, a, "npy", name, 0);
}

static adj_status read_pair(dataset *d, const place *p, int k)
{
    file_array x = {0}, y = {0};
    adj_error error = {0};
    char name[300];
    const char *where = p->folder != NULL ? p->folder : p->path;

    adj_status status = read_array(p, keys[k].images, &x, &error);
    if (status == ADJ_OK)
        status = read_array(p, keys[k].labels, &y, &error);
    if (status != ADJ_OK)
        io_dataset_fail(d, status, "%s", error.message);
    snprintf(name, sizeof name, "%.250s: %s", where, keys[k].images);
    if (status == ADJ_OK)
        status = take_images(d, &x, name);
    snprintf(name, sizeof name, "%.250s: %s", where, keys[k].labels);
    if (status == ADJ_OK)
        status = take_labels(d, &y, name);
    free(x.data);
    free(y.data);
    return status;
}

adj_status io_numpy_read(dataset *d, const char *where, adj_dataset_part part)
{
    place p;
    adj_error error;
    int k = NO_KEYS;
    adj_status status = open_place(&p, where, &error);

    if (status != ADJ_OK)
        status = io_dataset_fail(d, status, "%s", error.message);
    else if ((k = find_keys(&p, part)) == NO_MEMORY)
        status = io_dataset_fail(d, ADJ_ENOMEM, "npz: %s: out of memory", where);
    else if (k == NO_KEYS)
        status = io_dataset_fail(d, ADJ_EIO,
                                 "npz: %s: no arrays of this split (expected such as x_train and "
                                 "y_train, x_test and y_test, x and y, images and labels)",
                                 where);
    else
        status = read_pair(d, &p, k);
    if (status == ADJ_OK && p.archives > 1)
        snprintf(d->public.left_out, sizeof d->public.left_out, "%d other .npz file%s",
                 p.archives - 1, p.archives > 2 ? "s" : "");
    close_place(&p);
    return status;
}
