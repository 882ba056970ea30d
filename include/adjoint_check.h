/* adjoint_check.h - gradient checks against finite differences and the adjoint identity, and
 * comparisons of backends, element types, layouts and numbers of threads.
 *
 * A report is a struct to read that describes each failure in words. Its arrays and strings belong
 * to it; strings are never NULL, and "" where nothing applies. Only functions that take a FILE
 * print. */
#ifndef ADJOINT_CHECK_H
#define ADJOINT_CHECK_H

#include "adjoint.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- checking gradients ----
 *
 * adj_gradcheck checks every differentiable node that a value depends on by itself: with new inputs
 * of its operands' types and random values it computes the product v' J u in three ways:
 *   numeric     finite differences of the forward value, in float64 on the reference
 *   reference   the gradient graph in float64 on the reference
 *   analytic    the gradient graph in the node's own types on the backend under test
 * Comparing numeric with reference tests the gradient rule; comparing analytic with reference,
 * element by element, tests the kernels. The reference's values of intermediate nodes are compared
 * with the formulas of their ops, so that each failure names its cause: the rule, a kernel of the
 * backend under test, or a kernel of the reference.
 *
 * Where a gradient rule depends on the node that computes an operand, that node is checked
 * together with it. adj_gradcheck also compares the gradient of each float leaf with finite
 * differences of the whole graph's result along random directions, in float64 on naive (rows "end
 * to end").
 *
 * The reference is the backend naive. An op of the caller's own is computed by the caller's
 * backends in float64, or in float32 if they do not support float64, which the
 * row's reason then says. A node that no backend computes is ADJ_GRADCHECK_NOT_CHECKED.
 *
 * The tolerance of a rule is 2 U and what the reference rounds. U is the error of the differences
 * D(h): |D(h) - D(h/2)| plus their rounding error. In float64 h is 2^-17.3, in float32 2^-7.7,
 * times max |x| where that is above 1. In float32 the reference rounds 1e-4 S: S is the largest of
 * |dx| and |dy| for an element (at most 64), the sum of |dx v| along a direction v. Where f is
 * smooth and |f| at most |dx|, this finds an error of 0.1 % in the rule of an op that supports only
 * float32.
 *
 * Optimizer steps (sgd_step, momentum, adam_step, ema, next_step) have no gradient. They are
 * compared with their formulas in float64, five steps each, at counters from 1 to 1,000,000 and
 * with learning rates of 0, of both signs and of different sizes. */

/* Method of a gradient check. */
typedef enum {
    ADJ_GRADCHECK_AUTO, /* ADJOINT for nodes that are linear and exact on integers; else ELEMENTWISE
                           for small nodes; else DIRECTIONAL */
    ADJ_GRADCHECK_ADJOINT, /* <dy, f(x + v) - f(x)> == <dx, v> on integers, compared bit by bit */
    ADJ_GRADCHECK_DIRECTIONAL, /* the same identity for random real v, by central differences */
    ADJ_GRADCHECK_ELEMENTWISE, /* every element of the Jacobian, by central differences */
    ADJ_GRADCHECK_RICHARDSON /* DIRECTIONAL with Richardson extrapolation: the step is halved until
                                the estimate converges */
} adj_gradcheck_method;

/* Result of a check. */
typedef enum {
    ADJ_GRADCHECK_PASS,         /* within the tolerance */
    ADJ_GRADCHECK_FAIL,         /* beyond the tolerance */
    ADJ_GRADCHECK_INCONCLUSIVE, /* more than 5 % of the elements are too close to points where the
                                   op is not differentiable, or the differences do not settle */
    ADJ_GRADCHECK_SKIPPED,    /* nothing to check: an integer operand, no gradient by definition */
    ADJ_GRADCHECK_NOT_CHECKED /* no backend computes the node, or checking failed before */
} adj_gradcheck_result;

/* Cause of a failed row. */
typedef enum {
    ADJ_FAULT_NONE,      /* none: the row passed */
    ADJ_FAULT_RULE,      /* the gradient rule */
    ADJ_FAULT_KERNEL,    /* a kernel of the backend under test */
    ADJ_FAULT_REFERENCE, /* a kernel of the backend naive, which differs from the op's formula */
    ADJ_FAULT_PLAN,      /* the executor: planning failed, a reorder is wrong, or a pass changed the
                            result */
    ADJ_FAULT_GRAPH      /* the graph: sums made by adj_grad, or different nodes that were merged */
} adj_gradcheck_fault;

/* Options of a gradient check. All zero is the default. */
typedef struct {
    adj_gradcheck_method method; /* default: ADJ_GRADCHECK_AUTO */
    int order;                   /* 1: the gradient; 2: also the gradient of (x, dy) -> dx; 0: 1 */
    int draws;                   /* number of sets of random values for each node; 0: 3 */
    /* Replace the derived tolerance by |a - b| <= atol + rtol |b|; both 0: derived. */
    double rtol, atol;
    /* Executors under test: backend, backends, threads, debug, and seed, which is that of all
     * random values. adj_gradcheck also checks the optimizer steps among the values that updates
     * assign. Other fields must be 0 or NULL. */
    adj_exec_opts exec;
} adj_gradcheck_opts;

/* Result for one node with respect to one operand. adj_gradcheck_print shows more of it. */
typedef struct {
    int node;                    /* id in the user's graph */
    const char *name;            /* label of the node, or its number as "%12" */
    const char *op;              /* "conv2d" */
    const char *wrt;             /* "input", "filter", ... */
    int order;                   /* 1: the gradient; 2: the gradient's gradient */
    adj_gradcheck_result result; /* verdict of the row */
    adj_gradcheck_fault fault;   /* cause of a failure */
    const char *blame;           /* the same in a sentence */
    const char *reason; /* why the row is skipped, not checked or inconclusive; or a remark on a row
                           that passed: another implementation ran than adj_exec_debug.impl names,
                           or differences were taken in float32 */
    const char *index;  /* the element with the largest ratio of error to tolerance, such as
                           "[h=2,w=0,c=5]" */
    double analytic, numeric, tolerance; /* values at that element */
} adj_gradcheck_row;

/* Report of adj_gradcheck. */
typedef struct {
    const char *message; /* why checking failed */
    /* FAIL if any row failed; else NOT_CHECKED if any row was not checked or checking failed; else
     * INCONCLUSIVE if any row is, if there was nothing to check, or if no implementation ran that
     * adj_exec_debug.impl names; else PASS. */
    adj_gradcheck_result verdict;
    int n_row;                                   /* number of rows */
    const adj_gradcheck_row *row;                /* the rows */
    int n_result[ADJ_GRADCHECK_NOT_CHECKED + 1]; /* number of rows by result */
} adj_gradcheck_report;

/* Checks all nodes that y depends on, equal nodes once. The graph does not change. A status other
 * than ADJ_OK means that checking itself failed (message), not that a gradient is wrong. *out is
 * never NULL, and must be freed by adj_gradcheck_free in every case, before or after the graph but
 * not after its allocator. */
ADJ_API adj_status adj_gradcheck(adj_node *y, const adj_gradcheck_opts *opts,
                                 const adj_gradcheck_report **out);
/* Checks n nodes of one graph, each by itself; the report has their rows in this order. */
ADJ_API adj_status adj_gradcheck_nodes(int n, adj_node *const node[],
                                       const adj_gradcheck_opts *opts,
                                       const adj_gradcheck_report **out);
/* Frees the report with its rows and strings. */
ADJ_API void adj_gradcheck_free(const adj_gradcheck_report *r);
/* Prints the table of rows, details of each failure, and a summary. */
ADJ_API void adj_gradcheck_print(FILE *f, const adj_gradcheck_report *r);
ADJ_API const char *adj_gradcheck_result_name(adj_gradcheck_result result); /* "PASS" */
/* Returns the next variant of n, or NULL past the last: n with another value of one attribute over
 * the same operands. Values: 0, 1, negative and large numbers, both ends of the schema's range,
 * every word, set of axes and permutation, except those that the op refuses. Checking variants
 * beside n finds bugs that common values hide. Set *next to 0 before the first call; each call
 * advances it. */
ADJ_API adj_node *adj_node_variant(adj_node *n, int *next);

/* ---- comparing configurations ---- */

/* Value of a leaf for adj_compare. */
typedef struct {
    const adj_node *leaf; /* an input, param or state */
    const void *data;     /* row-major, of the leaf's type */
} adj_leaf_value;

/* Options of adj_compare. exec.fetch or exec.updates is required; all zero is the default of the
 * rest. */
typedef struct {
    /* The nodes in fetch, the values that updates assign, and all that they depend on are compared.
     * seed is that of random values. threads and backends are those of all executors; the reference
     * uses naive, and for the caller's ops the backends of the list that are not built in. Other
     * fields must be 0 or NULL, as the configurations have their own. */
    adj_exec_opts exec;
    /* Configurations, of which the first is the reference. None: naive:f64, naive, onednn. */
    int n_config; /* number of configurations */
    /* Examples: "naive:f64", "onednn", "onednn:bf16", "onednn:impl=gemm", "onednn:threads=1",
     * "onednn:nchw", "onednn:fast", "onednn:unfused", "onednn:mixed", "onednn:mixed:f16",
     * "onednn:tune", and combinations such as "onednn:bf16:threads=1". */
    const char *const *config;
    /* Values of leaves. Leaves not listed are random: inputs from N(0, 1), parameters from their
     * initializer plus small noise (a bias of 0 would hide a missing bias), i32 inputs 0 or 1. */
    int n_value;                 /* number of values */
    const adj_leaf_value *value; /* the values, read during the call */
    int exact; /* 1: integer data; where all sums are exact, results must be bit-identical */
    int runs;  /* timed runs of each node and configuration, fewer for slow nodes; 0: 5 */
} adj_compare_opts;

/* Verdict of a comparison. */
typedef enum {
    ADJ_VERDICT_PASS,  /* every element is within its bound */
    ADJ_VERDICT_FAIL,  /* an element exceeds its bound, or another check of the row failed */
    ADJ_VERDICT_CRASH, /* the process gave no response; reason has the cause */
    ADJ_VERDICT_ERROR  /* the configuration could not run; reason has the cause */
} adj_verdict;

/* Cause of a failure. */
typedef enum {
    ADJ_BLAME_NONE,   /* none: the row passed, or the cause is unknown */
    ADJ_BLAME_KERNEL, /* the kernel: wrong by itself, on the reference's operands or on its own
                         operands in the graph */
    ADJ_BLAME_PLAN, /* the plan: right by itself on both, wrong within the graph: a reorder, memory,
                       another implementation */
    ADJ_BLAME_UPSTREAM, /* only its operands are wrong */
    ADJ_BLAME_REFERENCE /* the reference: the op's formula in float64 contradicts it */
} adj_blame;

/* Result for one node, or one result of a group of nodes that one kernel computes, in one
 * configuration. Strings are never NULL. */
typedef struct {
    const adj_node *node; /* node of the compared graph; of a group, the result or the node that
                             stands for it */
    const char *op;       /* "conv2d", or "conv2d+bias_add" for a group */
    int config;           /* number of the configuration: 1, 2, ...; 0 is the reference */
    adj_verdict verdict;  /* the worst verdict of all checks */
    adj_blame blame;      /* cause of a failure */
    const char *reason;   /* a sentence; "" */
    /* The comparison with the larger error: the node by itself, or within the graph, on the same
     * operands as the reference. */
    int64_t at;                  /* index of the worst element; -1: no element differs */
    double got, expected, bound; /* values at that element, and its bound */
    double worst;                /* its |error| / bound; above 1: wrong. NAN: not measured */
} adj_compare_row;

/* Result of a run of the whole graph in one configuration. */
typedef struct {
    const char *name;    /* the configuration's text */
    adj_verdict verdict; /* the worst verdict of all checks */
    const char *reason;  /* a sentence; "" */
    double ms;           /* median time */
} adj_compare_config_result;

/* Report of adj_compare. */
typedef struct {
    const char *message;                     /* why comparing failed; "" */
    int n_config;                            /* number of configurations, the reference included */
    const adj_compare_config_result *config; /* their results, the reference's first */
    int n_row;                               /* number of rows */
    /* Rows by node, one for each configuration (for the reference only if it is wrong); then, by
     * configuration, those of fused groups in the order of their first nodes. */
    const adj_compare_row *row;
    int n_failed;       /* number of rows that are not ADJ_VERDICT_PASS, plus 1 if comparing itself
                           failed, such as when no backend computes an op for the reference */
    int n_whole_failed; /* number of configurations whose whole run is not ADJ_VERDICT_PASS */
} adj_comparison;

/* Compares the nodes of a graph under several configurations. A difference is not a failure of the
 * call. *out is never NULL, holds the message even on failure, and must be freed by
 * adj_comparison_free in every case, before the graph. */
ADJ_API adj_status adj_compare(adj_graph *g, const adj_compare_opts *opts,
                               const adj_comparison **out);
/* Frees the comparison with its rows and strings. */
ADJ_API void adj_comparison_free(const adj_comparison *c);
/* Prints a line for each whole run and each row, details of each failure, and a summary. */
ADJ_API void adj_comparison_print(FILE *f, const adj_comparison *c);
ADJ_API const char *adj_verdict_name(adj_verdict v); /* "pass", "FAIL", ... */
ADJ_API const char *adj_blame_name(adj_blame b);     /* "", "kernel", ... */

#ifdef __cplusplus
}
#endif
#endif
