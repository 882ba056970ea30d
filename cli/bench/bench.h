/* bench.h - options of adjoint bench, and its measurements. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "adjoint_ext.h"
#include "adjoint_fit.h"
#include "cli/op/args.h"

typedef struct {
    op_args op; /* of --op; --dtype is the model's too */
    const char *model, *backend, *impl, *math, *precision_word, *json;
    int64_t batch, threads, infer, tune, raw, all, warm, profile;
    double seconds; /* seconds of each measurement; of --raw in total */
    adj_dtype dtype;
    adj_math math_mode;
    adj_precision precision;
    int timed_steps;                      /* the executor is to time each of its steps */
    const adj_backend *const *backends;   /* NULL: the built-in ones; of ranks, and of tests */
    const adj_data_parallel_opts *shared; /* of a training step; NULL: it is one process's alone */
    int runs;                             /* that are timed; 0: for so many seconds */
} bench_opts;

/* Run a measurement and return the exit status: of --op; of --raw; of whole steps by several ranks;
 * of an estimate for more ranks. */
int bench_op(const bench_opts *o);
int bench_raw(const bench_opts *o);
int bench_ranks(const bench_opts *o, const adj_ranks *ranks);

/* True if standard output shows text: no option names it for another output. */
int bench_prints(const bench_opts *o);

#endif
