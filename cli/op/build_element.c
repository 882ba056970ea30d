/* build_element.c - see build.h: ops that work element by element and have attributes, or operands
 * of several shapes. */
#include "build.h"

/* ---- of one operand ---- */

static double alpha(op_case *c) { return attr_real(c, 0, 0.25); }
static adj_node *leaky_relu(op_case *c) { return adj_leaky_relu(operand_x(c), alpha(c)); }
static adj_node *elu(op_case *c) { return adj_elu(operand_x(c), alpha(c)); }
static adj_gelu_form form(op_case *c) { return (adj_gelu_form)attr_int(c, 0, ADJ_GELU_ERF); }
static adj_node *gelu(op_case *c) { return adj_gelu(operand_x(c), form(c)); }
static double min(op_case *c) { return attr_real(c, 0, -0.5); }
static double max(op_case *c) { return attr_real(c, 1, 0.75); }
static adj_node *clip(op_case *c) { return adj_clip(operand_x(c), min(c), max(c)); }
static adj_node *scale(op_case *c) { return adj_scale(operand_x(c), attr_real(c, 0, 0.3)); }
static adj_node *cast(op_case *c)
{
    int usual = c->dtype == ADJ_F32 ? ADJ_F64 : ADJ_F32;
    return adj_cast(operand_x(c), (adj_dtype)attr_int(c, 0, usual));
}
static adj_node *stop_gradient(op_case *c) { return adj_stop_gradient(operand_x(c)); }

/* ---- of two ---- */

typedef adj_node *(*binary)(adj_node *a, adj_node *b);

/* The second operand is stretched over all axes but the last. */
static adj_node *stretched(op_case *c, binary build)
{
    adj_node *a = operand_x(c);
    return build(a, operand_second(c, (adj_shape){c->in.rank > 0, {last_of(c->in)}}));
}

static adj_node *leaky_relu_grad(op_case *c)
{
    adj_node *dy = operand_x(c);
    return adj_leaky_relu_grad(dy, operand_second(c, c->in), alpha(c));
}
static adj_node *elu_grad(op_case *c)
{
    adj_node *dy = operand_x(c);
    return adj_elu_grad(dy, operand_second(c, c->in), alpha(c));
}
static adj_node *gelu_grad(op_case *c)
{
    adj_node *dy = operand_x(c);
    return adj_gelu_grad(dy, operand_second(c, c->in), form(c));
}
static adj_node *clip_grad(op_case *c)
{
    adj_node *dy = operand_x(c);
    return adj_clip_grad(dy, operand_second(c, c->in), min(c), max(c));
}
static adj_node *add(op_case *c) { return stretched(c, adj_add); }
static adj_node *sub(op_case *c) { return stretched(c, adj_sub); }
static adj_node *mul(op_case *c) { return stretched(c, adj_mul); }
static adj_node *div_(op_case *c) { return stretched(c, adj_div); }

/* ---- dropout, optimisers ---- */

static adj_node *dropout(op_case *c)
{
    adj_node *x = operand_x(c);
    double rate = attr_real(c, 0, 0.25);
    return adj_dropout(x, operand_scalar(c, ADJ_I32), rate, (uint64_t)attr_int(c, 1, 1));
}
static adj_node *momentum(op_case *c)
{
    adj_node *v = operand_x(c), *g = operand_x(c), *p = operand_x(c);
    return adj_momentum(v, g, p, attr_real(c, 0, 0.9), attr_real(c, 1, 1e-4));
}
static adj_node *sgd_step(op_case *c)
{
    adj_node *p = operand_x(c), *d = operand_x(c);
    return adj_sgd_step(p, d, operand_scalar(c, c->dtype), attr_real(c, 0, 1e-4));
}
static adj_node *ema(op_case *c)
{
    adj_node *m = operand_x(c), *x = operand_x(c);
    return adj_ema(m, x, attr_real(c, 0, 0.9));
}
static adj_node *adam_step(op_case *c)
{
    const adj_adam_attrs a = {.beta1 = attr_real(c, 0, 0.9),
                              .beta2 = attr_real(c, 1, 0.999),
                              .epsilon = attr_real(c, 2, 1e-8),
                              .decay = attr_real(c, 3, 0)};
    adj_node *p = operand_x(c), *m = operand_x(c), *v = operand_x(c);
    adj_node *t = operand_scalar(c, ADJ_I32);
    return adj_adam_step(p, m, v, t, operand_scalar(c, c->dtype), &a);
}
static adj_node *next_step(op_case *c) { return adj_next_step(operand_scalar(c, ADJ_I32)); }

const op_builder element_builders[] = {
    {"leaky_relu", leaky_relu},
    {"leaky_relu_grad", leaky_relu_grad},
    {"elu", elu},
    {"elu_grad", elu_grad},
    {"gelu", gelu},
    {"gelu_grad", gelu_grad},
    {"clip", clip},
    {"clip_grad", clip_grad},
    {"add", add},
    {"sub", sub},
    {"mul", mul},
    {"div", div_},
    {"scale", scale},
    {"cast", cast},
    {"stop_gradient", stop_gradient},
    {"dropout", dropout},
    {"momentum", momentum},
    {"sgd_step", sgd_step},
    {"ema", ema},
    {"adam_step", adam_step},
    {"next_step", next_step},
    {NULL, NULL},
};
