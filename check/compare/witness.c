/* witness.c - after a node has failed alone: is it the configuration's kernel that is wrong, or the
 * reference's?
 *
 * Other backends compute the node on the same operands, and the op's formula if it has one. Those
 * that agree with the configuration, and not with the reference, stand against the reference; it is
 * wrong if nobody agrees with it. Where nobody else computes the node, its gradient is checked:
 * that finds out whether the reference's kernels fit each other. */
#include <math.h>
#include <string.h>

#include "check/formula.h"
#include "compare.h"

enum { MAX_CHECKED_FLOP = 1 << 26 };

/* What is asked about. */
typedef struct {
    const comparing *r;
    int k; /* the configuration */
    const adj_compare_row *row;
    node_case *n;
    expectation e;      /* of the reference ... */
    expectation failed; /* ... and of the configuration, within the same bounds */
    int with, against;  /* the reference */
    char names[160];    /* of those against it */
} question;

static void count_vote(question *q, adj_type type, const void *value, const char *backend,
                       const char *implementation)
{
    const adj_compare_error with = judge(type, value, &q->e);
    const adj_compare_error against = judge(type, value, &q->failed);
    size_t used = strlen(q->names);
    if (with.wrong == 0 && !mostly_lost(&with)) {
        q->with++;
    } else if (against.wrong == 0 && !mostly_lost(&against)) {
        q->against++;
        snprintf(q->names + used, sizeof q->names - used, "%s%s (%s)", used > 0 ? ", " : "",
                 backend, implementation);
    }
}

/* The value that failed, and bounds around it as wide as around the reference's, and as that. */
static adj_status expect_failed(question *q, region *p)
{
    const comparing *r = q->r;
    const adj_compare_config *config = &r->c->config[q->k];
    const int64_t n = node_elems(q->row->node);
    runner untimed = r->runner;
    outcome o;
    untimed.runs = 0;
    adj_status status = node_expect(&untimed, q->n, config, p, &q->e, &o);
    if (status == ADJ_OK && o.status == ADJ_OK)
        status = node_run(&untimed, q->n, config, p, &o);
    if (status != ADJ_OK || o.status != ADJ_OK)
        return status;
    q->failed = q->e;
    q->failed.exact = 0;
    q->failed.expected = convert(p, q->row->type.dtype, o.value[0], q->e.dtype, n);
    q->failed.bound = region_alloc(p, (size_t)n + 1, sizeof(double));
    if (q->failed.expected == NULL || q->failed.bound == NULL)
        return ADJ_ENOMEM;
    for (int64_t i = 0; i < n; i++)
        q->failed.bound[i] = 2 * q->e.bound[i];
    return ADJ_OK;
}

/* The node by that backend, or by the last of the list, which does not count. */
static adj_status ask_backend(question *q, const adj_backend *backend, const adj_backend *last,
                              region *p)
{
    const comparing *r = q->r;
    const adj_backend *const list[] = {backend, last, NULL};
    const fetch_info *reference = &r->whole[0].info[r->index[q->row->node->id]];
    adj_compare_opts opts = *r->opts;
    runner b = {.opts = &opts, .reference = r->runner.reference};
    adj_compare_config c = r->c->config[q->k];
    outcome o;
    if (!opts.guard)
        opts.debug.backends = list;
    snprintf(c.backend, sizeof c.backend, "%s", backend->name);
    c.impl[0] = '\0';
    c.fast = c.tune = 0;
    c.precision = ADJ_PRECISION_AS_BUILT;
    adj_status status = node_run(&b, q->n, &c, p, &o);
    if (status != ADJ_OK || o.status != ADJ_OK)
        return status;
    const char *by = o.info[0].backend;
    if (strcmp(by, q->row->backend) != 0 && strcmp(by, reference->backend) != 0 &&
        strcmp(by, last->name) != 0)
        count_vote(q, q->row->type, o.value[0], by, o.info[0].implementation);
    return ADJ_OK;
}

static adj_status ask_backends(question *q, region *p)
{
    const adj_backend *const *const lists[] = {q->r->opts->debug.backends, adj_backends};
    adj_status status = ADJ_OK;
    for (int i = 0; i < 2; i++) {
        const adj_backend *const *last = lists[i];
        while (last != NULL && last[0] != NULL && last[1] != NULL)
            last++;
        for (const adj_backend *const *b = lists[i]; b != last && status == ADJ_OK; b++)
            status = ask_backend(q, *b, *last, p);
    }
    return status;
}

double **real_operands(const node_case *n, const adj_compare_config *c, region *p)
{
    double **operand = region_alloc(p, (size_t)n->node->n_in + 1, sizeof *operand);
    for (int k = 0; operand != NULL && k < n->node->n_in; k++) {
        const adj_dtype dtype = config_dtype(c, n->node->in[k]->type.dtype);
        const int64_t elems = node_elems(n->node->in[k]);
        const void *v = convert(p, n->dtype[k], n->operand[k], dtype, elems);
        operand[k] = v != NULL ? convert(p, dtype, v, ADJ_F64, elems) : NULL;
        if (operand[k] == NULL)
            return NULL;
    }
    return operand;
}

static adj_status ask_formula(question *q, region *p)
{
    const adj_node *n = q->row->node;
    if (!formula_exists(n) || q->n->exact)
        return ADJ_OK;
    double **operand = real_operands(q->n, &q->r->c->config[q->k], p);
    double *value = region_alloc(p, (size_t)node_elems(n) + 1, sizeof *value);
    if (operand == NULL || value == NULL)
        return ADJ_ENOMEM;
    formula_value(n, operand, value, NULL);
    count_vote(q, (adj_type){ADJ_F64, n->type.shape}, value, "its formula", "float64");
    return ADJ_OK;
}

/* Does a check of the node's gradient blame the reference? why: how. */
static adj_status check_gradient(const question *q, const char **why)
{
    const comparing *r = q->r;
    const adj_gradcheck_opts opts = {.draws = 1,
                                     .threads = r->opts->threads,
                                     .backend = r->c->config[q->k].backend,
                                     .debug.backends = r->opts->debug.backends,
                                     .debug.quarantine = r->opts->debug.quarantine};
    adj_gradcheck_report *report = NULL;
    adj_node *n = r->g->node[q->row->node->id];
    if (n->op->grad == NULL || r->opts->guard ||
        r->whole[0].info[r->index[n->id]].flop > MAX_CHECKED_FLOP)
        return ADJ_OK;
    adj_status status = adj_gradcheck_node(n, &opts, &report);
    for (int i = 0; status == ADJ_OK && i < adj_gradcheck_row_count(report) && *why == NULL; i++) {
        const adj_gradcheck_row *row = adj_gradcheck_row_at(report, i);
        if (row->fault == ADJ_FAULT_REFERENCE)
            *why = report_text(r->c, row->blame);
    }
    adj_gradcheck_free(report);
    return status == ADJ_ENOMEM ? ADJ_ENOMEM : ADJ_OK;
}

static void blame_reference(const question *q, adj_compare_row *row)
{
    char text[400];
    snprintf(text, sizeof text, "the reference is wrong: %s (%s) and %s agree with each other",
             row->backend, row->implementation, q->names);
    row->blame = ADJ_BLAME_REFERENCE;
    row->reason = report_text(q->r->c, text);
}

adj_status ask_witnesses(const comparing *r, int k, node_case *n, adj_compare_row *row)
{
    region p = {.allocator = r->c->region.allocator};
    question q = {.r = r, .k = k, .row = row, .n = n};
    const char *why = NULL;
    adj_status status = expect_failed(&q, &p);
    if (status == ADJ_OK && q.failed.expected != NULL)
        status = ask_backends(&q, &p);
    if (status == ADJ_OK && q.failed.expected != NULL)
        status = ask_formula(&q, &p);
    if (status == ADJ_OK && q.with + q.against == 0 && q.failed.expected != NULL)
        status = check_gradient(&q, &why);
    if (q.against > 0 && q.with == 0)
        blame_reference(&q, row);
    if (why != NULL) {
        row->blame = ADJ_BLAME_REFERENCE;
        row->reason = why;
    }
    region_free(&p);
    return status;
}
