/* special.c - runs a node alone on special values, once it is right on random ones:
 *   EXACT        integers, if it sums: exact, so that every summand matters
 *   MEAN         a large mean, which loses digits unless it is subtracted first
 *   WIDE, SMALL  values far from 0, and close to it, for ops without a domain
 *   ZERO         learning rates of 0
 *   LARGE_STEP   a step counter of 1,000,000
 *   FINITE       ties, zeros of both signs, smallest numbers, kinks, repeated labels
 *   LARGE        the type's largest numbers, unless something sums them
 *   NO_LABELS    labels of -1
 *   0, 1, ...    NaN and infinities in that operand; nonfinite.c has the accepted differences
 * An operand that is a function of others, such as y in max_pool_grad(x, y, dy), is computed from
 * their special values. Equal nodes are tried once. */
#include <math.h>
#include <string.h>

#include "compare.h"

enum {
    EXACT = -9,
    NO_LABELS = -8,
    MEAN = -7,
    WIDE = -6,
    SMALL = -5,
    ZERO = -4,
    LARGE_STEP = -3,
    LARGE = -2,
    FINITE = -1,
    EVERY = 7
}; /* EVERY: a special value among so many */

typedef struct {
    const runner *b;
    const adj_compare_config *config;
    const adj_node *node;
    int at; /* a case as above, or the operand that gets a NaN and infinities */
    void *operand[MAX_IN];
    adj_dtype dtype[MAX_IN];
} special_case;

/* ---- values ---- */

/* True if operand k keeps its values: computed by another op, or a scalar. */
static int is_given(const adj_node *n, int k)
{
    return (k < ADJ_NAMED_OPERANDS && n->op->maker[k] != NULL) || n->in[k]->type.shape.rank == 0;
}

/* True if operand k is a leaf of the case and its first occurrence. */
static int is_free(const adj_node *n, int k)
{
    return adj_operand_position(n, n->in[k]) == k && !is_inner_operand(n, k);
}

void make_special(const adj_node *n, int k, adj_dtype as, special_kind kind, adj_dtype dtype,
                  void *v)
{
    static const double none[] = {NAN, INFINITY, -INFINITY};
    const int64_t count = node_elems(n->in[k]);
    const double normal = adj_traits_of(as)->floor;
    double min = INFINITY;
    for (int64_t i = 0; i < count; i++)
        min = fmin(min, adj_load(dtype, v, i));
    const double tiny = kind == FINITE_ALONE ? normal / 64 : min > 0 ? normal : 0;
    for (int64_t i = 0; i < count; i++) {
        double x = nearbyint(2 * adj_load(dtype, v, i)) / 2;
        if (i % EVERY == k % EVERY)
            x = rounded(dtype, special_value(n, i / EVERY, tiny));
        if (isfinite(x) && (min < 0 || x > 0 || (min == 0 && x == 0)))
            adj_store(dtype, v, i, x);
    }
    const int is_max = n->op == &adj_op_max_pool || n->op == &adj_op_reduce_max;
    for (int64_t i = count / 4 * 3; i < count && kind == WITH_INFINITIES && is_max; i++)
        adj_store(dtype, v, i, -INFINITY); /* whole windows */
    for (int i = 0; i < 3 && i < count && kind == WITH_INFINITIES; i++) {
        const int64_t at = (i * count + count / 2) / 3;
        adj_store(dtype, v, at, none[i]);
        if (at + 1 < count && n->op->flop == NULL) /* two in a row */
            adj_store(dtype, v, at + 1, none[i]);
    }
}

/* True if large values cannot overflow in a sum or product of several. */
static int takes_large(const adj_node *n)
{
    static const adj_op *const others[] = {&adj_op_reduce_max,
                                           &adj_op_max_pool,
                                           &adj_op_max_pool_grad,
                                           &adj_op_max_pool_grad_grad,
                                           &adj_op_softmax,
                                           &adj_op_log_softmax,
                                           &adj_op_sparse_softmax_cross_entropy};
    const adj_conv_geom *g = adj_node_geom(n);
    /* overlapping windows are summed */
    if (n->op == &adj_op_max_pool_grad && (g->sh < g->kh || g->sw < g->kw))
        return 0;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (n->op == others[i])
            return 1;
    return (n->op->flags & ADJ_OP_ELEMENTWISE) && n->op != &adj_op_adam_step;
}

/* Writes half the type's largest number to some elements, which keep their signs. */
static void make_large(const special_case *s, int k)
{
    const adj_dtype dtype = config_dtype(s->config, s->node->in[k]->type.dtype);
    const double large = ldexp(1, adj_traits_of(dtype)->max_exponent - 1);
    for (int64_t i = k % EVERY; i < node_elems(s->node->in[k]); i += EVERY)
        adj_store(s->dtype[k], s->operand[k], i,
                  copysign(large, adj_load(s->dtype[k], s->operand[k], i)));
}

/* Adds a mean that is large beside the deviations from it, or scales the values. */
static void move_all(const special_case *s, int k)
{
    const int is_f16 = config_dtype(s->config, s->node->in[k]->type.dtype) == ADJ_F16;
    const double factor = s->at == WIDE ? 16 : s->at == SMALL ? ldexp(1, is_f16 ? -8 : -20) : 1;
    for (int64_t i = 0; i < node_elems(s->node->in[k]); i++)
        adj_store(s->dtype[k], s->operand[k], i,
                  (s->at == MEAN ? 100 : 0) + factor * adj_load(s->dtype[k], s->operand[k], i));
}

/* True if operand k is a free scalar: a float in case ZERO, an integer in case LARGE_STEP. */
static int is_scalar(const adj_node *n, int k, int at)
{
    return n->in[k]->type.shape.rank == 0 && is_free(n, k) &&
           adj_is_float(n->in[k]->type.dtype) == (at == ZERO);
}

static int is_label(const adj_node *n, int k)
{
    const char *name = k < ADJ_NAMED_OPERANDS ? n->op->operand[k] : NULL;
    return name != NULL && strcmp(name, "labels") == 0 && is_free(n, k) &&
           !adj_is_float(n->in[k]->type.dtype);
}

static int may_sum(const adj_node *n)
{
    int may = n->op->flop != NULL || n->op->sum_length != NULL;
    for (int k = 0; k < n->n_in; k++)
        may |= node_elems(n->in[k]) > node_elems(n);
    return may && adj_is_float(n->type.dtype);
}

/* True if n has operands for the case at. Sums of products with a large mean leave mixed f16. */
static int is_case(const adj_compare_config *c, const adj_node *n, int at)
{
    const int is_mixed_f16 = config_half(c) == ADJ_F16;
    int n_label = 0, n_scalar = 0;
    for (int k = 0; k < n->n_in; k++) {
        n_label += is_label(n, k);
        n_scalar += is_scalar(n, k, at);
    }
    switch (at) {
    case EXACT: return may_sum(n);
    case NO_LABELS: return n_label > 0;
    case MEAN: return may_sum(n) && !is_mixed_f16;
    case WIDE:
    case SMALL: return n->op->domain == NULL && !is_mixed_f16;
    case ZERO:
    case LARGE_STEP: return n_scalar > 0;
    case LARGE: return takes_large(n);
    case FINITE: return 1;
    default: return adj_is_float(n->in[at]->type.dtype) && is_free(n, at) && !is_given(n, at);
    }
}

/* Sets every second label to the first one, or all labels to -1. */
static void change_labels(const special_case *s, int k)
{
    for (int64_t i = 0; i < node_elems(s->node->in[k]) && s->at == NO_LABELS; i++)
        adj_store(s->dtype[k], s->operand[k], i, -1);
    for (int64_t i = 2; i < node_elems(s->node->in[k]); i += 2)
        adj_store(s->dtype[k], s->operand[k], i, adj_load(s->dtype[k], s->operand[k], 0));
}

/* Computes operands that are functions of others, in dependency order. */
static adj_status compute_inner(special_case *s, region *p, outcome *o)
{
    const adj_node *n = s->node;
    adj_status status = ADJ_OK;
    for (uint32_t id = 0; id < n->id && status == ADJ_OK && o->status == ADJ_OK; id++) {
        const adj_node *x = n->graph->node[id];
        const int k = adj_operand_position(n, x);
        void *in[MAX_IN];
        if (k < 0 || !is_inner_operand(n, k))
            continue;
        for (int i = 0; i < x->n_in && status == ADJ_OK; i++) {
            const int j = adj_operand_position(n, x->in[i]);
            in[i] =
                convert(p, s->dtype[j], s->operand[j],
                        config_dtype(s->b->reference, x->in[i]->type.dtype), node_elems(x->in[i]));
            status = in[i] != NULL ? ADJ_OK : ADJ_ENOMEM;
        }
        if (status == ADJ_OK)
            status = run_node(s->b, x, in, s->b->reference, p, o);
        if (status == ADJ_OK && o->status == ADJ_OK) {
            s->dtype[k] = config_dtype(s->b->reference, x->type.dtype);
            s->operand[k] = o->value[0];
        }
    }
    for (int k = 0; k < n->n_in; k++) { /* mentioned twice */
        const int first = adj_operand_position(n, n->in[k]);
        s->operand[k] = s->operand[first];
        s->dtype[k] = s->dtype[first];
    }
    return status;
}

/* Rounds the operands of the reference's whole run as the configuration does. */
static adj_status make_operands(comparing *r, special_case *s, region *p, outcome *o)
{
    const adj_node *n = s->node;
    const node_case drawn = case_of(r, 0, n);
    *o = (outcome){0};
    for (int k = 0; k < n->n_in; k++) {
        const int64_t count = node_elems(n->in[k]);
        const adj_dtype dtype = config_dtype(s->config, n->in[k]->type.dtype);
        void *v = convert(p, drawn.dtype[k], drawn.operand[k], dtype, count);
        if (v == NULL)
            return ADJ_ENOMEM;
        s->operand[k] = v;
        s->dtype[k] = dtype;
        const int is_changed = is_free(n, k) && !is_given(n, k);
        if (s->at == NO_LABELS && is_label(n, k))
            change_labels(s, k);
        else if (s->at < ZERO && is_changed && adj_is_float(dtype))
            move_all(s, k);
        else if ((s->at == ZERO || s->at == LARGE_STEP) && is_scalar(n, k, s->at))
            adj_store(dtype, v, 0, s->at == ZERO ? 0 : 1000000);
        if (s->at <= LARGE_STEP || !is_changed)
            continue;
        if (s->at == LARGE && adj_is_float(dtype))
            make_large(s, k);
        else if (adj_is_float(dtype))
            make_special(n, k, dtype,
                         s->at == k        ? WITH_INFINITIES
                         : s->at == FINITE ? FINITE_ALONE
                                           : FINITE_BESIDE,
                         s->dtype[k], v);
        else
            change_labels(s, k);
    }
    return compute_inner(s, p, o);
}

/* ---- one case ---- */

/* Writes the name of the case; is_reference: the reference failed on it. */
static void name_case(const special_case *s, int is_reference, char *text, size_t size)
{
    int n = is_reference ? snprintf(text, size, REFERENCE_IS_WRONG ": ") : 0;
    if (s->at == EXACT)
        snprintf(text + n, size - (size_t)n, "on integers");
    else if (s->at == NO_LABELS)
        snprintf(text + n, size - (size_t)n, "on labels of -1");
    else if (s->at == MEAN)
        snprintf(text + n, size - (size_t)n, "on values with a large mean");
    else if (s->at < ZERO)
        snprintf(text + n, size - (size_t)n,
                 s->at == WIDE ? "on values far from 0" : "on values close to 0");
    else if (s->at == LARGE)
        snprintf(text + n, size - (size_t)n, "on the type's largest numbers");
    else if (s->at <= LARGE_STEP)
        snprintf(text + n, size - (size_t)n, s->at == ZERO ? "on scalars of 0" : "at step 1000000");
    else if (s->at == FINITE)
        snprintf(text + n, size - (size_t)n, "on ties, zeros, values at kinks");
    else {
        n += snprintf(text + n, size - (size_t)n, "on a NaN and infinities in ");
        name_operand(s->node, s->at, text + n, size - (size_t)n);
    }
}

/* True if signs of zeros are defined: the result is not a sum of several terms. */
static int has_signs(const adj_node *n)
{
    const adj_op *op = n->op;
    int64_t max = 0;
    for (int k = 0; k < n->n_in; k++)
        max = node_elems(n->in[k]) > max ? node_elems(n->in[k]) : max;
    if (may_be_any_kind(n) || op->flop != NULL || op->sum_length != NULL || op->cancels_in != 0)
        return 0;
    return (op->flags & ADJ_OP_ELEMENTWISE) || op->linear_in == 0 || op == &adj_op_slice ||
           max <= node_elems(n);
}

/* Runs one case. base: the expectation of FINITE; NULL before it. */
static adj_status try_case(comparing *r, special_case *s, const expectation *base, region *p,
                           expectation *e, compare_row *row)
{
    char where[160];
    outcome o = {0};
    adj_status status = s->at != EXACT ? make_operands(r, s, p, &o) : ADJ_OK;
    node_case n = case_of(r, 0, s->node);
    n.base = base;
    n.is_alone = 1;
    n.exact = s->at == EXACT;
    /* The formula is in float64, too: with its largest numbers it may overflow on the way. */
    n.by_formula = s->at != LARGE || config_dtype(s->config, s->node->type.dtype) != ADJ_F64;
    if (s->at != EXACT) {
        memcpy(n.operand, s->operand, sizeof n.operand);
        memcpy(n.dtype, s->dtype, sizeof n.dtype);
    }
    if (status == ADJ_OK && o.status == ADJ_OK)
        status = node_expect(s->b, &n, s->config, p, e, &o);
    e->signs = s->at == FINITE && has_signs(s->node);
    const int is_inexact = s->at == EXACT && !e->exact;
    if (status != ADJ_OK || o.status != ADJ_OK || is_inexact) { /* nor values that the op refuses */
        *e = (expectation){0};
        return status;
    }
    if (row->config > 0)
        status = node_run(s->b, &n, s->config, p, &o);
    if (status != ADJ_OK)
        return status;
    if (o.status != ADJ_OK) {
        report_row_failure(r->c, &o, row);
        return ADJ_OK;
    }
    if (s->at >= 0)
        status = accept_nonfinite(s->b, s->config, &n, row->type, o.value[0], e, p);
    const adj_compare_error error = measure_error(row->type, o.value[0], e);
    if (status != ADJ_OK || error.wrong == 0)
        return status;
    name_case(s, row->config == 0, where, sizeof where);
    row->verdict = ADJ_VERDICT_FAIL;
    row->blame = row->config > 0 ? ADJ_BLAME_KERNEL : ADJ_BLAME_REFERENCE;
    row->reason = report_worst(r->c, where, &error);
    return row->config > 0 ? blame_wrong_node(s->b, &n, s->config, e, &r->c->log, p, row) : ADJ_OK;
}

adj_status compare_special(comparing *r, int k, compare_row *row)
{
    region p = {.allocator = r->c->log.region.allocator};
    expectation base = {0};
    runner once = r->runner;
    const adj_node *n = row->node;
    adj_status status = ADJ_OK;
    once.runs = 0;
    once.scales = 0; /* 6 and its like are no gradients: scaled, their sums overflow */
    if (row->verdict != ADJ_VERDICT_PASS || is_wrong(&row->isolated) || !row->repeats ||
        is_repeated(r->g, r->needed, n, 0))
        return ADJ_OK;
    for (int at = r->opts->exact ? ZERO : EXACT;
         at < n->n_in && status == ADJ_OK && row->verdict == ADJ_VERDICT_PASS; at++) {
        if (!is_case(&r->c->config[k], n, at))
            continue;
        special_case s = {.b = &once, .config = &r->c->config[k], .node = n, .at = at};
        expectation e;
        status = try_case(r, &s, base.bound != NULL ? &base : NULL, &p, &e, row);
        if (at == FINITE)
            base = e;
    }
    region_free(&p);
    return status;
}
