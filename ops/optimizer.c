/* optimizer.c - the elementwise ops that optimizers are made of: each computes the next value of
 * a parameter or of an optimizer's state, which the executor commits after the run.
 *
 *   momentum   mu*v + g + decay*p
 *   sgd_step   p - lr*(d + decay*p)
 *   ema        beta*m + (1-beta)*x
 *   adam_step  p - lr*(m/(1-beta1^t) / (sqrt(v/(1-beta2^t)) + epsilon) + decay*p)
 *   next_step  step + 1
 *
 * Tensor operands and the result have one type, so the first operand's buffer may become the
 * result's. None has a gradient rule: differentiating through an update is ADJ_ENOGRAD, not a
 * silent zero; a step counter is a constant (ADJ_OP_NO_GRADIENT). */
#include <float.h>

#include "grad.h"
#include "graph/op.h"

/* Infers the type of the first operand. Operands are as adj_op.example says: values of that type,
 * then scalars, of it or i32. */
static adj_status infer(const adj_node *n, void *attrs, adj_type *out)
{
    const adj_example *kind = n->op->example;
    adj_status status = ADJ_OK;
    (void)attrs;
    *out = n->in[0]->type;
    for (int i = 0; i < n->n_in && status == ADJ_OK; i++)
        if (kind[i] == ADJ_EXAMPLE_X)
            status = i == 0 ? adj_check_same(n, 1, out) : adj_check_operand(n, i, *out);
        else
            status = adj_check_operand(
                n, i, (adj_type){kind[i] == ADJ_EXAMPLE_INTEGER ? ADJ_I32 : out->dtype, {0}});
    return status;
}

/* ---- attributes; a decay of 0 is not printed ---- */

static const adj_schema momentum_schema = {
    .size = sizeof(adj_decay_attrs),
    .attr = {{"mu", ADJ_ATTR_REAL, .offset = offsetof(adj_decay_attrs, mu), " mu ", "0 <= mu < 1",
              0, 0x1.fffffffffffffp-1, .fallback = 0.9},
             {"decay", ADJ_ATTR_REAL, .offset = offsetof(adj_decay_attrs, decay), " decay ", ">= 0",
              0, DBL_MAX, .fallback = 1e-4, .flags = ADJ_ATTR_HIDE_ZERO}}};
static const adj_schema sgd_schema = {
    .size = sizeof(adj_decay_attrs),
    .attr = {{"decay", ADJ_ATTR_REAL, .offset = offsetof(adj_decay_attrs, decay), " decay ", ">= 0",
              0, DBL_MAX, .fallback = 1e-4, .flags = ADJ_ATTR_HIDE_ZERO}}};
static const adj_schema ema_schema = {
    .size = sizeof(adj_value_attrs),
    .attr = {{"beta", ADJ_ATTR_REAL, .offset = offsetof(adj_value_attrs, value), " beta ",
              "0 <= beta < 1", 0, 0x1.fffffffffffffp-1, .fallback = 0.9}}};
static const adj_schema adam_schema = {
    .size = sizeof(adj_adam_attrs),
    .attr = {{"beta1", ADJ_ATTR_REAL, .offset = offsetof(adj_adam_attrs, beta1), " beta ",
              "0 <= beta1 < 1", 0, 0x1.fffffffffffffp-1, .fallback = 0.9},
             {"beta2", ADJ_ATTR_REAL, .offset = offsetof(adj_adam_attrs, beta2), " ",
              "0 <= beta2 < 1", 0, 0x1.fffffffffffffp-1, .fallback = 0.999},
             {"epsilon", ADJ_ATTR_REAL, .offset = offsetof(adj_adam_attrs, epsilon), " epsilon ",
              ">= 0", 0, DBL_MAX, .fallback = 1e-8},
             {"decay", ADJ_ATTR_REAL, .offset = offsetof(adj_adam_attrs, decay), " decay ", ">= 0",
              0, DBL_MAX, .flags = ADJ_ATTR_HIDE_ZERO}}};

adj_node *adj_momentum(adj_node *v, adj_node *g, adj_node *p, double mu, double decay)
{
    return adj_node_new3(&adj_op_momentum, v, g, p, &(adj_decay_attrs){mu, decay});
}

adj_node *adj_sgd_step(adj_node *p, adj_node *d, adj_node *lr, double decay)
{
    return adj_node_new3(&adj_op_sgd_step, p, d, lr, &(adj_decay_attrs){.decay = decay});
}

adj_node *adj_ema(adj_node *m, adj_node *x, double beta)
{
    return adj_node_new2(&adj_op_ema, m, x, &(adj_value_attrs){beta});
}

adj_node *adj_adam_step(adj_node *p, adj_node *m, adj_node *v, adj_node *t, adj_node *lr,
                        const adj_adam_attrs *a)
{
    adj_node *const in[] = {p, m, v, t, lr};
    if (p != NULL && a == NULL)
        adj_fail(p->graph, ADJ_EARG, "adam_step: the attributes are missing (got NULL)");
    return p != NULL && a != NULL ? adj_node_new(p->graph, &adj_op_adam_step, 5, in, a) : NULL;
}

adj_node *adj_next_step(adj_node *step) { return adj_node_new1(&adj_op_next_step, step, NULL); }

const adj_op adj_op_momentum = {.name = "momentum",
                                .operand = {"v", "g", "p"},
                                .example = {ADJ_EXAMPLE_X, ADJ_EXAMPLE_X, ADJ_EXAMPLE_X},
                                .n_in = 3,
                                .schema = &momentum_schema,
                                .flags = ADJ_OP_ELEMENTWISE,
                                .cancels_in = ADJ_IN(0) | ADJ_IN(1) | ADJ_IN(2)};
const adj_op adj_op_sgd_step = {.name = "sgd_step",
                                .operand = {"p", "d", "lr"},
                                .example = {ADJ_EXAMPLE_X, ADJ_EXAMPLE_X, ADJ_EXAMPLE_NUMBER},
                                .n_in = 3,
                                .schema = &sgd_schema,
                                .flags = ADJ_OP_ELEMENTWISE,
                                .infer = infer,
                                .cancels_in = ADJ_IN(0) | ADJ_IN(1)};
const adj_op adj_op_ema = {.name = "ema",
                           .operand = {"m", "x"},
                           .example = {ADJ_EXAMPLE_X, ADJ_EXAMPLE_X},
                           .n_in = 2,
                           .schema = &ema_schema,
                           .flags = ADJ_OP_ELEMENTWISE,
                           .cancels_in = ADJ_IN(0) | ADJ_IN(1)};
const adj_op adj_op_adam_step = {.name = "adam_step",
                                 .operand = {"p", "m", "v", "t", "lr"},
                                 .example = {ADJ_EXAMPLE_X, ADJ_EXAMPLE_X, ADJ_EXAMPLE_X,
                                             ADJ_EXAMPLE_INTEGER, ADJ_EXAMPLE_NUMBER},
                                 .n_in = 5,
                                 .schema = &adam_schema,
                                 .flags = ADJ_OP_ELEMENTWISE,
                                 .infer = infer,
                                 .cancels_in = ADJ_IN(0) | ADJ_IN(1)};
const adj_op adj_op_next_step = {.name = "next_step",
                                 .operand = {"step"},
                                 .example = {ADJ_EXAMPLE_INTEGER},
                                 .n_in = 1,
                                 .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_NO_GRADIENT,
                                 .infer = infer};
