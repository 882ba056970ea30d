/* tolerance.c - how far the backward pass may be from the same in float64.
 *
 * A sum of L products a_i b_i, each step rounded: |error| <= (u + L u_acc) S with S = sum |a_i
 * b_i|, u the rounding unit of the result and u_acc that of the accumulator. A gradient that takes
 * N kernels rounds N results and adds up L = the sum of their L. Where the node is linear, S is the
 * gradient of the absolute values. Elsewhere intermediate values may be larger than the result and
 * cancel: S is then at least the largest of |dx|, |dy| and of the magnitudes of terms that cancel
 * inside one kernel (formula_terms), and the bound is taken several times. So
 * it is where the node is linear, but a kernel on the way is not in what another one has rounded:
 * dy (1 - tanh(x)^2) has the error of tanh(x), which may be several units, times 2 tanh(x) dy. The
 * same holds where a kernel evaluates such a factor itself, as silu_grad(dy, x) does, and where
 * terms cancel inside a kernel (adj_op.cancels_in): those of absolute values do, too. */
#include <math.h>

#include "check/formula.h"
#include "gradcheck.h"

enum { SAFETY_LINEAR = 2, SAFETY = 16 };

double terms_of(const adj_node *n)
{
    double each = fmax(1, (double)node_elems(n)), terms = 1;
    if (n->op->flop != NULL)
        terms = n->op->flop(n) / (2 * each);
    for (int k = 0; k < n->n_in; k++)
        terms = fmax(terms, (double)node_elems(n->in[k]) / each);
    return fmax(terms, 1);
}

typedef struct {
    double kernels, terms, unit;
    const adj_node *max; /* the node with the longest sums */
    int bends;           /* a value that a kernel rounded is read by one not linear in it, or a
                            kernel rounds a curved factor, or terms that cancel, inside */
} cost;

/* True if a kernel, not a leaf, makes n's operand k, and n is not linear in it. */
static int bends_operand(const adj_node *n, int k)
{
    const adj_node *x = viewed_node(n->in[k]);
    return x->n_in > 0 && adj_is_float(x->type.dtype) && !is_linear_in(n, k);
}

/* True if n's kernel evaluates a curved function of an operand, in several roundings. */
static int has_curved_factor(const adj_node *n)
{
    int is_curved = 0;
    for (int k = 0; k < n->n_in; k++)
        is_curved |= adj_is_float(n->in[k]->type.dtype) && !is_linear_in(n, k);
    return is_curved && (n->op->flags & ADJ_OP_ELEMENTWISE) && !(n->op->flags & ADJ_OP_KINKS) &&
           n->op != &adj_op_div; /* one rounding */
}

/* Sums the cost of what dx needs: nodes with operands, but for views. */
static adj_status cost_of(subject *s, const adj_node *dx, cost *c)
{
    const adj_graph *g = dx->graph;
    char *need = region_alloc(&s->region, (size_t)g->n_node, 1);
    *c = (cost){.unit = adj_traits_of(dx->type.dtype)->unit, .max = dx};
    if (need == NULL)
        return log_no_memory(&s->report->log);
    mark_needed(g, 1, &dx, need);
    for (int id = (int)dx->id; id >= 0; id--) {
        const adj_node *n = g->node[id];
        if (!need[id] || n->n_in == 0)
            continue;
        for (int k = 0; k < n->n_in; k++)
            c->bends |= bends_operand(n, k);
        c->bends |= n->op->cancels_in != 0 || has_curved_factor(n);
        if (n->op->flags & ADJ_OP_VIEW)
            continue;
        c->kernels++;
        c->terms += terms_of(n);
        c->unit = fmax(c->unit, adj_traits_of(n->type.dtype)->unit);
        if (terms_of(n) > terms_of(c->max))
            c->max = n;
    }
    return ADJ_OK;
}

/* Returns the largest sum of the magnitudes of an element's terms, if those of the kernel that
 * makes dx cancel (formula_terms), else 0. */
static double max_terms(subject *s, int leaf)
{
    const adj_node *dx = s->reference.dx[leaf];
    double **operand = operands_in(s, s->reference.backward, dx, &s->region);
    double *size = reals(s, node_elems(dx));
    const int has_terms = operand != NULL && size != NULL && formula_terms(dx, operand, size);
    return has_terms ? max_magnitude(size, node_elems(dx)) : 0;
}

adj_status bound_open(subject *s, int leaf, bound *b)
{
    const adj_gradcheck_opts *o = &s->report->opts;
    int64_t n = leaf_elems(s, leaf);
    cost c;
    adj_status status = cost_of(s, s->tested.dx[leaf], &c);
    double **all = reals_by_leaf(s), min = 0, terms = max_terms(s, leaf);
    if (status != ADJ_OK || all == NULL)
        return log_no_memory(&s->report->log);
    if ((status = backward_magnitudes(s, all)) != ADJ_OK)
        return status;

    int linear = leaf_is_linear(s, leaf) && !c.bends;
    double unit_acc = c.unit < 0x1p-24 ? c.unit : 0x1p-24;
    if (!linear)
        min = fmax(fmax(max_magnitude(s->dx_ref[leaf], n), max_magnitude(s->dy, s->n_y)), terms);
    for (int64_t i = 0; i < n; i++)
        all[leaf][i] = fmax(fmax(fabs(all[leaf][i]), fabs(s->dx_ref[leaf][i])), min);
    double safety = linear ? SAFETY_LINEAR : SAFETY;
    b->relative = safety * (c.kernels * c.unit + c.terms * unit_acc);
    b->reference = safety * (c.kernels + c.terms) * adj_traits_of(s->wide)->unit;
    if (s->wide == ADJ_F32) /* the reference rounds as well */
        b->relative += b->reference;
    b->magnitude = all[leaf];
    b->kernels = c.kernels;
    adj_dtype dtype = s->tested.dx[leaf]->type.dtype; /* f64's subnormal numbers are kept */
    b->smallest = c.kernels * (dtype == ADJ_F64 ? 0x1p-1074 : adj_traits_of(dtype)->floor);
    b->rtol = o->rtol;
    b->atol = o->atol;
    b->half = b->noise = NULL;
    if (s->wide == ADJ_F64 && take_group_bound(s, leaf, b) != ADJ_OK)
        return log_no_memory(&s->report->log);
    if (o->rtol > 0 || o->atol > 0)
        b->origin =
            log_text(&s->report->log, "%g + %g |reference|, as asked for", o->atol, o->rtol);
    else
        b->origin =
            log_text(&s->report->log,
                     "%g (N u + L u_acc) S: N = %g kernels, u = 2^%d, L = %.0f (%s), S = %s",
                     safety, c.kernels, (int)log2(c.unit), c.terms, c.max->op->name,
                     linear ? "the gradient of absolute values" : "the largest of |dx|, |dy|");
    return s->report->log.status;
}

double bound_at(const bound *b, int64_t element, double reference)
{
    if (b->rtol > 0 || b->atol > 0)
        return b->atol + b->rtol * fabs(reference);
    const double all = b->relative * b->magnitude[element] + b->smallest;
    return b->half != NULL ? fmin(all, b->half[element]) : all;
}
