/* build.c - the stages in which an executor is made: a private copy of the graph, groups of nodes,
 * steps, memory. Everything is planned and allocated here; run.c only walks the steps. */
#include <string.h>

#include "backends.h"
#include "base/hash.h"
#include "exec.h"
#include "graph/passes/passes.h"

typedef struct { /* what an executor is made of */
    const adj_graph *graph;
    const adj_exec_opts *opts;
    int n_root; /* nodes of graph that the private copy must keep */
    const adj_node **root;
} request;

/* Lists fetches, next values and assigned leaves as the roots. */
static adj_status list_roots(adj_exec *e, request *r)
{
    const adj_exec_opts *o = r->opts;
    const int n_update = adj_updates_count(o->updates);
    r->root = exec_alloc(e, (size_t)(o->n_fetch + 2 * n_update), sizeof(*r->root));
    if (r->root == NULL)
        return e->status;
    for (int i = 0; i < o->n_fetch; i++)
        r->root[r->n_root++] = o->fetch[i];
    for (int i = 0; i < n_update; i++) {
        r->root[r->n_root++] = adj_updates_next_at(o->updates, i);
        r->root[r->n_root++] = adj_updates_leaf_at(o->updates, i);
    }
    return ADJ_OK;
}

static adj_status choose_backends(adj_exec *e, const request *r)
{
    return select_backends(e, r->opts);
}

static adj_status copy_graph(adj_exec *e, const request *r)
{
    const adj_graph *g = r->graph;
    e->user = g;
    e->n_user = g->n_node;
    if ((e->image = exec_alloc(e, (size_t)g->n_node, sizeof(adj_node *))) == NULL)
        return e->status;
    const pass_target target = {.opts = r->opts,
                                .reference_only = e->preferred == e->fallback,
                                .has_backend = has_backend,
                                .has_non_reference_kernel = has_non_reference_kernel,
                                .backends = e};
    adj_status status =
        run_passes(&target, g, r->n_root, r->root, e->image, &e->region.allocator, &e->graph);
    if (e->status != ADJ_OK)
        return e->status;
    if (status != ADJ_OK)
        return set_error(e, status, "%s",
                         e->graph != NULL && e->graph->status != ADJ_OK
                             ? e->graph->message
                             : "adj_exec_new: out of memory");
    return ADJ_OK;
}

/* Room for the plan: each operand may cost a chain of two reorders, each root a reorder and a copy.
 */
static adj_status make_room(adj_exec *e, const request *r)
{
    int n = e->graph->n_node, operands = 0, n_leaf = 0;
    for (int id = 0; id < n; id++) {
        operands += e->graph->node[id]->n_in;
        n_leaf += (e->graph->node[id]->op->flags & ADJ_OP_LEAF) != 0;
    }
    e->max_step = n + 2 * operands + 3 * r->n_root;
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
            slot *s = slot_of(e, b);
            s->data = (char *)((const adj_const_attrs *)n->attrs)->data;
            s->foreign = 1;
        }
        e->leaf_of[id] = e->n_leaf;
        const int is_set = n->op == &adj_op_const;
        e->leaf[e->n_leaf++] = (leaf){.node = n, .buffer = b, .version = is_set};
    }
    for (int id = 0; id < e->n_user; id++)
        if (e->image[id] != NULL && e->leaf_of[e->image[id]->id] != NONE &&
            (e->user->node[id]->op->flags & ADJ_OP_LEAF))
            e->leaf[e->leaf_of[e->image[id]->id]].user = e->user->node[id];
    return ADJ_OK;
}

static adj_status list_results(adj_exec *e, const request *r)
{
    const adj_exec_opts *o = r->opts;
    e->n_fetch = o->n_fetch;
    e->n_update = adj_updates_count(o->updates);
    e->fetch = exec_alloc(e, (size_t)e->n_fetch, sizeof *e->fetch);
    e->fetched = exec_alloc(e, (size_t)e->n_fetch, sizeof(adj_node *));
    e->update = exec_alloc(e, (size_t)e->n_update, sizeof *e->update);
    if (e->status != ADJ_OK)
        return e->status;
    for (int i = 0; i < e->n_fetch; i++)
        e->fetched[i] = o->fetch[i];
    for (int i = 0; i < e->n_update; i++) {
        e->update[i].leaf = e->leaf_of[e->image[adj_updates_leaf_at(o->updates, i)->id]->id];
        e->leaf[e->update[i].leaf].is_assigned = 1;
        e->update[i].value = e->image[adj_updates_next_at(o->updates, i)->id];
        e->update[i].next = NONE;
    }
    return ADJ_OK;
}

static adj_status check_plan(adj_exec *e)
{
    return check_memory(e, e->info.arena_bytes + e->info.storage_bytes);
}

/* Every pointer that a step will use; those to what is foreign are its owner's. */
static void point_steps(adj_exec *e)
{
    for (int i = 0; i < e->n_slot; i++) {
        slot *s = &e->slot[i];
        if (!s->foreign)
            s->data = (s->kept ? e->storage : e->arena) + s->offset + (e->canaries ? CANARY : 0);
    }
    for (int i = 0; i < e->n_step; i++) {
        step *s = &e->step[i];
        for (int k = 0; k < s->n_in; k++)
            ((const void **)s->call.in)[k] = slot_of(e, s->in[k])->data;
        for (int k = 0; k < s->n_out; k++)
            ((void **)s->call.out)[k] = slot_of(e, s->out[k])->data;
        bind_call(e, s, s->scratch != NONE ? e->slot[s->scratch].data : NULL);
    }
}

/* What belongs to a run of each step. */
static adj_status alloc_calls(adj_exec *e)
{
    for (int i = 0; i < e->n_step; i++) {
        step *s = &e->step[i];
        if ((s->call.message = exec_alloc(e, ADJ_WHY, 1)) == NULL ||
            (e->checksums &&
             (s->sums = exec_alloc(e, (size_t)(s->n_in + s->n_out), sizeof *s->sums)) == NULL))
            return e->status;
    }
    if (e->checksums)
        e->end_sums = exec_alloc(e, (size_t)(e->n_fetch + e->n_update), sizeof *e->end_sums);
    return e->status;
}

/* Memory for arena and storage. */
static adj_status bind(adj_exec *e)
{
    e->arena = adj_alloc(&e->region.allocator, e->info.arena_bytes);
    e->storage = adj_alloc(&e->region.allocator, e->info.storage_bytes);
    if (e->arena == NULL || e->storage == NULL)
        return set_error(e, ADJ_ENOMEM,
                         "adj_exec_new: out of memory (arena %zu bytes, storage %zu bytes)",
                         e->info.arena_bytes, e->info.storage_bytes);
    /* What no kernel writes is NaN, not a likely 0. Leaves in storage get their values later. */
    memset(e->arena, 0xff, e->info.arena_bytes);
    point_steps(e);
    for (int i = 0; i < e->n_slot; i++)
        if (e->slot[i].kept && !e->slot[i].foreign && e->slot[i].first != NONE)
            memset(e->slot[i].data, 0xff, e->slot[i].bytes);
    return ADJ_OK;
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
        uint64_t stream = hash_text(HASH_START, adj_node_name(l->node));
        adj_draw(l->node->type.dtype, leaf_data(e, l), adj_shape_elems(l->node->type.shape),
                 (adj_init){(adj_init_kind)a->init, a->a, a->b}, seed, stream);
        l->version = 1;
    }
}

/* Sets a warning if most products of a half type run in f32 kernels between casts (half_in_f32.c).
 */
static void note_products_in_f32(adj_exec *e, adj_precision precision)
{
    int products = 0, in_f32 = 0;
    for (int id = 0; id < e->graph->n_node; id++) {
        const adj_node *n = e->graph->node[id];
        products += (n->op->flags & ADJ_OP_HALF_ALWAYS) != 0;
        in_f32 += (n->op->flags & ADJ_OP_HALF_ALWAYS) != 0 && n->type.dtype == ADJ_F32;
    }
    if (precision == ADJ_PRECISION_AS_BUILT || 2 * in_f32 <= products || e->warning[0] != '\0')
        return;
    snprintf(
        e->warning, sizeof e->warning,
        "note: %d of %d convolutions and products have no %s kernel on this CPU: they run in f32 "
        "between casts and gain no speed",
        in_f32, products, precision == ADJ_PRECISION_F16 ? "f16" : "bf16");
}

static adj_status group_nodes(adj_exec *e, const request *r)
{
    return form_groups(e, r->n_root, r->root);
}

static adj_status start_tuning(adj_exec *e, const request *r) { return tune_open(e, r->opts); }

/* Gives the values that are there before the first run. */
static adj_status fill(adj_exec *e, const request *r)
{
    initialise(e, r->opts->seed);
    note_products_in_f32(e, r->opts->precision);
    if (e->canaries)
        draw_canaries(e, NONE);
    return ADJ_OK;
}

/* The stages in their order. Each ends with e->status; the first that fails is the last. */
static const struct {
    adj_status (*of_request)(adj_exec *e, const request *r); /* NULL: the next one */
    adj_status (*of_plan)(adj_exec *e);
} stages[] = {
    {.of_request = choose_backends},
    {.of_request = copy_graph},
    {.of_request = make_room},
    {.of_plan = add_leaves},
    {.of_request = list_results},
    {.of_plan = find_invariant_values},
    {.of_request = group_nodes},
    {.of_plan = check_values},
    {.of_request = start_tuning},
    {.of_plan = open_progressing},
    {.of_plan = plan_steps},
    {.of_plan = plan_invariants},
    {.of_plan = plan_memory},
    {.of_plan = alloc_calls},
    {.of_plan = count_moved_bytes},
    {.of_plan = check_plan},
    {.of_plan = bind},
    {.of_request = fill},
};

adj_status build_executor(adj_exec *e, const adj_graph *g, const adj_exec_opts *o)
{
    request r = {.graph = g, .opts = o};
    e->roofline = roofline_nominal();
    adj_status status = list_roots(e, &r);
    for (size_t i = 0; i < sizeof stages / sizeof *stages && status == ADJ_OK; i++)
        status = stages[i].of_request != NULL ? stages[i].of_request(e, &r) : stages[i].of_plan(e);
    return status;
}
