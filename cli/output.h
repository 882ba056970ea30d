/* output.h - output files of a command, checked before the work begins. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdio.h>

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
int refuse_standard(const char *command, const char *option, const char *path);

/* Prints an error and returns an exit status, or returns CONTINUE. Wrong usage: an empty name, two
 * options that name the same file (unless both are inputs), and an existing file of an input folder
 * that no command wrote. Failures: a file to replace that is not regular, a folder to write in
 * place, a pipe without a reader. Pipes stay open from here on. */
int check_outputs(const char *command, int n, const output_file file[]);

/* True if the file is standard output, or standard input, where its kind allows that. */
int is_stdout(const char *path);

/* Lets write, which returns 0 on success, fill the file, if its option was given. EXIT_OK, or
 * EXIT_FAILED after an error; main.c reports errors of standard output. After a failure a replaced
 * file has its old content. */
int write_output(const char *command, const output_file *file,
                 int (*write)(FILE *f, const void *source), const void *source);
/* Writes the file for a command without other work: checks it first, then calls write_output. */
int write_only(const char *command, const output_file *file,
               int (*write)(FILE *f, const void *source), const void *source);

#endif
