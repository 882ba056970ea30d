/* out.h - output of --out NAME: a weights file if NAME ends in .safetensors, else a folder with
 * weights.safetensors, best.safetensors, metrics.jsonl and report.html. */
#ifndef CLI_TRAIN_OUT_H
#define CLI_TRAIN_OUT_H

#include "cli/output.h"

typedef struct {
    int is_folder, made;                     /* 1: this run made the folder */
    char *folder;                            /* NULL: a file, or nothing */
    char *weights, *best, *metrics, *report; /* NULL: is not written */
} out_files;

/* Sets the names of the files. The caller closes o in every case. Returns CONTINUE or an exit
 * status. */
int out_open(out_files *o, const char *name);
/* Calls check_outputs for these and n other files. A missing folder is not made yet; it is checked
 * that it could be made. */
int out_check(const char *command, const out_files *o, int n, const output_file other[]);
/* Makes the folder if it does not exist. */
int out_make(out_files *o);
/* Frees the names; after a failure removes a folder that was made and is empty. */
void out_close(out_files *o, int failed);

#endif
