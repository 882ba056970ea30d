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
    return d;
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
