/* epilogue.c - what a selected kernel computes along with its group.
 *
 * Groups are formed before it is known which kernel is selected, so that those of several backends
 * compete for the same nodes. What follows a group, as a relu behind a convolution, may be more
 * than all of them can compute along with it: a kernel that can says so when it is selected, in the
 * group's turn. The nodes that it then takes are whole later groups, or the first node of a pair,
 * and what they read besides has been computed, so that no cycle can arise. Tuning has timed the
 * group without them, and the pair as a whole: its second node has the kernel that it usually has.
 */
#include <string.h>

#include "backends.h"
#include "exec.h"
#include "invariant.h"
#include "select_kernel.h"

/* Are both of the forward pass, of the backward pass, recomputed for it, or of the updates? What
 * comes late would otherwise be there, and kept, from an earlier time on. */
static int is_of_same_time(const adj_node *a, const adj_node *b)
{
    return a->role == b->role && (a->clone != 0) == (b->clone != 0);
}

/* May that backend compute the proposed nodes at this place of the plan? What follows from
 * parameters alone is not computed with what changes in every run. */
static int may_follow(const adj_exec *e, const node_group *g, int n, int backend)
{
    int may = 1;
    for (int i = 0; i < n && may; i++) {
        const adj_node *node = e->planning->proposed[i];
        may = may_compute(e, backend, node->op) && is_of_same_time(node, g->node[0]) &&
              is_invariant(e, node) == is_invariant(e, g->node[0]);
        for (int k = 0; k < node->n_in && may; k++) {
            const adj_node *x = node->in[k];
            may = e->planning->first_buffer[x->id] != NONE || adj_position(g->n, g->node, x) >= 0 ||
                  adj_position(i, e->planning->proposed, x) >= 0;
        }
    }
    return may;
}

/* How many of the group's first nodes are among the n proposed and may leave it: all, or the first
 * of a pair, of which a node by itself is left. What is left of more might be no kernel's group. */
static int count_taken(const adj_exec *e, int n, const node_group *g)
{
    int count = 0;
    while (count < g->n && adj_position(n, e->planning->proposed, g->node[count]) >= 0)
        count++;
    return count == g->n || g->n == 2 ? count : 0;
}

/* How many of the proposed nodes are those of later groups. */
static int count_later(const adj_exec *e, int next, int n)
{
    int count = 0;
    for (int i = next; i < e->planning->n_group && count < n; i++)
        count += count_taken(e, n, &e->planning->group[i]);
    return count;
}

static void take_later(adj_exec *e, int next, int n)
{
    for (int i = next; i < e->planning->n_group; i++) {
        node_group *g = &e->planning->group[i];
        const int count = count_taken(e, n, g);
        g->node += count;
        g->n -= count;
        if (count > 0)
            g->kernel = NULL;
    }
}

/* A group of g's nodes and the proposed ones, prepared for the kernel that g is prepared for.
 * ADJ_ENOKERNEL: it refuses, or would be another implementation. */
static adj_status prepare_wider(adj_exec *e, const node_group *g, int n, const step *planned,
                                step *wider)
{
    node_group all = *g;
    const adj_node **node = exec_alloc(e, (size_t)(g->n + n), sizeof(adj_node *));
    if (node == NULL)
        return e->status;
    memcpy(node, g->node, (size_t)g->n * sizeof(adj_node *));
    memcpy(node + g->n, e->planning->proposed, (size_t)n * sizeof(adj_node *));
    all.n = g->n + n;
    all.node = node;
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

adj_status take_epilogue(adj_exec *e, const node_group *g, int next, step *planned)
{
    const adj_kernel *kernel = planned->kernel;
    if (kernel->epilogue == NULL || e->opts.debug.no_fusion || planned->group.n_out != 1 ||
        planned->group.out[0] != g->node[g->n - 1])
        return ADJ_OK;
    const int proposed = kernel->epilogue(planned->group.out[0], e->planning->uses,
                                          e->plan.graph->n_node, e->planning->proposed);
    for (int n = proposed; n > 0 && e->status == ADJ_OK; n--) {
        step wider;
        if (count_later(e, next, n) < n || !may_follow(e, g, n, planned->backend) ||
            prepare_wider(e, g, n, planned, &wider) != ADJ_OK)
            continue;
        take_later(e, next, n);
        drop_step(e, planned);
        *planned = wider;
        break;
    }
    return e->status;
}
