/* trainer.h - the structs behind adj_trainer and its settings, and the communication of its
 * processes outside of the graph. */
#ifndef TRAIN_TRAINER_H
#define TRAIN_TRAINER_H

#include "base/hash.h"
#include "internal.h"
#include "predictor.h"

/* All settings that determine the result of a training, as compared with a checkpoint's. */
struct settings {
    adj_fit_opts o;             /* the caller's, with defaults filled in */
    const char *model, *freeze; /* freeze: "none" */
    const char *optimizer;      /* its name, or "other" */
    const char *loss;           /* its name, or "own" */
    const char *weighting;      /* a checksum of class weights, or "none" */
    const char *groups;         /* a checksum of parameter groups, or "none" */
    char weights_sum[20], groups_sum[20];
    adj_image_size size;
    int64_t classes;
    int64_t shards;    /* shards of a batch */
    int64_t begun;     /* epochs that were done when the schedule began */
    adj_schedule rate; /* total 0: all steps; base 0: the optimizer's */
    int scale_follows; /* 1: the loss scale follows the gradients, with these options */
    adj_loss_scale scale;
};

typedef struct {
    int64_t epoch, step; /* epochs that are done; steps of the one after them that are done */
    double loss;         /* sums over those steps' images */
    int64_t right, count;
    int64_t best_epoch; /* counted from 1; 0: none yet */
    double best;        /* its accuracy, 0 .. 1; of a net with a loss of its own the loss */
    double accuracy;    /* held-out accuracy after the last whole epoch, 0 .. 1; 0: unknown */
} position;

/* Report of one process about a step. The sums of its shards' losses follow in memory, then their
 * weights. */
typedef struct {
    int64_t right;      /* images */
    rank_seconds times; /* times of this step */
    int64_t wants_stop;
} step_report;

/* The exchange of a trainer with other processes. */
typedef struct {
    const adj_ranks *ranks; /* NULL: this process alone */
    int wants_stop;         /* this process wants to stop; sent to the others with the next step */
    int is_stopped;         /* a process wanted to stop; known to all since the last step */
    rank_seconds *times;    /* [size]: of the epoch at work */
    char *mine, *all;       /* a step's reports */
    size_t report_bytes;
    double *weight; /* [size * shards of a process]: of a step's shards, among all of them */
    float *share;   /* [shards of a process]: as in step_inputs */
} rank_state;

struct adj_trainer {
    const adj_dataset *train, *held_out; /* held_out may be NULL */
    settings set;
    network steps_net; /* network of training steps */
    adj_loader *loader;
    int64_t steps; /* steps of an epoch */
    position at;
    uint64_t data_sum; /* checksum of the training data; 0: not computed yet */
    adj_predictor *predictor;
    uint64_t taken; /* the steps done, when predictor took the parameters */
    uint64_t done;  /* steps in this process, and 1 */
    /* sums over the current epoch, in this process */
    double seconds, waited;
    int64_t images;
    int skipped;           /* steps in a row, in this process */
    adj_fit_progress last; /* after adj_trainer_end_epoch, else epoch is 0 */
    double step_loss, step_rate;
    int unsaved; /* as in trainer_details */
    rank_state ranks;
};

/* Returns the number of batches that n images fill. */
static inline int64_t batches(int64_t n, int64_t batch) { return (n + batch - 1) / batch; }
/* Images in a step, and the shards that they are cut into. */
static inline int64_t step_images(const settings *s) { return s->o.batch * s->o.accumulate; }
static inline int64_t step_shards(const settings *s) { return s->shards * s->o.accumulate; }

/* Returns a checksum of images and labels or targets (checkpoint.c). Images that are not in memory
 * are represented by a sample and by their mean and deviation. */
uint64_t data_sum(const adj_dataset *d);
/* Returns the checksum of the training data, computed once. */
uint64_t trainer_data_sum(adj_trainer *t);

/* Completes the settings of options s->o and a net, and cuts the batch to n training images.
 * ADJ_EARG if a setting is out of range. */
adj_status settings_complete(settings *s, const adj_net *net, int64_t n, adj_error *error);
/* Sets *p to adj_trainer_predictor's result, and returns why there is none. */
adj_status trainer_predictor(adj_trainer *t, adj_predictor **p, adj_error *error);
/* Plans steps and evaluation with these kernels (adj_exec_internal.selection), and times nothing.
 */
adj_status trainer_select(adj_trainer *t, const char *steps, const char *evaluation,
                          adj_error *error);
/* Returns the learning rate of a step of an epoch; steps: number of steps in an epoch. */
double settings_rate(const settings *s, int64_t epoch, int64_t step, int64_t steps);

/* ---- processes (ranks.c). Without ranks all functions concern this process alone and cost nothing
 * ---- */

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
 * waiting for its batch. *loss: the weighted mean over the step's images, times their number. */
adj_status ranks_report(adj_trainer *t, const adj_loader_batch *b, rank_seconds own, double *loss,
                        int64_t *right, adj_error *error);

/* Sets *stop if this process or another wants to stop. All ranks call it. */
adj_status ranks_want_stop(rank_state *r, int wants, int *stop, adj_error *error);
/* Copies a text of rank 0 to all ranks, to be freed; NULL if it is NULL there. */
adj_status ranks_share_text(const rank_state *r, const char *text, char **shared, adj_error *error);
/* Copies the status and message of rank 0 to all ranks. */
adj_status ranks_share_status(const rank_state *r, adj_status status, adj_error *error);

/* ---- as entries of a checkpoint ---- */

enum { MAX_ENTRIES = 64, ENTRY_TEXT = 40 };

/* An entry has one of these pointers. */
typedef struct {
    const char *key;
    const char **text;
    int64_t *integer;
    int *small; /* an integer, too */
    double *real;
    double low, high;         /* range of a number */
    const char *const *words; /* words for the values of an integer; ends with NULL */
    const char *before;       /* value in older files, which lack it; NULL: every file has it */
    freedom may_change;
} entry;

/* Lists all settings; returns their number. */
int settings_entries(settings *s, entry list[MAX_ENTRIES]);
/* Returns the entry's value as text; number: memory for the text of a number. */
const char *entry_text(const entry *e, char number[ENTRY_TEXT]);
/* Stores the value of a text; returns 0 for an invalid one. */
int entry_store(const entry *e, const char *text);

#endif
