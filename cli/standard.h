/* standard.h - support of "-" for library functions that need the name of a file. */
#ifndef CLI_STANDARD_H
#define CLI_STANDARD_H

#include <stdio.h>

#include "adjoint.h"
#include "output.h"

enum { STANDARD_NAME = 48 };

/* A file that a command reads. */
typedef struct {
    const char *option, *path; /* path == NULL: the option was not given */
    const char *name;          /* name to open, set by open_inputs: path, or own for "-" */
    char own[STANDARD_NAME];   /* temporary file with all of standard input, or made of the file,
                                  which ends with the process; else "" */
} input_file;

/* Sets each file's name; only one can be standard input. CONTINUE, or an exit status after a
 * complaint. */
int open_inputs(const char *command, int n, input_file file[]);
/* Returns a library message about these files, in which words replace the name of a temporary file;
 * text: memory for it. */
const char *with_words(int n, const input_file file[], const char *sentence,
                       char text[ADJ_MESSAGE]);
/* Returns the name of a tensor, or "arr_0", NumPy's name for unnamed arrays, if the library made it
 * from the name of a temporary file. */
const char *tensor_name(const input_file *file, const char *name);

/* Lets make write a temporary file, to be read in place of the file. CONTINUE, or an exit status
 * after a complaint. */
int open_made(const char *command, input_file *file,
              adj_status (*make)(const char *path, const void *source, adj_error *error),
              const void *source);

/* Returns standard output for one file, to be closed, and redirects later output of stdout to
 * stderr; NULL with errno on failure. */
FILE *take_stdout(void);

/* Lets write replace the file, whose name it is given; of "-" a temporary one, which is then copied
 * to output. EXIT_OK, or EXIT_FAILED after a complaint. */
int replace_output(const char *command, const output_file *file, FILE *output,
                   adj_status (*write)(const char *path, const void *source, adj_error *error),
                   const void *source);

#endif
