/* adjoint_check.h - checking: gradients against numbers made another way; backends, element types,
 * layouts and threads compared with each other.
 *
 * A report is an object with accessors, and says in words what is wrong; nothing is printed but
 * where a FILE is given. */
#ifndef ADJOINT_CHECK_H
#define ADJOINT_CHECK_H

#include "adjoint.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- are the gradients right?
 * ---------------------------------------------------------------------------------------------------
 *
 * adj_gradcheck takes every differentiable node that a value depends on, by itself: new inputs of
 * its operands' types, random values, and three answers to "what is v' J u":
 *   numeric     differences of the forward value, in float64 on the reference
 *   reference   the gradient graph in float64 on the reference
 *   analytic    the gradient graph in the node's own types on the backend under test
 * numeric against reference judges the gradient rule, analytic against reference (element by
 * element) the kernels. The reference's values of the nodes on the way are compared with their ops'
 * formulas: a failure says whose fault it is, the rule's, a kernel's, or the reference's own.
 *
 * Producers of operands that the rule looks at are checked with the node. adj_gradcheck also
 * compares the gradient of each float leaf with differences of the whole graph's result along
 * random directions, in float64 on naive: rows "end to end".
 *
 * The reference is naive. An op of the caller's own is computed by the caller's backends
 * (debug.backends): in float64, or in float32 where they do not compute it in float64; the row's
 * reason says so. A node that no backend computes is ADJ_GRADCHECK_NOT_CHECKED.
 *
 * The error that a rule may have is c S + 2 U. Element by element (at most 64) S is the largest of
 * |dx| and |dy|, along a direction v the sum of |dx v|. U is the error of the differences D(h):
 * |D(h) - D(h/2)| and their rounding, 3 k eps |dy| |f| / h. In float64 c = 1e-7 (1e-9 by
 * Richardson's method), k = 8, eps = 2^-52 and h = 2^-17.3; in float32 c = 1e-4, k = 2, eps = 2^-23
 * and h = 2^-7.7; h is larger by max |x| where that is above 1. Where f is smooth and |f| no larger
 * than |dx|, a factor of 1.001 in the rule of an op that has float32 only is found.
 *
 * Steps of optimizers (sgd_step, momentum, adam_step, ema, next_step) have no gradient: five of
 * each, at counters from 1 to 1,000,000 and rates of 0 and other signs and sizes, are compared with
 * its formula in float64. */

/* How a gradient is checked. */
typedef enum {
    ADJ_GRADCHECK_AUTO,        /* adjoint where the node is linear and exact on integers; else
                                  element-wise where it is small; else directional */
    ADJ_GRADCHECK_ADJOINT,     /* <dy, f(x + v) - f(x)> == <dx, v> on integers, bit for bit */
    ADJ_GRADCHECK_DIRECTIONAL, /* the same for random v, by central differences */
    ADJ_GRADCHECK_ELEMENTWISE, /* the whole Jacobian */
    ADJ_GRADCHECK_RICHARDSON   /* directional; halves the step until the estimate settles */
} adj_gradcheck_method;

/* What became of a check. */
typedef enum {
    ADJ_GRADCHECK_PASS,         /* within the tolerance */
    ADJ_GRADCHECK_FAIL,         /* further off */
    ADJ_GRADCHECK_INCONCLUSIVE, /* too close to kinks to tell */
    ADJ_GRADCHECK_SKIPPED,    /* nothing to check: an integer operand, no gradient by definition */
    ADJ_GRADCHECK_NOT_CHECKED /* no backend computes it, or checking failed earlier */
} adj_gradcheck_result;

/* Where the fault of a row that failed was made. */
typedef enum {
    ADJ_FAULT_NONE,      /* nowhere: it passed */
    ADJ_FAULT_RULE,      /* the gradient rule */
    ADJ_FAULT_KERNEL,    /* a kernel of the backend under test */
    ADJ_FAULT_REFERENCE, /* naive's kernel: the op's formula contradicts it */
    ADJ_FAULT_PLAN,      /* the executor's plan: refused, or only part of it is right; a pass */
    ADJ_FAULT_GRAPH      /* the graph: adj_grad's sums, or nodes merged that differ */
} adj_gradcheck_fault;

/* All zero is the default. */
typedef struct {
    adj_gradcheck_method method; /* ADJ_GRADCHECK_AUTO, unless it is set */
    int order;                   /* 2: of (x, dy) -> dx as well; 0: 1 */
    int draws;                   /* sets of random values for each node; 0: 3 */
    uint64_t seed;               /* of all values */
    double rtol, atol;           /* instead of the derived tolerance: |a - b| <= atol + rtol |b| */
    const char *backend;         /* as in adj_exec_opts */
    int threads;                 /* the same */
    const adj_updates *updates;  /* adj_gradcheck checks the steps of optimizers among what these
                                     assign, too; NULL: none */
    /* Writes a command line that repeats the check of node, for rows that fail. NULL: none. */
    void (*repro)(void *user, const adj_node *node, char *line, size_t size);
    void *user;           /* handed to repro */
    adj_exec_debug debug; /* of the executors under test */
} adj_gradcheck_opts;

/* One node with respect to one operand. Strings live as long as the report; "" if there is nothing
 * to say. */
typedef struct {
    int node;                    /* id in the user's graph */
    const char *name;            /* its label, or "%12" */
    const char *op;              /* "conv2d" */
    const char *attrs;           /* "NHWC SAME s1x1" */
    const char *wrt;             /* "input", "filter", ... */
    const char *method;          /* "adjoint-int", "directional", "formula", ... */
    int order;                   /* 1: the gradient; 2: the gradient's gradient */
    int operand;                 /* which it is */
    adj_type type;               /* of the operand */
    int64_t elems;               /* compared with each other */
    double worst_rel, worst_abs; /* the largest relative and absolute error */
    /* The element that is furthest off, measured in tolerances. */
    const char *index;                                /* "[h=2,w=0,c=5]" */
    double analytic, numeric, uncertainty, tolerance; /* there; uncertainty: of numeric */
    const char *origin;                               /* where the tolerance comes from */
    int64_t wrong;                                    /* elements beyond the tolerance */
    const char *pattern;                              /* what the wrong elements share */
    const char *hint;                                 /* sign, scale */
    int64_t kinks;                                    /* elements left out because a kink is near */
    int64_t considered;          /* elements that were candidates, those at kinks among them */
    const char *blame;           /* whose fault it is, a sentence */
    adj_gradcheck_fault fault;   /* the same */
    const char *repro;           /* a command line that repeats the check */
    const char *reason;          /* why it was skipped, not checked or is inconclusive; or that it
                                    passed on another implementation than debug.impl asks for, or
                                    by differences in float32 */
    int repeatable;              /* the backward pass gave the same bits twice */
    adj_gradcheck_result result; /* what came out */
} adj_gradcheck_row;

/* What was checked, and how. Strings live as long as the report. */
typedef struct {
    const char *backend;       /* "onednn", as it was asked for */
    const char *version, *isa; /* of the backend; "" if it has none */
    const char *reference;     /* "naive float64" */
    int threads;               /* of the executors under test */
    int repeatable; /* the bits of every gradient were the same twice; a row that differs fails */
    int impl_nodes; /* checked on an implementation that debug.impl asks for; none if it is NULL */
} adj_gradcheck_info;

/* What adj_gradcheck found. */
typedef struct adj_gradcheck_report adj_gradcheck_report;

/* Checks what y depends on, equal nodes once; or one node alone. The graph does not change. A
 * status other than ADJ_OK says that checking failed (its sentence: adj_gradcheck_message), not
 * that a gradient is wrong. *out is NULL only when out of memory, and must be freed in every case,
 * before or after the graph but not after its allocator. */
ADJ_API adj_status adj_gradcheck(adj_node *y, const adj_gradcheck_opts *opts,
                                 adj_gradcheck_report **out);
/* Checks one node alone, in the same way. */
ADJ_API adj_status adj_gradcheck_node(adj_node *node, const adj_gradcheck_opts *opts,
                                      adj_gradcheck_report **out);
/* The same of n nodes of one graph, in this order, in one report. */
ADJ_API adj_status adj_gradcheck_nodes(int n, adj_node *const node[],
                                       const adj_gradcheck_opts *opts, adj_gradcheck_report **out);
/* Would both nodes get the same rows: the same op and attributes over operands of the same types,
 * related to each other in the same way? The values drawn are the same as well. */
ADJ_API int adj_gradcheck_same(const adj_node *a, const adj_node *b);
/* n with another value of one attribute, over the same operands: 0, 1, less than 0 and large
 * numbers, the ends of the range that the schema declares, every word, set of axes and permutation;
 * what the op refuses is left out. To be checked or compared beside n, as faults hide at usual
 * values. *next: 0 for the first. NULL past the last. */
ADJ_API adj_node *adj_node_variant(adj_node *n, int *next);
/* Frees the report with its rows and strings. */
ADJ_API void adj_gradcheck_free(adj_gradcheck_report *r);
/* Why checking failed; "" if it did not. It is the report's. */
ADJ_API const char *adj_gradcheck_message(const adj_gradcheck_report *r);
/* What was checked, and how; all "" and 0 for NULL. */
ADJ_API adj_gradcheck_info adj_gradcheck_about(const adj_gradcheck_report *r);
/* How many rows; 0 for NULL. */
ADJ_API int adj_gradcheck_row_count(const adj_gradcheck_report *r);
/* NULL when out of range. */
ADJ_API const adj_gradcheck_row *adj_gradcheck_row_at(const adj_gradcheck_report *r, int i);
/* How many rows have that result. */
ADJ_API int adj_gradcheck_result_count(const adj_gradcheck_report *r, adj_gradcheck_result result);
/* Returns FAIL if any row failed; else NOT_CHECKED if any row was not checked or checking failed;
 * else INCONCLUSIVE if any row is, if there was nothing to check, or if no implementation that
 * debug.impl asks for ran; else PASS. */
ADJ_API adj_gradcheck_result adj_gradcheck_verdict(const adj_gradcheck_report *r);
ADJ_API const char *adj_gradcheck_result_name(adj_gradcheck_result result); /* "PASS" */
/* The table, what is known about each failure, and a summary. */
ADJ_API void adj_gradcheck_print(FILE *f, const adj_gradcheck_report *r);

/* ---- comparing configurations
 * ---------------------------------------------------------------------------------------------------
 */

/* A way to compute a graph: "naive:f64", "onednn", "onednn:bf16", "onednn:isa=avx2",
 * "onednn:impl=gemm", "onednn:threads=1", "onednn:nchw", "onednn:fast", "onednn:unfused",
 * "onednn:mixed", "onednn:mixed:f16", "onednn:tune", and combinations such as
 * "onednn:bf16:threads=1". */
typedef struct {
    char name[64];    /* the text it was made from */
    char backend[64]; /* as adj_exec_opts.backend */
    char isa[32];  /* "": the machine's; else a name that the oneDNN here knows. Needs a process of
                      its own: adj_compare_opts.elsewhere */
    char impl[32]; /* as adj_exec_debug.impl; "": any */
    int threads;   /* 0: as adj_compare_opts.threads */
    int has_dtype, has_format; /* 1: the next two are given */
    adj_dtype dtype;           /* every float becomes this, if has_dtype */
    adj_format format;         /* of convolutions, pools and their kind, if has_format */
    /* Executor options: fast math, no fusion, a short tuning. */
    int fast, unfused, tune;
    /* Mixed precision: "mixed" and "mixed:bf16" are BF16, "mixed:f16" is F16 with the loss scale
     * that adj_exec_opts has by default. A type that does not follow "mixed" is dtype. */
    adj_precision precision;
} adj_compare_config;

/* ADJ_EARG with a sentence that names the nearest thing that exists. */
ADJ_API adj_status adj_compare_config_parse(const char *text, adj_compare_config *out,
                                            adj_error *error);

/* A leaf's value for adj_compare. */
typedef struct {
    const adj_node *leaf; /* an input, param or state */
    const void *data;     /* row-major, of the leaf's type */
} adj_leaf_value;

/* What adj_compare compares, and on what. All zero is the default but for the roots. */
typedef struct {
    int n_root;                 /* 1 or more */
    adj_node *const *root;      /* these, and all nodes they need, are compared */
    const adj_updates *updates; /* as do the next values; may be NULL */
    /* The first is the reference; none: naive:f64, naive, onednn. */
    int n_config;              /* how many */
    const char *const *config; /* texts for adj_compare_config_parse */
    /* Leaves not listed are drawn: inputs from N(0, 1), parameters as they are initialized and a
     * little more (a bias of 0 hides that it was left out), i32 inputs 0 or 1. */
    int n_value;                 /* how many */
    const adj_leaf_value *value; /* read during the call */
    uint64_t seed;               /* of what is drawn */
    int exact;   /* integers for data: where all sums are exact, every bit has to be right */
    int runs;    /* timed runs of each node and configuration, fewer of what takes long; 0: 5 */
    int threads; /* 0: what OpenMP would take */
    /* Runs work in another process: sets isa there ("": leaves it), hands request to adj_trial_run,
     * brings its response back, to be freed by free(). When there is none (a crash, a hang),
     * returns ADJ_EBACKEND and sets error, which is not NULL, to what happened ("SIGSEGV"). NULL:
     * no configuration may name an isa. */
    adj_status (*elsewhere)(void *user, const char *isa, const void *request, size_t bytes,
                            void **response, size_t *response_bytes, adj_error *error);
    int guard; /* every configuration but the reference runs elsewhere */
    /* Each kind of node alone and nothing else: the whole graph is run under the reference only,
     * equal nodes (adj_gradcheck_same) are compared once, on no special values, and not on naive,
     * which has no blocks. For sizes that pass the edges of kernels' blocks, where a whole
     * comparison takes long. */
    int alone;
    void *user; /* handed to elsewhere */
    /* Executors take quarantine and backends from here, and the rest from the configurations. The
     * reference is naive; backends of this list that are not built in serve the caller's ops. */
    adj_exec_debug debug;
} adj_compare_opts;

/* The other side of adj_compare_opts.elsewhere. *response is to be freed by free(). ADJ_EARG if
 * request is none. */
ADJ_API adj_status adj_trial_run(const void *request, size_t bytes, void **response,
                                 size_t *response_bytes);

/* The same, and tells what is about to happen, so that a crash can be laid to it: first "planning",
 * then before each kernel runs "relu \"relu1\" by direct fused_row_kernel:avx2". */
ADJ_API adj_status adj_trial_run_with_notes(const void *request, size_t bytes,
                                            void (*tell)(void *user, const char *note), void *user,
                                            void **response, size_t *response_bytes);

/* How far n values are from what they should be. */
typedef struct {
    int64_t n, wrong;                             /* wrong: further away than the bound */
    double max_abs, max_rel, max_ulp, nmse, sqnr; /* sqnr in dB; INFINITY: no difference */
    double worst; /* the largest |error| / bound; above 1 is wrong. NAN: not measured */
    int64_t at;   /* the element that has it; -1: none differs */
    double got, expected, bound;   /* there */
    int64_t nan, inf;              /* among the values, where there should be none */
    int64_t zeros, zeros_expected; /* among the values, and among what they should be */
    /* The whole result: the RMS error over `distinct` different expected values, and that in units
     * of what rounding gives each of them. Above noise_limit is wrong, though each element may be
     * within its bound. NAN: not measured, as of fewer than 16 values. */
    double rms, noise, noise_limit;
    int64_t distinct; /* different expected values */
    /* The mean error, in units as above and positive away from 0, over noise. Beyond 0.5 on either
     * side, 128 values of a half type or more are wrong: the kernel truncates. */
    double bias;
} adj_compare_error;

/* What became of a comparison. */
typedef enum {
    ADJ_VERDICT_PASS,  /* every element is within its bound */
    ADJ_VERDICT_FAIL,  /* one is not, or what the row says beside the numbers */
    ADJ_VERDICT_CRASH, /* no response; reason says what happened */
    ADJ_VERDICT_ERROR  /* it could not be run; reason says why */
} adj_verdict;

/* Where a fault was made. */
typedef enum {
    ADJ_BLAME_NONE,     /* nowhere: it passed, or it cannot be told */
    ADJ_BLAME_KERNEL,   /* wrong alone: on the reference's operands, or on its own of the graph */
    ADJ_BLAME_PLAN,     /* right alone on both, wrong within the graph: layout, memory, another
                           implementation */
    ADJ_BLAME_UPSTREAM, /* no fault of its own, but its operands were wrong */
    ADJ_BLAME_REFERENCE /* the reference is wrong: the op's formula in float64 contradicts it */
} adj_blame;

/* One node, or one result of a fused group, in one configuration. */
typedef struct {
    const adj_node *node; /* of the graph compared */
    /* "conv2d+bias_add": the row is of a result of a group of nodes that one kernel computes in the
     * configuration's plan, alone on the values that the plan's graph has in float64; node is the
     * result, or what it becomes. "" for a node. */
    const char *group;
    int config;          /* 1, 2, ...: the reference has no rows */
    adj_type type;       /* of the values judged */
    adj_verdict verdict; /* the worst of what follows */
    adj_blame blame;     /* where the fault was made */
    const char *reason;  /* a sentence; "" */
    /* propagated: configuration's own operands against the reference's whole run (reported
     * only). isolated: both on the reference's operands, rounded to the configuration's type.
     * in_plan: its result within the graph against the reference on the same operands. */
    adj_compare_error propagated, isolated, in_plan;
    char origin[96];         /* of the bound: "(u + 75 u_f32) sum|ab|" */
    int exact;               /* integers: equality was demanded */
    int repeats;             /* two runs gave the same bits, or other operands; else a failure */
    int canary;              /* a kernel wrote outside its memory */
    int wrong_on_own;        /* alone, on the operands that it had within the graph */
    double us, reference_us; /* medians, in microseconds; 0: not measured */
    double gflops;           /* nominal, from us */
    size_t bytes;            /* read and written */
    int reorders;            /* that the node alone needs */
    char backend[32], implementation[64]; /* that computed it alone */
    int other_impl; /* the configuration's impl is in no name of what can compute it; why says so */
    const char *why; /* why the first choice of backend does not compute it; "" */
} adj_compare_row;

/* What adj_compare found. */
typedef struct adj_comparison adj_comparison;

/* *out is a handle to ask for the message even on failure (NULL only when out of memory) and must
 * be freed in every case, before the graph. That something differs is no failure. */
ADJ_API adj_status adj_compare(adj_graph *g, const adj_compare_opts *opts, adj_comparison **out);
/* Frees it with its rows and strings. */
ADJ_API void adj_comparison_free(adj_comparison *c);
/* Why comparing failed; "" if it did not. It is the comparison's. */
ADJ_API const char *adj_comparison_message(const adj_comparison *c);
/* How many configurations, the reference among them; 0 for NULL. */
ADJ_API int adj_comparison_config_count(const adj_comparison *c);
/* The i-th of them, 0 the reference; NULL when out of range. */
ADJ_API const adj_compare_config *adj_comparison_config_at(const adj_comparison *c, int i);
/* A whole run of the configuration with nothing fetched but the roots. With adj_compare_opts.alone
 * there is the reference's only, which is not timed: ms is 0 in all of them. */
typedef struct {
    adj_verdict verdict;              /* of what follows */
    const char *reason;               /* a sentence; "" */
    double ms;                        /* median */
    int steps, reorders, naive_steps; /* of the plan, as in adj_exec_info */
    size_t arena_bytes;               /* the same */
    int repeats;                      /* two runs gave the same bits; else a failure */
    int differs;  /* roots that are not bit-equal to those of the run that keeps every node; a
                     failure where the same kernels ran on the same layouts */
    double apart; /* how far the worst of these is from there, and from the reference; norms over
                     the reference's norm. Fused kernels round less often, but more than 64 units of
                     the type, and than 4 times what any result is from the reference, is a
                     failure. */
    double reference_apart; /* how far from the reference */
    int canary;             /* a kernel wrote outside its memory in the run that keeps every node */
} adj_compare_config_result;
/* Of the i-th configuration; all 0 and "" when out of range. */
ADJ_API adj_compare_config_result adj_comparison_result_at(const adj_comparison *c, int i);
/* In the order of the nodes, for each node a row for each configuration, of the reference only if
 * it is wrong there; then, by configuration, the results of fused groups in the order of their
 * first nodes. */
ADJ_API int adj_comparison_row_count(const adj_comparison *c);
/* The i-th of them; NULL when out of range. */
ADJ_API const adj_compare_row *adj_comparison_row_at(const adj_comparison *c, int i);
/* The op of its node, or its group. */
ADJ_API const char *adj_compare_row_name(const adj_compare_row *row);
/* Returns the number of rows that are not ADJ_VERDICT_PASS, plus 1 if comparing itself failed, such
 * as when no backend computes an op for the reference: rows that are missing did not pass. */
ADJ_API int adj_comparison_failed_count(const adj_comparison *c);
/* How many configurations' whole runs are not ADJ_VERDICT_PASS. */
ADJ_API int adj_comparison_whole_failed_count(const adj_comparison *c);
/* Prints a line for each whole run and each row, what is known about each failure, and a summary.
 */
ADJ_API void adj_comparison_print(FILE *f, const adj_comparison *c);
ADJ_API const char *adj_verdict_name(adj_verdict v); /* "pass", "FAIL", ... */
ADJ_API const char *adj_blame_name(adj_blame b);     /* "", "kernel", ... */

#ifdef __cplusplus
}
#endif
#endif
