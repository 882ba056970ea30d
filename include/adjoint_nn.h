/* adjoint_nn.h - layers, losses, optimisers, schedules and small models, written on adjoint.h
 * alone.
 *
 * A layer is a builder that makes its parameters as well: adj_layer_conv2d(x, "conv1", &options)
 * adds "conv1/w" and "conv1/b" and labels its result "conv1". Everything else is as in adjoint.h:
 * NULL operands give NULL silently, the graph keeps the first error, option structs may be all zero
 * (and a pointer to them NULL) unless a field says otherwise.
 *
 * Element types. The results have x's type. Parameters have it too, but for f16 and bf16 they are
 * kept in f32 and cast where they are used: training in a half type needs nothing else. */
#ifndef ADJOINT_NN_H
#define ADJOINT_NN_H

#include "adjoint.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- initial values ---- */

/* Normal with mean 0 and variance 2/fan_in (he) or 2/(fan_in + fan_out) (glorot), or uniform with
 * the same variance. A fan below 1 counts as 1. */
ADJ_API adj_init adj_init_he_normal(int64_t fan_in);
ADJ_API adj_init adj_init_he_uniform(int64_t fan_in);
ADJ_API adj_init adj_init_glorot_normal(int64_t fan_in, int64_t fan_out);
ADJ_API adj_init adj_init_glorot_uniform(int64_t fan_in, int64_t fan_out);
ADJ_API adj_init adj_init_uniform(double low, double high);
ADJ_API adj_init adj_init_normal(double mean, double deviation);
ADJ_API adj_init adj_init_constant(double value);

/* How a layer, which knows its fans, fills its weights. Biases start at 0. */
typedef enum {
    ADJ_HE_NORMAL,
    ADJ_HE_UNIFORM,
    ADJ_GLOROT_NORMAL,
    ADJ_GLOROT_UNIFORM,
    ADJ_INIT_GIVEN /* the option struct's `given` */
} adj_weight_init;

/* ---- layers ---- */

/* For the three convolution layers. x is [n,h,w,c] or [n,c,h,w]. Pairs are {height, width}; a
 * second entry of 0 means as the first. */
typedef struct {
    int64_t filters;     /* of conv2d and separable_conv2d: required */
    int64_t kernel[2];   /* 0: 3x3 */
    int64_t stride[2];   /* 0: 1x1 */
    int64_t dilation[2]; /* 0: 1x1 */
    adj_padding padding;
    int64_t pad[2];     /* with ADJ_EXPLICIT: on both sides of height, width */
    int64_t groups;     /* conv2d; 0: 1 */
    int64_t multiplier; /* depthwise and separable; 0: 1 */
    int no_bias;
    adj_format format;
    adj_weight_init init;
    adj_init given;
} adj_conv_layer;

/* "name/w" [kh, kw, c/groups, filters], "name/b" [filters]. */
ADJ_API adj_node *adj_layer_conv2d(adj_node *x, const char *name, const adj_conv_layer *options);
/* "name/w" [kh, kw, c, multiplier], "name/b" [c*multiplier]. */
ADJ_API adj_node *adj_layer_depthwise_conv2d(adj_node *x, const char *name,
                                             const adj_conv_layer *options);
/* "name/depthwise" [kh, kw, c, multiplier], "name/pointwise" [1, 1, c*multiplier, filters],
 * "name/b" [filters]. */
ADJ_API adj_node *adj_layer_separable_conv2d(adj_node *x, const char *name,
                                             const adj_conv_layer *options);

typedef struct {
    int64_t units; /* required */
    int no_bias;
    adj_weight_init init;
    adj_init given;
} adj_dense_layer;

/* x of any rank from 1 is read as [n, features], row-major. "name/w" [features, units], "name/b"
 * [units]. */
ADJ_API adj_node *adj_layer_dense_with(adj_node *x, const char *name,
                                       const adj_dense_layer *options);
ADJ_API adj_node *adj_layer_dense(adj_node *x, const char *name, int64_t units);

typedef struct {
    int training;    /* statistics of the batch, else the running ones */
    double momentum; /* weight of the new in the running statistics; 0: 0.1 */
    double epsilon;  /* 0: 1e-5 */
    adj_format format;
} adj_batch_norm_layer;

/* x of rank 4. "name/gamma" and "name/beta" [c]; the state "name/running" [2, c] holds mean and
 * unbiased variance (0 and 1 at first). In training its next value is added to the graph's
 * adj_layer_updates. */
ADJ_API adj_node *adj_layer_batch_norm(adj_node *x, const char *name,
                                       const adj_batch_norm_layer *options);

/* Training: zeroes a fraction rate of x and scales the rest. The masks follow from the name and the
 * i32 state "dropout/step", which all layers of a graph share and whose next value is added to
 * adj_layer_updates. Not training: x itself. */
ADJ_API adj_node *adj_layer_dropout(adj_node *x, const char *name, double rate, int training);

/* ---- losses ---- */

/* The mean cross-entropy over the rows whose label is not -1; labels i32 [n]. A scalar, f32 for
 * half logits. */
ADJ_API adj_node *adj_loss_softmax(adj_node *logits, adj_node *labels);
ADJ_API adj_node *adj_loss_softmax_smoothed(adj_node *logits, adj_node *labels, double smoothing);

/* All zero: adj_loss_softmax. They go together as they like. */
typedef struct {
    double smoothing; /* 0 .. 1: s/k of each label goes to every class */
    /* [k], a float type: the mean is weighted by the weight of each row's class, as by PyTorch's
     * CrossEntropyLoss(weight=..., label_smoothing=...); 0 if nothing counts. NULL: all 1. */
    adj_node *weights;
    /* mixup: mix * the loss of labels + (1 - mix) * that of other_labels, i32 [n]; mix: a scalar of
     * any float type. Both are usually inputs, filled from adj_loader_batch. NULL: none. */
    adj_node *other_labels, *mix;
} adj_loss_opts;

/* The scalar is f32 for half logits. options may be NULL. */
ADJ_API adj_node *adj_loss_softmax_with(adj_node *logits, adj_node *labels,
                                        const adj_loss_opts *options);

/* ---- optimisers: updates for everything trainable that a loss depends on ---- */

/* The trainable parameters that y depends on other than through adj_stop_gradient, in the order of
 * their creation: writes at most max of them (params may be NULL if max is 0) and returns how many
 * there are; -1 when out of memory. */
ADJ_API int adj_trainable(const adj_node *y, int max, adj_node *params[]);
/* The same without those whose names match the patterns: what is left to train of a net whose other
 * parameters are frozen. */
ADJ_API int adj_trainable_except(const adj_node *y, const char *patterns, int max,
                                 adj_node *params[]);
/* Whether one of the patterns, separated by commas, matches the whole name: * stands for any
 * characters, slashes too, ? for one. NULL and "" match nothing. */
ADJ_API int adj_name_matches(const char *patterns, const char *name);
/* The number of elements in them. */
ADJ_API int64_t adj_trainable_elems(const adj_node *y);

typedef enum { ADJ_SGD, ADJ_ADAM, ADJ_ADAMW } adj_optimiser_kind;

/* PyTorch's conventions. All zero: plain gradient descent. */
typedef struct {
    adj_optimiser_kind kind;
    double momentum; /* SGD; the state is "conv1/w/momentum" */
    int nesterov;
    double beta1, beta2, epsilon; /* Adam; 0: 0.9, 0.999, 1e-8; states ".../adam_m", ".../adam_v"
                                     and the i32 scalar "adam/step" */
    double weight_decay;          /* SGD, Adam: joins the gradient; AdamW: decoupled */
    double clip_norm; /* > 0: gradients are scaled by clip_norm / max(global norm, clip_norm) */
    /* The parameters that are trained, n_trained of them, read during the call; NULL:
     * adj_trainable(loss). Others are frozen: they have no gradient, no decay and no state. */
    adj_node *const *trained;
    int n_trained;
} adj_optimiser_opts;

/* Adds gradients and next values; lr is a scalar input of any float type. The updates are the
 * graph's and hold none of the layers': join adj_layer_updates, or call adj_training_updates. NULL
 * on error. options may be NULL. */
ADJ_API adj_updates *adj_optimiser(adj_node *loss, adj_node *lr, const adj_optimiser_opts *options);
ADJ_API adj_updates *adj_sgd(adj_node *loss, adj_node *lr);
ADJ_API adj_updates *adj_adam(adj_node *loss, adj_node *lr);
/* weight decay 0.01 */
ADJ_API adj_updates *adj_adamw(adj_node *loss, adj_node *lr);
/* adj_optimiser's and adj_layer_updates (running statistics, dropout steps): all that a training
 * step assigns. Running statistics of a layer whose parameters are all frozen stay; such a layer
 * still normalises by what it was built for, in training the batch (adj_model_opts.freeze). */
ADJ_API adj_updates *adj_training_updates(adj_node *loss, adj_node *lr,
                                          const adj_optimiser_opts *options);

/* Whether it is a state that only training has, 0 at first: an optimiser's, or the steps that
 * dropout counts. */
ADJ_API int adj_is_training_state(const adj_node *n);

/* "sgd", "momentum" (0.9), "nesterov" (0.9), "adam", "adamw" (decay 0.01): sets *options whole.
 * ADJ_EARG if there is no such name. */
ADJ_API adj_status adj_optimiser_from_name(const char *name, adj_optimiser_opts *options);
/* The i-th of those names; NULL past the last. */
ADJ_API const char *adj_optimiser_name_at(int i);

/* ---- learning rate schedules: pure functions of the step ---- */

typedef enum {
    ADJ_SCHEDULE_CONSTANT,
    ADJ_SCHEDULE_STEP,        /* base * factor^floor(s/period) */
    ADJ_SCHEDULE_EXPONENTIAL, /* base * factor^(s/period) */
    ADJ_SCHEDULE_COSINE       /* from base down to last at step total, half a cosine */
} adj_schedule_kind;

/* s counts from the end of the warm-up, during which the rate is base * (step+1) / warmup. */
typedef struct {
    adj_schedule_kind kind;
    double base;
    int64_t warmup; /* steps; 0: none */
    int64_t total;  /* COSINE: all steps, the warm-up's too; later steps have the rate last */
    int64_t period; /* STEP, EXPONENTIAL; below 1: 1 */
    double factor;  /* STEP, EXPONENTIAL; 0: 0.1 */
    double last;    /* COSINE */
} adj_schedule;

/* The rate of step 0, 1, 2, ...; a negative step counts as 0. 0 without a schedule. */
ADJ_API double adj_schedule_rate(const adj_schedule *schedule, int64_t step);
/* "constant", "step", "exponential", "cosine". ADJ_EARG if there is no such name. */
ADJ_API adj_status adj_schedule_from_name(const char *name, adj_schedule_kind *kind);
ADJ_API const char *adj_schedule_name_at(int i); /* the i-th of those; NULL past the last */

/* ---- models ---- */

/* All zero: what the model's table entry says. Evaluation unless training is set: build one graph
 * for each and share the parameters with adj_copy_params. */
typedef struct {
    int64_t batch;                   /* 0: 1 */
    int64_t height, width, channels; /* of the images; 0: the model's */
    adj_dtype dtype;                 /* of the computation */
    adj_format format;
    int training;      /* batch statistics and dropout */
    int64_t classes;   /* 0: the model's */
    double multiplier; /* mobilenet_v1's width multiplier; 0: 0.25 */
    /* Patterns (adj_name_matches) of parameters that will be frozen; NULL: none. In training a
     * batch norm whose gamma and beta match uses its running statistics, and they stay. */
    const char *freeze;
} adj_model_opts;

typedef struct {
    const char *name, *summary;
    /* images -> logits [n, classes]. Reads format, training, classes, multiplier and freeze of the
     * options (NULL: all zero); the sizes are x's. */
    adj_node *(*build)(adj_node *x, const adj_model_opts *options);
    int64_t height, width, channels, classes;
} adj_model;

ADJ_API adj_node *adj_model_lenet(adj_node *x, const adj_model_opts *options);
/* LeCun's, with tanh and average pools; images below 32x32 are padded with zeros. */
ADJ_API adj_node *adj_model_lenet5(adj_node *x, const adj_model_opts *options);
/* MLPerf Tiny's for CIFAR-10. */
ADJ_API adj_node *adj_model_resnet8(adj_node *x, const adj_model_opts *options);
ADJ_API adj_node *adj_model_resnet20(adj_node *x, const adj_model_opts *options);
ADJ_API adj_node *adj_model_mobilenet_v1(adj_node *x, const adj_model_opts *options);
ADJ_API adj_node *adj_model_vgg6(adj_node *x, const adj_model_opts *options);
/* MLPerf Tiny's for speech commands: 49x10 features. */
ADJ_API adj_node *adj_model_ds_cnn(adj_node *x, const adj_model_opts *options);

/* The i-th model; NULL past the last. */
ADJ_API const adj_model *adj_model_at(int i);
/* By name; NULL if there is none. "mobilenet_v1_0.5_128" is mobilenet_v1 with multiplier 0.5 on
 * images of 128x128: both are stored in *options (may be NULL), the rest of which is kept. */
ADJ_API const adj_model *adj_model_find(const char *name, adj_model_opts *options);
/* The model whose name is most like this one, for "did you mean". */
ADJ_API const adj_model *adj_model_nearest(const char *name);
/* Adds the input "images" ([batch, h, w, c] or [batch, c, h, w], f64 for dtype f64, else f32) and
 * the model on it, cast to dtype; the result, the logits, is labelled "logits". */
ADJ_API adj_node *adj_model_logits(adj_graph *g, const adj_model *model,
                                   const adj_model_opts *options);

#ifdef __cplusplus
}
#endif
#endif
