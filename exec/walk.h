/* walk.h - the contents of a plan's memory while verify.c walks the steps: an ordered map from
 * disjoint ranges of addresses to values; and the messages about them. */
#ifndef ADJ_WALK_H
#define ADJ_WALK_H

#include "exec.h"

typedef struct {
    const adj_node *value; /* NULL: scratch */
    const adj_layout *layout;
    int backend; /* backend that defines the layout */
    int step;    /* step that wrote it; NONE: the value of a leaf */
    int lasts;   /* 1: stays the same in every run until a parameter is set */
} content;

typedef struct {
    uintptr_t start, end;
    content held;
} range;

typedef struct {           /* a value in memory, as a step or the end of a run sees it */
    const adj_node *value; /* NULL: scratch */
    const adj_layout *layout;
    int backend;
    const char *data;
    size_t bytes;
} place;

typedef struct {
    adj_exec *e;
    region region;                /* memory of the members below */
    range *range;                 /* room for one range per write */
    int n_range, n_order, *order; /* the ranges in the map, by address */
    const adj_node *
        *base;         /* by id: the node that a view shows; the node itself if it is not a view */
    char *is_assigned; /* by leaf: an update assigns it */
    place *in, *out;   /* operands and results of the present step */
    int run;
    const adj_node *overwritten; /* a leaf whose update was computed in place in this run; NULL */
} walk;

enum { NAME = 120 };

/* Writes `conv2d "conv1"`, with the layout unless it is plain, or "scratch". */
void name_place(const adj_exec *e, const place *p, char text[NAME]);
/* Writes `step 7 (conv2d "conv1")`; NONE is adj_set, n_step the end of the
 * run. */
void name_step(const walk *w, int i, char text[NAME]);
/* Fails with a message: step i does `what` to the value in the place. */
adj_status fail_step(walk *w, int i, const char *what, const place *p);

/* Returns the place of a plain value. */
place plain_place(const adj_exec *e, const adj_node *value, const void *data);
/* Return operand k or result k of a step, in the layouts that its kernel was prepared for. */
place operand_of(const adj_exec *e, const step *s, int k);
place result_of(const adj_exec *e, const step *s, int k);

/* Returns the content of the place if it is the place's value, else NULL. */
const content *find_held(const walk *w, const place *p);
/* True if the place belongs to a constant, whose memory no step may write. */
int is_constant(const walk *w, const place *p);
/* True if the place holds its value, or if the value has no elements. */
int is_held(const walk *w, const place *p);
/* Fails if the place does not hold its value; reader: the step that needs it. */
adj_status require(walk *w, const char *reader, const place *p);
/* Enters the value at its place, which must lie in the executor's memory with its gaps. step: NONE
 * for a leaf that is set. */
adj_status hold(walk *w, const place *p, int step, int lasts);

#endif
