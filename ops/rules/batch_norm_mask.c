/* batch_norm_mask.c - recomputes a relu's mask in the gradient of the batch norm before it.
 *
 * For y = relu(z), z = batch_norm(x, ...), and d = relu_grad(dy, y), the sums and the gradient
 * of the batch norm read x and d. Each can compute d from dy and z > 0, and z from x, which it
 * reads anyway: then d is never written, and y is not read. So each gets its own copies of z and
 * d, for a kernel that computes all three nodes in one pass. */
#include <string.h>

#include "batch_norm.h"

/* Returns the index of the incoming gradient, which is also the clone number of its copies. */
static int gradient_operand(const adj_node *n) { return n->op == &adj_op_batch_norm_grad ? 3 : 2; }

/* True if n's gradient operand is relu_grad(dy, relu(z)) with z = batch_norm of n's own
 * operands. dy must not be elementwise, or it would be fused into the same pass and written. */
static int is_masked_by_own(const adj_node *n, adj_node *const in[])
{
    const adj_node *d = in[gradient_operand(n)];
    if (d->op != &adj_op_relu_grad || d->in[1]->op != &adj_op_relu ||
        (d->in[0]->op->flags & ADJ_OP_ELEMENTWISE))
        return 0;
    const adj_node *z = d->in[1]->in[0];
    return z->op == &adj_op_batch_norm && memcmp(z->attrs, n->attrs, adj_attr_size(n->op)) == 0 &&
           z->in[0] == in[0] && z->in[1] == in[1] &&
           (n->op != &adj_op_batch_norm_grad || z->in[2] == in[2]);
}

/* True if one batch norm's sums and its gradient are the only users of d. */
static int is_read_by_both(const adj_node *d, const adj_uses *uses)
{
    const adj_uses *u = &uses[d->id];
    if (u->is_root || u->n_user != 2)
        return 0;
    const adj_node *sums = u->user[0], *dx = u->user[1];
    return sums->op == &adj_op_batch_norm_grad_sums && dx->op == &adj_op_batch_norm_grad &&
           sums->in[2] == d && dx->in[3] == d && dx->in[4] == sums && dx->in[0] == sums->in[0];
}

adj_node *batch_norm_rematerialise_mask(const adj_node *n, adj_node *const in[],
                                        const adj_uses *uses)
{
    const int k = gradient_operand(n);
    if (!is_masked_by_own(n, in) || !is_read_by_both(n->in[k], uses))
        return NULL;
    const adj_node *d = in[k], *z = d->in[1]->in[0];
    adj_node *const mask[] = {d->in[0], adj_node_clone(z, z->in, k)};
    adj_node *operand[5];
    for (int i = 0; i < n->n_in; i++)
        operand[i] = in[i];
    operand[k] = adj_node_clone(d, mask, k);
    return adj_node_new(z->graph, n->op, n->n_in, operand, n->attrs);
}
