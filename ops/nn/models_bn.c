/* models_bn.c - the networks with batch norm: residual nets, mobilenet_v1, ds_cnn.
 *
 * SAME pads a 3x3 convolution of stride 2 unevenly, PyTorch's padding=1 does not: the nets that
 * follow PyTorch ask for one pixel explicitly. */
#include <stdio.h>

#include "models.h"

/* "stage1/block2/conv1" */
static nn_name part(const char *block, const char *name)
{
    nn_name n;
    snprintf(n.s, sizeof n.s, "%.120s/%s", block, name);
    return n;
}

static adj_node *norm(adj_node *x, const char *name, const adj_model_opts *o)
{
    const adj_batch_norm_layer b = {.training = o->training, .format = o->format};
    return adj_layer_batch_norm(x, name, &b);
}

/* A convolution without bias, padded as PyTorch's padding = kernel/2. */
static adj_conv_layer even(const adj_model_opts *o, int64_t filters, int64_t kernel, int64_t stride)
{
    adj_conv_layer c = nn_conv(o, filters, kernel, stride);
    c.no_bias = 1;
    if (kernel > 1) {
        c.padding = ADJ_EXPLICIT;
        c.pad[0] = kernel / 2;
    }
    return c;
}

static adj_node *logits(adj_node *x, const adj_model_opts *o, int64_t classes)
{
    return adj_layer_dense(x, "logits", nn_classes(o, classes));
}

/* ---- residual nets ---- */

/* relu(bn(conv(relu(bn(conv(x))))) + shortcut(x)); the shortcut is a 1x1 convolution where the
 * shape changes: with batch norm and no bias in resnet20, with a bias alone in resnet8 (c.no_bias).
 */
static adj_node *residual(adj_node *x, const char *block, const adj_model_opts *o, adj_conv_layer c,
                          int changes)
{
    adj_conv_layer second = c, shortcut = c;
    second.stride[0] = 1;
    shortcut.kernel[0] = 1;
    shortcut.pad[0] = 0;
    if (c.padding == ADJ_EXPLICIT)
        shortcut.padding = ADJ_VALID;

    adj_node *y = adj_layer_conv2d(x, part(block, "conv1").s, &c);
    y = adj_relu(norm(y, part(block, "bn1").s, o));
    y = adj_layer_conv2d(y, part(block, "conv2").s, &second);
    y = norm(y, part(block, "bn2").s, o);
    if (changes)
        x = adj_layer_conv2d(x, part(block, "shortcut").s, &shortcut);
    if (changes && c.no_bias)
        x = norm(x, part(block, "shortcut_bn").s, o);
    return adj_label(adj_relu(adj_add(y, x)), block);
}

adj_node *adj_model_resnet8(adj_node *x, const adj_model_opts *options)
{
    const adj_model_opts *o = options != NULL ? options : &nn_no_options;
    adj_conv_layer first = nn_conv(o, 16, 3, 1);

    adj_node *h = adj_relu(norm(adj_layer_conv2d(x, "conv1", &first), "bn1", o));
    h = residual(h, "block1", o, nn_conv(o, 16, 3, 1), 0);
    h = residual(h, "block2", o, nn_conv(o, 32, 3, 2), 1);
    h = residual(h, "block3", o, nn_conv(o, 64, 3, 2), 1);
    return logits(adj_global_avg_pool(h, o->format), o, 10);
}

adj_node *adj_model_resnet20(adj_node *x, const adj_model_opts *options)
{
    const adj_model_opts *o = options != NULL ? options : &nn_no_options;
    adj_conv_layer first = even(o, 16, 3, 1);

    adj_node *h = adj_relu(norm(adj_layer_conv2d(x, "conv1", &first), "bn1", o));
    for (int stage = 0; stage < 3; stage++) {
        for (int block = 0; block < 3; block++) {
            char name[NN_NAME];
            int shrinks = stage > 0 && block == 0;
            snprintf(name, sizeof name, "stage%d/block%d", stage + 1, block + 1);
            h = residual(h, name, o, even(o, 16 << stage, 3, shrinks ? 2 : 1), shrinks);
        }
    }
    return logits(adj_global_avg_pool(h, o->format), o, 10);
}

/* ---- depthwise separable nets ---- */

/* relu(bn(1x1(relu(bn(depthwise 3x3(x)))))), with the options of both convolutions. */
static adj_node *separable(adj_node *x, const char *block, const adj_model_opts *o,
                           adj_conv_layer depthwise, adj_conv_layer pointwise)
{
    adj_node *y = adj_layer_depthwise_conv2d(x, part(block, "depthwise").s, &depthwise);
    y = adj_relu(norm(y, part(block, "bn1").s, o));
    y = adj_layer_conv2d(y, part(block, "pointwise").s, &pointwise);
    return adj_relu(norm(y, part(block, "bn2").s, o));
}

/* Channels times the multiplier, at least 8; what is no size is for the layer to refuse. */
static int64_t widened(int64_t channels, double multiplier)
{
    double n = (double)channels * multiplier;
    return n < 8 ? 8 : n < INT32_MAX ? (int64_t)n : INT64_MAX;
}

adj_node *adj_model_mobilenet_v1(adj_node *x, const adj_model_opts *options)
{
    static const struct {
        int64_t channels, stride;
    } block[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
                 {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
    const adj_model_opts *o = options != NULL ? options : &nn_no_options;
    double multiplier = o->multiplier > 0 ? o->multiplier : 0.25;
    adj_conv_layer first = even(o, widened(32, multiplier), 3, 2);

    adj_node *h = adj_relu(norm(adj_layer_conv2d(x, "conv1", &first), "bn1", o));
    for (size_t i = 0; i < sizeof block / sizeof *block; i++) {
        char name[NN_NAME];
        snprintf(name, sizeof name, "block%zu", i + 1);
        h = separable(h, name, o, even(o, 0, 3, block[i].stride),
                      even(o, widened(block[i].channels, multiplier), 1, 1));
    }
    return logits(adj_global_avg_pool(h, o->format), o, 2);
}

adj_node *adj_model_ds_cnn(adj_node *x, const adj_model_opts *options)
{
    const adj_model_opts *o = options != NULL ? options : &nn_no_options;
    adj_conv_layer first = nn_conv(o, 64, 10, 2);
    first.kernel[1] = 4; /* time x frequency */

    adj_node *h = adj_relu(norm(adj_layer_conv2d(x, "conv1", &first), "bn1", o));
    h = adj_layer_dropout(h, "dropout1", 0.2, o->training);
    for (int i = 1; i <= 4; i++) {
        char name[NN_NAME];
        snprintf(name, sizeof name, "block%d", i);
        h = separable(h, name, o, nn_conv(o, 0, 3, 1), nn_conv(o, 64, 1, 1));
    }
    h = adj_layer_dropout(h, "dropout2", 0.4, o->training);
    return logits(adj_global_avg_pool(h, o->format), o, 12);
}
