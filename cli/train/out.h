/* out.h - what --out NAME names: a weights file if NAME ends in .safetensors, else a folder with
 * weights.safetensors, best.safetensors, metrics.jsonl and report.html. */
#ifndef CLI_TRAIN_OUT_H
#define CLI_TRAIN_OUT_H

#include "cli/output.h"

typedef struct {
    int is_folder, made;                     /* made: it was not there before */
    char *folder;                            /* NULL: a file, or nothing */
    char *weights, *best, *metrics, *report; /* NULL: is not written */
} out_files;

/* The names; o is to be closed in every case. CONTINUE or an exit status. */
int out_open(out_files *o, const char *name);
/* As check_outputs, for these and n others. A folder that is not there is not made yet, but it is
 * asked whether it could be. */
int out_check(const char *command, const out_files *o, int n, const output_file other[]);
/* Makes the folder, if it is not there. */
int out_make(out_files *o);
/* failed: a folder that was made and is empty goes again. */
void out_close(out_files *o, int failed);

#endif
