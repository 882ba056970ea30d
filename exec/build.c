/* build.c - makes an executor in stages: a private copy of the graph, groups of nodes, steps,
 * memory. Everything is planned and allocated here; run.c only executes the steps. */
#include <string.h>

#include "base/hash.h"
#include "exec.h"
#include "graph/passes/passes.h"
#include "invariant.h"
#include "memory.h"
#include "planning.h"
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
    plan *p = &e->plan;
    p->n_user = p->user->n_node;
    if ((p->image = exec_alloc(e, (size_t)p->n_user, sizeof(adj_node *))) == NULL)
        return e->status;
    const pass_target target = {.opts = &e->opts,
                                .after_pass = e->internal.after_pass,
                                .user = e->internal.pass_user,
                                .params_vary = e->internal.varying != NULL,
                                .reference_only = e->backends.preferred == e->backends.fallback,
                                .has_backend = has_backend,
                                .has_non_reference_kernel = has_non_reference_kernel,
                                .backends = e};
    adj_status status = run_passes(&target, p->user, e->planning->n_root, e->planning->root,
                                   p->image, &e->region.allocator, &p->graph);
    const int is_told = p->graph != NULL && p->graph->status != ADJ_OK;
    if (status == ADJ_OK || e->status != ADJ_OK)
        return e->status;
    return is_told ? set_error(e, status, "%s", p->graph->message) : no_memory(e);
}

/* Makes a buffer for every leaf, in the storage or at the data of a constant. */
static adj_status add_leaves(adj_exec *e)
{
    plan *p = &e->plan;
    const int n = p->graph->n_node;
    int *first_buffer = e->planning->first_buffer = planning_alloc(e, (size_t)n, sizeof(int));
    p->leaf_of = exec_alloc(e, (size_t)n, sizeof *p->leaf_of);
    p->leaf = exec_alloc(e, (size_t)n, sizeof *p->leaf);
    for (int id = 0; id < n && e->status == ADJ_OK; id++)
        p->leaf_of[id] = first_buffer[id] = NONE;
    for (int id = 0; id < n && e->status == ADJ_OK; id++) {
        const adj_node *node = p->graph->node[id];
        const int b = node->op->flags & ADJ_OP_LEAF ? new_buffer(e, node, NULL, NONE) : NONE;
        if (b == NONE)
            continue;
        slot *s = slot_of(p, b);
        s->kept = 1;
        if (node->op == &adj_op_const) { /* kernels only read it */
            s->data = (char *)((const adj_const_attrs *)node->attrs)->data;
            s->foreign = 1;
        }
        p->leaf_of[id] = p->n_leaf;
        p->leaf[p->n_leaf++] = (leaf){.node = node, .buffer = b, .update = NONE};
    }
    for (int id = 0; id < p->n_user && e->status == ADJ_OK; id++) {
        const adj_node *image = p->image[id];
        if (image != NULL && p->leaf_of[image->id] != NONE &&
            (p->user->node[id]->op->flags & ADJ_OP_LEAF))
            p->leaf[p->leaf_of[image->id]].user = p->user->node[id];
    }
    return e->status;
}

static adj_status list_results(adj_exec *e)
{
    const adj_exec_opts *o = &e->opts;
    plan *p = &e->plan;
    p->n_fetch = o->n_fetch;
    p->n_update = adj_updates_count(o->updates);
    p->fetch = exec_alloc(e, (size_t)p->n_fetch, sizeof *p->fetch);
    p->update = exec_alloc(e, (size_t)p->n_update, sizeof *p->update);
    for (int i = 0; i < p->n_fetch && e->status == ADJ_OK; i++)
        p->fetch[i] = (fetch){.node = o->fetch[i], .buffer = NONE};
    for (int i = 0; i < p->n_update && e->status == ADJ_OK; i++) {
        const int l = p->leaf_of[p->image[adj_updates_leaf_at(o->updates, i)->id]->id];
        p->update[i] = (update){.leaf = l, .next = NONE};
        p->leaf[l].update = i;
    }
    return e->status;
}

/* Counts the figures of adj_exec_stats. */
static adj_status count_steps(adj_exec *e)
{
    const plan *p = &e->plan;
    adj_exec_info *info = &e->info;
    exec_details *details = &e->details;
    info->steps = p->n_step;
    for (int i = 0; i < p->n_step; i++) {
        const step *s = &p->step[i];
        details->reorders += s->kind == STEP_REORDER;
        info->naive_steps += s->kind == STEP_KERNEL && s->backend == e->backends.fallback;
        if (s->is_invariant)
            continue;
        details->read_bytes += bytes_of_buffers(p, s->n_in, s->in);
        details->written_bytes += bytes_of_buffers(p, s->n_out, s->out);
    }
    for (int id = 0; id < p->graph->n_node; id++) {
        const adj_node *n = p->graph->node[id];
        details->recomputed += n->clone == 1 && !(n->op->flags & ADJ_OP_VIEW);
    }
    return ADJ_OK;
}

/* Allocates the state that runs leave. */
static adj_status prepare_runs(adj_exec *e)
{
    const plan *p = &e->plan;
    exec_run *r = &e->run;
    r->version = exec_alloc(e, (size_t)p->n_leaf, sizeof *r->version);
    r->seconds = exec_alloc(e, (size_t)p->n_step, sizeof *r->seconds);
    return e->status;
}

void point_steps(adj_exec *e)
{
    const plan *p = &e->plan;
    for (slot *s = p->slot; s < p->slot + p->n_slot; s++)
        if (!s->foreign)
            s->data = (s->kept ? e->memory.storage : e->memory.arena).data + s->offset + p->gap;
    for (int i = 0; i < p->n_step; i++) {
        step *s = &p->step[i];
        for (int k = 0; k < s->n_in; k++)
            ((const void **)s->call.in)[k] = slot_of(p, s->in[k])->data;
        for (int k = 0; k < s->n_out; k++)
            ((void **)s->call.out)[k] = slot_of(p, s->out[k])->data;
        s->call.message = e->run.message;
        bind_call(e, s, s->scratch != NONE ? p->slot[s->scratch].data : NULL);
    }
}

static int alloc_area(const adj_exec *e, size_t bytes, exec_area *a)
{
    *a = (exec_area){adj_alloc(&e->region.allocator, bytes), bytes};
    return a->data != NULL;
}

/* Allocates arena and storage. */
static adj_status bind(adj_exec *e)
{
    exec_memory *m = &e->memory;
    const size_t arena = e->info.arena_bytes, storage = e->info.storage_bytes;
    if (check_memory(e, arena + storage) != ADJ_OK)
        return e->status;
    if (!alloc_area(e, arena, &m->arena) || !alloc_area(e, storage, &m->storage))
        return set_error(e, ADJ_ENOMEM,
                         "adj_exec_new: out of memory (arena %zu bytes, storage %zu bytes)", arena,
                         storage);
    point_steps(e);
    return ADJ_OK;
}

/* Fills the memory with NaN, so that bytes that no kernel writes are not a plausible 0. Leaves get
 * their values later. */
static void fill_with_nan(const adj_exec *e)
{
    const plan *p = &e->plan;
    memset(e->memory.arena.data, 0xff, e->memory.arena.bytes);
    for (const slot *s = p->slot; s < p->slot + p->n_slot; s++)
        if (s->kept && !s->foreign && s->first != NONE)
            memset(s->data, 0xff, s->bytes);
}

/* Initializes every param, state and scalar input. The random stream is the hash of the name, so
 * that a parameter has the same initial values in every graph. Other inputs stay unset. */
static void draw_parameters(adj_exec *e)
{
    for (int i = 0; i < e->plan.n_leaf; i++) {
        const leaf *l = &e->plan.leaf[i];
        const adj_leaf_attrs *a = l->node->attrs;
        e->run.version[i] = l->node->op == &adj_op_const || a->is_drawn;
        if (l->node->op == &adj_op_const || !a->is_drawn)
            continue;
        uint64_t stream = hash_text(HASH_START, adj_node_name(l->node));
        adj_draw_leaf(a, l->node->type.dtype, leaf_data(&e->plan, l),
                      adj_shape_elems(l->node->type.shape), e->opts.seed, stream);
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

/* Sets the values that exist before the first run. Requires: a verified plan. */
static adj_status fill(adj_exec *e)
{
    fill_with_nan(e);
    draw_parameters(e);
    note_products_in_f32(e);
    if (e->debug.canaries)
        draw_canaries(&e->plan, NONE);
    return ADJ_OK;
}

/* The stages in order. Each returns e->status; a failure ends the list. */
static adj_status (*const stages[])(adj_exec *e) = {
    list_roots,   select_backends,
    copy_graph,   add_leaves,
    list_results, find_invariant_values,
    form_groups,  check_values,
    tune_open,    open_progressing,
    plan_steps,   plan_invariants,
    plan_memory,  count_steps,
    prepare_runs, bind,
    verify_plan,  fill,
};

adj_status build_executor(adj_exec *e, const adj_graph *g)
{
    e->plan.user = g;
    e->plan.gap = e->debug.canaries ? CANARY : 0;
    for (size_t i = 0; i < sizeof stages / sizeof *stages && e->status == ADJ_OK; i++)
        (void)stages[i](e);
    return e->status;
}
