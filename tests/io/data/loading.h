/* loading.h - data sets and loaders for the tests of batches. */
#ifndef TESTS_IO_DATA_LOADING_H
#define TESTS_IO_DATA_LOADING_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_data.h"
#include "tests/plan.h"

enum { CLASSES = 5 };

/* Byte i of all is (53 i + 17) mod 256, label i (7 i) mod 5. */
static inline adj_dataset *new_dataset(int64_t n, int64_t h, int64_t w, int64_t c)
{
    adj_dataset *d = NULL;
    scoped(release) uint8_t *images = malloc((size_t)(n * h * w * c));
    scoped(release) int32_t *labels = malloc((size_t)n * sizeof *labels);

    cr_assert(images != NULL && labels != NULL);
    for (int64_t i = 0; i < n * h * w * c; i++)
        images[i] = (uint8_t)(i * 53 + 17);
    for (int64_t i = 0; i < n; i++)
        labels[i] = (int32_t)(i * 7 % CLASSES);
    cr_assert_eq(adj_dataset_new(n, h, w, c, CLASSES, images, labels, 1, &d), ADJ_OK, "%s",
                 d->message);
    return d;
}

static inline adj_loader *new_loader(const adj_dataset *d, const adj_loader_opts *o)
{
    adj_loader *l = NULL;
    adj_error error = {0};
    cr_assert_eq(adj_loader_new(d, o, &l, &error), ADJ_OK, "%s", error.message);
    return l;
}

static inline adj_loader_batch next_batch(adj_loader *l)
{
    adj_loader_batch b;
    adj_error error = {0};
    cr_assert_eq(adj_loader_next(l, &b, &error), ADJ_OK, "%s", error.message);
    return b;
}

static inline void seek(adj_loader *l, int64_t epoch, int64_t step)
{
    adj_error error = {0};
    cr_assert_eq(adj_loader_seek(l, epoch, step, &error), ADJ_OK, "%s", error.message);
}

#endif
