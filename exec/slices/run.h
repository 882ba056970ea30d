/* run.h - a group's slices as they are run. */
#ifndef ADJ_SLICES_RUN_H
#define ADJ_SLICES_RUN_H

#include "slices.h"

typedef struct { /* where the steps of a plan look for a value */
    int n;
    void **(*at);
} places;

typedef struct { /* one thread's */
    adj_exec *plan;
    places *in, *out; /* by the group's in, and out */
    uint64_t version; /* of what is kept: invariant_version of the plan that the group is part of */
    adj_status status; /* of the last run's slices */
    double *seconds;   /* of each of its steps, in all slices of the last run */
} slice_plan;

struct slices {
    adj_group group;
    const adj_backend *backends[MAX_BACKENDS + 1]; /* that plans of slices may take, NULL-ended */
    int64_t images, n_slice;
    double tuned;                     /* as sliced_nodes.tuned */
    adj_graph *graph;                 /* of a slice */
    adj_node **leaf, **copy, **fetch; /* its nodes, by group.in, group.node and group.out */
    char *in_is_batch, *out_is_batch; /* by group.in, and out: images, of which a slice has some */
    /* By group.out, in bytes from where a thread's sums begin, or from where all threads' parts
     * begin: a value that is no images is added up, or one for each slice is merged. */
    size_t *out_at;
    size_t sum_bytes, part_bytes;
    /* Scratch memory of each thread, its sums and its plan's arena; behind all of them what is kept
     * unless part_of does, then the parts. */
    size_t thread_bytes;
    /* The plan whose storage keeps what follows from whole operands, from kept_at on; NULL: it is
     * computed in every run, as they may vary. */
    const adj_exec *part_of;
    size_t kept_at, kept_bytes; /* kept_bytes: of one */
    int n_kept; /* 1, the first thread's, which all read; one for each thread where each buffer has
                   memory of its own, or canaries, which are to blame a thread's own kernel */
    int n_thread;
    slice_plan *thread;
};

#endif
