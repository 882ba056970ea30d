/* fold_math.c - arithmetic on values known while loading, such as the shapes that exporters
 * compute. Integers are computed in 64 bits, floats in double and then rounded to their type. */
#include <inttypes.h>
#include <math.h>

#include "table.h"

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
        else if (v->i != NULL && b->i != NULL && o != FOLD_POW)
            v->i[k] = int_of(o, a->i[ka], b->i[kb]);
        else
            number_set(v, k, float_of(o, number_at(a, ka), number_at(b, kb)));
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
        number_set(v, i, function(number_at(a, i)));
    return give_known(n, v);
}

double minus(double x) { return -x; }
double is_zero(double x) { return x == 0; }
double sign(double x) { return (x > 0) - (x < 0); }

/* ---- selection, expansion, products ---- */

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
