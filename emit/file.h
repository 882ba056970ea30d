/* file.h - the file under construction: data shared by its parts, and its text. */
#ifndef EMIT_FILE_H
#define EMIT_FILE_H

#include "adjoint_emit.h"
#include "program.h"

/* Values that the parts of the file share. */
typedef struct {
    unit u;
    const adj_emit_opts *o;
    const adj_model_card *card; /* all zero: none */
    char prefix[ADJ_EMIT_PREFIX + 1], capital[ADJ_EMIT_PREFIX + 1];
    adj_type input, output, labels; /* labels: of training */
    int64_t classes;                /* of the labels */
    memory functions, predict, train;
    float *expected; /* the output for the example */
} file;

/* Writes the whole file. */
adj_status put_file(const file *e, FILE *f);

#endif
