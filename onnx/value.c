/* value.c - values of the file by name, and their nodes: initializers become parameters, states
 * or constants where an operator reads them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_nn.h"
#include "base/hash.h"
#include "import.h"

/* ---- by name ---- */

static value *bucket_of(import *f, const char *name)
{
    const uint64_t hash = hash_text(HASH_START, name);
    const uint32_t mask = (uint32_t)f->n_bucket - 1;
    uint32_t i = (uint32_t)(hash ^ hash >> 32) & mask;
    while (f->value[i].name != NULL && strcmp(f->value[i].name, name) != 0)
        i = (i + 1) & mask;
    return &f->value[i];
}

value *find_value(import *f, const char *name)
{
    value *v = bucket_of(f, name);
    return v->name != NULL ? v : NULL;
}

value *add_value(import *f, const char *name)
{
    value *v = bucket_of(f, name);
    if (v->name != NULL) {
        import_fail(f, ADJ_EIO, "two values have the name \"%s\"", name);
        return NULL;
    }
    if (2 * ++f->n_value > f->n_bucket) {
        import_fail(f, ADJ_EIO, "has more values than it declares");
        return NULL;
    }
    v->name = name;
    return v;
}

/* ---- operands ---- */

int has_in(const call *n, int i) { return i < n->n_in && n->in[i] != NULL; }

adj_shape in_shape(const call *n, int i)
{
    if (!has_in(n, i))
        return (adj_shape){0};
    const value *v = n->in[i];
    return v->known != NULL ? v->known->shape : adj_node_type(v->node).shape; /* a sequence: [] */
}

const numbers *in_known(call *n, int i)
{
    if (has_in(n, i) && n->in[i]->known != NULL)
        return n->in[i]->known;
    refuse(n, "operand %d must be known when the file is read", i);
    return NULL;
}

int are_equal(const numbers *v)
{
    const double first = v->n > 0 ? number_at(v, 0) : 0;
    for (int64_t i = 1; i < v->n; i++) {
        const double x = number_at(v, i);
        if (x != first || signbit(x) != signbit(first))
            return 0;
    }
    return 1;
}

/* Returns the numbers in type dtype, their axes permuted, which the caller frees; NULL when out of
 * memory. */
static void *stored(import *f, const numbers *v, adj_dtype dtype, const int perm[])
{
    void *data = malloc((size_t)(v->n > 0 ? v->n : 1) * adj_dtype_size(dtype));
    order o = order_permuted(v->shape, perm);
    if (data == NULL)
        import_fail(f, ADJ_ENOMEM, "out of memory");
    for (int64_t i = 0; data != NULL && i < v->n; i++, order_next(&o))
        adj_store(dtype, data, i, number_at(v, o.from));
    return data;
}

/* Equal numbers become a fill, which a batch of another size can have as well. */
adj_node *const_node(import *f, const numbers *v, adj_dtype dtype)
{
    if (dtype != ADJ_I32 && v->n > 1 && are_equal(v))
        return adj_fill(f->g, dtype, v->shape, number_at(v, 0));
    void *data = stored(f, v, dtype, axes_in_order);
    adj_node *c = data != NULL ? adj_const(f->g, dtype, v->shape, data) : NULL;
    free(data);
    return c;
}

/* ---- parameters ---- */

/* Adds a parameter or state with the values of an initializer, its axes permuted. */
static adj_node *add_param(call *n, const value *v, const int perm[], int is_state)
{
    import *f = n->f;
    const adj_dtype dtype = dtype_of_elem(f, v->elem);
    adj_shape shape = v->known->shape;
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = v->known->shape.dim[perm[i]];
    void *data = stored(f, v->known, dtype, perm);
    if (data == NULL)
        return NULL;
    adj_init init = {.kind = ADJ_INIT_DATA, .data = data};
    if (v->is_random) /* as of a dense layer: elems / classes weights are summed up for each class
                       */
        init = adj_init_from_fans(ADJ_HE_NORMAL, v->known->n / f->o->classes, f->o->classes);
    adj_node *p = is_state ? adj_state(f->g, v->name, dtype, shape, init)
                           : adj_param(f->g, v->name, dtype, shape, init);
    free(data);
    if (p != NULL)
        f->param[f->n_param++] = p;
    return p;
}

static adj_node *node_of(call *n, value *v, int is_state)
{
    if (v->node != NULL || v->known == NULL)
        return v->node;
    if (is_state ? v->is_initial : v->is_weight)
        v->node = add_param(n, v, axes_in_order, is_state);
    else
        v->node = const_node(n->f, v->known, dtype_of_elem(n->f, v->elem));
    return v->node;
}

adj_node *in_node(call *n, int i) { return has_in(n, i) ? node_of(n, n->in[i], 0) : NULL; }

int has_own_axis(const call *n) { return n->opset < 7 && attribute(n, "axis") != NULL; }

adj_node *in_beside(call *n, int i)
{
    adj_node *x = in_node(n, i);
    if (x == NULL || i == 0 || !has_own_axis(n))
        return x;
    const adj_shape s = shape_of(x);
    const int64_t rank = in_shape(n, 0).rank;
    const int axis = axis_of(n, attribute(n, "axis")->i, rank);
    adj_shape to = {.rank = rank - axis};
    if (axis < 0 || s.rank > to.rank) {
        refuse(n, "its second operand exceeds the first's axes");
        return NULL;
    }
    for (int k = 0; k < to.rank; k++)
        to.dim[k] = k < s.rank ? s.dim[k] : 1;
    return adj_reshape(x, to);
}

adj_node *in_real(call *n, int i)
{
    adj_node *x = in_node(n, i);
    return x != NULL && !adj_is_float(adj_node_type(x).dtype) ? adj_cast(x, ADJ_F64) : x;
}

adj_node *in_state(call *n, int i) { return has_in(n, i) ? node_of(n, n->in[i], 1) : NULL; }

/* A transpose of a transpose is one, or none: filters that Keras has as [kh, kw, in, out] stand in
 * its files with a transpose, and ours are of that order. */
adj_node *permute(adj_node *x, const int perm[])
{
    const int rank = (int)shape_of(x).rank;
    int both[ADJ_MAX_RANK] = {0};
    const int is_second = x != NULL && x->op == &adj_op_transpose;
    for (int i = 0; i < rank; i++)
        both[i] = is_second ? (int)((const adj_transpose_attrs *)x->attrs)->perm[perm[i]] : perm[i];
    x = is_second ? x->in[0] : x;
    return memcmp(both, axes_in_order, (size_t)rank * sizeof *both) == 0
               ? x
               : adj_transpose(x, rank, both);
}

adj_node *in_permuted(call *n, int i, const int perm[])
{
    value *v = has_in(n, i) ? n->in[i] : NULL;
    if (v == NULL)
        return NULL;
    if (v->is_weight && v->node == NULL) {
        /* Later readers see the file's order of axes again. */
        const int rank = (int)v->known->shape.rank;
        int back[ADJ_MAX_RANK] = {0};
        for (int k = 0; k < rank; k++)
            back[perm[k]] = k;
        adj_node *p = add_param(n, v, perm, 0);
        v->node = p != NULL ? permute(p, back) : NULL;
    }
    return permute(in_node(n, i), perm);
}

/* ---- results ---- */

int give_at(call *n, int i, adj_node *y, int elem)
{
    if (y == NULL || i >= n->n_out)
        return y != NULL;
    n->out[i].node = y;
    n->out[i].elem = elem;
    return 1;
}

int give(call *n, adj_node *y)
{
    const adj_dtype dtype = adj_node_type(y).dtype;
    const int is_float = dtype == ADJ_F64 && n->f->o->dtype == ADJ_F64; /* in the file */
    return give_at(n, 0, y, dtype == ADJ_I32 ? ELEM_INT64 : is_float ? ELEM_FLOAT : elem_of(dtype));
}

int give_like(call *n, adj_node *y)
{
    const adj_dtype dtype = adj_node_type(in_node(n, 0)).dtype;
    return give_at(n, 0, y != NULL && dtype == ADJ_I32 ? adj_cast(y, dtype) : y, n->in[0]->elem);
}

int give_known(call *n, const numbers *v)
{
    if (v == NULL || n->n_out == 0)
        return v != NULL;
    n->out[0].known = v;
    n->out[0].elem = v->elem;
    return 1;
}
