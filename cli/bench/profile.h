/* profile.h - the steps of a net's plan. */
#ifndef CLI_BENCH_PROFILE_H
#define CLI_BENCH_PROFILE_H

#include <stdio.h>

#include "step.h"
#include "exec/report.h"

typedef struct {
    int n, runs;
    adj_step_info *row;                /* strings are the executor's; seconds: the median */
    double step_seconds, plan_seconds; /* medians: whole steps while profiling; the rows' sum */
} bench_profile;

/* Plans the net once more with the profile on, runs it for o->seconds. n->exec is replaced. */
adj_status bench_profile_run(bench_profile *p, bench_net *n, const bench_opts *o);
void bench_profile_free(bench_profile *p);
void bench_profile_print(FILE *f, const bench_profile *p);
/* Rates: compute-bound steps in GFLOP/s, others in GB/s. */
int bench_counts_flop(const adj_step_info *s);
double bench_rate(const adj_step_info *s);

#endif
