/* group_bound.c - expected results of a fused group, and a bound for each element.
 *
 * Members are computed one after another in f64 on naive. A member's error is its own bound, as
 * for a node alone (node_bound.c), plus its operands' errors propagated through it. For an operand
 * x with error bound e:
 *   elementwise          the largest |f(x +- e) - f(x)|: exact if f is monotone; at a kink or the
 *                        edge of a mask as large as the jump
 *   linear               f(|x| + e) - f(|x|) on absolute values
 *   batch norm's sums    by formula
 * Otherwise, if e is small relative to x, a multiple of the largest change of f under +-e. Else
 * the error is infinite, and the result is reported without a verdict. */
#include <math.h>
#include <string.h>

#include "check/formula.h"
#include "compare.h"

enum { MAX_UNSURE = 4, MAX_READ = 64, PROBES = 4, PROBE_SAFETY = 8 };

/* Allowance for second-order errors: rounding of e, products of two errors. */
static const double second_order = 1 + 0x1p-4;

typedef struct {
    const runner *b;
    const group_case *g;
    region *p;           /* memory of the arrays below */
    void **value;        /* by member, in the reference's type */
    double **error;      /* by member; NULL: not even a rounding */
    double *noise_ratio; /* largest ratio of RMS rounding error to error bound */
    char **overflows;    /* by member: see expectation; NULL: nowhere */
} members;

/* Operands of a member with their error bounds. */
typedef struct {
    const adj_node *n;
    void *x[MAX_READ];
    const double *e[MAX_READ]; /* NULL: exact */
    double noise_ratio;        /* the largest of the unsure ones' */
    int n_unsure, unsure[MAX_READ];
} operands;

static operands operands_of(const members *m, const adj_node *n)
{
    const adj_group *g = m->g->group;
    operands o = {.n = n};
    for (int k = 0; k < n->n_in; k++) {
        int i = adj_position(g->n_node, g->node, n->in[k]);
        o.x[k] = i >= 0 ? m->value[i] : m->g->operand[adj_group_in(g, n->in[k])];
        o.e[k] = i >= 0 ? m->error[i] : NULL;
        if (o.e[k] != NULL) {
            o.noise_ratio = fmax(o.noise_ratio, m->noise_ratio[i]);
            o.unsure[o.n_unsure++] = k;
        }
    }
    return o;
}

/* ---- through one node ---- */

/* Evaluates the node with some operands replaced. */
static adj_status evaluate(const members *m, const adj_node *n, void *const x[], region *p,
                           outcome *o)
{
    adj_status status = run_node(m->b, n, x, m->b->reference, p, o);
    if (status == ADJ_OK && o->status != ADJ_OK)
        status = ADJ_EBACKEND; /* it has just been computed on other numbers */
    return status;
}

/* Returns x + sign e; magnitude: |x| + sign e. */
static double *moved(const operands *o, int k, int sign, int magnitude, region *p)
{
    int64_t n = node_elems(o->n->in[k]);
    double *v = region_alloc(p, (size_t)n + 1, sizeof *v);
    for (int64_t i = 0; v != NULL && i < n; i++) {
        double x = ((const double *)o->x[k])[i], e = o->e[k] != NULL ? o->e[k][i] : 0;
        v[i] = (magnitude ? fabs(x) : x) + (sign != 0 ? sign * e : 0);
    }
    return v;
}

/* True if element i of the result needs only element i of the operands that are unsure. */
static int goes_by_element(const operands *o)
{
    if (o->n->op->flags & ADJ_OP_ELEMENTWISE)
        return 1;
    if (o->n->op != &adj_op_batch_norm && o->n->op != &adj_op_batch_norm_grad)
        return 0;
    for (int i = 0; i < o->n_unsure; i++)
        if (!adj_shape_equal(o->n->in[o->unsure[i]]->type.shape, o->n->type.shape))
            return 0;
    return 1;
}

/* Returns the value that the group computes for n. */
static const double *member_value(const members *m, const adj_node *n)
{
    return m->value[adj_position(m->g->group->n_node, m->g->group->node, n)];
}

/* Raises spread[i] to |f(x) - y|; y: the group's value. */
static adj_status widen(const members *m, const adj_node *n, void *const x[], region *p,
                        double *spread)
{
    const double *y = member_value(m, n);
    outcome at;
    adj_status status = evaluate(m, n, x, p, &at);
    for (int64_t i = 0, n_elems = node_elems(n); status == ADJ_OK && i < n_elems; i++) {
        const double d = fabs(((const double *)at.value[0])[i] - y[i]);
        spread[i] = isnan(d) ? INFINITY : fmax(spread[i], d);
    }
    return status;
}

/* Sets spread[i] to the largest |f(x +- e) - f(x)| over all corners of inexact operands. */
static adj_status through_elements(const members *m, const operands *o, double *spread)
{
    adj_status status = ADJ_OK;
    for (int corner = 0; corner < 1 << o->n_unsure && status == ADJ_OK; corner++) {
        region p = {.allocator = m->p->allocator};
        void *x[MAX_READ];
        memcpy(x, o->x, sizeof x);
        for (int j = 0; j < o->n_unsure && status == ADJ_OK; j++)
            if ((x[o->unsure[j]] = moved(o, o->unsure[j], corner >> j & 1 ? 1 : -1, 0, &p)) == NULL)
                status = ADJ_ENOMEM;
        if (status == ADJ_OK)
            status = widen(m, o->n, x, &p, spread);
        region_free(&p);
    }
    return status;
}

static adj_status through_linear(const members *m, const operands *o, double *spread)
{
    adj_status status = ADJ_OK;
    for (int sign = 0; sign < 2 && status == ADJ_OK; sign++) {
        region p = {.allocator = m->p->allocator};
        void *x[MAX_READ];
        outcome at;
        memcpy(x, o->x, sizeof x);
        for (int k = 0; k < o->n->n_in && status == ADJ_OK; k++)
            if (adj_is_float(o->n->in[k]->type.dtype) && (x[k] = moved(o, k, sign, 1, &p)) == NULL)
                status = ADJ_ENOMEM;
        if (status == ADJ_OK)
            status = evaluate(m, o->n, x, &p, &at);
        for (int64_t i = 0, n_elems = node_elems(o->n); status == ADJ_OK && i < n_elems; i++)
            spread[i] = fabs(((const double *)at.value[0])[i] - spread[i]);
        region_free(&p);
    }
    return status;
}

/* mean and var: means of e, and of 2 |x - mean| e + e e. */
static void through_stats(const members *m, const operands *o, double *spread)
{
    const double *x = o->x[0], *e = o->e[0];
    const double *mean = member_value(m, o->n);
    const int64_t format = ((const adj_format_attrs *)o->n->attrs)->format;
    const adj_shape shape = o->n->in[0]->type.shape;
    int64_t channels = o->n->type.shape.dim[1], n = node_elems(o->n->in[0]);
    double weight = (double)channels / (double)n;
    for (int64_t i = 0; i < n; i++) {
        int64_t c = formula_channel(shape, format, i);
        spread[c] += weight * e[i];
        spread[channels + c] += weight * (2 * fabs(x[i] - mean[c]) + e[i]) * e[i];
    }
}

/* sum(dy (x - mean) s) and sum(dy), s = 1 / sqrt(var + epsilon). */
static void through_grad_sums(const operands *o, double *spread)
{
    const double *x = o->x[0], *stats = o->x[1], *dy = o->x[2];
    const adj_batch_norm_attrs *a = o->n->attrs;
    const adj_shape shape = o->n->in[0]->type.shape;
    int64_t channels = o->n->type.shape.dim[1];
    for (int64_t i = 0, n_elems = node_elems(o->n->in[0]); i < n_elems; i++) {
        int64_t c = formula_channel(shape, a->format, i);
        double ex = o->e[0] != NULL ? o->e[0][i] : 0, edy = o->e[2] != NULL ? o->e[2][i] : 0;
        double s = 1 / sqrt(stats[channels + c] + a->epsilon);
        spread[c] += s * ((fabs(dy[i]) + edy) * ex + fabs(x[i] - stats[c]) * edy);
        spread[channels + c] += edy;
    }
}

/* ---- errors that are small ---- */

/* True if the error of operand k is so small beside its largest element that errors add up. */
static int is_slight(const operands *o, int k)
{
    int64_t n = node_elems(o->n->in[k]);
    return max_magnitude(o->e[k], n) <= 0x1p-8 * max_magnitude(o->x[k], n);
}

/* Moves these operands by their errors, to sides drawn from the stream. */
static adj_status move_slightly(const operands *o, uint64_t stream, region *p, void *x[])
{
    memcpy(x, o->x, sizeof o->x);
    for (int i = 0; i < o->n_unsure; i++) {
        const int k = o->unsure[i];
        const int64_t n = node_elems(o->n->in[k]);
        if (!is_slight(o, k))
            continue;
        double *side = region_alloc(p, (size_t)n + 1, sizeof *side);
        double *v = moved(o, k, 0, 0, p);
        if (side == NULL || v == NULL)
            return ADJ_ENOMEM;
        adj_draw(ADJ_F64, side, n, (adj_init){.kind = ADJ_INIT_UNIFORM, .a = -1, .b = 1}, stream,
                 (uint64_t)k);
        for (int64_t e = 0; e < n; e++)
            v[e] += side[e] < 0 ? -o->e[k][e] : o->e[k][e];
        x[k] = v;
    }
    return ADJ_OK;
}

static adj_status through_probes(const members *m, const operands *o, double *spread)
{
    const int64_t n_elems = node_elems(o->n);
    region p = {.allocator = m->p->allocator};
    double *apart = region_alloc(&p, (size_t)n_elems + 1, sizeof *apart);
    adj_status status = apart != NULL ? ADJ_OK : ADJ_ENOMEM;
    for (int probe = 0; probe < PROBES && status == ADJ_OK; probe++) {
        void *x[MAX_READ];
        status = move_slightly(o, (uint64_t)probe, &p, x);
        if (status == ADJ_OK)
            status = widen(m, o->n, x, &p, apart);
    }
    const double max = status == ADJ_OK ? max_magnitude(apart, n_elems) : 0;
    for (int64_t i = 0; i < n_elems; i++)
        spread[i] += PROBE_SAFETY * max;
    region_free(&p);
    return status;
}

/* Returns the operands except those with slight errors. */
static operands without_slight(const operands *o)
{
    operands rest = *o;
    rest.n_unsure = 0;
    for (int i = 0; i < o->n_unsure; i++) {
        const int k = o->unsure[i];
        if (is_slight(o, k))
            rest.e[k] = NULL;
        else
            rest.unsure[rest.n_unsure++] = k;
    }
    return rest;
}

/* Propagates the operands' errors to spread. */
static adj_status propagate(const members *m, const operands *o, double *spread)
{
    const adj_op *op = o->n->op;
    if (adj_is_float(o->n->type.dtype) && goes_by_element(o) && o->n_unsure <= MAX_UNSURE)
        return through_elements(m, o, spread);
    if (is_linear(o->n))
        return through_linear(m, o, spread);
    if (op == &adj_op_batch_norm_stats) {
        through_stats(m, o, spread);
        return ADJ_OK;
    }
    const operands rest = without_slight(o);
    if (op == &adj_op_batch_norm_grad_sums && rest.e[1] == NULL)
        through_grad_sums(&rest, spread);
    for (int64_t i = 0, n_elems = node_elems(o->n); i < n_elems && rest.n_unsure > 0; i++)
        if (op != &adj_op_batch_norm_grad_sums || rest.e[1] != NULL)
            spread[i] = INFINITY;
    return rest.n_unsure < o->n_unsure ? through_probes(m, o, spread) : ADJ_OK;
}

/* ---- member after member ---- */

/* True if each result is an operand or one product with a constant, as for relu. */
static int selects(const adj_node *n)
{
    return (n->op->flags & ADJ_OP_KINKS) && (n->op->flags & ADJ_OP_ELEMENTWISE) &&
           adj_is_float(n->type.dtype);
}

/* True if the type holds every value without rounding. */
static int is_representable(const adj_node *n, const double *value)
{
    for (int64_t i = 0, n_elems = node_elems(n); i < n_elems; i++)
        if (rounded(n->type.dtype, value[i]) != value[i])
            return 0;
    return 1;
}

/* Returns the RMS of the expected rounding errors relative to that of the bounds. */
static double noise_ratio_of(const expectation *e, size_t elems)
{
    double noise = 0, bound = 0;
    for (size_t k = 0; k < elems; k++) {
        noise += isfinite(e->bound[k]) ? e->noise[k] * e->noise[k] : 0;
        bound += isfinite(e->bound[k]) ? e->bound[k] * e->bound[k] : 0;
    }
    return bound > 0 ? sqrt(noise / bound) : 1;
}

/* Marks elements of member i that may overflow, or depend on such an element. */
static adj_status mark_overflows(members *m, int i, expectation *e)
{
    const adj_node *n = m->g->group->node[i];
    const int64_t elems = node_elems(n);
    const char *operand[MAX_READ];
    int n_operand = 0, is_anywhere = 0;
    for (int k = 0; k < n->n_in; k++) {
        const int from = adj_position(m->g->group->n_node, m->g->group->node, n->in[k]);
        if (from < 0 || m->overflows[from] == NULL)
            continue;
        if ((n->op->flags & ADJ_OP_ELEMENTWISE) && node_elems(n->in[k]) == elems)
            operand[n_operand++] = m->overflows[from];
        else
            is_anywhere = 1;
    }
    for (int64_t k = 0; k < elems; k++) {
        const double y = fabs(adj_load(e->dtype, e->expected, k));
        const double bound = isfinite(e->bound[k]) ? e->bound[k] : 0;
        int may = is_anywhere || (isfinite(y) && !isfinite(rounded(n->type.dtype, y + bound)));
        for (int j = 0; j < n_operand; j++)
            may |= operand[j][k];
        if (may && m->overflows[i] == NULL &&
            (m->overflows[i] = region_alloc(m->p, (size_t)elems + 1, 1)) == NULL)
            return ADJ_ENOMEM;
        if (may)
            m->overflows[i][k] = 1;
    }
    e->overflows = m->overflows[i];
    return ADJ_OK;
}

/* Computes member i: value, own error, propagated error. */
static adj_status add_member(members *m, int i, expectation *e, outcome *o)
{
    const adj_node *n = m->g->group->node[i];
    operands in = operands_of(m, n);
    const bound_case alone = {.node = n,
                              .operand = in.x,
                              .dtype = n->type.dtype,
                              .exact = m->g->exact,
                              .config = m->g->config};
    const size_t elems = (size_t)node_elems(n);
    const adj_dtype_traits *traits = adj_traits_of(n->type.dtype);
    region p = {.allocator = m->p->allocator};
    void *bound = NULL, *noise = NULL;
    adj_status status = node_bound(m->b, &alone, &p, e, o);
    const adj_dtype dtype = e->dtype;
    const int has_no_row = (n->op->flags & ADJ_OP_INTERNAL) != 0; /* that names a wrong reference */
    if (status == ADJ_OK && o->status == ADJ_OK && has_no_row && formula_exists(n))
        status = take_formula(n, n->type.dtype, in_float64(m->b, n, in.x, &p), &p, e);
    const int is_known = status == ADJ_OK && o->status == ADJ_OK;
    if (is_known) {
        m->value[i] = convert(m->p, e->dtype, e->expected, dtype, (int64_t)elems);
        bound = convert(m->p, ADJ_F64, e->bound, ADJ_F64, (int64_t)elems);
        noise = convert(m->p, ADJ_F64, e->noise, ADJ_F64, (int64_t)elems);
        if (m->value[i] == NULL || bound == NULL || noise == NULL)
            status = ADJ_ENOMEM;
    }
    region_free(&p);
    if (status != ADJ_OK || !is_known)
        return status;
    e->dtype = dtype;
    e->expected = m->value[i];
    e->bound = bound;
    e->noise = noise;
    e->stored = 0;
    for (size_t k = 0; selects(n) && k < elems; k++) {
        const double v = fabs(((const double *)m->value[i])[k]);
        e->bound[k] = v > 0 ? 2 * traits->unit * v + traits->floor : 0; /* a 0 is not rounded */
    }
    if (in.n_unsure > 0) {
        double *spread = region_alloc(m->p, elems + 1, sizeof *spread);
        status = spread != NULL ? propagate(m, &in, spread) : ADJ_ENOMEM;
        for (size_t k = 0; status == ADJ_OK && k < elems; k++) {
            e->bound[k] += isnan(spread[k]) ? INFINITY : second_order * spread[k];
            e->noise[k] = hypot(e->noise[k], in.noise_ratio * spread[k]);
        }
        e->exact = 0;
    }
    if (status == ADJ_OK && adj_is_float(n->type.dtype))
        status = mark_overflows(m, i, e);
    m->noise_ratio[i] = noise_ratio_of(e, elems);
    int sure = !adj_is_float(n->type.dtype) || (e->exact && is_representable(n, m->value[i]));
    m->error[i] = sure ? NULL : e->bound;
    return status;
}

adj_status group_expect(const runner *b, const group_case *g, region *p, expectation e[],
                        outcome *o)
{
    const adj_group *group = g->group;
    size_t n = (size_t)group->n_node;
    members m = {.b = b, .g = g, .p = p};
    m.value = region_alloc(p, n, sizeof *m.value);
    m.error = region_alloc(p, n, sizeof *m.error);
    m.noise_ratio = region_alloc(p, n, sizeof *m.noise_ratio);
    m.overflows = region_alloc(p, n, sizeof *m.overflows);
    *o = (outcome){0};
    if (m.value == NULL || m.error == NULL || m.noise_ratio == NULL || m.overflows == NULL)
        return ADJ_ENOMEM;
    for (int i = 0; i < group->n_node; i++) {
        const int out = adj_group_out(group, group->node[i]);
        expectation member;
        adj_status status = add_member(&m, i, &member, o);
        if (status != ADJ_OK || o->status != ADJ_OK)
            return status;
        if (!member.exact && group->n_node > 1)
            snprintf(member.origin, sizeof member.origin, "%d nodes' bounds, propagated",
                     group->n_node);
        if (g->exact) /* many elements have the same errors */
            member.noise = NULL;
        if (out >= 0)
            e[out] = member;
    }
    return ADJ_OK;
}
