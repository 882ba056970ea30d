/* sequence.c - lists of tensors, which are known while loading: PyTorch's newer exporter writes
 * chunk, split and stack with them, unless it optimizes. */
#include <inttypes.h>
#include <string.h>

#include "import.h"

/* Makes the first result a sequence of count elements, all NULL. Returns 0 on failure. */
static int new_sequence(call *n, int64_t count, int elem)
{
    enum { MAX_PARTS = 1 << 16 }; /* a node each */
    value *out = &n->out[0];
    if (count > MAX_PARTS)
        return refuse(n, "a sequence of %" PRId64 " elements (expected at most %d)", count,
                      MAX_PARTS);
    out->part = import_alloc(n->f, count + 1, sizeof *out->part);
    out->n_part = count;
    out->elem = elem;
    return out->part != NULL;
}

/* Returns operand 0, or NULL having refused the node, if it is no sequence. */
static const value *in_sequence(call *n)
{
    const value *v = has_in(n, 0) ? n->in[0] : NULL;
    if (v != NULL && v->part != NULL)
        return v;
    refuse(n, "its operand is not a sequence known when the file is read");
    return NULL;
}

/* Sets *at to the place that operand i names, `otherwise` if it is left out. Returns 0 having
 * refused the node, if that is not below `end`. */
static int place_in(call *n, int i, int64_t n_part, int64_t otherwise, int64_t end, int64_t *at)
{
    *at = otherwise;
    if (!has_in(n, i))
        return 1;
    const numbers *v = in_known(n, i);
    if (v == NULL || v->i == NULL || v->n != 1)
        return refuse(n, "its position is not an integer known when the file is read");
    *at = v->i[0] < 0 ? v->i[0] + n_part : v->i[0];
    return (*at >= 0 && *at < end) || refuse(n,
                                             "position %" PRId64 " is out of range (expected below "
                                             "%" PRId64 ")",
                                             v->i[0], end);
}

/* Reads the sizes of the parts of a split: one for all, or a list. Without it they are 1. */
static int part_sizes(call *n, int64_t size, int64_t *each, const numbers **list)
{
    *each = 1;
    *list = NULL;
    if (!has_in(n, 1))
        return 1;
    const numbers *sizes = in_known(n, 1);
    if (sizes == NULL || sizes->i == NULL || (sizes->shape.rank == 0 && sizes->i[0] < 1))
        return refuse(n, "split is not a size or list of sizes known when the file is read");
    if (sizes->shape.rank == 1)
        *list = sizes;
    else
        *each = sizes->i[0] < size ? sizes->i[0] : size > 0 ? size : 1;
    return 1;
}

int import_split_to_sequence(call *n)
{
    adj_shape s = in_shape(n, 0);
    const int axis = axis_of(n, attr_int(n, "axis", 0), s.rank);
    const int is_squeezed = !has_in(n, 1) && attr_int(n, "keepdims", 1) == 0;
    const numbers *list;
    int64_t each, begin = 0;
    adj_node *x = in_node(n, 0);
    if (axis < 0 || x == NULL || !part_sizes(n, s.dim[axis], &each, &list))
        return 0;
    const int64_t size = s.dim[axis], count = list != NULL ? list->n : (size + each - 1) / each;
    if (!new_sequence(n, count, n->in[0]->elem))
        return 0;
    s.rank -= is_squeezed;
    memmove(s.dim + axis, s.dim + axis + is_squeezed, (size_t)(s.rank - axis) * sizeof *s.dim);
    for (int64_t i = 0; i < count; i++) {
        const int64_t rest = size - begin, wanted = list != NULL ? list->i[i] : each;
        const int64_t length = list != NULL || wanted < rest ? wanted : rest;
        if (length < 0 || length > rest)
            return refuse(n, "part %" PRId64 " is out of range", i);
        adj_node *part = slice_axis(x, axis, begin, length);
        n->out[0].part[i] = is_squeezed ? adj_reshape(part, s) : part;
        begin += length;
    }
    return 1;
}

int import_sequence_construct(call *n)
{
    if (!new_sequence(n, n->n_in, has_in(n, 0) ? n->in[0]->elem : 0))
        return 0;
    for (int i = 0; i < n->n_in; i++)
        if ((n->out[0].part[i] = in_node(n, i)) == NULL)
            return refuse(n, "element %d is not a tensor", i);
    return 1;
}

int import_sequence_empty(call *n)
{
    return new_sequence(n, 0, (int)attr_int(n, "dtype", ELEM_FLOAT));
}

int import_sequence_insert(call *n)
{
    const value *v = in_sequence(n);
    adj_node *x = in_node(n, 1);
    int64_t at;
    if (v == NULL || x == NULL || !place_in(n, 2, v->n_part, v->n_part, v->n_part + 1, &at) ||
        !new_sequence(n, v->n_part + 1, v->elem))
        return 0;
    for (int64_t i = 0; i <= v->n_part; i++)
        n->out[0].part[i] = i == at ? x : v->part[i - (i > at)];
    return 1;
}

int import_sequence_at(call *n)
{
    const value *v = in_sequence(n);
    int64_t at;
    return v != NULL && place_in(n, 1, v->n_part, -1, v->n_part, &at) &&
           (at >= 0 || refuse(n, "its position is missing")) && give_at(n, 0, v->part[at], v->elem);
}

/* Joins the elements along an axis, or along a new one. */
int import_concat_from_sequence(call *n)
{
    const value *v = in_sequence(n);
    const int is_new = attr_int(n, "new_axis", 0) != 0;
    if (v == NULL || v->n_part < 1)
        return refuse(n, "the sequence is empty");
    adj_shape s = shape_of(v->part[0]);
    const int axis = axis_of(n, attr_int(n, "axis", 0), s.rank + is_new);
    if (axis < 0 || s.rank + is_new > ADJ_MAX_RANK)
        return refuse(n, "the result's rank is too large");
    adj_node **part = import_alloc(n->f, v->n_part, sizeof *part);
    for (int64_t i = 0; part != NULL && i < v->n_part; i++) {
        s = shape_of(v->part[i]);
        memmove(s.dim + axis + is_new, s.dim + axis, (size_t)(s.rank - axis) * sizeof *s.dim);
        s.dim[axis] = is_new ? 1 : s.dim[axis];
        s.rank += is_new;
        part[i] = is_new ? adj_reshape(v->part[i], s) : v->part[i];
    }
    return part != NULL && give_at(n, 0, adj_concat((int)v->n_part, part, axis), v->elem);
}
