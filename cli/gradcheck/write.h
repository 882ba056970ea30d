/* write.h - a gradient check's report for programs. */
#ifndef CLI_GRADCHECK_WRITE_H
#define CLI_GRADCHECK_WRITE_H

#include "adjoint_check.h"

typedef struct {
    const char *what; /* the model or op */
    int64_t seed;
} gradcheck_title;

/* 1 on success. */
int write_gradcheck_json(FILE *f, const adj_gradcheck_report *r, const gradcheck_title *title);
int write_gradcheck_junit(FILE *f, const adj_gradcheck_report *r, const gradcheck_title *title);
/* Writes to the path, or to stdout if it is "-". */
int write_gradcheck(const char *path, const adj_gradcheck_report *r, const gradcheck_title *title,
                    int (*write)(FILE *f, const adj_gradcheck_report *r,
                                 const gradcheck_title *title));

#endif
