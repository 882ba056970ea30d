/* graph.c - see graph.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph.h"

enum { MAX_SIDE = 4096 }; /* largest side of compared images */

enum { DEFAULT_NEIGHBORS = 8 };

/* ---- options ---- */

void compared_options(compared_opts *o, int has_default_model, option to[COMPARED_OPTIONS + 1])
{
    const char *needs = has_default_model ? NULL : "--model";
    const char *excludes = has_default_model ? "--op" : NULL;
    const option own[COMPARED_OPTIONS - OP_OPTIONS] = {
        {"--model", "NAME", "model, see adjoint models; or an ONNX file", .text = &o->model,
         .names = model_name_at, .excludes = excludes},
        {"--node", "ID", "only this node of the model, 3, %3 or its name, and its operands",
         .text = &o->node, .needs = needs, .excludes = excludes},
        {"--optimizer", "NAME", "optimizer of the model's training step; default: momentum",
         .text = &o->optimizer, .names = optimizer_name_at, .needs = needs, .excludes = excludes},
        {"--batch", "N", "images per batch of the model; default: 2", .integer = &o->batch,
         .range = {1, 4096}, .needs = needs, .excludes = excludes},
        {"--neighbors", "N", "extra shapes close to the given one, with --op; default: 8",
         .integer = &o->neighbors, .range = {0, DEFAULT_NEIGHBORS}, .needs = "--op"},
    };
    memcpy(to, own, sizeof own);
    op_args_options(&o->op, to + COMPARED_OPTIONS - OP_OPTIONS);
    to[COMPARED_OPTIONS] = (option){0};
}

int compared_repeat(const compared_opts *o, char *line, size_t size)
{
    repeat_option(line, size, "--model", o->model);
    repeat_option(line, size, "--infer", o->infer ? "" : NULL);
    repeat_option(line, size, "--node", o->node);
    repeat_option(line, size, "--optimizer", o->optimizer);
    op_args_repeat(&o->op, line, size);
    if (o->model != NULL)
        repeat_number(line, size, "--batch", (double)o->batch, 0);
    else
        repeat_number(line, size, "--neighbors", (double)o->neighbors, DEFAULT_NEIGHBORS);
    repeat_option(line, size, "--size", o->size);
    return strlen(line) + 1 < size;
}

/* ---- attributes: shapes, and attributes that go with them ----
 *
 * Default values may hide a fault: equal sizes, the same window in both directions.
 * adj_node_variant has the values that need no other shapes. */

/* Ops that take the same sets. */
#define CONV                                                                                       \
    "conv2d conv2d_backprop_input conv2d_backprop_filter depthwise_conv2d_native "                 \
    "depthwise_conv2d_native_backprop_input depthwise_conv2d_native_backprop_filter"
#define POOL "max_pool max_pool_grad max_pool_grad_grad avg_pool avg_pool_grad"
#define REDUCE "reduce_sum reduce_mean reduce_max"
#define BINARY "add sub mul div maximum minimum equal greater_equal pow"
#define CHANNELS                                                                                   \
    "batch_norm batch_norm_grad batch_norm_grad_sums bias_add bias_add_grad batch_norm_stats "     \
    "prelu prelu_grad"
#define GROUP_NORM "group_norm group_norm_grad group_norm_grad_sums"
#define RESIZE "resize resize_grad"
#define SOFTMAX                                                                                    \
    "softmax log_softmax softmax_cross_entropy softmax_cross_entropy_grad "                        \
    "sparse_softmax_cross_entropy sparse_softmax_cross_entropy_grad"

/* Sets of options; op: names of the ops that use the set. */
static const struct {
    const char *op, *in, *filter, *attr;
} sets[] = {
    {CONV, "2,9,8,4", "3,2,4,6", "strides=1,2,1,1"},
    {CONV, "2,9,8,4", "3,3,4,6", "dilations=1,2,2,1"},
    {CONV, "2,9,8,4", "2,3,4,6", "strides=1,1,2,1,padding=VALID"},
    {CONV, "2,9,8,4", "3,2,4,6",
     "padding=EXPLICIT,explicit_paddings=0,0,2,1,0,3,0,0,dilations=1,1,3,1"},
    {CONV, "2,4,9,8", "3,2,4,6", "strides=1,1,2,2,data_format=NCHW"},
    {CONV, "2,4,7,6", "3,3,4,4",
     "padding=EXPLICIT,explicit_paddings=0,0,0,0,2,1,0,3,data_format=NCHW"},
    {CONV, "2,11,8,4", "3,3,4,4", "strides=1,3,3,1"},
    {CONV, "2,9,10,3", "3,3,3,8", "strides=1,2,2,1,dilations=1,2,2,1"},
    {CONV, "2,9,41,3", "3,3,3,24", "strides=1,2,2,1"},
    {CONV, "1,3,3,3", "3,3,3,4",
     "padding=EXPLICIT,explicit_paddings=0,0,1,1,1,1,0,0,dilations=1,2,2,1"}, /* one pixel */
    {CONV, "2,6,7,4", "1,1,4,6", "padding=EXPLICIT,explicit_paddings=0,0,0,1,0,2,0,0"},
    {CONV, "2,6,7,3", "1,1,3,2", "padding=EXPLICIT,explicit_paddings=0,0,0,0,1,1,0,0"},
    {CONV, "2,8,8,300", "3,3,300,3", NULL},
    {"conv2d conv2d_backprop_input conv2d_backprop_filter", "2,9,8,4", "3,3,2,6", NULL},
    {"conv2d conv2d_backprop_input conv2d_backprop_filter", "2,9,8,4", "3,3,2,6",
     "dilations=1,2,2,1"},
    {"conv2d conv2d_backprop_input conv2d_backprop_filter", "2,13,13,16", "3,3,16,16", NULL},
    {"conv2d conv2d_backprop_input conv2d_backprop_filter", "2,12,12,16", "3,3,16,16",
     "padding=EXPLICIT,explicit_paddings=0,0,1,1,2,0,0,0"},
    {"conv2d conv2d_backprop_input conv2d_backprop_filter", "2,40,40,16", "3,3,16,4", NULL},
    {POOL, "2,9,8,3", NULL, "ksize=1,3,2,1,strides=1,2,1,1"},
    {POOL, "2,9,8,3", NULL, "ksize=1,2,3,1,strides=1,1,2,1,padding=VALID"},
    {POOL, "2,3,9,8", NULL, "ksize=1,1,3,3,strides=1,1,2,2,data_format=NCHW"},
    {POOL, "2,14,14,3", NULL, "ksize=1,2,2,1,strides=1,5,5,1,padding=VALID"},
    {POOL, "2,8,9,3", NULL, "ksize=1,2,2,1,strides=1,2,2,1"},
    {"max_pool max_pool_grad max_pool_grad_grad", "2,4,4,6", NULL, "ksize=1,1,1,3,strides=1,1,1,3"},
    {RESIZE, "2,5,4,3", NULL, "height=9,width=7,mode=nearest,coordinates=asymmetric"},
    {RESIZE, "2,5,4,3", NULL, "height=9,width=7,coordinates=align_corners"},
    {RESIZE, "2,5,4,3", NULL, "height=3,width=3,coordinates=asymmetric"},
    {RESIZE, "2,5,4,3", NULL, "height=1,width=1,coordinates=align_corners"},
    {RESIZE, "2,3,3,1500", NULL, NULL},
    {RESIZE, "2,3,5,4", NULL,
     "height=9,width=7,mode=nearest,coordinates=align_corners,data_format=NCHW"},
    {"batch_norm batch_norm_grad_sums", NULL, NULL, "stats=0"}, /* running statistics */
    {"batch_norm batch_norm_grad_sums", NULL, NULL, "stats=2"}, /* statistics of another tensor */
    {"batch_norm", NULL, NULL, "epsilon=0.5,stats=0"},
    {"batch_norm_grad", NULL, NULL, "sums=1"},
    {CHANNELS, "2,3,5,4", NULL, "data_format=NCHW"},
    {CHANNELS, "2,4,4", NULL, "data_format=NCHW"},
    {CHANNELS, "2,3,3,3,4", NULL, NULL},
    {CHANNELS, "2,4,3,3,4", NULL, "data_format=NCHW"},
    {GROUP_NORM, "2,4,3,6", NULL, "epsilon=0.5,groups=3"},
    {GROUP_NORM, "2,6,4,3", NULL, "groups=2,data_format=NCHW"},
    {GROUP_NORM, "2,6,5", NULL, "groups=2,data_format=NCHW"},
    {GROUP_NORM, "100,12", NULL, "groups=3"},
    {GROUP_NORM, "2,3,2,2,6", NULL, "groups=3"},
    {"prelu_grad_slope", "2,3,5,4", NULL, "slopes=3,data_format=NCHW"},
    {"prelu_grad_slope", "2,5,4,3", NULL, "slopes=1"},
    {"matmul", "3,4", "4,5", "transpose_a=0"},
    {"matmul", "3,4", "5,4", "transpose_b=1"},
    {"matmul", "4,3", "4,5", "transpose_a=1"},
    {"matmul", "4,3", "5,4", "transpose_a=1,transpose_b=1"},
    {REDUCE, "2,3,4,5", NULL, "axes=1,2,keep_dims=1"},
    {REDUCE, "11,3,4,5", NULL, "axes=1,3"},
    {REDUCE, "2,2,2,2,3", NULL, "axes=4"},
    {REDUCE, "2,3,2,3,4", NULL, "axes=1,3"},
    {"transpose", "2,3,2,3,4", NULL, "perm=4,2,0,3,1"},
    {"argmax", "2,3,4,5", NULL, "axis=1"},
    {"pad", "2,3,4,5", NULL, "before=0,1,2,0,after=1,0,0,3"},
    {"slice", "4,5,6", NULL, "begin=1,0,2,size=2,5,3"},
    {"concat", "2,3,4,5", "2,1,4,5", "axis=1"},
    {"concat", "2,3,4", "5,3,4", "axis=0"},
    {"concat", "2,3,4,5", "2,3,4,9", "axis=3"},
    {"broadcast_to", "3,1", NULL, "shape=2,3,4"},
    {"broadcast_to", "2,1,4,1", NULL, "shape=2,3,4,5"},
    {"broadcast_to", "scalar", NULL, "shape=2,3"},
    {"reshape", "2,3,4", NULL, "shape=4,6"},
    {"softmax log_softmax", "2,3,4,5", NULL, NULL},
    {"softmax log_softmax", "3,70", NULL, NULL},
    {SOFTMAX, "32,511", NULL, NULL},
    {"softmax_cross_entropy sparse_softmax_cross_entropy", "17,12", NULL, "smoothing=0"},
    {BINARY, "3,25,20", "3,25,20", NULL},
    {BINARY, "2,3,4", "3,1", NULL},
    {BINARY, "1,5", "3,1,1,5", NULL},
    {BINARY, "2,3,4,5", "1,3,4,5", NULL},
    {BINARY, "2,3,4,5", "2,1,4,1", NULL},
    {BINARY, "scalar", "2,3", NULL},
    {BINARY, "2,3", "scalar", NULL},
    {BINARY, "2,3,4", "same", NULL},
    {"matmul", "4,4", "same", "transpose_b=1"},
    {"concat", "2,3,4", "same", "axis=1"},
};

int op_attribute_set(const op_args *given, int i, op_args *out)
{
    if (op_args_given(given, "--dtype") != NULL)
        return 0;
    for (size_t k = 0; k < sizeof sets / sizeof *sets; k++) {
        if (word_index(sets[k].op, given->op) < 0 || i-- > 0)
            continue;
        *out = (op_args){.op = given->op,
                         .in = sets[k].in,
                         .filter = sets[k].filter,
                         .attr = sets[k].attr,
                         .dtype = given->dtype};
        return 1;
    }
    return 0;
}

/* ---- shapes close to an op's own ----
 *
 * Kernels work in blocks of 8, 16, 32 or 64 channels and share images among threads: shapes close
 * to these sizes reach code that full blocks do not. Rows of 16 pixels are blocks, too: some
 * kernels treat narrower rows differently. */

enum { EDGE = 17, MAX_NEAR = 64, MAX_CHANNELS = 96 };

/* Sizes of a variant of the shape; 0: the op's own size. */
typedef struct {
    int64_t images, side, channels, outputs;
    int other_strides; /* 2 becomes of 1, and 1 of larger sizes */
} sizes;

static const sizes around[] = {
    {.images = EDGE},
    {.images = 1, .channels = 15},
    {.channels = EDGE, .outputs = EDGE},
    {.side = 7, .channels = 33, .other_strides = 1},
    {.channels = 1, .outputs = 33},
    {.images = 3, .side = 15, .channels = 8, .outputs = 8},
    {.side = 5, .channels = 65, .outputs = 15},
    {.images = 9, .side = 4, .channels = 16, .outputs = 16, .other_strides = 1},
};

static void set(int64_t *to, int64_t value, int64_t max)
{
    *to = value > 0 && *to > 0 ? value : *to;
    *to = *to > max ? max : *to;
}

static void move_strides(op_line *l)
{
    int64_t *stride =
        (l->is_conv ? l->conv.stride : l->pool.stride) + (l->format == ADJ_NCHW ? 2 : 1);
    for (int i = 0; i < 2; i++)
        stride[i] = stride[i] == 1 ? 2 : 1;
}

static void move_image(op_line *l, const sizes *s)
{
    const int nchw = l->format == ADJ_NCHW;
    set(&l->in.dim[0], s->images, EDGE);
    if (s->other_strides)
        move_strides(l);
    for (int i = 0; i < 2; i++) {
        int64_t *side = &l->in.dim[(nchw ? 2 : 1) + i];
        if (!l->is_conv || s->side == 0 ||
            s->side >= l->conv.dilation[nchw ? 2 + i : 1 + i] * (l->filter.dim[i] - 1) + 1)
            set(side, s->side > 0 ? s->side + i : 0, MAX_NEAR);
    }
    if (l->is_conv) {
        set(&l->filter.dim[2], s->channels, MAX_CHANNELS);
        set(&l->outputs, strncmp(l->args.op, "depthwise", 9) == 0 ? 0 : s->outputs, MAX_CHANNELS);
    } else {
        set(&l->in.dim[nchw ? 1 : 3], s->channels, MAX_CHANNELS);
    }
}

static void move_array(op_line *l, const sizes *s)
{
    const int64_t last = l->in.rank - 1;
    if (last < 0)
        return;
    set(&l->in.dim[0], s->images, MAX_CHANNELS);
    set(&l->in.dim[last], s->channels, MAX_CHANNELS);
    for (int64_t i = 1; last == 3 && i < last && l->format == ADJ_NHWC; i++)
        set(&l->in.dim[i], s->side, MAX_NEAR); /* an odd number of pixels */
    if (l->is_product)
        set(&l->filter.dim[1 - l->filter_inner], s->outputs, MAX_CHANNELS);
}

int op_neighbor(const adj_node *n, int i, op_line *l)
{
    if (i >= (int)(sizeof around / sizeof *around) || adj_node_operand_count(n) == 0 ||
        !op_line_write(n, l))
        return 0;
    if (l->is_conv || l->is_pool)
        move_image(l, &around[i]);
    else
        move_array(l, &around[i]);
    op_line_settle(l);
    (void)op_line_args(l);
    return 1;
}

int op_is_possible(const op_args *args)
{
    adj_graph *alone = adj_graph_new();
    const int is_possible = op_args_build(args, alone, NULL) != NULL;
    adj_graph_free(alone);
    return is_possible;
}

/* ---- the graph ---- */

/* Adds a root and its gradients. */
static adj_status add_node(compared *c, adj_node *y, int with_gradients)
{
    c->root[c->n_root++] = y;
    adj_node *x[MAX_ROOTS_OF_OP], *dx[MAX_ROOTS_OF_OP];
    int n = 0;
    for (int k = 0; k < adj_node_operand_count(y) && with_gradients && n < MAX_ROOTS_OF_OP - 1; k++)
        if (adj_node_type(adj_node_operand_at(y, k)).dtype != ADJ_I32)
            x[n++] = adj_node_operand_at(y, k);
    if (n == 0 || adj_node_type(y).dtype == ADJ_I32)
        return ADJ_OK;
    adj_type t = adj_node_type(y);
    char name[16];
    snprintf(name, sizeof name, c->n_variant > 0 ? "dy%d" : "dy", c->n_variant);
    adj_status status = adj_grad(y, adj_input(c->m.graph, name, t.dtype, t.shape), n, x, dx);
    for (int k = 0; k < n && status == ADJ_OK; k++)
        c->root[c->n_root++] = dx[k];
    return status;
}

static adj_status add_op(compared *c, const op_args *args, int with_gradients)
{
    adj_node *y = op_args_build(args, c->m.graph, &c->m.error);
    return y != NULL ? add_node(c, y, with_gradients) : c->m.error.status;
}

static int has_room(const compared *c) { return c->n_root + MAX_ROOTS_OF_OP <= MAX_ROOTS; }

/* ---- operands that rewriting rules look at ---- */

enum { FILLS = 4, SCALED = FILLS, TRANSPOSED, TRANSPOSED_ALIKE, WAYS };

/* Returns an operand of x's type: a constant, a multiple of x, or another input transposed. */
static adj_node *seen_by_rules(compared *c, adj_node *x, int k, int way)
{
    static const double fills[FILLS] = {-1, 0, 1, 2};
    const adj_type t = adj_node_type(x);
    const int rank = (int)t.shape.rank, is_other = way == TRANSPOSED && k % 2 == 1 && rank > 1;
    adj_shape shape = {.rank = rank};
    int perm[ADJ_MAX_RANK];
    char name[24];
    if (!adj_is_float(t.dtype))
        return x;
    if (way < FILLS)
        return adj_fill(c->m.graph, t.dtype, t.shape, fills[way]);
    if (way == SCALED)
        return adj_scale(x, 2);
    for (int i = 0; i < rank; i++)
        perm[i] = (i + 1) % rank;
    if (is_other) { /* begins like the permutation of the operand before */
        perm[rank - 1] = perm[rank - 2];
        perm[rank - 2] = 0;
    }
    for (int i = 0; i < rank; i++)
        shape.dim[perm[i]] = t.shape.dim[i];
    snprintf(name, sizeof name, "t%d", adj_graph_node_count(c->m.graph));
    return adj_transpose(adj_input(c->m.graph, name, t.dtype, shape), rank, perm);
}

/* Adds an op that has rules, over operands that they look at: one of them a constant or a multiple,
 * or all of them transposes. */
static adj_status add_behind(compared *c, adj_node *y, int with_gradients)
{
    adj_node *in[MAX_ROOTS_OF_OP];
    adj_status status = ADJ_OK;
    for (int way = 0; y->op->simplify != NULL && y->n_in < MAX_ROOTS_OF_OP && way < WAYS; way++)
        for (int k = 0; k < (way > SCALED ? 1 : y->n_in) && status == ADJ_OK && has_room(c); k++) {
            for (int i = 0; i < y->n_in; i++)
                in[i] = way > SCALED || i == k ? seen_by_rules(c, y->in[i], i, way) : y->in[i];
            adj_node *v = adj_node_new(c->m.graph, y->op, y->n_in, in, y->attrs);
            c->n_variant++;
            status = v != NULL ? add_node(c, v, with_gradients) : adj_graph_status(c->m.graph);
        }
    return status;
}

/* Adds a variant if its options can be built and there is room; has_rules: also over the operands
 * that rules look at. */
static adj_status add_variant(compared *c, const op_args *args, int with_gradients, int has_rules)
{
    if (!op_is_possible(args) || !has_room(c))
        return ADJ_OK;
    c->n_variant++;
    const int root = c->n_root;
    adj_status status = add_op(c, args, with_gradients);
    if (status == ADJ_OK && has_rules)
        status = add_behind(c, c->root[root], with_gradients);
    return status;
}

/* Adds the op with other values of its attributes over the same operands. */
static adj_status add_values(compared *c, adj_node *y, int with_gradients)
{
    adj_status status = ADJ_OK;
    adj_node *v;
    for (int next = 0; status == ADJ_OK && has_room(c) && (v = adj_node_variant(y, &next)) != NULL;)
        if (adj_position(c->n_root, (const adj_node *const *)c->root, v) < 0) {
            c->n_variant++;
            status = add_node(c, v, with_gradients);
        }
    return status;
}

/* Builds the op in a graph of its own, with its gradients if it has any, and its variants. */
static adj_status open_op(compared *c, const compared_opts *o, int with_gradients)
{
    op_args set;
    op_line near;
    c->n_root = c->n_variant = 0;
    c->m.graph = adj_graph_new();
    adj_status status = add_op(c, &o->op, with_gradients);
    adj_node *y = c->root[0];
    if (status == ADJ_OK && o->sets && op_args_given(&o->op, "--dtype") == NULL)
        status = add_values(c, y, with_gradients);
    if (status == ADJ_OK && o->sets)
        status = add_behind(c, y, with_gradients);
    for (int i = 0; o->sets && status == ADJ_OK && op_attribute_set(&o->op, i, &set); i++)
        status = add_variant(c, &set, with_gradients, 1);
    for (int i = 0; i < o->neighbors && status == ADJ_OK && op_neighbor(y, i, &near); i++)
        status = add_variant(c, &near.args, with_gradients, 0);
    return status;
}

/* Returns the node of that id, as tables show it or as a number, or of that name. */
static adj_node *node_named(const adj_graph *g, const char *text)
{
    char *end;
    const char *number = text + (text[0] == '%');
    const long id = number[0] >= '0' && number[0] <= '9' ? strtol(number, &end, 10) : -1;
    if (id >= 0 && *end == '\0')
        return id < adj_graph_node_count(g) ? adj_graph_node_at(g, (int)id) : NULL;
    return adj_find(g, text);
}

static adj_status only_node(compared *c, const compared_opts *o)
{
    adj_node *n = node_named(c->m.graph, o->node);
    c->root[0] = n;
    c->m.updates = NULL;
    if (n != NULL && (o->no_gradients || adj_node_operand_count(n) > 0))
        return ADJ_OK;
    return adj_error_set(
        &c->m.error, ADJ_EARG, "--node: not a node of %s (got %.80s, expected 0 to %d or a name%s)",
        o->model, o->node, adj_graph_node_count(c->m.graph) - 1, o->no_gradients ? "" : ", an op");
}

static adj_status open_model(compared *c, const compared_opts *o)
{
    adj_model_opts options = {.batch = o->batch, .training = !o->infer};
    adj_optimizer_opts optimizer = model_momentum;
    if (op_args_types(&o->op, &options.dtype, &options.format, &c->m.error) != ADJ_OK)
        return ADJ_EARG;
    if (o->size != NULL && !parse_size(o->size, MAX_SIDE, &options.size.h, &options.size.w))
        return adj_error_set(&c->m.error, ADJ_EARG, "--size: expected N or HxW, 1 to %d (got %s)",
                             MAX_SIDE, o->size);
    if (o->optimizer != NULL && adj_optimizer_from_name(o->optimizer, &optimizer) != ADJ_OK)
        return adj_error_set(&c->m.error, ADJ_EARG, "--optimizer: unknown optimizer %s",
                             o->optimizer);
    adj_status status =
        model_build(&c->m, adj_graph_new(), o->model, &options, o->infer ? NULL : &optimizer);
    if (status != ADJ_OK)
        return status;
    c->root[c->n_root++] = o->infer ? adj_softmax(c->m.logits) : c->m.loss;
    c->label = model_labels(&c->m);
    if (c->root[0] == NULL)
        return adj_error_set(&c->m.error, ADJ_ENOMEM, "out of memory");
    return o->node != NULL ? only_node(c, o) : ADJ_OK;
}

adj_status compared_open(compared *c, const compared_opts *o)
{
    *c = (compared){0};
    if (o->op.op != NULL) {
        adj_status status = open_op(c, o, !o->no_gradients);
        if (status == ADJ_OK || c->m.error.status != ADJ_OK || o->no_gradients)
            return status;
        adj_graph_free(c->m.graph); /* no gradient: the op alone */
        return open_op(c, o, 0);
    }
    return open_model(c, o);
}

void compared_close(compared *c)
{
    free(c->label);
    adj_graph_free(c->m.graph);
}

void compared_compute(const compared *c, adj_leaf_value *labels, adj_compare_opts *o)
{
    *labels = (adj_leaf_value){c->m.labels, c->label};
    o->exec.n_fetch = c->n_root;
    o->exec.fetch = c->root;
    o->exec.updates = c->m.updates;
    o->n_value = c->m.labels != NULL;
    o->value = labels;
}
