/* fold.c - results that are known while loading: constants, shapes, and the arithmetic with which
 * exporters compute shapes. Integers are computed in 64 bits, floats in double and then rounded to
 * their type. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "graph/op.h"
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
    const char *name = a != NULL && a->name != NULL ? a->name : "";
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
        return give_known(n, one_number(f, ELEM_FLOAT, (double)a->f));
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
        return refuse(n, "operand is no shape of rank up to %d", ADJ_MAX_RANK);
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
    numbers *v = new_numbers(n->f, with != NULL ? with->elem : ELEM_FLOAT, s);
    for (int64_t i = 0; v != NULL && with != NULL && with->n > 0 && i < v->n; i++)
        number_set(v, i, number_at(with, 0));
    return give_known(n, v);
}

int fold_range(call *n)
{
    const numbers *start = in_known(n, 0), *limit = in_known(n, 1), *delta = in_known(n, 2);
    if (start == NULL || limit == NULL || delta == NULL || start->n != 1 || limit->n != 1 ||
        delta->n != 1 || number_at(delta, 0) == 0)
        return refuse(n, "its operands are no numbers, or the step is 0");
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
        return refuse(n, "a cast to element type %d", to);
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

/* Copies element `from` of a to element `to` of b, of the same type. */
static void copy_element(const numbers *a, int64_t from, numbers *b, int64_t to)
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
        s.dim[i] = list[i] == 0 && i < a->shape.rank ? a->shape.dim[i] : list[i];
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
        return refuse(n, "its indices are no integers");
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

/* Moves at[] to the next element of a row-major shape. Returns 0 past the last. */
static int next_place(const adj_shape *s, int64_t at[])
{
    for (int i = (int)s->rank - 1; i >= 0; i--) {
        if (++at[i] < s->dim[i])
            return 1;
        at[i] = 0;
    }
    return 0;
}

/* Returns numbers of shape s whose element at a place is a's at begin + step * place of the axes
 * that perm names. */
static numbers *moved_elements(import *f, const numbers *a, adj_shape s, const int64_t begin[],
                               const int64_t step[], const int perm[])
{
    numbers *v = new_numbers(f, a->elem, s);
    int64_t at[ADJ_MAX_RANK] = {0}, stride[ADJ_MAX_RANK] = {0}, size = 1;
    for (int i = (int)a->shape.rank - 1; i >= 0; i--) {
        stride[i] = size;
        size *= a->shape.dim[i];
    }
    for (int64_t k = 0; v != NULL && k < v->n; k++, next_place(&s, at)) {
        int64_t from = 0;
        for (int i = 0; i < s.rank; i++)
            from += (begin[i] + at[i] * step[i]) * stride[perm[i]];
        copy_element(a, from, v, k);
    }
    return v;
}

static const int unmoved[ADJ_MAX_RANK] = {0, 1, 2, 3, 4, 5};

int fold_slice(call *n)
{
    int64_t begin[ADJ_MAX_RANK] = {0}, count[ADJ_MAX_RANK] = {0}, step[ADJ_MAX_RANK] = {0};
    const numbers *a = in_known(n, 0);
    if (a == NULL || !read_slice(n, begin, count, step))
        return 0;
    adj_shape s = a->shape;
    memcpy(s.dim, count, (size_t)s.rank * sizeof *count);
    return give_known(n, moved_elements(n->f, a, s, begin, step, unmoved));
}

int fold_transpose(call *n)
{
    const numbers *a = in_known(n, 0);
    const int64_t *list;
    const int count = attr_ints(n, "perm", &list);
    if (a == NULL || (count >= 0 && count != a->shape.rank))
        return refuse(n, "perm does not fit its rank");
    const int64_t begin[ADJ_MAX_RANK] = {0}, step[ADJ_MAX_RANK] = {1, 1, 1, 1, 1, 1};
    int perm[ADJ_MAX_RANK];
    adj_shape s = a->shape;
    for (int i = 0; i < s.rank; i++) {
        const int64_t from = count < 0 ? s.rank - 1 - i : list[i];
        if (from < 0 || from >= s.rank)
            return refuse(n, "perm has no axis %" PRId64, from);
        perm[i] = (int)from;
        s.dim[i] = a->shape.dim[from];
    }
    return give_known(n, moved_elements(n->f, a, s, begin, step, perm));
}

/* ---- arithmetic ---- */

typedef enum {
    ADD,
    SUB,
    MUL,
    DIV,
    MOD,
    POW,
    MIN,
    MAX,
    EQUAL,
    LESS,
    LESS_EQUAL,
    GREATER,
    GREATER_EQUAL,
    AND,
    OR,
    XOR
} operation;

static int is_truth(operation o) { return o >= EQUAL; }

static int truth_of(operation o, double a, double b)
{
    switch (o) {
    case EQUAL: return a == b;
    case LESS: return a < b;
    case LESS_EQUAL: return a <= b;
    case GREATER: return a > b;
    case GREATER_EQUAL: return a >= b;
    case AND: return a != 0 && b != 0;
    case OR: return a != 0 || b != 0;
    default: return (a != 0) != (b != 0);
    }
}

static double float_of(operation o, double a, double b)
{
    switch (o) {
    case ADD: return a + b;
    case SUB: return a - b;
    case MUL: return a * b;
    case DIV: return a / b;
    case MOD: return fmod(a, b);
    case POW: return pow(a, b);
    case MIN: return a < b || isnan(a) ? a : b;
    default: return a > b || isnan(a) ? a : b;
    }
}

/* Sums and products wrap around, as 64-bit integers do. */
static int64_t int_of(operation o, int64_t a, int64_t b)
{
    const uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
    switch (o) {
    case ADD: return (int64_t)(ua + ub);
    case SUB: return (int64_t)(ua - ub);
    case MUL: return (int64_t)(ua * ub);
    case DIV: return b == 0 ? 0 : b == -1 ? (int64_t)(0 - ua) : a / b;
    case MOD: {
        const int64_t r = b == 0 || b == -1 ? 0 : a % b;
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
    case MIN: return a < b ? a : b;
    case MAX: return a > b ? a : b;
    default: return (int64_t)pow((double)a, (double)b);
    }
}

/* Place of an element in an operand that is broadcast to the result's shape. */
static int64_t broadcast_place(const adj_shape *a, const adj_shape *s, const int64_t at[])
{
    int64_t from = 0;
    for (int i = 0; i < a->rank; i++)
        from = from * a->dim[i] + (a->dim[i] == 1 ? 0 : at[i + s->rank - a->rank]);
    return from;
}

static const numbers *combine(call *n, operation o, const numbers *a, const numbers *b)
{
    adj_shape s = {0};
    if (a == NULL || b == NULL || !joint_shape(n, &a->shape, &b->shape, &s))
        return NULL;
    numbers *v = new_numbers(n->f, is_truth(o) ? ELEM_BOOL : a->elem, s);
    int64_t at[ADJ_MAX_RANK] = {0};
    for (int64_t k = 0; v != NULL && k < v->n; k++, next_place(&s, at)) {
        const int64_t ka = broadcast_place(&a->shape, &s, at);
        const int64_t kb = broadcast_place(&b->shape, &s, at);
        if (is_truth(o))
            v->i[k] = truth_of(o, number_at(a, ka), number_at(b, kb));
        else if (v->i != NULL && b->i != NULL)
            v->i[k] = int_of(o, a->i[ka], b->i[kb]);
        else
            number_set(v, k, float_of(o, number_at(a, ka), number_at(b, kb)));
    }
    return v;
}

static int fold_all(call *n, operation o)
{
    const numbers *all = in_known(n, 0);
    for (int i = 1; i < n->n_in && all != NULL; i++)
        all = combine(n, o, all, in_known(n, i));
    return give_known(n, all);
}

int fold_add(call *n) { return fold_all(n, ADD); }
int fold_sub(call *n) { return fold_all(n, SUB); }
int fold_mul(call *n) { return fold_all(n, MUL); }
int fold_div(call *n) { return fold_all(n, DIV); }
int fold_mod(call *n) { return fold_all(n, MOD); }
int fold_pow(call *n) { return fold_all(n, POW); }
int fold_min(call *n) { return fold_all(n, MIN); }
int fold_max(call *n) { return fold_all(n, MAX); }
int fold_equal(call *n) { return fold_all(n, EQUAL); }
int fold_less(call *n) { return fold_all(n, LESS); }
int fold_less_or_equal(call *n) { return fold_all(n, LESS_EQUAL); }
int fold_greater(call *n) { return fold_all(n, GREATER); }
int fold_greater_or_equal(call *n) { return fold_all(n, GREATER_EQUAL); }
int fold_and(call *n) { return fold_all(n, AND); }
int fold_or(call *n) { return fold_all(n, OR); }
int fold_xor(call *n) { return fold_all(n, XOR); }

/* ---- functions of one operand ---- */

static int fold_each(call *n, double (*function)(double x), int elem)
{
    const numbers *a = in_known(n, 0);
    numbers *v = a != NULL ? new_numbers(n->f, elem != 0 ? elem : a->elem, a->shape) : NULL;
    for (int64_t i = 0; v != NULL && i < v->n; i++)
        number_set(v, i, function(number_at(a, i)));
    return give_known(n, v);
}

static double minus(double x) { return -x; }
static double is_zero(double x) { return x == 0; }

int fold_neg(call *n) { return fold_each(n, minus, 0); }
int fold_abs(call *n) { return fold_each(n, fabs, 0); }
int fold_floor(call *n) { return fold_each(n, floor, 0); }
int fold_ceil(call *n) { return fold_each(n, ceil, 0); }
int fold_round(call *n) { return fold_each(n, nearbyint, 0); }
int fold_sqrt(call *n) { return fold_each(n, sqrt, 0); }
int fold_exp(call *n) { return fold_each(n, exp, 0); }
int fold_log(call *n) { return fold_each(n, log, 0); }
int fold_not(call *n) { return fold_each(n, is_zero, ELEM_BOOL); }

/* ---- selection, expansion, products ---- */

int fold_where(call *n)
{
    const numbers *c = in_known(n, 0), *a = in_known(n, 1), *b = in_known(n, 2);
    adj_shape both = {0}, s = {0};
    if (c == NULL || a == NULL || b == NULL || !joint_shape(n, &a->shape, &b->shape, &both) ||
        !joint_shape(n, &both, &c->shape, &s))
        return 0;
    numbers *v = new_numbers(n->f, a->elem, s);
    int64_t at[ADJ_MAX_RANK] = {0};
    for (int64_t k = 0; v != NULL && k < v->n; k++, next_place(&s, at)) {
        const int is_a = number_at(c, broadcast_place(&c->shape, &s, at)) != 0;
        const numbers *from = is_a ? a : b;
        copy_element(from, broadcast_place(&from->shape, &s, at), v, k);
    }
    return give_known(n, v);
}

int fold_expand(call *n)
{
    const numbers *a = in_known(n, 0);
    adj_shape given = {0}, s = {0};
    if (a == NULL || !shape_from(n, in_known(n, 1), &given) ||
        !joint_shape(n, &a->shape, &given, &s))
        return 0;
    numbers *v = new_numbers(n->f, a->elem, s);
    int64_t at[ADJ_MAX_RANK] = {0};
    for (int64_t k = 0; v != NULL && k < v->n; k++, next_place(&s, at))
        copy_element(a, broadcast_place(&a->shape, &s, at), v, k);
    return give_known(n, v);
}

/* The product of all elements: what exporters compute of a shape. */
int fold_reduce_prod(call *n)
{
    const numbers *a = in_known(n, 0);
    const int64_t *list;
    const int count = int_list(n, "axes", 1, &list);
    if (a == NULL || (count > 0 && !(a->shape.rank == 1 && count == 1)))
        return refuse(n, "a product over some of several axes");
    const int is_kept = attr_int(n, "keepdims", 1) != 0;
    adj_shape s = {.rank = is_kept ? a->shape.rank : 0, .dim = {1, 1, 1, 1, 1, 1}};
    numbers *v = new_numbers(n->f, a->elem, s);
    if (v == NULL)
        return 0;
    number_set(v, 0, 1);
    for (int64_t i = 0; i < a->n; i++)
        if (v->i != NULL)
            v->i[0] = int_of(MUL, v->i[0], a->i[i]);
        else
            number_set(v, 0, v->f[0] * a->f[i]);
    return give_known(n, v);
}
