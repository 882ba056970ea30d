/* model_list.h - the list of built-in models, and recipes: recommended training settings of a
 * model (both in models.c). */
#ifndef NN_MODEL_LIST_H
#define NN_MODEL_LIST_H

#include "adjoint_nn.h"

/* A recipe: training settings of a model. Those of the built-in models are tuned for 8,000 images
 * of MNIST and ten epochs; use them as a starting point for other data. */
typedef struct {
    adj_optimizer_opts optimizer; /* optimizer, weight decay and clipping */
    double lr;                    /* the schedule's base, which is the highest rate */
    adj_schedule_kind schedule;   /* schedule of the rate after the warm-up */
    double warmup;                /* warm-up in epochs, in which the rate rises to lr */
    double smoothing;             /* label smoothing, as in adj_loss_opts */
    int64_t batch;                /* images in a batch */
    int64_t shift;                /* augmentation: maximum shift in pixels, as in adj_augment */
    const char *why;              /* reason of these settings, one line */
} adj_recipe;

/* An entry of `adjoint models`. */
typedef struct {
    adj_model model;
    const char *summary; /* one line */
} adj_listed_model;

/* Returns the i-th built-in model, or NULL past the last. */
ADJ_API const adj_listed_model *adj_model_at(int i);
/* Returns the model whose name is most similar, for "did you mean" messages, or NULL if none is
 * similar or name is NULL. */
ADJ_API const adj_model *adj_model_nearest(const char *name);

/* Returns the model's recipe (model NULL or not built in: that of a plain convolutional net) for a
 * training of this many epochs: the warm-up is limited to a quarter of them. */
ADJ_API adj_recipe adj_recipe_for(const adj_model *model, int64_t epochs);
/* Returns the schedule of such a training with `steps` steps in an epoch: a warm-up, then a cosine
 * to 0, or a decay by a factor of 10 in each third of the remaining steps (step, exponential). */
ADJ_API adj_schedule adj_recipe_schedule(const adj_recipe *recipe, int64_t epochs, int64_t steps);

#endif
