/* models.h - what the model files share. */
#ifndef NN_MODELS_H
#define NN_MODELS_H

#include "nn.h"

extern const adj_model_opts nn_no_options;

/* Options of a SAME convolution with a bias. */
adj_conv_layer nn_conv(const adj_model_opts *o, int64_t filters, int64_t kernel, int64_t stride);
int64_t nn_classes(const adj_model_opts *o, int64_t fallback);

#endif
