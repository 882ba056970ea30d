/* inspect.h - details of reports for the tool and tests, beyond adjoint_check.h. */
#ifndef ADJ_CHECK_INSPECT_H
#define ADJ_CHECK_INSPECT_H

#include "adjoint_check.h"
#include "exec/internal.h"

/* All that is known of a row of a gradient check. */
typedef struct {
    int node;                    /* id in the user's graph */
    const char *name;            /* label of the node, or its number as "%12" */
    const char *op;              /* "conv2d" */
    const char *attrs;           /* "NHWC SAME s1x1" */
    const char *wrt;             /* "input", "filter", ... */
    const char *method;          /* "adjoint-int", "directional", "formula", ... */
    int order;                   /* 1: the gradient; 2: the gradient's gradient */
    adj_type type;               /* type of the operand */
    int64_t elems;               /* number of elements compared */
    double worst_rel, worst_abs; /* the largest relative and absolute error */
    /* The element with the largest ratio of error to tolerance. */
    const char *index; /* "[h=2,w=0,c=5]" */
    /* Values at that element; uncertainty: error bound of numeric. */
    double analytic, numeric, uncertainty, tolerance;
    const char *origin;        /* derivation of the tolerance */
    int64_t wrong;             /* number of elements beyond the tolerance */
    const char *pattern;       /* property that the wrong elements share, such as one channel */
    const char *hint;          /* likely cause, such as a wrong sign or scale */
    int64_t kinks;             /* elements skipped because the op is not differentiable nearby */
    int64_t considered;        /* elements considered, the skipped ones included */
    const char *blame;         /* cause of a failure, a sentence */
    adj_gradcheck_fault fault; /* the same */
    const char *reason; /* why the row is skipped, not checked or inconclusive; or a remark on a row
                           that passed: another implementation ran than adj_exec_debug.impl names,
                           or differences were taken in float32 */
    int repeatable;     /* the backward pass gave the same bits twice */
    adj_gradcheck_result result; /* verdict of the row */
} gradcheck_detail;
/* Returns the i-th row, or NULL when out of range. It belongs to the report. */
ADJ_API const gradcheck_detail *adj_gradcheck_row_at(const adj_gradcheck_report *r, int i);

/* Conditions of a gradient check. */
typedef struct {
    const char *backend;       /* backend under test, such as "onednn", as given in the options */
    const char *version, *isa; /* version and instruction set of the backend; "" if not reported */
    const char *reference;     /* "naive float64" */
    int threads;               /* threads of the executors under test */
    int repeatable; /* 1: every gradient had the same bits in two runs; a row that differs fails */
    int impl_nodes; /* number of nodes checked on an implementation that adj_exec_debug.impl names;
                       0 if it is NULL */
} gradcheck_conditions;
/* Returns the conditions of the check. */
ADJ_API gradcheck_conditions adj_gradcheck_conditions(const adj_gradcheck_report *r);

/* adj_gradcheck_print; repro writes a command line that repeats the check of a failed row, or "".
 */
ADJ_API void adj_gradcheck_print_with(FILE *f, const adj_gradcheck_report *r,
                                      void (*repro)(void *user, const gradcheck_detail *row,
                                                    char *line, size_t size),
                                      void *user);
/* True if both nodes get the same rows and random values: same op, attributes and operand types,
 * with equal operands in the same positions. */
ADJ_API int adj_gradcheck_same(const adj_node *a, const adj_node *b);

/* A configuration: how to compute a graph. Examples: "naive:f64", "onednn", "onednn:bf16",
 * "onednn:isa=avx2", "onednn:impl=gemm", "onednn:threads=1", "onednn:nchw", "onednn:fast",
 * "onednn:unfused", "onednn:mixed", "onednn:mixed:f16", "onednn:tune", "onednn:recompute", and
 * combinations such as "onednn:bf16:threads=1". */
typedef struct {
    char name[64];    /* the text that was parsed */
    char backend[64]; /* as in adj_exec_opts */
    char isa[32];  /* "": the machine's instruction set; else a name that this oneDNN knows, which
                      needs a process of its own: adj_trial_opts.elsewhere */
    char impl[32]; /* as adj_exec_debug.impl; "": any */
    int threads;   /* number of threads; 0: adj_compare_opts.exec.threads */
    int has_dtype, has_format; /* 1: dtype, format are given */
    adj_dtype dtype;           /* if has_dtype: float type of the whole graph */
    adj_format format;         /* if has_format: format of all ops that have a format */
    /* Executor options: fast math, no fusion, a short tuning, recomputation wherever possible. */
    int fast, unfused, tune, recompute;
    /* Mixed precision: "mixed" and "mixed:bf16" are BF16, "mixed:f16" is F16 with the default loss
     * scale of adj_exec_opts. A type that does not follow "mixed" sets dtype. */
    adj_precision precision;
} adj_compare_config;

/* Parses the text of a configuration with the backends of a list; NULL: the built-in ones. ADJ_EARG
 * for invalid text; the message suggests the nearest valid word. */
ADJ_API adj_status adj_compare_config_parse(const char *text, const adj_backend *const *backends,
                                            adj_compare_config *out, adj_error *error);

/* Options of a comparison beyond adj_compare_opts. All zero is the default. */
typedef struct {
    /* Runs a trial in another process: limits the instruction set there to isa ("": no limit),
     * passes request to adj_trial_run and returns its response in memory for free(). Without a
     * response (a crash, a hang) it returns ADJ_EBACKEND and sets error, which is not NULL, to the
     * cause, such as "SIGSEGV". NULL: no configuration may name an isa. */
    adj_status (*elsewhere)(void *user, const char *isa, const void *request, size_t bytes,
                            void **response, size_t *response_bytes, adj_error *error);
    int guard; /* 1: every configuration but the reference runs in another process (elsewhere) */
    /* 1: compares each distinct node (adj_gradcheck_same) by itself and only once, without special
     * values and without the backend naive; only the reference runs the whole graph. For sizes that
     * cross the block edges of kernels, where a full comparison is slow. */
    int alone;
    void *user; /* handed to elsewhere */
    /* Only before_kernel and its user are used, for all executors in this process; NULL: none. */
    const struct adj_exec_internal *internal;
} adj_trial_opts;

/* adj_compare; trials: NULL, or more options. */
ADJ_API adj_status adj_compare_with(adj_graph *g, const adj_compare_opts *opts,
                                    const adj_trial_opts *trials, const adj_comparison **out);

/* Runs a request from adj_trial_opts.elsewhere in the other process. *response must be freed by
 * free(). ADJ_EARG for malformed request bytes. tell, unless it is NULL, is called before each
 * operation so that a crash can be attributed: first "planning", then before each kernel a line
 * such as "relu \"relu1\" by direct fused_row_kernel:avx2 (estimated at 1.2e-06 s)". */
ADJ_API adj_status adj_trial_run(const void *request, size_t bytes,
                                 void (*tell)(void *user, const char *note), void *user,
                                 void **response, size_t *response_bytes);

/* Error statistics of n values against expected values. */
typedef struct {
    int64_t n, wrong; /* number of values; of values whose error exceeds the bound */
    /* Largest absolute and relative error and error in units in the last place; normalized mean
     * square error; signal to quantization noise ratio in dB, INFINITY without difference. */
    double max_abs, max_rel, max_ulp, nmse, sqnr;
    double worst; /* the largest |error| / bound; above 1: wrong. NAN: not measured */
    int64_t at;   /* index of that element; -1: no element differs */
    double got, expected, bound; /* values at that element, and its bound */
    int64_t nan, inf;            /* number of unexpected NaNs and infinities */
    /* Number of zeros among the values and among the expected values. */
    int64_t zeros, zeros_expected;
    /* Error of the whole result: the RMS error over `distinct` different expected values, and the
     * same in units of each value's rounding error. A noise above noise_limit is wrong even if each
     * element is within its bound. NAN: not measured. */
    double rms, noise, noise_limit;
    int64_t distinct; /* number of different expected values */
    /* The mean distance from the rounded expected value in the same units, positive away from 0,
     * divided by noise. For 128 or more values of a half type, an absolute value above 0.5 is
     * wrong: the kernel truncates instead of rounding. */
    double bias;
} adj_compare_error;

/* All that is known of a row of the report. */
typedef struct {
    const adj_node *node; /* node of the compared graph */
    /* "" for a node. "conv2d+bias_add": a result of a group of nodes that one kernel computes in
     * the configuration's plan, computed by itself on operands from the plan's graph in float64;
     * node is the result or the node that stands for it. */
    const char *group;
    int config;          /* number of the configuration: 1, 2, ...; 0 is the reference */
    adj_type type;       /* type of the values */
    adj_verdict verdict; /* the worst verdict of the checks below */
    adj_blame blame;     /* cause of a failure */
    const char *reason;  /* a sentence; "" */
    /* Errors against the reference. propagated: on the configuration's own operands against the
     * reference's whole run (not part of the verdict). isolated: both on the reference's operands,
     * rounded to the configuration's type. in_plan: the result within the graph against the
     * reference on the same operands. */
    adj_compare_error propagated, isolated, in_plan;
    char origin[96];         /* derivation of the bound: "(u + 75 u_f32) sum|ab|" */
    int exact;               /* 1: integer data, bit-identical results were required */
    int repeats;             /* 1: two runs on equal operands gave the same bits; else a failure */
    int canary;              /* 1: a kernel wrote out of bounds */
    int wrong_on_own;        /* 1: wrong by itself on the operands that it had within the graph */
    double us, reference_us; /* medians, in microseconds; 0: not measured */
    double gflops;           /* nominal, computed from us */
    size_t bytes;            /* bytes of operands and results */
    int reorders;            /* reorders that the node needs by itself */
    /* Backend and implementation that computed the node by itself. */
    char backend[32], implementation[64];
    int other_impl;  /* 1: no available implementation has the configuration's impl in its name (see
                        why) */
    const char *why; /* why the preferred backend does not compute the node; "" */
} compare_row;

/* Result of a whole run of a configuration that fetches only the roots. With adj_trial_opts.alone
 * only the reference runs, without timing: ms is 0. */
typedef struct {
    adj_verdict verdict;              /* the worst verdict of the checks below */
    const char *reason;               /* a sentence; "" */
    double ms;                        /* median */
    int steps, reorders, naive_steps; /* counts of the plan, as in adj_exec_info */
    size_t arena_bytes;               /* the same */
    int repeats;                      /* 1: two runs gave the same bits; else a failure */
    int differs;  /* number of roots that are not bit-identical to those of a run that fetches every
                     node; a failure if the same kernels ran on the same layouts */
    double apart; /* norm of the difference of the worst such root from that run, relative to the
                     reference's norm. Fused kernels round less often, so only a difference above 64
                     rounding units of the type and above 4 times the distance of any result from
                     the reference is a failure */
    double reference_apart; /* norm of the difference from the reference, relative to the
                               reference's norm */
    int canary;             /* 1: a kernel wrote out of bounds in the run that fetches every node */
} compare_result;
/* Returns the i-th configuration, 0 the reference; NULL when out of range. */
ADJ_API const adj_compare_config *adj_comparison_config_at(const adj_comparison *c, int i);
/* Returns the result of the i-th configuration; all 0 and "" when out of range. */
ADJ_API compare_result adj_comparison_result_at(const adj_comparison *c, int i);
/* Returns the i-th row, or NULL when out of range. It belongs to the comparison. */
ADJ_API const compare_row *adj_comparison_row_at(const adj_comparison *c, int i);
/* Returns the name of the row's group, or of the op of its node. */
ADJ_API const char *adj_compare_row_name(const compare_row *row);

#endif
