/* epilogue.c - adds nodes to the group of a selected kernel that can compute them in the same pass.
 *
 * Groups are formed before kernels are selected, so that kernels of several backends compete for
 * the same nodes. Nodes behind a group, such as a relu behind a convolution, can be fused by some
 * of these kernels only. So the kernel that was selected proposes its epilogue when the group is
 * planned. It takes whole later groups, or the first node of a group of two. Their other operands
 * have been computed by then, so no cycle can arise. Tuning times the group without its epilogue,
 * and each later group as a whole; the second node of a group of two then gets the kernel with the
 * least estimate. */
#include <string.h>

#include "backends.h"
#include "exec.h"
#include "invariant.h"
#include "planning.h"
#include "select_kernel.h"

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

adj_status take_epilogue(adj_exec *e, const node_group *g, int next, step *planned)
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
