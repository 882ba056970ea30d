/* bench.h - options of adjoint bench, and its measurements. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "adjoint_fit.h"
#include "cli/op/args.h"
#include "graph/op.h"

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

#endif
