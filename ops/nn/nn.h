/* nn.h - what the files of this folder share. */
#ifndef NN_H
#define NN_H

#include "adjoint_nn.h"
#include "adjoint_ops_grad.h"

/* The scalar input that optimizers multiply by. */
#define NN_LEARNING_RATE "learning_rate"

/* "layer/part"; longer ones are refused, since two of them could be cut to the same name. */
enum { NN_NAME = 160 };

typedef struct {
    char s[NN_NAME];
} nn_name;

/* Builds a layer of that name on x. options: those of the public builder. */
typedef adj_node *nn_build(adj_node *x, const char *name, const void *options);
/* Calls build with the layer's name as the prefix of the graph's errors. Returns NULL if x is NULL.
 */
adj_node *nn_in_layer(adj_node *x, const char *name, nn_build *build, const void *options);
/* Joins layer and part with a slash. On failure the graph has the error and the result is "". */
nn_name nn_join(adj_graph *g, const char *layer, const char *part);
/* The type that parameters and statistics have beside values of this type: f32 for half types. */
adj_dtype nn_kept_dtype(adj_dtype dtype);
/* x as dtype: x itself if it is. */
adj_node *nn_cast(adj_node *x, adj_dtype dtype);
/* The state of that name, made with a constant value if the graph has none yet. */
adj_node *nn_state(adj_graph *g, const char *name, adj_dtype dtype, adj_shape shape, double value);

static inline int nn_is_size(int64_t n) { return n >= 1 && n <= INT32_MAX; }
/* Returns the layer's parameter layer/part, in x's type. */
adj_node *nn_param(adj_node *x, const char *layer, const char *part, adj_shape shape,
                   adj_init init);
/* Returns the initial values of weights with these fans; given: those of ADJ_INIT_GIVEN. */
adj_init nn_weights_init(adj_weight_init weights, adj_init given, int64_t fan_in, int64_t fan_out);
/* Adds the layer's bias of n elements to y, unless no_bias; labels the result. */
adj_node *nn_with_bias(adj_node *y, const char *layer, int64_t n, int no_bias, adj_format format);

/* Returns the sum of each, or for ADJ_LOSS_MEAN that over the sum of weights, or each itself. */
adj_node *nn_reduce_loss(adj_node *each, adj_node *weights, adj_loss_reduction reduction);

/* adj_trainable_except's, malloc'ed; *n is -1 when out of memory. */
adj_node **nn_trainable(const adj_node *y, const char *frozen, int *n);
int nn_is_among(const adj_node *p, int n, adj_node *const list[]);
/* The graph's layer updates, but those of states of frozen layers. */
adj_updates *nn_layer_updates(const adj_node *loss, const adj_optimizer_opts *o);

/* A loss scale that follows the gradients (loss_scale.c): its states, and whether this step's
 * gradients are all numbers. */
typedef struct {
    adj_loss_scale o; /* with defaults filled in */
    adj_node *scale, *good_steps, *skipped;
    adj_node *finite; /* 1 or 0; NULL before nn_unscale */
} nn_loss_scale;

adj_status nn_check_loss_scale(adj_graph *g, const adj_loss_scale *o);
/* dtype: of the states, one that parameters are kept in. On failure the graph has the error. */
nn_loss_scale nn_loss_scale_new(adj_graph *g, adj_dtype dtype, const adj_loss_scale *options);
/* Makes finite of the n gradients, at least 1, and divides them by the scale. */
void nn_unscale(nn_loss_scale *s, int n, adj_node *dx[]);
/* The states' next values. */
void nn_update_loss_scale(const nn_loss_scale *s, adj_updates *u);

/* Options say by 0 that they are left out. */
static inline double nn_or_default(double value, double fallback)
{
    return value != 0 ? value : fallback;
}

/* The models' (recipes.c). */
extern const adj_recipe nn_recipe_lenet, nn_recipe_lenet5, nn_recipe_residual,
    nn_recipe_mobilenet_v1, nn_recipe_vgg6, nn_recipe_ds_cnn;

#endif
