/* matmul.c - y = op(a) op(b) for matrices, op(m) being m or its transpose.
 *
 *   a b       da = dy b'     db = a' dy         a' b      da = b dy'     db = a dy
 *   a b'      da = dy b      db = dy' a         a' b'     da = b' dy'    db = dy' a'
 * An inner size of 0 gives zeros. */
#include "graph/op.h"

static adj_status matmul_infer(const adj_node *n, void *attrs, adj_type *out)
{
    const adj_matmul_attrs *t = attrs;
    adj_shape a = n->in[0]->type.shape, b = n->in[1]->type.shape;
    adj_status status = adj_check_same_dtype(n);

    if (status != ADJ_OK)
        return status;
    if (a.rank != 2 || b.rank != 2)
        return adj_fail(n->graph, ADJ_ESHAPE,
                        "matmul: %s is not a matrix (got %s, expected rank 2)",
                        a.rank != 2 ? "a" : "b", adj_shape_text(a.rank != 2 ? a : b).s);
    int64_t inner_a = a.dim[t->transpose_a ? 0 : 1], inner_b = b.dim[t->transpose_b ? 1 : 0];
    if (inner_a != inner_b)
        return adj_fail(n->graph, ADJ_ESHAPE,
                        "matmul: inner sizes of a and b differ (got %ld and %ld of %s%s and %s%s, "
                        "expected equal sizes)",
                        (long)inner_a, (long)inner_b, adj_shape_text(a).s,
                        t->transpose_a ? " transposed" : "", adj_shape_text(b).s,
                        t->transpose_b ? " transposed" : "");
    *out = (adj_type){
        .dtype = n->in[0]->type.dtype,
        .shape = {.rank = 2,
                  .dim = {a.dim[t->transpose_a ? 1 : 0], b.dim[t->transpose_b ? 0 : 1]}}};
    return ADJ_OK;
}

static adj_node *matmul(adj_node *a, adj_node *b, int transpose_a, int transpose_b)
{
    adj_matmul_attrs t = {.transpose_a = transpose_a, .transpose_b = transpose_b};
    return adj_node_new2(&adj_op_matmul, a, b, &t);
}

static void matmul_grad(adj_node *y, adj_node *dy, adj_node *dx[])
{
    const adj_matmul_attrs *t = y->attrs;
    adj_node *a = y->in[0], *b = y->in[1];
    int ta = t->transpose_a != 0, tb = t->transpose_b != 0;

    dx[0] = ta ? matmul(b, dy, tb, 1) : matmul(dy, b, 0, !tb);
    dx[1] = tb ? matmul(dy, a, 1, ta) : matmul(a, dy, !ta, 0);
}

static const adj_schema schema = {
    .size = sizeof(adj_matmul_attrs),
    .attr = {{"transpose_a", ADJ_ATTR_FLAG, .offset = offsetof(adj_matmul_attrs, transpose_a)},
             {"transpose_b", ADJ_ATTR_FLAG, .offset = offsetof(adj_matmul_attrs, transpose_b)}}};

static double matmul_flop(const adj_node *n)
{
    const adj_matmul_attrs *t = n->attrs;
    const int64_t *a = n->in[0]->type.shape.dim, *y = n->type.shape.dim;
    return 2.0 * (double)y[0] * (double)y[1] * (double)a[t->transpose_a ? 0 : 1];
}

const adj_op adj_op_matmul = {.name = "matmul",
                              .example = {ADJ_EXAMPLE_MATRIX, ADJ_EXAMPLE_RIGHT_FACTOR},
                              .n_in = 2,
                              .flags = ADJ_OP_HALF_ALWAYS,
                              .schema = &schema,
                              .linear_in = ADJ_IN(0) | ADJ_IN(1),
                              .infer = matmul_infer,
                              .grad = matmul_grad,
                              .flop = matmul_flop,
                              .operand = {"a", "b"}};

adj_node *adj_matmul(adj_node *a, adj_node *b, unsigned transposed)
{
    const adj_node *known = a != NULL ? a : b;
    if (known != NULL && transposed > (ADJ_TRANSPOSE_A | ADJ_TRANSPOSE_B)) {
        adj_fail(known->graph, ADJ_EARG,
                 "matmul: transposed is wrong (got %u, expected ADJ_TRANSPOSE_A, ADJ_TRANSPOSE_B, "
                 "both or 0)",
                 transposed);
        return NULL;
    }
    return matmul(a, b, (transposed & ADJ_TRANSPOSE_A) != 0, (transposed & ADJ_TRANSPOSE_B) != 0);
}
