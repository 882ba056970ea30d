/* train.h - the settings of a training run: from the command line, a checkpoint, or the model's
 * recipe; --lr auto. */
#ifndef CLI_TRAIN_H
#define CLI_TRAIN_H

#include <jansson.h>
#include <stdint.h>

#include "data.h"
#include "ops/nn/model_list.h"
#include "ops/nn/range_test.h"
#include "train/internal.h"

typedef struct {
    data_opts data;
    const char *model, *optimizer, *backend, *log, *out, *checkpoint, *tune;
    const char *precision, *math; /* "f32", "bf16" or "f16"; "exact" or "fast" */
    const char *weights, *head;   /* to begin with; "keep" or "new" */
    const char *map;              /* naming scheme of the weights; NULL: adjoint's */
    const char *freeze;           /* patterns of parameters; "none" */
    const char *schedule;         /* "constant", "step", ... */
    const char *class_weights;    /* "none", "balanced" or a list, see below */
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

/* ---- all settings (settings.c) ---- */

typedef struct {
    const char *key;   /* in a checkpoint */
    const char *usual; /* default; NULL: from the recipe, or none */
    option o;          /* option name without dashes, for messages */
    freedom may_change;
    const char *before; /* value in older files, which lack it; NULL: every file has it */
} setting;

enum { SETTINGS = 36 };
/* Lists the settings in a checkpoint: first the tool's, then those of adj_trainer_save. */
void list_settings(train_opts *o, setting list[SETTINGS]);
/* True if the command line has the option. */
int is_set(const option *o);

/* Returns options without any setting: NULL, UNSET or 0. */
train_opts unset_train_opts(void);
/* Sets all unset options to their defaults. */
void set_train_defaults(train_opts *o);
/* Returns the settings as a recipe, without those of the optimizer if its name is unknown. */
adj_recipe recipe_of(const train_opts *o);

enum { AUGMENTATION_TEXT = 120 };
/* "shift 2, flip, cutout 8, jitter 0.2, mixup 0.4"; "none". */
const char *augmentation_text(const train_opts *o, char text[AUGMENTATION_TEXT]);

/* ---- --class-weights: weight of each class in the loss ---- */

/* "none": *weights is NULL. "balanced": n / (classes * images of the class), as by scikit-learn's
 * compute_class_weight, so that all classes together count alike; 0 for a class without images.
 * "1,2.5,1": a number for each class. To be freed. CONTINUE, or an exit status after a complaint.
 */
int read_class_weights(const char *text, const adj_dataset *d, float **weights);

/* ---- --lr auto: a rate by a range test ---- */

/* Trains a separate net with the options, except the rate, on d in the order of the run's first
 * epochs. *lr is first the default rate, then the rate to train with, *t the curve. If the test
 * goes through the data more than once, the loss of images seen before says little about rates: *lr
 * is then at most the default and at least a tenth of it. CONTINUE, or an exit status after a
 * complaint. */
int find_rate(const adj_net *net, const adj_dataset *d, const adj_fit_opts *options,
              adj_range_test *t, double *lr);
void say_range(const adj_range_test *t, double lr);
/* Returns the result of the test for the log. */
json_t *json_range(const adj_range_test *t, double lr);

#endif
