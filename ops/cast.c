/* cast.c - converts to another dtype; and stop_gradient.
 *
 * cast rounds once, to nearest even; to i32 it truncates and saturates, and NaN becomes 0. A
 * gradient is cast back; none flows through integers. */
#include "grad.h"
#include "graph/op.h"

static adj_status cast_infer(const adj_node *n, void *attrs, adj_type *out)
{
    const adj_dtype_attrs *a = attrs;

    if (a->dtype < ADJ_F32 || a->dtype > ADJ_I32)
        return adj_fail(n->graph, ADJ_EARG,
                        "cast: unknown dtype (got %ld, expected one of adj_dtype)", (long)a->dtype);
    *out = (adj_type){.dtype = (adj_dtype)a->dtype, .shape = n->in[0]->type.shape};
    return ADJ_OK;
}

static void cast_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    adj_dtype from = y->in[0]->type.dtype;
    dx[0] = adj_is_float(from) && adj_is_float(y->type.dtype) ? adj_cast(dy, from) : NULL;
}

/* A cast fill becomes a fill unless the fill's dtype has rounded its value. */
static adj_node *cast_simplify(const adj_node *n, adj_node *const in[])
{
    adj_dtype to = (adj_dtype)((const adj_dtype_attrs *)n->attrs)->dtype;
    adj_dtype from = in[0]->type.dtype;
    double value, element;

    if (from == to)
        return in[0];
    if (!adj_is_float(from) || !adj_is_float(to) || !adj_is_fill(in[0], &value))
        return NULL;
    adj_store(from, &element, 0, value);
    return adj_load(from, &element, 0) == value
               ? adj_fill(in[0]->graph, to, in[0]->type.shape, value)
               : NULL;
}

static const adj_schema schema = {
    .size = sizeof(adj_dtype_attrs),
    .attr = {{"dtype", ADJ_ATTR_DTYPE, .offset = offsetof(adj_dtype_attrs, dtype), " "}}};

static adj_status stop_gradient_infer(const adj_node *n, void *attrs, adj_type *out)
{
    (void)attrs;
    *out = n->in[0]->type;
    return ADJ_OK;
}

const adj_op adj_op_cast = {.name = "cast",
                            .n_in = 1,
                            .schema = &schema,
                            .flags = ADJ_OP_CHEAP | ADJ_OP_TYPED,
                            .linear_in = ADJ_IN(0),
                            .infer = cast_infer,
                            .grad = cast_grad,
                            .simplify = cast_simplify};

const adj_op adj_op_stop_gradient = {.name = "stop_gradient",
                                     .n_in = 1,
                                     .flags = ADJ_OP_ELEMENTWISE | ADJ_OP_NO_GRADIENT |
                                              ADJ_OP_VIEW | ADJ_OP_HALF,
                                     .infer = stop_gradient_infer};

adj_node *adj_cast(adj_node *x, adj_dtype dtype)
{
    return adj_node_new1(&adj_op_cast, x, &(adj_dtype_attrs){.dtype = dtype});
}

adj_node *adj_in_dtype(adj_node *x, adj_dtype dtype)
{
    return x == NULL || x->type.dtype == dtype ? x : adj_cast(x, dtype);
}

adj_node *adj_stop_gradient(adj_node *x) { return adj_node_new1(&adj_op_stop_gradient, x, NULL); }
