/* adjoint_fit.h - a net of one's own or a built-in one, trained, kept in a file, and used, in a
 * call each.
 *
 * A net is a function from images to logits. adj_fit builds it for training, for evaluation and for
 * prediction, runs the epochs and leaves a predictor, which can be saved, loaded and asked. The
 * same in steps, for loops of one's own, is adj_trainer. Part of libadjoint_io; nothing here
 * prints, and nothing is global. */
#ifndef ADJOINT_FIT_H
#define ADJOINT_FIT_H

#include "adjoint_data.h"
#include "adjoint_io.h"
#include "adjoint_nn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- nets ---- */

/* {.name = "resnet8"} is a built-in model; {.build = f} is one of your own. */
typedef struct {
    const char *name; /* of your own: kept in its weights files, and compared when one is loaded;
                         NULL: "net". Without build: as adj_model_find takes it */
    /* images [batch, h, w, c], f32, normalized -> logits [batch, classes] of any float type.
     * training: batch norms and dropout do what they do in training. adj_fit refuses a net whose
     * parameters depend on it. */
    adj_node *(*build)(adj_node *images, int64_t classes, int training, void *user);
    void *user;        /* given to build */
    int64_t h, w, c;   /* of images; 0: the built-in model's, else the data's. Images of another
                          size are resized, or refused, as adj_dataset.resize says */
    int64_t classes;   /* 0: the data's */
    double multiplier; /* as in adj_model_opts */
} adj_net;

/* ---- predictors: what is left of a training ---- */

/* A net with its parameters, and what its images and classes are like. Used by one thread at a
 * time. */
typedef struct adj_predictor adj_predictor;

/* All zero is the default. */
typedef struct {
    const char *backend;             /* this and what follows: as in adj_exec_opts */
    int threads;                     /* 0: OpenMP's */
    adj_precision precision;         /* ADJ_PRECISION_AS_BUILT: the card's, that of the training */
    adj_math math;                   /* ADJ_MATH_EXACT: the card's, that of the training */
    int tune;                        /* candidates are timed first */
    const char *tune_file;           /* keeps what was timed */
    double tune_seconds;             /* as in adj_fit_opts: evaluation alone is timed for */
    const adj_weights_opts *weights; /* how the file is read; NULL: as adj_weights_load does */
} adj_predictor_opts;

/* Reads a weights file and its model card. net may be NULL when the card names a built-in model;
 * what the net leaves open (sizes, classes) is the card's; of a file without a card, as other
 * programs write, a built-in model has as many channels as its first filter takes and as many
 * classes as its last layer has outputs there. A net
 * of another name, size or number of classes than the card's is refused (ADJ_ESHAPE). Strings of
 * net and options are copied, but for net->user. options may be NULL. On failure *p is NULL. */
ADJ_API adj_status adj_predictor_load(const char *path, const adj_net *net,
                                      const adj_predictor_opts *options, adj_predictor **p,
                                      adj_error *error);
/* Replaces the file by one with the parameters and the card; metadata are added to it. path NULL as
 * in adj_tensors_write. */
ADJ_API adj_status adj_predictor_save(adj_predictor *p, const char *path, int n_metadata,
                                      const adj_metadata metadata[], adj_error *error);
/* NULL: nothing. */
ADJ_API void adj_predictor_free(adj_predictor *p);

/* What it takes and tells: class names belong to p. */
ADJ_API const adj_model_card *adj_predictor_card(const adj_predictor *p);

/* Images that are computed at a time. */
enum { ADJ_PREDICT_BATCH = 32 };
/* The probabilities [n, classes] of n images [n, h, w, c] in pixel units (0 .. 255) of the card's
 * size, normalized as the card says, else as they are; ADJ_EARG for a net of normalized data; n may
 * be anything from 0. The first image is planned for by itself, many are computed ADJ_PREDICT_BATCH
 * at a time: plans are made when they are first needed. A result that is not finite is ADJ_EARG
 * with the first such image; the probabilities of the others are computed nevertheless. */
ADJ_API adj_status adj_predict(adj_predictor *p, int64_t n, const uint8_t pixels[],
                               float probabilities[], adj_error *error);
/* Predicts from images in floats: pixels, or for a net of normalized data values as in training. */
ADJ_API adj_status adj_predict_floats(adj_predictor *p, int64_t n, const float pixels[],
                                      float probabilities[], adj_error *error);

/* Computes the node of that name, such as "conv1" or "logits", for n images as adj_predict_floats
 * takes them. Sets *shape to the node's shape for one image, such as [1, 14, 14, 32], and fills
 * value [n, ...], one image after the other; value NULL: sets *shape alone. Names are those of
 * layers and of adj_label. ADJ_EARG with a list of the names for any other. The first call for a
 * name plans a net. */
ADJ_API adj_status adj_predictor_fetch(adj_predictor *p, const char *name, int64_t n,
                                       const float pixels[], adj_shape *shape, float value[],
                                       adj_error *error);
/* Computes the gradient of a class's logit with respect to the pixels of an image: pixels and
 * gradient are [h, w, c] of the card's size, in pixel units. ADJ_EARG if there is no such class. */
ADJ_API adj_status adj_predictor_gradient(adj_predictor *p, int64_t label, const float pixels[],
                                          float gradient[], adj_error *error);

/* How good a net is on a data set. */
typedef struct {
    double loss, accuracy; /* mean cross-entropy; 0 .. 1 */
    int64_t right, count;  /* images */
} adj_score;
/* The whole data set, normalized as the card says. Without a mean and a deviation in the card
 * pixels are taken as they are (0 .. 255), as adj_predict takes them. ADJ_ESHAPE for pixels with a
 * net of normalized data, and the other way round; ADJ_EARG for a loss that is not finite.
 * confusion: NULL, or [classes, classes], to whose row label, column prediction 1 is added for each
 * image. */
ADJ_API adj_status adj_predictor_evaluate(adj_predictor *p, const adj_dataset *d, adj_score *score,
                                          int64_t confusion[], adj_error *error);

/* ---- processes that train together ---- */

/* As libadjoint_mpi has them (adj_mpi_ranks), or another library's. All of them call the same
 * functions in the same order. What fails says which process is lost. */
typedef struct {
    int rank, size;                            /* which one this is, from 0; how many there are */
    const struct adj_backend *const *backends; /* for adj_exec_debug.backends: with all_reduce */
    /* all [size][bytes] becomes what each has in mine [bytes]. */
    adj_status (*all_gather)(void *group, const void *mine, size_t bytes, void *all,
                             adj_error *error);
    /* data becomes what process 0 has there. */
    adj_status (*broadcast)(void *group, void *data, size_t bytes, adj_error *error);
    double (*waited)(void *group); /* seconds, ever, in which this one waited for others */
    /* Seconds, ever, in which a reduction of this one was under way. NULL: not known. */
    double (*traveled)(void *group);
    /* From rank 0 to rank 1: seconds that an empty message takes, and bits a second of a large one.
     * NULL: cannot be measured. */
    adj_status (*measure_link)(void *group, double *latency, double *bits_per_second,
                               adj_error *error);
    /* Answers those that ask whether this one is there: called where it computes for long without
     * them. NULL: nobody asks. */
    void (*answer)(void *group);
    void *group; /* handed to all of them */
} adj_ranks;

/* ---- training ---- */

/* What a rank's steps took, in seconds. */
typedef struct {
    double seconds; /* altogether */
    double data;    /* waiting for batches */
    double others;  /* waiting for other ranks */
} adj_rank_times;

/* Handed to the callbacks. */
typedef struct {
    int64_t epoch, epochs;     /* the one at work, counted from 1; how many there will be */
    int64_t batch, accumulate; /* images in a batch, batches in a step: as cut to the data */
    int64_t step, steps;       /* of it: done, and all */
    int64_t images;            /* that counted in it so far */
    double lr;                 /* of the last step */
    double step_loss;          /* of the last step, before its update */
    double loss, accuracy;     /* means over these images; accuracy 0 .. 1 */
    double seconds;            /* of its steps, in this process */
    double images_per_second;  /* of these steps */
    double waited;             /* seconds of them in which a step waited for its batch */
    /* At the end of an epoch, else all zero: of the held-out data. */
    adj_score held_out;
    int64_t best_epoch;   /* by its held-out accuracy so far, the first of equals; 0: none yet */
    double best_accuracy; /* of it */
    int unsaved;          /* the checkpoint could not be written, which ended the training */
    double loss_scale;    /* of the next step (adj_loss_scale); 0: there is none */
    /* Steps until now, in all epochs, that were skipped because a gradient was not finite. */
    int64_t skipped;
    int n_rank;                       /* processes that train together; 1: this one alone */
    const adj_rank_times *rank_times; /* [n_rank]: of this epoch, as of the last step */
} adj_fit_progress;

/* All zero is the default. What is pointed to outlives the training. */
typedef struct {
    int64_t epochs; /* 0: 10 */
    int64_t batch;  /* images in a step; 0: 64. Cut to the training images, rounded up to a multiple
                       of shards. A checkpoint has the number as cut, and resuming compares it */
    int64_t seed;   /* of initial values, order and augmentation; not negative */
    const adj_optimizer_opts *optimizer; /* NULL: gradient descent with momentum 0.9. Its list
                                            trained is not read: freeze makes it */
    double lr;                           /* 0: 0.01; 0.05 without momentum; Adam 0.001 */
    /* NULL: half a cosine from lr to 0. In one that is given, base 0 means lr, and total 0 all
     * steps. */
    const adj_schedule *schedule;
    double smoothing;           /* of the labels */
    const float *class_weights; /* as many as classes, as in adj_loss_opts; NULL: all 1 */
    adj_augment augment;        /* of training images */
    int loaders;        /* threads that prepare batches ahead of the steps; 0: one; -1: none */
    const char *freeze; /* as in adj_model_opts; NULL or "none": no parameter */

    const char *backend;     /* this and what follows: as in adj_exec_opts */
    int threads;             /* 0: OpenMP's */
    adj_precision precision; /* of training steps and evaluation */
    /* Of F16: a fixed one, as in adj_exec_opts. 0: one that follows the gradients, by
     * optimizer->loss_scale or, where that is NULL, by PyTorch's defaults (adj_loss_scale). */
    double loss_scale;
    adj_math math;         /* exact or fast */
    int tune;              /* candidates are timed first */
    const char *tune_file; /* keeps what was timed */
    /* 0: as long as a plan needs, up to 5 s each. > 0: that many seconds at most for all plans, and
     * no longer than 2 % of what they are going to take. */
    double tune_seconds;
    int recompute; /* as adj_exec_opts.recompute: 1 is less memory for more time */

    const char *checkpoint;   /* a file with all that going on needs, replaced after each epoch and
                                 when the training stops; NULL: none */
    int64_t checkpoint_every; /* > 0: also after so many steps of an epoch */
    /* adj_fit goes on from the checkpoint, which must be one of a training on the same data with
     * the same options; the result is the same to the bit as if it had never stopped. Kernels are
     * the checkpoint's: nothing is timed again. A training
     * that came to its end is prolonged by larger epochs (with another lr, if that is wanted): a
     * constant rate and a cosine then begin anew, warm-up included, and a cosine is as long as what
     * was added; a rate that falls by the period (STEP, EXPONENTIAL) goes on falling by the same
     * one, as if it had been planned so. */
    int resume;
    const char *best; /* weights file of the epoch with the best held-out accuracy; NULL: none */
    /* > 0: stops after so many epochs without a better one, counted anew where the schedule of a
     * prolonged training begins anew. May be another when it goes on from a checkpoint. */
    int64_t patience;
    /* Processes that train together, each calling the same functions; NULL: this one alone. The
     * batch is that of all. All have the same data and options, which is checked. Rank 0 writes the
     * files and times kernels. What fails in one has to end the others (adj_mpi_abort); but what is
     * wrong with a file that is written, and a wish to stop, all are told. */
    const adj_ranks *ranks;
    /* The batch is cut into so many shards; 0: one for each rank. A rank computes several, one
     * after the other. With the same shards and selection of kernels - none is timed then - and the
     * same threads or same_bits, every number of ranks that leaves each a power of two of them, or
     * 1, gives the same bits. */
    int64_t shards;
    int same_bits;         /* 1: the same bits for any number of threads, as in adj_exec_opts */
    int64_t accumulate;    /* a step takes the gradients of so many batches, in the memory of one;
                              0: 1. At most the batches of an epoch */
    int64_t compare_every; /* steps after which ranks compare their parameters; 0: after epochs */
    size_t bucket_bytes;   /* as in adj_data_parallel_opts */
    /* Batch norms take the statistics of a whole step, of all its shards; a rank then needs the
     * memory of all of its own. As in adj_data_parallel_opts. */
    int sync_batch_norm;
    int n_metadata;               /* added to checkpoints, under keys of the caller's own */
    const adj_metadata *metadata; /* n_metadata of them */

    /* After a step and after an epoch; not zero: stops there. NULL: not called. */
    int (*on_step)(void *user, const adj_fit_progress *progress);
    int (*on_epoch)(void *user, const adj_fit_progress *progress); /* the same */
    void *user;                                                    /* handed to both */
} adj_fit_opts;

/* Trains the net on train. After each epoch it is evaluated on held_out, by which the best epoch is
 * told: the validation part, or, where there is none, the test part, whose accuracy is then no
 * longer an independent one; NULL: it is not evaluated, and there is no best. *p has the parameters
 * of the last step; it is there (and is the caller's) also after a failure during training, such as
 * a full disk, NULL if it could not begin. A loss that is not finite is ADJ_EARG, and so are 50
 * steps in a row that are skipped because their gradients are not. Refused before the first step: a
 * net whose parameters have other names or shapes when it is not built for training (dropout's and
 * the optimizer's states aside), names that are not UTF-8, files that cannot be written. options
 * may be NULL. */
ADJ_API adj_status adj_fit(const adj_net *net, const adj_dataset *train,
                           const adj_dataset *held_out, const adj_fit_opts *options,
                           adj_predictor **p, adj_error *error);

/* ---- the same in steps ---- */

/* adj_fit is adj_trainer_new, adj_trainer_resume if that is asked for, and adj_trainer_run; which
 * is adj_trainer_step up to the end of each epoch, adj_trainer_end_epoch, and the files. */
typedef struct adj_trainer adj_trainer;

/* On failure *t is NULL. */
ADJ_API adj_status adj_trainer_new(const adj_net *net, const adj_dataset *train,
                                   const adj_dataset *held_out, const adj_fit_opts *options,
                                   adj_trainer **t, adj_error *error);
/* NULL: nothing. */
ADJ_API void adj_trainer_free(adj_trainer *t);
/* Parameters to begin with. options may be NULL. */
ADJ_API adj_status adj_trainer_load(adj_trainer *t, const char *path,
                                    const adj_weights_opts *options, adj_error *error);

/* Writes a checkpoint of the training so far; path NULL as in adj_tensors_write. */
ADJ_API adj_status adj_trainer_save(adj_trainer *t, const char *path, adj_error *error);
/* Goes on from a checkpoint of the same training (adj_fit_opts.resume). */
ADJ_API adj_status adj_trainer_resume(adj_trainer *t, const char *path, adj_error *error);

/* One step, which must be left in the epoch. */
ADJ_API adj_status adj_trainer_step(adj_trainer *t, adj_error *error);
/* Evaluates; writes the best weights if these are; the next step is the next epoch's first. */
ADJ_API adj_status adj_trainer_end_epoch(adj_trainer *t, adj_error *error);
/* All that is left, or until a callback or the patience stops it: with callbacks and checkpoint. */
ADJ_API adj_status adj_trainer_run(adj_trainer *t, adj_error *error);
/* 1: all epochs are done, or the patience is at its end. */
ADJ_API int adj_trainer_is_done(const adj_trainer *t);

/* As the next callback would get it. After adj_trainer_end_epoch: of the epoch that ended. */
ADJ_API adj_fit_progress adj_trainer_progress(const adj_trainer *t);
/* With the parameters as they are; it is the trainer's. NULL when out of memory. */
ADJ_API adj_predictor *adj_trainer_predictor(adj_trainer *t, adj_error *error);
/* The executor of training steps and the graph that it was made from: to look at. A run of one's
 * own repeats the last step, and its update: what is trained then is no longer what adj_fit gives.
 */
ADJ_API adj_exec *adj_trainer_exec(const adj_trainer *t);
/* The loss of a training step: a node of the trainer's graph. */
ADJ_API adj_node *adj_trainer_loss(const adj_trainer *t);
/* Parameters that freeze keeps as they are. */
ADJ_API int adj_trainer_frozen(const adj_trainer *t);
/* What adj_exec_warning says of its plans: "" or one line. */
ADJ_API const char *adj_trainer_warning(const adj_trainer *t);

#ifdef __cplusplus
}
#endif
#endif
