/* bench.h - what adjoint bench is asked for, what it measures, and how that is written. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include <stdio.h>

#include "adjoint_ext.h"
#include "adjoint_fit.h"
#include "cli/model.h"
#include "cli/op/args.h"
#include "exec/candidate.h"
#include "exec/clock.h"

typedef struct {
    op_args op; /* of --op; --dtype is the model's too */
    const char *model, *backend, *without, *impl, *math, *precision_word, *trace, *json, *tune_file;
    int64_t batch, threads, infer, tune, raw, all, warm, cold, profile;
    int64_t recompute, no_recompute, slices, no_slices;
    /* Of each measurement, of --raw altogether; of a plan's tuning, 0: the default. */
    double seconds, tune_seconds;
    adj_dtype dtype;
    adj_math math_mode;
    adj_precision precision;
    int timed_steps;                      /* the executor is to time each of its steps */
    const adj_backend *const *backends;   /* NULL: the built-in ones; of ranks, and of tests */
    const adj_data_parallel_opts *shared; /* of a training step; NULL: it is one process's alone */
    int runs;                             /* that are timed; 0: for so many seconds */
    const char *scale, *link;    /* lists: numbers of ranks; bits a second and seconds of latency */
    const char *command, *rules; /* that complains; adj_backend_opts.rules, of kernels alone */
} bench_opts;

/* ---- times (time.c) ---- */

typedef struct {
    int n, max;
    double *seconds;
} samples;

typedef struct {
    int n;
    double median, min, q1, q3; /* seconds */
} spread;

/* 0: there is no room for more. */
int samples_add(samples *s, double seconds);
/* Sorts them. All zero if there are none. */
spread samples_spread(samples *s);
void samples_free(samples *s);

/* ---- whole steps (step.c) ---- */

enum { BENCH_WARM_UP = 3 }; /* steps before those that are timed */

typedef struct {
    model_graph m; /* updates NULL: inference */
    adj_exec *exec;
    adj_node *fetch; /* the loss, or the logits */
    void *y;         /* the value of what is fetched */
    size_t y_bytes;
    int32_t *label;
    double plan_seconds, flop; /* to build, differentiate and plan; nominal, of what is computed */
    int usage;                 /* the failure is the caller's */
} bench_net;

typedef struct {
    spread time;
    double loss; /* the last; NAN: inference */
    size_t peak_rss;
} bench_step_time;

/* n is to be closed in every case; on failure its error says why. */
adj_status bench_net_open(bench_net *n, const bench_opts *o);
void bench_net_close(bench_net *n);
/* The graph alone. */
adj_status bench_net_build(bench_net *n, const bench_opts *o);
/* The same by several ranks, among which there are more than one (ranks.c): an exit status. */
int bench_ranks(const bench_opts *o, const adj_ranks *ranks);
/* What it would be on more of them (scale.c): an exit status. */
int bench_scale(const bench_opts *o);
/* Plans anew: n->exec is replaced, which has no images yet. */
adj_status bench_net_plan(bench_net *n, const bench_opts *o);
/* Draws its images. */
adj_status bench_net_draw(bench_net *n);
/* Steps for o->seconds, after some that do not count. steps, of a plan that times them: the times
 * of each are added, and there is an end to them earlier; NULL: none. */
adj_status bench_net_time(bench_net *n, const bench_opts *o, bench_step_time *t, samples *steps);
/* A plan for the fetch and the updates under the options. *e is to be freed in every case. */
adj_status make_exec(const bench_opts *o, adj_graph *g, adj_node *fetch, const adj_updates *updates,
                     adj_exec **e, adj_error *error);
/* by id: 1 for what the roots need. NULL: out of memory. Free it. */
char *bench_needed(const adj_graph *g, int n_root, adj_node *const root[],
                   const adj_updates *updates);
double bench_flop(const adj_node *n);

/* ---- the steps of a plan (profile.c) ---- */

typedef struct {
    int n, runs, sliced;
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

/* ---- rows: kernels alone (rows.c) ---- */

typedef struct {
    const adj_node *node;
    const char *backend;
    char impl[64];
    char layouts[128]; /* of operands and result: "nhwc Acdb16a -> nhwc" */
    char why[ADJ_WHY]; /* it could not be run; "" */
    spread time;
    double flop;
    size_t bytes;       /* read and written, in its layouts */
    int sets;           /* of buffers, used in turn */
    int count, planned; /* how often the node is computed, and how often the plan does it so */
    int fastest;
} bench_row;

typedef struct {
    int n, max;
    bench_row *row;
    /* Such rows' sums, each times its count; rival: the fastest in place of each that is planned.
     */
    double fastest_seconds, planned_seconds, rival_seconds;
    int convolutions, different; /* of --raw */
    int untimed;                 /* candidates that there was no time for */
    int unmatched; /* convolutions whose planned kernel is none of those that were to be timed */
} bench_rows;

/* A row for a prepared candidate; planned: of its count. NULL: out of memory. */
bench_row *bench_new_row(bench_rows *rows, const candidate *c);
/* Of the rows from first on: marks the one of the least time, adds it and the planned to the sums,
 * and removes all others unless all are wanted. */
void bench_rows_sum(bench_rows *rows, int first, int all);
/* Planned over fastest, at least 1; NAN: nothing that is planned was timed. */
double bench_regret(const bench_rows *rows);
/* The table, if the output is for text, and the JSON. An exit status. */
int bench_rows_write(const bench_opts *o, const bench_rows *rows);

/* ---- kernels alone (kernel.c, race.c, op.c, raw.c) ---- */

enum { MAX_OPERANDS = 16 };

/* What the plan takes. */
typedef struct {
    char backend[32], impl[64];
    char layouts[128]; /* as in a row, where bench_usual has said it */
    /* The names of the layouts of the node's operands, each once, and of its result; the
     * executor's. Not known: NULL. */
    const char *layout[MAX_OPERANDS + 1];
    int count; /* how often */
} planned_choice;

typedef struct bench_kernels bench_kernels; /* the opened backends */

/* NULL after complaining. */
bench_kernels *bench_kernels_open(const bench_opts *o);
void bench_kernels_close(bench_kernels *k);
/* The next kernel of any of them, its candidate 0; the first when c->backend is NULL. 0: there is
 * none left. */
int bench_next_kernel(const bench_kernels *k, candidate *c);
/* Is it by such an implementation, in such layouts? */
int bench_is_planned(const candidate *c, const planned_choice *p);

/* 64-aligned zeros, touched: the first run meets no page faults. NULL: out of memory. */
char *bench_memory(size_t bytes);
/* Of the machine's last-level cache, as far as it is told. */
size_t bench_cache_bytes(void);

/* Adds a row for the candidate that the plan takes, or for each there is (all), of a node of up to
 * MAX_OPERANDS; each is run for o->seconds. 0: out of memory. */
int bench_node(bench_kernels *k, const bench_opts *o, const adj_node *n, const planned_choice *p,
               int all, bench_rows *rows);

typedef struct {
    const adj_node *node;
    int n_planned; /* its equals are computed in so many ways */
    const planned_choice *planned;
    double deadline; /* of seconds_now */
    size_t cold;     /* bytes read before each run; 0: none */
} bench_race;

/* Adds a row for each candidate that is in time, in turns with all others. 0: out of memory. */
int bench_race_run(bench_kernels *k, const bench_opts *o, const bench_race *wanted,
                   bench_rows *rows);
/* What a plan of the node alone takes among the opened backends. 0: none of them computes it. */
int bench_usual(bench_kernels *k, const adj_node *n, planned_choice *p);

/* --op, and --raw: exit statuses. */
int bench_op(const bench_opts *o);
int bench_raw(const bench_opts *o);

/* Whether the output is for text: no option names it. */
int bench_prints(const bench_opts *o);

/* ---- JSON (json.c), for write_output: 0, or the writing failed ---- */

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
/* source: a bench_profile. */
int bench_trace(FILE *f, const void *source);

#endif
