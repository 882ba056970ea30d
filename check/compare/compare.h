/* compare.h - what the files of adj_compare share: trials, what is expected of a node or a fused
 * group, and what is known while a comparison is being made.
 *
 * The unit of work is a trial: a graph of its own, values for its leaves, and a configuration to
 * run it under; its outcome is the values of the fetched nodes and what each cost. The whole graph
 * is one trial per configuration, every node alone is another. A trial can be written as bytes and
 * run in another process. */
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
    const void **data; /* of the leaves, in their types */
    int runs;          /* timed ones, after one on other values and one that is kept; 0: the kept
                          one alone */
    int threads;
    int aliases;                       /* every claim to work in place is tried */
    const adj_exec_internal *internal; /* its before_kernel and user; NULL: none */
    const adj_updates *updates;        /* of g: a bare trial plans them, too; NULL: none */
    int as_built; /* no passes, nothing fused, memory of its own for each value */
    int bare;     /* without canaries and times of steps: as a user would run it */
} trial;

typedef struct {
    int step;             /* of the plan; negative: none computes it */
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
    adj_blame fault_of;   /* kernel or plan: whose fault plan_fault is */
    char plan_fault[400]; /* which reorder is wrong; of a bare trial or one with aliases: which
                             kernel writes over another value or claims falsely to work in place, or
                             that a step was left out; of a bare trial, rather: which pass changes a
                             result, or what is wrong after steps with updates; "": none */
    double seconds;       /* of a whole run, median */
    uint64_t kernels;     /* which kernels ran on which shapes and layouts, in any order: a hash */
    adj_exec_info exec;
    int reorders; /* exec_details.reorders */
    int n;
    fetch_info *info;
    void **value; /* by fetch, in its type */
    int n_plan;   /* nodes of the executor's graph */
    int *step_of; /* by their ids: the step that computes it; negative: none does */
    /* For a bare trial that ran; else NULL. */
    adj_graph *plan;        /* the executor's graph, to be freed by the caller before the trial's */
    const adj_node **image; /* by id of the trial's graph: its node of plan; NULL: dead */
} outcome;

/* trial.c. The sentence of what the comparison called, without that function's name ("adj_run: "):
 * its reader called another. */
void outcome_message(outcome *o, const char *sentence);
/* The outcome's memory is p's but for plan. ADJ_ENOMEM, or ADJ_OK whatever the
 * outcome. */
adj_status trial_here(const trial *t, region *p, outcome *o);

/* passes.c: the results of a trial's graph after each pass. */
typedef struct {
    const trial *trial;
    region region;  /* of before */
    outcome before; /* the results of the last graph seen */
    int is_begun;
    adj_status status;
    char sentence[200]; /* what the first pass that changes a result does; "" */
} watch;
/* Fetches nodes of g, which is run in f64 on naive, node by node as it stands, with the values of
 * t's leaves; image: by id of t's graph, its nodes of g. Returns o->status, with o->message. */
adj_status run_in_f64(const trial *t, const adj_graph *g, const adj_node *const image[],
                      int n_fetch, const adj_node *const fetch[], region *p, outcome *o);
/* Callback for adj_exec_internal.after_pass, and for the graph as it was built; user: the watch. */
void watch_graph(void *user, const char *pass, const adj_graph *g, adj_node *const image[]);
/* memory.c. Writes `conv2d "conv1"`, or `conv2d` without a name; "operand 0 (input)". */
void name_node(const adj_node *n, char *text, size_t size);
void name_operand(const adj_node *n, int k, char *text, size_t size);
/* Requires: a completed run, and the leaves given again. Runs each step once more, with the hash of
 * each value before and after, and tries its claims to work in place. Sets o->plan_fault. */
adj_status find_memory_fault(adj_exec *e, outcome *o);
/* updates.c. plain: the trial's executor, which has run. Sets o->plan_fault if a leaf has a wrong
 * value after steps with t->updates; on failure, o->message. opts: of plain. */
adj_status compare_updates(const trial *t, adj_exec *plain, const adj_exec_opts *opts, region *p,
                           outcome *o);
/* wire.c. */
adj_status trial_elsewhere(const trial *t, const adj_trial_opts *opts, region *p, outcome *o);

/* "naive:f64" */
extern const adj_compare_config naive_f64;

/* Rules that rebuild a graph for a configuration. */
adj_node *config_rule(const adj_compare_config *c, adj_graph *to, const adj_node *n,
                      adj_node *const in[]);
adj_dtype config_dtype(const adj_compare_config *c, adj_dtype dtype);

/* node.c: one node alone. */
typedef struct {
    const adj_compare_opts *opts;
    const adj_trial_opts *trials; /* NULL: every trial runs here */
    const adj_compare_config *reference;
    int runs;
    int scales; /* mixed f16 scales the gradients that a node alone reads, as within the graph */
} runner;

typedef struct expectation expectation;

typedef struct {
    const adj_node *node;
    const expectation *base; /* of operands that differ from these where one has no number: the
                                bounds are taken from there; NULL */
    int exact;               /* operands are replaced by integers */
    int is_alone;            /* they may be rounded to what mixed precision holds */
    int by_formula; /* the op's formula says what is expected, where it has one; else the reference
                       does */
    const void *operand[MAX_IN]; /* values of node->in[k] ... */
    adj_dtype dtype[MAX_IN];     /* ... in these types */
} node_case;

/* The reference's result for the operands rounded as the configuration does it, and how far from it
 * the configuration may be. */
struct expectation {
    adj_dtype dtype; /* of expected */
    const void *expected;
    double *bound; /* for each element; NULL: no verdict */
    double *noise; /* for each element, the RMS error that rounding gives; NULL: no verdict */
    double stored; /* of bound, this times the expected value is the rounding of what is stored */
    int exact;     /* integers throughout: bits of the expected value, rounded once */
    int signs;     /* a zero has the expected one's sign */
    const char *overflows; /* for each element, true if anything is right, as a value inside the
                              group may leave its type's range; NULL: nowhere */
    char origin[96];
};

/* judge.c. Returns one ulp of v in the type; subnormal numbers share the smallest one. */
double ulp_of(adj_dtype dtype, double v);
/* Values of the type against expected ones. */
adj_compare_error judge(adj_type type, const void *value, const expectation *x);
/* Returns how far values are from expected ones of a type, in units of the norm of these. */
double norm_apart(adj_type type, const void *value, adj_dtype dtype, const void *expected);
/* True if the values of a half type err to the same side. */
int rounds_one_way(const adj_compare_error *e);
/* True if the error of the whole result is above what rounding gives. */
int is_noisy(const adj_compare_error *e);
/* True if an element is beyond its bound, or the whole result is wrong. */
int is_wrong(const adj_compare_error *e);

/* operand: in the reference's types. */
typedef struct {
    const adj_node *node;
    const expectation *base; /* as a node_case's */
    void *const *operand;
    adj_dtype dtype;                  /* of the result under test */
    int exact;                        /* operands are integers */
    int is_representable;             /* or are what mixed precision holds */
    const adj_compare_config *config; /* how it is computed beyond that: fast, mixed */
} bound_case;

/* Memory is p's. Both return ADJ_ENOMEM, or ADJ_OK and tell in the outcome what failed: of the
 * reference, or of c. node_expect's outcome is what the reference itself gives. */
adj_status node_expect(const runner *b, const node_case *n, const adj_compare_config *c, region *p,
                       expectation *e, outcome *o);
adj_status node_run(const runner *b, const node_case *n, const adj_compare_config *c, region *p,
                    outcome *o);

/* Fails the row for a race if what is wrong under c is right on one thread. */
adj_status blame_race(const runner *b, const node_case *n, const adj_compare_config *c,
                      const expectation *e, region *p, compare_row *row);

/* node_bound.c. The half type of its mixed precision; ADJ_F32: it has none. */
adj_dtype config_half(const adj_compare_config *c);
/* The type that the result, f32 again, and operands are rounded to; ADJ_F32: none is. */
adj_dtype mixed_type(const adj_compare_config *c, const adj_node *n);
enum { LOSS_SCALE = 1024 }; /* of mixed f16: adj_exec_opts' default */
/* By what mixed f16 multiplies n's operand k before it rounds it: a gradient, if the runner scales
 * them; else 1. */
double mixed_scale(const runner *b, const adj_compare_config *c, const adj_node *n, int k);

/* v, n values, in another type; NULL: no memory. */
void *convert(region *p, adj_dtype from, const void *v, adj_dtype to, int64_t n);

/* The second half of node_expect; the operands are rounded. */
adj_status node_bound(const runner *b, const bound_case *n, region *p, expectation *e, outcome *o);
/* operand: in the types that c gives the node's operands. */
adj_status run_node(const runner *b, const adj_node *n, void *const operand[],
                    const adj_compare_config *c, region *p, outcome *o);
/* The reference's own run. */
adj_status run_reference(const runner *b, const adj_node *n, void *const operand[], region *p,
                         outcome *o);
/* True if Winograd's algorithm may compute it. A result is then a sum of terms that are far larger
 * than its own products, those of its neighbors too, and cancel. */
int may_be_winograd(const adj_compare_config *c, const adj_node *n);
/* spread.c. A NaN or an infinity in operands of n: where a sound kernel of c's backend may have one
 * besides, replaces value by what is expected. ADJ_ENOMEM, or ADJ_OK. */
adj_status forgive_spread(const runner *b, const adj_compare_config *c, const node_case *n,
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
/* The operands as c sees them, in float64; NULL: no memory. */
double **real_operands(const runner *b, const node_case *n, const adj_compare_config *c, region *p);

/* group_values.c: the values of a group's operands: those of the plan, integers, special ones. */
typedef enum { OF_PLAN, ON_INTEGERS, ON_SPECIAL } group_values;
/* Sets operand, by group->in, to values as the operands' types hold them; floats in f64. value: by
 * id, those of the plan, in these types. Sets *is_case to whether the group has such values. */
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

/* A trial without nodes yet, but with room for so many leaves and fetches; its graph is to be freed
 * in every case. ADJ_ENOMEM, or ADJ_OK. */
adj_status trial_open(const runner *b, const adj_compare_config *c, int n_leaf, int n_fetch,
                      region *p, trial *t);
/* One more input; data: its values. */
adj_node *trial_leaf(trial *t, adj_type type, const void *data);
/* n over its operands' images, by id, as c wants it; c == NULL: as it is. */
adj_node *trial_node(const trial *t, const adj_compare_config *c, const adj_node *n,
                     adj_node *const image[]);
/* n values become integers that keep their order: the same map for all operands of that largest
 * magnitude, so that a maximum stays one. max == NULL: any of -largest to largest. */
void to_integers(adj_dtype dtype, void *v, int64_t n, const double *max, int largest, uint64_t seed,
                 uint64_t stream);
/* Runs a trial here, or where the options say; the reference's as it was built, so that no fault of
 * passes or plans is in it. */
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
    int n_root, n_node; /* n_node: that are compared */
    const adj_node **root;
    char *needed;            /* by id */
    int *index;              /* by id: place among the nodes compared, or negative */
    void **leaf_value;       /* by id: leaves and fills, in their types; NULL for others */
    outcome *whole;          /* by configuration: every node compared is fetched */
    char *tainted;           /* by id and configuration: wrong, or computed from wrong values */
    compare_row **group_row; /* by configuration: its fused groups' */
    int *n_group_row;
} comparing;

/* whole.c: runs configuration k's whole graph; the reference's comes first. */
adj_status compare_whole(comparing *r, int k);
/* special.c: values of an operand. They are rounded to halves, so that many are equal, and every
 * seventh is a special value, of the signs that the operand has. Beside infinities no other value
 * is so small that it counts as 0, as 0 times infinity is NaN. */
typedef enum { FINITE_ALONE, FINITE_BESIDE, WITH_INFINITIES } special_kind;
/* Replaces values of v, operand k of n, by special ones. dtype: type of v; as: of the operand. */
void make_special(const adj_node *n, int k, adj_dtype as, special_kind kind, adj_dtype dtype,
                  void *v);
/* special.c: the row's node alone on values that are never drawn; what is wrong there is the row's
 * verdict, if it has no other fault. ADJ_ENOMEM, or ADJ_OK. */
adj_status compare_special(comparing *r, int k, compare_row *row);
/* nodes.c: n on its operands' values under configuration k. */
node_case case_of(const comparing *r, int k, const adj_node *n);
/* group.c: after configuration k's plain run t, whose outcome is o; image: by id. Fills
 * group_row. */
adj_status compare_groups(comparing *r, int k, const trial *t, adj_node *const image[],
                          const outcome *o);
/* nodes.c: everything, once the inputs are drawn. */
adj_status compare_all(comparing *r);
/* nodes.c: a sentence for what e's numbers do not show at once; "". */
const char *report_error(comparison *c, const adj_compare_error *e);
/* The beginning of the reason of the reference's row. */
#define REFERENCE_IS_WRONG "the reference is wrong, its formula in float64 says so"
/* nodes.c: how many elements are wrong, and the worst; where: on which values, or "". */
const char *report_worst(comparison *c, const char *where, const adj_compare_error *e);
/* nodes.c: what the row of a node or group alone says of its i-th result, and of its cost. */
void report_alone(comparison *c, const outcome *o, int i, const expectation *e, compare_row *row);
void report_cost(const outcome *o, const fetch_info *f, double reference_seconds, compare_row *row);
/* memory.c: fails the row of a node or a group alone for o->plan_fault. A row that has failed for
 * another reason keeps it, unless the fault is the plan's. */
void report_plan_fault(comparison *c, const outcome *o, compare_row *row);
/* A row that nothing is known of yet. */
compare_row report_row(const adj_node *n, const char *group, int config, adj_type type);
void report_failure(comparison *c, const outcome *o, adj_verdict *verdict, const char **reason);
/* Fails a row by its node alone. The kernel is to blame, or the plan if it cannot place values. */
void report_row_failure(comparison *c, const outcome *o, compare_row *row);

#endif
