/* small_data.h - folders of a few images: MNIST's four files, and class folders with PNG files; and
 * what files of weights have. */
#ifndef TESTS_CLI_SMALL_DATA_H
#define TESTS_CLI_SMALL_DATA_H

#include <criterion/criterion.h>
#include <png.h>
#include <stdint.h>
#include <stdlib.h>

#include "adjoint_data.h"
#include "adjoint_io.h"
#include "cli/child.h"
#include "tests/io/scoped.h"
#include "tests/plan.h"

/* Writes an IDX file of n images, or with h 0 of n labels. */
static inline void put_idx(const char *path, int n, int h, int w, int c, const uint8_t bytes[])
{
    const int rank = h == 0 ? 1 : c == 1 ? 3 : 4;
    const uint8_t head[] = {0, 0, 8, (uint8_t)rank, 0, 0, 0, (uint8_t)n, 0, 0, 0, (uint8_t)h,
                            0, 0, 0, (uint8_t)w,    0, 0, 0, (uint8_t)c};
    FILE *f = fopen(path, "wb");
    fwrite(head, 1, (size_t)(4 + 4 * rank), f);
    fwrite(bytes, 1, (size_t)(h == 0 ? n : n * h * w * c), f);
    fclose(f);
}

/* n of the drawn digits as a pair of IDX files. */
static inline void put_images(const folder *f, const char *images, const char *labels,
                              adj_dataset_part part, int n)
{
    scoped(release_dataset) adj_dataset *d = NULL;
    uint8_t y[UINT8_MAX];
    cr_assert_eq(adj_dataset_digits(part, n, 5, &d), ADJ_OK);
    for (int i = 0; i < n; i++)
        y[i] = (uint8_t)d->labels[i];
    put_idx(in_folder(f, images).s, n, 28, 28, 1, d->images);
    put_idx(in_folder(f, labels).s, n, 0, 0, 0, y);
}

/* Writes so many labels 0, 1 and 2, for images as they are. */
static inline void put_labels(const char *name, int zeros, int ones, int twos)
{
    const int n = zeros + ones + twos;
    uint8_t labels[UINT8_MAX];
    for (int i = 0; i < n; i++)
        labels[i] = i < zeros ? 0 : i < zeros + ones ? 1 : 2;
    put_idx(name, n, 0, 0, 0, labels);
}

/* 90 images to train on, 43 to test: neither fills its last batch. */
static inline folder small_data(void)
{
    folder f = folder_new();
    put_images(&f, "train-images-idx3-ubyte", "train-labels-idx1-ubyte", ADJ_TRAIN, 90);
    put_images(&f, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", ADJ_TEST, 43);
    return f;
}

/* A suite's .init: each of its tests runs in a folder with these images. */
static inline void enter_small_data(void) { enter(small_data()); }

/* Makes the class's folder and writes n images of h x w pixels with c channels into it; their names
 * begin with name. Those of a class whose name ends in b are brighter. */
static inline void put_class(const char *class, const char *name, int n, unsigned h, unsigned w,
                             int c)
{
    static uint8_t pixels[32 * 32 * 3];
    char command[900];
    snprintf(command, sizeof command, "mkdir -p '%s'", class);
    cr_assert_eq(system(command), 0); // NOLINT(cert-env33-c): the test's own words
    for (int i = 0; i < n; i++) {
        png_image image = {.version = PNG_IMAGE_VERSION,
                           .width = w,
                           .height = h,
                           .format = c == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB};
        for (unsigned k = 0; k < h * w * (unsigned)c; k++)
            pixels[k] =
                (uint8_t)(37 * k + 11 * (unsigned)i + 100 * (class[strlen(class) - 1] == 'b'));
        snprintf(command, sizeof command, "%s/%s%d.png", class, name, i);
        cr_assert(png_image_write_to_file(&image, command, 0, pixels, 0, NULL));
    }
}

/* Writes the classes "data/train/a 7, data/train/b 5", each with so many square images. */
static inline void put_classes(const char *classes, unsigned side, int c)
{
    char class[100];
    int n, length;
    for (; sscanf(classes, "%99[^ ] %d%n", class, &n, &length) == 2; classes += length) {
        put_class(class, "", n, side, side, c);
        length += (int)strspn(classes + length, ", ");
    }
}

/* A metadata entry of a file, until the second call after this; NULL: there is none. */
static inline const char *entry_of(const char *path, const char *key)
{
    static char value[2][400];
    static int turn;
    scoped(release_tensors) adj_tensors *t = tensors_of(path);
    const char *text = adj_tensors_metadata(t, key);
    if (text == NULL)
        return NULL;
    turn = !turn;
    snprintf(value[turn], sizeof value[turn], "%s", text);
    return value[turn];
}

/* Writes the tensors of a file to another one, with these entries. */
static inline void copy_tensors(const char *from, const char *to, int n, const adj_metadata entry[])
{
    scoped(release_tensors) adj_tensors *t = tensors_of(from);
    cr_assert_eq(adj_tensors_write(to, t->n, t->tensor, n, entry, NULL), ADJ_OK);
}

/* Expects equal tensors; what the files say beside them may differ. */
static inline void expect_same_tensors(const char *left, const char *right)
{
    scoped(release_tensors) adj_tensors *a = tensors_of(left), *b = tensors_of(right);
    cr_assert(a->n > 5 && a->n == b->n, "%d and %d tensors", a->n, b->n);
    for (int i = 0; i < a->n; i++) {
        const adj_tensor x = a->tensor[i];
        const int at = adj_tensors_find(b, x.name);
        cr_assert_geq(at, 0, "%s", x.name);
        const adj_tensor y = b->tensor[at];
        const int64_t bytes = adj_tensor_bytes(&x);
        cr_expect(x.elem == y.elem && bytes == adj_tensor_bytes(&y) &&
                      memcmp(x.data, y.data, (size_t)bytes) == 0,
                  "%s", x.name);
    }
}

#endif
