/* build.c - see build.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "adjoint_ext.h"
#include "build.h"

/* The i-th row of the tables; NULL past the last. */
static const op_builder *builder_at(int i)
{
    static const op_builder *const groups[] = {image_builders, element_builders, shape_builders,
                                               loss_builders};
    for (size_t k = 0; k < sizeof groups / sizeof *groups; k++) {
        const op_builder *b = groups[k];
        for (; b->name != NULL; b++)
            if (i-- == 0)
                return b;
    }
    return NULL;
}

/* What its registry entry says is enough to build it: no attributes, operands of one shape. */
static int is_plain(const adj_op *op)
{
    if (!(op->flags & ADJ_OP_ELEMENTWISE) || op->flags & (ADJ_OP_INTERNAL | ADJ_OP_LEAF) ||
        op->attr_size != 0 || op->min_in != op->max_in || op->max_in > 2)
        return 0;
    for (int i = 0; builder_at(i) != NULL; i++)
        if (strcmp(builder_at(i)->name, op->name) == 0)
            return 0;
    return 1;
}

const char *op_name_at(int i)
{
    int n = 0;
    for (; builder_at(n) != NULL; n++)
        if (n == i)
            return builder_at(n)->name;
    for (const adj_op *const *op = adj_ops; *op != NULL; op++)
        if (is_plain(*op) && n++ == i)
            return (*op)->name;
    return NULL;
}

adj_node *op_build(op_case *c, const char *name)
{
    for (int i = 0; builder_at(i) != NULL; i++)
        if (strcmp(builder_at(i)->name, name) == 0)
            return builder_at(i)->build(c);
    for (const adj_op *const *op = adj_ops; *op != NULL; op++)
        if (strcmp((*op)->name, name) == 0 && is_plain(*op)) {
            adj_node *x = operand_x(c);
            return (*op)->max_in == 1 ? adj_node_new1(*op, x, NULL)
                                      : adj_node_new2(*op, x, operand_second(c, c->in), NULL);
        }
    return NULL;
}

/* ---- operands ---- */

adj_node *operand(op_case *c, adj_dtype dtype, adj_shape shape)
{
    char name[16];
    snprintf(name, sizeof name, "in%d", c->n++);
    return adj_input(c->g, name, dtype, shape);
}

adj_node *operand_like(op_case *c, const adj_node *n)
{
    return n != NULL ? operand(c, adj_node_type(n).dtype, adj_node_type(n).shape) : NULL;
}

adj_node *operand_x(op_case *c) { return operand(c, c->dtype, c->in); }

adj_node *operand_second(op_case *c, adj_shape usual)
{
    c->used_filter = 1;
    return operand(c, c->dtype, c->has_filter ? c->filter : usual);
}

adj_node *operand_scalar(op_case *c, adj_dtype dtype) { return operand(c, dtype, (adj_shape){0}); }

adj_node *operand_matrix(op_case *c)
{
    int64_t rows = c->in.rank > 0 ? c->in.dim[0] : 1, all = adj_shape_elems(c->in);
    if (c->in.rank == 2)
        return operand_x(c);
    return operand(c, c->dtype, (adj_shape){2, {rows, rows > 0 && all > 0 ? all / rows : 1}});
}

adj_node *operand_labels(op_case *c)
{
    return operand(c, ADJ_I32, (adj_shape){1, {c->in.rank > 0 ? c->in.dim[0] : 1}});
}

int64_t last_of(adj_shape s) { return s.rank > 0 ? s.dim[s.rank - 1] : 1; }

int64_t channels_of(const op_case *c)
{
    return c->format == ADJ_NCHW && c->in.rank > 1 ? c->in.dim[1] : last_of(c->in);
}

/* ---- numbers ---- */

double attr_real(op_case *c, int i, double usual)
{
    if (i >= c->used_attrs)
        c->used_attrs = i + 1;
    return i < c->n_attr ? c->attr[i] : usual;
}

int attr_int(op_case *c, int i, int usual)
{
    double v = attr_real(c, i, usual);
    if (fabs(v) <= INT32_MAX && v == floor(v))
        return (int)v;
    snprintf(c->message, sizeof c->message, "--attr: number %d must be a whole one (got %g)", i + 1,
             v);
    return usual;
}

adj_shape attr_shape(op_case *c, int i, int rank)
{
    adj_shape shape = {.rank = rank < ADJ_MAX_RANK ? rank : ADJ_MAX_RANK};
    for (int k = 0; k < shape.rank; k++)
        shape.dim[k] = attr_int(c, i + k, 0);
    return shape;
}
