/* exec.c - an executor's life: made from a graph and options, fed, run, read, freed.
 *
 * Everything is planned and allocated in adj_exec_new; adj_run only walks the steps and then makes
 * the updates. */
#include <omp.h>
#include <string.h>
#include <time.h>

#include "exec.h"

adj_status exec_fail(adj_exec *e, adj_status status, const char *format, ...)
{
    if (e->status != ADJ_OK)
        return e->status;
    va_list args;
    va_start(args, format);
    write_message(e->message, format, args);
    va_end(args);
    e->status = status;
    return status;
}

void *exec_alloc(adj_exec *e, size_t count, size_t size)
{
    void *p = pool_alloc(&e->pool, count, size);
    if (p == NULL)
        exec_fail(e, ADJ_ENOMEM, "adj_exec_new: out of memory");
    return p;
}

/* A call that failed on an executor that stays usable: the message is the newest. */
static adj_status refuse(adj_exec *e, adj_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static adj_status refuse(adj_exec *e, adj_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_message(e->message, format, args);
    va_end(args);
    return status;
}

const char *adj_exec_message(const adj_exec *e)
{
    return e != NULL ? e->message : "adj_exec_new: out of memory";
}
adj_exec_info adj_exec_stats(const adj_exec *e) { return e != NULL ? e->info : (adj_exec_info){0}; }

/* ---- making one ---- */

static adj_status check_options(adj_exec *e, const adj_graph *g, const adj_exec_opts *o)
{
    if (g == NULL || o == NULL)
        return exec_fail(e, ADJ_EARG, "adj_exec_new: %s is NULL", g == NULL ? "graph" : "options");
    if (g->status != ADJ_OK)
        return exec_fail(e, g->status, "%s", g->message);
    if (o->n_fetch < 0 || (o->n_fetch > 0 && o->fetch == NULL))
        return exec_fail(e, ADJ_EARG, "adj_exec_new: fetch is wrong (got n_fetch %d)", o->n_fetch);
    for (int i = 0; i < o->n_fetch; i++)
        if (o->fetch[i] == NULL || o->fetch[i]->graph != g)
            return exec_fail(e, ADJ_EARG, "adj_exec_new: fetch[%d] is %s", i,
                             o->fetch[i] == NULL ? "NULL" : "of another graph");
    if (o->updates != NULL && o->updates->graph != g)
        return exec_fail(e, ADJ_EARG, "adj_exec_new: updates are of another graph");
    if (o->n_fetch + adj_updates_size(o->updates) == 0)
        return exec_fail(e, ADJ_EARG, "adj_exec_new: nothing to compute (no fetch, no updates)");
    if (o->threads < 0 || o->threads > 4096)
        return exec_fail(e, ADJ_EARG, "adj_exec_new: threads is wrong (got %d, expected 0 to 4096)",
                         o->threads);
    return ADJ_OK;
}

/* Fetches, next values, assigned leaves: what the private graph must keep. */
static const adj_node **list_roots(adj_exec *e, const adj_exec_opts *o, int *n)
{
    int n_update = adj_updates_size(o->updates), k = 0;
    const adj_node **root = exec_alloc(e, (size_t)(o->n_fetch + 2 * n_update), sizeof(*root));
    if (root == NULL)
        return NULL;
    for (int i = 0; i < o->n_fetch; i++)
        root[k++] = o->fetch[i];
    for (int i = 0; i < n_update; i++) {
        root[k++] = adj_updates_next(o->updates, i);
        root[k++] = adj_updates_leaf(o->updates, i);
    }
    *n = k;
    return root;
}

static adj_status copy_graph(adj_exec *e, const adj_graph *g, int n_root, const adj_node *root[],
                             FILE *trace)
{
    e->user = g;
    e->n_user = g->n_node;
    if ((e->image = exec_alloc(e, (size_t)g->n_node, sizeof(adj_node *))) == NULL)
        return e->status;
    adj_status status = run_passes(g, n_root, root, e->image, &e->pool.allocator, trace, &e->graph);
    if (status != ADJ_OK)
        return exec_fail(e, status, "%s",
                         e->graph != NULL && e->graph->status != ADJ_OK
                             ? e->graph->message
                             : "adj_exec_new: out of memory");
    return ADJ_OK;
}

/* Room for the plan: each operand may cost a chain of two reorders, each root a reorder and a copy.
 */
static adj_status make_room(adj_exec *e, int n_root)
{
    int n = e->graph->n_node, operands = 0, n_leaf = 0;
    for (int id = 0; id < n; id++) {
        operands += e->graph->node[id]->n_in;
        n_leaf += (e->graph->node[id]->op->flags & ADJ_OP_LEAF) != 0;
    }
    e->max_step = n + 2 * operands + 3 * n_root;
    e->max_buffer = 2 * e->max_step + n_leaf;
    e->step = exec_alloc(e, (size_t)e->max_step, sizeof *e->step);
    e->buffer = exec_alloc(e, (size_t)e->max_buffer, sizeof *e->buffer);
    e->slot = exec_alloc(e, (size_t)e->max_buffer, sizeof *e->slot);
    e->leaf = exec_alloc(e, (size_t)n_leaf, sizeof *e->leaf);
    e->leaf_of = exec_alloc(e, (size_t)n, sizeof *e->leaf_of);
    e->first_buffer = exec_alloc(e, (size_t)n, sizeof *e->first_buffer);
    for (int id = 0; id < n && e->status == ADJ_OK; id++)
        e->leaf_of[id] = e->first_buffer[id] = NONE;
    return e->status;
}

static adj_status add_leaves(adj_exec *e)
{
    for (int id = 0; id < e->graph->n_node; id++) {
        const adj_node *n = e->graph->node[id];
        if (!(n->op->flags & ADJ_OP_LEAF))
            continue;
        int b = new_buffer(e, n, NULL, NONE, 1);
        if (b == NONE)
            return e->status;
        if (n->op == &adj_op_const) /* kernels only read it */
            e->slot[e->buffer[b].slot].data = (char *)((const adj_const_attrs *)n->attrs)->data;
        e->leaf_of[id] = e->n_leaf;
        e->leaf[e->n_leaf++] = (leaf){.node = n, .buffer = b, .version = n->op == &adj_op_const};
    }
    for (int id = 0; id < e->n_user; id++)
        if (e->image[id] != NULL && e->leaf_of[e->image[id]->id] != NONE &&
            (e->user->node[id]->op->flags & ADJ_OP_LEAF))
            e->leaf[e->leaf_of[e->image[id]->id]].user = e->user->node[id];
    return ADJ_OK;
}

static adj_status list_results(adj_exec *e, const adj_exec_opts *o)
{
    e->n_fetch = o->n_fetch;
    e->n_update = adj_updates_size(o->updates);
    e->fetch = exec_alloc(e, (size_t)e->n_fetch, sizeof *e->fetch);
    e->fetched = exec_alloc(e, (size_t)e->n_fetch, sizeof(adj_node *));
    e->update = exec_alloc(e, (size_t)e->n_update, sizeof *e->update);
    if (e->status != ADJ_OK)
        return e->status;
    for (int i = 0; i < e->n_fetch; i++)
        e->fetched[i] = e->image[o->fetch[i]->id];
    for (int i = 0; i < e->n_update; i++) {
        e->update[i].leaf = e->leaf_of[e->image[adj_updates_leaf(o->updates, i)->id]->id];
        e->update[i].next =
            (int)e->image[adj_updates_next(o->updates, i)->id]->id; /* a buffer once planned */
    }
    return ADJ_OK;
}

/* Memory for arena and storage, and every pointer that a step will use. */
static adj_status bind(adj_exec *e)
{
    e->arena = adj_alloc(&e->pool.allocator, e->info.arena_bytes);
    e->storage = adj_alloc(&e->pool.allocator, e->info.storage_bytes);
    if (e->arena == NULL || e->storage == NULL)
        return exec_fail(e, ADJ_ENOMEM,
                         "adj_exec_new: out of memory (arena %zu bytes, storage %zu bytes)",
                         e->info.arena_bytes, e->info.storage_bytes);
    for (int i = 0; i < e->n_slot; i++)
        if (e->slot[i].data == NULL)
            e->slot[i].data = (e->slot[i].kept ? e->storage : e->arena) + e->slot[i].offset;
    for (int i = 0; i < e->n_step; i++) {
        step *s = &e->step[i];
        for (int k = 0; k < s->n_in; k++)
            ((const void **)s->call.in)[k] = e->slot[e->buffer[s->in[k]].slot].data;
        for (int k = 0; k < s->n_out; k++)
            ((void **)s->call.out)[k] = e->slot[e->buffer[s->out[k]].slot].data;
        s->call.group = &s->group;
        s->call.state = s->prep.state;
        s->call.scratch = s->scratch != NONE ? e->slot[s->scratch].data : NULL;
        s->call.threads = e->threads;
        if ((s->call.message = exec_alloc(e, ADJ_WHY, 1)) == NULL)
            return e->status;
    }
    return ADJ_OK;
}

static char *leaf_data(const adj_exec *e, const leaf *l)
{
    return e->slot[e->buffer[l->buffer].slot].data;
}

/* Draws every param and state; the stream is the name's hash, so that a parameter starts the same
 * in every graph. */
static void initialise(adj_exec *e, uint64_t seed)
{
    for (int i = 0; i < e->n_leaf; i++) {
        leaf *l = &e->leaf[i];
        const adj_leaf_attrs *a = l->node->attrs;
        if (!(l->node->op->flags & ADJ_OP_KEPT))
            continue;
        uint64_t stream = UINT64_C(0xcbf29ce484222325);
        for (const char *c = adj_node_name(l->node); *c != '\0'; c++)
            stream = (stream ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
        adj_draw(l->node->type.dtype, leaf_data(e, l), adj_shape_elems(l->node->type.shape),
                 (adj_init){(adj_init_kind)a->init, a->a, a->b}, seed, stream);
        l->version = 1;
    }
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static adj_status build(adj_exec *e, adj_graph *g, const adj_exec_opts *o)
{
    int n_root = 0;
    const adj_node **root = list_roots(e, o, &n_root);
    if (root == NULL || select_backends(e, o->backend) != ADJ_OK ||
        copy_graph(e, g, n_root, root, o->trace) != ADJ_OK || make_room(e, n_root) != ADJ_OK ||
        add_leaves(e) != ADJ_OK || list_results(e, o) != ADJ_OK ||
        form_groups(e, n_root, root) != ADJ_OK || plan_steps(e) != ADJ_OK ||
        plan_memory(e) != ADJ_OK || bind(e) != ADJ_OK)
        return e->status;
    initialise(e, o->seed);
    return ADJ_OK;
}

adj_status adj_exec_new(adj_graph *g, const adj_exec_opts *opts, adj_exec **out)
{
    double start = seconds();
    if (out == NULL)
        return ADJ_EARG;
    adj_allocator a = default_allocator();
    if (g != NULL)
        a = g->pool.allocator;
    if (opts != NULL && opts->allocator != NULL)
        a = *opts->allocator;
    adj_exec *e = *out = adj_alloc(&a, sizeof *e);
    if (e == NULL)
        return ADJ_ENOMEM;
    e->pool.allocator = a;
    if (check_options(e, g, opts) != ADJ_OK)
        return e->status;
    if (omp_in_parallel())
        return exec_fail(e, ADJ_EARG, "adj_exec_new: called inside a parallel region");
    int callers = omp_get_max_threads();
    e->threads = opts->threads > 0 ? opts->threads : callers;
    omp_set_num_threads(e->threads);
    build(e, g, opts);
    omp_set_num_threads(callers);
    e->info.plan_seconds = seconds() - start;
    return e->status;
}

static void drop_steps(adj_exec *e)
{
    for (int i = 0; i < e->n_step; i++) {
        step *s = &e->step[i];
        if (s->kind == STEP_KERNEL && s->kernel != NULL && s->kernel->drop != NULL)
            s->kernel->drop(e->opened[s->backend], s->prep.state);
        if (s->kind == STEP_REORDER && s->prep.state != NULL)
            e->backend[s->backend]->reorder_drop(e->opened[s->backend], s->prep.state);
    }
}

void adj_exec_free(adj_exec *e)
{
    if (e == NULL)
        return;
    adj_allocator a = e->pool.allocator;
    drop_steps(e);
    for (int i = 0; i < e->n_backend; i++)
        if (e->is_open[i])
            e->backend[i]->close(e->opened[i]);
    adj_graph_free(e->graph);
    adj_release(&a, e->arena);
    adj_release(&a, e->storage);
    pool_free(&e->pool);
    adj_release(&a, e);
}

/* ---- values in and out ---- */

/* The image of a node of the user's graph; NULL when this executor does not hold it. */
static const adj_node *image_of(const adj_exec *e, const adj_node *n)
{
    return n->graph == e->user && n->id < (uint32_t)e->n_user ? e->image[n->id] : NULL;
}

static leaf *find_leaf(const adj_exec *e, const adj_node *n)
{
    const adj_node *image = image_of(e, n);
    int k = image != NULL && (n->op->flags & ADJ_OP_LEAF) ? e->leaf_of[image->id] : NONE;
    return k != NONE ? &e->leaf[k] : NULL;
}

static adj_status check_value(adj_exec *e, const char *call, const adj_node *n, const void *data,
                              size_t bytes)
{
    if (e->status != ADJ_OK)
        return e->status;
    if (n == NULL)
        return refuse(e, ADJ_EARG, "%s: the node is NULL", call);
    size_t wanted = (size_t)adj_shape_elems(n->type.shape) * adj_dtype_size(n->type.dtype);
    if (bytes != wanted)
        return refuse(e, ADJ_EARG, "%s: wrong size for %s \"%s\" (got %zu bytes, expected %zu)",
                      call, n->op->name, adj_node_name(n), bytes, wanted);
    if (data == NULL && bytes > 0)
        return refuse(e, ADJ_EARG, "%s: data is NULL", call);
    return ADJ_OK;
}

adj_status adj_set(adj_exec *e, const adj_node *leaf_node, const void *data, size_t bytes)
{
    if (e == NULL)
        return ADJ_EARG;
    adj_status status = check_value(e, "adj_set", leaf_node, data, bytes);
    if (status != ADJ_OK)
        return status;
    leaf *l = find_leaf(e, leaf_node);
    if (l == NULL || leaf_node->op == &adj_op_const)
        return refuse(e, ADJ_EARG,
                      "adj_set: %s \"%s\" cannot be set (expected an input, param or state that "
                      "this executor needs)",
                      leaf_node->op->name, adj_node_name(leaf_node));
    if (bytes > 0)
        memcpy(leaf_data(e, l), data, bytes);
    l->version++;
    return ADJ_OK;
}

adj_status adj_get(adj_exec *e, const adj_node *node, void *out, size_t bytes)
{
    if (e == NULL)
        return ADJ_EARG;
    adj_status status = check_value(e, "adj_get", node, out, bytes);
    if (status != ADJ_OK)
        return status;
    const adj_node *image = image_of(e, node);
    const leaf *l = find_leaf(e, node);
    int b = l != NULL ? l->buffer : NONE;
    for (int i = 0; i < e->n_fetch && image != NULL && (b == NONE || e->has_run); i++)
        if (e->fetched[i] == image)
            b = e->fetch[i];
    if (b == NONE)
        return refuse(e, ADJ_EARG, "adj_get: %s \"%s\" was not fetched", node->op->name,
                      adj_node_name(node));
    if (l == NULL && !e->has_run)
        return refuse(e, ADJ_EARG, "adj_get: adj_run has not completed yet");
    if (bytes > 0)
        memcpy(out, e->slot[e->buffer[b].slot].data, bytes);
    return ADJ_OK;
}

int adj_exec_n_params(const adj_exec *e)
{
    int n = 0;
    for (int i = 0; e != NULL && e->status == ADJ_OK && i < e->n_leaf; i++)
        n += (e->leaf[i].node->op->flags & ADJ_OP_KEPT) != 0;
    return n;
}

adj_node *adj_exec_param(const adj_exec *e, int i)
{
    for (int k = 0; e != NULL && e->status == ADJ_OK && k < e->n_leaf; k++)
        if ((e->leaf[k].node->op->flags & ADJ_OP_KEPT) && i-- == 0)
            return e->leaf[k].user;
    return NULL;
}

adj_status adj_copy_params(adj_exec *to, const adj_exec *from)
{
    if (to == NULL || from == NULL)
        return ADJ_EARG;
    if (to->status != ADJ_OK || from->status != ADJ_OK)
        return refuse(to, ADJ_EARG, "adj_copy_params: an executor has failed");
    for (int i = 0; i < to->n_leaf; i++) {
        leaf *l = &to->leaf[i];
        const adj_node *same =
            l->node->op->flags & ADJ_OP_KEPT ? adj_find(from->graph, l->node->name) : NULL;
        int k = same != NULL ? from->leaf_of[same->id] : NONE;
        if (k == NONE || !(same->op->flags & ADJ_OP_KEPT))
            continue;
        if (same->type.dtype != l->node->type.dtype ||
            !adj_shape_equal(same->type.shape, l->node->type.shape))
            return refuse(to, ADJ_ESHAPE,
                          "adj_copy_params: \"%s\" differs in type (got %s %s, expected %s %s)",
                          l->node->name, adj_dtype_name(same->type.dtype),
                          adj_shape_text(same->type.shape).s, adj_dtype_name(l->node->type.dtype),
                          adj_shape_text(l->node->type.shape).s);
        memcpy(leaf_data(to, l), leaf_data(from, &from->leaf[k]),
               to->slot[to->buffer[l->buffer].slot].bytes);
        l->version++;
    }
    return ADJ_OK;
}

/* ---- running ---- */

static adj_status run_step(adj_exec *e, step *s)
{
    if (s->kind == STEP_KERNEL)
        return s->kernel->run(&s->call);
    if (s->kind == STEP_COPY) {
        memcpy(s->call.out[0], s->call.in[0], e->slot[e->buffer[s->out[0]].slot].bytes);
        return ADJ_OK;
    }
    if (s->watched != NONE && s->seen == e->leaf[s->watched].version)
        return ADJ_OK;
    adj_status status = e->backend[s->backend]->reorder_run(s->prep.state, s->call.in[0],
                                                            s->call.out[0], s->call.scratch);
    if (status == ADJ_OK && s->watched != NONE)
        s->seen = e->leaf[s->watched].version;
    return status;
}

static adj_status step_failed(adj_exec *e, const step *s, adj_status status)
{
    const adj_node *n = e->buffer[s->out[0]].value;
    const char *reason = s->call.message[0] != '\0' ? s->call.message : adj_status_name(status);
    return refuse(e, status, "adj_run: %s \"%s\" on %s: %s", n->op->name, adj_node_name(n),
                  s->kind == STEP_COPY ? "copy" : e->backend[s->backend]->name, reason);
}

static adj_status run_steps(adj_exec *e)
{
    for (int i = 0; i < e->n_step; i++) {
        step *s = &e->step[i];
        s->call.message[0] = '\0';
        adj_status status = run_step(e, s);
        if (status != ADJ_OK)
            return step_failed(e, s, status);
    }
    for (int i = 0; i < e->n_update; i++) {
        const update *u = &e->update[i];
        leaf *l = &e->leaf[u->leaf];
        const slot *next = &e->slot[e->buffer[u->next].slot];
        if (!u->in_place && next->data != leaf_data(e, l))
            memcpy(leaf_data(e, l), next->data, e->slot[e->buffer[l->buffer].slot].bytes);
        l->version++;
    }
    return ADJ_OK;
}

adj_status adj_run(adj_exec *e)
{
    if (e == NULL)
        return ADJ_EARG;
    if (e->status != ADJ_OK)
        return e->status;
    if (omp_in_parallel())
        return refuse(e, ADJ_EARG, "adj_run: called inside a parallel region");
    for (int i = 0; i < e->n_leaf; i++)
        if (e->leaf[i].version == 0 && e->slot[e->buffer[e->leaf[i].buffer].slot].bytes > 0)
            return refuse(e, ADJ_EARG, "adj_run: input \"%s\" has not been set",
                          adj_node_name(e->leaf[i].node));
    int callers = omp_get_max_threads();
    omp_set_num_threads(e->threads);
    adj_status status = run_steps(e);
    omp_set_num_threads(callers);
    e->has_run = status == ADJ_OK;
    return status;
}
