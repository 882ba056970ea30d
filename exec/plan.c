/* plan.c - layouts and reorders: turns the ordered groups into steps over buffers.
 *
 * The kernel selected for a group (select_kernel.c) determines the layouts of its operands. A value
 * has at most one buffer per layout, so two readers share one reorder. A step owns the state of its
 * prepared kernel or reorder; append_step transfers the ownership to the plan. */
#include <string.h>

#include "exec.h"
#include "invariant.h"
#include "planning.h"
#include "select_kernel.h"

const char *layout_text(const adj_exec *e, const buffer *b)
{
    return layout_name_of(b->layout != NULL ? e->backends.list[b->backend] : NULL, b->layout);
}

/* ---- slots and buffers ---- */

int new_slot(adj_exec *e, size_t bytes)
{
    plan *p = &e->plan;
    slot *all = region_grow(&e->region, p->slot, p->n_slot, &e->planning->max_slot, sizeof *all);
    if (all == NULL)
        return no_memory(e), NONE;
    p->slot = all;
    all[p->n_slot] = (slot){.bytes = bytes, .first = NONE, .last = NONE, .into = NONE};
    return p->n_slot++;
}

/* Returns a new buffer in the slot, or NONE if that failed or slot is NONE. */
static int add_buffer(adj_exec *e, const adj_node *value, const adj_layout *layout, int backend,
                      int slot)
{
    plan *p = &e->plan;
    planning *c = e->planning;
    const int i = p->n_buffer;
    if (slot == NONE)
        return NONE;
    buffer *all = region_grow(&e->region, p->buffer, i, &c->max_buffer, sizeof *all);
    if (all == NULL)
        return no_memory(e), NONE;
    p->buffer = all;
    all[p->n_buffer++] = (buffer){.value = value,
                                  .layout = layout,
                                  .backend = layout != NULL ? backend : NONE,
                                  .slot = slot,
                                  .next = c->first_buffer[value->id]};
    return c->first_buffer[value->id] = i;
}

int new_buffer(adj_exec *e, const adj_node *value, const adj_layout *layout, int backend)
{
    const adj_backend *owner = layout != NULL ? e->backends.list[backend] : NULL;
    const size_t bytes = layout_bytes_of(owner, layout, value->type);
    return add_buffer(e, value, layout, backend, new_slot(e, bytes));
}

int find_buffer(const adj_exec *e, const adj_node *value, const adj_layout *layout)
{
    int b = e->planning->first_buffer[value->id];
    while (b != NONE && e->plan.buffer[b].layout != layout)
        b = e->plan.buffer[b].next;
    return b;
}

int source_buffer(const adj_exec *e, const adj_node *value)
{
    int plain = find_buffer(e, value, NULL);
    return plain != NONE ? plain : e->planning->first_buffer[value->id];
}

/* ---- steps ---- */

adj_status alloc_operands(adj_exec *e, region *r, step *s, int n_in, int n_out)
{
    const size_t n = (size_t)n_in + (size_t)n_out;
    int *buffer = region_alloc(r, n, sizeof *buffer);
    void **pointer = region_alloc(r, 2 * n, sizeof *pointer);
    if (buffer == NULL || pointer == NULL)
        return no_memory(e);
    s->n_in = n_in;
    s->n_out = n_out;
    s->in = buffer;
    s->out = buffer + n_in;
    s->call.in = (const void *const *)pointer;
    s->call.out = pointer + n_in;
    s->prep.in = (const adj_layout **)(pointer + n);
    s->prep.out = s->prep.in + n_in;
    return ADJ_OK;
}

/* Appends s, complete except for its scratch, to the plan. If that fails, s is dropped. */
static adj_status append_step(adj_exec *e, const step *s)
{
    plan *p = &e->plan;
    step *all = region_grow(&e->region, p->step, p->n_step, &e->planning->max_step, sizeof *all);
    if (all == NULL)
        no_memory(e);
    else
        p->step = all;
    if (e->status == ADJ_OK)
        all[p->n_step++] = *s;
    else
        drop_step(e, s);
    return e->status;
}

/* Appends a reorder from buffer `from` to a new buffer in layout. Returns the new buffer, or NONE
 * if that failed. One of the two layouts is plain. */
static int reorder(adj_exec *e, int from, const adj_layout *layout, int backend)
{
    const buffer *source = &e->plan.buffer[from];
    const adj_node *value = source->value;
    const int owner = layout != NULL ? backend : source->backend;
    const adj_backend *b = e->backends.list[owner];
    step s = {.kind = STEP_REORDER, .backend = owner, .scratch = NONE};
    if (alloc_operands(e, &e->region, &s, 1, 1) != ADJ_OK)
        return NONE;
    adj_status status = b->reorder_prepare(e->backends.opened[owner], source->layout, layout,
                                           value->type, &s.prep.state, &s.prep.scratch);
    if (status != ADJ_OK) {
        set_error(e, status, "adj_exec_new: %s cannot reorder %s %s", b->name, value->op->name,
                  adj_shape_text(value->type.shape).s);
        return NONE;
    }
    s.in[0] = from;
    s.out[0] = new_buffer(e, value, layout, backend);
    return append_step(e, &s) == ADJ_OK ? s.out[0] : NONE;
}

/* Returns the buffer that holds value in layout (of backend; NULL: plain), by reordering if there
 * is none yet, or NONE if that failed. */
static int want_buffer(adj_exec *e, const adj_node *value, const adj_layout *layout, int backend)
{
    const int found = find_buffer(e, value, layout);
    if (found != NONE)
        return found;
    int from = source_buffer(e, value);
    if (from == NONE) {
        set_error(e, ADJ_EBACKEND, "adj_exec_new: plan: %s is read before it is computed",
                  value->op->name);
        e->plan_is_wrong = 1;
        return NONE;
    }
    if (layout != NULL && e->plan.buffer[from].layout != NULL)
        from = reorder(e, from, NULL, NONE);
    return from != NONE ? reorder(e, from, layout, backend) : NONE;
}

/* ---- the step of a group ---- */

static int leaves_group(const adj_exec *e, const node_group *g, const adj_node *n)
{
    const adj_uses *u = &e->planning->uses[n->id];
    int leaves = u->is_root;
    for (int i = 0; i < u->n_user && !leaves; i++)
        leaves = adj_position(g->n, g->node, u->user[i]) < 0;
    return leaves;
}

/* Makes *s a step for the group, to be prepared. */
static adj_status describe_step(adj_exec *e, const node_group *g, step *s)
{
    int max_in = 0, n_out = 0;
    for (int i = 0; i < g->n; i++)
        max_in += g->node[i]->n_in;
    const adj_node **in = exec_alloc(e, (size_t)max_in, sizeof(adj_node *));
    const adj_node **leaving = exec_alloc(e, (size_t)g->n, sizeof(adj_node *));
    if (e->status != ADJ_OK)
        return e->status;
    for (int i = 0; i < g->n; i++)
        if (leaves_group(e, g, g->node[i]))
            leaving[n_out++] = g->node[i];
    const int n_in = list_operands(g->n, g->node, in);
    *s = (step){.kind = STEP_KERNEL,
                .proposer = g->kernel,
                .group = {g->n, g->node, n_in, in, n_out, leaving},
                .scratch = NONE};
    return alloc_operands(e, &e->region, s, n_in, n_out);
}

/* Appends a prepared step, after the reorders that its operands need. If that fails, the step is
 * dropped. */
static adj_status place_step(adj_exec *e, step *s)
{
    const adj_group *g = &s->group;
    for (int i = 0; i < g->n_in && e->status == ADJ_OK; i++)
        s->in[i] = want_buffer(e, g->in[i], s->prep.in[i], s->backend);
    for (int i = 0; i < g->n_out && e->status == ADJ_OK; i++)
        s->out[i] = new_buffer(e, g->out[i], s->prep.out[i], s->backend);
    return append_step(e, s);
}

/* Plans a view: a second buffer in its operand's slot. */
static adj_status plan_view(adj_exec *e, const adj_node *view)
{
    const int from = want_buffer(e, view->in[0], NULL, NONE);
    if (from != NONE)
        add_buffer(e, view, NULL, NONE, e->plan.buffer[from].slot);
    return e->status;
}

/* True if no result of the group has elements. */
static int is_empty(const adj_group *g)
{
    for (int i = 0; i < g->n_out; i++)
        if (adj_shape_elems(g->out[i]->type.shape) > 0)
            return 0;
    return 1;
}

/* ---- epilogues: nodes that the kernel of a group can compute in the same pass ----
 *
 * Groups are formed before kernels are selected, so that kernels of several backends compete for
 * the same nodes. Nodes behind a group, such as a relu behind a convolution, can be fused by some
 * of these kernels only. So the kernel that was selected proposes its epilogue when the group is
 * planned. It takes whole later groups, or the first node of a group of two. Their other operands
 * have been computed by then, so no cycle can arise. Tuning times the group without its epilogue,
 * and each later group as a whole; the second node of a group of two then gets the kernel with the
 * least estimate. */

/* True if both nodes belong to one phase: forward, backward, recomputation or updates. A group with
 * a node of a later phase would be computed too early, and kept in memory too long. */
static int is_of_same_time(const adj_node *a, const adj_node *b)
{
    return a->role == b->role && (a->clone != 0) == (b->clone != 0);
}

/* True if the node is in a group from number `next` on and may leave it with the n proposed nodes:
 * all nodes of the group leave, or the first of two, which leaves a single node. The rest of a
 * larger group might be supported by no kernel. */
static int may_leave(const planning *c, int next, int n, const adj_node *node)
{
    const node_group *g = &c->group[c->group_of[node->id]];
    int leaving = 0;
    for (int i = 0; i < g->n; i++)
        leaving += adj_position(n, c->proposed, g->node[i]) >= 0;
    return g >= &c->group[next] && adj_position(g->n, g->node, node) >= 0 &&
           (leaving == g->n || (g->n == 2 && g->node[0] == node));
}

/* True if the backend may compute the n proposed nodes together with group g: their operands have
 * been computed, and they change as often as g, in every run or only with the parameters. */
static int may_follow(const adj_exec *e, const node_group *g, int next, int n, int backend)
{
    const planning *c = e->planning;
    int may = 1;
    for (int i = 0; i < n && may; i++) {
        const adj_node *node = c->proposed[i];
        may = may_leave(c, next, n, node) && may_compute(e, backend, node->op) &&
              is_of_same_time(node, g->node[0]) &&
              is_invariant(e, node) == is_invariant(e, g->node[0]);
        for (int k = 0; k < node->n_in && may; k++) {
            const adj_node *x = node->in[k];
            may = c->first_buffer[x->id] != NONE || adj_position(g->n, g->node, x) >= 0 ||
                  adj_position(i, c->proposed, x) >= 0;
        }
    }
    return may;
}

/* Removes the n proposed nodes from their groups. */
static void take_later(const planning *c, int n)
{
    for (int i = 0; i < n; i++) {
        node_group *g = &c->group[c->group_of[c->proposed[i]->id]];
        const int is_torn = g->n == 2 && adj_position(n, c->proposed, g->node[1]) < 0;
        *g = (node_group){.n = is_torn, .node = g->node + is_torn};
    }
}

/* Prepares the nodes of g and the proposed ones for the kernel of g. ADJ_ENOKERNEL: it refuses, or
 * another implementation would run. */
static adj_status prepare_wider(adj_exec *e, const node_group *g, int n, const step *planned,
                                step *wider)
{
    const adj_node **node = exec_alloc(e, (size_t)(g->n + n), sizeof(adj_node *));
    if (node == NULL)
        return e->status;
    memcpy(node, g->node, (size_t)g->n * sizeof(adj_node *));
    memcpy(node + g->n, e->planning->proposed, (size_t)n * sizeof(adj_node *));
    const node_group all = {.n = g->n + n, .node = node, .kernel = g->kernel};
    if (describe_step(e, &all, wider) != ADJ_OK)
        return e->status;
    wider->why = planned->why;
    wider->tuned = planned->tuned;
    candidate c = {.backend = e->backends.list[planned->backend],
                   .opened = e->backends.opened[planned->backend],
                   .index = planned->backend,
                   .kernel = planned->kernel};
    const adj_status status = prepare_step(e, wider, &c);
    if (status != ADJ_OK || strcmp(wider->prep.impl, planned->prep.impl) == 0)
        return status;
    drop_step(e, wider);
    return ADJ_ENOKERNEL;
}

/* Adds the epilogue that the selected kernel can compute to its group: nodes of later groups, from
 * number `next` on. These groups become empty, or keep the second of their two nodes. */
static adj_status take_epilogue(adj_exec *e, const node_group *g, int next, step *planned)
{
    const planning *c = e->planning;
    const adj_kernel *kernel = planned->kernel;
    const adj_node *last = g->node[g->n - 1];
    if (kernel->epilogue == NULL || e->debug.no_fusion || planned->group.n_out != 1 ||
        planned->group.out[0] != last)
        return ADJ_OK;
    int n = kernel->epilogue(last, c->uses, e->plan.graph->n_node, c->proposed);
    for (step wider; n > 0 && e->status == ADJ_OK; n--) {
        if (!may_follow(e, g, next, n, planned->backend) ||
            prepare_wider(e, g, n, planned, &wider) != ADJ_OK)
            continue;
        take_later(c, n);
        drop_step(e, planned);
        *planned = wider;
        break;
    }
    return e->status;
}

/* ---- groups ---- */

/* Plans a group; next: number of the group behind it. */
static adj_status plan_group(adj_exec *e, const node_group *g, int next)
{
    if (g->n == 1 && (g->node[0]->op->flags & ADJ_OP_VIEW))
        return plan_view(e, g->node[0]);
    step s;
    if (describe_step(e, g, &s) != ADJ_OK)
        return e->status;
    if (is_empty(&s.group)) { /* only the empty values have to be there */
        for (int i = 0; i < s.group.n_out; i++)
            new_buffer(e, s.group.out[i], NULL, NONE);
        return e->status;
    }
    const adj_status status = select_kernel(e, &s);
    if (status == ADJ_OK) {
        take_epilogue(e, g, next, &s);
        return place_step(e, &s);
    }
    for (int i = 0; i < g->n && e->status == ADJ_OK; i++) { /* no kernel takes them together */
        node_group one = {.n = 1, .node = &g->node[i]};
        plan_group(e, &one, next);
    }
    return e->status;
}

/* ---- the end of a run ---- */

/* Appends a copy of a leaf as it was before the updates; returns its buffer, or NONE. */
static int copy_of(adj_exec *e, int from)
{
    step s = {.kind = STEP_COPY, .scratch = NONE};
    if (alloc_operands(e, &e->region, &s, 1, 1) != ADJ_OK)
        return NONE;
    s.in[0] = from;
    s.out[0] = new_buffer(e, e->plan.buffer[from].value, NULL, NONE);
    return append_step(e, &s) == ADJ_OK ? s.out[0] : NONE;
}

/* True if an update assigns the leaf in this buffer, or the leaf that it views. */
static int is_assigned(const plan *p, int b)
{
    const int i = p->leaf_of[viewed_node(p->buffer[b].value)->id];
    return i != NONE && p->leaf[i].update != NONE &&
           p->buffer[p->leaf[i].buffer].slot == p->buffer[b].slot;
}

/* Returns the buffer that holds the value of a node of the user's graph after the steps, for a
 * fetch or an update; for a leaf that is assigned, a copy. NONE: failed. */
static int final_buffer(adj_exec *e, const adj_node *user)
{
    const int b = want_buffer(e, e->plan.image[user->id], NULL, NONE);
    return b != NONE && is_assigned(&e->plan, b) ? copy_of(e, b) : b;
}

adj_status plan_steps(adj_exec *e)
{
    plan *p = &e->plan;
    const planning *c = e->planning;
    for (int i = 0; i < c->n_group && e->status == ADJ_OK; i++)
        if (c->group[i].n > 0)
            plan_group(e, &c->group[i], i + 1);
    for (int i = 0; i < p->n_fetch && e->status == ADJ_OK; i++)
        p->fetch[i].buffer = final_buffer(e, p->fetch[i].node);
    for (int i = 0; i < p->n_update && e->status == ADJ_OK; i++)
        p->update[i].next = final_buffer(e, adj_updates_next_at(e->opts.updates, i));
    return e->status;
}
