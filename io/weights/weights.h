/* weights.h - functions of the tool and training for weights and model cards. */
#ifndef IO_WEIGHTS_H
#define IO_WEIGHTS_H

#include "adjoint_io.h"

/* Prints a map as lines of a map file. */
ADJ_API adj_status adj_weights_print_map(FILE *f, adj_graph *g, const char *map, adj_error *error);
/* Checks that data with these channels, classes and class names (NULL: the data have none) match
 * the card; else ADJ_ESHAPE. Unknown fields of the card match. 1, 3 and 4 channels match each
 * other, since images are converted. */
ADJ_API adj_status adj_model_card_check(const adj_model_card *card, int64_t channels,
                                        int64_t classes, const char *const *class_names,
                                        adj_error *error);
/* True if a model card has that metadata key. */
int is_card_key(const char *key);

/* Returns the number of outputs of the layer logits, or 0 if there is no such layer. */
ADJ_API int64_t adj_weights_classes(const adj_tensors *ours);
/* Returns the input channels of g's first filter, or 0 if it is not there. g: the net whose
 * parameters are ours, for any number of channels. */
ADJ_API int64_t adj_weights_channels(const adj_tensors *ours, const adj_graph *g);

#endif
