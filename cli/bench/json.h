/* json.h - what was measured as JSON, for write_output: 0, or the writing failed. */
#ifndef CLI_BENCH_JSON_H
#define CLI_BENCH_JSON_H

#include <jansson.h>

#include "profile.h"
#include "rows.h"

typedef struct {
    const bench_opts *o;
    const bench_net *net; /* of steps, and their time; profile NULL: none was asked for */
    const bench_step_time *time;
    const bench_profile *profile;
    const bench_rows *rows; /* of kernels */
} bench_report;

/* source: a bench_report. */
int bench_json_step(FILE *f, const void *source);
int bench_json_rows(FILE *f, const void *source);
/* The steps of a profile. NULL: out of memory. */
json_t *bench_json_profile(const bench_profile *p);
/* source: a bench_profile. */
int bench_trace(FILE *f, const void *source);

#endif
