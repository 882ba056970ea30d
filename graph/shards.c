/* shards.c - see shards.h. Each copy is added to the earlier ones at once, so that at most one
 * sum is alive per level of the tree. */
#include "shards.h"

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

static adj_node *shard_image(const shards *s, int shard, adj_node *n)
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
        in[k] = shard_image(s, shard, n->in[k]);
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

/* Returns how many of n > 1 terms the left branch of their tree has: the largest power of two below
 * n. */
static int left_of(int n)
{
    int half = 1;
    while (2 * half < n)
        half *= 2;
    return half;
}

adj_node *shards_sum(adj_node *const x[], int n)
{
    if (n == 1)
        return x[0] != NULL ? in_f32(x[0]) : NULL;
    adj_node *left = shards_sum(x, left_of(n));
    return adj_add(left, shards_sum(x + left_of(n), n - left_of(n)));
}

adj_node *shards_mean(const shards *s, adj_node *sum)
{
    const adj_reduction_attrs a = {ADJ_REDUCE_SUM};
    return adj_scale(adj_node_new1(&adj_op_all_reduce, sum, &a), 1.0 / (double)s->all);
}

/* ---- whole step ---- */

/* Makes n copies from shard `first` on, shard after shard, and their sums, each as soon as its two
 * terms exist. Returns the n_sum sums, or NULL on failure. */
static adj_node **make_shards(shards *s, int first, int n, adj_node **in)
{
    adj_node **left = NULL, **right = NULL;
    if (n > 1) {
        left = make_shards(s, first, left_of(n), in);
        right = left != NULL ? make_shards(s, first + left_of(n), n - left_of(n), in) : NULL;
    } else if (copy_shard(s, first, in) == ADJ_OK) {
        left = region_alloc(s->p, (size_t)s->n_sum + 1, sizeof *left);
        if (left == NULL)
            adj_fail(s->g, ADJ_ENOMEM, "adj_data_parallel: out of memory");
    }
    const adj_role role = adj_graph_set_role(s->g, ADJ_ROLE_UPDATE);
    for (int i = 0; i < s->n_sum && s->g->status == ADJ_OK; i++)
        left[i] = n > 1 ? adj_add(left[i], right[i]) : in_f32(shard_image(s, first, s->value[i]));
    adj_graph_set_role(s->g, role);
    return s->g->status == ADJ_OK ? left : NULL;
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
    if (s->is_common != NULL)
        return make_layers(s, in);
    adj_node **sum = make_shards(s, 0, s->shards, in);
    for (int i = 0; i < s->n_sum && sum != NULL; i++)
        s->value[i] = sum[i];
    return s->g->status;
}
