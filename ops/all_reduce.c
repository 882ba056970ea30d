/* all_reduce.c - the sum of a value over the processes of a group; every process gets it.
 *
 * All processes run the same graph on their own values. For the sum of their losses, the
 * gradient of one process's x is the sum of their dy, so the gradient is an all_reduce as well.
 * In a group of one, all_reduce is the identity.
 *
 * A plan computes it in two steps, so that other steps run while values travel: a start, whose
 * result must not be read, and a wait that turns this into the sum. */
#include "graph/op.h"

static const char *const reductions[] = {"sum", NULL};

static const adj_schema schema = {
    .size = sizeof(adj_reduction_attrs),
    .attr = {{"reduction", ADJ_ATTR_CHOICE, .offset = offsetof(adj_reduction_attrs, reduction), " ",
              .words = reductions}}};

static void rule(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = adj_node_new1(&adj_op_all_reduce, dy, y->attrs);
}

const adj_op adj_op_all_reduce = {.name = "all_reduce",
                                  .n_in = 1,
                                  .schema = &schema,
                                  .flags = ADJ_OP_CAN_FAIL | ADJ_OP_COLLECTIVE,
                                  .linear_in = ADJ_IN(0),
                                  .grad = rule};

const adj_op adj_op_all_reduce_start = {.name = "all_reduce_start",
                                        .n_in = 1,
                                        .schema = &schema,
                                        .flags =
                                            ADJ_OP_CAN_FAIL | ADJ_OP_COLLECTIVE | ADJ_OP_INTERNAL};

/* Fails only if another process has died. No later run is possible then, so partly assigned updates
 * do not matter. */
const adj_op adj_op_all_reduce_wait = {
    .name = "all_reduce_wait", .n_in = 1, .flags = ADJ_OP_COLLECTIVE | ADJ_OP_INTERNAL};

adj_node *adj_all_reduce(adj_node *x, adj_reduction reduction)
{
    return adj_node_new1(&adj_op_all_reduce, x, &(adj_reduction_attrs){reduction});
}
