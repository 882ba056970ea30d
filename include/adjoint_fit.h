/* adjoint_fit.h - trains, saves, loads and applies a net, your own or a built-in one, with one call
 * each.
 *
 * A net is a function from images to logits. adj_fit builds it for training, for evaluation and for
 * prediction, runs the epochs and returns a predictor, which can be saved and loaded. adj_trainer
 * runs the same training step by step, for training loops of your own. Part of libadjoint_io;
 * nothing here prints, and nothing is global. */
#ifndef ADJOINT_FIT_H
#define ADJOINT_FIT_H

#include "adjoint_data.h"
#include "adjoint_io.h"
#include "adjoint_nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- nets ---- */

/* A net: {.name = "resnet8"} is a built-in model, {.build = f} one of your own. */
typedef struct {
    const char *name; /* with build: name stored in weights files and compared when one is loaded;
                         NULL: "net". Without build: name of a model, as for adj_model_find */
    /* Builds the net: normalized f32 images [batch, h, w, c] -> logits [batch, classes] of any
     * float type. training is 1 for training steps, in which batch norms use batch statistics and
     * dropout is active. The parameters must not depend on it. */
    adj_node *(*build)(adj_node *images, int64_t classes, int training, void *user);
    /* Builds the mean loss from the net's outputs and the float targets of the data, both [batch,
     * classes]: adj_loss_mse, adj_loss_l1, adj_loss_huber, adj_loss_binary or a function that calls
     * one with options->weights, which exclude padding. The score is then the loss. NULL: softmax
     * cross-entropy with the labels of the data. */
    adj_node *(*loss)(adj_node *outputs, adj_node *targets, const adj_loss_opts *options);
    void *user; /* handed to build */
    /* Size of the images (0: the built-in model's, else the data's; images of another size are
     * resized or refused by adj_dataset.resize). Number of classes or outputs (0: the data's).
     * multiplier. freeze: patterns of parameters that training does not change (NULL or "none":
     * none). The other fields are ignored. */
    adj_model_opts options;
} adj_net;

/* ---- predictors: trained nets ---- */

/* A predictor: a net with its parameters and its model card (images and classes). Only one thread
 * at a time may use it. */
typedef struct adj_predictor adj_predictor;

/* Options of a predictor. All zero is the default. */
typedef struct {
    /* Options of all plans. precision ADJ_PRECISION_AS_BUILT and math ADJ_MATH_EXACT are the
     * card's, those of the training. tune_seconds limits the tuning of the evaluation plan alone.
     * fetch and updates are ignored. What its pointers refer to must outlive the predictor, except
     * backend and tune_file. */
    adj_exec_opts exec;
    /* Options for reading the file; NULL: defaults of adj_weights_load. */
    const adj_weights_opts *weights;
} adj_predictor_opts;

/* Creates a predictor from a weights file and its model card. net may be NULL if the card names a
 * built-in model. Sizes and classes that net leaves at 0 are the card's; for a file without a card,
 * from another program, the channels of a built-in model follow from its first filter and its
 * classes from its last layer. A net with another name, size or number of classes than the card's
 * is refused (ADJ_ESHAPE). Strings of net and options are copied; net->user is not. options may be
 * NULL. On failure *p is NULL. */
ADJ_API adj_status adj_predictor_load(const char *path, const adj_net *net,
                                      const adj_predictor_opts *options, adj_predictor **p,
                                      adj_error *error);
/* Writes a weights file with the parameters, the card and the given metadata, replacing the file.
 * path NULL: only checks, as in adj_tensors_write. ADJ_EARG for a key of the card or one given
 * twice. */
ADJ_API adj_status adj_predictor_save(adj_predictor *p, const char *path, int n_metadata,
                                      const adj_metadata metadata[], adj_error *error);
/* Frees the predictor; NULL is allowed. */
ADJ_API void adj_predictor_free(adj_predictor *p);

/* Returns the model card: the images that the net accepts and its classes. It belongs to p. */
ADJ_API const adj_model_card *adj_predictor_card(const adj_predictor *p);

/* Images computed at a time. */
enum { ADJ_PREDICT_BATCH = 32 };
/* Computes the probabilities [n, classes] (with adj_loss_binary as adj_net.loss, those of each
 * decision; with other losses, the outputs) of n >= 0 images [n, h, w, c] of the card's size in
 * pixel units (0 .. 255), which are normalized by the card's mean and deviation, if any. ADJ_EARG
 * for a net trained on normalized data. A single image has its own plan, more are computed
 * ADJ_PREDICT_BATCH at a time; plans are made when first needed. If a probability is not finite the
 * call returns ADJ_EARG, and the message has the number of the first such image; the others are
 * computed. */
ADJ_API adj_status adj_predict(adj_predictor *p, int64_t n, const uint8_t pixels[],
                               float probabilities[], adj_error *error);
/* Computes probabilities like adj_predict from images in floats: pixels, or for a net trained on
 * normalized data such values. */
ADJ_API adj_status adj_predict_floats(adj_predictor *p, int64_t n, const float pixels[],
                                      float probabilities[], adj_error *error);

/* Computes the node of that name, a layer's name or a label such as "conv1" or "logits", for n
 * images as in adj_predict_floats. Sets *shape to the node's shape for one image, such as [1, 14,
 * 14, 32], and fills value [n, ...] image by image; value NULL: sets only *shape. ADJ_EARG, with a
 * list of the names, for an unknown name. The first call for a name makes a plan. */
ADJ_API adj_status adj_predictor_fetch(adj_predictor *p, const char *name, int64_t n,
                                       const float pixels[], adj_shape *shape, float value[],
                                       adj_error *error);
/* Computes the gradient of a class's logit with respect to the pixels of an image: pixels and
 * gradient are [h, w, c] of the card's size, in pixel units. ADJ_EARG if there is no such class. */
ADJ_API adj_status adj_predictor_gradient(adj_predictor *p, int64_t label, const float pixels[],
                                          float gradient[], adj_error *error);

/* Score of a net on a data set. */
typedef struct {
    double loss, accuracy; /* mean loss; fraction of right predictions, 0 .. 1 */
    /* Images predicted right; images evaluated. With adj_loss_binary right counts decisions, count
     * * classes in all: sigmoid above 0.5 for a target above 0.5. With other losses of adj_net
     * right and accuracy are 0. */
    int64_t right, count;
} adj_score;
/* Evaluates a whole data set, normalized by the card's mean and deviation, without which pixels are
 * used unchanged (0 .. 255). ADJ_ESHAPE if the data are pixels and the net was trained on
 * normalized data, or the reverse; ADJ_EARG for a loss that is not finite. confusion is NULL or a
 * matrix [classes, classes] to which each image adds 1 in row label, column prediction; NULL for a
 * net with a loss of its own. */
ADJ_API adj_status adj_predictor_evaluate(adj_predictor *p, const adj_dataset *d, adj_score *score,
                                          int64_t confusion[], adj_error *error);

/* ---- processes that train together ---- */

/* A group of processes that train together, from libadjoint_mpi (adj_mpi_ranks) or another library.
 * All processes call the same functions in the same order. A message names the process that was
 * lost. */
typedef struct {
    int rank, size; /* rank of this process, from 0; number of processes */
    /* Backends with all_reduce, for adj_exec_opts.backends. */
    const struct adj_backend *const *backends;
    /* Gathers mine [bytes] of every process into all [size][bytes]. */
    adj_status (*all_gather)(void *group, const void *mine, size_t bytes, void *all,
                             adj_error *error);
    /* Copies data of process 0 to data of every process. */
    adj_status (*broadcast)(void *group, void *data, size_t bytes, adj_error *error);
    /* Responds to other processes that check whether this one is alive; called during long
     * computations without communication. NULL: not needed. */
    void (*answer)(void *group);
    void *group;                         /* handed to these functions */
    const struct adj_ranks_meter *meter; /* for the library's own group; else NULL */
} adj_ranks;

/* ---- training ---- */

/* Progress of a training, handed to the callbacks. */
typedef struct {
    int64_t epoch, epochs; /* current epoch, from 1; number of epochs */
    int64_t step, steps;   /* steps done in this epoch; steps of an epoch */
    double lr;             /* learning rate of the last step */
    double step_loss;      /* loss of the last step, before its update */
    double seconds;        /* seconds of the epoch's steps, in this process */
    adj_score train;       /* score on the images of this epoch's steps, without padding */
    adj_score held_out;    /* score on the held-out data; all zero except at the end of an epoch */
    int64_t best_epoch; /* the epoch with the best held-out accuracy so far, with adj_net.loss the
                           least held-out loss; of equals the first; 0: none yet */
    double best;        /* its held-out accuracy or loss */
    double loss_scale;  /* loss scale of the next step (adj_loss_scale); 0: none */
    int64_t skipped;    /* total number of steps skipped because a gradient was not finite */
} adj_fit_progress;

/* Options of a training. All zero is the default. Everything that pointers refer to must outlive
 * the training. */
typedef struct {
    int64_t epochs;     /* number of epochs; 0: 10 */
    int64_t batch;      /* images in a batch; 0: 64. Limited to the number of training images, then
                           rounded up to a multiple of shards. A checkpoint stores the resulting number,
                           and resuming compares it */
    int64_t accumulate; /* gradient accumulation: number of batches in a step, computed in the
                           memory of one; 0: 1. At most the batches of an epoch */
    int loaders; /* threads that prepare batches ahead of the steps; 0: one thread; -1: none */
    /* Optimizer, learning rate and gradient clipping. kind ADJ_OPTIMIZER_DEFAULT with momentum 0:
     * gradient descent with momentum 0.9. lr 0: 0.01, for gradient descent without momentum 0.05,
     * for other kinds 0.001. trained is ignored: adj_net.options.freeze selects the parameters. */
    adj_optimizer_opts optimizer;
    /* Learning rate schedule. NULL: cosine from optimizer.lr to 0. In a given one base 0 means
     * optimizer.lr and total 0 all steps. */
    const adj_schedule *schedule;
    adj_augment augment; /* augmentation of training images */
    /* Softmax cross-entropy; all zero with adj_net.loss. */
    struct {
        double smoothing;           /* label smoothing, 0 to 1 */
        const float *class_weights; /* weight of each class, as in adj_loss_opts; NULL: all 1 */
    } loss;
    /* Options of all plans. seed is also that of order and augmentation, at most 9e15. loss_scale 0
     * is a dynamic loss scale for ADJ_PRECISION_F16, with the settings of optimizer.loss_scale or,
     * if that is NULL, PyTorch's defaults (adj_loss_scale). tune_seconds > 0 limits the tuning of
     * all plans together, and to 2 % of the estimated time of all their runs. fetch and
     * updates are ignored. What its pointers refer to must outlive the predictor, except backend
     * and tune_file. */
    adj_exec_opts exec;
    /* Files, and early stopping. */
    struct {
        const char *path; /* file with the state of the training, replaced after each epoch and when
                             the training stops; NULL: none */
        int64_t every;    /* > 0: number of steps within an epoch after which it is written too */
        /* 1: adj_fit resumes from the checkpoint, which must be from a training on the same data
         * with the same options. The result is bit-identical to that of an uninterrupted training;
         * kernels are those of the checkpoint, without new measurements. A larger value of epochs
         * continues a finished training, optionally with another optimizer.lr: constant and cosine
         * schedules then start again, warm-up included, over the added epochs; STEP and EXPONENTIAL
         * continue with the same period. */
        int resume;
        const char *best; /* weights file, other than path, written for the epoch with the best
                             held-out accuracy; NULL: none */
        /* > 0: early stopping after this many epochs without improvement of the held-out accuracy.
         * The count starts again when a finished training is continued with a schedule that starts
         * again. May change on resume. */
        int64_t patience;
        /* Number of metadata entries added to checkpoints, whose keys are not those of a checkpoint
         * or model card. */
        int n_metadata;
        const adj_metadata *metadata; /* the metadata entries */
    } checkpoint;
    /* Shards of a batch, and processes. */
    struct {
        /* Processes that train together, each of which calls the same functions; NULL: this process
         * alone. batch counts the images of all processes. All must have the same data and options,
         * which is checked. Rank 0 writes the files and measures kernels. After a failure in one
         * process the caller must end the others (adj_mpi_abort), except that errors in writing
         * files and stops by a callback reach all processes. */
        const adj_ranks *ranks;
        /* Shards of the batch. For a given number of shards, 1 rank and every number of ranks that
         * gives each a power of two of shards have bit-identical results, if threads are equal or
         * exec.same_bits is 1, and without tuning. */
        adj_data_parallel_opts parallel;
        int64_t compare_every; /* number of steps after which ranks compare their parameters; 0:
                                  after each epoch */
    } distributed;
    /* Callbacks. A result other than 0 stops the training. NULL: not called. */
    struct {
        int (*step)(void *user, const adj_fit_progress *progress);  /* called after each step */
        int (*epoch)(void *user, const adj_fit_progress *progress); /* called after each epoch */
        void *user;                                                 /* handed to both */
    } on;
} adj_fit_opts;

/* Trains the net on train. After each epoch it is evaluated on held_out, which selects the best
 * epoch: the validation split or, without one, the test split, whose accuracy is then no longer
 * independent. held_out NULL: no evaluation and no best epoch. *p has the parameters of the last
 * step and belongs to the caller. It is set also after a failure during training, such as a full
 * disk, and is NULL if training could not start. ADJ_EARG for a loss that is not finite and after
 * 50 consecutive steps skipped because of gradients that are not finite. Checked before the first
 * step: names and shapes of the parameters must be the same for training and evaluation (except
 * states of dropout and the optimizer), names must be UTF-8, files must be writable. options may be
 * NULL. */
ADJ_API adj_status adj_fit(const adj_net *net, const adj_dataset *train,
                           const adj_dataset *held_out, const adj_fit_opts *options,
                           adj_predictor **p, adj_error *error);

/* ---- training step by step ---- */

/* A trainer. adj_fit calls adj_trainer_new and adj_trainer_run, which calls adj_trainer_step for
 * all steps of an epoch, then adj_trainer_end_epoch, and writes the files. */
typedef struct adj_trainer adj_trainer;

/* Creates a trainer with the arguments of adj_fit, and resumes from options.checkpoint if its field
 * resume is set. On failure *t is NULL. */
ADJ_API adj_status adj_trainer_new(const adj_net *net, const adj_dataset *train,
                                   const adj_dataset *held_out, const adj_fit_opts *options,
                                   adj_trainer **t, adj_error *error);
/* Frees the trainer; NULL is allowed. */
ADJ_API void adj_trainer_free(adj_trainer *t);
/* Loads initial parameters from a weights file. options may be NULL. */
ADJ_API adj_status adj_trainer_load(adj_trainer *t, const char *path,
                                    const adj_weights_opts *options, adj_error *error);

/* Runs one training step. ADJ_EARG after the last step of an epoch, until adj_trainer_end_epoch. */
ADJ_API adj_status adj_trainer_step(adj_trainer *t, adj_error *error);
/* Ends an epoch: evaluates on the held-out data, writes the best weights if the accuracy is the
 * best so far, and starts the next epoch. */
ADJ_API adj_status adj_trainer_end_epoch(adj_trainer *t, adj_error *error);
/* Runs the remaining epochs with callbacks and checkpoints, until a callback or the patience stops
 * it. */
ADJ_API adj_status adj_trainer_run(adj_trainer *t, adj_error *error);
/* Returns the progress as the next callback would get it; after adj_trainer_end_epoch that of the
 * ended epoch. */
ADJ_API adj_fit_progress adj_trainer_progress(const adj_trainer *t);
/* Returns a predictor with the current parameters, or NULL on failure. It belongs to the trainer.
 */
ADJ_API adj_predictor *adj_trainer_predictor(adj_trainer *t, adj_error *error);
#ifdef __cplusplus
}
#endif
#endif
