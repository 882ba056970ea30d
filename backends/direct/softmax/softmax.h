/* softmax.h - softmax and log_softmax over the last axis, softmax cross-entropy and its gradient
 * for the logits: SOFTMAX_ROWS rows at a time, one class after another, so that vectors are full
 * even with few classes. */
#ifndef DIRECT_SOFTMAX_H
#define DIRECT_SOFTMAX_H

#include "backends/direct/direct.h"

enum { SOFTMAX_ROWS = 16 }; /* rows of a job */

typedef enum { PROBABILITY, LOG_PROBABILITY, LOSS, LOSS_GRAD } softmax_result;

typedef struct {
    direct_work work;
    softmax_result result;
    adj_dtype dtype;
    ptrdiff_t rows, classes;
    ptrdiff_t pitch;     /* elements from row to row in `line` */
    int logits, labels;  /* indices of the operands; labels is -1 if there are none */
    int is_sparse;       /* labels are integers */
    double keep, spread; /* a target is keep * label + spread */
    size_t per_thread;   /* bytes of scratch per thread, and offsets in it */
    size_t exps, line, logit_columns, label_columns;
} softmax;

/* True if the results need each exponential, not only their sum. */
static inline int softmax_keeps_exps(const softmax *p)
{
    return p->result == PROBABILITY || p->result == LOSS_GRAD;
}

#endif
