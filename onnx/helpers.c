/* helpers.c - helpers of operators: the attributes of a node of the file, and small compositions.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/c_locale.h"
#include "import.h"

/* ---- attributes ---- */

enum { MAX_LIST = 2 * ADJ_MAX_RANK }; /* most integers of a list: pads before and after each axis */

int is_op(const Onnx__NodeProto *n, const char *op)
{
    return n->op_type != NULL && strcmp(n->op_type, op) == 0;
}

int has_results_first(const Onnx__NodeProto *n)
{
    return is_op(n, "Conv") || attr_int(&(call){.proto = n}, "transB", 0) != 0;
}

const char *entry_of(size_t n, Onnx__StringStringEntryProto *const entry[], const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (entry[i]->key != NULL && strcmp(entry[i]->key, key) == 0)
            return entry[i]->value;
    return NULL;
}

const Onnx__AttributeProto *attribute(const call *n, const char *name)
{
    for (size_t i = 0; i < n->proto->n_attribute; i++) {
        const Onnx__AttributeProto *a = n->proto->attribute[i];
        if (a->name != NULL && strcmp(a->name, name) == 0)
            return a;
    }
    return NULL;
}

int64_t attr_int(const call *n, const char *name, int64_t otherwise)
{
    const Onnx__AttributeProto *a = attribute(n, name);
    return a != NULL && a->has_i ? a->i : otherwise;
}

double meant_by(const import *f, float v)
{
    enum { DIGITS = 6, MAX_ROOT = 1024 };
    if (f->o->dtype != ADJ_F64 || !isfinite(v))
        return (double)v;
    char text[32];
    c_snprintf(text, sizeof text, "%.*g", DIGITS, (double)v);
    const double decimal = c_strtod(text, NULL);
    if ((float)decimal == v)
        return decimal;
    for (int k = 2; k <= MAX_ROOT; k++) {
        const double known[] = {1.0 / k, sqrt(k), sqrt(1.0 / k)};
        for (int i = 0; i < 3; i++)
            if ((float)known[i] == fabsf(v))
                return copysign(known[i], (double)v);
    }
    return (double)v;
}

double attr_float(const call *n, const char *name, double otherwise)
{
    const Onnx__AttributeProto *a = attribute(n, name);
    return a != NULL && a->has_f ? meant_by(n->f, a->f) : otherwise;
}

word attr_word(const call *n, const char *name, const char *otherwise)
{
    const Onnx__AttributeProto *a = attribute(n, name);
    word w = {""};
    if (a != NULL && a->has_s) {
        const size_t length = a->s.len < sizeof w.s - 1 ? a->s.len : sizeof w.s - 1;
        memcpy(w.s, a->s.data, length);
    } else {
        strncpy(w.s, otherwise, sizeof w.s - 1);
    }
    return w;
}

int attr_is(const call *n, const char *name, const char *text, const char *otherwise)
{
    return strcmp(attr_word(n, name, otherwise).s, text) == 0;
}

int attr_ints(const call *n, const char *name, const int64_t **list)
{
    const Onnx__AttributeProto *a = attribute(n, name);
    *list = a != NULL ? a->ints : NULL;
    return a == NULL ? -1 : a->n_ints > MAX_LIST ? MAX_LIST : (int)a->n_ints;
}

int int_list(call *n, const char *name, int i, const int64_t **list)
{
    if (name != NULL && attribute(n, name) != NULL)
        return attr_ints(n, name, list);
    if (i < 0 || !has_in(n, i))
        return -1;
    const numbers *v = in_known(n, i);
    if (v == NULL)
        return -2;
    if (v->i == NULL || v->shape.rank > 1 || v->n > MAX_LIST) {
        refuse(n, "operand %d is not a list of integers", i);
        return -2;
    }
    *list = v->i;
    return (int)v->n;
}

/* ---- axes and shapes ---- */

adj_shape shape_of(const adj_node *x) { return adj_node_type(x).shape; }

int axis_of(call *n, int64_t axis, int64_t rank)
{
    if (axis >= -rank && axis < rank)
        return (int)(axis < 0 ? axis + rank : axis);
    refuse(n, "axis is out of range (got %" PRId64 ", expected %" PRId64 " to %" PRId64 ")", axis,
           -rank, rank - 1);
    return -1;
}

adj_node *broadcast(adj_node *x, adj_shape s)
{
    return x == NULL || adj_shape_equal(shape_of(x), s) ? x : adj_broadcast_to(x, s);
}

void swap_with_last(int rank, int axis, int perm[])
{
    for (int i = 0; i < rank; i++)
        perm[i] = i;
    perm[axis] = rank - 1;
    perm[rank - 1] = axis;
}

adj_node *along(adj_node *x, int axis, adj_node *(*function)(adj_node *x))
{
    if (x == NULL)
        return NULL;
    int perm[ADJ_MAX_RANK];
    swap_with_last((int)shape_of(x).rank, axis, perm);
    return permute(function(permute(x, perm)), perm);
}

int64_t clamp(int64_t v, int64_t low, int64_t high) { return v < low ? low : v > high ? high : v; }

adj_node *slice_axis(adj_node *x, int axis, int64_t begin, int64_t size)
{
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
    return adj_broadcast_shape(*a, *b, to) ||
           refuse(n, "%s and %s cannot be broadcast", adj_shape_text(*a).s, adj_shape_text(*b).s);
}
