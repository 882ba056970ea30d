/* variants.c - variants of an op for the checkers, see graph.h: sets of shapes and attributes,
 * shapes close to the op's own, and operands that rewriting rules look at. */
#include <stdio.h>
#include <string.h>

#include "graph.h"

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

/* ---- operands that rewriting rules look at ---- */

enum { FILLS = 4, SCALED = FILLS, TRANSPOSED, TRANSPOSED_ALIKE, WAYS };

/* Returns an operand like x, the k-th: a constant, a multiple of x, or another input transposed. */
static adj_node *seen_by_rules(adj_node *x, int k, int way)
{
    static const double fills[FILLS] = {-1, 0, 1, 2};
    adj_graph *g = adj_node_graph(x);
    const adj_type t = adj_node_type(x);
    const int rank = (int)t.shape.rank, is_other = way == TRANSPOSED && k % 2 == 1 && rank > 1;
    adj_shape shape = {.rank = rank};
    int perm[ADJ_MAX_RANK];
    char name[24];
    if (!adj_is_float(t.dtype))
        return x;
    if (way < FILLS)
        return adj_fill(g, t.dtype, t.shape, fills[way]);
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
    snprintf(name, sizeof name, "t%d", adj_graph_node_count(g));
    return adj_transpose(adj_input(g, name, t.dtype, shape), rank, perm);
}

adj_node *op_behind(adj_node *y, int i)
{
    adj_node *in[MAX_ROOTS_OF_OP];
    const int n = y->n_in, alone = (SCALED + 1) * n; /* variants that change one operand */
    const int way = i < alone ? i / n : TRANSPOSED + i - alone;
    if (y->op->simplify == NULL || n >= MAX_ROOTS_OF_OP || way >= WAYS)
        return NULL;
    for (int k = 0; k < n; k++)
        in[k] = way > SCALED || i % n == k ? seen_by_rules(y->in[k], k, way) : y->in[k];
    return adj_node_new(adj_node_graph(y), y->op, n, in, y->attrs);
}
