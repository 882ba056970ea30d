/* arrange.c - operators that reshape, permute, join and split tensors. */
#include <inttypes.h>

#include "import.h"

/* ---- shapes ---- */

/* Sets *to to the shape that is named; an axis may be -1. */
int reshaped_shape(call *n, adj_shape *to)
{
    const int64_t *list;
    const int count = int_list(n, "shape", 1, &list);
    const adj_shape from = in_shape(n, 0);
    if (count < 0)
        return count == -1 ? refuse(n, "its shape is missing") : 0;
    if (count > ADJ_MAX_RANK)
        return refuse(n, "rank (got %d, expected at most %d)", count, ADJ_MAX_RANK);
    *to = (adj_shape){.rank = count};
    for (int i = 0; i < count; i++) {
        const int is_copied = list[i] == 0 && attr_int(n, "allowzero", 0) == 0;
        if (is_copied && i >= from.rank)
            return refuse(n, "entry %d of the shape is 0 without an axis to copy", i);
        to->dim[i] = is_copied ? from.dim[i] : list[i];
    }
    /* The sizes of a file without a dynamic batch begin with its own. */
    if (n->in[0]->is_rebatched && count > 0 && list[0] == n->f->file_batch && from.rank > 0 &&
        from.dim[0] == n->f->o->batch)
        to->dim[0] = n->f->o->batch;
    return 1;
}

int flattened_shape(call *n, adj_shape *to)
{
    const adj_shape s = in_shape(n, 0);
    const int64_t given = attr_int(n, "axis", 1);
    const int axis = given == s.rank ? (int)given : axis_of(n, given, s.rank);
    if (axis >= 0)
        *to = (adj_shape){2, {product(&s, 0, axis), product(&s, axis, (int)s.rank)}};
    return axis >= 0;
}

/* Sets *to to the shape without the axes of size 1 that are named, or without all of them. */
int squeezed_shape(call *n, adj_shape *to)
{
    const int64_t *list;
    const int count = int_list(n, "axes", 1, &list);
    const adj_shape s = in_shape(n, 0);
    int is_gone[ADJ_MAX_RANK] = {0};
    if (count == -2)
        return 0;
    for (int i = 0; i < count; i++) {
        const int axis = axis_of(n, list[i], s.rank);
        if (axis < 0)
            return 0;
        is_gone[axis] = 1;
    }
    *to = (adj_shape){0};
    for (int i = 0; i < s.rank; i++)
        if (count < 0 ? s.dim[i] != 1 : !is_gone[i])
            to->dim[to->rank++] = s.dim[i];
    return 1;
}

int unsqueezed_shape(call *n, adj_shape *to)
{
    const int64_t *list;
    const int count = int_list(n, "axes", 1, &list);
    const adj_shape s = in_shape(n, 0);
    int is_new[ADJ_MAX_RANK] = {0}, from = 0;
    if (count < 0)
        return count == -1 ? refuse(n, "its axes are missing") : 0;
    *to = (adj_shape){.rank = s.rank + count};
    if (to->rank > ADJ_MAX_RANK)
        return refuse(n, "rank (got %" PRId64 ", expected at most %d)", to->rank, ADJ_MAX_RANK);
    for (int i = 0; i < count; i++) {
        const int axis = axis_of(n, list[i], to->rank);
        if (axis < 0)
            return 0;
        if (is_new[axis]++)
            return refuse(n, "axis %d is given twice", axis);
    }
    for (int i = 0; i < to->rank; i++)
        to->dim[i] = is_new[i] ? 1 : s.dim[from++];
    return 1;
}

/* Gives the elements the shape of the row. */
int import_reshape(call *n)
{
    adj_shape s = {0};
    adj_node *x = in_node(n, 0);
    return x != NULL && n->row->shape(n, &s) && give(n, adj_reshape(x, s));
}

int read_perm(call *n, int perm[])
{
    const int64_t *list;
    const int count = attr_ints(n, "perm", &list), rank = (int)in_shape(n, 0).rank;
    unsigned seen = 0;
    if (count >= 0 && count != rank)
        return refuse(n, "perm has %d entries (expected %d)", count, rank);
    for (int i = 0; i < rank; i++) {
        const int64_t axis = count < 0 ? rank - 1 - i : list[i];
        if (axis < 0 || axis >= rank || (seen >> axis & 1) != 0)
            return refuse(n, "perm is not a permutation (entry %d is %" PRId64 ")", i, axis);
        seen |= 1U << axis;
        perm[i] = (int)axis;
    }
    return 1;
}

int import_transpose(call *n)
{
    int perm[ADJ_MAX_RANK] = {0};
    adj_node *x = in_node(n, 0);
    return x != NULL && read_perm(n, perm) && give(n, permute(x, perm));
}

int expanded_shape(call *n, adj_shape *to)
{
    const adj_shape s = in_shape(n, 0);
    adj_shape given = {0};
    return shape_from(n, in_known(n, 1), &given) && joint_shape(n, &s, &given, to);
}

int import_expand(call *n)
{
    adj_shape s = {0};
    return expanded_shape(n, &s) && give(n, adj_broadcast_to(in_node(n, 0), s));
}

int import_tile(call *n)
{
    const int64_t *list;
    const int count = int_list(n, NULL, 1, &list);
    adj_node *x = in_node(n, 0);
    if (count < 0 || x == NULL)
        return 0;
    adj_shape s = shape_of(x);
    if (count != s.rank)
        return refuse(n, "repeats has %d entries (expected %" PRId64 ")", count, s.rank);
    for (int i = 0; i < count; i++) {
        if (list[i] < 1 || list[i] > INT32_MAX)
            return refuse(n, "repeats is out of range (got %" PRId64 ")", list[i]);
        if (list[i] == 1)
            continue;
        const int64_t pre = product(&s, 0, i), post = product(&s, i, (int)s.rank);
        adj_node *once = adj_reshape(x, (adj_shape){3, {pre, 1, post}});
        adj_node *more = adj_broadcast_to(once, (adj_shape){3, {pre, list[i], post}});
        if (more == NULL)
            return 0;
        s.dim[i] *= list[i];
        x = adj_reshape(more, s);
    }
    return give(n, x);
}

/* ---- joining and splitting ---- */

int import_concat(call *n)
{
    const int axis = axis_of(n, attr_int(n, "axis", 1), in_shape(n, 0).rank);
    adj_node **part = import_alloc(n->f, n->n_in + 1, sizeof(adj_node *));
    if (axis < 0 || part == NULL)
        return 0;
    for (int i = 0; i < n->n_in; i++)
        if ((part[i] = in_node(n, i)) == NULL)
            return 0;
    return give(n, adj_concat(n->n_in, part, axis));
}

int import_split(call *n)
{
    const adj_shape s = in_shape(n, 0);
    const int axis = axis_of(n, attr_int(n, "axis", 0), s.rank);
    const int64_t *list = NULL;
    const numbers *sizes = has_in(n, 1) ? in_known(n, 1) : NULL;
    const Onnx__AttributeProto *a = attribute(n, "split");
    int64_t count = sizes != NULL ? sizes->n : a != NULL ? (int64_t)a->n_ints : 0;
    if (axis < 0 || (has_in(n, 1) && sizes == NULL))
        return 0;
    list = sizes != NULL ? sizes->i : a != NULL ? a->ints : NULL;
    const int64_t parts = attr_int(n, "num_outputs", n->n_out), size = s.dim[axis];
    const int64_t each = parts > 0 ? size / parts + (size % parts != 0) : 0;
    if (list == NULL)
        count = parts;
    if (count < n->n_out || count < 1)
        return refuse(n, "%" PRId64 " parts for %d results", count, n->n_out);
    for (int64_t i = 0, begin = 0; i < n->n_out; i++) {
        const int64_t rest = size - begin, length = list != NULL  ? list[i]
                                                    : each < rest ? each
                                                                  : rest;
        if (length < 0 || length > rest)
            return refuse(n, "part %" PRId64 " is out of range", i);
        if (!give_at(n, (int)i, slice_axis(in_node(n, 0), axis, begin, length), n->in[0]->elem))
            return 0;
        begin += length;
    }
    return 1;
}

/* ---- blocks of pixels as channels ---- */

int import_depth_to_space(call *n)
{
    const adj_shape s = in_shape(n, 0);
    const int64_t b = attr_int(n, "blocksize", 0);
    if (s.rank != 4 || b < 1 || b > INT32_MAX || s.dim[1] % (b * b) != 0)
        return refuse(n, "blocksize %" PRId64 " does not fit %s", b, adj_shape_text(s).s);
    const int64_t c = s.dim[1] / (b * b), h = s.dim[2], w = s.dim[3];
    const int is_crd = attr_is(n, "mode", "CRD", "DCR");
    const adj_shape dcr = {6, {s.dim[0], b, b, c, h, w}}, crd = {6, {s.dim[0], c, b, b, h, w}};
    const int from_dcr[] = {0, 3, 4, 1, 5, 2}, from_crd[] = {0, 1, 4, 2, 5, 3};
    adj_node *blocks = adj_reshape(in_node(n, 0), is_crd ? crd : dcr);
    adj_node *y = adj_transpose(blocks, 6, is_crd ? from_crd : from_dcr);
    return give(n, adj_reshape(y, (adj_shape){4, {s.dim[0], c, h * b, w * b}}));
}

int import_space_to_depth(call *n)
{
    const adj_shape s = in_shape(n, 0);
    const int64_t b = attr_int(n, "blocksize", 0);
    if (s.rank != 4 || b < 1 || b > INT32_MAX || s.dim[2] % b != 0 || s.dim[3] % b != 0)
        return refuse(n, "blocksize %" PRId64 " does not fit %s", b, adj_shape_text(s).s);
    const int64_t h = s.dim[2] / b, w = s.dim[3] / b;
    const int to_dcr[] = {0, 3, 5, 1, 2, 4}, to_crd[] = {0, 1, 3, 5, 2, 4};
    const int is_crd = attr_is(n, "mode", "CRD", "DCR");
    adj_node *blocks = adj_reshape(in_node(n, 0), (adj_shape){6, {s.dim[0], s.dim[1], h, b, w, b}});
    adj_node *y = adj_transpose(blocks, 6, is_crd ? to_crd : to_dcr);
    return give(n, adj_reshape(y, (adj_shape){4, {s.dim[0], s.dim[1] * b * b, h, w}}));
}
