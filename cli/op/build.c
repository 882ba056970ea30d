/* build.c - see build.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "adjoint_ext.h"
#include "build.h"

static const op_builder *const tables[] = {image_builders, element_builders, shape_builders,
                                           loss_builders};
enum { TABLES = sizeof tables / sizeof *tables };

static const op_builder *row_of(const char *name)
{
    for (int k = 0; k < TABLES; k++)
        for (const op_builder *b = tables[k]; b->name != NULL; b++)
            if (strcmp(b->name, name) == 0)
                return b;
    return NULL;
}

/* Is what its registry entry says enough to build it? No attributes, operands of one shape. */
static int is_plain(const adj_op *op)
{
    return op->flags & ADJ_OP_ELEMENTWISE && !(op->flags & (ADJ_OP_INTERNAL | ADJ_OP_LEAF)) &&
           op->attr_size == 0 && op->min_in == op->max_in && op->max_in <= 2 &&
           row_of(op->name) == NULL;
}

const char *op_name_at(int i)
{
    for (int k = 0; k < TABLES; k++)
        for (const op_builder *b = tables[k]; b->name != NULL; b++)
            if (i-- == 0)
                return b->name;
    for (const adj_op *const *op = adj_ops; *op != NULL; op++)
        if (is_plain(*op) && i-- == 0)
            return (*op)->name;
    return NULL;
}

adj_node *op_build(op_case *c, const char *name)
{
    const op_builder *row = row_of(name);
    if (row != NULL)
        return row->build(c);
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
