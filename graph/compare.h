/* compare.h - what the files of adj_compare share.
 *
 * The unit of work is a trial: a graph of its own, values for its leaves, and a configuration to
 * run it under; its outcome is the values of the fetched nodes and what each cost. The whole graph
 * is one trial per configuration, every node alone is another. A trial can be written as bytes and
 * run in another process. */
#ifndef ADJ_COMPARE_H
#define ADJ_COMPARE_H

#include "adjoint_check.h"
#include "graph.h"

typedef struct {
    const adj_config *config;
    const struct adj_backend *const *backends;
    const char *quarantine;
    adj_graph *g;
    int n_fetch, n_leaf;
    adj_node **fetch, **leaf;
    const void **data; /* of the leaves, in their types */
    int runs;          /* timed ones, after two that are compared; 0: one run alone */
    int threads;
    int bare; /* without canaries and times of steps: as a user would run it */
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
    char message[MESSAGE];
    double seconds;   /* of a whole run, median */
    uint64_t kernels; /* which kernels ran on which shapes and layouts, in any order: a hash */
    adj_exec_info exec;
    int n;
    fetch_info *info;
    void **value; /* by fetch, in its type */
    int n_plan;   /* nodes of the executor's graph */
    int *step_of; /* by their ids: the step that computes it; negative: none does */
    /* Of a bare trial that ran; NULL of others. */
    adj_graph *plan;        /* the executor's graph, to be freed by the caller before the trial's */
    const adj_node **image; /* by id of the trial's graph: its node of plan; NULL: dead */
} outcome;

/* compare_trial.c. The outcome's memory is p's but for plan. ADJ_ENOMEM, or ADJ_OK whatever the
 * outcome. */
adj_status trial_here(const trial *t, pool *p, outcome *o);

/* compare_wire.c. */
adj_status trial_elsewhere(const trial *t, const adj_compare_opts *opts, pool *p, outcome *o);

/* compare_config.c: adj_config_parse with backends of one's own. */
adj_status config_parse(const char *text, const adj_backend *const *backends, adj_config *out,
                        char *message, size_t size);

/* compare_rewrite.c: rules that rebuild a graph for a configuration. */
adj_node *config_rule(const adj_config *c, adj_graph *to, const adj_node *n, adj_node *const in[]);
adj_dtype config_dtype(const adj_config *c, adj_dtype dtype);

/* compare_judge.c: values against expected ones. */
typedef struct {
    adj_type type;     /* of the values */
    const void *value; /* what came out */
    adj_dtype expected_dtype;
    const void *expected; /* what should have */
    const double *bound;  /* for each element; NULL: no verdict */
    double resolve;       /* times bound: what is larger cannot come out as 0 */
    int exact;            /* bits of the expected value, rounded once */
} judged;
adj_error judge(const judged *j);
/* Are more than half of the values zero that cannot be? */
int mostly_lost(const adj_error *e);

typedef struct {
    double unit, accumulate; /* rounding units: of the result, of its sums */
    double floor;            /* below which numbers lose digits */
} precision;
precision precision_of(adj_dtype dtype);

/* compare_node.c: one node alone. */
typedef struct {
    const adj_compare_opts *opts;
    const adj_config *reference;
    int runs;
} bench;

typedef struct {
    const adj_node *node;
    int exact;                  /* operands are replaced by integers */
    const void *const *operand; /* values of node->in[k] ... */
    const adj_dtype *dtype;     /* ... in these types */
} node_case;

/* What the reference gives for the operands rounded as the configuration does it, and how far from
 * that the configuration may be. */
typedef struct {
    adj_dtype dtype; /* of expected */
    const void *expected;
    double *bound;
    double resolve; /* as in judged */
    int exact;      /* integers throughout: no rounding is allowed */
    char origin[96];
} expectation;

/* operand: in the reference's types. */
typedef struct {
    const adj_node *node;
    void *const *operand;
    adj_dtype dtype;          /* of the result that is to be judged */
    int exact;                /* operands are integers */
    const adj_config *config; /* how it is computed beyond that: fast, mixed */
} bound_case;

/* Memory is p's. Both return ADJ_ENOMEM, or ADJ_OK and tell in the outcome what failed: of the
 * reference, or of c. */
adj_status node_expect(const bench *b, const node_case *n, const adj_config *c, pool *p,
                       expectation *e, outcome *o);
adj_status node_run(const bench *b, const node_case *n, const adj_config *c, pool *p, outcome *o);

/* The second half of node_expect: the operands are rounded. */
adj_status node_bound(const bench *b, const bound_case *n, pool *p, expectation *e, outcome *o);
/* operand: in the types that c gives the node's operands. */
adj_status run_node(const bench *b, const adj_node *n, void *const operand[], const adj_config *c,
                    pool *p, outcome *o);
/* Linear in every float operand? */
int is_linear(const adj_node *n);

/* compare_group_bound.c: a fused group alone, node after node under the reference, which has to be
 * in f64. */
typedef struct {
    const adj_group *group;
    int exact;
    void *const *operand; /* by group->in, as the group gets them: floats in f64 */
    const adj_config *config;
} group_case;
/* What leaves the group, by group->out. kinks: elements inside whose side of a kink rounding
 * decides. o tells what failed, as for a node. */
adj_status group_expect(const bench *b, const group_case *g, pool *p, expectation e[],
                        int64_t *kinks, outcome *o);

/* Runs a trial here, or where the options say. */
adj_status run_trial(const bench *b, const trial *t, pool *p, outcome *o);

#endif
