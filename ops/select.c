/* select.c - selects one of two whole tensors by a scalar.
 *
 *   y = cond != 0 ? a : b      da = select(cond, dy, 0)      db = select(cond, 0, dy)
 * The tensor not selected takes no part, so a NaN in it does no harm. Closed under
 * differentiation. */
#include "graph/op.h"

static adj_status check_condition(const adj_node *n)
{
    adj_type cond = n->in[0]->type;

    if (!adj_is_float(cond.dtype))
        return adj_fail(n->graph, ADJ_EDTYPE, "select: cond is not a float (got %s)",
                        adj_dtype_name(cond.dtype));
    return adj_check_operand(n, 0, (adj_type){cond.dtype, {0}});
}

static adj_status select_infer(const adj_node *n, void *attrs, adj_type *out)
{
    (void)attrs;
    adj_status status = check_condition(n);
    *out = n->in[1]->type;
    return status == ADJ_OK ? adj_check_operand(n, 2, *out) : status;
}

static void select_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    adj_node *zero = adj_fill_like(dy, 0);

    dx[0] = NULL;
    dx[1] = adj_select(y->in[0], dy, zero);
    dx[2] = adj_select(y->in[0], zero, dy);
}

static adj_node *select_simplify(const adj_node *n, adj_node *const in[])
{
    double cond;

    (void)n;
    if (adj_is_fill(in[0], &cond))
        return in[cond != 0 ? 1 : 2];
    return in[1] == in[2] ? in[1] : NULL;
}

const adj_op adj_op_select = {.name = "select",
                              .operand = {"cond", "a", "b"},
                              .example = {ADJ_EXAMPLE_NUMBER, ADJ_EXAMPLE_X, ADJ_EXAMPLE_X},
                              .n_in = 3,
                              .flags = ADJ_OP_ELEMENTWISE,
                              .linear_in = ADJ_IN(1) | ADJ_IN(2),
                              .sum_in = ADJ_IN(1) | ADJ_IN(2),
                              .infer = select_infer,
                              .grad = select_grad,
                              .simplify = select_simplify};

adj_node *adj_select(adj_node *cond, adj_node *a, adj_node *b)
{
    return adj_node_new3(&adj_op_select, cond, a, b, NULL);
}
