/* small_data.h - a folder with MNIST's four files, a few images long. */
#ifndef TESTS_CLI_SMALL_DATA_H
#define TESTS_CLI_SMALL_DATA_H

#include <criterion/criterion.h>

#include "adjoint_data.h"
#include "adjoint_io.h"
#include "io/folder.h"

/* n of the drawn digits as a pair of IDX files. */
static inline void put_images(const folder *f, const char *images, const char *labels,
                              adj_dataset_part part, int64_t n)
{
    adj_dataset *d = NULL;
    cr_assert_eq(adj_dataset_digits(part, n, 5, &d), ADJ_OK);
    uint8_t x[16] = {0, 0, 8, 3, 0, 0, 0, (uint8_t)n, 0, 0, 0, 28, 0, 0, 0, 28};
    uint8_t y[8] = {0, 0, 8, 1, 0, 0, 0, (uint8_t)n};
    FILE *file = fopen(in_folder(f, images).s, "wb");
    fwrite(x, 1, sizeof x, file);
    fwrite(d->images, 784, (size_t)n, file);
    fclose(file);
    file = fopen(in_folder(f, labels).s, "wb");
    fwrite(y, 1, sizeof y, file);
    for (int64_t i = 0; i < n; i++)
        fputc(d->labels[i], file);
    fclose(file);
    adj_dataset_free(d);
}

/* 90 images to train on, 43 to test: neither fills its last batch. */
static inline folder small_data(void)
{
    folder f = folder_new();
    put_images(&f, "train-images-idx3-ubyte", "train-labels-idx1-ubyte", ADJ_TRAIN, 90);
    put_images(&f, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", ADJ_TEST, 43);
    return f;
}

#endif
