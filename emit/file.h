/* file.h - the file under construction: data shared by its parts, and its text. */
#ifndef EMIT_FILE_H
#define EMIT_FILE_H

#include "adjoint_emit.h"
#include "program.h"

/* A public function: the text of its calls. */
typedef struct {
    memory calls;
    int uses_arena;
} part;

/* Values that the parts of the file share. */
typedef struct {
    unit u;
    const adj_emit_opts *o;
    const adj_model_card *card; /* all zero: none */
    char prefix[ADJ_EMIT_PREFIX + 1], capital[ADJ_EMIT_PREFIX + 1];
    adj_type input, output, labels; /* labels: of training */
    int64_t classes;                /* of the labels */
    memory functions;
    part predict, train, update; /* update: the second part of train, or empty */
    float *expected;             /* the output for the example */
} file;

/* ---- functions for what training changes: requires updates ---- */

/* True if it starts with random numbers. */
int state_is_random(const file *e);
/* Returns the bytes of a saved state. */
long long state_bytes(const file *e);
/* Writes the prototypes, each after the indent. */
void put_state_prototypes(const file *e, FILE *f, const char *indent);
void put_state(const file *e, FILE *f);

/* Writes the whole file. */
adj_status put_file(const file *e, FILE *f);

#endif
