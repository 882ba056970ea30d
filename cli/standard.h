/* standard.h - files that a command reads and writes; "-" is standard input or output, also for
 * library functions, which need the name of a file. */
#ifndef CLI_STANDARD_H
#define CLI_STANDARD_H

#include <stdio.h>

#include "adjoint_io.h"

/* True if a file's name ends so. */
int ends_in(const char *name, const char *end);

/* ---- output, checked before the work begins ---- */

typedef enum {
    OUTPUT_REPLACED, /* replaced by a new file; "-" is refused */
    OUTPUT_REPLACED_OR_STDOUT,
    OUTPUT_IN_PLACE,
    OUTPUT_OR_STDOUT, /* written in place; with _OR_STDOUT, "-" is standard output */
    OUTPUT_REPORT,    /* replaced, a pipe or a device in place; "-" is standard output */
    INPUT             /* input file or folder: no output may replace it or a file in it */
} output_kind;

typedef struct {
    const char *option, *path; /* path == NULL: the option was not given */
    output_kind kind;
} output_file;

/* CONTINUE, or wrong usage after an error for "-", which cannot name a file that is read again or
 * replaced. path NULL: the option was not given. */
int refuse_standard(const char *option, const char *path);

/* Prints an error and returns an exit status, or returns CONTINUE. Wrong usage: an empty name, two
 * options that name the same file (unless both are inputs), and an existing file of an input folder
 * that no command wrote. Failures: a file to replace that is not regular, a folder to write in
 * place, a pipe without a reader. Pipes stay open from here on. */
int check_outputs(int n, const output_file file[]);

/* True if the file is standard output, or standard input, where its kind allows that. */
int is_stdout(const char *path);

/* Lets write, which returns 0 on success, fill the file, if its option was given. EXIT_OK, or
 * EXIT_FAILED after an error; main.c reports errors of standard output. After a failure a replaced
 * file has its old content. */
int write_output(const output_file *file, int (*write)(FILE *f, const void *source),
                 const void *source);
/* Writes the file for a command without other work: checks it first, then calls write_output. */
int write_only(const output_file *file, int (*write)(FILE *f, const void *source),
               const void *source);

/* ---- "-" for library functions ---- */

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
int open_inputs(int n, input_file file[]);
/* Complains of a library's message about these files, in which words replace the name of a
 * temporary file. before and after: text around it. Returns EXIT_FAILED. */
int complain_of_files(int n, const input_file file[], const char *before, const char *message,
                      const char *after);
/* Reads the tensors of a file, at least one. CONTINUE, or an exit status after a complaint; *t is
 * to be freed in every case. */
int read_tensors(const input_file *file, adj_tensors **t);
/* Returns the name of a tensor, or "arr_0", NumPy's name for unnamed arrays, if the library made it
 * from the name of a temporary file. */
const char *tensor_name(const input_file *file, const char *name);

/* Lets make write a temporary file, to be read in place of the file. CONTINUE, or an exit status
 * after a complaint. */
int open_made(input_file *file,
              adj_status (*make)(const char *path, const void *source, adj_error *error),
              const void *source);

/* Returns standard output for one file, to be closed, and redirects later output of stdout to
 * stderr; NULL with errno on failure. */
FILE *take_stdout(void);

/* Lets write replace the file, whose name it is given; of "-" a temporary one, which is then copied
 * to output. EXIT_OK, or EXIT_FAILED after a complaint. */
int replace_output(const output_file *file, FILE *output,
                   adj_status (*write)(const char *path, const void *source, adj_error *error),
                   const void *source);

#endif
