/* train.h - the settings of a training run, from the command line or from a checkpoint. */
#ifndef CLI_TRAIN_H
#define CLI_TRAIN_H

#include <stdint.h>

#include "adjoint_nn.h"
#include "data.h"

typedef struct {
    data_opts data;
    const char *model, *optimizer, *backend, *log, *out, *checkpoint, *tune;
    const char *precision, *math; /* "f32", "bf16" or "f16"; "exact" or "fast" */
    const char *weights, *head;   /* to begin with; "keep" or "new" */
    const char *map;              /* naming scheme of the weights; NULL: adjoint's */
    const char *freeze;           /* patterns of parameters; "none" */
    const char *schedule;         /* "constant", "step", ... */
    const char *class_weights;    /* "none", "balanced" or a list, see settings.h */
    int64_t shards, accumulate;
    int64_t same_bits; /* 1 with shards; as in adj_fit_opts */
    int64_t sync_batch_norm;
    double rank_timeout; /* seconds; 0: the library's */
    int64_t epochs, batch, seed, threads, every, resume;
    int64_t patience; /* epochs; 0: no early stopping */
    int lr_auto;      /* 1: a range test sets lr */
    const char *lr_text;
    double lr, warmup /* epochs */, weight_decay, clip, smoothing;
    int64_t flip, shift, cutout; /* these and what follows: as in adj_augment */
    double jitter, mixup;
    double loss_scale;      /* fixed loss scale of f16; 0: dynamic */
    int64_t scale_interval; /* as in adj_loss_scale; 0: no dynamic loss scale */
    /* Settings of a checkpoint: steps of its schedule; its epochs. UNSET: no checkpoint. */
    int64_t begun_warmup, begun_period, begun_epochs;
} train_opts;

/* Reads the command line. Options that are not given stay NULL or UNSET and may be set by a
 * checkpoint. Returns CONTINUE or an exit status. */
enum { UNSET = -1, MAX_THREADS = 1024 };
int parse_train(train_opts *o, int argc, char **argv);

#endif
