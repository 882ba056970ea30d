/* grow_any.c - any op of the registry, by what it says of its operands and attributes. */
#include <stdio.h>

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

/* Windows, and of the op's own attributes some numbers; others are what they usually are. */
static void write_attrs(garden *t, const adj_op *op, unsigned choice, char attr[OP_ATTR_TEXT])
{
    const adj_op *of = op->forward != NULL ? op->forward : op;
    size_t n = (size_t)snprintf(attr, OP_ATTR_TEXT, "padding=%s,data_format=%s",
                                choice & 2 ? "VALID" : "SAME", choice & 1 ? "NCHW" : "NHWC");
    if (choice < 128 || of->schema == NULL)
        return;
    for (const adj_attr *a = of->schema->attr; a->name != NULL && pick(&t->in, 4) > 0; a++) {
        const int64_t number = t->wild ? any_number(&t->in) : pick(&t->in, 9) - 2;
        const int is_list = a->kind >= ADJ_ATTR_SHAPE && a->kind <= ADJ_ATTR_AXES;
        n += (size_t)snprintf(attr + n, OP_ATTR_TEXT - n, ",%s=%lld%s", a->name, (long long)number,
                              a->kind == ADJ_ATTR_REAL ? "e-1" : "");
        for (int more = is_list ? pick(&t->in, 4) : 0; more > 0; more--)
            n += (size_t)snprintf(attr + n, OP_ATTR_TEXT - n, ",%d", pick(&t->in, 9) - 1);
    }
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
                 .operand = suitable,
                 .user = t};
    char attr[OP_ATTR_TEXT];
    write_attrs(t, op_find(name), choice, attr);
    (void)op_attrs_split(&c.attrs, NULL, attr, NULL);
    keep(t, op_build(&c, name));
}
