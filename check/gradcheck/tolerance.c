/* tolerance.c - bounds the error of a gradient relative to float64, as a whole and by element.
 *
 * A multiple of the largest element would hide errors of small ones. So the gradient's nodes are
 * bounded like a fused group of adj_compare: each errs by the rounding of its result and sums, and
 * by its operands' errors propagated through it. Without such a bound, and for the reference, N
 * kernels that sum L terms err by a multiple of (N u + L u_acc) S: u is the unit roundoff of their
 * results, u_acc that of sums, S the largest of |dx| and |dy|. */
#include <math.h>

#include "check/compare/compare.h"
#include "gradcheck.h"

enum { SAFETY = 16 };

double terms_of(const adj_node *n)
{
    double each = fmax(1, (double)node_elems(n)), terms = 1;
    if (n->op->flop != NULL)
        terms = n->op->flop(n) / (2 * each);
    for (int k = 0; k < n->n_in; k++)
        terms = fmax(terms, (double)node_elems(n->in[k]) / each);
    return fmax(terms, 1);
}

/* ---- the gradient's nodes as a group ---- */

/* The value of a leaf of the tested graph, floats in f64; NULL: out of memory, or it has none. */
static void *leaf_value(const subject *s, const adj_node *n, region *p)
{
    const int64_t elems = node_elems(n);
    const adj_dtype dtype = n->type.dtype;
    const double *v = n == s->tested.dy ? s->at->dy : NULL;
    double fill, *filled = NULL;
    for (int i = 0; i < s->n_leaf; i++)
        v = s->tested.leaf[i] == n ? s->at->x[i] : v;
    if (n->op == &adj_op_const)
        v = convert(p, dtype, ((const adj_const_attrs *)n->attrs)->data, ADJ_F64, elems);
    if (adj_is_fill(n, &fill))
        v = filled = region_alloc(p, (size_t)elems + 1, sizeof *filled);
    for (int64_t i = 0; i < elems && filled != NULL; i++)
        filled[i] = fill;
    return v != NULL ? convert(p, ADJ_F64, v, adj_is_float(dtype) ? ADJ_F64 : dtype, elems) : NULL;
}

typedef struct {
    adj_group group;
    void **operand;
    int is_known; /* all operands have values */
} gradient_group;

static adj_status group_of(subject *s, const adj_node *const *dx, region *p, gradient_group *out)
{
    const adj_graph *g = s->tested.graph;
    const size_t n = (size_t)(*dx)->id + 1;
    char *need = region_alloc(p, (size_t)g->n_node, 1);
    const adj_node **node = region_alloc(p, n, sizeof(adj_node *));
    const adj_node **in = region_alloc(p, n, sizeof(adj_node *));
    int n_node = 0, n_in = 0;
    out->operand = region_alloc(p, n, sizeof(void *));
    if (need == NULL || node == NULL || in == NULL || out->operand == NULL)
        return ADJ_ENOMEM;
    mark_needed(g, 1, dx, need);
    out->is_known = 1;
    for (size_t id = 0; id < n; id++) {
        const adj_node *x = g->node[id];
        if (need[id] && x->n_in > 0) {
            node[n_node++] = x;
        } else if (need[id]) {
            out->operand[n_in] = leaf_value(s, x, p);
            out->is_known &= out->operand[n_in] != NULL;
            in[n_in++] = x;
        }
    }
    out->group = (adj_group){n_node, node, n_in, in, 1, dx};
    return ADJ_OK;
}

/* Sets each and noise. */
static adj_status take_group_bound(subject *s, int leaf, bound *b)
{
    const adj_compare_opts opts = {.exec.threads = s->report->opts.exec.threads,
                                   .exec.backends = s->report->opts.exec.backends};
    const adj_compare_config tested = {.name = "tested"};
    const adj_node *dx = s->tested.dx[leaf];
    gradient_group g = {.is_known = 0};
    expectation e = {0};
    outcome o = {0};
    adj_status status = group_of(s, &dx, &s->region, &g);
    if (status != ADJ_OK || !g.is_known)
        return status;
    const runner in_f64 = {.opts = &opts, .reference = &naive_f64};
    const group_case alone = {&g.group, 0, g.operand, &tested};
    status = group_expect(&in_f64, &alone, &s->region, &e, &o);
    if (status == ADJ_OK && o.status == ADJ_OK) {
        b->each = e.bound;
        b->noise = e.noise;
        b->overflows = e.overflows;
        b->origin = log_text(&s->report->log, "%s", e.origin);
    }
    return status;
}

adj_status bound_open(subject *s, int leaf, bound *b)
{
    const adj_gradcheck_opts *o = &s->report->opts;
    const adj_node *dx = s->tested.dx[leaf];
    double unit = adj_traits_of(dx->type.dtype)->unit, terms = 0;
    char *need = region_alloc(&s->region, (size_t)dx->graph->n_node, 1);
    *b = (bound){.rtol = o->rtol, .atol = o->atol};
    if (need == NULL)
        return log_no_memory(&s->report->log);
    mark_needed(dx->graph, 1, &dx, need);
    for (uint32_t id = 0; id <= dx->id; id++) {
        const adj_node *n = dx->graph->node[id];
        if (!need[id] || n->n_in == 0 || n->op->flags & ADJ_OP_VIEW)
            continue;
        b->kernels++;
        terms += terms_of(n);
        unit = fmax(unit, adj_traits_of(n->type.dtype)->unit);
    }
    b->magnitude = fmax(max_magnitude(s->at->dx_ref[leaf], leaf_elems(s, leaf)),
                        max_magnitude(s->at->dy, s->n_y));
    b->reference = SAFETY * (b->kernels + terms) * adj_traits_of(s->wide)->unit;
    b->relative = SAFETY * (b->kernels * unit + terms * fmin(unit, 0x1p-24));
    if (s->wide == ADJ_F32) /* the reference rounds as well */
        b->relative += b->reference;
    const adj_dtype dtype = dx->type.dtype; /* f64's subnormal numbers are kept */
    b->smallest = b->kernels * (dtype == ADJ_F64 ? 0x1p-1074 : adj_traits_of(dtype)->floor);
    b->origin =
        log_text(&s->report->log,
                 "%d (N u + L u_acc) S: N = %g kernels, u = 2^%d, L = %.0f, S = the largest "
                 "of |dx|, |dy|",
                 SAFETY, b->kernels, (int)log2(unit), terms);
    if (s->wide == ADJ_F64 && take_group_bound(s, leaf, b) != ADJ_OK)
        return log_no_memory(&s->report->log);
    if (o->rtol > 0 || o->atol > 0)
        b->origin =
            log_text(&s->report->log, "%g + %g |reference|, as asked for", o->atol, o->rtol);
    return s->report->log.status;
}

double bound_at(const bound *b, int64_t element, double reference)
{
    if (b->rtol > 0 || b->atol > 0)
        return b->atol + b->rtol * fabs(reference);
    return b->each != NULL && isfinite(b->each[element]) ? b->each[element]
                                                         : b->relative * b->magnitude + b->smallest;
}
