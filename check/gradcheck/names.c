/* names.c - what operands and their axes are called in a report, as their ops say. Others have the
 * operands x0, x1, ... and axes named by rank alone. */
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

/* True if the leaf is a filter, [kh, kw, in, out]. */
static int leaf_is_filter(const subject *s, int leaf)
{
    return s->slot[leaf] >= 0 && s->node->op->filter == 1 + s->slot[leaf];
}

char axis_name(const subject *s, int leaf, int axis)
{
    int rank = (int)s->tested.leaf[leaf]->type.shape.rank;
    if (rank == 4 && leaf_is_filter(s, leaf))
        return s->node->op->filter_axes[axis];
    if (rank == 4)
        return adj_format_of(s->node) == ADJ_NCHW ? "nchw"[axis] : "nhwc"[axis];
    return "ijklmn"[axis];
}

const char *index_text(const subject *s, int leaf, int64_t element)
{
    adj_shape shape = s->tested.leaf[leaf]->type.shape;
    int64_t at[ADJ_MAX_RANK];
    char text[ADJ_MAX_RANK * 24] = "[";

    if (shape.rank == 0)
        return "";
    for (int64_t i = shape.rank - 1; i >= 0; i--) {
        at[i] = element % shape.dim[i];
        element /= shape.dim[i];
    }
    for (int i = 0; i < shape.rank; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%c=%lld", i > 0 ? "," : "",
                 axis_name(s, leaf, i), (long long)at[i]);
    }
    return gradcheck_text(s->report, "%s]", text);
}
