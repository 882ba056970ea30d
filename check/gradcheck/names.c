/* names.c - names of operands and axes in reports, as declared by their ops; by default x0, x1,
 * ... and axes named by rank. */
#include <string.h>

#include "gradcheck.h"

static int has_operand(const adj_op *op, const char *name)
{
    for (int i = 0; i < ADJ_NAMED_OPERANDS; i++)
        if (op->operand[i] != NULL && strcmp(op->operand[i], name) == 0)
            return 1;
    return 0;
}

const char *operand_name(const adj_node *n, int operand)
{
    static const char *const plain[] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"};
    if (operand < 0)
        return has_operand(n->op, "dy") ? "upstream" : "dy";
    if (operand < ADJ_NAMED_OPERANDS && n->op->operand[operand] != NULL)
        return n->op->operand[operand];
    if (n->n_in == 1)
        return "x";
    return operand < 8 ? plain[operand] : "x..";
}

const char *leaf_name(const subject *s, int leaf)
{
    if (leaf >= s->closure.n_leaf)
        return operand_name(s->node, -1);
    const struct closure_leaf *l = &s->closure.leaf[leaf];
    const char *name = operand_name(l->reader, l->as);
    return l->reader == s->node ? name
                                : log_text(&s->report->log, "%s/%s", l->reader->op->name, name);
}

char axis_name(const subject *s, int leaf, int axis)
{
    const struct closure_leaf *l = leaf < s->closure.n_leaf ? &s->closure.leaf[leaf] : NULL;
    const adj_node *reader = l != NULL ? l->reader : s->node;
    if ((int)s->tested.leaf[leaf]->type.shape.rank != 4)
        return "ijklmn"[axis];
    const char *axes = l != NULL ? adj_filter_axes(reader->op, l->as) : NULL;
    if (axes != NULL)
        return axes[axis];
    return adj_format_of(reader) == ADJ_NCHW ? "nchw"[axis] : "nhwc"[axis];
}

int64_t index_at(adj_shape shape, int64_t element, int axis)
{
    for (int64_t a = shape.rank - 1; a > axis; a--)
        element /= shape.dim[a];
    return element % shape.dim[axis];
}

const char *index_text(const subject *s, int leaf, int64_t element)
{
    adj_shape shape = s->tested.leaf[leaf]->type.shape;
    char text[ADJ_MAX_RANK * 24] = "[";

    if (shape.rank == 0 || adj_shape_elems(shape) == 0)
        return "";
    for (int i = 0; i < shape.rank; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%c=%lld", i > 0 ? "," : "",
                 axis_name(s, leaf, i), (long long)index_at(shape, element, i));
    }
    return log_text(&s->report->log, "%s]", text);
}
