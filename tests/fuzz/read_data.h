/* read_data.h - a data set of arbitrary bytes, for the targets of its readers. */
#ifndef TESTS_FUZZ_READ_DATA_H
#define TESTS_FUZZ_READ_DATA_H

#include <string.h>

#include "adjoint_data.h"
#include "fuzz/memory_file.h"

/* Opens a split, which is refused with a message that begins with the format or "data: ", or has
 * images, labels and names that can be read, one by one and as a batch. */
static inline void read_data(const char *path, adj_dataset_part part, const adj_dataset_opts *o,
                             const char *format)
{
    enum { BATCH = 3, H = 5, W = 6, C = 3 };
    static float x[BATCH * H * W * C];
    int32_t labels[BATCH];
    adj_dataset *d = NULL;
    const adj_status status = adj_dataset_open(path, part, o, &d);
    must(d != NULL && (status == ADJ_OK) == (d->message[0] == '\0'));
    if (status != ADJ_OK)
        must(d->n == 0 && (strncmp(d->message, format, strlen(format)) == 0 ||
                           strncmp(d->message, "data: ", 6) == 0));
    else {
        float *pixels = malloc((size_t)(d->size.h * d->size.w * d->size.c) * sizeof *pixels);
        must(pixels != NULL && d->n > 0 && d->size.h > 0 && d->size.w > 0 && d->size.c > 0 &&
             d->classes >= 2);
        for (int64_t i = 0; i < d->n; i++)
            must(d->labels[i] >= 0 && d->labels[i] < d->classes &&
                 adj_dataset_read(d, i, pixels, NULL) == ADJ_OK);
        for (int i = 0; d->class_names != NULL && i < d->classes; i++)
            must(strlen(d->class_names[i]) > 0);
        adj_batch(d, NULL, d->n - 1, (adj_shape){4, {BATCH, H, W, C}}, x, labels, NULL);
        free(pixels);
    }
    adj_dataset_free(d);
}

/* Opens each split of a folder that has these two files, which are then closed. */
static inline void read_pair(const char *const names[2], const memory_file files[2],
                             const adj_dataset_opts *o, const char *format)
{
    for (int i = 0; i < 2; i++)
        put_link(names[i], &files[i]);
    for (int part = ADJ_TRAIN; part <= ADJ_VALIDATION; part++)
        read_data(linked_folder(), (adj_dataset_part)part, o, format);
    for (int i = 0; i < 2; i++) {
        remove_link(names[i]);
        memory_file_free(&files[i]);
    }
}

#endif
