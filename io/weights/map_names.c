/* map_names.c - names and layouts of a graph's parameters in PyTorch and Keras.
 *
 * The op that reads a parameter determines its layout. In PyTorch a convolution's filter is [out,
 * in, kh, kw], a depthwise one [c*multiplier, 1, kh, kw], a dense layer's matrix [out, in], whose
 * inputs after a flattened image are in the order c, h, w. Keras has our layouts. Running
 * statistics are two tensors in both. Of a layer's common names, the one in the file is used. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "graph/op.h"
#include "map.h"
#include "ops/nn/names.h"

/* A parameter and its reader. */
typedef struct {
    adj_graph *g;
    const adj_node *node, *reader; /* reader: the first one, past a cast; NULL: none */
    int operand;                   /* operand index in the reader */
    char layer[MAP_NAME], part[MAP_NAME];
} parameter;

/* ---- the graph ---- */

static const adj_node *reader_of(const adj_graph *g, const adj_node *n, int *operand)
{
    for (int id = adj_node_id(n) + 1; id < adj_graph_node_count(g); id++) {
        const adj_node *user = adj_graph_node_at(g, id);
        for (int i = 0; i < user->n_in; i++)
            if (user->in[i] == n) {
                *operand = i;
                return user->op == &adj_op_cast ? reader_of(g, user, operand) : user;
            }
    }
    return NULL;
}

static parameter parameter_of(adj_graph *g, const adj_node *n)
{
    parameter p = {.g = g, .node = n};
    const char *slash = strrchr(adj_node_name(n), '/');
    int layer = slash != NULL ? (int)(slash - adj_node_name(n)) : 0;

    p.reader = reader_of(g, n, &p.operand);
    snprintf(p.layer, sizeof p.layer, "%.*s", layer, adj_node_name(n));
    snprintf(p.part, sizeof p.part, "%s", slash != NULL ? slash + 1 : adj_node_name(n));
    return p;
}

/* True if the graph has the leaf LAYER/part. */
static int has(const adj_graph *g, const char *layer, const char *part)
{
    char name[2 * MAP_NAME];
    snprintf(name, sizeof name, "%s/%s", layer, part);
    return adj_find(g, name) != NULL;
}

/* Returns the format of images n: that of the nearest op above with a format. */
static adj_format format_above(const adj_node *n)
{
    int turned = 0;
    for (; n->n_in > 0 && n->type.shape.rank == 4; n = n->in[0]) {
        if (n->op == &adj_op_transpose)
            turned = !turned;
        else if (n->op->images != 0)
            return (adj_format_of(n) == ADJ_NCHW) != turned ? ADJ_NCHW : ADJ_NHWC;
    }
    return turned ? ADJ_NCHW : ADJ_NHWC;
}

/* Returns the image [n, h, w, c] that was flattened to the rows of a matmul, or NULL. */
static const adj_node *flattened(const adj_node *matmul)
{
    const adj_node *n = matmul->in[0];
    while (n->n_in > 0 && n->op != &adj_op_reshape && n->op != &adj_op_matmul &&
           memcmp(&n->in[0]->type.shape, &n->type.shape, sizeof n->type.shape) == 0)
        n = n->in[0];
    if (n->op != &adj_op_reshape || n->in[0]->type.shape.rank != 4)
        return NULL;
    return format_above(n->in[0]) == ADJ_NHWC ? n->in[0] : NULL;
}

static int is_depthwise(const parameter *p)
{
    const char *axes = p->reader != NULL ? adj_filter_axes(p->reader->op, p->operand) : NULL;
    return axes != NULL && strchr(axes, 'm') != NULL;
}

static int is_dense(const parameter *p)
{
    return p->reader != NULL && p->reader->op == &adj_op_matmul && p->operand == 1;
}

/* ---- parts of a layer ---- */

/* Names of a part in PyTorch and in Keras, where running statistics are two tensors; and its place
 * among the layer's variables, as Keras's "LAYER/vars/0" counts them. */
static const struct {
    const char *ours, *torch[MAP_SOURCES], *keras[MAP_SOURCES];
    int index;
} parts[] = {
    {"w", {"weight"}, {"kernel"}, 0},
    {"b", {"bias"}, {"bias"}, 1},
    {"gamma", {"weight"}, {"gamma"}, 0},
    {"beta", {"bias"}, {"beta"}, 1},
    {"depthwise", {"depthwise.weight"}, {"depthwise_kernel"}, 0},
    {"pointwise", {"pointwise.weight"}, {"pointwise_kernel"}, 1},
    {"running", {"running_mean", "running_var"}, {"moving_mean", "moving_variance"}, 2},
};

/* Sets the names of the parameter's part; an unknown one keeps its own. */
static void name_part(names *n, const parameter *p, int keras)
{
    n->part[0] = n->own_part;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(p->part, parts[i].ours) == 0) {
            memcpy(n->part, keras ? parts[i].keras : parts[i].torch, sizeof n->part);
            n->index = parts[i].index;
        }
    if (strcmp(p->part, "b") == 0 && has(p->g, p->layer, "pointwise")) {
        n->part[0] = keras ? "bias" : "pointwise.bias";
        n->index = 2;
    }
    if (strcmp(p->part, "w") == 0 && keras && is_depthwise(p)) {
        n->part[0] = "depthwise_kernel";
        n->other = "kernel";
    }
}

/* ---- PyTorch's layouts ---- */

static void add_step(map_entry *e, int is_reshape, adj_shape list)
{
    e->step[e->n_step++] = (map_step){is_reshape, list};
}

static void lay_out_dense(map_entry *e, const parameter *p)
{
    adj_shape s = p->node->type.shape;
    const adj_node *image = flattened(p->reader);
    const adj_shape turned = {2, {1, 0}};

    if (image == NULL) {
        add_step(e, 0, turned);
        return;
    }
    int64_t in = s.dim[0], out = s.dim[1];
    const int64_t *size = image->type.shape.dim;
    add_step(e, 1, (adj_shape){2, {out, in}});
    add_step(e, 1, (adj_shape){4, {out, size[3], size[1], size[2]}});
    add_step(e, 0, (adj_shape){4, {2, 3, 1, 0}});
    add_step(e, 1, (adj_shape){2, {in, out}});
}

static void lay_out_torch(map_entry *e, const parameter *p)
{
    adj_shape s = p->node->type.shape;
    if (is_depthwise(p)) {
        int64_t kh = s.dim[0], kw = s.dim[1], c = s.dim[2], m = s.dim[3];
        add_step(e, 1, (adj_shape){4, {c * m, 1, kh, kw}});
        add_step(e, 1, (adj_shape){4, {c, m, kh, kw}});
        add_step(e, 0, (adj_shape){4, {2, 3, 0, 1}});
    } else if (s.rank == 4) {
        add_step(e, 0, (adj_shape){4, {2, 3, 1, 0}});
    } else if (is_dense(p)) {
        lay_out_dense(e, p);
    }
}

/* ---- PyTorch's names ---- */

static void add_layer(names *n, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_layer(names *n, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (n->n_layer < MAX_LAYERS)
        c_vsnprintf(n->layer[n->n_layer++], MAP_NAME, format, args);
    va_end(args);
}

static void replace(char *text, char from, char to)
{
    for (; *text != '\0'; text++)
        if (*text == from)
            *text = to;
}

/* Names the last layer: the fc after fc1, fc2, ...; "fc" if it is the only one. */
static void name_logits(names *n, const adj_graph *g)
{
    char fc[16];
    int last = 0;
    while (snprintf(fc, sizeof fc, "fc%d", last + 1), last < 100 && has(g, fc, "w"))
        last++;
    if (last > 0)
        add_layer(n, "fc%d", last + 1);
    static const char *const usual[] = {"fc", "classifier", "linear", "logits", "head"};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        add_layer(n, "%s", usual[i]);
}

/* Names a layer of a residual block, such as torchvision's "layer2.0.downsample.1" for stage 2,
 * block 1, "shortcut_bn". */
static void name_in_block(names *n, int stage, int block, const char *rest)
{
    int bn = strcmp(rest, "shortcut_bn") == 0;
    if (bn || strcmp(rest, "shortcut") == 0) {
        add_layer(n, "layer%d.%d.downsample.%d", stage, block, bn);
        add_layer(n, "layer%d.%d.shortcut.%d", stage, block, bn);
    }
    add_layer(n, "layer%d.%d.%s", stage, block, rest);
}

/* Returns the text after "WORD<number>/", or NULL if it does not begin so. */
static const char *behind_number(const char *text, const char *word, int *number)
{
    size_t length = strlen(word);
    char *end;
    if (text == NULL || strncmp(text, word, length) != 0 || text[length] < '0' ||
        text[length] > '9')
        return NULL;
    long value = strtol(text + length, &end, 10);
    *number = (int)(value < 10000 ? value : 10000);
    return *end == '/' ? end + 1 : NULL;
}

static void name_torch_layer(names *n, const parameter *p)
{
    int stage = 0, block = 0;
    const char *in_stage = behind_number(p->layer, "stage", &stage);
    const char *rest = behind_number(in_stage, "block", &block);
    char mobile[MAP_NAME];

    if (strcmp(p->layer, "logits") == 0)
        name_logits(n, p->g);
    if (rest != NULL)
        name_in_block(n, stage, block - 1, rest);
    rest = behind_number(p->layer, "block", &stage);
    if (rest != NULL) {
        snprintf(mobile, sizeof mobile, "block%d/depthwise", stage);
        if (!has(p->g, mobile, "w")) /* a residual net with one block a stage */
            name_in_block(n, stage, 0, rest);
    }
    add_layer(n, "%s", p->layer);
    for (int i = 0; i < n->n_layer; i++)
        replace(n->layer[i], '/', '.');
}

/* ---- Keras's names ---- */

/* Returns Keras's name of the first layer of this kind in a model; the next is KIND_1. */
static const char *keras_kind(const parameter *p)
{
    if (has(p->g, p->layer, "gamma"))
        return "batch_normalization";
    if (has(p->g, p->layer, "pointwise"))
        return "separable_conv2d";
    char weights[2 * MAP_NAME];
    snprintf(weights, sizeof weights, "%s/w", p->layer);
    const adj_node *w = adj_find(p->g, weights);
    if (w == NULL)
        return NULL;
    const parameter of = parameter_of(p->g, w);
    return is_depthwise(&of) ? "depthwise_conv2d" : is_dense(&of) ? "dense" : "conv2d";
}

static void name_keras_layer(names *n, const parameter *p)
{
    add_layer(n, "%s", p->layer);
    if (strchr(p->layer, '/') != NULL) {
        add_layer(n, "%s", p->layer);
        replace(n->layer[1], '/', '_');
        add_layer(n, "%s", p->layer);
        replace(n->layer[2], '/', '.');
    }
    if (strcmp(p->layer, "logits") == 0) {
        add_layer(n, "predictions");
        add_layer(n, "fc");
    }
    n->kind = keras_kind(p);
}

/* ---- all of them ---- */

static void name_parameter(map_entry *e, names *n, adj_graph *g, const adj_node *leaf, int keras)
{
    const parameter p = parameter_of(g, leaf);
    snprintf(e->ours, sizeof e->ours, "%s", adj_node_name(leaf));
    snprintf(n->own, sizeof n->own, "%s", p.layer);
    snprintf(n->own_part, sizeof n->own_part, "%s", p.part);
    name_part(n, &p, keras);
    if (keras) {
        name_keras_layer(n, &p);
        return;
    }
    name_torch_layer(n, &p);
    lay_out_torch(e, &p);
}

adj_status map_name(weight_map *m, int keras, adj_graph *g, const adj_tensors *theirs,
                    adj_error *error)
{
    names *all = calloc((size_t)adj_graph_node_count(g) + 1, sizeof *all);
    adj_status status = ADJ_OK;

    if (all == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "map: out of memory");
    for (int id = 0; id < adj_graph_node_count(g) && status == ADJ_OK; id++) {
        const adj_node *leaf = adj_graph_node_at(g, id);
        if (!(adj_node_is_param(leaf) || adj_node_is_state(leaf)) || adj_is_training_state(leaf))
            continue;
        map_entry *e = map_add(m, error);
        if (e != NULL)
            name_parameter(e, &all[m->n - 1], g, leaf, keras);
        else
            status = ADJ_ENOMEM;
    }
    if (status == ADJ_OK)
        status = map_find_names(m, all, keras, theirs, error);
    free(all);
    return status;
}
