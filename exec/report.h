/* report.h - figures of a plan for reports: its steps, the groups that they compute, the versions
 * of the backends. Exported for tests and libadjoint_io. */
#ifndef ADJ_EXEC_REPORT_H
#define ADJ_EXEC_REPORT_H

#include "adjoint_ext.h"

/* Writes a backend's version and the instruction set that it uses on this machine, such as "2.6.3
 * avx512_core", to text; "* *" if it reports neither. ADJ_EARG for an unknown backend. */
ADJ_API adj_status adj_backend_describe(const char *backend, char *text, size_t size);

/* Description of a step of the plan; strings live as long as the executor. */
typedef struct {
    const char *op;   /* op of the first node that the step computes; else "reorder" or "copy" */
    const char *name; /* name of the last named node that the step computes; "" if there is none */
    /* Names of backend and implementation; "" for copies. */
    const char *backend, *impl;
    const char *why; /* why a preferred backend does not compute the step; NULL: it does */
    int n_node;      /* number of nodes that the step computes */
    adj_node *node;  /* the last of these nodes in the user's graph; NULL if it is not there */
    double flop;     /* nominal multiplications and additions */
    size_t bytes;    /* bytes of operands and results, without scratch */
    double seconds;  /* time of the step in the last run; 0 unless profiled, or if the step did not
                        run */
    double tuned_seconds; /* seconds of the step when tuning chose its kernel; 0: not tuned */
    adj_dtype dtype;      /* element type of its last node, which may differ from that of `node` */
} adj_step_info;
/* Returns the number of steps; 0 without a plan. */
ADJ_API int adj_exec_step_count(const adj_exec *e);
/* Returns the i-th step in execution order; all "" and 0 when out of range. */
ADJ_API adj_step_info adj_exec_step_at(const adj_exec *e, int i);
/* Returns the group of nodes that the i-th step computes, or NULL if the step is a reorder or a
 * copy, or i is out of range. The nodes belong to the executor's copy of the graph: images are
 * NHWC, types may differ from the caller's, and folded nodes are gone. Valid as long as the
 * executor. */
ADJ_API const adj_group *adj_exec_step_group(const adj_exec *e, int i);
/* Figures of a plan beside adj_exec_info. */
typedef struct {
    size_t live_bytes; /* the largest sum of buffers alive at one step: the arena's lower bound */
    size_t read_bytes, written_bytes; /* memory traffic of one run: operands and results, counted
                                         once for each step; without scratch and without steps that
                                         run only when a parameter has changed */
    int reorders;                     /* steps that change a layout */
    int recomputed;                   /* nodes computed again for the gradient */
    int timed;                        /* candidates that tuning has measured */
    double timed_seconds;             /* seconds of these measurements */
    int cached;                       /* steps whose kernel was taken from the tune file */
} exec_details;
/* Returns the figures of the plan; all zero if there is no plan. */
ADJ_API exec_details adj_exec_details(const adj_exec *e);
/* Returns the name of the layout of an operand or result of the i-th step's group ("plain":
 * row-major), or "" if value is neither. Valid as long as the executor. */
ADJ_API const char *adj_exec_step_layout(const adj_exec *e, int i, const adj_node *value);
/* Returns the executor's i-th backend and sets *opened to what its kernels are prepared with; NULL
 * past the last, or if it cannot be opened. The executor closes it. */
ADJ_API const adj_backend *adj_exec_backend_at(adj_exec *e, int i, void **opened);

#endif
