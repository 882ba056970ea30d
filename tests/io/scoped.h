/* scoped.h - plan.h's scoped for what adjoint_io makes. */
#ifndef TESTS_IO_SCOPED_H
#define TESTS_IO_SCOPED_H

#include "adjoint_data.h"
#include "adjoint_fit.h"
#include "adjoint_io.h"
#include "tests/plan.h"

static inline void release_dataset(adj_dataset **d) { adj_dataset_free(*d); }
static inline void release_loader(adj_loader **l) { adj_loader_free(*l); }
static inline void release_predictor(adj_predictor **p) { adj_predictor_free(*p); }
static inline void release_tensors(adj_tensors **t) { adj_tensors_free(*t); }
static inline void release_trainer(adj_trainer **t) { adj_trainer_free(*t); }

/* The tensors of a file, to be freed. */
static inline adj_tensors *tensors_of(const char *path)
{
    adj_tensors *t = NULL;
    cr_assert_eq(adj_tensors_read(path, &t), ADJ_OK, "%s", t->message);
    return t;
}

/* A data set, and the predictor of a weight file on one thread, to be freed. */
static inline adj_dataset *dataset_of(const char *path, adj_dataset_part part,
                                      const adj_dataset_opts *o)
{
    adj_dataset *d = NULL;
    cr_assert_eq(adj_dataset_open(path, part, o, &d), ADJ_OK, "%s", d->message);
    cr_assert_str_empty(d->message);
    return d;
}

/* Expects a data set to be refused with a message that has this part. */
static inline void expect_no_data(const char *path, adj_dataset_part part,
                                  const adj_dataset_opts *o, const char *words)
{
    scoped(release_dataset) adj_dataset *d = NULL;
    cr_expect_neq(adj_dataset_open(path, part, o, &d), ADJ_OK, "%s", words);
    cr_expect(d->n == 0 && d->images == NULL && d->labels == NULL);
    expect_text(d->message, words);
}

/* Images and classes of a data set. */
static inline void expect_sizes(const adj_dataset *d, int64_t n, int64_t h, int64_t w, int64_t c,
                                int classes)
{
    cr_expect(d->n == n && d->size.h == h && d->size.w == w && d->size.c == c &&
                  d->classes == classes,
              "%d images of %dx%dx%d, %d classes", (int)d->n, (int)d->size.h, (int)d->size.w,
              (int)d->size.c, d->classes);
}

static inline adj_predictor *predictor_from(const char *path)
{
    adj_predictor *p = NULL;
    adj_error error = {0};
    const adj_predictor_opts one = {.exec.threads = 1};
    cr_assert_eq(adj_predictor_load(path, NULL, &one, &p, &error), ADJ_OK, "%s", error.message);
    return p;
}

#endif
