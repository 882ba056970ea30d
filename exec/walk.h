/* walk.h - the contents of a plan's memory while verify.c walks the steps, and the messages about
 * them. */
#ifndef ADJ_WALK_H
#define ADJ_WALK_H

#include "contents.h"
#include "exec.h"

typedef struct {           /* a value in memory, as a step or the end of a run sees it */
    const adj_node *value; /* NULL: scratch */
    const adj_layout *layout;
    int backend;
    const char *data;
    size_t bytes;
} place;

typedef struct {
    adj_exec *e;
    region region;         /* of what is below */
    contents contents;     /* of arena and storage */
    const adj_node **base; /* by id: what the node views, itself if it is no view */
    char *is_assigned;     /* by leaf: an update assigns it */
    place *in, *out;       /* of the step that is looked at */
    int run;
    const adj_node *overwritten; /* a leaf whose update was computed in place in this run; NULL */
} walk;

enum { NAME = 120 };

/* Writes `conv2d "conv1"`, with the layout unless it is plain, or "scratch". */
void name_place(const walk *w, const place *p, char text[NAME]);
/* Writes `step 7 (conv2d "conv1")`; NONE is adj_set, n_step the end of the
 * run. */
void name_step(const walk *w, int i, char text[NAME]);
/* Fails: step i does `what` to the value in the place. */
adj_status fail_step(walk *w, int i, const char *what, const place *p);

/* Returns the place of a plain value. */
place plain_place(const adj_exec *e, const adj_node *value, const void *data);
/* Returns the place of a buffer that lies at data. */
place buffer_place(const adj_exec *e, int i, const void *data);
/* Returns operand k of a step, or its result k: of a kernel as it was prepared. */
place operand_of(const adj_exec *e, const step *s, int k);
place result_of(const adj_exec *e, const step *s, int k);

/* Returns what is held in the place if it is its value, or NULL. */
const content *find_held(const walk *w, const place *p);
/* True if the place is a constant's, whose memory no step may write. */
int is_constant(const walk *w, const place *p);
/* True if the place holds its value; what has no elements has no bytes. */
int is_held(const walk *w, const place *p);
/* Fails if it does not; reader: who needs it. */
adj_status require(walk *w, const char *reader, const place *p);
/* Writes the value to its place, which must lie in the executor's memory, with the gaps. step: NONE
 * for a leaf that is set. */
adj_status hold(walk *w, const place *p, int step, int lasts);

#endif
