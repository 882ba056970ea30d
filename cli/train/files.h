/* files.h - files that a training writes: checked before it starts, locked, opened and closed. */
#ifndef CLI_TRAIN_FILES_H
#define CLI_TRAIN_FILES_H

#include <jansson.h>
#include <stdio.h>

#include "cli/standard.h"
#include "train.h"

/* ---- locks, which keep two trainings from writing one file ---- */

/* A file that is replaced has a lock of its own beside it, FILE.lock: the file's own lock would go
 * with the old file. A killed training leaves an unlocked FILE.lock, which the next one takes. */
typedef struct {
    char *path; /* NULL: not held */
    int fd;
} file_lock;

/* ---- logs: JSON objects, one a line, of --log and of metrics.jsonl in the folder of --out ---- */

/* Writes the object as a line in one write, so that a killed process leaves whole lines, and frees
 * it. f == NULL: only frees it. 0 on success. */
int log_line(FILE *f, json_t *object);

/* ---- the files of a run ---- */

/* Output of --out NAME: a weights file if NAME ends in .safetensors, else a folder with
 * weights.safetensors, best.safetensors, metrics.jsonl and report.html. */
typedef struct {
    int is_folder, made;                     /* 1: this run made the folder */
    char *folder;                            /* NULL: a file, or nothing */
    char *weights, *best, *metrics, *report; /* NULL: is not written */
} out_files;

typedef struct {
    out_files out;
    file_lock weights_lock, checkpoint_lock; /* locks of --out FILE and --checkpoint */
    FILE *output;                            /* standard output if --log or --out is -, else NULL */
    FILE *log, *metrics;                     /* logs; NULL: none; metrics has the steps as well */
} run_files;

/* Checks all files first, so that a long run does not fail at its end, and takes standard output
 * for --log - or --out -. writes: 0 on ranks that write nothing. CONTINUE, or an exit status after
 * a complaint. The caller closes f in every case. */
int files_check(run_files *f, const train_opts *o, int writes);
/* Makes the folder, locks what is replaced and opens the logs. */
int files_open(run_files *f, const train_opts *o);
/* Complains of a log that could not be written. Returns EXIT_FAILED. */
int files_failed(const run_files *f, const train_opts *o);
/* Closes the files; after a failure removes a folder that was made and is empty. */
void files_close(run_files *f, int failed);

/* Writes the report of out, of its metrics, the trainer and the held-out data (results.c),
 * replacing the file. held_out_name: "test" or "validation". */
adj_status results_write(adj_trainer *t, const adj_dataset *held_out, const char *held_out_name,
                         const out_files *out, adj_error *error);

#endif
