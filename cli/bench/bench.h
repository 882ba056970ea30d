/* bench.h - adjoint bench: whole steps of a model, their profile, and single kernels as rows. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include <jansson.h>

#include "adjoint_fit.h"
#include "cli/model.h"
#include "cli/op/args.h"
#include "exec/candidate.h"
#include "exec/report.h"

typedef struct {
    op_args op; /* options of --op; --dtype applies to models as well */
    const char *model, *backend, *impl, *math, *precision_word, *json;
    int64_t batch, threads, infer, tune, raw, all, warm, profile;
    double seconds; /* seconds per measurement; with --raw in total */
    adj_dtype dtype;
    adj_math math_mode;
    adj_precision precision;
    int timed_steps;                    /* the executor times each of its steps */
    const adj_backend *const *backends; /* backends; NULL: the built-in ones */
    const adj_ranks *shared;            /* processes of a step; NULL: one */
    int runs; /* number of timed steps; 0: as many as fit in the seconds */
} bench_opts;

/* Run a measurement and return the exit status: of --op; of --raw; of whole steps by several
 * ranks. */
int bench_op(const bench_opts *o);
int bench_raw(const bench_opts *o);
int bench_ranks(const bench_opts *o, const adj_ranks *ranks);

/* ---- repeated measurements and their statistics (rows.c) ---- */

typedef struct {
    int n;
    double *seconds;
} samples;

typedef struct {
    int n;
    double median, min, q1, q3; /* seconds */
} spread;

/* Adds a time; returns 0 if there is no room. */
int samples_add(samples *s, double seconds);
/* Sorts the samples and returns their statistics; all zero without samples. */
spread samples_spread(samples *s);
void samples_free(samples *s);

/* ---- whole steps of a model (step.c) ---- */

enum { BENCH_WARM_UP = 3 }; /* warm-up steps, not timed */

typedef struct {
    model_graph m; /* updates NULL: inference */
    adj_exec *exec;
    adj_node *fetch; /* the loss, or the logits */
    void *y;         /* value of the fetched loss or logits */
    size_t y_bytes;
    int32_t *label;
    double plan_seconds, flop; /* seconds until planned; operations */
} bench_net;

typedef struct {
    spread time;
    double loss; /* the last; NAN: inference */
    size_t peak_rss;
} bench_step_time;

/* The caller closes n in every case; on failure its error has the reason. */
adj_status bench_net_open(bench_net *n, const bench_opts *o);
void bench_net_close(bench_net *n);
/* Builds the graph without a plan. */
adj_status bench_net_build(bench_net *n, const bench_opts *o);
/* Plans again: replaces n->exec, without images. */
adj_status bench_net_plan(bench_net *n, const bench_opts *o);
/* Runs steps for o->seconds, after warm-up steps. steps: samples for each step of a plan that times
 * them, which end the run when they are full; NULL: none. */
adj_status bench_net_time(bench_net *n, const bench_opts *o, bench_step_time *t, samples *steps);
/* Plans the fetch and the updates with the options. The caller frees *e in every case. */
adj_status make_exec(const bench_opts *o, adj_graph *g, adj_node *fetch, const adj_updates *updates,
                     adj_exec **e, adj_error *error);
/* Returns an array indexed by node id, 1 for what the roots need, to be freed. */
char *bench_needed(const adj_graph *g, int n_root, adj_node *const root[],
                   const adj_updates *updates);
double bench_flop(const adj_node *n);

typedef struct {
    int n, runs;
    adj_step_info *row;                /* strings are the executor's; seconds: the median */
    double step_seconds, plan_seconds; /* medians: whole steps while profiling; the rows' sum */
} bench_profile;

/* Plans the net once more with the profile on, runs it for o->seconds. n->exec is replaced. */
adj_status bench_profile_run(bench_profile *p, bench_net *n, const bench_opts *o);
void bench_profile_free(bench_profile *p);
void bench_profile_print(const bench_profile *p);
json_t *bench_profile_json(const bench_profile *p);

/* ---- results (bench.c) ---- */

/* Returns versions and options, the first members of every result. */
json_t *bench_json_head(const bench_opts *o);
/* Prints the object (NULL: out of memory) and the profile (of 0 steps: none) unless --json is
 * standard output, writes both to the file of --json, if there is one, and frees the object.
 * Returns an exit status. */
int bench_write(const bench_opts *o, const bench_profile *p, json_t *j);

/* ---- single kernels as rows (rows.c) ---- */

typedef struct {
    const adj_node *node;
    const char *backend;
    char impl[64];
    char layouts[128]; /* layouts of operands and result: "nhwc Acdb16a -> nhwc" */
    char why[ADJ_WHY]; /* reason why it was not timed; "" if it was */
    spread time;
    double estimate; /* seconds: an untuned plan takes the least */
    double flop;
    size_t bytes;       /* read and written, in its layouts */
    int count, planned; /* equal nodes; those computed so */
    int fastest;
} bench_row;

typedef struct {
    int n;
    bench_row *row;
    /* Rows and their sums, each weighted by its count; rival: the fastest instead of each planned
     * one. */
    double fastest_seconds, planned_seconds, rival_seconds;
    int convolutions, different; /* convolutions of --raw; different ones */
    int untimed;                 /* number of candidates not timed for lack of time */
    int unmatched;               /* convolutions with an untimed planned kernel */
} bench_rows;

/* Adds a row for a prepared candidate and returns it. */
bench_row *bench_new_row(bench_rows *rows, const candidate *c);
/* Marks the fastest of the rows from first on, adds it and the planned ones to the sums, and
 * removes the others unless all is 1. */
void bench_rows_sum(bench_rows *rows, int first, int all);
/* Prints the table, if standard output shows text, and writes the JSON. Returns an exit status. */
int bench_rows_write(const bench_opts *o, const bench_rows *rows);

/* ---- all candidates of a node, interleaved (race.c) ---- */

enum { MAX_OPERANDS = 16 };

/* Implementation that the plan selects for a node. */
typedef struct {
    char backend[32], impl[64];
    /* Names of the layouts of the node's distinct operands and of its result, owned by the
     * executor; NULL if unknown. */
    const char *layout[MAX_OPERANDS + 1];
    int count; /* number of nodes with this choice */
} planned_choice;

typedef struct {
    const adj_node *node;
    adj_exec *exec;    /* executor with the backends */
    unsigned backends; /* those that compete, as bits */
    int n_planned;     /* number of different kernels that compute the node's equals */
    const planned_choice *planned;
    int planned_alone; /* nothing else is timed */
    double seconds;    /* seconds for all candidates, or for each if `each` is set */
    int each;
    size_t cold; /* bytes read before each run; 0: none */
} bench_race;

/* Times the candidates, interleaved, and adds a row for each that was reached in time. */
void bench_race_run(const bench_opts *o, const bench_race *wanted, bench_rows *rows);

#endif
