/* models.c - small networks, and the table of them with their recipes.
 *
 * lenet, resnet20, mobilenet_v1 and vgg6 have the layers of the PyTorch programs that they are
 * benchmarked against, with symmetric pads of one; lenet5, resnet8 and ds_cnn have the published
 * ones. A model takes its sizes from its input images. SAME pads a 3x3 convolution of stride 2
 * unevenly, PyTorch's padding=1 does not: the nets that follow PyTorch set one pixel explicitly. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/nearest.h"
#include "model_list.h"
#include "names.h"
#include "nn.h"

static const adj_model_opts no_options = {0};

/* Options of a SAME convolution with a bias. */
static adj_conv_layer conv(const adj_model_opts *o, int64_t filters, int64_t kernel, int64_t stride)
{
    return (adj_conv_layer){.filters = filters,
                            .kernel = {kernel},
                            .stride = {stride},
                            .padding = ADJ_SAME,
                            .format = o->format};
}

static int64_t classes_of(const adj_model_opts *o, int64_t fallback)
{
    return o->classes != 0 ? o->classes : fallback;
}

static adj_pool halves(const adj_model_opts *o)
{
    adj_pool p = {.ksize = {1, 2, 2, 1}, .format = o->format};
    if (o->format == ADJ_NCHW)
        p.ksize[1] = 1, p.ksize[3] = 2;
    return p;
}

static adj_node *conv_relu(adj_node *x, const char *name, const adj_model_opts *o, int64_t filters,
                           int64_t kernel)
{
    adj_conv_layer c = conv(o, filters, kernel, 1);
    return adj_relu(adj_layer_conv2d(x, name, &c));
}

static adj_node *build_lenet(adj_node *x, const adj_model_opts *options)
{
    const adj_model_opts *o = options != NULL ? options : &no_options;
    const adj_pool half = halves(o);

    adj_node *h = adj_max_pool(conv_relu(x, "conv1", o, 32, 5), &half);
    h = adj_max_pool(conv_relu(h, "conv2", o, 64, 5), &half);
    h = adj_relu(adj_layer_dense(h, "fc1", 128, NULL));
    return adj_layer_dense(h, "logits", classes_of(o, 10), NULL);
}

/* Pads images smaller than size x size with zeros. */
static adj_node *pad_to(adj_node *x, int64_t size, adj_format format)
{
    adj_shape s = adj_node_type(x).shape, before = {.rank = s.rank}, after = {.rank = s.rank};
    int h = format == ADJ_NCHW ? 2 : 1;

    if (x == NULL || s.rank != 4 || (s.dim[h] >= size && s.dim[h + 1] >= size))
        return x;
    for (int i = h; i < h + 2; i++) {
        int64_t missing = s.dim[i] < size ? size - s.dim[i] : 0;
        before.dim[i] = missing / 2;
        after.dim[i] = missing - missing / 2;
    }
    return adj_pad(x, before, after);
}

static adj_node *build_lenet5(adj_node *x, const adj_model_opts *options)
{
    const adj_model_opts *o = options != NULL ? options : &no_options;
    const adj_pool half = halves(o);
    const adj_conv_layer c1 = {
        .filters = 6, .kernel = {5}, .format = o->format, .init = ADJ_GLOROT_UNIFORM};
    adj_conv_layer c2 = c1;
    c2.filters = 16;
    const adj_dense_layer glorot = {.init = ADJ_GLOROT_UNIFORM};

    adj_node *h = adj_tanh(adj_layer_conv2d(pad_to(x, 32, o->format), "conv1", &c1));
    h = adj_tanh(adj_layer_conv2d(adj_avg_pool(h, &half), "conv2", &c2));
    h = adj_tanh(adj_layer_dense(adj_avg_pool(h, &half), "fc1", 120, &glorot));
    h = adj_tanh(adj_layer_dense(h, "fc2", 84, &glorot));
    return adj_layer_dense(h, "logits", classes_of(o, 10), &glorot);
}

static adj_node *build_vgg6(adj_node *x, const adj_model_opts *options)
{
    const adj_model_opts *o = options != NULL ? options : &no_options;
    const adj_pool half = halves(o);

    adj_node *h = conv_relu(x, "conv1", o, 64, 3);
    h = adj_max_pool(conv_relu(h, "conv2", o, 64, 3), &half);
    h = conv_relu(h, "conv3", o, 128, 3);
    h = adj_max_pool(conv_relu(h, "conv4", o, 128, 3), &half);
    h = conv_relu(h, "conv5", o, 256, 3);
    h = adj_max_pool(conv_relu(h, "conv6", o, 256, 3), &half);
    h = adj_relu(adj_layer_dense(h, "fc1", 256, NULL));
    return adj_layer_dense(h, "logits", classes_of(o, 10), NULL);
}

/* ---- with batch norm ---- */

/* "stage1/block2/conv1" */
static nn_name part(const char *block, const char *name)
{
    nn_name n;
    snprintf(n.s, sizeof n.s, "%.120s/%s", block, name);
    return n;
}

static adj_node *norm(adj_node *x, const char *name, const adj_model_opts *o)
{
    int frozen = adj_name_matches(o->freeze, part(name, "gamma").s) &&
                 adj_name_matches(o->freeze, part(name, "beta").s);
    const adj_norm_layer b = {.training = o->training && !frozen, .format = o->format};
    return adj_layer_batch_norm(x, name, &b);
}

/* Returns options of a convolution without bias, padded as PyTorch's padding = kernel/2. */
static adj_conv_layer even(const adj_model_opts *o, int64_t filters, int64_t kernel, int64_t stride)
{
    adj_conv_layer c = conv(o, filters, kernel, stride);
    c.no_bias = 1;
    if (kernel > 1) {
        c.padding = ADJ_EXPLICIT;
        c.pad[0] = kernel / 2;
    }
    return c;
}

static adj_node *logits(adj_node *x, const adj_model_opts *o, int64_t classes)
{
    return adj_layer_dense(x, "logits", classes_of(o, classes), NULL);
}

/* ---- residual nets ---- */

/* relu(bn(conv(relu(bn(conv(x))))) + shortcut(x)). The shortcut is a 1x1 convolution where the
 * shape changes: with batch norm and no bias in resnet20, with only a bias in resnet8
 * (c.no_bias). */
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

static adj_node *build_resnet8(adj_node *x, const adj_model_opts *options)
{
    const adj_model_opts *o = options != NULL ? options : &no_options;
    adj_conv_layer first = conv(o, 16, 3, 1);

    adj_node *h = adj_relu(norm(adj_layer_conv2d(x, "conv1", &first), "bn1", o));
    h = residual(h, "block1", o, conv(o, 16, 3, 1), 0);
    h = residual(h, "block2", o, conv(o, 32, 3, 2), 1);
    h = residual(h, "block3", o, conv(o, 64, 3, 2), 1);
    return logits(adj_global_avg_pool(h, o->format), o, 10);
}

static adj_node *build_resnet20(adj_node *x, const adj_model_opts *options)
{
    const adj_model_opts *o = options != NULL ? options : &no_options;
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

/* Returns channels times the multiplier, at least 8. Layers refuse invalid sizes. */
static int64_t widened(int64_t channels, double multiplier)
{
    double n = (double)channels * multiplier;
    return n < 8 ? 8 : n < INT32_MAX ? (int64_t)n : INT64_MAX;
}

static adj_node *build_mobilenet_v1(adj_node *x, const adj_model_opts *options)
{
    static const struct {
        int64_t channels, stride;
    } block[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
                 {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
    const adj_model_opts *o = options != NULL ? options : &no_options;
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

static adj_node *build_ds_cnn(adj_node *x, const adj_model_opts *options)
{
    const adj_model_opts *o = options != NULL ? options : &no_options;
    adj_conv_layer first = conv(o, 64, 10, 2);
    first.kernel[1] = 4; /* kernel of time x frequency */

    adj_node *h = adj_relu(norm(adj_layer_conv2d(x, "conv1", &first), "bn1", o));
    h = adj_layer_dropout(h, "dropout1", 0.2, o->training);
    for (int i = 1; i <= 4; i++) {
        char name[NN_NAME];
        snprintf(name, sizeof name, "block%d", i);
        h = separable(h, name, o, conv(o, 0, 3, 1), conv(o, 64, 1, 1));
    }
    h = adj_layer_dropout(h, "dropout2", 0.4, o->training);
    return logits(adj_global_avg_pool(h, o->format), o, 12);
}

/* ---- the table ---- */

/* Settings in which the models' recipes differ. */
typedef struct {
    const char *why;
    double lr, weight_decay, clip_norm;
    int64_t batch, shift;
} settings;

static const char residual_why[] =
    "He et al. 2015, section 4.2: 0.1 and decay; shifts as their crops";

static const struct {
    adj_listed_model listed;
    settings recipe;
} models[] = {
    {{{"lenet", build_lenet, {.size = {28, 28, 1}, .classes = 10}},
      "2 convolutions 5x5 (32, 64), dense 128"},
     {"no batch norm: a high rate only after a warm-up", .lr = 0.02, .weight_decay = 5e-4,
      .batch = 32, .shift = 2}},
    {{{"lenet5", build_lenet5, {.size = {32, 32, 1}, .classes = 10}},
      "LeCun's, tanh and average pools"},
     {"no batch norm: a high rate only after a warm-up", .lr = 0.02, .weight_decay = 5e-4,
      .batch = 32, .shift = 2}},
    {{{"resnet8", build_resnet8, {.size = {32, 32, 3}, .classes = 10}},
      "MLPerf Tiny's residual net"},
     {residual_why, .lr = 0.1, .weight_decay = 5e-4, .batch = 64, .shift = 2}},
    {{{"resnet20", build_resnet20, {.size = {32, 32, 3}, .classes = 10}},
      "residual net of 3 x 3 blocks"},
     {residual_why, .lr = 0.1, .weight_decay = 5e-4, .batch = 64, .shift = 2}},
    {{{"mobilenet_v1", build_mobilenet_v1, {.size = {96, 96, 3}, .classes = 2}},
      "depthwise separable, multiplier 0.25"},
     {"little decay on depthwise filters (Howard et al. 2017, section 3.2)", .lr = 0.1,
      .weight_decay = 1e-4, .batch = 32, .shift = 6}},
    {{{"vgg6", build_vgg6, {.size = {32, 32, 3}, .classes = 10}},
      "6 convolutions 3x3 (64, 128, 256), dense 256"},
     {"no batch norm, eight layers: clipped gradients keep it finite", .lr = 0.02,
      .weight_decay = 5e-4, .clip_norm = 1, .batch = 64, .shift = 2}},
    {{{"ds_cnn", build_ds_cnn, {.size = {49, 10, 1}, .classes = 12}},
      "MLPerf Tiny's keyword spotter"},
     {"batch norm everywhere takes a high rate; little decay on depthwise filters", .lr = 0.2,
      .weight_decay = 1e-4, .batch = 64, .shift = 1}},
};
enum { N_MODEL = sizeof models / sizeof *models };

const adj_listed_model *adj_model_at(int i)
{
    return i >= 0 && i < N_MODEL ? &models[i].listed : NULL;
}

/* Parses a name such as "mobilenet_v1_0.5_128": multiplier and image size. */
static const adj_model *find_sized(const char *name, adj_model_opts *options)
{
    static const char stem[] = "mobilenet_v1_";
    char *end;

    if (strncmp(name, stem, sizeof stem - 1) != 0)
        return NULL;
    double multiplier = c_strtod(name + sizeof stem - 1, &end);
    if (*end != '_' || !(multiplier > 0 && multiplier <= 8))
        return NULL;
    long size = strtol(end + 1, &end, 10);
    if (*end != 0 || size < 1 || size > 4096)
        return NULL;
    if (options != NULL) {
        options->multiplier = multiplier;
        options->size.h = options->size.w = size;
    }
    return adj_model_find("mobilenet_v1", NULL);
}

const adj_model *adj_model_find(const char *name, adj_model_opts *options)
{
    if (name == NULL)
        return NULL;
    for (int i = 0; i < N_MODEL; i++)
        if (strcmp(name, models[i].listed.model.name) == 0)
            return &models[i].listed.model;
    return find_sized(name, options);
}

const adj_model *adj_model_nearest(const char *name)
{
    return name != NULL ? adj_model_find(nearest_name(name, &models[0].listed.model.name, N_MODEL,
                                                      sizeof *models),
                                         NULL)
                        : NULL;
}

static int64_t or_model(int64_t given, int64_t models_own)
{
    return given != 0 ? given : models_own;
}

adj_node *adj_model_logits(adj_graph *g, const adj_model *model, const adj_model_opts *options)
{
    const adj_model_opts *o = options != NULL ? options : &no_options;

    if (g == NULL || model == NULL || adj_graph_status(g) != ADJ_OK)
        return NULL;
    const adj_model_opts *own = &model->defaults;
    int64_t n = or_model(o->batch, 1), h = or_model(o->size.h, own->size.h),
            w = or_model(o->size.w, own->size.w), c = or_model(o->size.c, own->size.c);
    adj_shape shape = {4, {n, h, w, c}};
    if (o->format == ADJ_NCHW)
        shape = (adj_shape){4, {n, c, h, w}};
    adj_model_opts complete = *o;
    complete.classes = classes_of(o, own->classes);
    adj_node *images = adj_input(g, "images", nn_kept_dtype(o->dtype), shape);
    return model->build(adj_in_dtype(images, o->dtype), &complete);
}

/* ---- recipes ---- */

adj_recipe adj_recipe_for(const adj_model *model, int64_t epochs)
{
    const settings *s = &models[0].recipe;
    for (int i = 0; i < N_MODEL; i++)
        if (model == &models[i].listed.model)
            s = &models[i].recipe;
    return (adj_recipe){.optimizer = {.kind = ADJ_SGD,
                                      .momentum = 0.9,
                                      .nesterov = 1,
                                      .weight_decay = s->weight_decay,
                                      .clip_norm = s->clip_norm},
                        .lr = s->lr,
                        .schedule = ADJ_SCHEDULE_COSINE,
                        .warmup = epochs > 0 ? fmin(1, (double)epochs / 4) : 0,
                        .batch = s->batch,
                        .shift = s->shift,
                        .why = s->why};
}
