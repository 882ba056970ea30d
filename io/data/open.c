/* open.c - recognizes the layout of the data at a path and opens a split. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "folder.h"
#include "names.h"

enum { DIGITS_SEED = 1 };

static int digits_has(const char *path, adj_dataset_part part)
{
    return (path == NULL || strcmp(path, "digits") == 0) && part != ADJ_VALIDATION;
}

static adj_status digits_read(dataset *d, const char *path, adj_dataset_part part)
{
    (void)path;
    return io_digits_read(d, part, 0, DIGITS_SEED);
}

/* Layouts in the order in which they are tried. */
static const struct {
    adj_data_layout layout;
    int (*has)(const char *path, adj_dataset_part part);
    adj_status (*read)(dataset *d, const char *path, adj_dataset_part part);
} layouts[] = {
    {ADJ_DATA_DIGITS, digits_has, digits_read},       {ADJ_DATA_IDX, io_idx_has, io_idx_read},
    {ADJ_DATA_CIFAR, io_cifar_has, io_cifar_read},    {ADJ_DATA_NUMPY, io_numpy_has, io_numpy_read},
    {ADJ_DATA_FOLDER, io_folder_has, io_folder_read},
};
enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

/* Returns the index of the layout at a path; -1 if none fits. */
static int find_layout(const char *path)
{
    for (int i = 0; i < LAYOUTS; i++) {
        if (layouts[i].has(path, ADJ_TRAIN) || layouts[i].has(path, ADJ_TEST) ||
            layouts[i].has(path, ADJ_VALIDATION))
            return i;
        if (path == NULL || strcmp(path, "digits") == 0)
            break;
    }
    return -1;
}

adj_data_layout adj_dataset_layout(const char *path)
{
    int i = find_layout(path);
    return i >= 0 ? layouts[i].layout : ADJ_DATA_NONE;
}

int adj_dataset_has_part(const char *path, adj_dataset_part part)
{
    int i = find_layout(path);
    return i >= 0 && part >= ADJ_TRAIN && part <= ADJ_VALIDATION && layouts[i].has(path, part);
}

static adj_status refuse_path(dataset *d, const char *path)
{
    struct stat s;
    if (stat(path, &s) != 0)
        return io_dataset_fail(d, ADJ_EIO, "data: %.200s: %s", path, strerror(errno));
    if (io_cifar_refuse_pickle(d, path) != ADJ_OK)
        return ADJ_EIO;
    return io_dataset_fail(
        d, ADJ_EIO,
        "data: %.200s: no data set found (expected a folder of class folders with images "
        "(" IMAGE_ENDINGS
        "), directly or in train/, val/ and test/; IDX files such as train-images-idx3-ubyte; "
        "CIFAR's .bin files; or a file .npz with x_train and y_train)",
        path);
}

static adj_status refuse_part(dataset *d, const char *path, adj_dataset_part part)
{
    static const char *const names[] = {"training", "test", "validation"};
    return io_dataset_fail(d, ADJ_EARG, "data: %.300s: has no %s split%s", path, names[part],
                           part == ADJ_VALIDATION
                               ? " (--val-split, val_split in C, takes one from the training split)"
                               : "");
}

adj_status adj_dataset_open(const char *path, adj_dataset_part part,
                            const adj_dataset_opts *options, adj_dataset **out)
{
    const char *where = path != NULL ? path : "digits";
    dataset *d;
    adj_status status = io_dataset_new(out, &d);
    if (status != ADJ_OK)
        return status;
    if (part < ADJ_TRAIN || part > ADJ_VALIDATION)
        return io_dataset_fail(d, ADJ_EARG, "data: unknown split (got %d)", (int)part);
    int i = find_layout(path);
    if (i < 0)
        return refuse_path(d, where);
    d->own_validation = layouts[i].has(path, ADJ_VALIDATION);
    d->like = options != NULL && options->like != NULL && options->like->classes > 0 ? options->like
                                                                                     : NULL;
    adj_dataset_part read = part;
    if (part == ADJ_VALIDATION && !d->own_validation) {
        if (options == NULL || !(options->val_split > 0))
            return refuse_part(d, where, part);
        read = ADJ_TRAIN;
    }
    if (!layouts[i].has(path, read))
        return refuse_part(d, where, read);
    status = layouts[i].read(d, path, read);
    return status == ADJ_OK ? io_dataset_finish(d, where, part, options) : status;
}
