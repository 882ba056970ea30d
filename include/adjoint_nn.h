/* adjoint_nn.h - layers, losses, optimizers, schedules and small models, written on adjoint.h
 * alone.
 *
 * A layer is a builder that also creates its parameters: adj_layer_conv2d(x, "conv1", &options)
 * adds "conv1/w" and "conv1/b" and labels its result "conv1". Errors are handled as in adjoint.h:
 * NULL operands return NULL, and the graph records the first error. Option structs may be all zero,
 * and pointers to them NULL, unless a field says otherwise.
 *
 * Element types. Results and parameters have x's type, except that parameters for x of f16 or bf16
 * are stored in f32 and cast where they are used, so that training works in half types. */
#ifndef ADJOINT_NN_H
#define ADJOINT_NN_H

#include "adjoint.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- initial values ---- */

/* Uniform in [low, high). adj_param and adj_state fail with ADJ_EARG unless low <= high. */
ADJ_API adj_init adj_init_uniform(double low, double high);
/* Normal with that mean and standard deviation. adj_param and adj_state fail with ADJ_EARG unless
 * deviation >= 0. */
ADJ_API adj_init adj_init_normal(double mean, double deviation);
/* Every element is value. */
ADJ_API adj_init adj_init_constant(double value);

/* Initialization whose variance keeps activations about equally large in all layers: normal or
 * uniform, with the variance 2 / fan_in (He) or 2 / (fan_in + fan_out) (Glorot). */
typedef enum {
    ADJ_HE_NORMAL,
    ADJ_HE_UNIFORM,
    ADJ_GLOROT_NORMAL,
    ADJ_GLOROT_UNIFORM,
    ADJ_INIT_GIVEN /* the option struct's `given` */
} adj_weight_init;
/* Returns the initial values for these fans; a fan below 1 counts as 1. Layers compute the fans of
 * their weights, and their biases start at 0. */
ADJ_API adj_init adj_init_from_fans(adj_weight_init init, int64_t fan_in, int64_t fan_out);

/* ---- layers ---- */

/* Options of the convolution layers. x is [n,h,w,c] or [n,c,h,w]. Pairs are {height, width}; a
 * second entry of 0 equals the first. */
typedef struct {
    int64_t filters;      /* number of filters; required, except for depthwise */
    int64_t kernel[2];    /* size of the filter; 0: 3x3 */
    int64_t stride[2];    /* step of the filter; 0: 1x1 */
    int64_t dilation[2];  /* distance of the filter's elements; 0: 1x1 */
    adj_padding padding;  /* default: ADJ_VALID */
    int64_t pad[2];       /* with ADJ_EXPLICIT: zeros on each side along height, width */
    int64_t groups;       /* groups of channels, conv2d only; 0: 1 */
    int64_t multiplier;   /* results of a channel, for depthwise and separable; 0: 1 */
    int no_bias;          /* 1: without name/b */
    adj_format format;    /* format of x and the result */
    adj_weight_init init; /* initialization of the filters; default: ADJ_HE_NORMAL */
    adj_init given;       /* initial values with ADJ_INIT_GIVEN */
} adj_conv_layer;

/* A convolution with the parameters "name/w" [kh, kw, c/groups, filters] and "name/b" [filters]. */
ADJ_API adj_node *adj_layer_conv2d(adj_node *x, const char *name, const adj_conv_layer *options);
/* A depthwise convolution with "name/w" [kh, kw, c, multiplier] and "name/b" [c*multiplier]. */
ADJ_API adj_node *adj_layer_depthwise_conv2d(adj_node *x, const char *name,
                                             const adj_conv_layer *options);
/* A depthwise, then a 1x1 convolution with "name/depthwise" [kh, kw, c, multiplier],
 * "name/pointwise" [1, 1, c*multiplier, filters] and "name/b" [filters]. */
ADJ_API adj_node *adj_layer_separable_conv2d(adj_node *x, const char *name,
                                             const adj_conv_layer *options);

/* A transposed convolution with "name/w" [kh, kw, filters, c] and "name/b" [filters]. The height of
 * the result is h*stride for SAME, else (h - 1)*stride + (kh - 1)*dilation + 1 minus the padding on
 * both sides; the width likewise. groups and multiplier are ignored. */
ADJ_API adj_node *adj_layer_conv2d_transpose(adj_node *x, const char *name,
                                             const adj_conv_layer *options);

/* Options of adj_layer_dense. */
typedef struct {
    int no_bias;          /* 1: without name/b */
    adj_weight_init init; /* initialization of name/w; default: ADJ_HE_NORMAL */
    adj_init given;       /* initial values with ADJ_INIT_GIVEN */
} adj_dense_layer;

/* A dense layer with "name/w" [features, units] and "name/b" [units]. x of rank 1 or more is
 * reshaped to [n, features]. options may be NULL. */
ADJ_API adj_node *adj_layer_dense(adj_node *x, const char *name, int64_t units,
                                  const adj_dense_layer *options);

/* adj_prelu with a slope for each channel: "name/slope" [c], initially 0.25. */
ADJ_API adj_node *adj_layer_prelu(adj_node *x, const char *name, adj_format format);

/* The maximum of each size x size window of NHWC images. Windows do not overlap; rows and columns
 * that do not fill a window are ignored. adj_max_pool has other windows and formats. */
ADJ_API adj_node *adj_layer_max_pool(adj_node *x, int64_t size);
/* The mean of each size x size window of NHWC images, as in adj_layer_max_pool. */
ADJ_API adj_node *adj_layer_avg_pool(adj_node *x, int64_t size);
/* The mean over height and width of NHWC images: [n, c]. */
ADJ_API adj_node *adj_layer_global_avg_pool(adj_node *x);
/* Repeats each pixel of NHWC images factor times along height and width. */
ADJ_API adj_node *adj_layer_upsample(adj_node *x, int64_t factor);

/* Options of the normalizations. */
typedef struct {
    double epsilon;    /* added to the variance; 0: 1e-5 */
    adj_format format; /* format of x and the result; layer norm: only NHWC */
    int training;      /* batch norm. 1: statistics of the batch; 0: running statistics */
    double momentum;   /* batch norm: weight of the batch in the running statistics, 0 to 1, else
                          ADJ_EARG; 0: 0.1 */
} adj_norm_layer;

/* Batch normalization of x of rank 4 with "name/gamma" and "name/beta" [c] and the state
 * "name/running" [2, c]: running mean and unbiased variance, initially 0 and 1. In training its
 * next value is added to the graph's adj_layer_updates. */
ADJ_API adj_node *adj_layer_batch_norm(adj_node *x, const char *name,
                                       const adj_norm_layer *options);

/* Normalizes each of the groups of channels of each image. x has rank 2 to 5; groups divides its
 * channels. "name/gamma" and "name/beta" [c]. options may be NULL. */
ADJ_API adj_node *adj_layer_group_norm(adj_node *x, const char *name, int64_t groups,
                                       const adj_norm_layer *options);
/* Normalizes over the last axis, the channels of a pixel. "name/gamma" and "name/beta" [c]. options
 * may be NULL. */
ADJ_API adj_node *adj_layer_layer_norm(adj_node *x, const char *name,
                                       const adj_norm_layer *options);

/* Dropout: in training zeroes elements of x with probability rate and scales the others by
 * 1/(1-rate); else returns x. The masks follow from the name and the i32 state "dropout/step",
 * which all layers of a graph share and whose next value is added to adj_layer_updates. */
ADJ_API adj_node *adj_layer_dropout(adj_node *x, const char *name, double rate, int training);

/* ---- losses ---- */

/* Reduction of the losses of rows or elements. */
typedef enum {
    ADJ_LOSS_MEAN, /* their weighted mean; 0 if all weights are 0 */
    ADJ_LOSS_SUM,  /* their weighted sum */
    ADJ_LOSS_EACH  /* no reduction: each loss times its weight */
} adj_loss_reduction;

/* Options of a loss. All zero: the mean, all weights 1. */
typedef struct {
    double smoothing; /* softmax: label smoothing, 0 to 1: every class gets smoothing / k */
    /* Weights of any float type; NULL: all 1. softmax: [k], the weight of each class, as in
     * PyTorch's CrossEntropyLoss(weight=..., label_smoothing=...). Other losses: weights of
     * elements, broadcast to the prediction. */
    adj_node *weights;
    /* softmax, for mixup: the loss is mix * loss(labels) + (1 - mix) * loss(other_labels).
     * other_labels has the shape of labels, mix is a scalar of any float type; both are normally
     * inputs set from adj_loader_batch. NULL: no mixup. */
    adj_node *other_labels, *mix;
    adj_loss_reduction reduction; /* default: ADJ_LOSS_MEAN, the only one with mix */
    int ignored_label; /* softmax: > 0: rows with this label are ignored, like rows with -1; 0: only
                          rows with -1 */
    double delta;      /* Huber: |error| at which the parabola becomes linear; 0: 1 */
} adj_loss_opts;

/* The cross-entropy of softmax(logits) for logits [.., k] and labels i32 [..] from 0 to k - 1, or
 * -1 for rows that are ignored. With logits [n, h, w, k] every pixel is a row, as in segmentation.
 * This and the next losses are f32 for predictions of a half type and are labeled "loss"; options
 * may be NULL. */
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

/* ---- optimizers: updates of the trainable parameters that a loss depends on ---- */

/* Writes the trainable parameters that y depends on, except through adj_stop_gradient, in the order
 * of their creation: at most max of them (params may be NULL if max is 0). Parameters whose names
 * match the patterns `frozen` are left out. Patterns are separated by commas and match whole names:
 * * matches any characters, also slashes, ? one character; NULL and "" match nothing. Returns the
 * number of all of them; -1 when out of memory. */
ADJ_API int adj_trainable(const adj_node *y, const char *frozen, int max, adj_node *params[]);
/* Returns the number of elements of all trainable parameters that y depends on. */
ADJ_API int64_t adj_trainable_elems(const adj_node *y);

/* Kind of an optimizer. */
typedef enum {
    ADJ_OPTIMIZER_DEFAULT, /* ADJ_SGD; adj_fit then uses momentum 0.9 if momentum is 0 */
    ADJ_SGD,               /* gradient descent with or without momentum */
    ADJ_ADAM,
    ADJ_ADAMW, /* Adam with decoupled weight decay */
    ADJ_RMSPROP
} adj_optimizer_kind;

/* Dynamic loss scale for f16 (Micikevicius et al., "Mixed Precision Training", 2018): gradients are
 * computed multiplied by the scale, so that small ones do not vanish, and divided by it where they
 * are used. A step with an infinite or NaN gradient is skipped: parameters and states of the
 * optimizer do not change, while running statistics and dropout steps do; the scale is multiplied
 * by backoff. After interval consecutive steps without such a gradient it is multiplied by growth.
 * The scale stays between 2^-24 and 2^126. Rule and defaults are those of PyTorch's
 * torch.cuda.amp.GradScaler, which has no lower bound. Powers of two add no rounding. The states
 * are the scalars "loss_scale", "loss_scale/good_steps" (steps since the last change) and
 * "loss_scale/skipped" (total), of the loss's type, f32 for half types. Set interval for a short
 * training: the default is too large for one. */
typedef struct {
    double initial;   /* first scale; 0: 65536 */
    double growth;    /* factor of growth, at least 1; 0: 2 */
    double backoff;   /* factor after a skipped step, below 1; 0: 0.5 */
    int64_t interval; /* steps without a skipped one before the scale grows; 0: 2000 */
} adj_loss_scale;

/* Settings for the parameters whose names match, like a parameter group of PyTorch. */
typedef struct {
    const char *pattern; /* patterns as for adj_trainable, such as "bn?*" */
    double weight_decay; /* in place of the optimizer's, not negative; 0: none */
    double rate;         /* factor of the learning rate, 0 to FLT_MAX; 0: 1 */
} adj_param_group;

/* Options of an optimizer, with PyTorch's conventions. All zero: plain gradient descent. */
typedef struct {
    adj_optimizer_kind kind; /* kind of the optimizer */
    double lr; /* initial learning rate (see adj_set_lr); 0: 0.01, for other kinds than SGD 0.001 */
    double momentum;              /* SGD, RMSprop; the state is "conv1/w/momentum" */
    int nesterov;                 /* 1: Nesterov momentum; ADJ_EARG without momentum */
    double beta1, beta2, epsilon; /* Adam; 0: 0.9, 0.999, 1e-8; states ".../adam_m", ".../adam_v"
                                     and the i32 scalar "adam/step". RMSprop: beta2, 0: 0.99, and
                                     epsilon; state ".../rmsprop_v" */
    double weight_decay;          /* added to the gradient; AdamW: decoupled */
    double
        clip_norm; /* gradient clipping by global norm; > 0: all gradients are multiplied by
                      clip_norm / max(norm, clip_norm), norm being that of all gradients together */
    /* The n_trained parameters to train, read during the call; NULL: all. The
     * others are frozen: no gradient, no decay and no state. */
    adj_node *const *trained;
    int n_trained; /* number of parameters to train; 0 with trained NULL: all */
    /* Dynamic loss scale for ADJ_PRECISION_F16, to be used with adj_exec_opts.loss_scale = 1; read
     * during the call. NULL: none. */
    const adj_loss_scale *loss_scale;
    /* Parameter groups, read during the call; NULL: none. A parameter gets the settings of the
     * first group that matches its name, else the optimizer's. clip_norm covers the gradients of
     * all groups. A group that matches no trained parameter is an error. */
    const adj_param_group *groups;
    int n_groups; /* number of groups */
} adj_optimizer_opts;

/* Adds the gradients of the loss, the next values of the parameters and, if the graph has none, the
 * scalar input "learning_rate" (f64 for an f64 loss, else f32). Returns the updates, owned by the
 * graph, or NULL on error. They do not include adj_layer_updates: join them, or call
 * adj_training_updates. options may be NULL. */
ADJ_API adj_updates *adj_optimizer(adj_node *loss, const adj_optimizer_opts *options);
/* Plain gradient descent: w := w - lr dw. In this and the next two functions lr 0 is the default.
 */
ADJ_API adj_updates *adj_sgd(adj_node *loss, double lr);
/* Adam with beta1 0.9, beta2 0.999 and epsilon 1e-8. */
ADJ_API adj_updates *adj_adam(adj_node *loss, double lr);
/* Adam with the same constants and a decoupled weight decay of 0.01. */
ADJ_API adj_updates *adj_adamw(adj_node *loss, double lr);
/* Returns all updates of a training step: those of adj_optimizer and adj_layer_updates (running
 * statistics, dropout steps). Running statistics of a layer whose parameters are all frozen do not
 * change; the layer still normalizes by the statistics that it was built for, in training those of
 * the batch (see adj_model_opts.freeze). */
ADJ_API adj_updates *adj_training_updates(adj_node *loss, const adj_optimizer_opts *options);
/* Sets the learning rate of the next runs. ADJ_EARG, with the reason in adj_exec_message, if the
 * graph has no optimizer, or lr is NaN or not from 0 to FLT_MAX. */
ADJ_API adj_status adj_set_lr(adj_exec *e, double lr);

/* Sets all of *options by a name: "sgd", "momentum" (0.9), "nesterov" (0.9), "rmsprop", "adam" or
 * "adamw" (decay 0.01). ADJ_EARG for an unknown name. */
ADJ_API adj_status adj_optimizer_from_name(const char *name, adj_optimizer_opts *options);

/* ---- learning rate schedules: pure functions of the step ---- */

/* Kind of a schedule; s is the number of steps since the end of the warm-up. */
typedef enum {
    ADJ_SCHEDULE_CONSTANT,    /* base */
    ADJ_SCHEDULE_STEP,        /* base * factor^floor(s/period) */
    ADJ_SCHEDULE_EXPONENTIAL, /* base * factor^(s/period) */
    ADJ_SCHEDULE_COSINE       /* from base to last at step total, along half a cosine */
} adj_schedule_kind;

/* A learning rate schedule. During the warm-up the rate is base * (step+1) / warmup. */
typedef struct {
    adj_schedule_kind kind; /* default: ADJ_SCHEDULE_CONSTANT */
    double base;            /* the rate at the end of the warm-up */
    int64_t warmup;         /* steps of the warm-up; 0: none */
    int64_t
        total; /* COSINE: number of steps including the warm-up; later steps have the rate last */
    int64_t period; /* STEP, EXPONENTIAL; below 1: 1 */
    double factor;  /* STEP, EXPONENTIAL; 0: 0.1 */
    double last;    /* COSINE: the rate at the end */
} adj_schedule;

/* Returns the rate of step 0, 1, 2, ...; a negative step counts as 0. Returns 0 for NULL. */
ADJ_API double adj_schedule_rate(const adj_schedule *schedule, int64_t step);

/* ---- models ---- */

/* Options of a model. All zero: the defaults of the model, for evaluation. Training and evaluation
 * need a graph each; adj_copy_params copies the parameters. */
typedef struct {
    int64_t batch;       /* images in a batch; 0: 1 */
    adj_image_size size; /* size of the images; 0: the model's */
    adj_dtype dtype;     /* type of the computation */
    adj_format format;   /* format of the images */
    int training;        /* 1: for training, with batch statistics and dropout */
    int64_t classes;     /* number of classes; 0: the model's */
    double multiplier;   /* mobilenet_v1's width multiplier; 0: 0.25 */
    /* Patterns (adj_trainable) of parameters to be frozen; NULL: none. In training a batch norm
     * whose gamma and beta match uses its running statistics and does not update them. */
    const char *freeze;
} adj_model_opts;

/* A built-in model. */
typedef struct {
    const char *name; /* as listed by `adjoint models` */
    /* Builds the model: images -> logits [n, classes]. Uses format, training, classes, multiplier
     * and freeze of the options (NULL: all zero); sizes are those of x. */
    adj_node *(*build)(adj_node *x, const adj_model_opts *options);
    adj_model_opts defaults; /* size and classes that it was published for */
} adj_model;

/* Returns the built-in model of that name, or NULL if there is none:
 *   lenet         two 5x5 convolutions of 32 and 64 filters with relu and max pooling, and a hidden
 *                 layer of 128
 *   lenet5        LeNet-5 (LeCun et al. 1998) with tanh and average pools; images smaller than
 *                 32x32 are zero-padded
 *   resnet8       the ResNet-8 of MLPerf Tiny for CIFAR-10
 *   resnet20      the ResNet-20 of He et al. for CIFAR-10: three stages of three blocks with 16, 32
 *                 and 64 filters and batch norm
 *   mobilenet_v1  MobileNet v1 (Howard et al. 2017): 13 depthwise separable blocks with batch norm;
 *                 multiplier scales the number of filters
 *   vgg6          six 3x3 convolutions of 64 to 256 filters with relu and max pooling, and a hidden
 *                 layer of 256
 *   ds_cnn        the DS-CNN of MLPerf Tiny for speech commands: 49x10 features
 * "mobilenet_v1_0.5_128" is mobilenet_v1 with multiplier 0.5 for images of 128x128; both are stored
 * in *options (may be NULL), whose other fields do not change. */
ADJ_API const adj_model *adj_model_find(const char *name, adj_model_opts *options);
/* Adds the input "images" ([batch, h, w, c] or [batch, c, h, w], f64 for dtype f64, else f32),
 * casts it to dtype and adds the model. Returns the logits, labeled "logits". */
ADJ_API adj_node *adj_model_logits(adj_graph *g, const adj_model *model,
                                   const adj_model_opts *options);

#ifdef __cplusplus
}
#endif
#endif
