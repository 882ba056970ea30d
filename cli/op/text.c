/* text.c - see text.h.
 *
 * The options follow from the op's declared attributes and operands. op_text_of builds the node
 * again from them and compares, so that a node which options cannot describe is refused, never
 * written wrongly. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/inspect.h"
#include "build.h"
#include "cli/repeat.h"
#include "text.h"

/* ---- attributes ---- */

static void put(op_text *t, const char *name, const char *value)
{
    const size_t used = strlen(t->attr);
    snprintf(t->attr + used, sizeof t->attr - used, "%s%s=%s", used > 0 ? "," : "", name, value);
}

enum { LIST_TEXT = 192 };

static void write_list(char *text, size_t size, int64_t n, const int64_t v[])
{
    size_t used = 0;
    text[0] = '\0';
    for (int64_t i = 0; i < n && used < size; i++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%lld", i > 0 ? "," : "", (long long)v[i]);
}

static void put_list(op_text *t, const char *name, int64_t n, const int64_t v[])
{
    char text[LIST_TEXT];
    write_list(text, sizeof text, n, v);
    put(t, name, text);
}

static void put_integer(op_text *t, const char *name, int64_t v) { put_list(t, name, 1, &v); }

static void put_format(op_text *t, adj_format format)
{
    if (format == ADJ_NCHW)
        put(t, "data_format", "NCHW");
}

/* Steps of 1 are the default. */
static void put_steps(op_text *t, const char *name, const int64_t v[4])
{
    if (v[0] != 1 || v[1] != 1 || v[2] != 1 || v[3] != 1)
        put_list(t, name, 4, v);
}

static void put_padding(op_text *t, adj_padding padding, const int64_t pad[4][2])
{
    if (padding == ADJ_VALID)
        put(t, "padding", "VALID");
    if (padding == ADJ_EXPLICIT) {
        put(t, "padding", "EXPLICIT");
        put_list(t, "explicit_paddings", 8, &pad[0][0]);
    }
}

void op_text_conv(op_text *t, const adj_conv *a)
{
    t->attr[0] = '\0';
    put_steps(t, "strides", a->stride);
    put_steps(t, "dilations", a->dilation);
    put_padding(t, a->padding, a->pad);
    put_format(t, a->format);
    t->args.attr = t->attr[0] != '\0' ? t->attr : NULL;
}

void op_text_pool(op_text *t, const adj_pool *a)
{
    t->attr[0] = '\0';
    put_list(t, "ksize", 4, a->ksize);
    put_list(t, "strides", 4, a->stride);
    put_padding(t, a->padding, a->pad);
    put_format(t, a->format);
    t->args.attr = t->attr;
}

static void put_axes(op_text *t, const char *name, int64_t bits)
{
    int64_t axis[ADJ_MAX_RANK], n = 0;
    for (int64_t i = 0; i < ADJ_MAX_RANK; i++)
        if (bits >> i & 1)
            axis[n++] = i;
    put_list(t, name, n, axis);
}

static void put_attr(const adj_node *n, const adj_attr *a, op_text *t)
{
    const void *v = (const char *)n->attrs + a->offset;
    const adj_shape *shape = v;
    const int64_t rank = n->n_in > 0 ? n->in[0]->type.shape.rank : 0;
    char number[NUMBER_TEXT];
    if (a->flags & ADJ_ATTR_OF_RESULT)
        return;
    switch (a->kind) {
    case ADJ_ATTR_REAL: put(t, a->name, number_text(*(const double *)v, number)); break;
    case ADJ_ATTR_SEED:
        snprintf(number, sizeof number, "%llu", (unsigned long long)*(const uint64_t *)v);
        put(t, a->name, number);
        break;
    case ADJ_ATTR_INT:
    case ADJ_ATTR_FLAG: put_integer(t, a->name, *(const int64_t *)v); break;
    case ADJ_ATTR_CHOICE: put(t, a->name, a->words[*(const int64_t *)v]); break;
    case ADJ_ATTR_FORMAT: put_format(t, (adj_format) * (const int64_t *)v); break;
    case ADJ_ATTR_DTYPE: put(t, a->name, adj_dtype_name((adj_dtype) * (const int64_t *)v)); break;
    case ADJ_ATTR_SHAPE: put_list(t, a->name, shape->rank, shape->dim); break;
    case ADJ_ATTR_PER_AXIS: put_list(t, a->name, rank, shape->dim); break;
    case ADJ_ATTR_PERM: put_list(t, a->name, rank, v); break;
    case ADJ_ATTR_AXES: put_axes(t, a->name, *(const int64_t *)v); break;
    case ADJ_ATTR_CONV: op_text_conv(t, v); break;
    case ADJ_ATTR_POOL: op_text_pool(t, v); break;
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
static void put_attrs(const adj_node *n, op_text *t)
{
    if (n->op->schema != NULL)
        for (const adj_attr *a = n->op->schema->attr; a->name != NULL; a++)
            put_attr(n, a, t);
    for (int i = 0; i < n->n_in && i < ADJ_NAMED_OPERANDS; i++)
        if (n->op->maker[i] != NULL &&
            is_made(n, i) != (n->op->example[i] == ADJ_EXAMPLE_COMPUTED_STATISTICS))
            put_integer(t, n->op->operand[i], is_made(n, i));
    t->args.attr = t->attr[0] != '\0' ? t->attr : NULL;
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

int op_text_write(const adj_node *n, op_text *t)
{
    *t = (op_text){.args = {.op = ""}};
    if (n == NULL || n->op->flags & ADJ_OP_LEAF)
        return 0;
    int in = described(n->op, 0), filter = described(n->op, 1);
    t->has_filter = filter != NONE && filter < n->n_in;
    t->is_same = t->has_filter && in >= 0 && n->in[filter] == n->in[in];
    adj_dtype dtype = n->type.dtype;
    if (n->n_in > 0 && adj_is_float(n->in[0]->type.dtype))
        dtype = n->in[0]->type.dtype;
    t->args = (op_args){.op = n->op->name};
    if (adj_is_float(dtype) && dtype != ADJ_F32)
        t->args.dtype = adj_dtype_name(dtype);
    put_attrs(n, t);
    op_text_shapes(t, shape_of(n, in), t->has_filter ? shape_of(n, filter) : (adj_shape){0});
    return 1;
}

static const char *write_shape(char *text, size_t size, adj_shape shape)
{
    if (shape.rank == 0)
        snprintf(text, size, "scalar");
    else
        write_list(text, size, shape.rank, shape.dim);
    return text;
}

void op_text_shapes(op_text *t, adj_shape in, adj_shape filter)
{
    t->in_shape = in;
    t->filter_shape = filter;
    t->args.in = write_shape(t->in, sizeof t->in, in);
    t->args.filter = t->is_same      ? "same"
                     : t->has_filter ? write_shape(t->filter, sizeof t->filter, filter)
                                     : NULL;
}

int op_text_of(const adj_node *n, op_text *t)
{
    if (!op_text_write(n, t))
        return 0;
    adj_graph *g = adj_graph_new();
    int same = g != NULL && adj_gradcheck_same(n, op_args_build(&t->args, g, NULL));
    adj_graph_free(g);
    return same;
}
