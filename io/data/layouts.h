/* layouts.h - the layouts of data sets in files: whether one has a part, and its reader.
 *
 * A reader fills of a data set what it stores in memory (images or floats, stored, labels, n) or
 * the list of its files, and class names if it knows them. io_dataset_finish does the rest. */
#ifndef IO_DATA_LAYOUTS_H
#define IO_DATA_LAYOUTS_H

#include <limits.h>

#include "data.h"

adj_status io_digits_read(dataset *d, adj_dataset_part part, int64_t n, uint64_t seed);

int io_idx_has(const char *folder, adj_dataset_part part);
adj_status io_idx_read(dataset *d, const char *folder, adj_dataset_part part);

int io_cifar_has(const char *folder, adj_dataset_part part);
adj_status io_cifar_read(dataset *d, const char *folder, adj_dataset_part part);
/* Fails if where is, or holds, one of CIFAR's files as a Python pickle. */
adj_status io_cifar_refuse_pickle(dataset *d, const char *where);

/* where: an archive, or a folder with one or with .npy files. An archive that cannot be read counts
 * as any part, and one without parts as a training split: the reader reports why. */
int io_numpy_has(const char *where, adj_dataset_part part);
adj_status io_numpy_read(dataset *d, const char *where, adj_dataset_part part);

/* d->stored of images [n, h, w] or of rank 4: [n, h, w, c] where the last size is a number of
 * channels (1, 3 or 4), else [n, c, h, w], which is rearranged. */
adj_status io_dataset_take_axes(dataset *d, const char *name, int rank, const int64_t size[]);
adj_image_size io_wanted_size(adj_image_size own, const adj_dataset_opts *o);

/* Splits, limits, sizes, classes, mean and deviation as options say (NULL: default); where names
 * what the images come from in messages. A data set with d->own_validation is not split. */
adj_status io_dataset_finish(dataset *d, const char *where, adj_dataset_part part,
                             const adj_dataset_opts *options);

/* folder/name; whether it fits. */
int io_join(char path[PATH_MAX], const char *folder, const char *name);
#endif
