/* op_line.c - see op_line.h. */
#include <stdio.h>
#include <string.h>

#include "op_line.h"

enum { RESULT = -1, NONE = -2 };

/* Which operand has the shape that --in gives, and which the filter's; usually 0 and none. */
static const struct {
    const char *op;
    int in, filter;
} shapes[] = {
    {"conv2d", 0, 1},
    {"conv2d_backprop_input", RESULT, 0},
    {"conv2d_backprop_filter", 0, RESULT},
    {"depthwise_conv2d_native", 0, 1},
    {"depthwise_conv2d_native_backprop_input", RESULT, 0},
    {"depthwise_conv2d_native_backprop_filter", 0, RESULT},
    {"matmul", 0, 1},
    {"avg_pool_grad", RESULT, NONE},
    {"broadcast_to", RESULT, NONE},
};

static adj_shape shape_of(const adj_node *n, int operand)
{
    if (operand == NONE)
        return (adj_shape){0};
    return adj_node_type(operand == RESULT ? n : adj_node_in(n, operand)).shape;
}

static int channel_axis(adj_format format) { return format == ADJ_NCHW ? 1 : 3; }
static int height_axis(adj_format format) { return format == ADJ_NCHW ? 2 : 1; }
static int is_float(adj_dtype dtype) { return dtype != ADJ_I32; }

/* Of the first float operand, or the result. */
static adj_dtype dtype_of(const adj_node *n)
{
    for (int k = 0; k < adj_node_n_in(n); k++)
        if (is_float(adj_node_type(adj_node_in(n, k)).dtype))
            return adj_node_type(adj_node_in(n, k)).dtype;
    return is_float(adj_node_type(n).dtype) ? adj_node_type(n).dtype : ADJ_F32;
}

int op_line_of(const adj_node *n, adj_format usual, op_line *l)
{
    int in = 0, filter = NONE;
    *l = (op_line){.op = adj_node_op(n), .format = usual, .groups = 1};
    if (adj_node_n_in(n) == 0)
        return 0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (strcmp(shapes[i].op, l->op) == 0) {
            in = shapes[i].in;
            filter = shapes[i].filter;
        }
    l->in = shape_of(n, in);
    l->filter = shape_of(n, filter);
    l->dtype = dtype_of(n);
    l->is_conv = adj_node_conv(n, &l->conv);
    l->is_pool = adj_node_pool(n, &l->pool);
    if (l->is_conv || l->is_pool)
        l->format = l->is_conv ? l->conv.format : l->pool.format;
    if (l->is_conv && strncmp(l->op, "depthwise", 9) != 0 && l->filter.dim[2] > 0)
        l->groups = l->in.dim[channel_axis(l->format)] / l->filter.dim[2];
    if (l->is_conv && l->groups > 0)
        l->outputs = l->filter.dim[3] / l->groups;
    return 1;
}

/* ---- as options ---- */

static void write_list(char *text, size_t size, int n, const int64_t *v)
{
    size_t used = 0;
    for (int i = 0; i < n && used < size; i++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%lld", i > 0 ? "," : "", (long long)v[i]);
}

/* NULL, which is the default, where all four are 1. */
static const char *write_steps(char *text, size_t size, const int64_t v[4])
{
    int ones = 1;
    for (int i = 0; i < 4; i++)
        ones &= v[i] == 1;
    write_list(text, size, 4, v);
    return ones ? NULL : text;
}

static const char *write_shape(char *text, size_t size, adj_shape shape)
{
    write_list(text, size, (int)shape.rank, shape.dim);
    return shape.rank > 0 ? text : NULL;
}

op_args op_line_args(const op_line *l, op_words *words)
{
    static const char *const paddings[] = {
        [ADJ_VALID] = "VALID", [ADJ_SAME] = "SAME", [ADJ_EXPLICIT] = "EXPLICIT"};
    op_args a = {.op = l->op,
                 .in = write_shape(words->in, sizeof words->in, l->in),
                 .filter = write_shape(words->filter, sizeof words->filter, l->filter),
                 .data_format = l->format == ADJ_NCHW ? "NCHW" : NULL,
                 .dtype = l->dtype != ADJ_F32 ? adj_dtype_name(l->dtype) : NULL};
    adj_padding padding = l->is_conv ? l->conv.padding : l->pool.padding;
    if (l->is_conv) {
        a.strides = write_steps(words->strides, sizeof words->strides, l->conv.stride);
        a.dilations = write_steps(words->dilations, sizeof words->dilations, l->conv.dilation);
    }
    if (l->is_pool) {
        write_list(words->ksize, sizeof words->ksize, 4, l->pool.ksize);
        write_list(words->strides, sizeof words->strides, 4, l->pool.stride);
        a.ksize = words->ksize;
        a.strides = words->strides;
    }
    if ((l->is_conv || l->is_pool) && padding != ADJ_SAME) /* the tool's default */
        a.padding = paddings[padding];
    if ((l->is_conv || l->is_pool) && padding == ADJ_EXPLICIT) {
        write_list(words->pads, sizeof words->pads, 8,
                   l->is_conv ? l->conv.pad[0] : l->pool.pad[0]);
        a.explicit_paddings = words->pads;
    }
    return a;
}

/* ---- its numbers ---- */

static void add(op_number numbers[MOST_NUMBERS], int *n, int64_t *value, int64_t least)
{
    if (*n<MOST_NUMBERS && * value> least)
        numbers[(*n)++] = (op_number){value, least};
}

static void add_pads(op_number numbers[MOST_NUMBERS], int *n, adj_padding padding,
                     int64_t pad[4][2])
{
    for (int i = 0; i < 4 && padding == ADJ_EXPLICIT; i++)
        for (int end = 0; end < 2; end++)
            add(numbers, n, &pad[i][end], 0);
}

int op_line_numbers(op_line *l, op_number numbers[MOST_NUMBERS])
{
    int n = 0, h = height_axis(l->format);
    if (l->is_conv) {
        add(numbers, &n, &l->filter.dim[2], 1); /* input channels of a group */
        add(numbers, &n, &l->outputs, 1);
        add(numbers, &n, &l->groups, 1);
    }
    if (l->is_pool)
        add(numbers, &n, &l->in.dim[channel_axis(l->format)], 1);
    if (l->is_conv || l->is_pool) {
        add(numbers, &n, &l->in.dim[h], 1);
        add(numbers, &n, &l->in.dim[h + 1], 1);
        add(numbers, &n, &l->in.dim[0], 1);
    } else {
        for (int i = (int)l->in.rank - 1; i >= 0; i--)
            add(numbers, &n, &l->in.dim[i], 1);
        if (l->filter.rank == 2)
            add(numbers, &n, &l->filter.dim[1], 1);
    }
    for (int i = 0; i < 2 && l->is_conv; i++)
        add(numbers, &n, &l->filter.dim[i], 1);
    for (int i = h; i < h + 2 && l->is_conv; i++)
        add(numbers, &n, &l->conv.stride[i], 1);
    for (int i = h; i < h + 2 && l->is_conv; i++)
        add(numbers, &n, &l->conv.dilation[i], 1);
    for (int i = 0; i < 4 && l->is_pool; i++)
        add(numbers, &n, &l->pool.ksize[i], 1);
    for (int i = 0; i < 4 && l->is_pool; i++)
        add(numbers, &n, &l->pool.stride[i], 1);
    add_pads(numbers, &n, l->is_conv ? l->conv.padding : l->pool.padding,
             l->is_conv ? l->conv.pad : l->pool.pad);
    return n;
}

void op_line_settle(op_line *l)
{
    if (l->is_conv) {
        l->in.dim[channel_axis(l->format)] = l->filter.dim[2] * l->groups;
        l->filter.dim[3] = l->outputs * l->groups;
    } else if (l->filter.rank == 2) { /* a matrix product */
        l->filter.dim[0] = 1;
        for (int i = 1; i < l->in.rank; i++)
            l->filter.dim[0] *= l->in.dim[i];
    }
}
