/* group_read.c - the values that a fused group reads when it is run alone.
 *
 * They are the reference's. A value that the configuration put between two nodes, a cast or a
 * transpose, has none: it is computed from those that have. */
#include <math.h>
#include <string.h>

#include "compare.h"

/* The reference's value as n's type holds it; in f64 if it is a float. */
static void *rounded_value(const plan_view *l, const adj_node *n, region *p)
{
    const comparing *r = l->r;
    const adj_node *user = l->user[n->id];
    int i = r->index[user->id], is_float = adj_is_float(n->type.dtype);
    adj_dtype from = i >= 0 ? config_dtype(&r->c->config[0], user->type.dtype) : user->type.dtype;
    const void *value = i >= 0 ? r->whole[0].value[i] : r->leaf_value[user->id];
    void *v = region_alloc(p, (size_t)node_elems(n) + 1, sizeof(double));
    for (int64_t e = 0, n_elems = node_elems(n); v != NULL && e < n_elems; e++)
        adj_store(is_float ? ADJ_F64 : n->type.dtype, v, e,
                  rounded(n->type.dtype, adj_load(from, value, e)));
    return v;
}

/* Values that no node of the compared graph has (a cast or transpose that the configuration put in
 * between): computed in f64 from those that one has. */
static adj_status compute_between(const plan_view *l, const adj_group *g, region *p,
                                  void *operand[])
{
    const int n = l->g->n_node;
    char *needed = region_alloc(p, (size_t)n, 1);
    adj_node **image = region_alloc(p, (size_t)n, sizeof(adj_node *));
    trial t;
    adj_status status = trial_open(&l->in_f64, l->in_f64.reference, n, g->n_in, p, &t);
    if (needed == NULL || image == NULL)
        status = ADJ_ENOMEM;
    t.runs = 0;
    outcome o;
    for (int i = 0; i < g->n_in && status == ADJ_OK; i++)
        needed[g->in[i]->id] = operand[i] == NULL;
    for (int id = n - 1; id >= 0 && status == ADJ_OK; id--)
        for (int k = 0; needed[id] && l->user[id] == NULL && k < l->g->node[id]->n_in; k++)
            needed[l->g->node[id]->in[k]->id] = 1;
    for (int id = 0; id < n && status == ADJ_OK; id++) {
        const adj_node *x = l->g->node[id];
        adj_node *in[MAX_IN];
        if (!needed[id])
            continue;
        for (int k = 0; k < x->n_in; k++)
            in[k] = image[x->in[k]->id];
        adj_type type = {config_dtype(t.config, x->type.dtype), x->type.shape};
        void *value = l->user[id] != NULL ? rounded_value(l, x, p) : NULL;
        if (l->user[id] != NULL && value == NULL) {
            status = ADJ_ENOMEM;
            break;
        }
        image[id] = value != NULL ? trial_leaf(&t, type, value) : config_rule(t.config, t.g, x, in);
        status = adj_graph_status(t.g);
    }
    for (int i = 0; i < g->n_in && status == ADJ_OK; i++)
        if (operand[i] == NULL)
            t.fetch[t.n_fetch++] = image[g->in[i]->id];
    if (status == ADJ_OK && t.n_fetch > 0 && (status = run_trial(&l->in_f64, &t, p, &o)) == ADJ_OK)
        status = o.status;
    for (int i = 0, f = 0; i < g->n_in && status == ADJ_OK; i++)
        if (operand[i] == NULL)
            operand[i] = o.value[f++];
    adj_graph_free(t.g);
    return status;
}

/* Is every member that reads x linear in it? */
static int is_read_linearly(const adj_group *g, const adj_node *x)
{
    for (int i = 0; i < g->n_node; i++)
        for (int k = 0; k < g->node[i]->n_in; k++)
            if (g->node[i]->in[k] == x && !is_linear_in(g->node[i], k))
                return 0;
    return 1;
}

/* Integers: drawn anew where only linear nodes read them, else the same map for all. */
static void to_integers(const plan_view *l, const adj_group *g, void *const operand[])
{
    const adj_init three = {ADJ_INIT_UNIFORM, -3, 3};
    double max = 0;
    for (int i = 0; i < g->n_in; i++)
        if (adj_is_float(g->in[i]->type.dtype) && !is_read_linearly(g, g->in[i]))
            for (int64_t e = 0, n_elems = node_elems(g->in[i]); e < n_elems; e++)
                max = fmax(max, fabs(((const double *)operand[i])[e]));
    for (int i = 0; i < g->n_in; i++) {
        double *v = operand[i];
        double scale = max > 0 && isfinite(max) ? 20 / max : 1;
        if (!adj_is_float(g->in[i]->type.dtype))
            continue;
        if (is_read_linearly(g, g->in[i])) {
            adj_draw(ADJ_F64, v, node_elems(g->in[i]), three, l->r->opts->seed, g->in[i]->id);
            scale = 1;
        }
        for (int64_t e = 0, n_elems = node_elems(g->in[i]); e < n_elems; e++)
            v[e] = nearbyint(v[e] * scale);
    }
}

adj_status read_operands(const plan_view *l, const adj_group *g, region *p, void *operand[])
{
    adj_status status = ADJ_OK;
    int between = 0;
    for (int i = 0; i < g->n_in; i++) {
        if (l->user[g->in[i]->id] == NULL)
            between = 1;
        else if ((operand[i] = rounded_value(l, g->in[i], p)) == NULL)
            return ADJ_ENOMEM;
    }
    if (between)
        status = compute_between(l, g, p, operand);
    for (int i = 0; i < g->n_in && status == ADJ_OK && between; i++)
        if (l->user[g->in[i]->id] == NULL && adj_is_float(g->in[i]->type.dtype)) {
            double *v = operand[i];
            for (int64_t e = 0, n_elems = node_elems(g->in[i]); e < n_elems; e++)
                v[e] = rounded(g->in[i]->type.dtype, v[e]);
        }
    if (status == ADJ_OK && l->r->opts->exact)
        to_integers(l, g, operand);
    return status;
}
