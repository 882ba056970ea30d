/* nn.h - declarations shared within this folder. */
#ifndef NN_H
#define NN_H

#include "adjoint_nn.h"
#include "ops/grad.h"

/* The scalar input that optimizers read the learning rate from. */
#define NN_LEARNING_RATE "learning_rate"

/* Bytes of "layer/part". Longer names are refused, since truncation could make two equal. */
enum { NN_NAME = 160 };

typedef struct {
    char s[NN_NAME];
} nn_name;

/* Builds a layer of that name on x. options: those of the public builder. */
typedef adj_node *nn_build(adj_node *x, const char *name, const void *options);
/* Calls build with the layer's name as the prefix of the graph's errors. Returns NULL for a NULL
 * x. */
adj_node *nn_in_layer(adj_node *x, const char *name, nn_build *build, const void *options);
/* Joins layer and part with a slash. On failure the graph has the error and the result is "". */
nn_name nn_join(adj_graph *g, const char *layer, const char *part);
/* Returns the type of parameters and statistics for values of this type: f32 for half types. */
adj_dtype nn_kept_dtype(adj_dtype dtype);
/* Returns the state of that name, created with a constant value if the graph has none. */
adj_node *nn_state(adj_graph *g, const char *name, adj_dtype dtype, adj_shape shape, double value);

static inline int nn_is_size(int64_t n) { return n >= 1 && n <= INT32_MAX; }
/* Returns the layer's parameter layer/part, of the type that is kept for x's. */
adj_node *nn_kept_param(adj_node *x, const char *layer, const char *part, adj_shape shape,
                        adj_init init);
/* Returns that parameter in x's type. */
adj_node *nn_param(adj_node *x, const char *layer, const char *part, adj_shape shape,
                   adj_init init);
/* Returns the initial values of weights with these fans; given: those of ADJ_INIT_GIVEN. */
adj_init nn_weights_init(adj_weight_init weights, adj_init given, int64_t fan_in, int64_t fan_out);
/* Adds the layer's bias of n elements to y, unless no_bias; labels the result. */
adj_node *nn_with_bias(adj_node *y, const char *layer, int64_t n, int no_bias, adj_format format);

/* Returns all trainable parameters; the result is malloc'ed, *n is -1 if out of memory. */
adj_node **nn_trainable(const adj_node *y, int *n);
/* Returns the graph's layer updates, except those of states of frozen layers. */
adj_updates *nn_layer_updates(const adj_node *loss, const adj_optimizer_opts *o);

/* Fails for options that no optimizer has; kind is given. */
adj_status nn_check_optimizer(adj_graph *g, const adj_optimizer_opts *o);

/* A dynamic loss scale (loss_scale.c): its states, and whether this step's gradients are all
 * finite. */
typedef struct {
    adj_loss_scale o; /* with defaults filled in */
    adj_node *scale, *good_steps, *skipped;
    adj_node *finite; /* 1 or 0; NULL before nn_unscale */
} nn_loss_scale;

adj_status nn_check_loss_scale(adj_graph *g, const adj_loss_scale *o);
/* Creates the states, in dtype, which must be a type that parameters may have. On failure the
 * graph has the error. */
nn_loss_scale nn_loss_scale_new(adj_graph *g, adj_dtype dtype, const adj_loss_scale *options);
/* Sets s->finite from the n gradients, at least 1, and divides them by the scale. */
void nn_unscale(nn_loss_scale *s, int n, adj_node *dx[]);
/* Adds the next values of the states. */
void nn_update_loss_scale(const nn_loss_scale *s, adj_updates *u);

/* Returns value, or fallback if it is 0, which stands for an omitted option. */
static inline double nn_or_default(double value, double fallback)
{
    return value != 0 ? value : fallback;
}

#endif
