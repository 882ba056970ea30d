/* slice.c - Slice, Gather, and Pad, whose negative pads are slices, too. */
#include <inttypes.h>
#include <string.h>

#include "import.h"

/* ---- slices ---- */

/* Sets begin and count of the elements start, start + step, ... before end. */
static void set_range(int64_t size, int64_t start, int64_t end, int64_t step, int64_t *begin,
                      int64_t *count)
{
    start = clamp(start < 0 ? start + size : start, step > 0 ? 0 : -1, step > 0 ? size : size - 1);
    end = clamp(end < 0 && end >= -size ? end + size : end, step > 0 ? 0 : -1, size);
    const int64_t span = step > 0 ? end - start : start - end, by = step > 0 ? step : -step;
    *begin = start;
    *count = span > 0 ? (span + by - 1) / by : 0;
}

/* Reads starts, ends, axes, steps: attributes up to opset 9, then operands. */
int read_slice(call *n, int64_t begin[], int64_t count[], int64_t step[])
{
    const int64_t *starts, *ends, *axes, *steps;
    const adj_shape s = in_shape(n, 0);
    const int n_start = int_list(n, "starts", 1, &starts), n_end = int_list(n, "ends", 2, &ends);
    const int n_axis = int_list(n, "axes", 3, &axes), n_step = int_list(n, NULL, 4, &steps);
    if (n_start == -2 || n_end == -2 || n_axis == -2 || n_step == -2)
        return 0;
    if (n_start < 0 || n_start != n_end || (n_axis >= 0 && n_axis != n_start) ||
        (n_step >= 0 && n_step != n_start))
        return refuse(n, "starts, ends, axes and steps have different lengths");
    for (int i = 0; i < s.rank; i++) {
        begin[i] = 0;
        count[i] = s.dim[i];
        step[i] = 1;
    }
    for (int i = 0; i < n_start; i++) {
        const int axis = axis_of(n, n_axis >= 0 ? axes[i] : i, s.rank);
        int64_t by = n_step >= 0 ? steps[i] : 1;
        if (axis < 0 || by == 0)
            return axis < 0 ? 0 : refuse(n, "a step is 0");
        by = clamp(by, -INT32_MAX, INT32_MAX);
        set_range(s.dim[axis], starts[i] == INT64_MIN ? -INT64_MAX : starts[i],
                  ends[i] == INT64_MIN ? -INT64_MAX : ends[i], by, &begin[axis], &count[axis]);
        step[axis] = by;
    }
    return 1;
}

static adj_node *turned(import *f, adj_node *x, int axis, int64_t begin, int64_t count,
                        int64_t step)
{
    int64_t *index = count <= MAX_COMPUTED ? import_alloc(f, count + 1, sizeof *index) : NULL;
    if (index == NULL)
        return NULL;
    for (int64_t i = 0; i < count; i++)
        index[i] = begin + i * step;
    return pick(x, axis, count, index);
}

int import_slice(call *n)
{
    int64_t begin[ADJ_MAX_RANK] = {0}, count[ADJ_MAX_RANK] = {0}, step[ADJ_MAX_RANK] = {0};
    adj_node *x = in_node(n, 0);
    if (x == NULL || !read_slice(n, begin, count, step))
        return 0;
    const int rank = (int)shape_of(x).rank;
    for (int i = 0; i < rank; i++)
        x = count[i] == 0 ? slice_axis(x, i, 0, 0)
            : step[i] > 0 ? strided(x, i, begin[i], count[i], step[i])
                          : turned(n->f, x, i, begin[i], count[i], step[i]);
    return x != NULL ? give(n, x) : refuse(n, "too many elements with a negative step");
}

/* Returns an index counted from the front; -1, having refused the node, if it is out of range. */
static int64_t index_from_front(call *n, int64_t index, int64_t size)
{
    if (index >= -size && index < size)
        return index < 0 ? index + size : index;
    refuse(n, "index %" PRId64 " is out of range (expected %" PRId64 " to %" PRId64 ")", index,
           -size, size - 1);
    return -1;
}

int read_gather(call *n, gathered *to)
{
    const adj_shape s = in_shape(n, 0);
    const numbers *index = in_known(n, 1);
    *to = (gathered){.axis = axis_of(n, attr_int(n, "axis", 0), s.rank)};
    if (to->axis < 0 || index == NULL)
        return 0;
    int64_t *at = import_alloc(n->f, index->n + 1, sizeof *at);
    if (at == NULL || index->i == NULL || s.rank - 1 + index->shape.rank > ADJ_MAX_RANK)
        return refuse(n, "its indices are not integers, or the result's rank is too large");
    for (int64_t i = 0; i < index->n; i++)
        if ((at[i] = index_from_front(n, index->i[i], s.dim[to->axis])) < 0)
            return 0;
    to->n = index->n;
    to->index = at;
    for (int i = 0; i < to->axis; i++)
        to->shape.dim[to->shape.rank++] = s.dim[i];
    for (int i = 0; i < index->shape.rank; i++)
        to->shape.dim[to->shape.rank++] = index->shape.dim[i];
    for (int i = to->axis + 1; i < s.rank; i++)
        to->shape.dim[to->shape.rank++] = s.dim[i];
    return 1;
}

int import_gather(call *n)
{
    gathered to;
    adj_node *x = in_node(n, 0);
    if (x == NULL || !read_gather(n, &to))
        return 0;
    x = pick(x, to.axis, to.n, to.index);
    return x != NULL ? give(n, adj_reshape(x, to.shape)) : refuse(n, "it has too many indices");
}

/* Slices of x at places of its first axes, whose indices are rows of operand 1. */
int import_gather_nd(call *n)
{
    const adj_shape s = in_shape(n, 0), by = in_shape(n, 1);
    const numbers *index = in_known(n, 1);
    adj_node *x = in_node(n, 0);
    if (index == NULL || x == NULL)
        return 0;
    const int64_t depth = by.rank > 0 ? by.dim[by.rank - 1] : 0,
                  rank = by.rank - 1 + s.rank - depth;
    if (index->i == NULL || depth < 1 || depth > s.rank || rank > ADJ_MAX_RANK ||
        attr_int(n, "batch_dims", 0) != 0)
        return refuse(n, "its indices are not integers of an axis each, or batch_dims is set");
    const int64_t count = index->n / depth;
    int64_t *at = import_alloc(n->f, count + 1, sizeof *at);
    for (int64_t i = 0; at != NULL && i < index->n; i++) {
        const int64_t size = s.dim[i % depth], k = index_from_front(n, index->i[i], size);
        if (k < 0)
            return 0;
        at[i / depth] = at[i / depth] * size + k;
    }
    adj_shape to = {.rank = rank},
              rows = {2, {product(&s, 0, (int)depth), product(&s, (int)depth, (int)s.rank)}};
    for (int i = 0; i < rank; i++)
        to.dim[i] = i < by.rank - 1 ? by.dim[i] : s.dim[i - (by.rank - 1) + depth];
    x = at != NULL ? pick(adj_reshape(x, rows), 0, count, at) : NULL;
    return x != NULL ? give(n, adj_reshape(x, to)) : refuse(n, "it has too many indices");
}

/* ---- pads ---- */

/* Element that a padded place reads: reflected at the ends, the end itself, or from the other end.
 */
static int64_t source_of(int64_t at, int64_t size, const char *mode)
{
    if (strcmp(mode, "edge") == 0 || size == 1)
        return clamp(at, 0, size - 1);
    if (strcmp(mode, "wrap") == 0)
        return (at % size + size) % size;
    const int64_t period = 2 * (size - 1), k = (at % period + period) % period;
    return k < size ? k : period - k;
}

static adj_node *pad_by_elements(import *f, adj_node *x, int axis, int64_t before, int64_t after,
                                 const char *mode)
{
    const int64_t size = shape_of(x).dim[axis];
    const int64_t count = before + size + after;
    int64_t *index = count <= MAX_COMPUTED ? import_alloc(f, count, sizeof *index) : NULL;
    if (index == NULL || size < 1)
        return NULL;
    for (int64_t i = 0; i < count; i++)
        index[i] = source_of(i - before, size, mode);
    return pick(x, axis, count, index);
}

/* Reads the pads of all axes; those that are not named are 0. */
static int read_axis_pads(call *n, int64_t before[], int64_t after[])
{
    const int64_t *pads, *axes;
    const int n_pad = int_list(n, "pads", 1, &pads), n_axis = int_list(n, NULL, 3, &axes);
    const int rank = (int)in_shape(n, 0).rank, named = n_axis >= 0 ? n_axis : rank;
    if (n_pad == -2 || n_axis == -2)
        return 0;
    if (n_pad != 2 * named)
        return refuse(n, "pads has %d entries (expected %d)", n_pad, 2 * named);
    for (int i = 0; i < rank; i++)
        before[i] = after[i] = 0;
    for (int i = 0; i < named; i++) {
        const int axis = n_axis >= 0 ? axis_of(n, axes[i], rank) : i;
        if (axis < 0)
            return 0;
        before[axis] = pads[i];
        after[axis] = pads[named + i];
        if (pads[i] > INT32_MAX || pads[named + i] > INT32_MAX || pads[i] < -INT32_MAX ||
            pads[named + i] < -INT32_MAX)
            return refuse(n, "pads is out of range");
    }
    return 1;
}

int import_pad(call *n)
{
    const word mode = attr_word(n, "mode", "constant");
    int64_t before[ADJ_MAX_RANK] = {0}, after[ADJ_MAX_RANK] = {0};
    double with = attr_float(n, "value", 0);
    adj_node *x = in_node(n, 0);
    if (x == NULL || !read_axis_pads(n, before, after))
        return 0;
    if (has_in(n, 2)) {
        const numbers *v = in_known(n, 2);
        if (v == NULL || v->n != 1)
            return refuse(n, "its value is not a number");
        with = number_at(v, 0);
    }
    for (int i = 0; i < shape_of(x).rank; i++) {
        const int64_t size = shape_of(x).dim[i];
        const int64_t cut_before = before[i] < 0 ? -before[i] : 0;
        const int64_t cut_after = after[i] < 0 ? -after[i] : 0;
        if (cut_before + cut_after > size)
            return refuse(n, "negative pads exceed the size of an axis");
        x = slice_axis(x, i, cut_before, size - cut_before - cut_after);
        const int64_t b = before[i] > 0 ? before[i] : 0, a = after[i] > 0 ? after[i] : 0;
        if (a + b > 0)
            x = strcmp(mode.s, "constant") == 0 ? pad_axis(x, i, b, a, with)
                                                : pad_by_elements(n->f, x, i, b, a, mode.s);
        if (x == NULL)
            return refuse(n, "pads of mode %s are too large", mode.s);
    }
    return give(n, x);
}
