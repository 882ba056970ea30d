/* json.h - results of measurements as one JSON object, or as text. */
#ifndef CLI_BENCH_JSON_H
#define CLI_BENCH_JSON_H

#include <jansson.h>

#include "profile.h"

typedef struct {
    const bench_opts *o;
    const bench_net *net; /* of steps, their plan and time */
    adj_exec_info plan;
    exec_details details; /* of the plan */
    const bench_step_time *time;
} bench_report;

/* Returns versions and options, the first members of every result. */
json_t *bench_json_head(const bench_opts *o);
/* source: a bench_report. NULL: out of memory. */
json_t *bench_json_step(const void *source);
/* Prints the object that make returns for the source, and the profile (NULL: none), unless --json
 * is standard output; writes it to the file of --json. Returns an exit status. */
int bench_write(const bench_opts *o, const bench_profile *p, json_t *(*make)(const void *source),
                const void *source);

#endif
