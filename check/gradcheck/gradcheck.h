/* gradcheck.h - what the files of the gradient checker share.
 *
 * A subject is one node by itself: its operands are leaves of two new graphs, one in the node's
 * types (tested), one with every float turned f64 (reference). Values are doubles that the node's
 * types hold exactly, so that both graphs see the same. */
#ifndef ADJ_GRADCHECK_H
#define ADJ_GRADCHECK_H

#include "check/inspect.h"
#include "check/shared.h"
#include "exec/report.h"

typedef struct {
    adj_gradcheck_report report; /* rows and counts are filled in at the end */
    check_log log;
    adj_gradcheck_opts opts; /* debug: the next member */
    adj_exec_debug debug;
    int is_unmerged; /* subjects are opened with it */
    int n_row, capacity;
    gradcheck_detail *row;
    gradcheck_conditions conditions;
} gradcheck_report;

/* Opens a report on y; its status says whether y and the options can be used. Returns NULL if there
 * is no memory, or if out is NULL. */
gradcheck_report *gradcheck_open(const adj_node *y, const adj_gradcheck_opts *opts,
                                 const adj_gradcheck_report **out);
/* Fills in what the caller sees of the report. Returns its status. */
adj_status gradcheck_close(gradcheck_report *r, const adj_gradcheck_report **out);

/* A new row for n; NULL when out of memory. */
gradcheck_detail *gradcheck_row(gradcheck_report *r, const adj_node *n, const char *wrt, int order);
void gradcheck_blame(adj_gradcheck_fault fault, const char *sentence, gradcheck_detail *row);

/* A copy of the node over new leaves. dx: by leaf; NULL for one that is no float. */
typedef struct {
    adj_graph *graph;
    adj_node **leaf, **dx, *y, *dy;
    adj_exec *forward, *backward; /* forward: of the reference alone, whose backward keeps the value
                                     of every node */
} twin;

/* closure.c: true if n's value is a constant for adj_grad by definition. */
int stops_gradient(const adj_node *n);
/* A node with the producers of its operands that its check needs. */
typedef struct {
    const adj_node *node;
    char *inside; /* by id: the node, and its producers */
    int n_leaf;
    struct closure_leaf {
        const adj_node *node,
            *reader; /* the value; who inside reads it first, the node if it does */
        int as;      /* which operand of the reader */
    } * leaf;
} closure;

adj_status open_closure(const adj_node *n, int depth, region *p, closure *c);
/* Sets *depth to the number of producers behind an operand that n's gradient rule looks at, 0 to 2.
 * ADJ_ENOMEM, or ADJ_OK. */
adj_status closure_depth(const adj_node *n, int *depth);
/* Builds the closure in g over inputs; image: by id. */
adj_status copy_closure(const closure *c, adj_graph *g, const adj_compare_config *config, region *p,
                        adj_node *image[]);

/* A draw's values, and the gradients there. */
typedef struct {
    int draw, integer; /* draw: negative once they are changed */
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
    region region;  /* of everything below */
    int order, of;  /* of: the leaf whose dx order 2 differentiates */
    adj_dtype wide; /* the reference's float type: F64; F32, see open_reference */
    const adj_backend *const *backends; /* the reference's; NULL: the built-in ones */
    const char *unchecked;              /* why no executor could be made; NULL: all were */
    int n_leaf;                         /* of the closure; of order 2, one more, which is dy */
    closure closure;
    twin tested, reference;
    char *linear,
        *kinks;        /* by leaf: true if y is linear in it; true if y may have kinks along it */
    int64_t n_y, max;  /* elements of y; of the largest value */
    sample kept[KEPT]; /* of the last draws */
    sample *at;        /* the one in use; NULL before the first draw */
    int n_kept;
    double *v, *moved, *numeric;
    double *y_mid, *y_low, *y_high; /* forward values */
    char *mask;                     /* by element of y: a kink is near */
    double *raw;                    /* bytes for adj_set and adj_get */
    char *repeats;                  /* by leaf: true if a second run gave dx the same bits */
    const adj_node *refuted;        /* of reference: the first whose value its formula refutes;
                                       NULL: none */
    adj_compare_error refuted_by;   /* the value against the formula */
    const char *wrong_plan;         /* what is wrong with the plan of an executor, which is refused;
                                       NULL: none is */
    const char *wrong_type;         /* message about a gradient of another type than its value,
                                       with which nothing can run; NULL: none has */
} subject;

/* subject: order 1 is the node, order 2 its gradient with respect to leaf `of`. On failure the
 * report has the message; s is to be closed in every case. */
adj_status subject_open(subject *s, gradcheck_report *r, const adj_node *node, int order, int of);
void subject_close(subject *s);
/* Room for n values; NULL: no memory. */
double *reals(subject *s, int64_t n);
int64_t leaf_elems(const subject *s, int leaf);
int leaf_is_float(const subject *s, int leaf);
/* True if y is linear in the leaf, by the ops' linear_in. */
int leaf_is_linear(const subject *s, int leaf);
/* Name of an operand: "input", "filter"; of a leaf, "batch_norm_stats/x" where another reads it. */
const char *leaf_name(const subject *s, int leaf);
const char *operand_name(const adj_node *n, int operand);
/* "[h=2,w=0,c=5]", or "" for a scalar. */
const char *index_text(const subject *s, int leaf, int64_t element);
char axis_name(const subject *s, int leaf, int axis);
/* The index along an axis of a value's element. */
int64_t index_at(adj_shape shape, int64_t element, int axis);

/* Values in x, dy: draw number `draw`, in the ops' domains. Integers (powers of two in dy) if
 * `integer`. */
void draw_values(subject *s, int draw, int integer);
/* To be called when x or dy are changed after a draw. */
void forget_draw(subject *s);
void draw_direction(subject *s, int leaf, int draw, int integer);
/* y at x with leaf's x + h v; f64. */
adj_status forward_at(subject *s, int leaf, double h, double *y);
/* Runs e, an executor of t's graph, on the values of x; if it runs backward, on dy too. */
adj_status run_exec(subject *s, adj_exec *e, const twin *t, int is_forward);
/* Computes dx_ref and dx, and whether dx has the same bits a second time: once for a draw, for all
 * leaves. */
adj_status backward(subject *s);
/* Twice with real numbers. */
adj_status repeat_with_reals(subject *s);
/* Fills in repeatable; a row that is not fails. */
void judge_repeat(subject *s, int leaf, gradcheck_detail *row);

typedef struct {
    double value, uncertainty; /* <dy, (f(x + h v) - f(x - h v)) / 2h> */
    int at_kinks;              /* of the whole graph: values lie exactly at kinks */
} estimate;
/* Along v. Outputs with a kink nearby must have been masked by mask_kinks. */
adj_status central_estimate(subject *s, int leaf, double h, estimate *e);
adj_status richardson_estimate(subject *s, int leaf, double h, estimate *e);
/* Marks outputs whose one-sided differences along v differ; adds to s->mask and returns how many
 * are marked in *n. */
adj_status mask_kinks(subject *s, int leaf, double h, int64_t *n);
double step_for(const subject *s, int leaf, int richardson);

/* A bound on |analytic - reference|: see tolerance.c. */
typedef struct {
    const double *each;    /* by element; NULL, or infinite: by what follows */
    double relative;       /* N u + L u_acc, times the safety factor */
    double reference;      /* the same of the reference */
    double kernels;        /* N */
    double magnitude;      /* S */
    double smallest;       /* added: what is lost below the normal numbers */
    const double *noise;   /* by element, the RMS error that rounding gives; NULL: none */
    const char *overflows; /* by element, true if anything is right; NULL: nowhere */
    const char *origin;    /* in words */
    double rtol, atol;     /* given by the user: instead, if one is positive */
} bound;
adj_status bound_open(subject *s, int leaf, bound *b);
double bound_at(const bound *b, int64_t element, double reference);
/* Additions that make one element of n. */
double terms_of(const adj_node *n);

/* ---- one leaf ---- */

enum { ALONG_V = -1, WHOLE = -2 };

typedef struct {
    subject *s;
    int leaf;
    gradcheck_detail *row;
    double worst;    /* in tolerances */
    int64_t element; /* the worst; ALONG_V: a projection; WHOLE: the RMS error */
    int64_t compared;
    int rule_wrong, kernel_wrong; /* in this draw */
    int exact;                    /* true if this draw is on integers */
    int drawn;                    /* number of the values in use */
    bound bound;                  /* for these */
} leaf_check;

/* An error in tolerances; NaN is as wrong as can be. */
double check_excess(double error, double tolerance);
/* Records a comparison. True if it is wrong. */
int check_record(leaf_check *c, int64_t element, double analytic, estimate numeric,
                 double tolerance);
/* Compares an element of the gradient under test with the reference, rounded where the draw is on
 * integers: *expected. True if it is wrong. */
int check_element(leaf_check *c, int64_t element, double *expected);
/* sum a_i v_i, and of the absolute values in *size. */
double check_projection(const double *a, const double *v, int64_t n, double *size);
/* Tolerance of the reference against the numeric value along v. */
double check_rule_tolerance(const leaf_check *c, estimate e, double size);
/* Along v; along one element, if there is no kink. */
adj_status check_differentiate(const leaf_check *c, estimate *e);
adj_status check_differentiate_element(leaf_check *c, int64_t element, estimate *e, int *kink);
/* Compares an element of the reference with differences, which become its numeric. True if it is
 * wrong, and there is no kink. */
int check_rule_element(leaf_check *c, int64_t element, int *kink);
/* Compares <dx, v> with <dy, f(x + v) - f(x - v)> / 2: rule_wrong. c->exact: on integers, bit by
 * bit; it becomes 0, and nothing is compared, where a number is not such that this must hold. */
adj_status check_along(leaf_check *c);
/* Fills in a row that has failed. */
adj_status check_fail(leaf_check *c);

/* Checks one leaf by every draw and fills the row. */
adj_status check_leaf(subject *s, int leaf, gradcheck_detail *row);

/* ties.c: fails a row that passed if kernels and reference differ on equal values. */
adj_status judge_ties(subject *s, int leaf, gradcheck_detail *row);

/* blame.c: whose fault the leaf's wrong gradient is, on the values of this draw: a sentence; fault
 * is the same as a word. */
const char *blame_text(subject *s, int leaf, int rule_is_wrong, adj_gradcheck_fault *fault);
/* True if the gradient is another in a graph where equal nodes are not merged. */
int is_other_unmerged(subject *s, int leaf);
#define MERGED "graph, which takes nodes that differ for equal, in the gradient"

/* gradcheck.c: "" where impl, by which a node was computed, has the name that debug.impl asks for,
 * if it asks for one, and counts that; else says what ran instead. */
const char *gradcheck_other_impl(gradcheck_report *r, const char *backend, const char *impl);
/* Returns the spacing of the reference's floats above 1. */
double reference_eps(const subject *s);
/* Returns "naive float64", or the name of the reference for the caller's own op. */
const char *reference_name(const subject *s);
/* The step that computes n; else the last one that computes anything. */
adj_step_info step_of(const adj_exec *e, const adj_node *n);

/* blame.c. Checks the last run of reference.backward by the ops' formulas. Returns NULL, or whose
 * fault it is that one of its values is wrong. */
const char *check_reference(subject *s);
/* Adds a row for the value that is. */
adj_status fail_value(subject *s, const char *blame);
/* update.c: a step of an optimizer against its formula; fills the row. */
adj_status check_update(gradcheck_report *r, const adj_node *n, gradcheck_detail *row);
/* whole.c: y's gradient graph from end to end; a row for each float leaf. */
adj_status check_whole(gradcheck_report *r, const adj_node *y);

#endif
