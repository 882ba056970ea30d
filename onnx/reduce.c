/* reduce.c - reductions and ArgMax. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "table.h"

/* Reads axes, an attribute or operand 1, and keepdims. *is_none is 1 if nothing is to be reduced.
 * Returns 0 having refused the node. */
static int read_axes(call *n, adj_axes *axes, int *is_none)
{
    const int64_t *list;
    const int count = int_list(n, "axes", 1, &list), rank = (int)in_shape(n, 0).rank;
    *is_none = count <= 0 && attr_int(n, "noop_with_empty_axes", 0) != 0;
    *axes = (adj_axes){.keep_dims = attr_int(n, "keepdims", 1) != 0};
    if (count == -2)
        return 0;
    for (int i = 0; i < (count > 0 ? count : rank); i++) {
        const int axis = count > 0 ? axis_of(n, list[i], rank) : i;
        if (axis < 0 || axes->n == ADJ_MAX_RANK)
            return axis < 0 ? 0 : refuse(n, "too many axes");
        axes->axis[axes->n++] = axis;
    }
    return 1;
}

typedef adj_node *reduce_fn(adj_node *x, adj_axes axes);

/* after(reduce(before(x))); what has no elements reduces to of_none, as a truth value to 0 or 1. */
static int reduce(call *n, adj_node *(*before)(adj_node *x), reduce_fn *function,
                  adj_node *(*after)(adj_node *x), double of_none)
{
    adj_axes axes;
    int is_none;
    adj_node *x = in_node(n, 0);
    if (x == NULL || !read_axes(n, &axes, &is_none))
        return 0;
    if (before != NULL)
        x = before(x);
    if (!is_none && axes.n > 0 && adj_shape_elems(shape_of(x)) == 0 && of_none != 0) {
        const int is_truth = n->in[0]->elem == ELEM_BOOL;
        x = adj_reduce_sum(x, axes);
        x = adj_add(x, scalar(x, is_truth ? of_none > 0 : of_none));
    } else if (!is_none && axes.n > 0) {
        x = function(x, axes);
    }
    return give_at(n, 0, after != NULL ? after(x) : x, n->in[0]->elem);
}

int import_reduce_sum(call *n) { return reduce(n, NULL, adj_reduce_sum, NULL, 0); }
int import_reduce_mean(call *n) { return reduce(n, NULL, adj_reduce_mean, NULL, 0); }
int import_reduce_max(call *n) { return reduce(n, NULL, adj_reduce_max, NULL, -INFINITY); }
int import_reduce_min(call *n) { return reduce(n, NULL, adj_reduce_min, NULL, INFINITY); }
int import_reduce_l1(call *n) { return reduce(n, adj_abs, adj_reduce_sum, NULL, 0); }
int import_reduce_l2(call *n) { return reduce(n, adj_square, adj_reduce_sum, adj_sqrt, 0); }
int import_reduce_sum_square(call *n) { return reduce(n, adj_square, adj_reduce_sum, NULL, 0); }
int import_reduce_log_sum(call *n) { return reduce(n, NULL, adj_reduce_sum, adj_log, 0); }

/* max + log(sum exp(x - max)), without overflow; the gradient does not pass through the maximum. */
static adj_node *log_sum_exp(adj_node *x, adj_axes axes)
{
    adj_axes kept = axes;
    kept.keep_dims = 1;
    adj_node *max = adj_stop_gradient(adj_reduce_max(x, kept));
    adj_node *sum = adj_log(adj_reduce_sum(adj_exp(adj_sub(x, max)), axes));
    return sum != NULL ? adj_add(sum, adj_reshape(max, shape_of(sum))) : NULL;
}

int import_reduce_log_sum_exp(call *n) { return reduce(n, NULL, log_sum_exp, NULL, -INFINITY); }

/* ---- ArgMax, ArgMin ---- */

static int arg(call *n, int is_min)
{
    const adj_shape s = in_shape(n, 0);
    const int axis = axis_of(n, attr_int(n, "axis", 0), s.rank);
    adj_node *x = in_node(n, 0);
    if (axis < 0 || x == NULL)
        return 0;
    if (is_min)
        x = adj_neg(x);
    const int is_last = attr_int(n, "select_last_index", 0) != 0;
    const int64_t size = s.dim[axis];
    if (is_last) {
        int64_t index[4096];
        if (size > 4096)
            return refuse(n, "select_last_index of %" PRId64 " elements", size);
        for (int64_t i = 0; i < size; i++)
            index[i] = size - 1 - i;
        x = pick(x, axis, size, index);
    }
    adj_node *y = adj_argmax(x, axis);
    if (is_last) {
        adj_node *f = adj_cast(y, ADJ_F64);
        y = adj_cast(adj_sub(scalar(f, (double)(size - 1)), f), ADJ_I32);
    }
    adj_shape kept = s;
    kept.dim[axis] = 1;
    if (attr_int(n, "keepdims", 1) != 0)
        y = adj_reshape(y, kept);
    return give_at(n, 0, y, ELEM_INT64);
}

int import_arg_max(call *n) { return arg(n, 0); }
int import_arg_min(call *n) { return arg(n, 1); }
