/* blame.c - whose fault a wrong gradient is: the reference's, the rule's, or a kernel's.
 *
 * The reference is wrong if a formula has refuted one of its values. Else the rule is, if
 * differences and naive's backward pass disagree. Else the first node that the backend under test
 * gets wrong on the operands that it has there, by adj_compare's bounds, has the faulty kernel. */
#include <math.h>
#include <string.h>

#include "check/compare/compare.h"
#include "gradcheck.h"

/* True if the node's value in the executor is wrong for its operands there. Sets *is_alone to 1 if
 * the backend computes a wrong value from these operands outside the graph, too. */
static int is_wrong_in(subject *s, adj_exec *e, const adj_node *n, int *is_alone)
{
    const gradcheck_report *r = s->report;
    const adj_compare_opts opts = {.exec.threads = r->conditions.threads,
                                   .exec.backends = r->opts.exec.backends};
    adj_compare_config tested = {.name = "tested"}, reference = naive_f64;
    const runner b = {.opts = &opts, .reference = &reference};
    region p = {.allocator = s->region.allocator};
    node_case c = {.node = n};
    adj_compare_error error = {.n = 0};
    const double *wide = value_in(s, e, n, &p);
    double **operand = operands_in(s, e, n, &p);
    const int is_known = wide != NULL && operand != NULL && n->n_in <= MAX_IN;
    reference.dtype = s->wide;
    snprintf(tested.backend, sizeof tested.backend, "%s", r->conditions.backend);
    for (int k = 0; k < n->n_in && is_known; k++) {
        c.dtype[k] = ADJ_F64;
        c.operand[k] = operand[k];
    }
    void *value = is_known ? convert(&p, ADJ_F64, wide, n->type.dtype, node_elems(n)) : NULL;
    if (value != NULL && node_judge(&b, &c, &tested, value, &p, &error, is_alone) == ADJ_ENOMEM)
        log_no_memory(&s->report->log);
    region_free(&p);
    return is_wrong(&error);
}

/* Returns a sentence on the kernel or plan at fault. Runs the backward pass again with the values
 * of all nodes kept, and looks for the first node whose value is wrong for its operands:
 * - it is wrong alone, too: its kernel is at fault;
 * - it is right alone: the kernel of the group that computes it, or, in no group, the plan;
 * - there is none, and dx is still wrong: dx's kernel;
 * - there is none, and dx is right now: the kernel of dx's group, or, in no group, the plan. */
static const char *blame_kernel(subject *s, int leaf, adj_gradcheck_fault *fault)
{
    const adj_node *dx = s->tested.dx[leaf], *first = NULL;
    const adj_group *g = NULL;
    adj_exec *e = NULL;
    int n = 0, is_alone = 0;
    adj_node **node = nodes_behind(s, &s->tested, 1, &dx, &n);
    adj_status status =
        node != NULL ? open_exec(s, &s->tested, 0, n, node, &e) : log_no_memory(&s->report->log);
    if (status == ADJ_OK)
        status = run_exec(s, e, &s->tested, 0);
    for (int i = 0; node != NULL && i < n && status == ADJ_OK && first == NULL; i++)
        first = is_wrong_in(s, e, node[i], &is_alone) ? node[i] : NULL;
    const double *kept = first == NULL && status == ADJ_OK ? value_in(s, e, dx, &s->region) : NULL;
    const int is_found = first != NULL;
    is_alone |= !is_found && (kept == NULL || memcmp(kept, s->dx[leaf],
                                                     (size_t)node_elems(dx) * sizeof *kept) == 0);
    if (!is_found)
        first = viewed_node(dx);
    const adj_step_info step = step_of(is_found && !is_alone ? e : s->tested.backward, first, &g);
    const char *name = is_alone          ? first->op->name
                       : step.n_node > 1 ? group_name(g, &s->report->log.region)
                                         : NULL;
    *fault = name != NULL ? ADJ_FAULT_KERNEL : ADJ_FAULT_PLAN;
    const char *sentence = "right where every node keeps its value -> fault is in the plan";
    if (name != NULL)
        sentence = log_text(&s->report->log, "fault is in backend %s's kernel for %s (%s)",
                            step.backend, name, step.impl);
    else if (is_found)
        sentence = log_text(&s->report->log,
                            "%s is wrong in the graph, and right alone -> fault is in the plan",
                            first->op->name);
    adj_exec_free(e);
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
