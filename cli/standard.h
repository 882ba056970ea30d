/* standard.h - "-" where a library function wants the name of a file that it can look at twice. */
#ifndef CLI_STANDARD_H
#define CLI_STANDARD_H

#include <stdio.h>

#include "adjoint.h"
#include "output.h"

enum { STANDARD_NAME = 48 };

/* A file's name, for reading: path itself, or of "-" one written to name: a temporary file with all
 * of standard input, which goes with the process. NULL after a complaint. */
const char *input_name(const char *command, const char *option, const char *path,
                       char name[STANDARD_NAME]);

/* The output, for one file: what is printed to stdout from here on goes to stderr. NULL with errno
 * on failure. To be closed. */
FILE *take_stdout(void);

/* Lets write replace the file, whose name it is given; of "-" a temporary one, which is then copied
 * to output. EXIT_OK, or EXIT_FAILED after a complaint. */
int replace_output(const char *command, const output_file *file, FILE *output,
                   adj_status (*write)(const char *path, const void *source, adj_error *error),
                   const void *source);

#endif
