/* blame.c - attributes a wrong gradient to the reference, the rule, a kernel or the plan.
 *
 * Reference: a formula contradicts one of its values. Rule: differences and naive's backward pass
 * disagree. Kernel or plan: adj_compare compares the gradient graph with naive in float64 on this
 * draw's values; its first failed row names the cause. */
#include <math.h>
#include <string.h>

#include "check/compare/compare.h"
#include "check/formula.h"
#include "gradcheck.h"

/* ---- the reference ---- */

/* Tolerance of naive's float64 values against formulas, relative to the largest result or to
 * cancelling terms. A fault in all of naive's kernels also affects a backend under test that falls
 * back to naive. */
static const double tolerance = 1e-10;

static double *value_in(subject *s, adj_exec *e, const adj_node *n, region *p)
{
    double *v = region_alloc(p, (size_t)node_elems(n) + 1, sizeof *v);
    if (v == NULL)
        log_no_memory(&s->report->log);
    if (v == NULL || adj_get(e, n, s->raw, adj_type_bytes(n->type)) != ADJ_OK)
        return NULL;
    adj_convert(n->type.dtype, s->raw, ADJ_F64, v, node_elems(n));
    return v;
}

static double **operands_in(subject *s, adj_exec *e, const adj_node *n, region *p)
{
    double **v = region_alloc(p, (size_t)n->n_in + 1, sizeof *v);
    if (v == NULL)
        log_no_memory(&s->report->log);
    for (int k = 0; v != NULL && k < n->n_in; k++)
        if ((v[k] = value_in(s, e, n->in[k], p)) == NULL)
            return NULL;
    return v;
}

/* Compares the node's value with its formula; right if it has none. */
static void check_value(subject *s, const adj_node *n, region *p)
{
    const int64_t elems = node_elems(n);
    adj_exec *e = s->reference.backward;
    double **operand = operands_in(s, e, n, p), *got = value_in(s, e, n, p);
    if (operand == NULL || got == NULL)
        return;
    double *bound = region_alloc(p, (size_t)elems + 1, sizeof *bound);
    double *value = convert(p, ADJ_F64, got, ADJ_F64, elems);
    if (value == NULL || bound == NULL) {
        log_no_memory(&s->report->log);
        return;
    }
    formula_value(n, operand, value);
    const double terms = formula_terms(n, operand, bound) ? max_magnitude(bound, elems) : 0;
    const double max = fmax(terms, max_magnitude(value, elems));
    for (int64_t i = 0; i < elems; i++)
        bound[i] = tolerance * (isfinite(max) ? max : 1);
    const expectation right = {.dtype = ADJ_F64, .expected = value, .bound = bound};
    s->refuted_by = measure_error((adj_type){ADJ_F64, n->type.shape}, got, &right);
    if (s->refuted_by.wrong > 0)
        s->refuted = n;
}

const char *check_reference(subject *s)
{
    const adj_graph *g = s->reference.graph;
    for (int id = 0; id < g->n_node && s->wide == ADJ_F64 && s->refuted == NULL; id++) {
        region p = {.allocator = s->region.allocator};
        if (formula_exists(g->node[id]))
            check_value(s, g->node[id], &p);
        region_free(&p);
    }
    return s->refuted == NULL
               ? NULL
               : log_text(&s->report->log,
                          "naive's kernel for %s is wrong: its formula in float64 gives "
                          "something else",
                          s->refuted->op->name);
}

adj_status fail_value(subject *s, const char *blame)
{
    const adj_compare_error *e = &s->refuted_by;
    gradcheck_detail *row = gradcheck_row(s->report, s->node, "value", s->order);
    if (row == NULL)
        return s->report->log.status;
    gradcheck_blame(ADJ_FAULT_REFERENCE, blame, row);
    check_record(&(leaf_check){.row = row}, e->at, e->got, (estimate){.value = e->expected},
                 e->bound);
    row->wrong = e->wrong;
    row->method = "formula";
    row->type = s->refuted->type;
    row->elems = e->n;
    row->origin = "rounding in float64";
    row->index = log_text(&s->report->log, "[%lld]", (long long)e->at);
    row->pattern =
        log_text(&s->report->log, "%lld of %lld wrong", (long long)e->wrong, (long long)e->n);
    return s->report->log.status;
}

/* ---- a kernel, or the plan ---- */

/* The gradient's comparison. */
static adj_status compare_gradient(subject *s, int leaf, const adj_comparison **c)
{
    const gradcheck_report *r = s->report;
    const twin *t = &s->tested;
    const int is_named = r->debug.impl != NULL;
    adj_leaf_value *value = region_alloc(&s->region, (size_t)s->n_leaf + 1, sizeof *value);
    char tested[160];
    snprintf(tested, sizeof tested, "%s%s%s", r->conditions.backend, is_named ? ":impl=" : "",
             is_named ? r->debug.impl : "");
    const adj_compare_opts o = {
        .exec = {.n_fetch = 1,
                 .fetch = &t->dx[leaf],
                 .threads = r->conditions.threads,
                 .backends = r->opts.exec.backends},
        .n_config = 2,
        .config = (const char *const[]){s->wide == ADJ_F64 ? "naive:f64" : "naive", tested},
        .n_value = s->n_leaf + 1,
        .value = value,
        .runs = 1};
    for (int i = 0; i <= s->n_leaf && value != NULL; i++) {
        const adj_node *x = i < s->n_leaf ? t->leaf[i] : t->dy;
        const double *v = i < s->n_leaf ? s->at->x[i] : s->at->dy;
        value[i] =
            (adj_leaf_value){x, convert(&s->region, ADJ_F64, v, x->type.dtype, node_elems(x))};
        value = value[i].data != NULL ? value : NULL;
    }
    return value != NULL
               ? adj_compare_with(t->graph, &o, &(adj_trial_opts){.internal = r->debug.internal}, c)
               : ADJ_ENOMEM;
}

/* Names the kernel or plan at fault; the gradient's last kernel if adj_compare finds no fault. */
static const char *blame_kernel(subject *s, int leaf, adj_gradcheck_fault *fault)
{
    const adj_comparison *c = NULL;
    const compare_row *row = NULL;
    check_log *l = &s->report->log;
    const adj_status status = compare_gradient(s, leaf, &c);
    if (status == ADJ_ENOMEM)
        log_no_memory(l);
    for (int i = 0; status == ADJ_OK && i < c->n_row; i++) {
        const compare_row *at = adj_comparison_row_at(c, i);
        const int has_fault = at->blame == ADJ_BLAME_KERNEL || at->blame == ADJ_BLAME_PLAN;
        if (has_fault && (row == NULL || (at->group[0] != '\0' && at->node == row->node)))
            row = at; /* the first, or the group that computes it */
    }
    const adj_step_info step = step_of(s->tested.backward, viewed_node(s->tested.dx[leaf]));
    const char *sentence;
    *fault = ADJ_FAULT_PLAN;
    if (row != NULL && row->blame == ADJ_BLAME_PLAN)
        sentence = log_text(l, "%s is wrong in the graph, and right alone -> fault is in the plan",
                            adj_compare_row_name(row));
    else if (row == NULL && status == ADJ_OK && c->config[1].verdict != ADJ_VERDICT_PASS)
        sentence = log_text(l, "%s -> fault is in the plan", c->config[1].reason);
    else {
        *fault = ADJ_FAULT_KERNEL;
        const int is_known = row != NULL && row->backend[0] != '\0';
        sentence = log_text(l, "fault is in backend %s's kernel for %s (%s)",
                            is_known ? row->backend : step.backend,
                            row != NULL ? adj_compare_row_name(row)
                                        : viewed_node(s->tested.dx[leaf])->op->name,
                            is_known ? row->implementation : step.impl);
    }
    adj_comparison_free(c);
    return sentence;
}

/* ---- the graph ---- */

/* A fraction of the gradient's norm: sums in another order differ by far less in float64. */
static const double merged_alike = 1e-9;

int is_other_unmerged(subject *s, int leaf)
{
    subject u;
    int is_other = 0;
    s->report->is_unmerged = 1;
    const adj_status status = subject_open(&u, s->report, s->node, s->order, s->of);
    if (status == ADJ_OK && u.wrong_type == NULL && s->wrong_type != NULL)
        is_other = 1;
    else if (status == ADJ_OK && u.wrong_type == NULL && u.unchecked == NULL) {
        draw_values(&u, 0, 0); /* memory for its gradients */
        u.at->x = s->at->x;
        u.at->dy = s->at->dy;
        const adj_status run = backward(&u);
        const adj_type type = {ADJ_F64, u.tested.leaf[leaf]->type.shape};
        is_other = run == ADJ_OK && norm_apart(type, s->at->dx_ref[leaf], ADJ_F64,
                                               u.at->dx_ref[leaf]) > merged_alike;
    }
    subject_close(&u);
    s->report->is_unmerged = 0;
    return is_other;
}

/* True if the rule gives the operand a gradient and adj_grad gives 0. */
static int is_lost(const subject *s, int leaf)
{
    const twin *t = &s->reference;
    adj_node *dx[MAX_IN] = {NULL}, *dx_leaf = NULL;
    double value;
    if (s->order != 1 || t->y->n_in > MAX_IN)
        return 0;
    for (int k = 0; k < t->y->n_in; k++)
        if (t->y->in[k]->n_in > 0)
            return 0;
    t->y->op->grad(t->y, t->dy, dx);
    for (int k = 0; k < t->y->n_in; k++)
        if (t->y->in[k] == t->leaf[leaf] && dx[k] != NULL)
            dx_leaf = dx_leaf != NULL ? adj_add(dx_leaf, dx[k]) : dx[k];
    return dx_leaf != NULL && !adj_is_fill(dx_leaf, &value) && adj_is_fill(t->dx[leaf], &value);
}

const char *blame_text(subject *s, int leaf, int rule_is_wrong, adj_gradcheck_fault *fault)
{
    const adj_status again = run_exec(s, s->reference.backward, &s->reference, 0);
    const char *wrong = again == ADJ_OK ? check_reference(s) : NULL;
    if (wrong != NULL) {
        *fault = ADJ_FAULT_REFERENCE;
        return wrong;
    }
    if (rule_is_wrong) {
        const int is_merged = is_other_unmerged(s, leaf), lost = is_lost(s, leaf);
        *fault = is_merged || lost ? ADJ_FAULT_GRAPH : ADJ_FAULT_RULE;
        return log_text(&s->report->log,
                        "%s backward disagrees with numeric as well -> fault is in the %s of "
                        "%s%s",
                        reference_name(s),
                        is_merged ? MERGED
                        : lost    ? "gradient graph (adj_grad), not in the rule,"
                                  : "gradient rule",
                        s->order == 2 ? "the gradient of " : "", s->node->op->name);
    }
    return blame_kernel(s, leaf, fault);
}
