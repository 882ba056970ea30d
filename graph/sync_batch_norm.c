/* sync_batch_norm.c - see shards.h. */
#include <string.h>

#include "shards.h"

/* ---- selection ---- */

int is_synchronized(const adj_node *n, const char *differs, const char *is_common)
{
    if (n->op == &adj_op_batch_norm_stats)
        return differs[n->in[0]->id];
    return n->op == &adj_op_batch_norm_grad_sums && is_common[n->in[1]->id];
}

static int is_batch_norm(const adj_node *n)
{
    return n->op == &adj_op_batch_norm || n->op == &adj_op_batch_norm_grad_sums ||
           n->op == &adj_op_batch_norm_grad;
}

adj_status check_gradients(const shards *s, const char *of_batch, const char *differs)
{
    for (int id = 0; id < s->n; id++) {
        const adj_node *n = s->g->node[id];
        for (int k = 0; n->role == ADJ_ROLE_GRADIENT && !is_batch_norm(n) && k < n->n_in; k++) {
            const adj_node *x = n->in[k];
            if (x->role == ADJ_ROLE_FORWARD && of_batch[x->id] && !differs[x->id])
                return adj_fail(s->g, ADJ_EARG,
                                "adj_data_parallel: sync_batch_norm: %s of a gradient reads "
                                "statistics (expected first derivatives of batch norms alone)",
                                n->op->name);
        }
    }
    return ADJ_OK;
}

/* ---- one value for all shards ---- */

/* Returns row i of the statistics, [1, c]. */
static adj_node *row(adj_node *stats, int i)
{
    if (stats == NULL)
        return NULL;
    const adj_shape size = {2, {1, stats->type.shape.dim[1]}};
    return adj_slice(stats, (adj_shape){2, {i, 0}}, size);
}

static adj_node *whole_stats(const shards *s, adj_node *const x[])
{
    adj_node *inside = shards_mean(s, shards_sum(x, s->shards));
    adj_node *mean = row(inside, 0);
    adj_node **apart = region_alloc(s->p, (size_t)s->shards, sizeof *apart);
    if (apart == NULL) {
        adj_fail(s->g, ADJ_ENOMEM, "adj_data_parallel: out of memory");
        return NULL;
    }
    for (int k = 0; k < s->shards; k++)
        apart[k] = adj_square(adj_sub(row(x[k], 0), mean));
    adj_node *between = shards_mean(s, shards_sum(apart, s->shards));
    adj_node *const rows[] = {mean, adj_add(row(inside, 1), between)};
    return adj_concat(2, rows, 0);
}

adj_node *synchronized(const shards *s, const adj_node *n, adj_node *const x[])
{
    if (n->op == &adj_op_batch_norm_stats)
        return whole_stats(s, x);
    return shards_mean(s, shards_sum(x, s->shards));
}

/* ---- running statistics ---- */

/* Returns the factor that makes a variance over m elements unbiased. */
static double unbiased_factor(int64_t m, int64_t times)
{
    const double all = (double)m * (double)times;
    return all > 1 ? all / (all - 1) : 1;
}

/* Sets data to [[1], [factor]], as ops/nn/normalize.c builds it. */
static void set_factor(adj_dtype dtype, double factor, double data[2])
{
    adj_store(dtype, data, 0, 1);
    adj_store(dtype, data, 1, factor);
}

void count_whole_batch(const shards *s, const adj_node *n, adj_node *in[])
{
    if (n->op != &adj_op_mul || n->in[0]->op != &adj_op_batch_norm_stats ||
        !s->is_common[n->in[0]->id] || n->in[1]->op != &adj_op_const)
        return;
    const adj_node *stats = n->in[0];
    const int64_t c = stats->type.shape.dim[1];
    const int64_t m = c > 0 ? node_elems(stats->in[0]) / c : 0;
    const adj_type t = {stats->type.dtype, {2, {2, 1}}};
    double factor[2];
    set_factor(t.dtype, unbiased_factor(m, 1), factor);
    if (!is_same_type(n->in[1]->type, t) ||
        memcmp(((const adj_const_attrs *)n->in[1]->attrs)->data, factor, adj_type_bytes(t)) != 0)
        return;
    set_factor(t.dtype, unbiased_factor(m, s->all), factor);
    in[1] = adj_const(s->g, t.dtype, t.shape, factor);
}
