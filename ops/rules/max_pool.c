/* max_pool.c - see rules.h: moves ops from a pool's operand to its smaller result, and lets
 * its gradient not read the operand.
 *
 *   max_pool(relu(v))                     = relu(max_pool(v))
 *
 *   relu_grad(max_pool_grad(x, y, dy), x) = max_pool_grad(x, y, relu_grad(dy, y)), y = max_pool(x)
 *
 *   bias_add_grad(max_pool_grad(x, y, dy)) = bias_add_grad(dy)
 *
 *   max_pool_grad(x, y, dy)               = max_pool_grad_argmax(max_pool_argmax(x), dy)
 *
 * relu is monotone. A window's gradient goes to one element of the same channel, where x equals
 * y. With x = relu(v), v may replace x on the right side of the second line: the first maximum
 * of v differs only where y is 0, and there the gradient is 0. All but the third line, a sum in
 * another order, hold bit for bit. */
#include <string.h>

#include "rules.h"
#include "ops/grad.h"

/* True if d is the gradient of a max_pool y for its operand. */
static int is_gradient_of_pool(const adj_node *d)
{
    return d->op == &adj_op_max_pool_grad && d->in[1]->op == &adj_op_max_pool &&
           d->in[1]->in[0] == d->in[0] &&
           memcmp(d->attrs, d->in[1]->attrs, sizeof(adj_pool_attrs)) == 0;
}

/* True if mask is relu_grad(d, x), d being the gradient of a max_pool for x. */
static int masks_gradient(const adj_node *mask)
{
    return mask->op == &adj_op_relu_grad && is_gradient_of_pool(mask->in[0]) &&
           mask->in[0]->in[0] == mask->in[1];
}

/* True if a max_pool's gradient has its mask as only user. */
static int is_only_masked(const adj_node *d, const adj_uses *uses)
{
    const adj_node *user = adj_only_user(d, uses);
    return user != NULL && masks_gradient(user) && user->in[0] == d;
}

/* True if, for y = max_pool(relu(v)), the relu's only users are y, gradients through y, and
 * their masks. */
static int hides_relu(const adj_node *y, const adj_uses *uses)
{
    const adj_node *x = y->in[0];
    const adj_uses *u = &uses[x->id];
    if (x->op != &adj_op_relu || u->is_root)
        return 0;
    for (int i = 0; i < u->n_user; i++) {
        const adj_node *d = masks_gradient(u->user[i]) ? u->user[i]->in[0] : u->user[i];
        if (d != y && !(is_gradient_of_pool(d) && d->in[1] == y && is_only_masked(d, uses)))
            return 0;
    }
    return 1;
}

adj_node *max_pool_rewrite_with_users(const adj_node *n, adj_node *const in[], const adj_uses *uses)
{
    if (!hides_relu(n, uses))
        return NULL;
    return adj_relu(adj_node_new1(n->op, in[0]->in[0], n->attrs));
}

/* True if x = relu(v) and y = relu(max_pool(v)), which max_pool_rewrite_with_users makes of
 * max_pool(x). */
static int is_relu_of_pool(const adj_node *y, const adj_node *x)
{
    return x->op == &adj_op_relu && y->op == &adj_op_relu && y->in[0]->op == &adj_op_max_pool &&
           y->in[0]->in[0] == x->in[0];
}

adj_node *relu_grad_rewrite_with_users(const adj_node *n, adj_node *const in[],
                                       const adj_uses *uses)
{
    if (!masks_gradient(n) || !is_only_masked(n->in[0], uses))
        return NULL;
    const adj_node *d = in[0];
    adj_node *x = d->in[0], *y = d->in[1], *dy = adj_relu_grad(d->in[2], y);
    if (is_relu_of_pool(y, x)) {
        x = x->in[0];
        y = y->in[0];
    }
    return adj_node_new3(d->op, x, y, dy, d->attrs);
}

adj_node *bias_add_grad_rewrite_with_users(const adj_node *n, adj_node *const in[],
                                           const adj_uses *uses)
{
    const adj_node *d = in[0];
    const adj_format_attrs *a = n->attrs;
    (void)uses;
    if (d->op != &adj_op_max_pool_grad)
        return NULL;
    const adj_pool_attrs *pool = d->attrs;
    if (pool->kc != 1 || pool->geom.format != a->format)
        return NULL;
    return adj_bias_add_grad(d->in[2], (adj_format)a->format);
}

/* ---- the argmax ---- */

/* Creates the argmax in the forward pass, next to the pool; the gradient finds the same node by
 * interning. */
adj_node *max_pool_save_for_backward(const adj_node *n, adj_node *const in[], const adj_uses *uses)
{
    if (adj_sibling(n, &adj_op_max_pool_grad, uses) != NULL)
        adj_node_new1(&adj_op_max_pool_argmax, in[0], n->attrs);
    return NULL;
}

adj_node *max_pool_grad_save_for_backward(const adj_node *n, adj_node *const in[],
                                          const adj_uses *uses)
{
    if (adj_sibling(n, &adj_op_max_pool, uses) == NULL)
        return NULL;
    adj_node *argmax = adj_node_new1(&adj_op_max_pool_argmax, in[0], n->attrs);
    return adj_node_new2(&adj_op_max_pool_grad_argmax, argmax, in[2], n->attrs);
}
