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

#endif
