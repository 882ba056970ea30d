/* process.h - programs that run between unnamed files: neither process waits for the other. */
#ifndef EMIT_PROCESS_H
#define EMIT_PROCESS_H

#include "adjoint_ext.h"

/* Descriptors of a program's standard input, output and error; negative: not open. */
typedef struct {
    int in, out, log;
} streams;

int streams_open(streams *s); /* returns 0 if it fails; the caller closes s in every case */
void streams_close(const streams *s);

int clear_file(int file); /* empties it */
int write_all(int file, const void *data, size_t bytes);
int read_all(int file, void *data, size_t bytes); /* from the start */

/* Runs a program. Returns its wait status; -1: it cannot be started. */
int run_program(const streams *s, const char *path, char *const arguments[]);
/* Writes why the program NAME failed: a signal, or its first line that names an error. */
void describe_failure(const streams *s, int status, const char *name, char why[ADJ_WHY]);
/* Compiles the input, a program of C99, by cc. Returns the program's descriptor, or -1 with the
 * reason. No file of it remains. */
int compile_input(const streams *s, char why[ADJ_WHY]);

#endif
