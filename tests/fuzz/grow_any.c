/* grow_any.c - any op of the registry, by what it says of its operands and attributes. */
#include "cli/op/build.h"
#include "fuzz/grow.h"

/* A value of that type that the garden has, or a leaf. */
static adj_node *suitable(void *user, adj_type type)
{
    garden *t = user;
    if (t->wild && pick(&t->in, 8) == 0)
        return any_value(t);
    return pick(&t->in, 4) ? view_of(t, type.dtype, type.shape)
                           : new_leaf(t, type.dtype, type.shape);
}

void grow_any(garden *t)
{
    enum { MAX_OPS = 256 };
    const adj_op *ops[MAX_OPS];
    int n = 0;
    for (const adj_op *const *op = adj_ops; *op != NULL && n < MAX_OPS; op++)
        if (!((*op)->flags & (ADJ_OP_INTERNAL | ADJ_OP_LEAF)))
            ops[n++] = *op;
    const char *name = ops[pick(&t->in, n)]->name;
    adj_node *x = t->wild ? any_value(t) : value_of(t, -1, 1 + pick(&t->in, 4));
    unsigned choice = take(&t->in);
    op_case c = {.g = t->g,
                 .dtype = adj_node_type(x).dtype,
                 .in = adj_node_type(x).shape,
                 .format = choice & 1 ? ADJ_NCHW : ADJ_NHWC,
                 .lists = {.padding = choice & 2 ? "VALID" : "SAME",
                           .data_format = choice & 1 ? "NCHW" : "NHWC"},
                 .operand = suitable,
                 .user = t};
    if (choice >= 128) /* else all attributes are what they usually are */
        for (c.n_attr = pick(&t->in, 4); c.used_attrs < c.n_attr; c.used_attrs++)
            c.attr[c.used_attrs] = t->wild ? (double)any_number(&t->in) : pick(&t->in, 9) * 0.5 - 1;
    c.used_attrs = 0;
    keep(t, op_build(&c, name));
}
