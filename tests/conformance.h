/* conformance.h - one case of tests/conformance: from JSON to a graph, its results, a verdict.
 *
 * The cases and their fields are described in that folder's README.md. A case is passed on to the
 * public API unchanged, so that the library itself refuses invalid calls. A case with an unknown
 * key fails, as that key would not be tested. */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include <jansson.h>

#include "adjoint.h"

enum { CASE_TENSORS = 8, CASE_RESULTS = 8, CASE_READ = 32, CASE_TEXT = 600 };

typedef struct {
    adj_node *node;
    adj_node *other;    /* alternative that is accepted, too; NULL: none */
    const json_t *want; /* {"shape", "data"} */
    const char *label;
} case_result;

/* An op's second result. */
typedef struct {
    adj_node *node;
    const char *expected, *incoming; /* keys: what it must be, and the gradient arriving at it */
    /* The tensor that TensorFlow's gradient rule sends nothing to from here, though it should. */
    const char *forgets;
} second_result;

typedef struct {
    const json_t *json;
    const char *id, *op;
    adj_graph *g;
    int n_tensor;
    adj_node *tensor[CASE_TENSORS];
    const char *tensor_name[CASE_TENSORS];
    const json_t *tensor_data[CASE_TENSORS];
    second_result second; /* expected NULL: there is none */
    int n_result;
    case_result result[CASE_RESULTS];
    int n_read; /* "inputs.filter", "attrs.padding": keys in use */
    char read[CASE_READ][48];
    adj_status refused;     /* by a call that has no graph, by the graph, or by the executor */
    int malformed;          /* the case itself cannot be read */
    char text[CASE_TEXT];   /* why */
    int steps, naive_steps; /* steps of the plan that ran */
} conformance_case;

typedef struct {
    int passed;
    int steps, naive_steps;
    char text[CASE_TEXT]; /* error, or the library's message for a refused call */
} case_verdict;

/* The case's inputs, by name: a tensor becomes a graph input, a list of sizes a shape. */
adj_node *case_tensor(conformance_case *c, const char *name);
adj_shape case_sizes(conformance_case *c, const char *name);
/* The attributes; 0: refused or malformed. */
int case_conv(conformance_case *c, adj_conv *a);
int case_pool(conformance_case *c, adj_pool *a);
int case_format(conformance_case *c, adj_format *format);
void case_add_result(conformance_case *c, adj_node *node, const json_t *want, const char *label);
int case_malformed(conformance_case *c, const char *problem, const char *name); /* returns 0 */

/* The value of a key of "inputs" or "attrs", which is known from then on; conformance_ops.c. */
const json_t *case_read(conformance_case *c, const char *object, const char *key);
/* After the case was built: every key in it must be known. */
void case_check_keys(conformance_case *c);

/* Builds the op's node and notes its results; conformance_ops.c. */
void case_build(conformance_case *c);

/* how: the executor's backend and tuning. */
case_verdict case_run(const json_t *json, const adj_exec_opts *how);

#endif
