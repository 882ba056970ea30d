/* data_parallel.c - turns a training step of one process into the same step of many, each on its
 * own shards of the batch. Whatever updates read of this batch (gradients, statistics) is
 * replaced by its mean over all shards (shards.h), so that all processes assign the same values.
 *
 * Small values are packed: those computed one after the other are concatenated to one vector,
 * which is reduced at once and sliced again. */
#include "shards.h"

/* Bytes of a bucket by default, and the least number of buckets: with one or two, no reduction
 * would overlap with the backward pass. */
static const size_t max_bucket = 1 << 20, min_bucket = 1 << 15;
enum { USUAL_BUCKETS = 8 };

typedef struct {
    adj_graph *g;
    region p;
    int n; /* nodes of the step as it was */
    adj_update_nodes nodes;
    /* By id. differs: each shard has its own value. is_common: all shards have one value, though
     * each has only its images. */
    char *differs, *is_common;
    adj_node **image; /* by id: what updates read instead; NULL for the node itself */
    shards shards;
    int n_reduced;
    adj_node **reduced; /* in the order of computation */
    size_t bucket;      /* bytes; 0 for the default */
    int synchronizes;   /* synchronizes batch norms */
} rewriting;

/* ---- which nodes ---- */

static void trace(rewriting *w)
{
    for (int id = 0; id < w->n; id++) {
        const adj_node *n = w->g->node[id];
        w->differs[id] = n->n_in == 0 && w->nodes.of_batch[id];
        for (int k = 0; k < n->n_in; k++)
            w->differs[id] |= w->differs[n->in[k]->id];
        if (w->synchronizes && is_synchronized(n, w->differs, w->is_common)) {
            w->is_common[id] = 1;
            w->differs[id] = 0;
            w->shards.is_common = w->is_common;
        }
    }
}

/* True if updates read the node's mean over all shards. */
static int is_reduced(const rewriting *w, int id)
{
    return w->nodes.is_read[id] && w->differs[id] && adj_is_float(w->g->node[id]->type.dtype);
}

/* ---- sums over this process's shards ---- */

static adj_status sum_shards(rewriting *w)
{
    w->reduced = region_alloc(&w->p, (size_t)w->n + 1, sizeof *w->reduced);
    w->shards.value = region_alloc(&w->p, (size_t)w->n + 1, sizeof *w->reduced);
    char *of_batch = region_alloc(&w->p, (size_t)w->n + 1, 1);
    if (w->reduced == NULL || w->shards.value == NULL || of_batch == NULL)
        return adj_fail(w->g, ADJ_ENOMEM, "adj_data_parallel: out of memory");
    for (int id = 0; id < w->n; id++) {
        of_batch[id] = (char)(w->nodes.of_batch[id] && !w->nodes.is_copied[id]);
        if (is_reduced(w, id))
            w->reduced[w->n_reduced++] = w->shards.value[w->shards.n_sum++] = w->g->node[id];
    }
    w->shards.of_batch = of_batch;
    return shards_make(&w->shards);
}

/* ---- means over all shards ---- */

static adj_shape flat_shape(const adj_node *n) { return (adj_shape){1, {node_elems(n)}}; }

/* Sets the image of value i; mean has the type of the sum. */
static void set_image(rewriting *w, int i, adj_node *mean)
{
    const adj_node *x = w->reduced[i];
    if (mean != NULL && mean->type.dtype != x->type.dtype)
        mean = adj_cast(mean, x->type.dtype);
    w->image[x->id] = mean;
}

/* Reduces sums first to end - 1, all of one type, as one vector. */
static void reduce_packed(rewriting *w, int first, int end, adj_node *flat[])
{
    adj_node *const *x = w->shards.value;
    adj_shape begin = {1, {0}};
    for (int i = first; i < end; i++)
        flat[i - first] = adj_reshape(x[i], flat_shape(x[i]));
    adj_node *all = shards_mean(&w->shards, adj_concat(end - first, flat, 0));
    for (int i = first; i < end; i++) {
        adj_node *part = adj_slice(all, begin, flat_shape(x[i]));
        set_image(w, i, adj_reshape(part, x[i]->type.shape));
        begin.dim[0] += node_elems(x[i]);
    }
}

static size_t usual_bucket(const rewriting *w)
{
    size_t bytes = 0;
    for (int i = 0; i < w->n_reduced; i++)
        bytes += adj_type_bytes(w->shards.value[i]->type);
    bytes /= USUAL_BUCKETS;
    return bytes < min_bucket ? min_bucket : bytes < max_bucket ? bytes : max_bucket;
}

static adj_status reduce_all(rewriting *w)
{
    adj_node *const *x = w->shards.value;
    const size_t bucket = w->bucket > 0 ? w->bucket : usual_bucket(w);
    adj_node **flat = region_alloc(&w->p, (size_t)w->n_reduced + 1, sizeof *flat);
    if (flat == NULL)
        return adj_fail(w->g, ADJ_ENOMEM, "adj_data_parallel: out of memory");
    for (int i = 0, end; i < w->n_reduced; i = end) {
        size_t bytes = adj_type_bytes(x[i]->type);
        for (end = i + 1; end < w->n_reduced && x[end]->type.dtype == x[i]->type.dtype; end++) {
            bytes += adj_type_bytes(x[end]->type);
            if (bytes > bucket)
                break;
        }
        if (end == i + 1)
            set_image(w, i, shards_mean(&w->shards, x[i]));
        else
            reduce_packed(w, i, end, flat);
    }
    return w->g->status;
}

/* ---- updates that read the means ---- */

/* Values computed from the batch that are equal in all shards need no reduction. */
static void take_common(rewriting *w)
{
    for (int id = 0; id < w->n; id++)
        if (w->nodes.of_batch[id] && !w->differs[id] && !w->nodes.is_copied[id])
            w->image[id] = w->shards.image[0][id];
}

static adj_node *image_of(const rewriting *w, adj_node *n)
{
    return w->image[n->id] != NULL ? w->image[n->id] : n;
}

static adj_status copy_updates(rewriting *w)
{
    for (int id = 0; id < w->n && w->g->status == ADJ_OK; id++) {
        const adj_node *n = w->g->node[id];
        if (!w->nodes.is_copied[id])
            continue;
        adj_node **in = region_alloc(&w->p, (size_t)n->n_in, sizeof *in);
        if (in == NULL)
            return adj_fail(w->g, ADJ_ENOMEM, "adj_data_parallel: out of memory");
        for (int k = 0; k < n->n_in; k++)
            in[k] = image_of(w, n->in[k]);
        if (w->shards.is_common != NULL)
            count_whole_batch(&w->shards, n, in);
        w->image[id] = adj_node_new(w->g, n->op, n->n_in, in, n->attrs);
        if (n->name != NULL && w->image[id] != n)
            adj_label(w->image[id], n->name);
    }
    return w->g->status;
}

static adj_updates *rewrite(rewriting *w, const adj_updates *u)
{
    adj_status status = adj_find_update_nodes(u, &w->nodes);
    if (status != ADJ_OK)
        return NULL;
    trace(w);
    status = check_gradients(&w->shards, w->nodes.of_batch, w->differs);
    if (status == ADJ_OK)
        status = sum_shards(w);
    const adj_role role = adj_graph_set_role(w->g, ADJ_ROLE_UPDATE);
    if (status == ADJ_OK)
        status = reduce_all(w);
    if (status == ADJ_OK) {
        take_common(w);
        status = copy_updates(w);
    }
    adj_graph_set_role(w->g, role);
    adj_updates *made = status == ADJ_OK ? adj_updates_new(w->g) : NULL;
    for (int i = 0; made != NULL && i < u->n; i++)
        adj_updates_add(made, u->list[i].leaf, image_of(w, u->list[i].next));
    if (made == NULL || w->g->status != ADJ_OK)
        return NULL;
    made->n_shard = w->shards.shards;
    made->n_image = w->n;
    made->image = w->shards.image;
    return made;
}

/* ---- building ---- */

static adj_status check(adj_graph *g, int processes, int rank, int shards)
{
    if (processes < 1)
        return adj_fail(g, ADJ_EARG,
                        "adj_data_parallel: processes is out of range (got %d, expected 1 or more)",
                        processes);
    if (rank < 0 || rank >= processes)
        return adj_fail(g, ADJ_EARG,
                        "adj_data_parallel: rank is out of range (got %d, expected 0 to %d)", rank,
                        processes - 1);
    if (shards < 0 || shards % processes != 0)
        return adj_fail(g, ADJ_EARG,
                        "adj_data_parallel: shards cannot be divided among processes (got %d, "
                        "expected 0 or a multiple of %d processes)",
                        shards, processes);
    if ((shards > 0 ? shards : processes) > ADJ_MAX_SHARDS)
        return adj_fail(g, ADJ_EARG,
                        "adj_data_parallel: too many shards (got %d, expected at most %d)",
                        shards > 0 ? shards : processes, ADJ_MAX_SHARDS);
    return ADJ_OK;
}

/* Allocates the lists from the graph, since they outlive the rewriting. */
static adj_status alloc(rewriting *w)
{
    const size_t n = (size_t)w->n + 1;
    const int shards = w->shards.shards;
    adj_node ***image = region_alloc(&w->g->region, (size_t)shards, sizeof *image);
    int made = image != NULL;
    for (int k = 0; made && k < shards; k++)
        made = (image[k] = region_alloc(&w->g->region, n, sizeof(adj_node *))) != NULL;
    w->shards.image = image;
    w->differs = region_alloc(&w->p, n, 1);
    w->is_common = region_alloc(&w->p, n, 1);
    w->image = region_alloc(&w->p, n, sizeof(adj_node *));
    if (!made || w->differs == NULL || w->is_common == NULL || w->image == NULL)
        return adj_fail(w->g, ADJ_ENOMEM, "adj_data_parallel: out of memory");
    return ADJ_OK;
}

adj_updates *adj_data_parallel(const adj_updates *u, int processes, int rank,
                               const adj_data_parallel_opts *options)
{
    static const adj_data_parallel_opts none = {0};
    const adj_data_parallel_opts *o = options != NULL ? options : &none;
    if (u == NULL || u->graph->status != ADJ_OK ||
        check(u->graph, processes, rank, o->shards) != ADJ_OK)
        return NULL;
    adj_graph *g = u->graph;
    const int all = o->shards > 0 ? o->shards : processes, own = all / processes;
    rewriting w = {.g = g, .p.allocator = g->region.allocator, .n = g->n_node};
    w.synchronizes = o->sync_batch_norm != 0;
    w.bucket = processes == 1 ? 1 : o->bucket_bytes; /* a single process packs nothing */
    w.shards = (shards){
        .g = g, .p = &w.p, .n = g->n_node, .shards = own, .first = (int64_t)rank * own, .all = all};
    adj_updates *made = alloc(&w) == ADJ_OK ? rewrite(&w, u) : NULL;
    region_free(&w.p);
    return made;
}

int adj_shard_count(const adj_updates *u) { return u != NULL && u->n_shard > 0 ? u->n_shard : 1; }

adj_node *adj_shard_node(const adj_updates *u, adj_node *n, int shard)
{
    if (n == NULL || shard < 0 || shard >= adj_shard_count(u))
        return NULL;
    adj_node *image =
        u != NULL && u->image != NULL && (int)n->id < u->n_image ? u->image[shard][n->id] : NULL;
    return image != NULL ? image : n;
}
