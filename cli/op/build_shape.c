/* build_shape.c - see build.h: matrices, shapes, reductions, leaves. */
#include "build.h"

static adj_node *matmul(op_case *c)
{
    adj_node *a = operand_matrix(c);
    int transpose_a = attr_int(c, 0, 0), transpose_b = attr_int(c, 1, 0);
    if (a == NULL)
        return NULL;
    int64_t inner = adj_node_type(a).shape.dim[transpose_a ? 0 : 1];
    adj_shape plain = {2, {inner, 4}}, turned = {2, {4, inner}};
    return adj_matmul(a, operand_second(c, transpose_b ? turned : plain),
                      (transpose_a ? ADJ_TRANSPOSE_A : 0) | (transpose_b ? ADJ_TRANSPOSE_B : 0));
}
static adj_node *reshape(op_case *c)
{
    adj_shape flat = {1, {-1}};
    return adj_reshape(operand_x(c), c->n_attr > 0 ? attr_shape(c, 0, c->n_attr) : flat);
}
static adj_node *transpose(op_case *c)
{
    int perm[ADJ_MAX_RANK];
    for (int i = 0; i < c->in.rank; i++)
        perm[i] = attr_int(c, i, (int)c->in.rank - 1 - i);
    return adj_transpose(operand_x(c), (int)c->in.rank, perm);
}
static adj_node *concat(op_case *c)
{
    adj_node *a = operand_x(c), *b = operand_second(c, c->in), *const both[] = {a, b};
    return adj_concat(2, both, attr_int(c, 0, -1));
}
static adj_node *pad(op_case *c)
{
    int rank = (int)c->in.rank;
    adj_shape before = {.rank = rank}, after = {.rank = rank};
    for (int i = 0; i < rank; i++) {
        before.dim[i] = attr_int(c, i, 1);
        after.dim[i] = attr_int(c, rank + i, 2);
    }
    return adj_pad(operand_x(c), before, after);
}
static adj_node *slice(op_case *c)
{
    int rank = (int)c->in.rank;
    adj_shape begin = c->in, size = c->in;
    for (int i = 0; i < rank; i++) {
        begin.dim[i] = c->n_attr > 0 ? attr_int(c, i, 0) : c->in.dim[i] / 3;
        size.dim[i] = c->n_attr > 0 ? attr_int(c, rank + i, 0) : c->in.dim[i] - begin.dim[i];
    }
    return adj_slice(operand_x(c), begin, size);
}
/* With --attr, the result's shape, --in is the operand's; else --in is the result's. */
static adj_node *broadcast_to(op_case *c)
{
    if (c->n_attr > 0)
        return adj_broadcast_to(operand_x(c), attr_shape(c, 0, c->n_attr));
    adj_shape from = {c->in.rank > 0, {last_of(c->in)}};
    return adj_broadcast_to(operand(c, c->dtype, from), c->in);
}

/* The axes, then keep_dims; or the last axis. */
static adj_axes axes_of(op_case *c)
{
    adj_axes axes = {.n = 1, .axis = {-1}};
    if (c->n_attr == 0)
        return axes;
    axes.n = c->n_attr - 1 < ADJ_MAX_RANK ? c->n_attr - 1 : ADJ_MAX_RANK;
    for (int i = 0; i < axes.n; i++)
        axes.axis[i] = attr_int(c, i, 0);
    axes.keep_dims = attr_int(c, axes.n, 0);
    if (axes.n == 0)
        axes.n = ADJ_ALL;
    return axes;
}

static adj_node *reduce_sum(op_case *c) { return adj_reduce_sum(operand_x(c), axes_of(c)); }
static adj_node *reduce_mean(op_case *c) { return adj_reduce_mean(operand_x(c), axes_of(c)); }
static adj_node *reduce_max(op_case *c) { return adj_reduce_max(operand_x(c), axes_of(c)); }

/* ---- leaves ---- */

static adj_node *input(op_case *c) { return operand_x(c); }
static adj_node *param(op_case *c)
{
    return adj_param(c->g, "p", c->dtype, c->in, (adj_init){ADJ_INIT_NORMAL, 0, 1});
}
static adj_node *state(op_case *c)
{
    return adj_state(c->g, "s", c->dtype, c->in, (adj_init){ADJ_INIT_CONSTANT, 0, 0});
}
static adj_node *fill(op_case *c) { return adj_fill(c->g, c->dtype, c->in, attr_real(c, 0, 1)); }
static adj_node *const_(op_case *c)
{
    const double zero = 0; /* 0 in every type */
    return adj_const(c->g, c->dtype, (adj_shape){0}, &zero);
}

const op_builder shape_builders[] = {
    {"matmul", matmul},
    {"reshape", reshape},
    {"transpose", transpose},
    {"concat", concat},
    {"pad", pad},
    {"slice", slice},
    {"broadcast_to", broadcast_to},
    {"reduce_sum", reduce_sum},
    {"reduce_mean", reduce_mean},
    {"reduce_max", reduce_max},
    {"input", input},
    {"param", param},
    {"state", state},
    {"const", const_},
    {"fill", fill},
    {NULL, NULL},
};
