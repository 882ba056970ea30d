/* gradcheck.c - adj_gradcheck: selects the nodes to check and adds a row for each operand.
 *
 * Nodes that differ only in the values of their operands are checked once. */
#include <string.h>

#include "check/compare/compare.h"
#include "check/formula.h"
#include "gradcheck.h"

/* Adds a row without numbers: SKIPPED or NOT_CHECKED. */
static adj_status leave_out(gradcheck_report *r, const adj_node *n, const char *wrt, int order,
                            adj_gradcheck_result result, const char *why)
{
    gradcheck_detail *row = gradcheck_row(r, n, wrt, order);
    if (row == NULL)
        return r->log.status;
    row->reason = why;
    row->result = result;
    return r->log.status;
}

static adj_status skip(gradcheck_report *r, const adj_node *n, const char *wrt, int order,
                       const char *why)
{
    return leave_out(r, n, wrt, order, ADJ_GRADCHECK_SKIPPED, why);
}

const char *gradcheck_other_impl(gradcheck_report *r, const char *backend, const char *impl)
{
    const char *other = other_impl(&r->log, r->debug.impl, backend, impl);
    r->conditions.impl_nodes += r->debug.impl != NULL && other[0] == '\0';
    return other;
}

/* Returns what ran instead of the requested implementation, by the first or last step. */
static const char *other_impl_of(gradcheck_report *r, const adj_exec *e)
{
    adj_step_info ran = {.backend = "", .impl = ""};
    for (int i = 0; i < adj_exec_step_count(e); i++) {
        const adj_step_info step = adj_exec_step_at(e, i);
        if (step.n_node == 0)
            continue;
        ran = step;
        if (r->debug.impl == NULL || strstr(step.impl, r->debug.impl) != NULL)
            break;
    }
    return gradcheck_other_impl(r, ran.backend, ran.impl);
}

static adj_status check_open_subject(subject *s, const char *prefix)
{
    gradcheck_report *r = s->report;
    const char *remark = other_impl_of(r, s->tested.backward);
    if (remark[0] == '\0' && s->wide == ADJ_F32)
        remark = "by differences in float32: no backend computes it in float64";
    const char *blame = repeat_with_reals(s) == ADJ_OK ? check_reference(s) : NULL;
    if (blame != NULL)
        fail_value(s, blame);
    for (int leaf = 0; leaf < s->n_leaf && r->log.status == ADJ_OK; leaf++) {
        const char *wrt = leaf_name(s, leaf);
        if (prefix[0] != '\0')
            wrt = log_text(&r->log, "%s/%s", prefix, wrt);
        if (!leaf_is_float(s, leaf)) {
            skip(r, s->node, wrt, s->order, "integer input");
            continue;
        }
        gradcheck_detail *row = gradcheck_row(r, s->node, wrt, s->order);
        if (row == NULL)
            break;
        row->type = s->tested.leaf[leaf]->type;
        if (check_leaf(s, leaf, row) == ADJ_OK)
            check_ties(s, leaf, row);
        if (row->result == ADJ_GRADCHECK_PASS)
            row->reason = remark;
    }
    return r->log.status;
}

/* A row of n that fails before anything is run. */
static adj_status fail_node(gradcheck_report *r, const adj_node *n, int order,
                            adj_gradcheck_fault fault, const char *sentence)
{
    gradcheck_detail *row = gradcheck_row(r, n, "-", order);
    if (row != NULL)
        gradcheck_blame(fault, sentence, row);
    return r->log.status;
}

/* Fails a rule whose gradient has a wrong type or does not exist. */
static adj_status fail_type(subject *s)
{
    const int is_merged = is_other_unmerged(s, 0);
    return fail_node(s->report, s->node, s->order, is_merged ? ADJ_FAULT_GRAPH : ADJ_FAULT_RULE,
                     log_text(&s->report->log, "%s -> fault is in the %s of %s", s->wrong_type,
                              is_merged ? MERGED : "gradient rule", s->node->op->name));
}

/* Checks n in the first order, or dx with respect to leaf `of`. */
static adj_status check_subject(gradcheck_report *r, const adj_node *n, int order, int of,
                                const char *prefix)
{
    subject s;
    adj_status status = subject_open(&s, r, n, order, of);
    if (status == ADJ_ENOGRAD)
        status = skip(r, n, prefix[0] != '\0' ? prefix : "-", order,
                      "no gradient rule for what it is made of");
    else if (status == ADJ_OK && s.wrong_plan != NULL)
        status = fail_node(r, n, order, ADJ_FAULT_PLAN, s.wrong_plan);
    else if (status == ADJ_OK && s.wrong_type != NULL)
        status = fail_type(&s);
    else if (status == ADJ_OK && s.unchecked != NULL)
        status = leave_out(r, n, prefix[0] != '\0' ? prefix : "-", order, ADJ_GRADCHECK_NOT_CHECKED,
                           s.unchecked);
    else if (status == ADJ_OK)
        status = check_open_subject(&s, prefix);
    subject_close(&s);
    return status;
}

static adj_status check_second_order(gradcheck_report *r, const adj_node *n)
{
    subject first; /* says which leaves there are */
    adj_status status = subject_open(&first, r, n, 1, 0);
    for (int leaf = 0; leaf < first.n_leaf && status == ADJ_OK; leaf++) {
        double value;
        const adj_node *dx = first.tested.dx[leaf];
        if (first.wrong_type == NULL && first.wrong_plan == NULL && first.unchecked == NULL &&
            dx != NULL && !adj_is_fill(dx, &value))
            status = check_subject(r, n, 2, leaf, leaf_name(&first, leaf));
    }
    subject_close(&first);
    return status == ADJ_ENOGRAD ? ADJ_OK : status;
}

/* A step of an optimizer has no gradient, but a formula. */
static adj_status check_step(gradcheck_report *r, const adj_node *n)
{
    gradcheck_detail *row = gradcheck_row(r, n, operand_name(n, 0), 1);
    return row != NULL ? check_update(r, n, row) : r->log.status;
}

/* Checks that the operands' gradients are zero fills, as no gradient flows through n. */
static adj_status check_held(gradcheck_report *r, const adj_node *n)
{
    subject s;
    double value;
    adj_status status = subject_open(&s, r, n, 1, 0);
    int flows = status == ADJ_ENOGRAD; /* a rule is missing */
    for (int leaf = 0; leaf < s.n_leaf && status == ADJ_OK; leaf++)
        flows |= leaf_is_float(&s, leaf) && !(adj_is_fill(s.tested.dx[leaf], &value) && value == 0);
    subject_close(&s);
    if (status != ADJ_OK && status != ADJ_ENOGRAD)
        return status;
    if (flows)
        return fail_node(
            r, n, 1, n->op->grad != NULL ? ADJ_FAULT_RULE : ADJ_FAULT_GRAPH,
            log_text(&r->log, "a gradient flows, by definition none does -> fault is in %s%s",
                     n->op->grad != NULL ? "the gradient rule of " : "adj_grad: no rule of ",
                     n->op->name));
    return skip(r, n, "-", 1, "no gradient flows, by definition");
}

static int has_float_operand(const adj_node *n)
{
    for (int k = 0; k < n->n_in; k++)
        if (adj_is_float(n->in[k]->type.dtype))
            return 1;
    return 0;
}

static adj_status check_node(gradcheck_report *r, const adj_node *n)
{
    if (n->n_in == 0 || (n->op->flags & ADJ_OP_LEAF))
        return skip(r, n, "-", 1, "a leaf");
    if (formula_is_step(n->op) && formula_exists(n))
        return check_step(r, n);
    if (!adj_is_float(n->type.dtype))
        return skip(r, n, "-", 1, "an integer result");
    if (!has_float_operand(n))
        return skip(r, n, "-", 1, "integer operands only");
    if (stops_gradient(n))
        return check_held(r, n);
    if (n->op->grad == NULL)
        return skip(r, n, "-", 1, "no gradient rule");
    adj_status status = check_subject(r, n, 1, 0, "");
    if (status == ADJ_OK && r->opts.order == 2)
        status = check_second_order(r, n);
    return status;
}

/* ---- entry points ---- */

/* The steps that the updates of the options make; need: what was checked. */
static adj_status check_steps(gradcheck_report *r, const adj_graph *g, const char *need)
{
    const adj_updates *u = r->opts.exec.updates;
    char *steps = region_alloc(&r->log.region, (size_t)g->n_node, 1);
    adj_status status = r->log.status;
    if (steps == NULL)
        return log_no_memory(&r->log);
    for (int i = 0; u != NULL && i < u->n; i++)
        mark_needed(g, 1, (const adj_node *const[]){u->list[i].next}, steps);
    for (int id = 0; id < g->n_node && status == ADJ_OK; id++) {
        const adj_node *n = g->node[id];
        steps[id] = steps[id] && !need[id] && formula_is_step(n->op);
        if (steps[id] && !is_repeated(g, steps, n, 0))
            status = check_node(r, n);
    }
    return status;
}

static adj_status check_graph(gradcheck_report *r, const adj_node *y)
{
    const adj_graph *g = y->graph;
    char *need = region_alloc(&r->log.region, (size_t)g->n_node, 1);
    adj_status status = ADJ_OK;
    if (need == NULL)
        return log_no_memory(&r->log);
    mark_needed(g, 1, (const adj_node *const[]){y}, need);
    for (int id = 0; id <= (int)y->id && status == ADJ_OK; id++) {
        const adj_node *n = g->node[id];
        int depth = 0;
        if (!need[id] || n->n_in == 0)
            continue;
        if (closure_depth(n, &depth) != ADJ_OK)
            return log_no_memory(&r->log);
        if (!is_repeated(g, need, n, depth))
            status = check_node(r, n);
    }
    if (status == ADJ_OK)
        status = check_whole(r, y);
    return status == ADJ_OK ? check_steps(r, g, need) : status;
}

adj_status adj_gradcheck(adj_node *y, const adj_gradcheck_opts *opts,
                         const adj_gradcheck_report **out)
{
    gradcheck_report *r = gradcheck_open(y, opts, out);
    if (r != NULL && r->log.status == ADJ_OK)
        check_graph(r, y);
    return gradcheck_close(r, out);
}

adj_status adj_gradcheck_nodes(int n, adj_node *const node[], const adj_gradcheck_opts *opts,
                               const adj_gradcheck_report **out)
{
    gradcheck_report *r = gradcheck_open(n > 0 && node != NULL ? node[0] : NULL, opts, out);
    for (int i = 0; i < n && r != NULL && r->log.status == ADJ_OK; i++)
        if (node[i] == NULL || node[i]->graph != node[0]->graph)
            log_fail(&r->log, ADJ_EARG, "gradcheck: node %d is %s", i,
                     node[i] == NULL ? "NULL" : "of another graph");
    for (int i = 0; i < n && r != NULL && r->log.status == ADJ_OK; i++)
        check_node(r, node[i]);
    return gradcheck_close(r, out);
}
