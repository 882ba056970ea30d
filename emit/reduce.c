/* reduce.c - functions of sums, means and maxima over axes. */
#include "emit.h"

/* An operand's axes, neighbors of one kind taken together, without those of one element. */
typedef struct {
    int n;
    int64_t size[ADJ_MAX_RANK];
    int is_reduced[ADJ_MAX_RANK];
    expression from, to; /* indices of an element of the operand, and of its result */
} axes;

static axes axes_of(adj_shape x, int64_t reduced)
{
    axes a = {0};
    axis from[ADJ_MAX_RANK], to[ADJ_MAX_RANK];
    int kept = 0;
    for (int d = 0; d < x.rank; d++) {
        const int is_reduced = (int)(reduced >> d & 1);
        if (x.dim[d] == 1)
            continue;
        if (a.n == 0 || a.is_reduced[a.n - 1] != is_reduced) {
            a.is_reduced[a.n] = is_reduced;
            a.size[a.n++] = 1;
        }
        a.size[a.n - 1] *= x.dim[d];
    }
    for (int d = 0; d < a.n; d++) {
        from[d] = (axis){axis_loop[d], a.size[d]};
        if (!a.is_reduced[d])
            to[kept++] = from[d];
    }
    a.from = index_of(a.n, from);
    a.to = index_of(kept, to);
    return a;
}

/* Opens the loops over the axes of one kind. Returns the braces. */
static int open_axes(text *t, const axes *a, int is_reduced)
{
    int braces = 0;
    for (int d = 0; d < a->n; d++)
        if (a->is_reduced[d] == is_reduced) {
            put_loop(t, axis_loop[d], a->size[d]);
            braces++;
        }
    return braces;
}

/* Writes each sum in a local variable. */
static void put_local_sums(function *f, const axes *a)
{
    const int outer = open_axes(&f->t, a, 0);
    put_sum(f, "sum");
    const int inner = open_axes(&f->t, a, 1);
    put_term(f, "sum", expr("%s[%s]", operand_name(f, 0), a->from.s).s);
    put_end(&f->t, inner);
    put(&f->t, "%s[%s] = %s;", f->result, a->to.s, sum_of(f, "sum").s);
    put_end(&f->t, outer);
}

/* Writes loops over all elements of operand 0 that accumulate into the result. */
static void put_reduction(function *f, const axes *a, int is_maximum)
{
    text *t = &f->t;
    if (f->has_double && !is_maximum) {
        put_local_sums(f, a);
        return;
    }
    const int64_t n = adj_shape_elems(f->root->type.shape);
    const int open = put_loop_unless_one(t, "i", n);
    put(t, "%s[%s] = %s;", f->result, open ? "i" : "0", is_maximum ? "-INFINITY" : "0.0f");
    put_end(t, open);
    for (int d = 0; d < a->n; d++)
        put_loop(t, axis_loop[d], a->size[d]);
    const char *x = operand_name(f, 0);
    if (is_maximum) {
        put(t, "const float value = %s[%s], best = %s[%s];", x, a->from.s, f->result, a->to.s);
        put(t, "%s[%s] = value > best || value != value ? value : best;", f->result, a->to.s);
    } else
        put(t, "%s[%s] += %s[%s];", f->result, a->to.s, x, a->from.s);
    put_end(t, a->n);
}

void write_reduce(function *f)
{
    const adj_reduce_attrs *r = f->root->attrs;
    const int64_t n = adj_shape_elems(f->root->type.shape);
    const double count = (double)(adj_shape_elems(f->root->in[0]->type.shape) / n);
    const int is_mean = f->root->op == &adj_op_reduce_mean;
    const int is_maximum = f->root->op == &adj_op_reduce_max;
    const axes a = axes_of(f->root->in[0]->type.shape, r->axes);
    put_reduction(f, &a, is_maximum);
    if (!is_mean && f->group->n_node == 1)
        return;
    const adj_shape y = f->root->type.shape;
    const int64_t channels = y.rank > 0 ? y.dim[y.rank - 1] : 1;
    const int open = put_loop_unless_one(&f->t, "i", n / channels);
    const int inner = put_loop_unless_one(&f->t, "c", channels);
    const expression at = index_of(2, (axis[]){{"i", n / channels}, {"c", channels}});
    const expression value = is_mean ? expr("%s[%s] / %s", f->result, at.s, literal(count).s)
                                     : expr("%s[%s]", f->result, at.s);
    put_result(f, value.s, at.s, "c");
    put_end(&f->t, open + inner);
}

void write_bias_add_grad(function *f)
{
    const adj_shape dy = f->root->in[0]->type.shape;
    const int64_t all = ((int64_t)1 << dy.rank) - 1;
    const axes a = axes_of(dy, all & ~((int64_t)1 << (dy.rank - 1)));
    put_reduction(f, &a, 0);
}

void write_prelu_grad_slope(function *f)
{
    text *t = &f->t;
    const adj_shape s = f->root->in[0]->type.shape;
    const int64_t channels = s.dim[s.rank - 1], slopes = adj_shape_elems(f->root->type.shape);
    const char *dy = operand_name(f, 0), *x = operand_name(f, 1);
    put_filled(f, 0);
    int braces = put_loop_unless_one(t, "i", adj_shape_elems(s) / channels);
    braces += put_loop_unless_one(t, "c", channels);
    const expression at =
        index_of(2, (axis[]){{"i", adj_shape_elems(s) / channels}, {"c", channels}});
    put(t, "%s[%s] += %s[%s] > 0.0f ? 0.0f : %s[%s] * %s[%s];", f->result, slopes > 1 ? "c" : "0",
        x, at.s, dy, at.s, x, at.s);
    put_end(t, braces);
}
