/* end_to_end.h - declarations that end_to_end.c and end_to_end_blame.c share. */
#ifndef ADJ_GRADCHECK_END_TO_END_H
#define ADJ_GRADCHECK_END_TO_END_H

#include "check/compare/compare.h"
#include "gradcheck.h"

enum { ALL = -1 };

/* Flags of a copied graph. */
enum {
    COPY_STILL = 1, /* values that pass no gradient are inputs */
    COPY_NUDGED =
        2, /* an input is added to every node that depends on leaves, or to one for each user */
    COPY_UNMERGED = 4, /* equal nodes are not merged */
    COPY_ALL = 8       /* gradients of all nodes are fetched */
};

/* A float64 copy of what y needs. By id: image, the copy; nudge, the input added to it. */
typedef struct {
    adj_graph *graph;
    adj_exec *exec;
    adj_node **image, **nudge, *dy; /* dy: NULL without gradients */
    const adj_node *split;          /* nudged for each user, by the user's id; NULL: none */
    int as_built;                   /* without passes */
} copy;

/* Lists are by id of y's graph. */
typedef struct {
    gradcheck_report *r;
    region region;
    adj_status status; /* the first error, after which nothing is built, run or read any more */
    const adj_node *y;
    const adj_backend *const *backends;
    uint64_t seed;
    char *need, *moves;             /* by id: y needs it; it depends on float leaves */
    int n_moved;                    /* nodes that do, except leaves */
    double n_kinks;                 /* elements of ops that have kinks */
    double **x;                     /* values of leaves and of constant inputs */
    double **v, **dx;               /* directions; gradients */
    double *dy, *value, *raw, loss; /* loss: L at the unperturbed values */
    adj_node **slope;               /* by id: the gradient node */
    copy gradient, forward;
} whole;

int is_input(const adj_node *n);
const adj_node *answering(const whole *w, const adj_node *u);
void copy_close(copy *c);
void copy_plan(whole *w, copy *c, int n, adj_node *const fetch[]);
void copy_run(whole *w, copy *c, double h, int only);
void copy_get(whole *w, const copy *c, const adj_node *n, double *v);
/* A copy with gradients, and its executor; fills slope. */
void open_gradient(whole *w, copy *c, unsigned mode);
/* Rebuilds w->forward. */
void open_forward(whole *w, const adj_node *split, unsigned mode);

void draw_along(whole *w, int id, double largest);
void differentiate(whole *w, int only, double scale, estimate *best);
double along(const whole *w, int id, double *scale);
int is_apart(double analytic, const estimate *e, double scale);

/* end_to_end_blame.c: sets fault and sentence for the wrong gradient of node id. */
void whole_blame(whole *w, int id, adj_gradcheck_fault *fault, const char **sentence);

#endif
