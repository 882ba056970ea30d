/* match.c - selects the nodes of a fused pointwise group. */
#include <string.h>

#include "fused_pointwise.h"

enum { RECOMPUTED = 2, WITH_SUMS = 5 }; /* nodes: a batch norm and its relu; with masked sums */

static int is_sum(const adj_node *n) { return fused_kind_of(n->op)->is_sum; }

/* Returns an operand of u that the group computes but cannot pass to u, or NULL. A sum is
 * complete only after the pass, and operands needed before the pass cannot come from the group. */
static const adj_node *forbidden(const adj_node *u, int n, const adj_node *const group[])
{
    for (int i = 0; i < u->n_in; i++) {
        const adj_node *x = u->in[i];
        int before = fused_kind_of(u->op)->roles[i] == 'p';
        if (adj_position(n, group, x) >= 0 && (is_sum(x) || before))
            return x;
    }
    return NULL;
}

/* Returns an operand of u that prevents it from joining the group, or the first operand that the
 * group lacks; NULL if all are present. Nodes older than the root come from outside: they cannot
 * depend on the group. */
static const adj_node *missing(const adj_node *u, const adj_node *root, int n,
                               const adj_node *const group[])
{
    const adj_node *x = forbidden(u, n, group);
    for (int i = 0; i < u->n_in && x == NULL; i++)
        if (adj_position(n, group, u->in[i]) < 0 && u->in[i]->id > root->id &&
            !(u->in[i]->op->flags & ADJ_OP_LEAF))
            x = u->in[i];
    return x;
}

/* Returns a user of the group's values that may join it, or an operand that such a user lacks;
 * NULL if there is none. Skips a user whose chain of missing operands exceeds the group's room. */
static const adj_node *next_member(const adj_node *root, const adj_uses *uses, int n,
                                   const adj_node *const group[])
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < uses[group[i]->id].n_user; k++) {
            const adj_node *u = uses[group[i]->id].user[k];
            if (adj_position(n, group, u) >= 0)
                continue;
            for (int room = FUSED_NODES - n;
                 room > 0 && fused_takes(u, fused_shape(root)) && adj_position(n, group, u) < 0;
                 room--) {
                const adj_node *x = missing(u, root, n, group);
                if (x == NULL)
                    return u;
                u = x;
            }
        }
    return NULL;
}

/* True if one is a copy of the other for a gradient: the same op on the same operands. */
static int is_copy_of(const adj_node *copy, const adj_node *n)
{
    int same = copy->op == n->op && memcmp(copy->attrs, n->attrs, adj_attr_size(n->op)) == 0;
    for (int i = 0; i < n->n_in && same; i++)
        same = copy->in[i] == n->in[i];
    return same;
}

/* Returns the sums over the values that z masks, if z is a copy of the batch norm for that mask
 * alone, and the masked gradient is older than the batch norm. NULL otherwise. */
static const adj_node *masked_sums(const adj_node *z, const adj_node *norm, const adj_uses *uses)
{
    if (z == norm || z->clone == 0 || !is_copy_of(z, norm))
        return NULL;
    const adj_node *mask = adj_only_user(z, uses);
    if (mask == NULL || mask->op != &adj_op_relu_grad || mask->in[1] != z ||
        mask->in[0]->id > norm->id)
        return NULL;
    const adj_node *sums = adj_only_user(mask, uses);
    const int is_by_norm = sums != NULL && sums->op == &adj_op_batch_norm_grad_sums &&
                           sums->in[0] == norm->in[0] && sums->in[1] == norm->in[1];
    return is_by_norm && sums->in[2] == mask ? sums : NULL;
}

/* Handles a batch norm and its relu that are recomputed for one gradient
 * (graph/passes/recompute.c), and of which another gradient's sums need only the mask
 * (ops/rules/batch_norm_mask.c): both read the same x, in one pass. Adds that mask's nodes and
 * the sums to the group of two; returns its size. Autodiff numbers them after the relu, so none
 * of them is in a group yet. */
static int add_masked_sums(const adj_uses *uses, int max, const adj_node **group)
{
    const adj_uses *u = &uses[group[0]->in[0]->id];
    for (int i = 0; i < u->n_user && max >= WITH_SUMS; i++) {
        const adj_node *z = u->user[i], *sums = masked_sums(z, group[0], uses);
        if (sums == NULL || z->id < group[1]->id)
            continue;
        group[RECOMPUTED] = z;
        group[RECOMPUTED + 1] = sums->in[2];
        group[RECOMPUTED + 2] = sums;
        return WITH_SUMS;
    }
    return RECOMPUTED;
}

int fused_match(const adj_node *root, const adj_uses *uses, int max, const adj_node **group)
{
    int n = 0;
    if (!fused_kind_of(root->op) || !fused_takes(root, fused_shape(root)) ||
        adj_shape_elems(fused_shape(root)) == 0)
        return 0;
    for (const adj_node *next = root; next != NULL && n < max && n < FUSED_NODES;
         next = next_member(root, uses, n, group))
        group[n++] = next;
    if (n == RECOMPUTED && root->op == &adj_op_batch_norm && root->clone != 0 &&
        group[1]->op == &adj_op_relu && adj_only_user(root, uses) == group[1])
        n = add_masked_sums(uses, max, group);
    return n;
}
