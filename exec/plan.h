/* plan.h - the plan over the private graph.
 *
 * The plan is a list of steps. A step computes a group of nodes by one kernel, or reorders a value
 * into another layout, or copies one. It reads and writes buffers; a buffer is a value in a layout.
 * A slot of memory holds one buffer or, for in-place results, several one after the other. Slots
 * lie in the arena, where lifetimes that do not overlap share memory, or are kept between runs. */
#ifndef ADJ_PLAN_H
#define ADJ_PLAN_H

#include "graph/graph.h"

enum { NONE = -1 };

typedef struct {
    size_t bytes;
    int first, last;  /* first and last step in which it holds a needed value; NONE: unused */
    int into;         /* slot whose memory it shares, while memory.c plans; NONE */
    int kept;         /* outside the arena: its content outlives a run */
    int foreign;      /* kept, but not in the executor's memory: a constant's data */
    int is_invariant; /* 1: its values stay the same from run to run */
    size_t offset;    /* in the arena, or in the storage */
    char *data;
} slot;

typedef struct {
    const adj_node *value;
    const adj_layout *layout; /* NULL: plain */
    int backend;              /* backend that defines the layout; NONE for plain */
    int slot;
    int next; /* another buffer of the same value, or NONE */
} buffer;

typedef enum { STEP_KERNEL, STEP_REORDER, STEP_COPY } step_kind;

typedef struct {
    step_kind kind;
    int backend;
    const adj_kernel *kernel;   /* the selected kernel; NULL: none is prepared */
    const adj_kernel *proposer; /* kernel whose match proposed the group; NULL for a single node */
    adj_group group;
    adj_prep prep;
    int *in, *out; /* buffers, as group.in and group.out; one each for reorders and copies */
    int n_in, n_out;
    int scratch;      /* slot, or NONE */
    int is_invariant; /* 1: runs only after one of its leaves has been set */
    adj_call call;
    const char *why; /* why a preferred backend does not compute it; NULL: it does */
    double tuned;    /* measured seconds if it was selected by timing; 0: selected by estimate */
} step;

typedef struct {
    const adj_node *node; /* node of the private graph */
    adj_node *user;       /* the same in the user's graph */
    int buffer;
    int update; /* index of the update that assigns it, or NONE */
} leaf;

typedef struct {
    const adj_node *node; /* node of the user's graph */
    int buffer;           /* buffer with its value after a run */
} fetch;

typedef struct {
    int leaf;     /* index into leaves */
    int next;     /* buffer of the next value, once it is planned */
    int in_place; /* 1: the step that computes the next value writes it into the leaf */
} update;

typedef struct { /* constant once planning is complete */
    const adj_graph *user;
    int n_user;       /* nodes that the user's graph had */
    adj_graph *graph; /* private */
    adj_node **image; /* by the user's id: the private graph's node; NULL: not part of this plan */
    int n_step, n_buffer, n_slot, n_leaf, n_fetch, n_update;
    int n_invariant; /* number of invariant steps, which come first */
    step *step;
    buffer *buffer;
    slot *slot;
    leaf *leaf;
    int *leaf_of; /* by id of the private graph: index into leaf, or NONE */
    fetch *fetch;
    update *update;
    size_t gap; /* bytes that stay free on both sides of a slot, for canaries */
} plan;

static inline slot *slot_of(const plan *p, int buffer)
{
    slot *s = &p->slot[p->buffer[buffer].slot];
    while (s->into != NONE)
        s = &p->slot[s->into];
    return s;
}
static inline char *leaf_data(const plan *p, const leaf *l) { return slot_of(p, l->buffer)->data; }
/* Returns the bytes that a slot occupies, with padding to 64 bytes and the gaps. */
static inline size_t slot_footprint(const plan *p, const slot *s)
{
    return (s->bytes + 63) / 64 * 64 + 2 * p->gap;
}
static inline size_t bytes_of_buffers(const plan *p, int n, const int buffer[])
{
    size_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += slot_of(p, buffer[i])->bytes;
    return sum;
}

#endif
