/* build.c - the stages in which an executor is made: a private copy of the graph, groups of nodes,
 * steps, memory. Everything is planned and allocated here; run.c only walks the steps. */
#include <string.h>

#include "backends.h"
#include "base/hash.h"
#include "exec.h"
#include "graph/passes/passes.h"
#include "invariant.h"
#include "memory.h"
#include "run.h"
#include "select_kernel.h"

/* Lists fetches, next values and assigned leaves of the user's graph. */
static adj_status list_roots(adj_exec *e)
{
    const adj_exec_opts *o = &e->opts;
    const int n_update = adj_updates_count(o->updates);
    const adj_node **root = planning_alloc(e, (size_t)(o->n_fetch + 2 * n_update), sizeof *root);
    if (root == NULL)
        return e->status;
    int n = 0;
    for (int i = 0; i < o->n_fetch; i++)
        root[n++] = o->fetch[i];
    for (int i = 0; i < n_update; i++) {
        root[n++] = adj_updates_next_at(o->updates, i);
        root[n++] = adj_updates_leaf_at(o->updates, i);
    }
    e->planning->n_root = n;
    e->planning->root = root;
    return ADJ_OK;
}

/* Makes the private graph; the roots become its nodes. */
static adj_status copy_graph(adj_exec *e)
{
    e->plan.n_user = e->plan.user->n_node;
    if ((e->plan.image = exec_alloc(e, (size_t)e->plan.n_user, sizeof(adj_node *))) == NULL)
        return e->status;
    const pass_target target = {.opts = &e->opts,
                                .reference_only = e->backends.preferred == e->backends.fallback,
                                .has_backend = has_backend,
                                .has_non_reference_kernel = has_non_reference_kernel,
                                .backends = e};
    adj_status status = run_passes(&target, e->plan.user, e->planning->n_root, e->planning->root,
                                   e->plan.image, &e->region.allocator, &e->plan.graph);
    if (e->status != ADJ_OK)
        return e->status;
    if (status != ADJ_OK)
        return set_error(e, status, "%s",
                         e->plan.graph != NULL && e->plan.graph->status != ADJ_OK
                             ? e->plan.graph->message
                             : "adj_exec_new: out of memory");
    return ADJ_OK;
}

/* Room for the plan: each operand may cost a chain of two reorders, each root a reorder and a copy.
 */
static adj_status make_room(adj_exec *e)
{
    int n = e->plan.graph->n_node, operands = 0, n_leaf = 0;
    for (int id = 0; id < n; id++) {
        operands += e->plan.graph->node[id]->n_in;
        n_leaf += (e->plan.graph->node[id]->op->flags & ADJ_OP_LEAF) != 0;
    }
    e->planning->max_step = n + 2 * operands + 3 * e->planning->n_root;
    e->planning->max_buffer = 2 * e->planning->max_step + n_leaf;
    e->plan.step = exec_alloc(e, (size_t)e->planning->max_step, sizeof *e->plan.step);
    e->plan.buffer = exec_alloc(e, (size_t)e->planning->max_buffer, sizeof *e->plan.buffer);
    e->plan.slot = exec_alloc(e, (size_t)e->planning->max_buffer, sizeof *e->plan.slot);
    e->plan.leaf = exec_alloc(e, (size_t)n_leaf, sizeof *e->plan.leaf);
    e->plan.leaf_of = exec_alloc(e, (size_t)n, sizeof *e->plan.leaf_of);
    e->planning->first_buffer = exec_alloc(e, (size_t)n, sizeof *e->planning->first_buffer);
    for (int id = 0; id < n && e->status == ADJ_OK; id++)
        e->plan.leaf_of[id] = e->planning->first_buffer[id] = NONE;
    return e->status;
}

static adj_status add_leaves(adj_exec *e)
{
    for (int id = 0; id < e->plan.graph->n_node; id++) {
        const adj_node *n = e->plan.graph->node[id];
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
        e->plan.leaf_of[id] = e->plan.n_leaf;
        e->plan.leaf[e->plan.n_leaf++] = (leaf){.node = n, .buffer = b};
    }
    for (int id = 0; id < e->plan.n_user; id++)
        if (e->plan.image[id] != NULL && e->plan.leaf_of[e->plan.image[id]->id] != NONE &&
            (e->plan.user->node[id]->op->flags & ADJ_OP_LEAF))
            e->plan.leaf[e->plan.leaf_of[e->plan.image[id]->id]].user = e->plan.user->node[id];
    return ADJ_OK;
}

static adj_status list_results(adj_exec *e)
{
    const adj_exec_opts *o = &e->opts;
    e->plan.n_fetch = o->n_fetch;
    e->plan.n_update = adj_updates_count(o->updates);
    e->plan.fetch = exec_alloc(e, (size_t)e->plan.n_fetch, sizeof *e->plan.fetch);
    e->plan.fetched = exec_alloc(e, (size_t)e->plan.n_fetch, sizeof(adj_node *));
    e->plan.update = exec_alloc(e, (size_t)e->plan.n_update, sizeof *e->plan.update);
    if (e->status != ADJ_OK)
        return e->status;
    for (int i = 0; i < e->plan.n_fetch; i++)
        e->plan.fetched[i] = o->fetch[i];
    for (int i = 0; i < e->plan.n_update; i++) {
        e->plan.update[i].leaf =
            e->plan.leaf_of[e->plan.image[adj_updates_leaf_at(o->updates, i)->id]->id];
        e->plan.leaf[e->plan.update[i].leaf].is_assigned = 1;
        e->plan.update[i].value = e->plan.image[adj_updates_next_at(o->updates, i)->id];
        e->plan.update[i].next = NONE;
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
    for (int i = 0; i < e->plan.n_slot; i++) {
        slot *s = &e->plan.slot[i];
        if (!s->foreign)
            s->data = (s->kept ? e->memory.storage : e->memory.arena) + s->offset +
                      (e->opts.debug.canaries ? CANARY : 0);
    }
    for (int i = 0; i < e->plan.n_step; i++) {
        step *s = &e->plan.step[i];
        for (int k = 0; k < s->n_in; k++)
            ((const void **)s->call.in)[k] = slot_of(e, s->in[k])->data;
        for (int k = 0; k < s->n_out; k++)
            ((void **)s->call.out)[k] = slot_of(e, s->out[k])->data;
        s->call.message = e->run.message;
        bind_call(e, s, s->scratch != NONE ? e->plan.slot[s->scratch].data : NULL);
    }
}

/* Room for what the runs leave. */
static adj_status prepare_run(adj_exec *e)
{
    plan *p = &e->plan;
    for (int i = 0; i < p->n_step; i++) {
        p->step[i].sums = p->n_sum;
        p->n_sum += p->step[i].n_in + p->step[i].n_out;
    }
    e->run.version = exec_alloc(e, (size_t)p->n_leaf, sizeof *e->run.version);
    e->run.seconds = exec_alloc(e, (size_t)p->n_step, sizeof *e->run.seconds);
    if (e->opts.debug.checksums)
        e->run.sums =
            exec_alloc(e, (size_t)(p->n_sum + p->n_fetch + p->n_update), sizeof *e->run.sums);
    return e->status;
}

/* Adds up what a run reads and writes. */
static adj_status count_moved_bytes(adj_exec *e)
{
    for (int i = 0; i < e->plan.n_step; i++) {
        const step *s = &e->plan.step[i];
        if (s->invariance != RUN_VARIANT)
            continue;
        e->info.read_bytes += bytes_of_buffers(e, s->n_in, s->in);
        e->info.written_bytes += bytes_of_buffers(e, s->n_out, s->out);
    }
    return ADJ_OK;
}

/* Memory for arena and storage. */
static adj_status bind(adj_exec *e)
{
    e->memory.arena = adj_alloc(&e->region.allocator, e->info.arena_bytes);
    e->memory.storage = adj_alloc(&e->region.allocator, e->info.storage_bytes);
    if (e->memory.arena == NULL || e->memory.storage == NULL)
        return set_error(e, ADJ_ENOMEM,
                         "adj_exec_new: out of memory (arena %zu bytes, storage %zu bytes)",
                         e->info.arena_bytes, e->info.storage_bytes);
    /* What no kernel writes is NaN, not a likely 0. Leaves in storage get their values later. */
    memset(e->memory.arena, 0xff, e->info.arena_bytes);
    point_steps(e);
    for (int i = 0; i < e->plan.n_slot; i++)
        if (e->plan.slot[i].kept && !e->plan.slot[i].foreign && e->plan.slot[i].first != NONE)
            memset(e->plan.slot[i].data, 0xff, e->plan.slot[i].bytes);
    return ADJ_OK;
}

/* Draws every param and state; the stream is the name's hash, so that a parameter starts the same
 * in every graph. Of the leaves only inputs are not set now. */
static void draw_parameters(adj_exec *e)
{
    for (int i = 0; i < e->plan.n_leaf; i++) {
        const leaf *l = &e->plan.leaf[i];
        const adj_leaf_attrs *a = l->node->attrs;
        e->run.version[i] = l->node->op != &adj_op_input;
        if (!(l->node->op->flags & ADJ_OP_KEPT))
            continue;
        uint64_t stream = hash_text(HASH_START, adj_node_name(l->node));
        adj_draw(l->node->type.dtype, leaf_data(e, l), adj_shape_elems(l->node->type.shape),
                 (adj_init){(adj_init_kind)a->init, a->a, a->b}, e->opts.seed, stream);
    }
}

/* Sets a warning if most products of a half type run in f32 kernels between casts (half_in_f32.c).
 */
static void note_products_in_f32(adj_exec *e)
{
    const adj_precision precision = e->opts.precision;
    int products = 0, in_f32 = 0;
    for (int id = 0; id < e->plan.graph->n_node; id++) {
        const adj_node *n = e->plan.graph->node[id];
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

/* Gives the values that are there before the first run. */
static adj_status fill(adj_exec *e)
{
    draw_parameters(e);
    note_products_in_f32(e);
    if (e->opts.debug.canaries)
        draw_canaries(e, NONE);
    return ADJ_OK;
}

/* The stages in their order. Each returns e->status; the first that fails is the last. */
static adj_status (*const stages[])(adj_exec *e) = {
    list_roots,
    select_backends,
    copy_graph,
    make_room,
    add_leaves,
    list_results,
    find_invariant_values,
    form_groups,
    check_values,
    tune_open,
    open_progressing,
    plan_steps,
    plan_invariants,
    plan_memory,
    prepare_run,
    count_moved_bytes,
    check_plan,
    bind,
    fill,
};

adj_status build_executor(adj_exec *e, const adj_graph *g)
{
    e->plan.user = g;
    e->planning->roofline = roofline_nominal();
    for (size_t i = 0; i < sizeof stages / sizeof *stages && e->status == ADJ_OK; i++)
        (void)stages[i](e);
    return e->status;
}
