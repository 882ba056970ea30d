/* ranks.h - communication of a training's processes outside of the graph. Without ranks all
 * functions concern this process alone and cost nothing. */
#ifndef TRAIN_RANKS_H
#define TRAIN_RANKS_H

#include "internal.h"

typedef struct adj_trainer adj_trainer;

/* Report of one process about a step; the sums of its shards' losses follow in memory. */
typedef struct {
    int64_t right;      /* images */
    rank_seconds times; /* of this step */
    int64_t wants_stop;
} step_report;

/* State of a trainer. */
typedef struct {
    const adj_ranks *ranks; /* NULL: this process alone */
    int wants_stop;         /* this process wants to stop; sent to the others with the next step */
    int is_stopped;         /* a process wanted to stop; known to all since the last step */
    rank_seconds *times;    /* [size]: of the epoch at work */
    char *mine, *all;       /* a step's reports */
    size_t report_bytes;
    double *weight; /* [size * shards of a process]: of a step's shards, among all of them */
    float *share;   /* [shards of a process]: as in step_inputs */
    double waited;  /* adj_ranks.waited before the step */
} rank_state;

static inline int ranks_size(const rank_state *r) { return r->ranks != NULL ? r->ranks->size : 1; }
static inline int ranks_rank(const rank_state *r) { return r->ranks != NULL ? r->ranks->rank : 0; }

/* Allocates memory for a training with n_shard shards in this process. The caller closes r in every
 * case. */
adj_status ranks_open(rank_state *r, const adj_ranks *ranks, int n_shard, adj_error *error);
void ranks_close(rank_state *r);

/* Checks that all ranks have rank 0's version, settings and data; else ADJ_EARG with a message that
 * names the first difference and the rank. Called before any other exchange. */
adj_status ranks_agree(adj_trainer *t, adj_error *error);
/* Checks likewise that all ranks have planned the same kernels. */
adj_status ranks_agree_on_kernels(adj_trainer *t, adj_error *error);
/* Checks before a run that all ranks are at the same step with the same parameters (ADJ_EARG,
 * ADJ_EBACKEND as below), and clears requests to stop. */
adj_status ranks_begin(adj_trainer *t, adj_error *error);
/* Checks that every parameter and state has rank 0's bits; else ADJ_EBACKEND with a message that
 * names the first difference, the rank and the step. */
adj_status ranks_compare_params(adj_trainer *t, adj_error *error);

/* Computes the weight of each shard's loss in the step's mean, in r->share. */
adj_status ranks_share(adj_trainer *t, const adj_loader_batch *b, adj_error *error);
/* Adds up the reports of all processes after a step that took `seconds`, of which `data` were spent
 * waiting for its batch. *loss: the step's sum over images. */
adj_status ranks_report(adj_trainer *t, const adj_loader_batch *b, rank_seconds own, double *loss,
                        int64_t *right, adj_error *error);

/* Sets *stop if this process or another wants to stop. All ranks call it. */
adj_status ranks_want_stop(rank_state *r, int wants, int *stop, adj_error *error);
/* Copies a text of rank 0 to all ranks, to be freed; NULL if it is NULL there. */
adj_status ranks_share_text(const rank_state *r, const char *text, char **shared, adj_error *error);
/* Copies the status and message of rank 0 to all ranks. */
adj_status ranks_share_status(const rank_state *r, adj_status status, adj_error *error);

#endif
