/* standard.h - "-" where a library function wants the name of a file that it can look at twice. */
#ifndef CLI_STANDARD_H
#define CLI_STANDARD_H

#include <stdio.h>

#include "adjoint.h"
#include "output.h"

enum { STANDARD_NAME = 48 };

/* A file that a command reads. */
typedef struct {
    const char *option, *path; /* path == NULL: the option was not given */
    const char *name;          /* for reading, by open_inputs: path itself, or of "-" own */
    char own[STANDARD_NAME];   /* a temporary file with all of standard input, which goes with the
                                  process; else "" */
} input_file;

/* Gives each its name; one alone can be standard input. CONTINUE, or an exit status after a
 * complaint. */
int open_inputs(const char *command, int n, input_file file[]);
/* A sentence of the library's about these files, with words for the name of a temporary one; text:
 * where it is kept. */
const char *with_words(int n, const input_file file[], const char *sentence,
                       char text[ADJ_MESSAGE]);
/* The same for the name of a tensor, which the library makes of the file's where the file has none:
 * "arr_0", NumPy's for arrays without a name. */
const char *tensor_name(const input_file *file, const char *name);

/* The output, for one file: what is printed to stdout from here on goes to stderr. NULL with errno
 * on failure. To be closed. */
FILE *take_stdout(void);

/* Lets write replace the file, whose name it is given; of "-" a temporary one, which is then copied
 * to output. EXIT_OK, or EXIT_FAILED after a complaint. */
int replace_output(const char *command, const output_file *file, FILE *output,
                   adj_status (*write)(const char *path, const void *source, adj_error *error),
                   const void *source);

#endif
