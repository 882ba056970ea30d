/* shared.h - helpers of both checkers: rounding to a type, linearity, backends of the reference,
 * the error log, and messages about implementations. */
#ifndef ADJ_CHECK_SHARED_H
#define ADJ_CHECK_SHARED_H

#include "graph/graph.h"

/* Sentences of a report, and the first error of the checker itself. */
typedef struct {
    region region;
    adj_status status; /* the first error */
    char message[ADJ_MESSAGE];
    const char *name; /* name of the checker, for messages */
} check_log;

/* Keeps the first error. Returns the status of that. */
adj_status log_fail(check_log *l, adj_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns ADJ_ENOMEM, or the status of an earlier error. */
adj_status log_no_memory(check_log *l);
/* Returns a string that lives as long as the log; "", with the error kept, when out of memory. */
const char *log_text(check_log *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Returns the largest |v[i]| except NaN; 0 if n is 0. */
double max_magnitude(const double *v, int64_t n);
/* Largest finite magnitude of a node's operand k that has this type; 0 for integers. */
double max_of_operand(const adj_node *n, int k, adj_dtype dtype, const void *v);
/* Returns one ulp of v in the type; subnormal numbers have the smallest one. */
double ulp_of(adj_dtype dtype, double v);
/* Returns v rounded to the type. */
double rounded(adj_dtype dtype, double v);

/* Sets *value to the k-th of n's attributes that are real numbers; returns 0 if there is none. */
int real_attr(const adj_node *n, int64_t k, double *value);
/* Returns the i-th special value: kinks, zeros of both signs, +-tiny, n's real attributes. */
double special_value(const adj_node *n, int64_t i, double tiny);

/* True if operand k is computed from n's other operands; never for an elementwise node. */
int is_inner_operand(const adj_node *n, int k);

static inline int is_linear_in(const adj_node *n, int k)
{
    return has_operand_bit(n->op->linear_in, k);
}

/* gradcheck/closure.c: True if a node before n that is needed is the same (adj_gradcheck_same), and
 * its producers down to that depth are; need: by id. */
int is_repeated(const adj_graph *g, const char *need, const adj_node *n, int depth);

/* A NULL-ended list for an executor with backend "naive": the caller's own backends, then naive.
 * The executor asks these only for the caller's own ops (exec/select_kernel.c). A backend with the
 * name of a built-in one may be under test and is left out. Sets *list to NULL, the built-in
 * backends, if the caller has none of its own. */
adj_status reference_backends(const adj_backend *const *own, region *p,
                              const adj_backend *const **list);

/* Draws a leaf: inputs from N(0, 1); parameters from their initializer plus noise, as a zero bias
 * would hide a missing one; integers (and, with in_domain, floats) in their reader's domain. */
adj_status draw_leaf(const adj_node *n, int in_domain, uint64_t seed, region *p, void *v);

/* reorders.c: checks each reorder of the plan. Returns 1 if one is wrong, and describes it in text;
 * 0 if all are right; a negative number when out of memory. */
int find_wrong_reorder(const adj_exec *e, char *text, size_t size);

/* Returns the name of a set option that the checkers ignore, or NULL. */
const char *unread_option(const adj_exec_opts *o);

/* Returns "" if the implementation's name contains what is wanted; NULL and "": anything will do.
 * Else says what ran instead; implementation "": nothing did. */
const char *other_impl(check_log *l, const char *wanted, const char *backend,
                       const char *implementation);

#endif
