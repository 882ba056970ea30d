/* compare.h - declarations that the files of adj_compare share: trials, expected values of a node
 * or a fused group, and the state of a comparison.
 *
 * A trial is a graph of its own with leaf values and a configuration to run it under. Its outcome
 * holds the fetched values and their cost. The whole graph is one trial per configuration; each
 * node alone is another. A trial can be serialized and run in another process (serialize.c). */
#ifndef ADJ_COMPARE_H
#define ADJ_COMPARE_H

#include "check/inspect.h"
#include "check/shared.h"
#include "exec/internal.h"

enum { MAX_IN = 64, MAX_CONFIGS = 32 };

typedef struct {
    const adj_compare_config *config;
    const struct adj_backend *const *backends;
    adj_graph *g;
    int n_fetch, n_leaf;
    adj_node **fetch, **leaf;
    const void **data; /* values of the leaves, in their types */
    int runs;          /* timed runs, after one run on other values and one whose values are kept;
                          0: one run, untimed */
    int threads;
    int aliases;                       /* 1: tries every in-place claim of every kernel */
    const adj_exec_internal *internal; /* options with before_kernel and its user; NULL: none */
    const adj_updates *updates;        /* updates of g, which a bare trial also plans; NULL: none */
    int as_built;                      /* 1: no passes, no fusion, no shared memory */
    int bare;                          /* 1: without canaries and step times, as in a user's run */
    int watched;                       /* 1: every pass is checked, as in a bare trial */
} trial;

typedef struct {
    int step;             /* number of the step; negative: no step computes the node */
    double seconds, flop; /* seconds: median */
    uint64_t bytes;
    int repeats;
    char backend[32], implementation[64], why[ADJ_WHY];
} fetch_info;

typedef struct {
    adj_status status;
    int crashed, canary;
    int wrong_plan; /* the plan was refused because it does not compute its graph */
    char message[ADJ_MESSAGE];
    adj_blame fault_of;   /* the component at fault for plan_fault: kernel or plan */
    char plan_fault[400]; /* sentence on a wrong reorder; of a bare trial or one with aliases,
                             on a kernel that overwrites another value, a wrong in-place claim or an
                             omitted step; of a bare trial, on a pass that changes a result or on
                             wrong leaves after updates; on an incomplete copy or a
                             changed float environment; "": none */
    double seconds;       /* median seconds of a whole run */
    uint64_t kernels;     /* hash of the kernels with their shapes and layouts, in any order */
    adj_exec_info exec;
    int reorders; /* exec_details.reorders */
    int n;
    fetch_info *info;
    void **value; /* by fetch: the value, in its type */
    int n_plan;   /* nodes of the executor's graph */
    int *step_of; /* by node id: the step that computes it; negative: none */
    /* For a bare trial that ran; else NULL. */
    adj_graph *plan;        /* the executor's graph, to be freed by the caller before the trial's */
    const adj_node **image; /* by id of the trial's graph: the node in plan; NULL: eliminated */
} outcome;

/* trial.c: stores the sentence without the name of the called function ("adj_run: "). */
void outcome_message(outcome *o, const char *sentence);
/* True if the plan does not compute its graph, or if a pass made a node that cannot be. */
int is_plan_wrong(const adj_exec *e);
/* Runs the trial in this process. Memory belongs to p, except plan. ADJ_ENOMEM, or ADJ_OK for any
 * outcome. */
adj_status trial_here(const trial *t, region *p, outcome *o);

/* passes.c: the results of a trial's graph after each pass. */
typedef struct {
    const trial *trial;
    region region;  /* region of `before` */
    outcome before; /* the results of the last graph seen */
    int is_begun;
    adj_status status;
    char sentence[200]; /* change made by the first wrong pass; "" */
} watch;
/* Fetches nodes of g, which is run in f64 on naive, node by node as it stands, with the values of
 * t's leaves; image: by id of t's graph, its nodes of g. Returns o->status, with o->message. */
adj_status run_in_f64(const trial *t, const adj_graph *g, const adj_node *const image[],
                      int n_fetch, const adj_node *const fetch[], region *p, outcome *o);
/* Callback for adj_exec_internal.after_pass, and for the graph as it was built; user: the watch. */
void watch_graph(void *user, const char *pass, const adj_graph *g, adj_node *const image[]);
/* stray_writes.c: writes `conv2d "conv1"`, or `conv2d` without a name. */
void name_node(const adj_node *n, char *text, size_t size);
/* Writes "operand 0 (input)". */
void name_operand(const adj_node *n, int k, char *text, size_t size);
/* Requires: a completed run, and the leaves given again. Runs each step once more, with the hash of
 * each value before and after, and tries its claims to work in place. Sets o->plan_fault. */
adj_status find_memory_fault(adj_exec *e, outcome *o);
/* updates.c: compares two steps with t->updates. Requires: plain, the trial's executor, has run;
 * opts are its options. Sets o->plan_fault for a wrong leaf, o->message on failure. */
adj_status compare_updates(const trial *t, adj_exec *plain, const adj_exec_opts *opts, region *p,
                           outcome *o);
/* serialize.c: runs the trial in another process. */
adj_status trial_elsewhere(const trial *t, const adj_trial_opts *opts, region *p, outcome *o);

/* "naive:f64" */
extern const adj_compare_config naive_f64;

/* Rules that rebuild a graph for a configuration. */
adj_node *config_rule(const adj_compare_config *c, adj_graph *to, const adj_node *n,
                      adj_node *const in[]);
adj_dtype config_dtype(const adj_compare_config *c, adj_dtype dtype);

/* Runs single nodes and trials (node.c). */
typedef struct {
    const adj_compare_opts *opts;
    const adj_trial_opts *trials; /* NULL: every trial runs here */
    const adj_compare_config *reference;
    int runs;
    int scales; /* 1: mixed f16 scales gradient operands of a node alone, as within the graph */
} runner;

typedef struct expectation expectation;

typedef struct {
    const adj_node *node;
    const expectation *base; /* expectation for the operands without NaN and infinities, whose
                                bounds are used; NULL: none */
    int exact;               /* operands are replaced by integers */
    int is_alone;            /* 1: operands may be rounded to the half type of mixed precision */
    int by_formula; /* 1: the op's formula, if any, gives the expected values; 0: the reference */
    const void *operand[MAX_IN]; /* values of node->in[k] ... */
    adj_dtype dtype[MAX_IN];     /* ... in these types */
} node_case;

/* Expected result, computed from operands rounded as in the configuration, and its bounds. */
struct expectation {
    adj_dtype dtype; /* type of `expected` */
    const void *expected;
    double *bound; /* for each element; NULL: no verdict */
    double *noise; /* by element: expected RMS error; NULL: no verdict */
    double stored; /* fraction of bound that is the rounding of the stored value, relative to
                      |expected| */
    int exact;     /* integers throughout: bits of the expected value, rounded once */
    int signs;     /* a zero has the expected one's sign */
    const char *overflows; /* by element: 1 if any value is accepted, since an inner value may
                              overflow; NULL: none */
    char origin[96];
};

/* result_error.c. Returns the error statistics of values against expected ones. */
adj_compare_error measure_error(adj_type type, const void *value, const expectation *x);
/* Returns the norm of value - expected, relative to the norm of expected. */
double norm_apart(adj_type type, const void *value, adj_dtype dtype, const void *expected);
/* True if the values of a half type are biased: truncated instead of rounded. */
int rounds_one_way(const adj_compare_error *e);
/* True if the RMS error of the whole result exceeds its limit. */
int is_noisy(const adj_compare_error *e);
/* True if an element is beyond its bound, or the whole result is wrong. */
int is_wrong(const adj_compare_error *e);

/* operand: in the reference's types. */
typedef struct {
    const adj_node *node;
    const expectation *base; /* as a node_case's */
    void *const *operand;
    adj_dtype dtype;                  /* type of the result under test */
    int exact;                        /* operands are integers */
    int is_representable;             /* or are what mixed precision holds */
    const adj_compare_config *config; /* configuration, for fast and mixed */
} bound_case;

/* Run the reference (node_expect, with its outcome) or configuration c. Memory belongs to p.
 * ADJ_ENOMEM, or ADJ_OK with the failure in o. */
adj_status node_expect(const runner *b, const node_case *n, const adj_compare_config *c, region *p,
                       expectation *e, outcome *o);
adj_status node_run(const runner *b, const node_case *n, const adj_compare_config *c, region *p,
                    outcome *o);

/* Fails the row for a data race if the result under c is right on one thread, or blames a pass that
 * changes it. */
adj_status blame_wrong_node(const runner *b, const node_case *n, const adj_compare_config *c,
                            const expectation *e, check_log *log, region *p, compare_row *row);

/* node_bound.c: returns the half type of mixed precision; ADJ_F32: not mixed. */
adj_dtype config_half(const adj_compare_config *c);
/* Returns the type that n's operands and result are rounded to; ADJ_F32: none. */
adj_dtype mixed_type(const adj_compare_config *c, const adj_node *n);
enum { LOSS_SCALE = 1024 }; /* default of mixed f16, as in adj_exec_opts */
/* Returns the factor by which mixed f16 multiplies operand k before rounding it. */
double mixed_scale(const runner *b, const adj_compare_config *c, const adj_node *n, int k);

/* Converts n values to another type; NULL when out of memory. */
void *convert(region *p, adj_dtype from, const void *v, adj_dtype to, int64_t n);

/* Computes bounds and noise of e for rounded operands. */
adj_status node_bound(const runner *b, const bound_case *n, region *p, expectation *e, outcome *o);
/* Runs n under c. operand: in the types of the configuration's node. */
adj_status run_node(const runner *b, const adj_node *n, void *const operand[],
                    const adj_compare_config *c, region *p, outcome *o);
/* Runs n on the reference. */
adj_status run_reference(const runner *b, const adj_node *n, void *const operand[], region *p,
                         outcome *o);
/* True if Winograd's algorithm may compute n: its sums have terms much larger than the products,
 * also of adjacent pixels, which cancel. */
int may_be_winograd(const adj_compare_config *c, const adj_node *n);
/* nonfinite.c: replaces elements by expected ones where a correct kernel of c's backend may give
 * another NaN or infinity. */
adj_status accept_nonfinite(const runner *b, const adj_compare_config *c, const node_case *n,
                            adj_type type, void *value, const expectation *e, region *p);
/* True if a NaN may replace an infinity in n's result, or the reverse. */
int may_be_any_kind(const adj_node *n);
/* True if the node is linear in every float operand. */
int is_linear(const adj_node *n);
/* Returns n's operands, given in the reference's types, in float64; NULL when out of memory. */
double **in_float64(const runner *b, const adj_node *n, void *const operand[], region *p);
/* Replaces the reference's result by that of the op's formula, and widens the bounds of a result of
 * that type by the difference. operand is NULL if there was no memory for it. */
adj_status take_formula(const adj_node *n, adj_dtype dtype, double *const operand[], region *p,
                        expectation *e);
/* Returns the operands as rounded by c, in float64; NULL when out of memory. */
double **real_operands(const runner *b, const node_case *n, const adj_compare_config *c, region *p);

/* group_values.c: the values of a group's operands: those of the plan, integers, special ones. */
typedef enum { OF_PLAN, ON_INTEGERS, ON_SPECIAL } group_values;
/* Sets operand, indexed by group->in, to values of that kind; floats in f64. value: the plan's
 * values by id. *is_case: 1 if the group has such values. */
adj_status group_operands(const adj_group *g, void *const value[], group_values kind, uint64_t seed,
                          region *p, void *operand[], int *is_case);

/* group_bound.c: a fused group alone, node after node under the reference, which has to be
 * in f64. */
typedef struct {
    const adj_group *group;
    int exact;
    void *const *operand; /* by group->in, as the group gets them: floats in f64 */
    const adj_compare_config *config;
} group_case;
/* Computes the group's expected results, indexed by group->out. o tells what failed, as for a node.
 */
adj_status group_expect(const runner *b, const group_case *g, region *p, expectation e[],
                        outcome *o);

/* Creates a trial without nodes, with room for n_leaf leaves and n_fetch fetches. The caller frees
 * its graph in every case. */
adj_status trial_open(const runner *b, const adj_compare_config *c, int n_leaf, int n_fetch,
                      region *p, trial *t);
/* Adds an input with these values. */
adj_node *trial_leaf(trial *t, adj_type type, const void *data);
/* Adds n over its operands' images, indexed by id, rebuilt for c; c NULL: unchanged. */
adj_node *trial_node(const trial *t, const adj_compare_config *c, const adj_node *n,
                     adj_node *const image[]);
/* Replaces n values by integers in the order of their values, scaled so that max becomes largest,
 * the same for all operands; max NULL: random integers from -largest to largest. */
void to_integers(adj_dtype dtype, void *v, int64_t n, const double *max, int largest, uint64_t seed,
                 uint64_t stream);
/* Runs a trial in this process or as the options say; the reference without passes. */
adj_status run_trial(const runner *b, const trial *t, region *p, outcome *o);

/* ---- a comparison being made ---- */

typedef struct {
    adj_comparison report;
    check_log log;
    int n_config, n_row;
    adj_compare_config *config;
    compare_result *result; /* by configuration */
    compare_row *row;
} comparison;

typedef struct {
    comparison *c;
    const adj_graph *g;
    const adj_compare_opts *opts;
    const adj_trial_opts *trials;
    runner runner;
    int n_root, n_node; /* roots; nodes compared */
    const adj_node **root;
    char *needed;            /* by id */
    int *index;              /* by id: index among the compared nodes; negative: not compared */
    void **leaf_value;       /* by id: leaves and fills, in their types; NULL for others */
    outcome *whole;          /* by configuration: every node compared is fetched */
    char *tainted;           /* by id and configuration: 1 if wrong or computed from wrong values */
    compare_row **group_row; /* by configuration: its fused groups' */
    int *n_group_row;
} comparing;

/* whole_graph.c: runs configuration k's whole graph; the reference's comes first. */
adj_status compare_whole(comparing *r, int k);
/* special.c: kinds of special values. Every seventh value is special, the others are multiples of
 * 1/2 (ties). WITH_INFINITIES: no value is so small that it counts as 0, as 0 * Inf is NaN. */
typedef enum { FINITE_ALONE, FINITE_BESIDE, WITH_INFINITIES } special_kind;
/* Replaces values of v, of type dtype, by special values of type `as` for operand k of n. */
void make_special(const adj_node *n, int k, adj_dtype as, special_kind kind, adj_dtype dtype,
                  void *v);
/* special.c: runs the row's node on special values; a failure fails a row that passed. */
adj_status compare_special(comparing *r, int k, compare_row *row);
/* nodes.c: returns n on its operands under configuration k. */
node_case case_of(const comparing *r, int k, const adj_node *n);
/* group.c: runs the fused groups of plain run t, whose outcome is o; fills group_row. image: by
 * id. */
adj_status compare_groups(comparing *r, int k, const trial *t, adj_node *const image[],
                          const outcome *o);
/* nodes.c: compares everything, after the leaf values are drawn. */
adj_status compare_all(comparing *r);
/* nodes.c: describes an error that the numbers of e do not show; "". */
const char *report_error(comparison *c, const adj_compare_error *e);
/* The beginning of the reason of the reference's row. */
#define REFERENCE_IS_WRONG "the reference is wrong, its formula in float64 says so"
/* nodes.c: describes the number of wrong elements and the worst one. where: the values, or "". */
const char *report_worst(comparison *c, const char *where, const adj_compare_error *e);
/* nodes.c: fill the row with its i-th result alone, and with its cost. */
void report_alone(comparison *c, const outcome *o, int i, const expectation *e, compare_row *row);
void report_cost(const outcome *o, const fetch_info *f, double reference_seconds, compare_row *row);
/* stray_writes.c: fails the row for o->plan_fault; a row that failed before keeps its reason,
 * unless the plan is at fault. */
void report_plan_fault(comparison *c, const outcome *o, compare_row *row);
/* Returns an empty row. */
compare_row report_row(const adj_node *n, const char *group, int config, adj_type type);
void report_failure(comparison *c, const outcome *o, adj_verdict *verdict, const char **reason);
/* Fails a row because its node could not run; blames the kernel, or the plan for memory. */
void report_row_failure(comparison *c, const outcome *o, compare_row *row);

#endif
