/* text.c - see text.h.
 *
 * The options are what the op says of its attributes and operands. op_text_of tries them: built
 * again, the node has to come out. So what cannot be said is refused, never written wrongly. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_check.h"
#include "build.h"
#include "text.h"

/* ---- lists ---- */

static void add_integer(char *list, size_t size, int64_t v)
{
    size_t used = strlen(list);
    snprintf(list + used, size - used, "%s%lld", used > 0 ? "," : "", (long long)v);
}

enum { REAL_TEXT = 40 };

/* The shortest text that reads back as v. */
static void write_real(char text[REAL_TEXT], double v)
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, REAL_TEXT, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            return;
    }
}

static void word(op_text *t, const char *text)
{
    size_t used = strlen(t->attr);
    snprintf(t->attr + used, sizeof t->attr - used, "%s%s", used > 0 ? "," : "", text);
}

static void real(op_text *t, double v)
{
    char text[REAL_TEXT];
    write_real(text, v);
    word(t, text);
}

static const char *write_shape(char *list, size_t size, adj_shape shape)
{
    list[0] = '\0';
    for (int i = 0; i < shape.rank; i++)
        add_integer(list, size, shape.dim[i]);
    if (shape.rank == 0)
        snprintf(list, size, "scalar");
    return list;
}

static const char *write_four(char *list, size_t size, const int64_t v[4])
{
    return write_shape(list, size, (adj_shape){4, {v[0], v[1], v[2], v[3]}});
}

static void integer(op_text *t, int64_t v) { add_integer(t->attr, sizeof t->attr, v); }
static void sizes(op_text *t, int64_t n, const int64_t v[])
{
    for (int64_t i = 0; i < n; i++)
        integer(t, v[i]);
}

/* ---- attributes ---- */

static void write_format(op_text *t, adj_format format)
{
    t->args.data_format = format == ADJ_NCHW ? "NCHW" : NULL;
}

static void write_padding(op_text *t, adj_padding padding, const int64_t pad[4][2])
{
    static const char *const words[] = {
        [ADJ_VALID] = "VALID", [ADJ_SAME] = "SAME", [ADJ_EXPLICIT] = "EXPLICIT"};
    t->args.padding = padding != ADJ_SAME ? words[padding] : NULL; /* the tool's default */
    if (padding != ADJ_EXPLICIT)
        return;
    t->pads[0] = '\0';
    for (int i = 0; i < 8; i++)
        add_integer(t->pads, sizeof t->pads, pad[i / 2][i % 2]);
    t->args.explicit_paddings = t->pads;
}

/* NULL, the default, where all are 1. */
static const char *write_steps(char *list, size_t size, const int64_t v[4])
{
    int ones = v[0] == 1 && v[1] == 1 && v[2] == 1 && v[3] == 1;
    return ones ? NULL : write_four(list, size, v);
}

void op_text_conv(op_text *t, const adj_conv *a)
{
    t->args.strides = write_steps(t->strides, sizeof t->strides, a->stride);
    t->args.dilations = write_steps(t->dilations, sizeof t->dilations, a->dilation);
    write_padding(t, a->padding, a->pad);
    write_format(t, a->format);
}

void op_text_pool(op_text *t, const adj_pool *a)
{
    t->args.ksize = write_four(t->ksize, sizeof t->ksize, a->ksize);
    t->args.strides = write_four(t->strides, sizeof t->strides, a->stride);
    write_padding(t, a->padding, a->pad);
    write_format(t, a->format);
}

static void write_attr(const adj_node *n, const adj_attr *a, op_text *t)
{
    const void *v = (const char *)n->attrs + a->offset;
    const int64_t rank = n->n_in > 0 ? n->in[0]->type.shape.rank : 0;
    switch (a->kind) {
    case ADJ_ATTR_REAL: real(t, *(const double *)v); break;
    case ADJ_ATTR_SEED: real(t, (double)*(const uint64_t *)v); break;
    case ADJ_ATTR_INT:
    case ADJ_ATTR_FLAG:
    case ADJ_ATTR_CHOICE: integer(t, *(const int64_t *)v); break;
    case ADJ_ATTR_FORMAT: write_format(t, (adj_format) * (const int64_t *)v); break;
    case ADJ_ATTR_DTYPE:
        if (!a->from_result)
            word(t, adj_dtype_name((adj_dtype) * (const int64_t *)v));
        break;
    case ADJ_ATTR_SHAPE:
        if (!a->from_result)
            sizes(t, ((const adj_shape *)v)->rank, ((const adj_shape *)v)->dim);
        break;
    case ADJ_ATTR_PER_AXIS: sizes(t, rank, ((const adj_shape *)v)->dim); break;
    case ADJ_ATTR_PERM: sizes(t, rank, v); break;
    case ADJ_ATTR_AXES:
        for (int i = 0; i < ADJ_MAX_RANK; i++)
            if (*(const int64_t *)v >> i & 1)
                integer(t, i);
        break;
    case ADJ_ATTR_CONV: op_text_conv(t, v); break;
    case ADJ_ATTR_POOL: op_text_pool(t, v); break;
    }
}

/* Is operand i computed by its maker, of n's own operands? */
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
            return 0;
    return 1;
}

static void write_attrs(const adj_node *n, op_text *t)
{
    if (n->op->schema != NULL)
        for (const adj_attr *a = n->op->schema->attr; a->name != NULL; a++)
            write_attr(n, a, t);
    for (int i = 0; i < n->n_in && i < ADJ_NAMED_OPERANDS; i++)
        if (n->op->maker[i] != NULL)
            integer(t, is_made(n, i) != (n->op->example[i] == 'S'));
    t->args.attr = t->attr[0] != '\0' ? t->attr : NULL;
}

/* ---- shapes ---- */

enum { RESULT = -1, NONE = -2 };

/* The operand whose shape is --in, or --filter. */
static int described(const adj_op *op, int is_filter)
{
    const adj_op *of = op->forward != NULL ? op->forward : op;
    const char *letters = op_letters(of);
    size_t place = is_filter ? strcspn(letters, "flhdpq") : strspn(letters, "r");
    if (of->n_in == 0 || letters[place] == '\0')
        return is_filter ? NONE : RESULT;
    if (op->forward == NULL)
        return (int)place;
    const char *at = strchr(op->example, '0' + (int)place);
    return at != NULL ? (int)(at - op->example) : RESULT;
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
    adj_dtype dtype = n->type.dtype;
    if (n->n_in > 0 && adj_is_float(n->in[0]->type.dtype))
        dtype = n->in[0]->type.dtype;
    t->args = (op_args){.op = n->op->name};
    if (adj_is_float(dtype) && dtype != ADJ_F32)
        t->args.dtype = adj_dtype_name(dtype);
    write_attrs(n, t);
    op_text_shapes(t, shape_of(n, in), t->has_filter ? shape_of(n, filter) : (adj_shape){0});
    return 1;
}

void op_text_shapes(op_text *t, adj_shape in, adj_shape filter)
{
    t->in_shape = in;
    t->filter_shape = filter;
    t->args.in = write_shape(t->in, sizeof t->in, in);
    t->args.filter = t->has_filter ? write_shape(t->filter, sizeof t->filter, filter) : NULL;
}

void op_text_copy(op_text *to, const op_text *t)
{
    const struct {
        const char **word;
        const char *text;
    } words[] = {{&to->args.in, to->in},           {&to->args.filter, to->filter},
                 {&to->args.strides, to->strides}, {&to->args.dilations, to->dilations},
                 {&to->args.ksize, to->ksize},     {&to->args.explicit_paddings, to->pads},
                 {&to->args.attr, to->attr}};
    *to = *t;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (*words[i].word != NULL)
            *words[i].word = words[i].text;
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
