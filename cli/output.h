/* output.h - output files of a command, checked before the work begins. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdio.h>

typedef enum {
    OUTPUT_REPLACED, /* by a new file that takes its name; "-" is refused */
    OUTPUT_REPLACED_OR_STDOUT,
    OUTPUT_IN_PLACE,
    OUTPUT_OR_STDOUT, /* in place; with _OR_STDOUT, "-" is standard output */
    OUTPUT_REPORT,    /* replaced, a pipe or a device in place; "-" is standard output */
    INPUT             /* a file or folder that is only read: an output may replace neither the file
                         nor those in the folder */
} output_kind;

typedef struct {
    const char *option, *path; /* path == NULL: the option was not given */
    output_kind kind;
} output_file;

/* CONTINUE, or wrong usage after a complaint: "-" is no name for a file that is read again, or
 * replaced. path NULL: the option was not given. */
int refuse_standard(const char *command, const char *option, const char *path);

/* Prints what is wrong: an empty name, and two options that name one file, are wrong usage, unless
 * both are inputs; so is an existing file of an input folder that no command wrote. What cannot be
 * written fails: of what is replaced all but regular files, in place a folder, or a pipe that
 * nobody reads. Pipes stay open from here on. CONTINUE or an exit status. */
int check_outputs(const char *command, int n, const output_file file[]);

/* True if the file is standard output, or standard input, where its kind allows that. */
int is_stdout(const char *path);

/* Lets write, which returns 0 on success, fill the file, if its option was given. EXIT_OK, or
 * EXIT_FAILED; what is wrong with a file is printed, with the output main.c says. After a failure a
 * replaced file has its old content. */
int write_output(const char *command, const output_file *file,
                 int (*write)(FILE *f, const void *source), const void *source);
/* Writes the file for a command without other work: checks it first, then calls write_output. */
int write_only(const char *command, const output_file *file,
               int (*write)(FILE *f, const void *source), const void *source);

#endif
