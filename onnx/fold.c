/* fold.c - computes values while loading: constants, shapes, and tensors whose elements are only
 * rearranged. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "graph/op.h"
#include "order.h"
#include "table.h"

/* ---- constants and shapes ---- */

/* Returns a list of integers as numbers. */
static numbers *int_numbers(import *f, int64_t count, const int64_t list[])
{
    numbers *v = new_numbers(f, ELEM_INT64, (adj_shape){1, {count}});
    for (int64_t i = 0; v != NULL && i < count; i++)
        v->i[i] = list[i];
    return v;
}

static const numbers *one_number(import *f, int elem, double to)
{
    numbers *v = new_numbers(f, elem, (adj_shape){0});
    if (v != NULL)
        number_set(v, 0, to);
    return v;
}

int fold_constant(call *n)
{
    import *f = n->f;
    const Onnx__AttributeProto *a = n->proto->n_attribute == 1 ? n->proto->attribute[0] : NULL;
    if (a == NULL || a->name == NULL)
        return refuse(n, "a constant without a value");
    const char *name = a->name;
    if (strcmp(name, "value") == 0 && a->t != NULL)
        return give_known(n, read_tensor(f, a->t));
    if (strcmp(name, "value_int") == 0) {
        numbers *v = new_numbers(f, ELEM_INT64, (adj_shape){0});
        if (v != NULL)
            v->i[0] = a->i;
        return give_known(n, v);
    }
    if (strcmp(name, "value_ints") == 0)
        return give_known(n, int_numbers(f, (int64_t)a->n_ints, a->ints));
    if (strcmp(name, "value_float") == 0)
        return give_known(n, one_number(f, ELEM_FLOAT, meant_by(f, a->f)));
    if (strcmp(name, "value_floats") == 0) {
        numbers *v = new_numbers(f, ELEM_FLOAT, (adj_shape){1, {(int64_t)a->n_floats}});
        for (size_t i = 0; v != NULL && i < a->n_floats; i++)
            v->f[i] = (double)a->floats[i];
        return give_known(n, v);
    }
    return refuse(n, "a constant of kind \"%s\"", name);
}

static int64_t limited(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

int import_shape(call *n)
{
    const adj_shape s = in_shape(n, 0);
    int64_t start = attr_int(n, "start", 0), end = attr_int(n, "end", s.rank);
    start = limited(start < 0 ? start + s.rank : start, 0, s.rank);
    end = limited(end < 0 ? end + s.rank : end, start, s.rank);
    return give_known(n, int_numbers(n->f, end - start, s.dim + start));
}

int import_size(call *n)
{
    const int64_t elems = adj_shape_elems(in_shape(n, 0));
    numbers *v = new_numbers(n->f, ELEM_INT64, (adj_shape){0});
    if (v != NULL)
        v->i[0] = elems;
    return give_known(n, v);
}

/* Sets *to to a shape given as numbers. */
int shape_from(call *n, const numbers *list, adj_shape *to)
{
    if (list == NULL || list->i == NULL || list->shape.rank > 1 || list->n > ADJ_MAX_RANK)
        return refuse(n, "its operand is not a shape of rank up to %d", ADJ_MAX_RANK);
    *to = (adj_shape){.rank = list->n};
    for (int64_t i = 0; i < list->n; i++)
        to->dim[i] = list->i[i];
    return adj_shape_elems(*to) >= 0 || refuse(n, "its shape is invalid or too large");
}

int fold_constant_of_shape(call *n)
{
    const Onnx__AttributeProto *a = attribute(n, "value");
    const numbers *with = a != NULL && a->t != NULL ? read_tensor(n->f, a->t) : NULL;
    adj_shape s = {0};
    if (!shape_from(n, in_known(n, 0), &s))
        return 0;
    const int elem = with != NULL ? with->elem : ELEM_FLOAT;
    if (adj_shape_elems(s) > MAX_COMPUTED && elem_is_float(elem))
        return give_at(n, 0,
                       adj_fill(n->f->g, dtype_of_elem(n->f, elem), s,
                                with != NULL && with->n > 0 ? number_at(with, 0) : 0),
                       elem);
    numbers *v = new_numbers(n->f, elem, s);
    for (int64_t i = 0; v != NULL && with != NULL && with->n > 0 && i < v->n; i++)
        number_set(v, i, number_at(with, 0));
    return give_known(n, v);
}

int fold_range(call *n)
{
    const numbers *start = in_known(n, 0), *limit = in_known(n, 1), *delta = in_known(n, 2);
    if (start == NULL || limit == NULL || delta == NULL || start->n != 1 || limit->n != 1 ||
        delta->n != 1 || number_at(delta, 0) == 0)
        return refuse(n, "its operands are not numbers, or the step is 0");
    const double from = number_at(start, 0), step = number_at(delta, 0);
    const double count = ceil((number_at(limit, 0) - from) / step);
    if (!(count <= MAX_COMPUTED))
        return refuse(n, "it has too many elements");
    numbers *v = new_numbers(n->f, start->elem, (adj_shape){1, {count > 0 ? (int64_t)count : 0}});
    for (int64_t i = 0; v != NULL && i < v->n; i++)
        number_set(v, i, from + (double)i * step);
    return give_known(n, v);
}

int fold_cast(call *n)
{
    const numbers *from = in_known(n, 0);
    const int to = n->n_in > 1 && n->in[1] != NULL ? n->in[1]->elem : (int)attr_int(n, "to", 0);
    if (!elem_is_float(to) && !elem_is_integer(to))
        return refuse(n, "a cast to %s", elem_name(to));
    numbers *v = from != NULL ? new_numbers(n->f, to, from->shape) : NULL;
    for (int64_t i = 0; v != NULL && i < v->n; i++) {
        if (v->i != NULL && from->i != NULL && to != ELEM_BOOL)
            v->i[i] = from->i[i];
        else
            number_set(v, i, number_at(from, i));
    }
    return give_known(n, v);
}

int fold_identity(call *n) { return give_known(n, in_known(n, 0)); }

/* ---- elements that move ---- */

void copy_element(const numbers *a, int64_t from, numbers *b, int64_t to)
{
    if (b->f != NULL)
        b->f[to] = a->f[from];
    else
        b->i[to] = a->i[from];
}

static int same_elements(call *n, const numbers *a, adj_shape s)
{
    if (a == NULL || adj_shape_elems(s) != a->n)
        return refuse(n, "its elements do not fit the shape %s", adj_shape_text(s).s);
    numbers *v = new_numbers(n->f, a->elem, s);
    for (int64_t i = 0; v != NULL && i < a->n; i++)
        copy_element(a, i, v, i);
    return give_known(n, v);
}

int fold_squeeze(call *n)
{
    adj_shape s = {0};
    return squeezed_shape(n, &s) && same_elements(n, in_known(n, 0), s);
}

int fold_unsqueeze(call *n)
{
    adj_shape s = {0};
    return unsqueezed_shape(n, &s) && same_elements(n, in_known(n, 0), s);
}

int fold_reshape(call *n)
{
    const numbers *a = in_known(n, 0);
    const int64_t *list;
    const int count = int_list(n, "shape", 1, &list);
    if (a == NULL || count < 0 || count > ADJ_MAX_RANK)
        return refuse(n, "its shape is missing or too long");
    adj_shape s = {.rank = count};
    int open = -1;
    int64_t others = 1;
    for (int i = 0; i < count; i++) {
        s.dim[i] = i < a->shape.rank && list[i] == 0 ? a->shape.dim[i] : list[i];
        if (s.dim[i] == -1)
            open = i;
        else if (__builtin_mul_overflow(others, s.dim[i], &others))
            return refuse(n, "its shape is too large");
    }
    if (open >= 0 && others > 0)
        s.dim[open] = a->n / others;
    return same_elements(n, a, s);
}

int fold_concat(call *n)
{
    const numbers *first = in_known(n, 0);
    const int axis = first != NULL ? axis_of(n, attr_int(n, "axis", 1), first->shape.rank) : -1;
    if (axis < 0)
        return 0;
    adj_shape s = first->shape;
    s.dim[axis] = 0;
    for (int i = 0; i < n->n_in; i++) {
        const numbers *part = in_known(n, i);
        if (part == NULL || part->shape.rank != s.rank || part->elem != first->elem)
            return refuse(n, "its operands differ in rank or type");
        for (int k = 0; k < s.rank; k++)
            if (k != axis && part->shape.dim[k] != s.dim[k])
                return refuse(n, "its operands differ in shape");
        s.dim[axis] += part->shape.dim[axis];
    }
    numbers *v = new_numbers(n->f, first->elem, s);
    if (v == NULL)
        return 0;
    const int64_t pre = product(&s, 0, axis), post = product(&s, axis + 1, (int)s.rank);
    for (int64_t p = 0, at = 0; p < pre; p++)
        for (int i = 0; i < n->n_in; i++) {
            const numbers *part = n->in[i]->known;
            const int64_t row = part->shape.dim[axis] * post;
            for (int64_t k = 0; k < row; k++)
                copy_element(part, p * row + k, v, at++);
        }
    return give_known(n, v);
}

int fold_gather(call *n)
{
    const numbers *a = in_known(n, 0), *index = in_known(n, 1);
    if (a == NULL || index == NULL || index->i == NULL)
        return refuse(n, "its indices are not integers");
    const int axis = axis_of(n, attr_int(n, "axis", 0), a->shape.rank);
    if (axis < 0 || a->shape.rank - 1 + index->shape.rank > ADJ_MAX_RANK)
        return refuse(n, "the result's rank is too large");
    adj_shape s = {.rank = a->shape.rank - 1 + index->shape.rank};
    memcpy(s.dim, a->shape.dim, (size_t)axis * sizeof *s.dim);
    memcpy(s.dim + axis, index->shape.dim, (size_t)index->shape.rank * sizeof *s.dim);
    memcpy(s.dim + axis + index->shape.rank, a->shape.dim + axis + 1,
           (size_t)(a->shape.rank - axis - 1) * sizeof *s.dim);
    numbers *v = new_numbers(n->f, a->elem, s);
    const int64_t pre = product(&a->shape, 0, axis), size = a->shape.dim[axis];
    const int64_t post = product(&a->shape, axis + 1, (int)a->shape.rank);
    int64_t at = 0;
    for (int64_t p = 0; v != NULL && p < pre; p++)
        for (int64_t i = 0; i < index->n; i++) {
            const int64_t k = index->i[i] < 0 ? index->i[i] + size : index->i[i];
            if (k < 0 || k >= size)
                return refuse(n, "index %" PRId64 " is out of range", index->i[i]);
            for (int64_t q = 0; q < post; q++)
                copy_element(a, (p * size + k) * post + q, v, at++);
        }
    return give_known(n, v);
}

int next_place(const adj_shape *s, int64_t at[])
{
    for (int i = (int)s->rank - 1; i >= 0; i--) {
        if (++at[i] < s->dim[i])
            return 1;
        at[i] = 0;
    }
    return 0;
}

int fold_slice(call *n)
{
    int64_t begin[ADJ_MAX_RANK] = {0}, count[ADJ_MAX_RANK] = {0}, step[ADJ_MAX_RANK] = {0};
    int64_t at[ADJ_MAX_RANK] = {0};
    const numbers *a = in_known(n, 0);
    if (a == NULL || !read_slice(n, begin, count, step))
        return 0;
    adj_shape s = a->shape;
    memcpy(s.dim, count, (size_t)s.rank * sizeof *count);
    numbers *v = new_numbers(n->f, a->elem, s);
    for (int64_t k = 0; v != NULL && k < v->n; k++, next_place(&s, at)) {
        int64_t from = 0;
        for (int i = 0; i < s.rank; i++)
            from = from * a->shape.dim[i] + begin[i] + at[i] * step[i];
        copy_element(a, from, v, k);
    }
    return give_known(n, v);
}

int fold_transpose(call *n)
{
    const numbers *a = in_known(n, 0);
    int perm[ADJ_MAX_RANK] = {0};
    if (a == NULL || !read_perm(n, perm))
        return 0;
    adj_shape s = a->shape;
    for (int i = 0; i < s.rank; i++)
        s.dim[i] = a->shape.dim[perm[i]];
    numbers *v = new_numbers(n->f, a->elem, s);
    order o = order_start(a->shape, perm);
    for (int64_t k = 0; v != NULL && k < v->n; k++, order_next(&o))
        copy_element(a, o.from, v, k);
    return give_known(n, v);
}
