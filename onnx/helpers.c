/* helpers.c - small compositions that several operators use. */
#include <inttypes.h>
#include <math.h>

#include "graph/op.h"
#include "import.h"

adj_shape shape_of(const adj_node *x) { return adj_node_type(x).shape; }

int axis_of(call *n, int64_t axis, int64_t rank)
{
    if (axis >= -rank && axis < rank)
        return (int)(axis < 0 ? axis + rank : axis);
    refuse(n, "axis is out of range (got %" PRId64 ", expected %" PRId64 " to %" PRId64 ")", axis,
           -rank, rank - 1);
    return -1;
}

void swap_with_last(int rank, int axis, int perm[])
{
    for (int i = 0; i < rank; i++)
        perm[i] = i;
    perm[axis] = rank - 1;
    perm[rank - 1] = axis;
}

int64_t product(const adj_shape *s, int from, int to)
{
    int64_t p = 1;
    for (int i = from; i < to; i++)
        p *= s->dim[i];
    return p;
}

/* Elements begin .. begin + size - 1 along an axis. */
adj_node *slice_axis(adj_node *x, int axis, int64_t begin, int64_t size)
{
    if (x == NULL)
        return NULL;
    adj_shape from = shape_of(x), length = from;
    if (begin == 0 && size == from.dim[axis])
        return x;
    for (int i = 0; i < from.rank; i++)
        from.dim[i] = 0;
    from.dim[axis] = begin;
    length.dim[axis] = size;
    return adj_slice(x, from, length);
}

adj_node *strided(adj_node *x, int axis, int64_t begin, int64_t count, int64_t step)
{
    if (x == NULL || step == 1 || count <= 1)
        return slice_axis(x, axis, begin, count);
    const adj_shape s = shape_of(x);
    adj_shape result = s;
    const int64_t length = s.dim[axis] - begin, whole = count * step;
    adj_node *part = slice_axis(x, axis, begin, whole < length ? whole : length);
    if (whole > length) {
        adj_shape before = {.rank = s.rank}, after = before;
        after.dim[axis] = whole - length;
        part = adj_pad(part, before, after);
    }
    const int64_t pre = product(&s, 0, axis), post = product(&s, axis + 1, (int)s.rank);
    adj_node *steps = adj_reshape(part, (adj_shape){3, {pre * count, step, post}});
    result.dim[axis] = count;
    return adj_reshape(slice_axis(steps, 1, 0, 1), result);
}

adj_node *pad_axis(adj_node *x, int axis, int64_t before, int64_t after, double with)
{
    if (x == NULL || (before == 0 && after == 0))
        return x;
    const adj_type t = adj_node_type(x);
    if (with == 0) {
        adj_shape b = {.rank = t.shape.rank}, a = b;
        b.dim[axis] = before;
        a.dim[axis] = after;
        return adj_pad(x, b, a);
    }
    adj_node *part[3];
    int n = 0;
    adj_shape s = t.shape;
    s.dim[axis] = before;
    if (before > 0)
        part[n++] = adj_fill(adj_node_graph(x), t.dtype, s, with);
    part[n++] = x;
    s.dim[axis] = after;
    if (after > 0)
        part[n++] = adj_fill(adj_node_graph(x), t.dtype, s, with);
    return adj_concat(n, part, axis);
}

adj_node *greater(adj_node *a, adj_node *b)
{
    adj_node *above = adj_greater_equal(a, b);
    return adj_sub(above, adj_equal(a, b));
}

adj_node *pick(adj_node *x, int axis, int64_t count, const int64_t index[])
{
    enum { MAX_RUNS = 4096 };
    adj_node *part[MAX_RUNS];
    int n = 0;
    for (int64_t i = 0, length; i < count; i += length) {
        for (length = 1; i + length < count && index[i + length] == index[i] + length;)
            length++;
        if (n == MAX_RUNS)
            return NULL;
        part[n++] = slice_axis(x, axis, index[i], length);
    }
    return n == 1 ? part[0] : n > 0 ? adj_concat(n, part, axis) : slice_axis(x, axis, 0, 0);
}

int joint_shape(call *n, const adj_shape *a, const adj_shape *b, adj_shape *to)
{
    *to = (adj_shape){.rank = a->rank > b->rank ? a->rank : b->rank};
    for (int i = 0; i < to->rank; i++) {
        const int64_t ia = i - (to->rank - a->rank), ib = i - (to->rank - b->rank);
        const int64_t da = ia >= 0 ? a->dim[ia] : 1, db = ib >= 0 ? b->dim[ib] : 1;
        if (da != db && da != 1 && db != 1)
            return refuse(n, "%s and %s cannot be broadcast", adj_shape_text(*a).s,
                          adj_shape_text(*b).s);
        to->dim[i] = da == 1 ? db : da;
    }
    return 1;
}
