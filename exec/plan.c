/* plan.c - layouts and reorders: turns groups, in order, into steps over buffers.
 *
 * The kernel that is selected for a group (select_kernel.c) says in which layouts it wants its
 * operands; a value gets at most one buffer per layout, so that two readers share one reorder. */
#include <string.h>

#include "exec.h"
#include "invariant.h"
#include "select_kernel.h"

const char *layout_text(const adj_exec *e, const buffer *b)
{
    return layout_name_of(b->layout != NULL ? e->backends.list[b->backend] : NULL, b->layout);
}

int new_buffer(adj_exec *e, const adj_node *value, const adj_layout *layout, int backend, int kept)
{
    if (e->plan.n_buffer >= e->planning->max_buffer || e->plan.n_slot >= e->planning->max_buffer) {
        set_error(e, ADJ_EBACKEND, "adj_exec_new: the plan needs more buffers than %d",
                  e->planning->max_buffer);
        return NONE;
    }
    const adj_backend *owner = layout != NULL ? e->backends.list[backend] : NULL;
    int i = e->plan.n_buffer++;
    buffer *b = &e->plan.buffer[i];
    *b = (buffer){.value = value,
                  .layout = layout,
                  .backend = layout != NULL ? backend : NONE,
                  .slot = e->plan.n_slot,
                  .sharer = i,
                  .next = e->planning->first_buffer[value->id]};
    e->planning->first_buffer[value->id] = i;
    e->plan.slot[e->plan.n_slot++] = (slot){.bytes = layout_bytes_of(owner, layout, value->type),
                                            .last_read = NONE,
                                            .first = NONE,
                                            .last = NONE,
                                            .kept = kept};
    return i;
}

void join_slots(adj_exec *e, int b, int into)
{
    int i = b;
    do {
        e->plan.buffer[i].slot = e->plan.buffer[into].slot;
        i = e->plan.buffer[i].sharer;
    } while (i != b);
    const int next = e->plan.buffer[b].sharer; /* two rings become one */
    e->plan.buffer[b].sharer = e->plan.buffer[into].sharer;
    e->plan.buffer[into].sharer = next;
}

static step *new_step(adj_exec *e, step_kind kind, int n_in, int n_out)
{
    if (e->plan.n_step >= e->planning->max_step) {
        set_error(e, ADJ_EBACKEND, "adj_exec_new: the plan needs more steps than %d",
                  e->planning->max_step);
        return NULL;
    }
    step *s = &e->plan.step[e->plan.n_step];
    *s = (step){.kind = kind, .n_in = n_in, .n_out = n_out, .scratch = NONE};
    s->in = exec_alloc(e, (size_t)n_in, sizeof *s->in);
    s->out = exec_alloc(e, (size_t)n_out, sizeof *s->out);
    s->call.in = exec_alloc(e, (size_t)n_in, sizeof(void *));
    s->call.out = exec_alloc(e, (size_t)n_out, sizeof(void *));
    if (e->status != ADJ_OK)
        return NULL;
    e->plan.n_step++; /* from here on adj_exec_free drops its state */
    return s;
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

/* One step from an existing buffer into a new layout; one of the two is plain or both are of one
 * backend. */
static int reorder(adj_exec *e, int from, const adj_layout *layout, int backend)
{
    const adj_node *value = e->plan.buffer[from].value;
    int owner = layout != NULL ? backend : e->plan.buffer[from].backend;
    const adj_backend *b = e->backends.list[owner];
    adj_reorder r = {e->backends.opened[owner], e->plan.buffer[from].layout, layout, value->type};
    step *s = new_step(e, STEP_REORDER, 1, 1);
    if (s == NULL)
        return NONE;
    s->backend = owner;
    adj_status status = b->reorder_prepare(&r, &s->prep.state, &s->prep.scratch);
    if (status != ADJ_OK) {
        set_error(e, status, "adj_exec_new: %s cannot reorder %s %s", b->name, value->op->name,
                  adj_shape_text(value->type.shape).s);
        return NONE;
    }
    s->in[0] = from;
    s->out[0] = new_buffer(e, value, layout, backend, 0);
    if (s->out[0] != NONE)
        find_invariance(e, s);
    e->info.reorders++;
    return s->out[0];
}

/* The buffer that holds value in layout (of backend; NULL: plain), by reordering if there is none
 * yet; NONE: failed. */
static int want_buffer(adj_exec *e, const adj_node *value, const adj_layout *layout, int backend)
{
    int found = find_buffer(e, value, layout);
    if (found != NONE || e->status != ADJ_OK)
        return e->status == ADJ_OK ? found : NONE;
    int from = source_buffer(e, value);
    if (from == NONE) {
        set_error(e, ADJ_EBACKEND, "adj_exec_new: %s is read before it is computed",
                  value->op->name);
        return NONE;
    }
    /* Between backends only plain passes. */
    if (layout != NULL && e->plan.buffer[from].layout != NULL &&
        e->plan.buffer[from].backend != backend)
        from = reorder(e, from, NULL, NONE);
    return from != NONE ? reorder(e, from, layout, backend) : NONE;
}

/* ---- groups ---- */

static int leaves_group(const adj_exec *e, const node_group *g, const adj_node *n)
{
    const adj_uses *u = &e->planning->uses[n->id];
    int leaves = u->is_root;
    for (int i = 0; i < u->n_user && !leaves; i++)
        leaves = adj_position(g->n, g->node, u->user[i]) < 0;
    return leaves;
}

adj_status describe_step(adj_exec *e, const node_group *g, step *s)
{
    int max_in = 0, n_out = 0;
    for (int i = 0; i < g->n; i++)
        max_in += g->node[i]->n_in;
    const adj_node **in = exec_alloc(e, (size_t)max_in, sizeof(adj_node *));
    const adj_node **leaving = exec_alloc(e, (size_t)g->n, sizeof(adj_node *));
    s->prep.in = exec_alloc(e, (size_t)max_in, sizeof(adj_layout *));
    s->prep.out = exec_alloc(e, (size_t)g->n, sizeof(adj_layout *));
    if (e->status != ADJ_OK)
        return e->status;
    for (int i = 0; i < g->n; i++)
        if (e->planning->uses == NULL || leaves_group(e, g, g->node[i]))
            leaving[n_out++] = g->node[i];
    s->group = (adj_group){g->n, g->node, list_operands(g->n, g->node, in), in, n_out, leaving};
    return ADJ_OK;
}

/* Buffers for what the kernel reads and writes. Reorders come before the step, so the step is added
 * last. The step then owns what is prepared, and planned has no kernel. */
static adj_status place(adj_exec *e, step *planned)
{
    const adj_group *g = &planned->group;
    int *in = planning_alloc(e, (size_t)g->n_in, sizeof *in);
    if (in == NULL)
        return e->status;
    for (int i = 0; i < g->n_in; i++)
        if ((in[i] = want_buffer(e, g->in[i], planned->prep.in[i], planned->backend)) == NONE)
            return e->status;
    step *s = new_step(e, STEP_KERNEL, g->n_in, g->n_out);
    if (s == NULL)
        return e->status;
    s->backend = planned->backend;
    s->kernel = planned->kernel;
    s->group = *g;
    s->prep = planned->prep;
    s->why = planned->why;
    s->tuned = planned->tuned;
    planned->kernel = NULL;
    memcpy(s->in, in, (size_t)g->n_in * sizeof *in);
    for (int i = 0; i < g->n_out; i++)
        if ((s->out[i] = new_buffer(e, g->out[i], s->prep.out[i], s->backend, 0)) == NONE)
            return e->status; /* the step is known to the executor, which drops its state */
    find_invariance(e, s);
    e->info.naive_steps += s->backend == e->backends.fallback;
    return ADJ_OK;
}

static adj_status plan_group(adj_exec *e, const node_group *g, int next);

/* The nodes of a group that its kernel refused, one by one. */
static adj_status plan_singly(adj_exec *e, const node_group *g, int next)
{
    for (int i = 0; i < g->n; i++) {
        node_group one = {.n = 1, .node = &g->node[i], .backend = NONE};
        if (plan_group(e, &one, next) != ADJ_OK)
            return e->status;
    }
    return ADJ_OK;
}

/* A view is another buffer in its operand's slot. */
static adj_status plan_view(adj_exec *e, const adj_node *view)
{
    int from = want_buffer(e, view->in[0], NULL, NONE);
    int to = from != NONE ? new_buffer(e, view, NULL, NONE, 0) : NONE;
    if (to == NONE)
        return e->status;
    e->plan.n_slot--; /* the newest: its own */
    join_slots(e, to, from);
    return ADJ_OK;
}

/* True if every value that leaves the group is without elements. */
static int is_empty(const adj_group *g)
{
    for (int i = 0; i < g->n_out; i++)
        if (adj_shape_elems(g->out[i]->type.shape) > 0)
            return 0;
    return 1;
}

/* next: the number of the first group behind it. */
static adj_status plan_group(adj_exec *e, const node_group *g, int next)
{
    if (g->n == 1 && (g->node[0]->op->flags & ADJ_OP_VIEW))
        return plan_view(e, g->node[0]);
    step planned = {.kind = STEP_KERNEL};
    if (describe_step(e, g, &planned) != ADJ_OK)
        return e->status;
    if (is_empty(&planned.group)) { /* only the empty values have to be there */
        for (int i = 0; i < planned.group.n_out; i++)
            new_buffer(e, planned.group.out[i], NULL, NONE, 0);
        return e->status;
    }
    const adj_status status = select_kernel(e, &planned, g);
    if (status == ADJ_ENOKERNEL && e->status == ADJ_OK)
        return plan_singly(e, g, next);
    if (status != ADJ_OK)
        return e->status;
    if (take_epilogue(e, g, next, &planned) == ADJ_OK)
        place(e, &planned);
    drop_prepared(e, &planned); /* what no step owns */
    return e->status;
}

/* ---- what happens at the end of a run ---- */

/* A copy of a leaf as it was before the updates, for a fetch or for another leaf's update. */
static int copy_of(adj_exec *e, int from)
{
    step *s = new_step(e, STEP_COPY, 1, 1);
    if (s == NULL)
        return NONE;
    s->in[0] = from;
    return s->out[0] = new_buffer(e, e->plan.buffer[from].value, NULL, NONE, 0);
}

/* True if an update assigns the leaf that this buffer shows, itself or as a view. */
static int is_assigned(const adj_exec *e, int b)
{
    const adj_node *n = e->plan.buffer[b].value;
    while (n->op->flags & ADJ_OP_VIEW)
        n = n->in[0];
    const int i = e->plan.leaf_of[n->id];
    return i != NONE && e->plan.leaf[i].is_assigned &&
           e->plan.buffer[e->plan.leaf[i].buffer].slot == e->plan.buffer[b].slot;
}

static int final_buffer(adj_exec *e, const adj_node *n)
{
    int b = want_buffer(e, n, NULL, NONE);
    return b != NONE && is_assigned(e, b) ? copy_of(e, b) : b;
}

adj_status plan_steps(adj_exec *e)
{
    for (int i = 0; i < e->planning->n_group; i++)
        if (e->planning->group[i].n > 0 && plan_group(e, &e->planning->group[i], i + 1) != ADJ_OK)
            return e->status;
    for (int i = 0; i < e->plan.n_fetch; i++)
        if ((e->plan.fetch[i] = final_buffer(e, e->plan.image[e->plan.fetched[i]->id])) == NONE)
            return e->status;
    for (int i = 0; i < e->plan.n_update; i++)
        if ((e->plan.update[i].next = final_buffer(e, e->plan.update[i].value)) == NONE)
            return e->status;
    e->info.steps = e->plan.n_step;
    for (int id = 0; id < e->plan.graph->n_node; id++)
        e->info.recomputed += e->plan.graph->node[id]->clone == 1 &&
                              !(e->plan.graph->node[id]->op->flags & ADJ_OP_VIEW);
    return ADJ_OK;
}
