/* sizes.h - image channels and class count, from the shapes of a net's weights. */
#ifndef IO_WEIGHTS_SIZES_H
#define IO_WEIGHTS_SIZES_H

#include "adjoint_io.h"

/* Returns the number of outputs of the layer logits, or 0 if there is no such layer. */
int64_t weights_classes(const adj_tensors *ours);
/* Returns the input channels of g's first filter, or 0 if it is not there. g: the net whose
 * parameters are ours, for any number of channels. */
int64_t weights_channels(const adj_tensors *ours, const adj_graph *g);

#endif
