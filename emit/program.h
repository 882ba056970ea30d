/* program.h - the file, and plans in its terms: functions, arrays, offsets in the arena.
 *
 * A program is one plan: the network, or a training step. The programs of a file share its names,
 * its arrays, and equal functions. */
#ifndef EMIT_PROGRAM_H
#define EMIT_PROGRAM_H

#include "adjoint_emit.h"
#include "emit.h"
#include "exec/exec.h"
#include "graph/graph.h"

/* An array of the file. */
typedef struct {
    char name[IDENTIFIER];
    const char *label;    /* name of the leaf, or what it is computed from */
    const adj_node *leaf; /* leaf of the user's graph; NULL: computed */
    adj_type type;
    void *data;
    int is_used, is_written; /* written: it lies in RAM */
    /* The filter as integers, with scales [n_scale]; NULL: not computed. */
    int8_t *rounded;
    float *scale;
    int64_t n_scale;
    int is_used_rounded; /* a function reads them */
    char rounded_name[IDENTIFIER], scale_name[IDENTIFIER];
} array;

/* A function of the file, without its name. */
typedef struct {
    char base[IDENTIFIER], name[IDENTIFIER];
    char *text; /* parameters and body */
} emitted;

typedef struct {
    const char *prefix;
    name_list names;
    int n_array, n_function;
    array *array;
    emitted *function;
    FILE *functions; /* text of all functions */
    size_t arena_bytes;
    int uses_philox, uses_tanh, int8_weights, double_sums;
    adj_error *error;
} unit;

typedef struct {
    unit *unit;
    adj_exec *e;        /* the plan over emit_backend */
    FILE *calls;        /* text of the calls */
    const char *result; /* expression of the fetched value */
    expression *symbol; /* by slot: what the text calls it */
    int uses_arena;
} program;

adj_status unit_open(unit *u, const char *prefix, adj_error *error);
void unit_close(unit *u);

/* Values that a program computes, and the parameters that it starts with. */
typedef struct {
    adj_node *fetch;                      /* NULL: none */
    const adj_updates *updates;           /* that it makes; NULL: none */
    const adj_updates *varying;           /* other updates of the file; NULL: none */
    int has_images, has_labels, has_rate; /* its inputs */
    adj_exec *values;
} source;
/* Plans a program and writes its functions to u->functions, its calls to calls. result: the
 * parameter for the fetched value. The caller calls program_close in every case. */
adj_status program_open(program *p, unit *u, const source *s, const char *result, FILE *calls);
void program_close(program *p);
/* Returns the plan's only input of these properties, of the user's graph, or NULL. */
adj_node *program_input(const program *p, adj_dtype dtype, int is_scalar);

/* Marks the array that a slot is, or the arena; returns what the slot is called. */
const char *use_slot(program *p, int slot);
/* Sets *filter to the array of the step's filter with its integers; NULL: the filter is not a
 * constant with values scale * q, or there are no int8 weights. */
adj_status rounded_filter(program *p, const step *s, array **filter);
/* Returns the name of the layer that a node of g belongs to: the prefix of its parameters' names,
 * its label, or those of its operand. */
expression layer_of(const adj_graph *g, const adj_node *n);
/* Returns the parameter or state that the value follows from by way of first operands, or NULL. */
const adj_node *param_behind(const adj_node *n);
/* Writes the call of step i, if runs need it, and its function, unless there is an equal one of
 * that name. */
adj_status put_function(program *p, int i);

/* ---- the file under construction ---- */

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
    int64_t classes;                /* number of classes of the labels */
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
