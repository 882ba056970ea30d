/* line.c - see line.h.
 *
 * The options follow from the op's declared attributes and operands. op_line_of builds the node
 * again from them and compares, so that a node which options cannot describe is refused, never
 * written wrongly. */
#include <stdio.h>
#include <string.h>

#include "base/c_locale.h"
#include "check/inspect.h"
#include "line.h"
#include "ops/attr_lists.h"

/* ---- attributes ---- */

static void put(op_line *l, const char *name, const char *value)
{
    c_append(l->attr, sizeof l->attr, "%s%s=%s", l->attr[0] != '\0' ? "," : "", name, value);
}

enum { LIST_TEXT = 192 };

static void write_list(char *text, size_t size, int64_t n, const int64_t v[])
{
    text[0] = '\0';
    for (int64_t i = 0; i < n; i++)
        c_append(text, size, "%s%lld", i > 0 ? "," : "", (long long)v[i]);
}

static void put_list(op_line *l, const char *name, int64_t n, const int64_t v[])
{
    char text[LIST_TEXT];
    write_list(text, sizeof text, n, v);
    put(l, name, text);
}

static void put_integer(op_line *l, const char *name, int64_t v) { put_list(l, name, 1, &v); }

static void put_format(op_line *l, adj_format format)
{
    if (format == ADJ_NCHW)
        put(l, "data_format", "NCHW");
}

/* Steps of 1 are the default. */
static void put_steps(op_line *l, const char *name, const int64_t v[4])
{
    if (v[0] != 1 || v[1] != 1 || v[2] != 1 || v[3] != 1)
        put_list(l, name, 4, v);
}

static void put_padding(op_line *l, adj_padding padding, const int64_t pad[4][2])
{
    if (padding == ADJ_VALID)
        put(l, "padding", "VALID");
    if (padding == ADJ_EXPLICIT) {
        put(l, "padding", "EXPLICIT");
        put_list(l, "explicit_paddings", 8, &pad[0][0]);
    }
}

static void put_conv(op_line *l, const adj_conv *a)
{
    l->attr[0] = '\0';
    put_steps(l, "strides", a->stride);
    put_steps(l, "dilations", a->dilation);
    put_padding(l, a->padding, a->pad);
    put_format(l, a->format);
}

static void put_pool(op_line *l, const adj_pool *a)
{
    l->attr[0] = '\0';
    put_list(l, "ksize", 4, a->ksize);
    put_list(l, "strides", 4, a->stride);
    put_padding(l, a->padding, a->pad);
    put_format(l, a->format);
}

static void put_axes(op_line *l, const char *name, int64_t bits)
{
    int64_t axis[ADJ_MAX_RANK], n = 0;
    for (int64_t i = 0; i < ADJ_MAX_RANK; i++)
        if (bits >> i & 1)
            axis[n++] = i;
    put_list(l, name, n, axis);
}

static void put_attr(const adj_node *n, const adj_attr *a, op_line *l)
{
    const void *v = (const char *)n->attrs + a->offset;
    const adj_shape *shape = v;
    const int64_t rank = n->n_in > 0 ? n->in[0]->type.shape.rank : 0;
    char number[NUMBER_TEXT];
    if (a->flags & ADJ_ATTR_OF_RESULT)
        return;
    switch (a->kind) {
    case ADJ_ATTR_REAL: put(l, a->name, number_text(*(const double *)v, number)); break;
    case ADJ_ATTR_SEED:
        snprintf(number, sizeof number, "%llu", (unsigned long long)*(const uint64_t *)v);
        put(l, a->name, number);
        break;
    case ADJ_ATTR_INT:
    case ADJ_ATTR_FLAG: put_integer(l, a->name, *(const int64_t *)v); break;
    case ADJ_ATTR_CHOICE: put(l, a->name, a->words[*(const int64_t *)v]); break;
    case ADJ_ATTR_FORMAT: put_format(l, (adj_format) * (const int64_t *)v); break;
    case ADJ_ATTR_DTYPE: put(l, a->name, adj_dtype_name((adj_dtype) * (const int64_t *)v)); break;
    case ADJ_ATTR_SHAPE: put_list(l, a->name, shape->rank, shape->dim); break;
    case ADJ_ATTR_PER_AXIS: put_list(l, a->name, rank, shape->dim); break;
    case ADJ_ATTR_PERM: put_list(l, a->name, rank, v); break;
    case ADJ_ATTR_AXES: put_axes(l, a->name, *(const int64_t *)v); break;
    case ADJ_ATTR_CONV: put_conv(l, v); break;
    case ADJ_ATTR_POOL: put_pool(l, v); break;
    }
}

/* Returns 0 if operand i is not computed by its maker, 1 if it is computed from n's own operands, 2
 * if from others. */
static int is_made(const adj_node *n, int i)
{
    const adj_op *maker = n->op->maker[i];
    const adj_node *by = n->in[i];
    int from[ADJ_NAMED_OPERANDS];
    if (by->op != maker)
        return 0;
    op_maker_operands(n->op, maker, from);
    for (int k = 0; k < maker->n_in; k++)
        if (by->in[k] != n->in[from[k]])
            return 2;
    return 1;
}

/* Writes the attributes, and for an operand with a maker whether the maker computes it, where that
 * differs from the op's example. */
static void put_attrs(const adj_node *n, op_line *l)
{
    if (n->op->schema != NULL)
        for (const adj_attr *a = n->op->schema->attr; a->name != NULL; a++)
            put_attr(n, a, l);
    for (int i = 0; i < n->n_in && i < ADJ_NAMED_OPERANDS; i++)
        if (n->op->maker[i] != NULL &&
            is_made(n, i) != (n->op->example[i] == ADJ_EXAMPLE_COMPUTED_STATISTICS))
            put_integer(l, n->op->operand[i], is_made(n, i));
}

/* ---- shapes ---- */

enum { RESULT = -1, NONE = -2 };

/* Returns the operand whose shape is --in, or --filter. */
static int described(const adj_op *op, int is_filter)
{
    const adj_op *of = op->forward != NULL ? op->forward : op;
    int place = 0;
    while (is_filter
               ? !is_from_filter(op_example(of, place)) && op_example(of, place) != ADJ_EXAMPLE_NONE
               : op_example(of, place) == ADJ_EXAMPLE_NUMBER)
        place++;
    if (of->n_in == 0 || op_example(of, place) == ADJ_EXAMPLE_NONE)
        return is_filter ? NONE : RESULT;
    if (op->forward == NULL)
        return place;
    const adj_example at = place == 0 ? ADJ_EXAMPLE_OPERAND_0 : ADJ_EXAMPLE_OPERAND_1;
    for (int i = 0; i < op->n_in && place < 2; i++)
        if (op->example[i] == at)
            return i;
    return RESULT;
}

static adj_shape shape_of(const adj_node *n, int operand)
{
    return operand == RESULT ? n->type.shape : n->in[operand]->type.shape;
}

static const char *write_shape(char *text, size_t size, adj_shape shape)
{
    if (shape.rank == 0)
        snprintf(text, size, "scalar");
    else
        write_list(text, size, shape.rank, shape.dim);
    return text;
}

op_args op_line_args(op_line *l)
{
    if (l->is_conv)
        put_conv(l, &l->conv);
    if (l->is_pool)
        put_pool(l, &l->pool);
    l->args.attr = l->attr[0] != '\0' ? l->attr : NULL;
    l->args.in = write_shape(l->in_text, sizeof l->in_text, l->in);
    l->args.filter = l->is_same      ? "same"
                     : l->has_filter ? write_shape(l->filter_text, sizeof l->filter_text, l->filter)
                                     : NULL;
    return l->args;
}

static int channel_axis(adj_format format) { return format == ADJ_NCHW ? 1 : 3; }
static int height_axis(adj_format format) { return format == ADJ_NCHW ? 2 : 1; }
static int is(const op_line *l, const char *op) { return strcmp(l->args.op, op) == 0; }

/* Sets the numbers besides the shapes. */
static void read_numbers(const adj_node *n, op_line *l)
{
    l->is_conv = adj_node_conv(n, &l->conv);
    l->is_pool = adj_node_pool(n, &l->pool);
    if (l->is_conv || l->is_pool)
        l->format = l->is_conv ? l->conv.format : l->pool.format;
    if (l->is_conv && strncmp(l->args.op, "depthwise", 9) != 0 && l->filter.dim[2] > 0)
        l->groups = l->in.dim[channel_axis(l->format)] / l->filter.dim[2];
    if (l->is_conv && l->groups > 0)
        l->outputs = l->filter.dim[3] / l->groups;
    l->is_product = is(l, "matmul") && l->in.rank == 2 && l->filter.rank == 2;
    if (l->is_product) {
        const adj_matmul_attrs *t = n->attrs;
        l->in_inner = t->transpose_a ? 0 : 1;
        l->filter_inner = t->transpose_b ? 1 : 0;
    }
    l->is_pair =
        !l->is_conv && !is(l, "matmul") && l->has_filter && adj_shape_equal(l->in, l->filter);
}

int op_line_write(const adj_node *n, op_line *l)
{
    *l = (op_line){.args = {.op = ""}, .groups = 1};
    if (n == NULL || n->op->flags & ADJ_OP_LEAF)
        return 0;
    int in = described(n->op, 0), filter = described(n->op, 1);
    l->has_filter = filter != NONE && filter < n->n_in;
    l->is_same = l->has_filter && in >= 0 && n->in[filter] == n->in[in];
    l->in = shape_of(n, in);
    if (l->has_filter)
        l->filter = shape_of(n, filter);
    adj_dtype dtype = n->type.dtype;
    if (n->n_in > 0 && adj_is_float(n->in[0]->type.dtype))
        dtype = n->in[0]->type.dtype;
    l->args = (op_args){.op = n->op->name};
    if (adj_is_float(dtype) && dtype != ADJ_F32)
        l->args.dtype = adj_dtype_name(dtype);
    put_attrs(n, l);
    read_numbers(n, l);
    (void)op_line_args(l);
    return 1;
}

int op_line_of(const adj_node *n, op_line *l)
{
    if (!op_line_write(n, l))
        return 0;
    adj_graph *g = adj_graph_new();
    int same = g != NULL && adj_gradcheck_same(n, op_args_build(&l->args, g, NULL));
    adj_graph_free(g);
    return same;
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
