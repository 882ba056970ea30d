/* reference.c - whether the reference is right: what naive gives in float64 for each node on the
 * way to the gradients, forward and backward, against the op's formula for the same operands. A
 * fault that all of naive's kernels share is in the backend under test, too, where that falls back
 * to naive. */
#include <math.h>

#include "check/compare/compare.h"
#include "check/formula.h"
#include "gradcheck.h"

/* A fraction of the largest result, or of the terms that cancel in it. */
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

double **operands_in(subject *s, adj_exec *e, const adj_node *n, region *p)
{
    double **v = region_alloc(p, (size_t)n->n_in + 1, sizeof *v);
    if (v == NULL)
        log_no_memory(&s->report->log);
    for (int k = 0; v != NULL && k < n->n_in; k++)
        if ((v[k] = value_in(s, e, n->in[k], p)) == NULL)
            return NULL;
    return v;
}

/* Compares the node's value with its formula; a node without one is right. */
static void judge_value(subject *s, const adj_node *n, region *p)
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
    s->refuted_by = judge((adj_type){ADJ_F64, n->type.shape}, got, &right);
    if (s->refuted_by.wrong > 0)
        s->refuted = n;
}

const char *check_reference(subject *s)
{
    const adj_graph *g = s->reference.graph;
    for (int id = 0; id < g->n_node && s->wide == ADJ_F64 && s->refuted == NULL; id++) {
        region p = {.allocator = s->region.allocator};
        if (formula_exists(g->node[id]))
            judge_value(s, g->node[id], &p);
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
