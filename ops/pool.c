/* pool.c - max and average pooling, and their adjoints.
 *
 * Each pool is closed under differentiation; d is the upstream gradient:
 *   y  = max_pool(x)                  dx = max_pool_grad(x, y, d)
 *   x' = max_pool_grad(x, y, e)       de = max_pool_grad_grad(x, y, d)
 *   y' = max_pool_grad_grad(x, y, e)  de = max_pool_grad(x, y, d)
 *   y  = avg_pool(x)                  dx = avg_pool_grad(d)
 *   x' = avg_pool_grad(e)             de = avg_pool(d)
 * The position of the maximum is constant almost everywhere, so no gradient flows to x and y of
 * the max_pool gradients. */
#include "conv_geom.h"
#include "grad.h"
#include "graph/op.h"
#include "ops/rules/rules.h"

/* Checks that operand i has the shape of the pool's result. */
static adj_status check_result(const adj_node *n, int i, const char *name, const adj_conv_geom *k)
{
    adj_shape got = n->in[i]->type.shape, want = conv_output_shape(k);

    if (adj_shape_equal(got, want))
        return ADJ_OK;
    return adj_fail(n->graph, ADJ_ESHAPE,
                    "%s: %s does not have the shape that input and attributes give (got %s, "
                    "expected %s)",
                    n->op->name, name, adj_shape_text(got).s, adj_shape_text(want).s);
}

/* Resolves the geometry from the pool's operand, which has that name. */
static adj_status resolve(const adj_node *n, const char *name, pool_kind kind, adj_pool_attrs *a)
{
    if (adj_check_same_dtype(n) != ADJ_OK ||
        pool_set_input(n, name, n->in[0]->type.shape, a) != ADJ_OK)
        return adj_graph_status(n->graph);
    return pool_resolve(n, kind, a);
}

static adj_status pool_infer(const adj_node *n, void *attrs, adj_type *out)
{
    adj_pool_attrs *a = attrs;
    const int is_average = n->op == &adj_op_avg_pool, is_argmax = n->op == &adj_op_max_pool_argmax;
    adj_status status = resolve(n, "input", is_average ? POOL_AVERAGE : POOL_MAX, a);
    if (status != ADJ_OK)
        return status;
    *out = (adj_type){is_argmax ? ADJ_I32 : n->in[0]->type.dtype, conv_output_shape(&a->geom)};
    return adj_check_type(n->graph, n->op->name, "output", *out);
}

/* Resolves the geometry from (x, y, ...) and checks that y has max_pool(x)'s shape. */
static adj_status max_operands(const adj_node *n, adj_pool_attrs *a)
{
    adj_status status = resolve(n, "orig_input", POOL_MAX, a);
    return status == ADJ_OK ? check_result(n, 1, "orig_output", &a->geom) : status;
}

static adj_status max_pool_grad_infer(const adj_node *n, void *attrs, adj_type *out)
{
    adj_pool_attrs *a = attrs;
    adj_status status = max_operands(n, a);
    *out = n->in[0]->type;
    return status != ADJ_OK ? status : check_result(n, 2, "grad", &a->geom);
}

static adj_status max_pool_grad_grad_infer(const adj_node *n, void *attrs, adj_type *out)
{
    adj_status status = max_operands(n, attrs);
    adj_shape got = n->in[2]->type.shape, want = n->in[0]->type.shape;

    *out = n->in[1]->type;
    if (status == ADJ_OK && !adj_shape_equal(got, want))
        return adj_fail(n->graph, ADJ_ESHAPE,
                        "%s: grad does not have orig_input's shape (got %s, expected %s)",
                        n->op->name, adj_shape_text(got).s, adj_shape_text(want).s);
    return status;
}

/* The input's sizes are in a->geom, set by the builder. */
static adj_status avg_pool_grad_infer(const adj_node *n, void *attrs, adj_type *out)
{
    adj_pool_attrs *a = attrs;
    if (adj_check_same_dtype(n) != ADJ_OK || pool_resolve(n, POOL_AVERAGE_GRAD, a) != ADJ_OK ||
        check_result(n, 0, "grad", &a->geom) != ADJ_OK)
        return adj_graph_status(n->graph);
    *out = (adj_type){n->in[0]->type.dtype, conv_input_shape(&a->geom)};
    return adj_check_type(n->graph, n->op->name, "orig_input_shape", *out);
}

/* The geometry is in the attributes, as for avg_pool_grad. */
static adj_status max_pool_grad_argmax_infer(const adj_node *n, void *attrs, adj_type *out)
{
    adj_pool_attrs *a = attrs;
    adj_dtype argmax = n->in[0]->type.dtype, dy = n->in[1]->type.dtype;
    if (argmax != ADJ_I32 || !adj_is_float(dy))
        return adj_fail(n->graph, ADJ_EDTYPE,
                        "%s: argmax or grad has a wrong type (got %s and %s, expected i32 and a "
                        "float)",
                        n->op->name, adj_dtype_name(argmax), adj_dtype_name(dy));
    if (pool_resolve(n, POOL_MAX, a) != ADJ_OK ||
        check_result(n, 0, "argmax", &a->geom) != ADJ_OK ||
        check_result(n, 1, "grad", &a->geom) != ADJ_OK)
        return adj_graph_status(n->graph);
    *out = (adj_type){dy, conv_input_shape(&a->geom)};
    return adj_check_type(n->graph, n->op->name, "orig_input", *out);
}

static const adj_pool *pool_of(const adj_node *n)
{
    const adj_pool_attrs *a = n->attrs;
    return &a->pool;
}

static void max_pool_rule(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = adj_max_pool_grad(y->in[0], y, dy, pool_of(y));
}

static void max_pool_grad_rule(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = dx[1] = NULL;
    dx[2] = adj_max_pool_grad_grad(y->in[0], y->in[1], dy, pool_of(y));
}

static void max_pool_grad_grad_rule(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = dx[1] = NULL;
    dx[2] = adj_max_pool_grad(y->in[0], y->in[1], dy, pool_of(y));
}

static void avg_pool_rule(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = adj_avg_pool_grad(y->in[0]->type.shape, dy, pool_of(y));
}

/* Fills with zeros if no window fits: avg_pool would be refused, but the operand has no
 * elements. */
static void avg_pool_grad_rule(adj_node *y, adj_node *dy, adj_node *dx[])
{
    int is_empty = adj_shape_elems(y->in[0]->type.shape) == 0;
    dx[0] = is_empty ? adj_fill_like(y->in[0], 0) : adj_avg_pool(dy, pool_of(y));
}

/* Returns zeros for a NULL pool, which has no ksize; the shape rule reports it. */
static adj_pool_attrs attrs_of(const adj_pool *pool)
{
    adj_pool_attrs a = {0};
    if (pool != NULL)
        a.pool = *pool;
    return a;
}

adj_node *adj_max_pool(adj_node *x, const adj_pool *pool)
{
    const adj_pool_attrs a = attrs_of(pool);
    return adj_node_new1(&adj_op_max_pool, x, &a);
}

adj_node *adj_max_pool_grad(adj_node *x, adj_node *y, adj_node *dy, const adj_pool *pool)
{
    const adj_pool_attrs a = attrs_of(pool);
    return adj_node_new3(&adj_op_max_pool_grad, x, y, dy, &a);
}

adj_node *adj_max_pool_grad_grad(adj_node *x, adj_node *y, adj_node *e, const adj_pool *pool)
{
    const adj_pool_attrs a = attrs_of(pool);
    return adj_node_new3(&adj_op_max_pool_grad_grad, x, y, e, &a);
}

adj_node *adj_avg_pool(adj_node *x, const adj_pool *pool)
{
    const adj_pool_attrs a = attrs_of(pool);
    return adj_node_new1(&adj_op_avg_pool, x, &a);
}

adj_node *adj_avg_pool_grad(adj_shape input_shape, adj_node *dy, const adj_pool *pool)
{
    adj_pool_attrs a = attrs_of(pool);

    if (dy == NULL)
        return NULL;
    const adj_node wanted = {.op = &adj_op_avg_pool_grad, .graph = dy->graph};
    if (pool_set_input(&wanted, "orig_input_shape", input_shape, &a) != ADJ_OK)
        return NULL;
    return adj_node_new1(&adj_op_avg_pool_grad, dy, &a);
}

adj_node *adj_global_avg_pool(adj_node *x, adj_format format)
{
    if (x == NULL)
        return NULL;
    if (x->type.shape.rank != 4 || (format != ADJ_NHWC && format != ADJ_NCHW)) {
        adj_fail(x->graph, x->type.shape.rank != 4 ? ADJ_ESHAPE : ADJ_EARG,
                 "global_avg_pool: input must be 4-D and data_format NHWC or NCHW (got %s and %d)",
                 adj_shape_text(x->type.shape).s, (int)format);
        return NULL;
    }
    image_axes ax = axes_of(format);
    return adj_reduce_mean(x, (adj_axes){.n = 2, .axis = {ax.h, ax.w}});
}

/* Returns the window's size: the most elements of a window, and the most windows over an
 * element. */
static double pool_terms(const adj_node *n)
{
    const adj_conv_geom *g = adj_node_geom(n);
    return (double)(g->kh * g->kw);
}

const adj_op adj_op_max_pool = {.name = "max_pool",
                                .n_in = 1,
                                .schema = &pool_schema,
                                .flags = ADJ_OP_KINKS | ADJ_OP_HALF,
                                .infer = pool_infer,
                                .grad = max_pool_rule,
                                .rewrite_with_users = max_pool_rewrite_with_users,
                                .save_for_backward = max_pool_save_for_backward,
                                .operand = {"input"},
                                .images = ADJ_IN(0) | ADJ_IMAGE_RESULT};
const adj_op adj_op_max_pool_grad = {
    .name = "max_pool_grad",
    .example = {ADJ_EXAMPLE_OPERAND_0, ADJ_EXAMPLE_RESULT, ADJ_EXAMPLE_LIKE_RESULT},
    .forward = &adj_op_max_pool,
    .n_in = 3,
    .schema = &pool_schema,
    .flags = ADJ_OP_KINKS | ADJ_OP_HALF,
    .linear_in = ADJ_IN(2),
    .infer = max_pool_grad_infer,
    .grad = max_pool_grad_rule,
    .save_for_backward = max_pool_grad_save_for_backward,
    .operand = {"orig_input", "orig_output", "grad"},
    .images = ADJ_IN(0) | ADJ_IN(1) | ADJ_IN(2) | ADJ_IMAGE_RESULT,
    .sum_length = pool_terms};
const adj_op adj_op_max_pool_grad_grad = {
    .name = "max_pool_grad_grad",
    .example = {ADJ_EXAMPLE_OPERAND_0, ADJ_EXAMPLE_RESULT, ADJ_EXAMPLE_LIKE_OPERAND},
    .forward = &adj_op_max_pool,
    .n_in = 3,
    .schema = &pool_schema,
    .flags = ADJ_OP_KINKS | ADJ_OP_HALF,
    .linear_in = ADJ_IN(2),
    .infer = max_pool_grad_grad_infer,
    .grad = max_pool_grad_grad_rule,
    .operand = {"orig_input", "orig_output", "grad"},
    .images = ADJ_IN(0) | ADJ_IN(1) | ADJ_IN(2) | ADJ_IMAGE_RESULT};
const adj_op adj_op_max_pool_argmax = {.name = "max_pool_argmax",
                                       .n_in = 1,
                                       .schema = &pool_schema,
                                       .flags = ADJ_OP_NO_GRADIENT | ADJ_OP_INTERNAL,
                                       .infer = pool_infer};
const adj_op adj_op_max_pool_grad_argmax = {.name = "max_pool_grad_argmax",
                                            .n_in = 2,
                                            .schema = &pool_schema,
                                            .flags = ADJ_OP_INTERNAL,
                                            .linear_in = ADJ_IN(1),
                                            .infer = max_pool_grad_argmax_infer};
const adj_op adj_op_avg_pool = {.name = "avg_pool",
                                .n_in = 1,
                                .flags = ADJ_OP_HALF,
                                .schema = &pool_schema,
                                .linear_in = ADJ_IN(0),
                                .infer = pool_infer,
                                .grad = avg_pool_rule,
                                .operand = {"input"},
                                .images = ADJ_IN(0) | ADJ_IMAGE_RESULT,
                                .sum_length = pool_terms};
const adj_op adj_op_avg_pool_grad = {.name = "avg_pool_grad",
                                     .example = {ADJ_EXAMPLE_LIKE_RESULT},
                                     .forward = &adj_op_avg_pool,
                                     .n_in = 1,
                                     .flags = ADJ_OP_HALF,
                                     .schema = &pool_schema,
                                     .linear_in = ADJ_IN(0),
                                     .infer = avg_pool_grad_infer,
                                     .grad = avg_pool_grad_rule,
                                     .operand = {"grad"},
                                     .images = ADJ_IN(0) | ADJ_IMAGE_RESULT,
                                     .sum_length = pool_terms};
