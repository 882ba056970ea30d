/* round.c - rounds filters (tool.h) and the arrays of a file. The scales of a batch norm that is
 * folded into a filter are factors of its channels, so that a rounded filter is scale * q with the
 * same q after it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emit.h"
#include "graph/graph.h"
#include "program.h"
#include "tool.h"

enum { LARGEST = 127 };

/* The output channels of a filter: element i belongs to channel i / run % n. */
typedef struct {
    int64_t n, run;
} channels;

/* Returns the channels of operand 1 of a convolution or matrix product of the forward pass; of
 * other nodes n is 0. */
static channels filter_channels(const adj_node *n)
{
    if (n->role != ADJ_ROLE_FORWARD)
        return (channels){0};
    if (n->op == &adj_op_conv2d || n->op == &adj_op_depthwise_conv2d_native)
        return (channels){adj_node_geom(n)->oc, 1};
    if (n->op != &adj_op_matmul)
        return (channels){0};
    const adj_matmul_attrs *m = n->attrs;
    const int64_t *dim = n->in[1]->type.shape.dim;
    return m->transpose_b ? (channels){dim[0], dim[1]} : (channels){dim[1], 1};
}

/* Computes the scales [c.n] and the integers of n weights. A channel of zeros has scale 0. */
static void round_weights(channels c, int64_t n, const float w[], float scale[], int8_t q[])
{
    for (int64_t o = 0; o < c.n; o++)
        scale[o] = 0;
    for (int64_t i = 0; i < n; i++)
        scale[i / c.run % c.n] = fmaxf(scale[i / c.run % c.n], fabsf(w[i]));
    for (int64_t o = 0; o < c.n; o++)
        scale[o] /= LARGEST;
    for (int64_t i = 0; i < n; i++) {
        const float s = scale[i / c.run % c.n];
        q[i] = (int8_t)(s > 0 ? fmaxf(-LARGEST, fminf(LARGEST, roundf(w[i] / s))) : 0);
    }
}

static const channels any = {-1, 0}, none = {0, 0};

/* Returns the channels of a transpose's operand that are those of its result, or none. */
static channels before_transpose(const adj_node *n, channels c)
{
    const adj_transpose_attrs *t = n->attrs;
    const adj_shape from = n->in[0]->type.shape, to = n->type.shape;
    int64_t run = 1;
    for (int64_t d = to.rank - 1; d >= 0 && c.n > 0; run *= to.dim[d--]) {
        if (to.dim[d] != c.n || run != c.run)
            continue;
        channels own = {c.n, 1};
        for (int64_t k = t->perm[d] + 1; k < from.rank; k++)
            own.run *= from.dim[k];
        return own;
    }
    return c.n < 0 ? any : none;
}

/* Returns the channels with which nodes read a value as a filter, also a view of it or its
 * transpose; `any` if no node reads it, `none` if a node reads it otherwise. */
static channels channels_of(const adj_graph *g, const adj_node *value)
{
    channels c = any;
    for (int id = 0; id < g->n_node; id++) {
        const adj_node *n = g->node[id];
        for (int k = 0; k < n->n_in; k++) {
            if (n->in[k] != value)
                continue;
            const channels own = n->op->flags & ADJ_OP_VIEW ? channels_of(g, n)
                                 : n->op == &adj_op_transpose
                                     ? before_transpose(n, channels_of(g, n))
                                 : k == 1 ? filter_channels(n)
                                          : none;
            if (own.n == 0 || (own.n > 0 && c.n > 0 && (c.n != own.n || c.run != own.run)))
                return none;
            c = own.n > 0 ? own : c;
        }
    }
    return c;
}

static int are_finite(int64_t n, const float w[])
{
    int finite = 1;
    for (int64_t i = 0; i < n; i++)
        finite &= isfinite(w[i]) != 0;
    return finite;
}

static adj_status round_leaf(adj_exec *e, const adj_node *leaf, channels c, adj_error *error)
{
    const int64_t n = node_elems(leaf);
    float *scale = calloc((size_t)c.n + 1, sizeof *scale);
    int8_t *q = calloc((size_t)n + 1, sizeof *q);
    void *data = NULL;
    adj_status status = scale != NULL && q != NULL ? ADJ_OK : ADJ_ENOMEM;
    if (status != ADJ_OK)
        adj_error_set(error, status, "adj_emit: out of memory");
    else if ((status = adj_set_in_place(e, leaf, &data)) != ADJ_OK)
        adj_error_set(error, status, "adj_emit: %s", adj_exec_message(e));
    float *w = data;
    if (status == ADJ_OK && are_finite(n, w)) {
        round_weights(c, n, w, scale, q);
        for (int64_t i = 0; i < n; i++)
            w[i] = scale[i / c.run % c.n] * (float)q[i];
    }
    free(scale);
    free(q);
    return status;
}

adj_status adj_emit_round(adj_exec *e, const adj_updates *trained, adj_error *error)
{
    adj_status status = ADJ_OK;
    for (int i = 0; i < adj_exec_param_count(e) && status == ADJ_OK; i++) {
        const adj_node *leaf = adj_exec_param_at(e, i);
        const channels c = channels_of(adj_exec_graph(e), leaf);
        if (c.n > 0 && leaf->type.dtype == ADJ_F32 && !adj_updates_assign(trained, leaf))
            status = round_leaf(e, leaf, c, error);
    }
    return status;
}

/* ---- arrays of the file ---- */

/* True if the integers and scales of an array are its values but for rounding errors of f32. */
static int has_values(const array *a, channels c, int64_t n)
{
    const float *w = a->data;
    for (int64_t i = 0; i < n; i++) {
        const float scale = a->scale[i / c.run % c.n];
        if (!(fabsf(w[i] - scale * (float)a->rounded[i]) <= scale / 1024))
            return 0;
    }
    return 1;
}

static array *array_named(const unit *u, const char *name)
{
    for (int i = 0; i < u->n_array; i++)
        if (strcmp(u->array[i].name, name) == 0)
            return &u->array[i];
    return NULL;
}

/* Computes the integers and scales of an array and their names. Returns 0 when out of memory. */
static int round_array(unit *u, array *a, channels c, int64_t n)
{
    a->rounded = calloc((size_t)n + 1, sizeof *a->rounded);
    a->scale = calloc((size_t)c.n + 1, sizeof *a->scale);
    if (a->rounded == NULL || a->scale == NULL)
        return 0;
    a->n_scale = c.n;
    if (are_finite(n, a->data))
        round_weights(c, n, a->data, a->scale, a->rounded);
    return new_name(&u->names, a->name, "_int8", a->rounded_name) &&
           new_name(&u->names, a->name, "_scale", a->scale_name);
}

adj_status rounded_filter(program *p, const step *s, array **filter)
{
    const plan *plan = &p->e->plan;
    const adj_node *root = s->group.node[0];
    const channels c = filter_channels(root);
    *filter = NULL;
    if (!p->unit->int8_weights || c.n == 0)
        return ADJ_OK;
    const int slot = plan->buffer[s->in[adj_group_in(&s->group, root->in[1])]].slot;
    array *a = array_named(p->unit, p->symbol[slot].s);
    if (a == NULL || !plan->slot[slot].is_invariant || a->type.dtype != ADJ_F32)
        return ADJ_OK;
    const int64_t n = adj_shape_elems(a->type.shape);
    if (a->rounded == NULL && !round_array(p->unit, a, c, n))
        return adj_error_set(p->unit->error, ADJ_ENOMEM, "adj_emit: out of memory");
    if (a->n_scale == c.n && has_values(a, c, n)) {
        a->is_used_rounded = 1;
        *filter = a;
    }
    return ADJ_OK;
}
