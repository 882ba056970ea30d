/* variants.c - variants of a node with other attribute values. Common values may hide a fault: no
 * decay, a rate below 1, a permutation that is its own inverse, a 32-bit seed. The values tried
 * follow from an attribute's kind and from the range that its schema declares. */
#include <math.h>
#include <string.h>

#include "adjoint_check.h"
#include "graph/graph.h"

enum { MAX_ATTRS = 1024, MAX_ELEMS = 1 << 16, AXES = 4, TRIED = 64 };

static const double reals[] = {0, 1, 0.25, -0.25, -3, 1000};
static const int64_t wholes[] = {0, 1, 2, 3, -1, 1001, INT64_C(0x100000001)};
static const uint64_t seeds[] = {0, UINT64_C(0x80000001), UINT64_C(0x100000001), UINT64_MAX};
enum {
    REALS = sizeof reals / sizeof *reals,
    WHOLES = sizeof wholes / sizeof *wholes,
    SEEDS = sizeof seeds / sizeof *seeds
};

/* Returns an end of the declared range, unless it is the type's limit. */
static double end_of(const adj_attr *a, int i)
{
    const double end = i == 0 ? a->min : a->max;
    return a->expected != NULL && (isinf(end) || fabs(end) <= 0x1p53) ? end : 0;
}

/* Writes the i-th value, or returns 0. It may be out of range. */
static int write_value(const adj_attr *a, int i, int64_t *to)
{
    double v;
    switch (a->kind) {
    case ADJ_ATTR_REAL:
        v = i < REALS ? reals[i] : end_of(a, i - REALS);
        memcpy(to, &v, sizeof v);
        return i < REALS + 2;
    case ADJ_ATTR_INT:
        *to = i < WHOLES ? wholes[i] : (int64_t)end_of(a, i - WHOLES);
        return i < WHOLES + 2;
    case ADJ_ATTR_SEED: *to = (int64_t)seeds[i % SEEDS]; return i < SEEDS;
    case ADJ_ATTR_CHOICE: *to = i; return a->words[i] != NULL;
    case ADJ_ATTR_FLAG:
    case ADJ_ATTR_FORMAT: *to = i; return i < 2;
    case ADJ_ATTR_DTYPE: *to = i; return adj_is_float((adj_dtype)i);
    case ADJ_ATTR_AXES: *to = i + 1; return i + 1 < 1 << AXES;
    default: return 0;
    }
}

static int is_in_range(const adj_attr *a, int64_t value)
{
    double v = (double)value;
    if (a->kind == ADJ_ATTR_REAL)
        memcpy(&v, &value, sizeof v);
    return a->kind > ADJ_ATTR_INT ||
           (a->expected != NULL ? v >= a->min && v <= a->max : isfinite(v));
}

int adj_attr_value(const adj_attr *a, int i, int64_t *to)
{
    int64_t earlier;
    for (int k = 0; !(a->flags & ADJ_ATTR_OF_RESULT) && write_value(a, k, to); k++) {
        int is_new = is_in_range(a, *to);
        for (int j = 0; j < k && is_new; j++)
            is_new = write_value(a, j, &earlier) && earlier != *to;
        if (is_new && i-- == 0)
            return 1;
    }
    return 0;
}

/* Writes the i-th permutation of rank axes, or returns 0. */
static int write_perm(int64_t rank, int i, int64_t perm[ADJ_MAX_RANK])
{
    int64_t left[ADJ_MAX_RANK];
    for (int64_t k = 0; k < rank; k++)
        left[k] = k;
    for (int64_t k = 0; k < rank; k++) {
        const int64_t n = rank - k, at = i % n;
        i /= (int)n;
        perm[k] = left[at];
        memmove(left + at, left + at + 1, (size_t)(n - at - 1) * sizeof *left);
    }
    return i == 0;
}

/* Writes the i-th value of an attribute, or returns 0. */
static int change(const adj_node *n, const adj_attr *a, int i, void *to)
{
    const int64_t rank = n->n_in > 0 ? n->in[0]->type.shape.rank : 0;
    if (a->kind == ADJ_ATTR_PERM)
        return write_perm(rank, i, to);
    if (a->kind == ADJ_ATTR_PER_AXIS && i < rank)
        return ++((adj_shape *)to)->dim[i] > 0;
    if (a->kind == ADJ_ATTR_AXES && rank < AXES && i + 1 >= 1 << rank)
        return 0; /* an axis that is not there */
    return adj_attr_value(a, i, to);
}

/* True if the op accepts the attributes, makes no much larger value, and they differ from n's. */
static int is_accepted(const adj_node *n, const char *attrs)
{
    adj_graph *g = adj_graph_new();
    adj_node **in = adj_graph_alloc(g, (size_t)(n->n_in + 1) * sizeof(adj_node *));
    char name[16];
    for (int k = 0; k < n->n_in && in != NULL; k++) {
        const int first = adj_operand_position(n, n->in[k]);
        snprintf(name, sizeof name, "in%d", k);
        in[k] =
            first < k ? in[first] : adj_input(g, name, n->in[k]->type.dtype, n->in[k]->type.shape);
    }
    const adj_node *y = in != NULL ? adj_node_new(g, n->op, n->n_in, in, attrs) : NULL;
    const int is_new = y != NULL && memcmp(y->attrs, n->attrs, adj_attr_size(n->op)) != 0 &&
                       (node_elems(y) <= MAX_ELEMS || node_elems(y) <= node_elems(n));
    adj_graph_free(g);
    return is_new;
}

adj_node *adj_node_variant(adj_node *n, int *next)
{
    _Alignas(16) char attrs[MAX_ATTRS];
    const size_t size = n != NULL && next != NULL ? adj_attr_size(n->op) : 0;
    while (size > 0 && size <= sizeof attrs && *next < ADJ_ATTRS * TRIED) {
        const adj_attr *a = &n->op->schema->attr[*next / TRIED];
        const int i = (*next)++ % TRIED;
        if (a->name == NULL)
            break;
        memcpy(attrs, n->attrs, size);
        if (change(n, a, i, attrs + a->offset) && is_accepted(n, attrs))
            return adj_node_new(n->graph, n->op, n->n_in, n->in, attrs);
    }
    return NULL;
}
