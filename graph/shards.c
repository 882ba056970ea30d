/* shards.c - see shards.h. Each copy is added to the earlier ones at once, so that at most one
 * sum is alive per level of the tree. */
#include "sync_batch_norm.h"

/* ---- copies ---- */

/* Returns the copy of an input, such as "images#2" in shard 2. Parameters are not copied. */
static adj_node *copy_input(const shards *s, const adj_node *n, int shard)
{
    char name[200];
    snprintf(name, sizeof name, "%.180s#%d", n->name != NULL ? n->name : "input", shard);
    return adj_input(s->g, name, n->type.dtype, n->type.shape);
}

/* Offsets the copy's element count to its position in the whole batch. */
static adj_node *copy_dropout(const shards *s, const adj_node *n, adj_node *const in[], int shard)
{
    adj_dropout_attrs a = *(const adj_dropout_attrs *)n->attrs;
    int64_t before;
    if (__builtin_mul_overflow(s->first + shard, node_elems(n), &before) ||
        __builtin_add_overflow(a.first, before, &a.first)) {
        adj_fail(s->g, ADJ_EARG, "adj_data_parallel: too many elements of %s", n->op->name);
        return NULL;
    }
    return adj_node_new(s->g, n->op, n->n_in, in, &a);
}

static adj_node *copy_node(const shards *s, const adj_node *n, adj_node *const in[], int shard)
{
    if (n->op == &adj_op_input)
        return shard == 0 ? (adj_node *)s->g->node[n->id] : copy_input(s, n, shard);
    if (n->op == &adj_op_dropout)
        return copy_dropout(s, n, in, shard);
    return adj_node_new(s->g, n->op, n->n_in, in, n->attrs);
}

static adj_node *image_of(const shards *s, int shard, adj_node *n)
{
    adj_node *image = (int)n->id < s->n ? s->image[shard][n->id] : NULL;
    return image != NULL ? image : n;
}

/* Copies one node into a shard. In the first shard, equal nodes are the same node: only nodes
 * that draw random numbers after earlier processes' shards, and nodes that depend on common
 * values, are copied. in: room for operands. */
static void copy_one(shards *s, int shard, int id, adj_node **in)
{
    adj_graph *g = s->g;
    const adj_role role = g->role;
    const int clone = g->clone;
    const adj_node *n = g->node[id];
    for (int k = 0; k < n->n_in; k++)
        in[k] = image_of(s, shard, n->in[k]);
    g->role = n->role;
    g->clone = n->clone;
    s->image[shard][id] = copy_node(s, n, in, shard);
    g->role = role;
    g->clone = clone;
}

static adj_status copy_shard(shards *s, int shard, adj_node **in)
{
    for (int id = 0; id < s->n && s->g->status == ADJ_OK; id++)
        if (s->of_batch[id])
            copy_one(s, shard, id, in);
    return s->g->status;
}

/* ---- sums ---- */

static adj_node *in_f32(adj_node *x)
{
    const adj_dtype t = x->type.dtype;
    return t == ADJ_F16 || t == ADJ_BF16 ? adj_cast(x, ADJ_F32) : x;
}

/* Sets left[i] to left[i] + right[i]. */
static void add_all(const shards *s, adj_node *left[], adj_node *const right[])
{
    for (int i = 0; i < s->n_sum; i++)
        left[i] = adj_add(left[i], right[i]);
}

/* Adds the next shard's values. Sums of equally many shards are added, like carries in a binary
 * counter. */
static void take_shard(shards *s, int shard, adj_node **sum)
{
    int level = 0;
    for (int i = 0; i < s->n_sum; i++)
        sum[i] = in_f32(image_of(s, shard, s->value[i]));
    for (; s->has_pending[level]; level++) {
        s->has_pending[level] = 0;
        add_all(s, s->pending[level], sum);
        for (int i = 0; i < s->n_sum; i++)
            sum[i] = s->pending[level][i];
    }
    for (int i = 0; i < s->n_sum; i++)
        s->pending[level][i] = sum[i];
    s->has_pending[level] = 1;
}

/* Adds the pending sums from the right. */
static void add_up(shards *s, int levels)
{
    int done = 0;
    for (int level = 0; level < levels; level++) {
        if (!s->has_pending[level])
            continue;
        if (done)
            add_all(s, s->pending[level], s->value);
        for (int i = 0; i < s->n_sum; i++)
            s->value[i] = s->pending[level][i];
        done = 1;
    }
}

adj_node *shards_sum(adj_node *const x[], int n)
{
    int half = 1;
    if (n == 1)
        return x[0] != NULL ? in_f32(x[0]) : NULL;
    while (2 * half < n)
        half *= 2;
    adj_node *left = shards_sum(x, half);
    return adj_add(left, shards_sum(x + half, n - half));
}

adj_node *shards_mean(const shards *s, adj_node *sum)
{
    const adj_reduction_attrs a = {ADJ_REDUCE_SUM};
    return adj_scale(adj_node_new1(&adj_op_all_reduce, sum, &a), 1.0 / (double)s->all);
}

/* ---- whole step ---- */

/* Makes all copies and sums, shard after shard. */
static adj_status make_shards(shards *s, adj_node **in)
{
    int levels = 1, made = 1;
    while (s->shards >> levels > 0)
        levels++;
    adj_node **sum = region_alloc(s->p, (size_t)s->n_sum + 1, sizeof *sum);
    s->pending = region_alloc(s->p, (size_t)levels, sizeof *s->pending);
    for (int i = 0; i < levels && s->pending != NULL; i++)
        made &= (s->pending[i] = region_alloc(s->p, (size_t)s->n_sum + 1, sizeof *sum)) != NULL;
    if (sum == NULL || s->pending == NULL || !made)
        return adj_fail(s->g, ADJ_ENOMEM, "adj_data_parallel: out of memory");
    for (int k = 0; k < s->shards && copy_shard(s, k, in) == ADJ_OK; k++) {
        const adj_role role = adj_graph_set_role(s->g, ADJ_ROLE_UPDATE);
        take_shard(s, k, sum);
        adj_graph_set_role(s->g, role);
    }
    const adj_role role = adj_graph_set_role(s->g, ADJ_ROLE_UPDATE);
    add_up(s, levels);
    adj_graph_set_role(s->g, role);
    return s->g->status;
}

/* Makes a node's copies in all shards, or its common value. */
static void make_layer(shards *s, int id, adj_node **in, adj_node **copy)
{
    for (int k = 0; k < s->shards; k++) {
        copy_one(s, k, id, in);
        copy[k] = s->image[k][id];
    }
    if (!s->is_common[id])
        return;
    const adj_role role = adj_graph_set_role(s->g, s->g->node[id]->role);
    adj_node *common = synchronized(s, s->g->node[id], copy);
    for (int k = 0; k < s->shards; k++)
        s->image[k][id] = common;
    adj_graph_set_role(s->g, role);
}

/* Makes all copies and sums, node after node; values are in the order of their nodes. */
static adj_status make_layers(shards *s, adj_node **in)
{
    adj_node **copy = region_alloc(s->p, (size_t)s->shards, sizeof *copy);
    int next = 0;
    if (copy == NULL)
        return adj_fail(s->g, ADJ_ENOMEM, "adj_data_parallel: out of memory");
    for (int id = 0; id < s->n && s->g->status == ADJ_OK; id++) {
        if (!s->of_batch[id])
            continue;
        make_layer(s, id, in, copy);
        if (next == s->n_sum || (int)s->value[next]->id != id)
            continue;
        const adj_role role = adj_graph_set_role(s->g, ADJ_ROLE_UPDATE);
        s->value[next++] = shards_sum(copy, s->shards);
        adj_graph_set_role(s->g, role);
    }
    return s->g->status;
}

adj_status shards_make(shards *s)
{
    adj_node **in = region_alloc(s->p, (size_t)max_operands(s->g), sizeof *in);
    if (in == NULL)
        return adj_fail(s->g, ADJ_ENOMEM, "adj_data_parallel: out of memory");
    return s->is_common != NULL ? make_layers(s, in) : make_shards(s, in);
}
