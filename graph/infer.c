/* infer.c - shapes: sizes in checked arithmetic, comparison, printing; the type of a node's result,
 * and the operand checks that shape rules share. */
#include <stdio.h>

#include "graph.h"

int64_t adj_shape_elems(adj_shape shape)
{
    int64_t n = 1;
    int empty = 0;
    if (shape.rank < 0 || shape.rank > ADJ_MAX_RANK)
        return -1;
    for (int i = 0; i < shape.rank; i++) {
        if (shape.dim[i] < 0)
            return -1;
        if (shape.dim[i] == 0)
            empty = 1;
        else if (__builtin_mul_overflow(n, shape.dim[i], &n))
            return -1;
    }
    return empty ? 0 : n;
}

size_t adj_type_bytes(adj_type type)
{
    int64_t n = adj_shape_elems(type.shape);
    size_t size = adj_dtype_size(type.dtype), bytes;
    return n < 0 || size == 0 || __builtin_mul_overflow(n, size, &bytes) ? SIZE_MAX : bytes;
}

int adj_shape_equal(adj_shape a, adj_shape b)
{
    if (a.rank != b.rank)
        return 0;
    for (int i = 0; i < a.rank && i < ADJ_MAX_RANK; i++)
        if (a.dim[i] != b.dim[i])
            return 0;
    return 1;
}

adj_text adj_shape_text(adj_shape shape)
{
    adj_text t = {"["};
    size_t used = 1;
    if (shape.rank < 0 || shape.rank > ADJ_MAX_RANK) {
        snprintf(t.s, sizeof t.s, "[rank %lld]", (long long)shape.rank);
        return t;
    }
    for (int i = 0; i < shape.rank; i++)
        used += (size_t)snprintf(t.s + used, sizeof t.s - used, "%s%lld", i > 0 ? ", " : "",
                                 (long long)shape.dim[i]);
    snprintf(t.s + used, sizeof t.s - used, "]"); /* 6 * 22 characters fit */
    return t;
}

/* ---- checks of operands ---- */

static adj_text name_of(const adj_node *n, int i)
{
    const char *name = i < ADJ_NAMED_OPERANDS ? n->op->operand[i] : NULL;
    adj_text text;
    if (name != NULL)
        snprintf(text.s, sizeof text.s, "%s", name);
    else
        snprintf(text.s, sizeof text.s, "operand %d", i);
    return text;
}

adj_status adj_check_same_dtype(const adj_node *n)
{
    adj_dtype first = n->in[0]->type.dtype;
    if (!adj_is_float(first))
        return adj_fail(n->graph, ADJ_EDTYPE,
                        "%s: %s is not a float (got %s, expected f16, bf16, f32 or f64)",
                        n->op->name, name_of(n, 0).s, adj_dtype_name(first));
    for (int i = 1; i < n->n_in; i++)
        if (n->in[i]->type.dtype != first)
            return adj_fail(
                n->graph, ADJ_EDTYPE, "%s: operands differ in dtype (got %s and %s, expected one)",
                n->op->name, adj_dtype_name(first), adj_dtype_name(n->in[i]->type.dtype));
    return ADJ_OK;
}

adj_status adj_check_operand(const adj_node *n, int i, adj_type want)
{
    adj_type got = n->in[i]->type;
    if (got.dtype != want.dtype)
        return adj_fail(n->graph, ADJ_EDTYPE, "%s: %s has the wrong type (got %s, expected %s)",
                        n->op->name, name_of(n, i).s, adj_dtype_name(got.dtype),
                        adj_dtype_name(want.dtype));
    if (!adj_shape_equal(got.shape, want.shape))
        return adj_fail(n->graph, ADJ_ESHAPE, "%s: %s has the wrong shape (got %s, expected %s)",
                        n->op->name, name_of(n, i).s, adj_shape_text(got.shape).s,
                        want.shape.rank > 0 ? adj_shape_text(want.shape).s : "a scalar, []");
    return ADJ_OK;
}

adj_status adj_check_same(const adj_node *n, int count, adj_type *out)
{
    *out = n->in[0]->type;
    if (!adj_is_float(out->dtype))
        return adj_check_same_dtype(n); /* records the error */
    adj_status status = ADJ_OK;
    for (int i = 1; i < count && status == ADJ_OK; i++)
        status = adj_check_operand(n, i, *out);
    return status;
}

/* Larger values are refused: buffer sizes and their sums must stay far from int64's limit. */
static const int64_t max_bytes = INT64_C(1) << 46;

adj_status adj_check_type(adj_graph *g, const char *op, const char *name, adj_type type)
{
    size_t size = adj_dtype_size(type.dtype);
    if (size == 0)
        return adj_fail(g, ADJ_EDTYPE, "%s: %s has no valid dtype (got %d)", op, name,
                        (int)type.dtype);
    if (type.shape.rank < 0 || type.shape.rank > ADJ_MAX_RANK)
        return adj_fail(g, ADJ_ESHAPE, "%s: %s has a wrong rank (got %lld, expected 0 to %d)", op,
                        name, (long long)type.shape.rank, ADJ_MAX_RANK);
    for (int i = 0; i < type.shape.rank; i++)
        if (type.shape.dim[i] < 0)
            return adj_fail(g, ADJ_ESHAPE, "%s: %s has a negative dimension (got %s)", op, name,
                            adj_shape_text(type.shape).s);
    int64_t n = adj_shape_elems(type.shape);
    if (n < 0 || n > max_bytes / (int64_t)size)
        return adj_fail(g, ADJ_ESHAPE, "%s: %s is too large (got %s, expected at most 2^46 bytes)",
                        op, name, adj_shape_text(type.shape).s);
    return ADJ_OK;
}

adj_status infer_type(const adj_node *n, void *attrs, adj_type *out)
{
    adj_status status = check_attrs(n, attrs);
    if (status != ADJ_OK)
        return status;
    return n->op->infer != NULL ? n->op->infer(n, attrs, out) : adj_check_same(n, n->n_in, out);
}
