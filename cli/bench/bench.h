/* bench.h - what adjoint bench is asked for, and what answers it. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "adjoint_ext.h"
#include "adjoint_fit.h"
#include "cli/op/args.h"

typedef struct {
    op_args op; /* of --op; --dtype is the model's too */
    const char *model, *backend, *impl, *math, *precision_word, *json;
    int64_t batch, threads, infer, tune, raw, all, warm, profile;
    double seconds; /* of each measurement, of --raw altogether */
    adj_dtype dtype;
    adj_math math_mode;
    adj_precision precision;
    int timed_steps;                      /* the executor is to time each of its steps */
    const adj_backend *const *backends;   /* NULL: the built-in ones; of ranks, and of tests */
    const adj_data_parallel_opts *shared; /* of a training step; NULL: it is one process's alone */
    int runs;                             /* that are timed; 0: for so many seconds */
} bench_opts;

/* Exit statuses: of --op; of --raw; of whole steps by several ranks, among which there are more
 * than one; what those would take on more of them. */
int bench_op(const bench_opts *o);
int bench_raw(const bench_opts *o);
int bench_ranks(const bench_opts *o, const adj_ranks *ranks);

/* Whether the output is for text: no option names it. */
int bench_prints(const bench_opts *o);

#endif
