/* line.c - see line.h. */
#include <string.h>

#include "line.h"
#include "ops/attr_lists.h"

static int channel_axis(adj_format format) { return format == ADJ_NCHW ? 1 : 3; }
static int height_axis(adj_format format) { return format == ADJ_NCHW ? 2 : 1; }
static int is(const op_line *l, const char *op) { return strcmp(l->text.args.op, op) == 0; }

int op_line_of(const adj_node *n, op_line *l)
{
    *l = (op_line){.groups = 1};
    if (adj_node_operand_count(n) == 0 || !op_text_write(n, &l->text))
        return 0;
    l->in = l->text.in_shape;
    l->filter = l->text.filter_shape;
    l->is_conv = adj_node_conv(n, &l->conv);
    l->is_pool = adj_node_pool(n, &l->pool);
    if (l->is_conv || l->is_pool)
        l->format = l->is_conv ? l->conv.format : l->pool.format;
    if (l->is_conv && strncmp(l->text.args.op, "depthwise", 9) != 0 && l->filter.dim[2] > 0)
        l->groups = l->in.dim[channel_axis(l->format)] / l->filter.dim[2];
    if (l->is_conv && l->groups > 0)
        l->outputs = l->filter.dim[3] / l->groups;
    l->is_product = is(l, "matmul") && l->in.rank == 2 && l->filter.rank == 2;
    if (l->is_product) {
        const adj_matmul_attrs *t = n->attrs;
        l->in_inner = t->transpose_a ? 0 : 1;
        l->filter_inner = t->transpose_b ? 1 : 0;
    }
    l->is_pair = !l->is_conv && !is(l, "matmul") && l->text.has_filter &&
                 strcmp(l->text.in, l->text.filter) == 0;
    return 1;
}

op_args op_line_args(const op_line *l, op_text *t)
{
    *t = l->text;
    t->args.attr = t->args.attr != NULL ? t->attr : NULL; /* the copy's */
    op_text_shapes(t, l->in, l->filter);
    if (l->is_conv)
        op_text_conv(t, &l->conv);
    if (l->is_pool)
        op_text_pool(t, &l->pool);
    return t->args;
}

/* ---- its numbers ---- */

static void add(op_number numbers[MAX_NUMBERS], int *n, int64_t *value, int64_t min)
{
    if (*value > min && *n < MAX_NUMBERS)
        numbers[(*n)++] = (op_number){value, min};
}

static void add_pads(op_number numbers[MAX_NUMBERS], int *n, adj_padding padding, int64_t pad[4][2])
{
    for (int i = 0; i < 4 && padding == ADJ_EXPLICIT; i++)
        for (int end = 0; end < 2; end++)
            add(numbers, n, &pad[i][end], 0);
}

int op_line_numbers(op_line *l, op_number numbers[MAX_NUMBERS])
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
        if (l->is_product)
            add(numbers, &n, &l->filter.dim[1 - l->filter_inner], 1);
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
    }
    if (l->is_product)
        l->filter.dim[l->filter_inner] = l->in.dim[l->in_inner];
    if (l->is_pair)
        l->filter = l->in;
}
