/* half_in_f32.c - the pass that uses f32 kernels for f16 and bf16, where only those are fast.
 *
 * A node with half operands becomes the f32 node between casts if no backend but the last has a
 * kernel for its type and one of them has an f32 kernel. This applies on a CPU without half
 * kernels, and where oneDNN's are known to be wrong. The result is rounded once, as the
 * reference kernel's float sums are. Nothing changes if a kernel of the type exists or only the
 * reference is allowed. Requires: backends are selected. */
#include "passes.h"

/* True for ops that lose nothing when computed in a wider type. A transpose is excluded, since
 * it computes nothing. */
static int may_be_wide(const adj_node *n)
{
    int has_half = 0;
    for (int k = 0; k < n->n_in; k++)
        has_half |= adj_is_half(n->in[k]->type.dtype);
    return has_half && adj_is_float(n->type.dtype) && !(n->op->flags & ADJ_OP_VIEW) &&
           n->op != &adj_op_transpose && n->op->flags & (ADJ_OP_HALF | ADJ_OP_HALF_ALWAYS);
}

/* Returns the f32 sum itself if n casts to f32 a sum over a batch or a parameter's gradient:
 * then it is not rounded in between and cannot overflow. NULL if n is not such a cast. */
static adj_node *sum_itself(const adj_node *n, adj_node *const in[])
{
    if (n->op != &adj_op_cast || n->type.dtype != ADJ_F32 || in[0]->op != &adj_op_cast)
        return NULL;
    unsigned flags = n->in[0]->op->flags;
    int wanted = flags & ADJ_OP_HALF_SUM ||
                 (flags & ADJ_OP_HALF_ALWAYS && n->in[0]->role == ADJ_ROLE_GRADIENT);
    return wanted && in[0]->in[0]->type.dtype == ADJ_F32 ? in[0]->in[0] : NULL;
}

static adj_node *half_in_f32(rewriting *w, const adj_node *n, adj_node *in[])
{
    adj_node *sum = sum_itself(n, in), *y = sum != NULL ? sum : rule_copy(w, n, in);
    if (y == NULL || !may_be_wide(n) || has_kernel(w, y))
        return y;
    for (int k = 0; k < n->n_in; k++)
        in[k] = adj_is_half(in[k]->type.dtype) ? adj_cast(in[k], ADJ_F32) : in[k];
    adj_node *wide = rule_copy(w, n, in);
    if (wide == NULL || !has_kernel(w, wide))
        return wide == NULL ? NULL : y;
    return adj_cast(wide, n->type.dtype);
}

static int has_half(const pass_target *target, const adj_graph *g)
{
    (void)target;
    for (int id = 0; id < g->n_node; id++)
        if (adj_is_half(g->node[id]->type.dtype))
            return 1;
    return 0;
}

const pass pass_half_in_f32 = {
    .name = "half types in f32 kernels", .is_wanted = has_half, .rule = half_in_f32};
