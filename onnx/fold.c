/* fold.c - computes values while loading, such as the shapes that exporters compute: constants,
 * tensors whose elements are only rearranged, and arithmetic. Integers are computed in 64 bits,
 * floats in double and then rounded to their type, unless the graph computes in double. */
#include <math.h>
#include <string.h>

#include "import.h"

/* ---- constants and shapes ---- */

/* Returns a list of integers as numbers. */
static numbers *int_numbers(import *f, int64_t count, const int64_t list[])
{
    numbers *v = new_numbers(f, ELEM_INT64, (adj_shape){1, {count}});
    for (int64_t i = 0; v != NULL && i < count; i++)
        v->i[i] = list[i];
    return v;
}

int give_int(call *n, int64_t i)
{
    numbers *v = int_numbers(n->f, 1, &i);
    if (v != NULL)
        v->shape = (adj_shape){0};
    return give_known(n, v);
}

/* A tensor of that shape with equal elements. */
static int give_equal(call *n, int elem, adj_shape s, double to)
{
    numbers *v = new_numbers(n->f, elem, s);
    for (int64_t i = 0; v != NULL && i < v->n; i++)
        number_set(v, i, to);
    return give_known(n, v);
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
    if (strcmp(name, "value_int") == 0)
        return give_int(n, a->i);
    if (strcmp(name, "value_ints") == 0)
        return give_known(n, int_numbers(f, (int64_t)a->n_ints, a->ints));
    if (strcmp(name, "value_float") == 0)
        return give_equal(n, ELEM_FLOAT, (adj_shape){0}, meant_by(f, a->f));
    if (strcmp(name, "value_floats") == 0) {
        numbers *v = new_numbers(f, ELEM_FLOAT, (adj_shape){1, {(int64_t)a->n_floats}});
        for (size_t i = 0; v != NULL && i < a->n_floats; i++)
            v->f[i] = (double)a->floats[i];
        return give_known(n, v);
    }
    return refuse(n, "a constant of kind \"%s\"", name);
}

int import_shape(call *n)
{
    const adj_shape s = in_shape(n, 0);
    int64_t start = attr_int(n, "start", 0), end = attr_int(n, "end", s.rank);
    start = clamp(start < 0 ? start + s.rank : start, 0, s.rank);
    end = clamp(end < 0 ? end + s.rank : end, start, s.rank);
    return give_known(n, int_numbers(n->f, end - start, s.dim + start));
}

int import_size(call *n) { return give_int(n, adj_shape_elems(in_shape(n, 0))); }

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
    const double value = with != NULL && with->n > 0 ? number_at(with, 0) : 0;
    if (adj_shape_elems(s) > MAX_COMPUTED && elem_is_float(elem))
        return give_at(n, 0, adj_fill(n->f->g, dtype_of_elem(n->f, elem), s, value), elem);
    return give_equal(n, elem, s, value);
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
            number_set(v, i, v->i != NULL ? number_in_file(from, i) : number_at(from, i));
    }
    return give_known(n, v);
}

/* ---- elements that move ---- */

/* Copies element `from` of a to element `to` of b, of the same type. */
static void copy_element(const numbers *a, int64_t from, numbers *b, int64_t to)
{
    if (b->f != NULL)
        b->f[to] = a->f[from];
    else
        b->i[to] = a->i[from];
}

/* Makes the elements of a at the positions of o the first result, of shape s. */
static int give_moved(call *n, const numbers *a, adj_shape s, order o)
{
    numbers *v = new_numbers(n->f, a->elem, s);
    for (int64_t k = 0; v != NULL && k < v->n; k++, order_next(&o))
        copy_element(a, o.from, v, k);
    return give_known(n, v);
}

int fold_reshape(call *n)
{
    const numbers *a = in_known(n, 0);
    adj_shape s = {0};
    int open = -1;
    int64_t others = 1;
    if (a == NULL || !n->row->shape(n, &s))
        return 0;
    for (int i = 0; i < s.rank; i++)
        if (s.dim[i] == -1)
            open = i;
        else if (__builtin_mul_overflow(others, s.dim[i], &others))
            return refuse(n, "its shape is too large");
    if (open >= 0 && others > 0)
        s.dim[open] = a->n / others;
    if (adj_shape_elems(s) != a->n)
        return refuse(n, "its elements do not fit the shape %s", adj_shape_text(s).s);
    return give_moved(n, a, s, order_broadcast(s, s));
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
    const numbers *a = in_known(n, 0);
    gathered at;
    if (a == NULL || !read_gather(n, &at))
        return 0;
    numbers *v = new_numbers(n->f, a->elem, at.shape);
    const int64_t pre = product(&a->shape, 0, at.axis), size = a->shape.dim[at.axis];
    const int64_t post = product(&a->shape, at.axis + 1, (int)a->shape.rank);
    int64_t to = 0;
    for (int64_t p = 0; v != NULL && p < pre; p++)
        for (int64_t i = 0; i < at.n; i++)
            for (int64_t q = 0; q < post; q++)
                copy_element(a, (p * size + at.index[i]) * post + q, v, to++);
    return give_known(n, v);
}

int fold_slice(call *n)
{
    int64_t begin[ADJ_MAX_RANK] = {0}, count[ADJ_MAX_RANK] = {0}, step[ADJ_MAX_RANK] = {0};
    const numbers *a = in_known(n, 0);
    if (a == NULL || !read_slice(n, begin, count, step))
        return 0;
    adj_shape s = a->shape;
    order o = order_permuted(s, axes_in_order);
    for (int i = 0; i < s.rank; i++) {
        o.from += begin[i] * o.stride[i];
        o.stride[i] *= step[i];
        o.size[i] = s.dim[i] = count[i];
    }
    return give_moved(n, a, s, o);
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
    return give_moved(n, a, s, order_permuted(a->shape, perm));
}

int fold_expand(call *n)
{
    const numbers *a = in_known(n, 0);
    adj_shape s = {0};
    return a != NULL && expanded_shape(n, &s) && give_moved(n, a, s, order_broadcast(a->shape, s));
}

int fold_where(call *n)
{
    const numbers *c = in_known(n, 0), *a = in_known(n, 1), *b = in_known(n, 2);
    adj_shape both = {0}, s = {0};
    if (c == NULL || a == NULL || b == NULL || !joint_shape(n, &a->shape, &b->shape, &both) ||
        !joint_shape(n, &both, &c->shape, &s))
        return 0;
    if (a->elem != b->elem)
        return refuse(n, "its operands differ in type");
    numbers *v = new_numbers(n->f, a->elem, s);
    order oc = order_broadcast(c->shape, s), oa = order_broadcast(a->shape, s);
    order ob = order_broadcast(b->shape, s);
    for (int64_t k = 0; v != NULL && k < v->n;
         k++, order_next(&oc), order_next(&oa), order_next(&ob)) {
        const int is_a = number_at(c, oc.from) != 0;
        copy_element(is_a ? a : b, is_a ? oa.from : ob.from, v, k);
    }
    return give_known(n, v);
}

/* ---- arithmetic ---- */

static int is_truth(operation o) { return o >= FOLD_EQUAL; }

static int truth_of(operation o, double a, double b)
{
    switch (o) {
    case FOLD_EQUAL: return a == b;
    case FOLD_LESS: return a < b;
    case FOLD_LESS_EQUAL: return a <= b;
    case FOLD_GREATER: return a > b;
    case FOLD_GREATER_EQUAL: return a >= b;
    case FOLD_AND: return a != 0 && b != 0;
    case FOLD_OR: return a != 0 || b != 0;
    default: return (a != 0) != (b != 0);
    }
}

static double float_of(operation o, double a, double b)
{
    switch (o) {
    case FOLD_ADD: return a + b;
    case FOLD_SUB: return a - b;
    case FOLD_MUL: return a * b;
    case FOLD_DIV: return a / b;
    case FOLD_MOD: return fmod(a, b);
    case FOLD_POW: return pow(a, b);
    case FOLD_MIN: return a < b || isnan(a) ? a : b;
    default: return a > b || isnan(a) ? a : b;
    }
}

/* Sums and products wrap around, as 64-bit integers do; powers are computed in double. */
static int64_t int_of(operation o, int64_t a, int64_t b)
{
    const uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
    switch (o) {
    case FOLD_ADD: return (int64_t)(ua + ub);
    case FOLD_SUB: return (int64_t)(ua - ub);
    case FOLD_MUL: return (int64_t)(ua * ub);
    case FOLD_DIV: return b == 0 ? 0 : b == -1 ? (int64_t)(0 - ua) : a / b;
    case FOLD_MOD: {
        const int64_t r = b == 0 || b == -1 ? 0 : a % b;
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
    case FOLD_MIN: return a < b ? a : b;
    default: return a > b ? a : b;
    }
}

static const numbers *combine(call *n, operation o, const numbers *a, const numbers *b)
{
    adj_shape s = {0};
    if (a == NULL || b == NULL || !joint_shape(n, &a->shape, &b->shape, &s))
        return NULL;
    numbers *v = new_numbers(n->f, is_truth(o) ? ELEM_BOOL : a->elem, s);
    order oa = order_broadcast(a->shape, s), ob = order_broadcast(b->shape, s);
    for (int64_t k = 0; v != NULL && k < v->n; k++, order_next(&oa), order_next(&ob)) {
        if (is_truth(o))
            v->i[k] = truth_of(o, number_at(a, oa.from), number_at(b, ob.from));
        else if (v->i != NULL && b->i != NULL && o != FOLD_POW)
            v->i[k] = int_of(o, a->i[oa.from], b->i[ob.from]);
        else
            number_set(v, k, float_of(o, number_at(a, oa.from), number_at(b, ob.from)));
    }
    return v;
}

int fold_all(call *n, operation o)
{
    const numbers *all = in_known(n, 0);
    for (int i = 1; i < n->n_in && all != NULL; i++)
        all = combine(n, o, all, in_known(n, i));
    return give_known(n, all);
}

/* ---- functions of one operand ---- */

int fold_each(call *n, double (*function)(double x))
{
    const numbers *a = in_known(n, 0);
    numbers *v = a != NULL ? new_numbers(n->f, a->elem, a->shape) : NULL;
    for (int64_t i = 0; v != NULL && i < v->n; i++)
        number_set(v, i, function(n->row->is_whole ? number_in_file(a, i) : number_at(a, i)));
    return give_known(n, v);
}

double minus(double x) { return -x; }
double is_zero(double x) { return x == 0; }
double sign(double x) { return (x > 0) - (x < 0); }

/* The product of all elements: what exporters compute of a shape. */
int fold_reduce_prod(call *n)
{
    const numbers *a = in_known(n, 0);
    const int64_t *list;
    const int count = int_list(n, "axes", 1, &list);
    if (a == NULL || (count > 0 && !(a->shape.rank == 1 && count == 1)))
        return refuse(n, "a product over some axes of a tensor (expected all axes)");
    const int is_kept = attr_int(n, "keepdims", 1) != 0;
    adj_shape s = {.rank = is_kept ? a->shape.rank : 0, .dim = {1, 1, 1, 1, 1, 1}};
    numbers *v = new_numbers(n->f, a->elem, s);
    if (v == NULL)
        return 0;
    number_set(v, 0, 1);
    for (int64_t i = 0; i < a->n; i++)
        if (v->i != NULL)
            v->i[0] = int_of(FOLD_MUL, v->i[0], a->i[i]);
        else
            number_set(v, 0, v->f[0] * a->f[i]);
    return give_known(n, v);
}
