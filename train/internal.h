/* internal.h - functions of training and prediction for the tool and tests only. */
#ifndef TRAIN_INTERNAL_H
#define TRAIN_INTERNAL_H

#include "adjoint_fit.h"

/* Return the number of processes that train together, and this one's; NULL: it is alone. */
static inline int ranks_size(const adj_ranks *r) { return r != NULL ? r->size : 1; }
static inline int ranks_rank(const adj_ranks *r) { return r != NULL ? r->rank : 0; }

/* Cases in which a setting may differ from that of the checkpoint that is resumed. */
typedef enum { NEVER, TO_PROLONG, ALWAYS } freedom;

/* True if a checkpoint may have that text: it is not empty and has no control characters. */
static inline int is_entry_text(const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return 0;
    return text[0] != '\0';
}

/* Writes a checkpoint of the training so far; path NULL: only checks, as in adj_tensors_write. */
ADJ_API adj_status adj_trainer_save(adj_trainer *t, const char *path, adj_error *error);
/* Resumes from a checkpoint of the same training (adj_fit_opts.checkpoint). */
ADJ_API adj_status adj_trainer_resume(adj_trainer *t, const char *path, adj_error *error);

/* True if all epochs are done or the patience is exhausted. */
ADJ_API int adj_trainer_is_done(const adj_trainer *t);
/* Returns the executor of training steps. Running it repeats the last step with its update. */
ADJ_API adj_exec *adj_trainer_exec(const adj_trainer *t);
/* Returns the loss of a training step, a node of the trainer's graph. */
ADJ_API adj_node *adj_trainer_loss(const adj_trainer *t);

/* Times of a rank's training steps, in seconds. */
typedef struct {
    double seconds; /* total time of the steps */
    double data;    /* time waiting for batches */
    double others;  /* time waiting for other ranks */
} rank_seconds;

/* Progress beside adj_fit_progress: of the current epoch, after its end of the ended one. */
typedef struct {
    /* Images in a batch and batches in a step, after limiting them to the data. */
    int64_t batch, accumulate;
    int frozen;               /* number of parameters that adj_net.options.freeze matches */
    const char *warning;      /* about the plans, in one line (adj_exec_warning); or "" */
    double images_per_second; /* images per second of the epoch's steps, in this process */
    double waited; /* seconds in which the epoch's steps waited for batches, in this process */
    int unsaved;   /* 1: the training ended because the checkpoint could not be written */
    int n_rank;    /* number of processes that train together */
    const rank_seconds *rank_times; /* [n_rank]: times of the epoch's steps */
} trainer_details;
ADJ_API trainer_details adj_trainer_details(const adj_trainer *t);

/* Fails if the card is of another net than that name's, or if the net must be a built-in model and
 * none has this name; then the message says what to do in C. */
ADJ_API adj_status adj_net_check_card(const adj_model_card *card, const char *name,
                                      int must_be_built_in, const char *in_c, adj_error *error);

#endif
