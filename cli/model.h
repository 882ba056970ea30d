/* model.h - a model with its loss, or a whole training step of it, as the sub-commands run it; and
 * its recipe as text and as JSON. */
#ifndef CLI_MODEL_H
#define CLI_MODEL_H

#include <jansson.h>

#include "adjoint_nn.h"
#include "ops/nn/model_list.h"

typedef struct {
    int64_t classes;
    adj_graph *graph;
    adj_node *images, *logits, *labels, *loss;
    adj_node *lr; /* lr and updates: NULL without an optimizer */
    adj_updates *updates;
    adj_error error;
} model_graph;

/* Returns CONTINUE if the model exists or is an ONNX file's, which is read later; else prints an
 * error and returns EXIT_USAGE. */
int check_model(const char *name);
/* Returns what to do about a weights file that cannot be loaded without --model: " (set --model
 * ...)", or "" if --model is given or the file names a built-in model. */
const char *model_hint(const char *model, const char *weights);
/* Builds it in g (NULL: out of memory), which stays the caller's. An unknown name is ADJ_EARG.
 * Sizes in the options override those in the name; an ONNX file has its own format, and its own
 * sizes but for symbolic ones. A net whose result is not [batch, classes] gets the mean of its
 * result's squares as a loss. optimizer NULL: no updates. */
adj_status model_build(model_graph *m, adj_graph *g, const char *name,
                       const adj_model_opts *options, const adj_optimizer_opts *optimizer);
/* Prints a note if the map is keras and the model has batch norms, whose epsilon Keras's files do
 * not hold. */
void say_keras_epsilon(const char *map, const char *model);
/* Returns labels for a batch without data, all classes cyclically, to be freed. */
int32_t *model_labels(const model_graph *m);

/* Reads "32" or "32x48", each from 1 to max; returns 0 for other text. */
int parse_size(const char *text, int64_t max, int64_t *h, int64_t *w);

/* Default optimizer of measurements and comparisons. */
extern const adj_optimizer_opts model_momentum;

/* ---- a recipe ---- */

enum { RECIPE_TEXT = 200 };
/* "nesterov, lr 0.02, cosine, warm-up 1 epochs, weight decay 0.0005, batch 32, shift 2"; settings
 * of 0 are omitted. */
const char *recipe_text(const adj_recipe *r, char text[RECIPE_TEXT]);
/* Returns an object with all fields but why; NULL when out of memory. */
json_t *recipe_json(const adj_recipe *r);

#endif
