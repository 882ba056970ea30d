/* reshape.c - reshape and transpose: change the shape or the order of axes; broadcast_to repeats a
 * tensor along axes of size 1 and new leading axes, as NumPy does. Any dtype.
 *
 * reshape and transpose are permutations of elements, so the gradient is the inverse one of dy;
 * that of broadcast_to is adj_sum_to, which gradient rules of other ops call too. */
#include "graph/op.h"

/* Replaces a -1 by the size that the other dimensions leave. */
static adj_status fill_in(const adj_node *n, adj_shape asked, adj_shape *shape)
{
    int64_t elems = adj_shape_elems(n->in[0]->type.shape), unknown = -1;

    for (int64_t i = 0; i < shape->rank; i++) {
        if (shape->dim[i] != -1)
            continue;
        if (unknown >= 0)
            return adj_fail(n->graph, ADJ_EARG, "reshape: shape has more than one -1 (got %s)",
                            adj_shape_text(asked).s);
        unknown = i;
        shape->dim[i] = 1;
    }
    if (unknown < 0)
        return ADJ_OK;
    int64_t known = adj_shape_elems(*shape);
    if (known < 0) /* a wrong size: adj_check_type says which */
        return ADJ_OK;
    if (known == 0)
        return adj_fail(n->graph, ADJ_ESHAPE,
                        "reshape: -1 in shape is ambiguous beside a 0 (got %s)",
                        adj_shape_text(asked).s);
    shape->dim[unknown] = elems / known; /* with a remainder, the products differ */
    return ADJ_OK;
}

static adj_status reshape_infer(const adj_node *n, void *attrs, adj_type *out)
{
    adj_shape *shape = &((adj_shape_attrs *)attrs)->shape, asked = *shape;

    if (shape->rank < 0 || shape->rank > ADJ_MAX_RANK)
        return adj_fail(n->graph, ADJ_ESHAPE,
                        "reshape: shape has a wrong rank (got %ld, expected 0 to %d)",
                        (long)shape->rank, ADJ_MAX_RANK);
    *shape = adj_trimmed(*shape);
    adj_status status = fill_in(n, asked, shape);
    if (status != ADJ_OK)
        return status;
    *out = (adj_type){.dtype = n->in[0]->type.dtype, .shape = *shape};
    status = adj_check_type(n->graph, "reshape", "shape", *out);
    if (status != ADJ_OK)
        return status;
    if (adj_shape_elems(*shape) != adj_shape_elems(n->in[0]->type.shape))
        return adj_fail(n->graph, ADJ_ESHAPE,
                        "reshape: shape has the wrong number of elements (got %s, expected the %ld "
                        "elements of %s)",
                        adj_shape_text(asked).s, (long)adj_shape_elems(n->in[0]->type.shape),
                        adj_shape_text(n->in[0]->type.shape).s);
    return ADJ_OK;
}

static void reshape_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = adj_reshape(dy, y->in[0]->type.shape);
}

/* Reshape of a reshape: only the last one matters. */
static adj_node *reshape_simplify(const adj_node *n, adj_node *const in[])
{
    adj_node *simpler = adj_simplify_selection(n, in);
    if (simpler != NULL || in[0]->op != &adj_op_reshape)
        return simpler;
    return adj_reshape(in[0]->in[0], n->type.shape);
}

static adj_status transpose_infer(const adj_node *n, void *attrs, adj_type *out)
{
    const int64_t *perm = ((const adj_transpose_attrs *)attrs)->perm;
    adj_shape x = n->in[0]->type.shape;
    unsigned seen = 0;

    *out = (adj_type){.dtype = n->in[0]->type.dtype, .shape.rank = x.rank};
    for (int64_t i = 0; i < x.rank; i++) {
        if (perm[i] < 0 || perm[i] >= x.rank || (seen >> perm[i] & 1u) != 0)
            return adj_fail(
                n->graph, ADJ_EARG,
                "transpose: perm is not a permutation of the axes of %s (got %ld at %ld, "
                "expected each of 0 to %ld once)",
                adj_shape_text(x).s, (long)perm[i], (long)i, (long)x.rank - 1);
        seen |= 1u << perm[i];
        out->shape.dim[i] = x.dim[perm[i]];
    }
    return ADJ_OK;
}

static void transpose_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    const int64_t *perm = ((const adj_transpose_attrs *)y->attrs)->perm;
    int inverse[ADJ_MAX_RANK] = {0};

    for (int i = 0; i < y->type.shape.rank; i++)
        inverse[perm[i]] = i;
    dx[0] = adj_transpose(dy, (int)y->type.shape.rank, inverse);
}

/* True if only axes of size 1 change their place among the others. */
static int keeps_memory(adj_shape x, const int64_t perm[])
{
    int64_t last = -1;
    for (int64_t i = 0; i < x.rank; i++) {
        if (x.dim[perm[i]] == 1)
            continue;
        if (perm[i] < last)
            return 0;
        last = perm[i];
    }
    return 1;
}

/* Merges two transposes to one; one that moves no element becomes a reshape. */
static adj_node *transpose_simplify(const adj_node *n, adj_node *const in[])
{
    const int64_t *perm = ((const adj_transpose_attrs *)n->attrs)->perm;
    adj_transpose_attrs both = {0};
    adj_node *x = in[0];
    double value;

    if (adj_is_fill(x, &value))
        return adj_fill(x->graph, x->type.dtype, n->type.shape, value);
    const int is_second = x->op == &adj_op_transpose;
    for (int64_t i = 0; i < n->type.shape.rank; i++)
        both.perm[i] = is_second ? ((const adj_transpose_attrs *)x->attrs)->perm[perm[i]] : perm[i];
    x = is_second ? x->in[0] : x;
    if (keeps_memory(x->type.shape, both.perm))
        return adj_shape_equal(x->type.shape, n->type.shape) ? x : adj_reshape(x, n->type.shape);
    return is_second ? adj_node_new1(&adj_op_transpose, x, &both) : NULL;
}

static double reversed(adj_shape x, adj_format format, int axis)
{
    (void)format;
    return (double)(x.rank - 1 - axis);
}

static const adj_schema reshape_schema = {
    .size = sizeof(adj_shape_attrs),
    .attr = {
        {"shape", ADJ_ATTR_SHAPE, .offset = offsetof(adj_shape_attrs, shape), .fallback = -1}}};
static const adj_schema transpose_schema = {
    .size = sizeof(adj_transpose_attrs),
    .attr = {{"perm", ADJ_ATTR_PERM, .offset = offsetof(adj_transpose_attrs, perm),
              " perm=", .fallback_of = reversed}}};

const adj_op adj_op_reshape = {.name = "reshape",
                               .n_in = 1,
                               .schema = &reshape_schema,
                               .flags = ADJ_OP_VIEW | ADJ_OP_HALF,
                               .linear_in = ADJ_IN(0),
                               .infer = reshape_infer,
                               .grad = reshape_grad,
                               .simplify = reshape_simplify};

const adj_op adj_op_transpose = {.name = "transpose",
                                 .n_in = 1,
                                 .flags = ADJ_OP_HALF,
                                 .schema = &transpose_schema,
                                 .linear_in = ADJ_IN(0),
                                 .infer = transpose_infer,
                                 .grad = transpose_grad,
                                 .simplify = transpose_simplify};

adj_node *adj_reshape(adj_node *x, adj_shape shape)
{
    return adj_node_new1(&adj_op_reshape, x, &(adj_shape_attrs){.shape = shape});
}

adj_node *adj_transpose(adj_node *x, int n, const int perm[])
{
    adj_transpose_attrs a = {0};

    if (x == NULL)
        return NULL;
    if (n != x->type.shape.rank) {
        adj_fail(x->graph, ADJ_EARG, "transpose: perm has a wrong length (got %d, expected %ld)", n,
                 (long)x->type.shape.rank);
        return NULL;
    }
    if (perm == NULL && n > 0) {
        adj_fail(x->graph, ADJ_EARG, "transpose: perm is missing (got NULL, expected %d axes)", n);
        return NULL;
    }
    for (int i = 0; i < n; i++)
        a.perm[i] = perm[i];
    return adj_node_new1(&adj_op_transpose, x, &a);
}

/* ---- broadcast_to ---- */

static adj_status broadcast_to_infer(const adj_node *n, void *attrs, adj_type *out)
{
    adj_shape *shape = &((adj_shape_attrs *)attrs)->shape, x = n->in[0]->type.shape;

    *out = (adj_type){.dtype = n->in[0]->type.dtype, .shape = *shape};
    adj_status status = adj_check_type(n->graph, "broadcast_to", "shape", *out);
    if (status != ADJ_OK)
        return status;
    *shape = adj_trimmed(*shape);
    out->shape = *shape;
    int64_t added = shape->rank - x.rank;
    int fits = added >= 0;
    for (int64_t i = 0; fits && i < x.rank; i++)
        fits = x.dim[i] == 1 || x.dim[i] == shape->dim[added + i];
    if (!fits)
        return adj_fail(n->graph, ADJ_ESHAPE,
                        "broadcast_to: input does not broadcast to shape (got %s and %s, expected "
                        "equal sizes or 1 in input at each axis)",
                        adj_shape_text(x).s, adj_shape_text(*shape).s);
    return ADJ_OK;
}

static void broadcast_to_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    dx[0] = adj_sum_to(dy, y->in[0]->type.shape);
}

static double of_x(adj_shape x, adj_format format, int axis)
{
    (void)format;
    return (double)x.dim[axis];
}

static const adj_schema broadcast_schema = {
    .size = sizeof(adj_shape_attrs),
    .attr = {{"shape", ADJ_ATTR_SHAPE, .offset = offsetof(adj_shape_attrs, shape),
              .fallback_of = of_x}}};

const adj_op adj_op_broadcast_to = {.name = "broadcast_to",
                                    .example = {ADJ_EXAMPLE_ROW_OR_X},
                                    .n_in = 1,
                                    .flags = ADJ_OP_HALF,
                                    .schema = &broadcast_schema,
                                    .linear_in = ADJ_IN(0),
                                    .infer = broadcast_to_infer,
                                    .grad = broadcast_to_grad,
                                    .simplify = adj_simplify_selection};

adj_node *adj_broadcast_to(adj_node *x, adj_shape shape)
{
    return adj_node_new1(&adj_op_broadcast_to, x, &(adj_shape_attrs){.shape = shape});
}

adj_node *adj_sum_to(adj_node *x, adj_shape shape)
{
    if (x == NULL || adj_shape_equal(x->type.shape, shape))
        return x;
    adj_axes axes = {.keep_dims = 1};
    int64_t added = x->type.shape.rank - shape.rank;
    for (int64_t i = 0; i < x->type.shape.rank; i++)
        if (x->type.shape.dim[i] != (i < added ? 1 : shape.dim[i - added]))
            axes.axis[axes.n++] = (int)i;
    if (axes.n > 0)
        x = adj_reduce_sum(x, axes);
    return added > 0 ? adj_reshape(x, shape) : x;
}
