/* ranks.h - what the processes of a training tell each other outside of its graph. Without ranks
 * every one of these is about this process alone, and costs nothing. */
#ifndef IO_FIT_RANKS_H
#define IO_FIT_RANKS_H

#include "adjoint_fit.h"

typedef struct adj_trainer adj_trainer;

/* A step as one process has seen it; behind it the sums of the losses of its shards. */
typedef struct {
    int64_t right;        /* images */
    adj_rank_times times; /* of this step */
    int64_t wants_stop;
} step_report;

/* Of a trainer. */
typedef struct {
    const adj_ranks *ranks; /* NULL: this process alone */
    int wants_stop;         /* this process; told to the others with the next step */
    int is_stopped;         /* one of them wanted it: all know since the last step */
    adj_rank_times *times;  /* [size]: of the epoch at work */
    char *mine, *all;       /* a step's reports */
    size_t report_bytes;
    double *weight; /* [size * shards of a process]: of a step's shards, among all of them */
    float *share;   /* [shards of a process]: as in step_inputs */
    double waited;  /* adj_ranks.waited before the step */
} rank_state;

static inline int ranks_size(const rank_state *r) { return r->ranks != NULL ? r->ranks->size : 1; }
static inline int ranks_rank(const rank_state *r) { return r->ranks != NULL ? r->ranks->rank : 0; }

/* Memory for a training whose process has so many shards. To be closed in every case. */
adj_status ranks_open(rank_state *r, const adj_ranks *ranks, int n_shard, adj_error *error);
void ranks_close(rank_state *r);

/* Everybody has the version, the settings and the data that rank 0 has; else ADJ_EARG, and the
 * sentence names the first that is another, and the rank. Before anything else is exchanged. */
adj_status ranks_agree(adj_trainer *t, adj_error *error);
/* The same of the kernels that the steps' plan has. */
adj_status ranks_agree_on_kernels(adj_trainer *t, adj_error *error);
/* Before a run: everybody is at the same step with the same parameters (ADJ_EARG, ADJ_EBACKEND as
 * below), and nobody wants to stop yet. */
adj_status ranks_begin(adj_trainer *t, adj_error *error);
/* Every parameter and state has the bits that rank 0 has; else ADJ_EBACKEND, and the sentence names
 * the first that has others, the rank and the step. */
adj_status ranks_compare_params(adj_trainer *t, adj_error *error);

/* By how much each shard's loss counts in the step's mean, into r->share. */
adj_status ranks_share(adj_trainer *t, const adj_loader_batch *b, adj_error *error);
/* A step was run, in seconds, `data` of them waiting for its batch: what all processes have seen is
 * added up. *loss: the step's sum over images. */
adj_status ranks_report(adj_trainer *t, const adj_loader_batch *b, adj_rank_times own, double *loss,
                        int64_t *right, adj_error *error);

/* Whether this process or another wants to stop: now, all calling it. */
adj_status ranks_want_stop(rank_state *r, int wants, int *stop, adj_error *error);
/* Text of rank 0, malloc'ed, to everybody; NULL where it is NULL there. */
adj_status ranks_share_text(const rank_state *r, const char *text, char **shared, adj_error *error);
/* What rank 0's status came to becomes everybody's, with its sentence. */
adj_status ranks_share_status(const rank_state *r, adj_status status, adj_error *error);

#endif
