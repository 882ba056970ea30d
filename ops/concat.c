/* concat.c - concatenates tensors along an axis; each gets its slice of dy. Any dtype. */
#include <string.h>

#include "graph/op.h"

static adj_status check_operand(const adj_node *n, int i, int64_t axis)
{
    adj_type first = n->in[0]->type, t = n->in[i]->type;

    if (t.dtype != first.dtype)
        return adj_fail(n->graph, ADJ_EDTYPE,
                        "concat: values[%d] has the wrong dtype (got %s, expected %s)", i,
                        adj_dtype_name(t.dtype), adj_dtype_name(first.dtype));
    adj_shape expected = first.shape;
    if (t.shape.rank == expected.rank)
        expected.dim[axis] = t.shape.dim[axis];
    if (!adj_shape_equal(t.shape, expected))
        return adj_fail(
            n->graph, ADJ_ESHAPE,
            "concat: values[%d] does not fit values[0] (got %s, expected %s except at axis %ld)", i,
            adj_shape_text(t.shape).s, adj_shape_text(first.shape).s, (long)axis);
    return ADJ_OK;
}

static adj_status concat_infer(const adj_node *n, void *attrs, adj_type *out)
{
    int64_t *axis = &((adj_axis_attrs *)attrs)->axis, rank = n->in[0]->type.shape.rank, total = 0;

    if (*axis < -rank || *axis >= rank)
        return adj_fail(n->graph, ADJ_EARG,
                        "concat: axis is out of range (got %ld, expected %ld to %ld)", (long)*axis,
                        (long)-rank, (long)rank - 1);
    if (*axis < 0)
        *axis += rank;
    for (int i = 0; i < n->n_in; i++) {
        adj_status status = check_operand(n, i, *axis);
        if (status != ADJ_OK)
            return status;
        if (__builtin_add_overflow(total, n->in[i]->type.shape.dim[*axis], &total))
            return adj_fail(n->graph, ADJ_ESHAPE, "concat: the sizes along axis %ld overflow",
                            (long)*axis);
    }
    *out = n->in[0]->type;
    out->shape.dim[*axis] = total;
    return ADJ_OK;
}

static void concat_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    int64_t axis = ((const adj_axis_attrs *)y->attrs)->axis;
    adj_shape begin = {.rank = y->type.shape.rank};

    for (int i = 0; i < y->n_in; i++) {
        adj_shape size = y->in[i]->type.shape;
        dx[i] = adj_slice(dy, begin, size);
        begin.dim[axis] += size.dim[axis];
    }
}

/* True if x is a transpose, of the same order of axes as the transpose first. */
static int is_turned_as(const adj_node *x, const adj_node *first)
{
    return x->op == &adj_op_transpose &&
           memcmp(x->attrs, first->attrs, sizeof(adj_transpose_attrs)) == 0;
}

/* Concatenates before equal transposes of all operands instead of behind them: the transpose of the
 * result may meet its inverse. */
static adj_node *concat_simplify(const adj_node *n, adj_node *const in[])
{
    const int64_t axis = ((const adj_axis_attrs *)n->attrs)->axis;
    adj_node **x;

    if (n->n_in == 1)
        return in[0];
    for (int i = 0; i < n->n_in; i++)
        if (!is_turned_as(in[i], in[0]))
            return NULL;
    if ((x = adj_graph_alloc(in[0]->graph, (size_t)n->n_in * sizeof *x)) == NULL)
        return NULL;
    for (int i = 0; i < n->n_in; i++)
        x[i] = in[i]->in[0];
    const int64_t before = ((const adj_transpose_attrs *)in[0]->attrs)->perm[axis];
    adj_node *y = adj_concat(n->n_in, x, (int)before);
    return adj_node_new1(&adj_op_transpose, y, in[0]->attrs);
}

static const adj_schema schema = {
    .size = sizeof(adj_axis_attrs),
    .attr = {{"axis", ADJ_ATTR_INT, .offset = offsetof(adj_axis_attrs, axis),
              " axis=", .fallback = -1}}};

const adj_op adj_op_concat = {.name = "concat",
                              .example = {ADJ_EXAMPLE_X, ADJ_EXAMPLE_FILTER_OR_X},
                              .n_in = ADJ_MANY,
                              .flags = ADJ_OP_HALF,
                              .schema = &schema,
                              .linear_in = ADJ_ALL_IN,
                              .sum_in = ADJ_ALL_IN,
                              .infer = concat_infer,
                              .grad = concat_grad,
                              .simplify = concat_simplify};

adj_node *adj_concat(int n, adj_node *const x[], int axis)
{
    if (n < 1 || x == NULL)
        return NULL;
    for (int i = 0; i < n; i++)
        if (x[i] == NULL)
            return NULL;
    return adj_node_new(x[0]->graph, &adj_op_concat, n, x, &(adj_axis_attrs){.axis = axis});
}
