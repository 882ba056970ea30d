/* adjoint_nn.h - layers, losses, optimizers, schedules and small models, written on adjoint.h
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
/* Uniform with he's variance: within sqrt(6 / fan_in) of 0. */
ADJ_API adj_init adj_init_he_uniform(int64_t fan_in);
/* Normal with glorot's variance. */
ADJ_API adj_init adj_init_glorot_normal(int64_t fan_in, int64_t fan_out);
/* Uniform with glorot's variance: within sqrt(6 / (fan_in + fan_out)) of 0. */
ADJ_API adj_init adj_init_glorot_uniform(int64_t fan_in, int64_t fan_out);
/* Uniform in [low, high). */
ADJ_API adj_init adj_init_uniform(double low, double high);
/* Normal with that mean and standard deviation. */
ADJ_API adj_init adj_init_normal(double mean, double deviation);
/* Every element is value. */
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
    int64_t filters;      /* of conv2d and separable_conv2d: required */
    int64_t kernel[2];    /* 0: 3x3 */
    int64_t stride[2];    /* 0: 1x1 */
    int64_t dilation[2];  /* 0: 1x1 */
    adj_padding padding;  /* ADJ_VALID, unless it is set */
    int64_t pad[2];       /* with ADJ_EXPLICIT: on both sides of height, width */
    int64_t groups;       /* conv2d; 0: 1 */
    int64_t multiplier;   /* depthwise and separable; 0: 1 */
    int no_bias;          /* leaves name/b out */
    adj_format format;    /* of x and the result */
    adj_weight_init init; /* of the filters; ADJ_HE_NORMAL, unless it is set */
    adj_init given;       /* with ADJ_INIT_GIVEN */
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

/* The transposed convolution: "name/w" [kh, kw, filters, c], "name/b" [filters]. The result's
 * height is h*stride for SAME, else (h - 1)*stride + (kh - 1)*dilation + 1 less the pads on both
 * sides; its width likewise. groups and multiplier are not used. */
ADJ_API adj_node *adj_layer_conv2d_transpose(adj_node *x, const char *name,
                                             const adj_conv_layer *options);

/* For adj_layer_dense. */
typedef struct {
    int no_bias;          /* leaves name/b out */
    adj_weight_init init; /* of name/w; ADJ_HE_NORMAL, unless it is set */
    adj_init given;       /* with ADJ_INIT_GIVEN */
} adj_dense_layer;

/* x of any rank from 1 is read as [n, features], row-major. "name/w" [features, units], "name/b"
 * [units]. options may be NULL. */
ADJ_API adj_node *adj_layer_dense(adj_node *x, const char *name, int64_t units,
                                  const adj_dense_layer *options);

/* adj_prelu with a slope for each channel: "name/slope" [c], 0.25 at first. */
ADJ_API adj_node *adj_layer_prelu(adj_node *x, const char *name, adj_format format);

/* Layers without parameters, for NHWC images; adj_max_pool and its like take other windows and
 * formats. The maximum of each size x size window; windows do not overlap, and pixels that fill
 * none are left out. */
ADJ_API adj_node *adj_layer_max_pool(adj_node *x, int64_t size);
/* The mean of each such window. */
ADJ_API adj_node *adj_layer_avg_pool(adj_node *x, int64_t size);
/* The mean over height and width: [n, c]. */
ADJ_API adj_node *adj_layer_global_avg_pool(adj_node *x);
/* Repeats each pixel factor times along height and width. */
ADJ_API adj_node *adj_layer_upsample(adj_node *x, int64_t factor);

/* For adj_layer_batch_norm. */
typedef struct {
    int training;      /* statistics of the batch, else the running ones */
    double momentum;   /* weight of the new in the running statistics; 0: 0.1 */
    double epsilon;    /* 0: 1e-5 */
    adj_format format; /* of x and the result */
} adj_batch_norm_layer;

/* x of rank 4. "name/gamma" and "name/beta" [c]; the state "name/running" [2, c] holds mean and
 * unbiased variance (0 and 1 at first). In training its next value is added to the graph's
 * adj_layer_updates. */
ADJ_API adj_node *adj_layer_batch_norm(adj_node *x, const char *name,
                                       const adj_batch_norm_layer *options);

/* For adj_layer_group_norm and adj_layer_layer_norm. */
typedef struct {
    double epsilon;    /* 0: 1e-5 */
    adj_format format; /* of x and the result; layer norm: NHWC */
} adj_norm_layer;

/* Normalizes each of the groups of channels of each image. x has rank 2 to 5; groups divides its
 * channels. "name/gamma" and "name/beta" [c]. options may be NULL. */
ADJ_API adj_node *adj_layer_group_norm(adj_node *x, const char *name, int64_t groups,
                                       const adj_norm_layer *options);
/* Normalizes over the last axis, the channels of a pixel. "name/gamma" and "name/beta" [c]. options
 * may be NULL. */
ADJ_API adj_node *adj_layer_layer_norm(adj_node *x, const char *name,
                                       const adj_norm_layer *options);

/* Training: zeroes a fraction rate of x and scales the rest. The masks follow from the name and the
 * i32 state "dropout/step", which all layers of a graph share and whose next value is added to
 * adj_layer_updates. Not training: x itself. */
ADJ_API adj_node *adj_layer_dropout(adj_node *x, const char *name, double rate, int training);

/* ---- losses ---- */

/* How the losses of rows or elements become one. */
typedef enum {
    ADJ_LOSS_MEAN, /* their weighted mean; 0 if all weights are 0 */
    ADJ_LOSS_SUM,  /* their weighted sum */
    ADJ_LOSS_EACH  /* each by itself, times its weight */
} adj_loss_reduction;

/* All zero: the mean, all weights 1. */
typedef struct {
    double smoothing; /* softmax: 0 to 1: smoothing / k of each label goes to every class */
    /* A float type; NULL: all 1. softmax: [k], the weight of each row is that of its class, as in
     * PyTorch's CrossEntropyLoss(weight=..., label_smoothing=...). The other losses: of elements,
     * broadcast to the prediction. */
    adj_node *weights;
    /* softmax, mixup: mix * the loss of labels + (1 - mix) * that of other_labels, shaped as
     * labels; mix: a scalar of any float type. Both are usually inputs, filled from
     * adj_loader_batch. NULL: none. */
    adj_node *other_labels, *mix;
    adj_loss_reduction reduction; /* ADJ_LOSS_MEAN, unless it is set; with mix only that */
    int ignored_label; /* softmax: > 0: rows of this label are left out, as those of -1; 0: only
                          those of -1 are */
    double delta;      /* Huber: where the parabola becomes a line; 0: 1 */
} adj_loss_opts;

/* Losses are f32 for half predictions, labeled "loss". options may be NULL.
 * The cross-entropy of softmax(logits): logits [.., k], labels i32 [..], each 0 to k - 1 or -1:
 * that row is left out. With logits [n, h, w, k] every pixel is a row, as in segmentation. */
ADJ_API adj_node *adj_loss_softmax(adj_node *logits, adj_node *labels,
                                   const adj_loss_opts *options);
/* The squared error (prediction - target)^2. target has the prediction's shape and type. */
ADJ_API adj_node *adj_loss_mse(adj_node *prediction, adj_node *target,
                               const adj_loss_opts *options);
/* The absolute error |prediction - target|; its gradient is 0 at 0. */
ADJ_API adj_node *adj_loss_l1(adj_node *prediction, adj_node *target, const adj_loss_opts *options);
/* Huber's loss of the error e: e^2 / 2 where |e| <= delta, else delta (|e| - delta / 2). */
ADJ_API adj_node *adj_loss_huber(adj_node *prediction, adj_node *target,
                                 const adj_loss_opts *options);
/* The binary cross-entropy of sigmoid(logits) for targets from 0 to 1, without overflow. Every
 * element is a decision of its own: several classes may be right (multi-label). */
ADJ_API adj_node *adj_loss_binary(adj_node *logits, adj_node *target, const adj_loss_opts *options);

/* ---- optimizers: updates for everything trainable that a loss depends on ---- */

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

/* Gradient descent with or without momentum; Adam; Adam with decoupled weight decay; RMSprop. */
typedef enum { ADJ_SGD, ADJ_ADAM, ADJ_ADAMW, ADJ_RMSPROP } adj_optimizer_kind;

/* A loss scale for f16, whose small gradients vanish and whose large ones overflow: gradients are
 * computed that many times as large and divided again where they are used. It follows them: a step
 * with a gradient that is infinite or NaN is skipped whole - parameters and the optimizer's states
 * stay, bit by bit; what layers update, running statistics and dropout's steps, goes on - and the
 * scale is multiplied by backoff; after interval steps in a row without one it is multiplied by
 * growth. It stays between 2^-24 and 2^126. The rule and the defaults are those of PyTorch's
 * torch.cuda.amp.GradScaler, which is not bounded below; Micikevicius et al., "Mixed Precision
 * Training" (2018), has the idea. Powers of two round nothing. The states are the scalars
 * "loss_scale", "loss_scale/good_steps" (since it changed) and "loss_scale/skipped" (steps, of
 * all), of the loss's type, f32 for half types. */
typedef struct {
    double initial;   /* 0: 65536 */
    double growth;    /* at least 1; 0: 2 */
    double backoff;   /* below 1; 0: 0.5 */
    int64_t interval; /* 0: 2000; a short training may want a shorter one */
} adj_loss_scale;

/* Settings of the parameters whose names match, as one of PyTorch's parameter groups. */
typedef struct {
    const char *pattern; /* as of adj_name_matches, "bn?" */
    double weight_decay; /* in place of the optimizer's; 0: none */
    double rate;         /* factor of the learning rate; 0: 1 */
} adj_param_group;

/* PyTorch's conventions. All zero: plain gradient descent. */
typedef struct {
    adj_optimizer_kind kind; /* ADJ_SGD, unless it is set */
    double lr; /* the learning rate at first; adj_set_lr sets another; 0: 0.01, of others than SGD
                  0.001 */
    double momentum;              /* SGD, RMSprop; the state is "conv1/w/momentum" */
    int nesterov;                 /* SGD's momentum is looked ahead; needs one, else ADJ_EARG */
    double beta1, beta2, epsilon; /* Adam; 0: 0.9, 0.999, 1e-8; states ".../adam_m", ".../adam_v"
                                     and the i32 scalar "adam/step". RMSprop: beta2, 0: 0.99, and
                                     epsilon; state ".../rmsprop_v" */
    double weight_decay;          /* joins the gradient; AdamW: decoupled */
    double clip_norm; /* > 0: gradients are scaled by clip_norm / max(global norm, clip_norm) */
    /* The parameters that are trained, n_trained of them, read during the call; NULL:
     * adj_trainable(loss). Others are frozen: they have no gradient, no decay and no state. */
    adj_node *const *trained;
    int n_trained; /* how many; 0 with trained NULL: all */
    /* Read during the call; NULL: gradients have their own size. For ADJ_PRECISION_F16, with
     * adj_exec_opts.loss_scale = 1: one scale is enough. */
    const adj_loss_scale *loss_scale;
    /* A parameter has the settings of the first group that matches its name; without one, the
     * optimizer's. clip_norm is over the gradients of all groups. The list is read during the call.
     * A group that matches no trained parameter is an error. NULL: no groups. */
    const adj_param_group *groups;
    int n_groups; /* how many */
} adj_optimizer_opts;

/* Adds gradients, next values and, if the graph has none, the scalar input "learning_rate", f64 for
 * an f64 loss and else f32. The updates are the graph's and hold none of the layers': join
 * adj_layer_updates, or call adj_training_updates. NULL on error. options may be NULL. */
ADJ_API adj_updates *adj_optimizer(adj_node *loss, const adj_optimizer_opts *options);
/* Plain gradient descent: w := w - lr dw. In this and the next two, lr 0 is the default. */
ADJ_API adj_updates *adj_sgd(adj_node *loss, double lr);
/* Adam with its usual constants. */
ADJ_API adj_updates *adj_adam(adj_node *loss, double lr);
/* Adam with its usual constants and a decoupled weight decay of 0.01. */
ADJ_API adj_updates *adj_adamw(adj_node *loss, double lr);
/* adj_optimizer's and adj_layer_updates (running statistics, dropout steps): all that a training
 * step assigns. Running statistics of a layer whose parameters are all frozen stay; such a layer
 * still normalizes by what it was built for, in training the batch (adj_model_opts.freeze). */
ADJ_API adj_updates *adj_training_updates(adj_node *loss, const adj_optimizer_opts *options);
/* Sets the learning rate of the runs that follow. ADJ_EARG: the graph has no optimizer. */
ADJ_API adj_status adj_set_lr(adj_exec *e, double lr);

/* True if the node is a state that only training has: an optimizer's, its loss scale's, or
 * dropout's step count. */
ADJ_API int adj_is_training_state(const adj_node *n);

/* "sgd", "momentum" (0.9), "nesterov" (0.9), "rmsprop", "adam", "adamw" (decay 0.01): sets *options
 * whole.
 * ADJ_EARG if there is no such name. */
ADJ_API adj_status adj_optimizer_from_name(const char *name, adj_optimizer_opts *options);
/* The i-th of those names; NULL past the last. */
ADJ_API const char *adj_optimizer_name_at(int i);
/* The one of those names that has this kind, momentum and nesterov; NULL if none has. */
ADJ_API const char *adj_optimizer_name(const adj_optimizer_opts *options);

/* ---- learning rate schedules: pure functions of the step ---- */

/* A rate's course, s being the steps since the warm-up. */
typedef enum {
    ADJ_SCHEDULE_CONSTANT,    /* base */
    ADJ_SCHEDULE_STEP,        /* base * factor^floor(s/period) */
    ADJ_SCHEDULE_EXPONENTIAL, /* base * factor^(s/period) */
    ADJ_SCHEDULE_COSINE       /* from base down to last at step total, half a cosine */
} adj_schedule_kind;

/* s counts from the end of the warm-up, during which the rate is base * (step+1) / warmup. */
typedef struct {
    adj_schedule_kind kind; /* ADJ_SCHEDULE_CONSTANT, unless it is set */
    double base;            /* the rate at first, after the warm-up */
    int64_t warmup;         /* steps; 0: none */
    int64_t total;  /* COSINE: all steps, the warm-up's too; later steps have the rate last */
    int64_t period; /* STEP, EXPONENTIAL; below 1: 1 */
    double factor;  /* STEP, EXPONENTIAL; 0: 0.1 */
    double last;    /* COSINE: the rate at the end */
} adj_schedule;

/* The rate of step 0, 1, 2, ...; a negative step counts as 0. 0 without a schedule. */
ADJ_API double adj_schedule_rate(const adj_schedule *schedule, int64_t step);
/* "constant", "step", "exponential", "cosine". ADJ_EARG if there is no such name. */
ADJ_API adj_status adj_schedule_from_name(const char *name, adj_schedule_kind *kind);
ADJ_API const char *adj_schedule_name_at(int i); /* the i-th of those; NULL past the last */

/* ---- learning rate range test: a rate for a net of which nothing is known ---- */

/* The most steps that a test has. */
enum { ADJ_RANGE_STEPS = 300 };
/* A test's curve, all zero at first. An executor that is used for nothing else is trained with
 * rising rates, and its parameters are thrown away:
 *     adj_range_test t = {0};
 *     do
 *         loss = train_step(adj_range_test_rate(&t));
 *     while (adj_range_test_add(&t, loss));
 *     lr = adj_range_test_choose(&t);
 * Smith, "Cyclical Learning Rates for Training Neural Networks" (2015), section 3.3. */
typedef struct {
    int n;                          /* steps done; the arrays have an entry for each */
    double lr[ADJ_RANGE_STEPS];     /* of the step */
    double loss[ADJ_RANGE_STEPS];   /* at that rate */
    double smooth[ADJ_RANGE_STEPS]; /* the loss as a moving average */
} adj_range_test;

/* The rate of the next step: from 1e-6 to 10, exponentially. */
ADJ_API double adj_range_test_rate(const adj_range_test *t);
/* Notes the loss of the step at that rate. 0 if this was the last: there are no more, or the loss
 * is not finite, or its average more than four times the least one. */
ADJ_API int adj_range_test_add(adj_range_test *t, double loss);
/* The rate to train with, a tenth of the one at which the average was least (fastai's choice). 0:
 * it never fell. */
ADJ_API double adj_range_test_choose(const adj_range_test *t);

/* ---- recipes: the settings that a model trains well with ---- */

/* How a model is trained. The built-in ones' were found on 8,000 images of MNIST in ten epochs: a
 * start for other data. */
typedef struct {
    adj_optimizer_opts optimizer; /* with weight decay and clipping */
    double lr;                    /* the schedule's base: the highest rate */
    adj_schedule_kind schedule;   /* of the rate after the warm-up */
    double warmup;                /* epochs in which the rate rises to lr */
    double smoothing;             /* of the labels, as in adj_loss_softmax_smoothed */
    int64_t batch;                /* images in a step */
    int64_t shift;   /* augmentation: images are moved by up to so many pixels along each axis */
    const char *why; /* one line */
} adj_recipe;

/* ---- models ---- */

/* All zero: what the model's table entry says. Evaluation unless training is set: build one graph
 * for each and share the parameters with adj_copy_params. */
typedef struct {
    int64_t batch; /* 0: 1 */
    /* of the images; 0: the model's */
    int64_t height, width, channels;
    adj_dtype dtype;   /* of the computation */
    adj_format format; /* of the images */
    int training;      /* batch statistics and dropout */
    int64_t classes;   /* 0: the model's */
    double multiplier; /* mobilenet_v1's width multiplier; 0: 0.25 */
    /* Patterns (adj_name_matches) of parameters that will be frozen; NULL: none. In training a
     * batch norm whose gamma and beta match uses its running statistics, and they stay. */
    const char *freeze;
} adj_model_opts;

/* A model: how it is built, and for which images it was made. */
typedef struct {
    const char *name, *summary; /* as in adjoint models; constant strings */
    /* images -> logits [n, classes]. Reads format, training, classes, multiplier and freeze of the
     * options (NULL: all zero); the sizes are x's. */
    adj_node *(*build)(adj_node *x, const adj_model_opts *options);
    int64_t height, width, channels, classes; /* of the data it was published on */
    const adj_recipe *recipe;                 /* NULL: a plain convolutional net's */
} adj_model;

/* images -> logits [n, classes], as adj_model.build; NULL options: all zero. Two 5x5 convolutions
 * of 32 and 64 filters with relu and max pooling, a hidden layer of 128. */
ADJ_API adj_node *adj_model_lenet(adj_node *x, const adj_model_opts *options);
/* LeCun's, with tanh and average pools; images below 32x32 are padded with zeros. */
ADJ_API adj_node *adj_model_lenet5(adj_node *x, const adj_model_opts *options);
/* MLPerf Tiny's for CIFAR-10. */
ADJ_API adj_node *adj_model_resnet8(adj_node *x, const adj_model_opts *options);
/* He's for CIFAR-10: three stages of three blocks, 16, 32 and 64 filters, batch norm. */
ADJ_API adj_node *adj_model_resnet20(adj_node *x, const adj_model_opts *options);
/* Howard's: 13 depthwise separable blocks with batch norm, as wide as multiplier says. */
ADJ_API adj_node *adj_model_mobilenet_v1(adj_node *x, const adj_model_opts *options);
/* Six 3x3 convolutions of 64 to 256 filters with relu and max pooling, a hidden layer of 256. */
ADJ_API adj_node *adj_model_vgg6(adj_node *x, const adj_model_opts *options);
/* MLPerf Tiny's for speech commands: 49x10 features. */
ADJ_API adj_node *adj_model_ds_cnn(adj_node *x, const adj_model_opts *options);

/* The i-th model; NULL past the last. */
ADJ_API const adj_model *adj_model_at(int i);
/* By name; NULL if there is none. "mobilenet_v1_0.5_128" is mobilenet_v1 with multiplier 0.5 on
 * images of 128x128: both are stored in *options (may be NULL), the rest of which is kept. */
ADJ_API const adj_model *adj_model_find(const char *name, adj_model_opts *options);
/* The model whose name is near this one, for "did you mean". NULL: none is, or name is. */
ADJ_API const adj_model *adj_model_nearest(const char *name);
/* Adds the input "images" ([batch, h, w, c] or [batch, c, h, w], f64 for dtype f64, else f32) and
 * the model on it, cast to dtype; the result, the logits, is labeled "logits". */
ADJ_API adj_node *adj_model_logits(adj_graph *g, const adj_model *model,
                                   const adj_model_opts *options);
/* The model's recipe (model NULL: a plain convolutional net's) for a run of so many epochs: the
 * warm-up takes at most a quarter of them. */
ADJ_API adj_recipe adj_recipe_for(const adj_model *model, int64_t epochs);
/* The rates of such a run with so many steps in an epoch: a warm-up, then the schedule down to 0
 * (cosine), or to a tenth after each third of the rest (step; exponential, little by little). */
ADJ_API adj_schedule adj_recipe_schedule(const adj_recipe *recipe, int64_t epochs, int64_t steps);

#ifdef __cplusplus
}
#endif
#endif
