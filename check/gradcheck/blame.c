/* blame.c - whose fault a wrong gradient is: the reference's, the rule's, or a kernel's.
 *
 * The reference is wrong if a formula has refuted one of its values. Else the rule is, if
 * differences and naive's backward pass disagree. Else a kernel or the plan: the gradient's graph
 * is compared with naive in float64 on the values of this draw, and adj_compare's first row names
 * it. */
#include <math.h>
#include <string.h>

#include "check/compare/compare.h"
#include "gradcheck.h"

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
        const double *v = i < s->n_leaf ? s->x[i] : s->dy;
        value[i] =
            (adj_leaf_value){x, convert(&s->region, ADJ_F64, v, x->type.dtype, node_elems(x))};
        value = value[i].data != NULL ? value : NULL;
    }
    return value != NULL
               ? adj_compare_with(t->graph, &o, &(adj_trial_opts){.internal = r->debug.internal}, c)
               : ADJ_ENOMEM;
}

/* Returns a sentence on the kernel or plan at fault; on that of the gradient's last kernel, if
 * nothing is wrong by adj_compare's bounds. */
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
        sentence = log_text(l, "fault is in backend %s's kernel for %s (%s)",
                            row != NULL ? row->backend : step.backend,
                            row != NULL ? adj_compare_row_name(row)
                                        : viewed_node(s->tested.dx[leaf])->op->name,
                            row != NULL ? row->implementation : step.impl);
    }
    adj_comparison_free(c);
    return sentence;
}

/* ---- the graph ---- */

int is_right_unmerged(subject *s, int leaf)
{
    subject u;
    leaf_check c = {.s = &u, .leaf = leaf};
    estimate e;
    double size;
    int is_right = 0;
    s->report->is_unmerged = 1;
    adj_status status = subject_open(&u, s->report, s->node, s->order, s->of);
    if (status == ADJ_OK && u.wrong_type == NULL && s->wrong_type != NULL)
        is_right = 1;
    else if (status == ADJ_OK && u.wrong_type == NULL && u.unchecked == NULL) {
        u.x = s->x;
        u.dy = s->dy;
        draw_direction(&u, leaf, 0, 0);
        if (check_differentiate(&c, &e) == ADJ_OK && backward(&u) == ADJ_OK &&
            bound_open(&u, leaf, &c.bound) == ADJ_OK) {
            const int64_t n = leaf_elems(&u, leaf);
            const double merged = check_projection(s->dx_ref[leaf], u.v, n, &size);
            const double sum = check_projection(u.dx_ref[leaf], u.v, n, &size);
            const double tolerance = check_rule_tolerance(&c, e, size);
            is_right = check_excess(fabs(sum - e.value), tolerance) <= 1 &&
                       check_excess(fabs(merged - e.value), tolerance) > 1;
        }
    }
    subject_close(&u);
    s->report->is_unmerged = 0;
    return is_right;
}

/* True if the rule has an answer for the operand, which is a leaf, and adj_grad 0. */
static int is_lost(const subject *s, int leaf)
{
    const twin *t = &s->reference;
    adj_node *dx[MAX_IN] = {NULL}, *share = NULL;
    double value;
    if (s->order != 1 || t->y->n_in > MAX_IN)
        return 0;
    for (int k = 0; k < t->y->n_in; k++)
        if (t->y->in[k]->n_in > 0)
            return 0;
    t->y->op->grad(t->y, t->dy, dx);
    for (int k = 0; k < t->y->n_in; k++)
        if (t->y->in[k] == t->leaf[leaf] && dx[k] != NULL)
            share = share != NULL ? adj_add(share, dx[k]) : dx[k];
    return share != NULL && !adj_is_fill(share, &value) && adj_is_fill(t->dx[leaf], &value);
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
        const int is_merged = is_right_unmerged(s, leaf), lost = is_lost(s, leaf);
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
