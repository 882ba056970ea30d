/* program.h - a plan as the file's text refers to it: functions, arrays, places in the arena. */
#ifndef EMIT_PROGRAM_H
#define EMIT_PROGRAM_H

#include "emit.h"
#include "exec/exec.h"

/* An array of the file. */
typedef struct {
    char name[IDENTIFIER];
    const char *label; /* name of the leaf, or what it is computed from */
    adj_type type;
    const void *data;
    int is_used;
} array;

typedef struct {
    adj_exec *e; /* the plan over emit_backend */
    const char *prefix;
    name_list names;
    int n_array, uses_arena;
    array *array;
    expression *symbol;           /* by slot: what the text calls it */
    char (*function)[IDENTIFIER]; /* by step */
    adj_error *error;
} program;

/* Plans the outputs and names everything. values: an executor with the parameters. The caller calls
 * program_close in every case. */
adj_status program_open(program *p, adj_exec *values, adj_node *output, const char *prefix,
                        adj_error *error);
void program_close(program *p);
/* True if the step becomes a call of a function. */
int is_called(const program *p, const step *s);
/* Writes the function of step i, and its call. */
adj_status put_function(program *p, FILE *out, FILE *calls, int i);

#endif
