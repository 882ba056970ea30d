/* write.h - a gradient check's report for programs. */
#ifndef CLI_GRADCHECK_WRITE_H
#define CLI_GRADCHECK_WRITE_H

#include "adjoint_check.h"

typedef struct {
    const adj_gradcheck_report *report;
    const char *title; /* the model or op */
    int64_t seed;
} gradcheck_source;

/* source: a gradcheck_source. 0 on success. */
int write_gradcheck_json(FILE *f, const void *source);
int write_gradcheck_junit(FILE *f, const void *source);

#endif
