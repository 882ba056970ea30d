/* json.h - results of measurements as JSON, for write_output; functions return 0 unless writing
 * failed. */
#ifndef CLI_BENCH_JSON_H
#define CLI_BENCH_JSON_H

#include <jansson.h>

#include "profile.h"
#include "rows.h"

typedef struct {
    const bench_opts *o;
    const bench_net *net; /* of steps, their plan and time; profile NULL: no profile */
    const adj_exec_info *plan;
    const exec_details *details; /* of the plan */
    const bench_step_time *time;
    const bench_profile *profile;
    const bench_rows *rows; /* of kernels */
} bench_report;

/* source: a bench_report. NULL: out of memory. */
json_t *bench_json_step(const void *source);
/* Prints the object that make returns for the source, and the profile (NULL: none), unless --json
 * is standard output; writes it to the file of --json. Returns an exit status. */
int bench_write(const bench_opts *o, const bench_profile *p, json_t *(*make)(const void *source),
                const void *source);
/* source: a bench_report. */
int bench_json_rows(FILE *f, const void *source);
/* Returns the sums of the rows of --raw. */
json_t *bench_json_sums(const bench_opts *o, const bench_rows *rows);

#endif
