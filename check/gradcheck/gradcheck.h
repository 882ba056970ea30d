/* gradcheck.h - declarations that the files of the gradient checker share.
 *
 * A subject is one node alone. Its operands are leaves of two new graphs: `tested`, in the node's
 * types, and `reference`, with every float type replaced by f64. Drawn values are exact in the
 * node's types, so both graphs read the same values. */
#ifndef ADJ_GRADCHECK_H
#define ADJ_GRADCHECK_H

#include "check/inspect.h"
#include "check/shared.h"
#include "exec/report.h"

typedef struct {
    adj_gradcheck_report report; /* rows and counts are filled in at the end */
    check_log log;
    adj_gradcheck_opts opts; /* options; debug points to the next member */
    adj_exec_debug debug;
    int is_unmerged; /* 1: subjects are built without merging equal nodes */
    int n_row, capacity;
    gradcheck_detail *row;
    gradcheck_conditions conditions;
} gradcheck_report;

/* Opens a report on y; its status says whether y and the options can be used. Returns NULL if there
 * is no memory, or if out is NULL. */
gradcheck_report *gradcheck_open(const adj_node *y, const adj_gradcheck_opts *opts,
                                 const adj_gradcheck_report **out);
/* Fills in the public rows and counts of the report. Returns its status. */
adj_status gradcheck_close(gradcheck_report *r, const adj_gradcheck_report **out);

/* Adds a row for n; NULL when out of memory. */
gradcheck_detail *gradcheck_row(gradcheck_report *r, const adj_node *n, const char *wrt, int order);
void gradcheck_blame(adj_gradcheck_fault fault, const char *sentence, gradcheck_detail *row);

/* A copy of the node over new leaves. dx: by leaf; NULL for integers. */
typedef struct {
    adj_graph *graph;
    adj_node **leaf, **dx, *y, *dy;
    adj_exec *forward, *backward; /* forward: only in the reference, whose backward keeps every
                                     value */
} twin;

/* closure.c: true if n's value is a constant for adj_grad by definition. */
int stops_gradient(const adj_node *n);
/* A node with the producers of its operands that its check needs. */
typedef struct {
    const adj_node *node;
    char *inside; /* by id: 1 for the node and the producers checked with it */
    int n_leaf;
    struct closure_leaf {
        const adj_node *node, *reader; /* the leaf's value; its first reader in the closure */
        int as;                        /* operand index in the reader */
    } * leaf;
} closure;

adj_status open_closure(const adj_node *n, int depth, region *p, closure *c);
/* Sets *depth to the number of producers behind its operands that n's rule depends on, 0 to 2.
 * ADJ_ENOMEM, or ADJ_OK. */
adj_status closure_depth(const adj_node *n, int *depth);
/* Builds the closure in g over new inputs; image: by id. */
adj_status copy_closure(const closure *c, adj_graph *g, const adj_compare_config *config, region *p,
                        adj_node *image[]);

/* Values of a draw, and its gradients. */
typedef struct {
    int draw, integer; /* draw: number of the draw; negative: values were changed since */
    int is_known;      /* dx and dx_ref are computed */
    double **x;        /* by leaf */
    double **dx;       /* by leaf: of tested */
    double **dx_ref;   /* by leaf: of reference */
    double *dy;
} sample;

enum { KEPT = 4 };

typedef struct {
    gradcheck_report *report;
    const adj_node *node;
    region region;  /* memory of everything below */
    int order, of;  /* of: the leaf whose dx order 2 differentiates */
    adj_dtype wide; /* float type of the reference: F64, or F32 (open_reference) */
    const adj_backend *const *backends; /* the reference's; NULL: the built-in ones */
    const char *unchecked;              /* why no executor could be made; NULL: all were */
    int n_leaf;                         /* leaves of the closure, and dy for order 2 */
    closure closure;
    twin tested, reference;
    char *linear, *kinks; /* by leaf: 1 if y is linear in it; 1 if y may have kinks along it */
    int64_t n_y, max;     /* elements of y; of the largest value */
    sample kept[KEPT];    /* samples of the last draws */
    sample *at;           /* current draw; NULL: none yet */
    int n_kept;
    double *v, *moved, *numeric;
    double *y_mid, *y_low, *y_high; /* forward values */
    double *bends;                  /* by element of y: difference of the slopes on both sides */
    char *mask;                     /* by element of y: 1 if a kink is near */
    double *raw;                    /* buffer for adj_set and adj_get */
    char *repeats;                  /* by leaf: true if a second run gave dx the same bits */
    const adj_node *refuted;        /* reference node that contradicts its formula; NULL: none */
    adj_compare_error refuted_by;   /* the value against the formula */
    const char *wrong_plan;         /* fault of a refused plan; NULL: none */
    const char *wrong_type;         /* message about a gradient of the wrong type; NULL: none */
} subject;

/* subject: order 1 is the node, order 2 its gradient with respect to leaf `of`. On failure the
 * report has the message; s is to be closed in every case. */
adj_status subject_open(subject *s, gradcheck_report *r, const adj_node *node, int order, int of);
void subject_close(subject *s);
/* Returns memory for n values; NULL when out of memory. */
double *reals(subject *s, int64_t n);
int64_t leaf_elems(const subject *s, int leaf);
int leaf_is_float(const subject *s, int leaf);
/* True if y is linear in the leaf, by the ops' linear_in. */
int leaf_is_linear(const subject *s, int leaf);
/* Name of an operand: "input", "filter"; of a leaf, "batch_norm_stats/x" where another reads it. */
const char *leaf_name(const subject *s, int leaf);
const char *operand_name(const adj_node *n, int operand);
/* Returns "[h=2,w=0,c=5]", or "" for a scalar. */
const char *index_text(const subject *s, int leaf, int64_t element);
char axis_name(const subject *s, int leaf, int axis);
/* Returns the index of an element along an axis. */
int64_t index_at(adj_shape shape, int64_t element, int axis);

/* Draws x and dy within the ops' domains; integer: whole x, powers of two as dy. */
void draw_values(subject *s, int draw, int integer);
/* Marks the current draw as changed; to be called after changing x or dy. */
void forget_draw(subject *s);
void draw_direction(subject *s, int leaf, int draw, int integer);
/* Computes y at x with leaf + h v, in f64. */
adj_status forward_at(subject *s, int leaf, double h, double *y);
/* Runs e, an executor of t's graph, on the values of x; if it runs backward, on dy too. */
adj_status run_exec(subject *s, adj_exec *e, const twin *t, int is_forward);
/* Computes dx and dx_ref of all leaves once per draw, and whether dx repeats bit for bit. */
adj_status backward(subject *s);
/* Checks repeatability on random reals, since integer sums hide their order. */
adj_status repeat_with_reals(subject *s);
/* Sets row->repeatable; fails a row that is not. */
void check_repeat(subject *s, int leaf, gradcheck_detail *row);

typedef struct {
    double value, uncertainty; /* <dy, (f(x + h v) - f(x - h v)) / 2h> */
    int at_kinks;              /* 1: values of the whole graph lie exactly at kinks */
} estimate;
/* Estimate the derivative along v. Requires: mask_kinks for outputs with a kink nearby. */
adj_status central_estimate(subject *s, int leaf, double h, estimate *e);
adj_status richardson_estimate(subject *s, int leaf, double h, estimate *e);
/* Marks in s->mask outputs whose one-sided differences along v differ; *n: how many. */
adj_status mask_kinks(subject *s, int leaf, double h, int64_t *n);
double step_for(const subject *s, int leaf, int richardson);

/* Bound on |analytic - reference| (tolerance.c). */
typedef struct {
    const double *each;    /* bound by element; NULL or infinite: the bound below */
    double relative;       /* N u + L u_acc, times the safety factor */
    double reference;      /* relative bound of the reference */
    double kernels;        /* N */
    double magnitude;      /* S */
    double smallest;       /* absolute bound for values below the smallest normal number */
    const double *noise;   /* by element, the RMS error that rounding gives; NULL: none */
    const char *overflows; /* by element: 1 if any value is accepted; NULL: none */
    const char *origin;    /* in words */
    double rtol, atol;     /* given by the user: instead, if one is positive */
} bound;
adj_status bound_open(subject *s, int leaf, bound *b);
double bound_at(const bound *b, int64_t element, double reference);
/* Returns the number of additions for one element of n. */
double terms_of(const adj_node *n);

/* ---- one leaf ---- */

enum { ALONG_V = -1, WHOLE = -2 };

typedef struct {
    subject *s;
    int leaf;
    gradcheck_detail *row;
    double worst;    /* largest error in units of its tolerance */
    int64_t element; /* element with that error; ALONG_V: a projection; WHOLE: the RMS error */
    int64_t compared;
    int rule_wrong, kernel_wrong; /* in this draw */
    int exact;                    /* true if this draw is on integers */
    int drawn;                    /* number of the values in use */
    bound bound;                  /* bound for this draw */
} leaf_check;

/* Returns the error in units of the tolerance; infinite for NaN. */
double check_excess(double error, double tolerance);
/* Records a comparison. True if it is wrong. */
int check_record(leaf_check *c, int64_t element, double analytic, estimate numeric,
                 double tolerance);
/* Compares an element with the reference (*expected), rounded on integers. True if wrong. */
int check_element(leaf_check *c, int64_t element, double *expected);
/* Returns sum a_i v_i; *size: the sum of magnitudes. */
double check_projection(const double *a, const double *v, int64_t n, double *size);
/* Returns the tolerance of the reference against the numeric value along v. */
double check_rule_tolerance(const leaf_check *c, estimate e, double size);
/* Estimate the derivative along v; along one element (*kink: 1 if a kink is near). */
adj_status check_differentiate(const leaf_check *c, estimate *e);
adj_status check_differentiate_element(leaf_check *c, int64_t element, estimate *e, int *kink);
/* Compares an element of the reference with differences. True if wrong and no kink is near. */
int check_rule_element(leaf_check *c, int64_t element, int *kink);
/* Compares <dx, v> with <dy, f(x + v) - f(x - v)> / 2 and sets rule_wrong. c->exact: bit by bit;
 * set to 0, without a comparison, if an intermediate value is not exact. */
adj_status check_along(leaf_check *c);
/* Fills in a row that has failed. */
adj_status check_fail(leaf_check *c);

/* Checks one leaf by every draw and fills the row. */
adj_status check_leaf(subject *s, int leaf, gradcheck_detail *row);

/* ties.c: fails a row that passed if kernels and reference differ on equal values. */
adj_status check_ties(subject *s, int leaf, gradcheck_detail *row);

/* blame.c: returns a sentence that names the component at fault, also as *fault. */
const char *blame_text(subject *s, int leaf, int rule_is_wrong, adj_gradcheck_fault *fault);
/* True if the gradient changes when equal nodes are not merged. */
int is_other_unmerged(subject *s, int leaf);
#define MERGED "graph, which takes nodes that differ for equal, in the gradient"

/* gradcheck.c: returns "" and counts the node if impl has the requested name, or none was
 * requested; else a sentence with what ran. */
const char *gradcheck_other_impl(gradcheck_report *r, const char *backend, const char *impl);
/* Returns the spacing of the reference's floats above 1. */
double reference_eps(const subject *s);
/* Returns "naive float64", or the name of the reference for the caller's own op. */
const char *reference_name(const subject *s);
/* Returns the step that computes n; else the last kernel step. */
adj_step_info step_of(const adj_exec *e, const adj_node *n);

/* blame.c: checks the last run of reference.backward by formulas; NULL: right, else a sentence. */
const char *check_reference(subject *s);
/* Adds a failed row for the refuted value. */
adj_status fail_value(subject *s, const char *blame);
/* optimizer_step.c: compares an optimizer step with its formula and fills the row. */
adj_status check_update(gradcheck_report *r, const adj_node *n, gradcheck_detail *row);
/* end_to_end.c: checks y's gradient graph end to end; adds a row for each float leaf. */
adj_status check_whole(gradcheck_report *r, const adj_node *y);

#endif
