/* matmul.c - Gemm and MatMul. A batch of products becomes one product after the other. */
#include <inttypes.h>

#include "import.h"

enum { MAX_PRODUCTS = 1024 };

int import_gemm(call *n)
{
    const double alpha = attr_float(n, "alpha", 1), beta = attr_float(n, "beta", 1);
    const unsigned turned = (attr_int(n, "transA", 0) != 0 ? ADJ_TRANSPOSE_A : 0) |
                            (attr_int(n, "transB", 0) != 0 ? ADJ_TRANSPOSE_B : 0);
    adj_node *y = adj_matmul(in_node(n, 0), in_node(n, 1), turned);
    if (alpha != 1)
        y = adj_scale(y, alpha);
    if (!has_in(n, 2) || beta == 0)
        return give(n, y);
    adj_node *c = in_node(n, 2);
    const adj_shape s = c != NULL ? shape_of(c) : (adj_shape){0};
    if (beta != 1)
        c = adj_scale(c, beta);
    const int is_bias = s.rank == 1 && y != NULL && s.dim[0] == shape_of(y).dim[1];
    return give(n, is_bias ? adj_bias_add(y, c, ADJ_NHWC) : adj_add(y, c));
}

/* x [.., m, k] broadcast to the batch's axes and reshaped to [batch, m, k]. */
static adj_node *as_batch(adj_node *x, const adj_shape *batch, int64_t count)
{
    const adj_shape s = shape_of(x);
    adj_shape all = *batch;
    all.dim[all.rank++] = s.dim[s.rank - 2];
    all.dim[all.rank++] = s.dim[s.rank - 1];
    return adj_reshape(broadcast(x, all),
                       (adj_shape){3, {count, s.dim[s.rank - 2], s.dim[s.rank - 1]}});
}

static adj_node *row_of(adj_node *x, int64_t i)
{
    const adj_shape s = shape_of(x);
    return adj_reshape(slice_axis(x, 0, i, 1), (adj_shape){2, {s.dim[1], s.dim[2]}});
}

static adj_node *batched(call *n, adj_node *a, adj_node *b)
{
    const adj_shape sa = shape_of(a), sb = shape_of(b);
    adj_shape left = sa, right = sb, batch = {0};
    left.rank -= 2;
    right.rank -= 2;
    if (!joint_shape(n, &left, &right, &batch))
        return NULL;
    const int64_t count = adj_shape_elems(batch);
    if (count < 1 || count > MAX_PRODUCTS) {
        refuse(n, "number of products of a batch (got %" PRId64 ", expected 1 to %d)", count,
               MAX_PRODUCTS);
        return NULL;
    }
    a = as_batch(a, &batch, count);
    b = as_batch(b, &batch, count);
    adj_node *part[MAX_PRODUCTS];
    for (int64_t i = 0; i < count; i++) {
        adj_node *one = row_of(a, i), *other = row_of(b, i);
        part[i] = adj_matmul(one, other, 0);
    }
    batch.dim[batch.rank++] = sa.dim[sa.rank - 2];
    batch.dim[batch.rank++] = sb.dim[sb.rank - 1];
    return adj_reshape(adj_concat((int)count, part, 0), batch);
}

/* A vector is a row on the left and a column on the right, as in NumPy. */
int import_matmul(call *n)
{
    adj_node *a = in_node(n, 0), *b = in_node(n, 1), *y;
    if (a == NULL || b == NULL)
        return 0;
    adj_shape sa = shape_of(a), sb = shape_of(b);
    const int is_row = sa.rank == 1, is_column = sb.rank == 1;
    if (sa.rank < 1 || sb.rank < 1)
        return refuse(n, "an operand is a scalar");
    if (is_row)
        a = adj_reshape(a, sa = (adj_shape){2, {1, sa.dim[0]}});
    if (is_column)
        b = adj_reshape(b, sb = (adj_shape){2, {sb.dim[0], 1}});
    if (sa.rank == 2 && sb.rank == 2) {
        y = adj_matmul(a, b, 0);
    } else if (sb.rank == 2) {
        const int64_t rows = product(&sa, 0, (int)sa.rank - 1);
        adj_node *all = adj_reshape(a, (adj_shape){2, {rows, sa.dim[sa.rank - 1]}});
        adj_shape s = sa;
        s.dim[s.rank - 1] = sb.dim[1];
        y = adj_reshape(adj_matmul(all, b, 0), s);
    } else {
        y = batched(n, a, b);
    }
    if (y != NULL && (is_row || is_column)) {
        adj_shape s = shape_of(y);
        if (is_column)
            s.rank--;
        if (is_row) { /* the axis of size 1 before the last one, or the last one */
            const int64_t at = s.rank - (is_column ? 1 : 2);
            for (int64_t i = at; i + 1 < s.rank; i++)
                s.dim[i] = s.dim[i + 1];
            s.rank--;
        }
        y = adj_reshape(y, s);
    }
    return give(n, y);
}
