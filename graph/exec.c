/* exec.c - an executor is made from a graph and options, and freed. Everything is planned and
 * allocated here; run.c only walks the steps, values.c moves values in and out. */
#include <math.h>
#include <omp.h>
#include <string.h>
#include <time.h>

#include "exec.h"
#include "graph/passes/passes.h"

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
    void *p = region_alloc(&e->region, count, size);
    if (p == NULL)
        exec_fail(e, ADJ_ENOMEM, "adj_exec_new: out of memory");
    return p;
}

adj_status refuse(adj_exec *e, adj_status status, const char *format, ...)
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
const char *adj_exec_note(const adj_exec *e) { return e != NULL ? e->note : ""; }
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
    if (o->precision != ADJ_PRECISION_AS_BUILT && o->precision != ADJ_PRECISION_BF16 &&
        o->precision != ADJ_PRECISION_F16)
        return exec_fail(
            e, ADJ_EARG,
            "adj_exec_new: precision is wrong (got %d, expected as built, bf16 or f16)",
            (int)o->precision);
    if (o->loss_scale != 0 && !(o->loss_scale > 0 && isnormal((float)o->loss_scale)))
        return exec_fail(e, ADJ_EARG,
                         "adj_exec_new: loss_scale is wrong (got %g, expected a positive number, "
                         "or 0 for the default)",
                         o->loss_scale);
    if (o->math != ADJ_MATH_EXACT && o->math != ADJ_MATH_FAST)
        return exec_fail(e, ADJ_EARG,
                         "adj_exec_new: math is wrong (got %d, expected exact or fast)",
                         (int)o->math);
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
                             const adj_exec_opts *o)
{
    e->user = g;
    e->n_user = g->n_node;
    if ((e->image = exec_alloc(e, (size_t)g->n_node, sizeof(adj_node *))) == NULL)
        return e->status;
    const pass_target target = {.opts = o,
                                .reference_only = e->preferred == e->fallback,
                                .has_non_reference_kernel = has_non_reference_kernel,
                                .backends = e};
    adj_status status =
        run_passes(&target, g, n_root, root, e->image, &e->region.allocator, &e->graph);
    if (e->status != ADJ_OK)
        return e->status;
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
        if (n->op == &adj_op_const) { /* kernels only read it */
            slot *s = &e->slot[e->buffer[b].slot];
            s->data = (char *)((const adj_const_attrs *)n->attrs)->data;
            s->foreign = 1;
        }
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
        e->fetched[i] = o->fetch[i];
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
    e->arena = adj_alloc(&e->region.allocator, e->info.arena_bytes);
    e->storage = adj_alloc(&e->region.allocator, e->info.storage_bytes);
    if (e->arena == NULL || e->storage == NULL)
        return exec_fail(e, ADJ_ENOMEM,
                         "adj_exec_new: out of memory (arena %zu bytes, storage %zu bytes)",
                         e->info.arena_bytes, e->info.storage_bytes);
    /* What no kernel writes is NaN, not a likely 0. Leaves in storage get their values later. */
    memset(e->arena, 0xff, e->info.arena_bytes);
    for (int i = 0; i < e->n_slot; i++) {
        slot *s = &e->slot[i];
        if (s->foreign)
            continue;
        s->data = (s->kept ? e->storage : e->arena) + s->offset + (e->canaries ? CANARY : 0);
        if (s->kept && s->first != NONE)
            memset(s->data, 0xff, s->bytes);
    }
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

char *leaf_data(const adj_exec *e, const leaf *l)
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

double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static adj_status build(adj_exec *e, adj_graph *g, const adj_exec_opts *o)
{
    int n_root = 0;
    const adj_node **root = list_roots(e, o, &n_root);
    if (root == NULL || select_backends(e, o) != ADJ_OK ||
        copy_graph(e, g, n_root, root, o) != ADJ_OK || make_room(e, n_root) != ADJ_OK ||
        add_leaves(e) != ADJ_OK || list_results(e, o) != ADJ_OK ||
        form_groups(e, n_root, root) != ADJ_OK || check_values(e) != ADJ_OK ||
        tune_open(e, o) != ADJ_OK || plan_steps(e) != ADJ_OK || plan_fixed(e) != ADJ_OK ||
        plan_memory(e) != ADJ_OK ||
        check_memory(e, e->info.arena_bytes + e->info.storage_bytes) != ADJ_OK || bind(e) != ADJ_OK)
        return e->status;
    initialise(e, o->seed);
    if (e->canaries)
        draw_canaries(e, NONE);
    return ADJ_OK;
}

adj_status adj_exec_new(adj_graph *g, const adj_exec_opts *opts, adj_exec **out)
{
    double start = seconds_now();
    if (out == NULL)
        return ADJ_EARG;
    adj_allocator a = default_allocator();
    if (g != NULL)
        a = g->region.allocator;
    int own = opts != NULL && opts->allocator != NULL;
    int whole = !own || allocator_is_whole(opts->allocator);
    if (own && whole)
        a = *opts->allocator;
    adj_exec *e = *out = adj_alloc(&a, sizeof *e);
    if (e == NULL)
        return ADJ_ENOMEM;
    e->region.allocator = a;
    if (!whole)
        return exec_fail(e, ADJ_EARG, "adj_exec_new: allocator: a function is NULL");
    if (check_options(e, g, opts) != ADJ_OK)
        return e->status;
    adj_exec_opts o = *opts;
    if (read_environment(e, &o) != ADJ_OK)
        return e->status;
    if (omp_in_parallel())
        return exec_fail(e, ADJ_EARG, "adj_exec_new: called inside a parallel region");
    e->profile = opts->profile;
    e->math = opts->math;
    e->canaries = opts->canaries;
    e->no_fusion = o.no_fusion;
    if (opts->impl != NULL && (e->impl = region_string(&e->region, opts->impl)) == NULL)
        return exec_fail(e, ADJ_ENOMEM, "adj_exec_new: out of memory");
    if (opts->quarantine != NULL &&
        (e->quarantine = region_string(&e->region, opts->quarantine)) == NULL)
        return exec_fail(e, ADJ_ENOMEM, "adj_exec_new: out of memory");
    int callers = omp_get_max_threads();
    e->threads = opts->threads > 0 ? opts->threads : callers;
    omp_set_num_threads(e->threads);
    build(e, g, &o);
    tune_close(e);
    omp_set_num_threads(callers);
    e->info.plan_seconds = seconds_now() - start;
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
    adj_allocator a = e->region.allocator;
    drop_steps(e);
    for (int i = 0; i < e->n_backend; i++)
        if (e->is_open[i])
            e->backend[i]->close(e->opened[i]);
    adj_graph_free(e->graph);
    adj_release(&a, e->arena);
    adj_release(&a, e->storage);
    region_free(&e->region);
    adj_release(&a, e);
}
