/* dropout.c - zeroes elements at random and scales the others.
 *
 * Element i is kept when word i % 4 of philox(counter = {i / 4, step}, key = seed), as a
 * fraction of 2^32, is at least rate; then it is multiplied by 1 / (1 - rate). i counts
 * row-major, so the mask does not depend on backend, layout or threads, and a run resumed at the
 * same step repeats it. i starts at the attribute first, so that a process with a shard of the
 * batch drops the same elements as one with the whole batch. Linear in x, and its own adjoint:
 * dx = dropout(dy) with the same step and seed. */
#include "graph/op.h"

static adj_status dropout_infer(const adj_node *n, void *attrs, adj_type *out)
{
    (void)attrs;
    adj_status status = adj_check_same(n, 1, out);
    return status == ADJ_OK ? adj_check_operand(n, 1, (adj_type){ADJ_I32, {0}}) : status;
}

static void dropout_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    const adj_dropout_attrs *a = y->attrs;
    dx[0] = adj_node_new2(&adj_op_dropout, dy, y->in[1], a);
    dx[1] = NULL;
}

static adj_node *dropout_simplify(const adj_node *n, adj_node *const in[])
{
    const adj_dropout_attrs *a = n->attrs;
    return a->rate == 0 ? in[0] : NULL;
}

static const adj_schema schema = {
    .size = sizeof(adj_dropout_attrs),
    .attr = {{"rate", ADJ_ATTR_REAL, .offset = offsetof(adj_dropout_attrs, rate), " rate ",
              "0 <= rate < 1", 0, 0x1.fffffffffffffp-1, .fallback = 0.25},
             {"seed", ADJ_ATTR_SEED, .offset = offsetof(adj_dropout_attrs, seed), " seed ",
              .fallback = 1},
             {"first", ADJ_ATTR_INT, .offset = offsetof(adj_dropout_attrs, first), " first ",
              "0 <= first <= 2^53", 0, 0x1p53, .flags = ADJ_ATTR_HIDE_ZERO}}};

adj_node *adj_dropout(adj_node *x, adj_node *step, double rate, uint64_t seed)
{
    return adj_node_new2(&adj_op_dropout, x, step, &(adj_dropout_attrs){rate, seed, 0});
}

const adj_op adj_op_dropout = {.name = "dropout",
                               .example = {ADJ_EXAMPLE_X, ADJ_EXAMPLE_INTEGER},
                               .n_in = 2,
                               .schema = &schema,
                               .flags = ADJ_OP_RANDOM | ADJ_OP_HALF,
                               .linear_in = ADJ_IN(0),
                               .infer = dropout_infer,
                               .grad = dropout_grad,
                               .simplify = dropout_simplify,
                               .operand = {"x", "step"}};
