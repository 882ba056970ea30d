/* dropout.c - zeroes elements at random and scales the others.
 *
 * Element i is kept when word i % 4 of philox(counter = {i / 4, step}, key = seed), as a fraction
 * of 2^32, is at least rate; then it is multiplied by 1 / (1 - rate). i counts row-major, so the
 * mask does not depend on backend, layout or threads, and a run resumed at the same step repeats
 * it. Linear in x, and its own adjoint: dx = dropout(dy) with the same step and seed. */
#include <inttypes.h>

#include "adjoint_ext.h"

static adj_status dropout_infer(const adj_node *n, void *attrs, adj_type *out)
{
    (void)attrs;
    adj_type x = n->in[0]->type, step = n->in[1]->type;

    if (!adj_is_float(x.dtype))
        return adj_fail(n->graph, ADJ_EDTYPE, "dropout: x must be a float type (got %s)",
                        adj_dtype_name(x.dtype));
    if (step.dtype != ADJ_I32)
        return adj_fail(n->graph, ADJ_EDTYPE,
                        "dropout: step has the wrong type (got %s, expected i32)",
                        adj_dtype_name(step.dtype));
    if (step.shape.rank != 0)
        return adj_fail(n->graph, ADJ_ESHAPE, "dropout: step must be a scalar (got %s)",
                        adj_shape_text(step.shape).s);
    *out = x;
    return ADJ_OK;
}

static void dropout_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    const adj_dropout_attrs *a = y->attrs;
    dx[0] = adj_dropout(dy, y->in[1], a->rate, a->seed);
    dx[1] = NULL;
}

static adj_node *dropout_simplify(const adj_node *n, adj_node *const in[])
{
    const adj_dropout_attrs *a = n->attrs;
    return a->rate == 0 ? in[0] : NULL;
}

static void dropout_show(const void *attrs, FILE *f)
{
    const adj_dropout_attrs *a = attrs;
    fprintf(f, " rate %g seed %" PRIu64, a->rate, a->seed);
}

adj_node *adj_dropout(adj_node *x, adj_node *step, double rate, uint64_t seed)
{
    const adj_dropout_attrs a = {.rate = rate, .seed = seed};

    if (x == NULL || step == NULL)
        return NULL;
    if (!(rate >= 0 && rate < 1)) {
        adj_fail(x->graph, ADJ_EARG,
                 "dropout: rate is out of range (got %g, expected 0 <= rate < 1)", rate);
        return NULL;
    }
    return adj_node_new2(&adj_op_dropout, x, step, &a);
}

const adj_op adj_op_dropout = {.name = "dropout",
                               .min_in = 2,
                               .max_in = 2,
                               .attr_size = sizeof(adj_dropout_attrs),
                               .flags = ADJ_OP_RANDOM | ADJ_OP_HALF,
                               .half_in = 1,
                               .linear_in = 1,
                               .infer = dropout_infer,
                               .grad = dropout_grad,
                               .simplify = dropout_simplify,
                               .show = dropout_show,
                               .operand = {"x", "step"}};
