/* blame.c - whose fault a wrong gradient is: the rule's, a kernel's, or the reference's own.
 *
 * There are these witnesses: differences of naive's forward value in float64, naive's backward pass
 * in float64, the backward pass under test, and for each node on the way the kernels of other
 * backends. Naive is to blame where every other implementation of one of its nodes contradicts it,
 * and where that explains what was found: differences and its backward pass do not fit together,
 * or the kernel under test is contradicted by naive alone. */
#include <math.h>
#include <string.h>

#include "gradcheck.h"

/* ---- what each node on the way comes to ---- */

/* An executor that keeps what the gradient is made of. */
typedef struct {
    adj_exec *exec;
    int n;
    adj_node **node; /* in id order, leaves left out */
} trail;

static adj_status open_trail(subject *s, const twin *t, int leaf, int is_naive, trail *made)
{
    adj_graph *g = t->graph;
    const adj_node *const root[] = {t->dx[leaf], t->y};
    char *need = region_alloc(&s->region, (size_t)g->n_node, 1);
    made->node = region_alloc(&s->region, (size_t)g->n_node, sizeof *made->node);
    if (need == NULL || made->node == NULL)
        return ADJ_ENOMEM;
    mark_needed(g, is_naive ? 2 : 1, root, need);
    for (int id = 0; id < g->n_node; id++)
        if (need[id] && !(g->node[id]->op->flags & ADJ_OP_LEAF))
            made->node[made->n++] = g->node[id];
    const adj_gradcheck_opts *o = &s->report->opts;
    adj_exec_opts opts = {.n_fetch = made->n,
                          .fetch = made->node,
                          .threads = s->report->about.threads,
                          .backend = "naive",
                          .debug.backends = s->backends};
    if (!is_naive) {
        opts.backend = o->backend;
        opts.debug = o->debug;
    }
    adj_status status = adj_exec_new(g, &opts, &made->exec);
    if (status == ADJ_OK)
        status = set_values(s, made->exec, t, 0);
    return status == ADJ_OK ? adj_run(made->exec) : status;
}

/* NULL: no memory, or it has no value. */
static double *value_in(subject *s, const trail *t, const adj_node *n)
{
    double *value = reals(s, node_elems(n)), *raw = reals(s, node_elems(n));
    if (value == NULL || raw == NULL || adj_get(t->exec, n, raw, adj_type_bytes(n->type)) != ADJ_OK)
        return NULL;
    adj_convert(n->type.dtype, raw, ADJ_F64, value, node_elems(n));
    return value;
}

/* Do both give the node's value to within rounding? */
static int agree(subject *s, const trail *a, const trail *b, const adj_node *n)
{
    const double *x = value_in(s, a, n), *y = value_in(s, b, n);
    if (x == NULL || y == NULL)
        return 1;
    double tolerance =
        64 * terms_of(n) * adj_traits_of(n->type.dtype)->unit * max_magnitude(y, node_elems(n));
    return are_close(x, y, node_elems(n), tolerance);
}

/* The node's operands as the trail has them, rounded to float32; NULL: there is one without. */
static double **operands_in(subject *s, const trail *t, const adj_node *n)
{
    double **v = region_alloc(&s->region, (size_t)n->n_in + 1, sizeof *v);
    if (v == NULL)
        gradcheck_fail(s->report, ADJ_ENOMEM, "gradcheck: out of memory");
    for (int k = 0; v != NULL && k < n->n_in; k++) {
        if ((v[k] = value_in(s, t, n->in[k])) == NULL)
            return NULL;
        for (int64_t i = 0; adj_is_float(n->in[k]->type.dtype) && i < node_elems(n->in[k]); i++)
            v[k][i] = rounded(ADJ_F32, v[k][i]);
    }
    return v;
}

/* ---- is naive wrong? ---- */

/* A node of the reference's graph that naive computes wrongly. */
typedef struct {
    const adj_node *node;
    votes votes;
} culprit;

/* Do all witnesses but that backend contradict naive about the node? */
static adj_status suspect_node(subject *s, const trail *t, const adj_node *n, const char *but,
                               culprit *found)
{
    const lone_node alone = {.node = n, .operand = operands_in(s, t, n)};
    votes v;
    if (!adj_is_float(n->type.dtype) || (n->op->flags & ADJ_OP_VIEW) || alone.operand == NULL)
        return ADJ_OK;
    adj_status status = hear_witnesses(s, &alone, but, &v);
    if (status == ADJ_OK && v.against > 0 && (v.with == 0 || v.is_refuted))
        *found = (culprit){.node = n, .votes = v};
    return status;
}

/* Among what y needs first: if naive's forward value is wrong, so are the differences. */
static adj_status find_culprit(subject *s, const trail *t, char *forward, culprit *found)
{
    adj_status status = ADJ_OK;
    mark_needed(s->reference.graph, 1, (const adj_node *const[]){s->reference.y}, forward);
    for (int pass = 1; pass >= 0 && found->node == NULL; pass--)
        for (int i = 0; i < t->n && status == ADJ_OK && found->node == NULL; i++)
            if (forward[t->node[i]->id] == pass)
                status = suspect_node(s, t, t->node[i], NULL, found);
    return status;
}

/* At the wrong elements of the gradient: is the other implementation's value right? Only asked
 * where its node is the gradient itself. */
static int is_confirmed(subject *s, const failure *f, const culprit *c)
{
    const double *naive = s->dx_ref[f->leaf], *other = c->votes.other.value;
    double error = 0, others = 0;
    if (c->node != s->reference.dx[f->leaf] || f->n_wrong == 0)
        return 1;
    for (int64_t i = 0, n = leaf_elems(s, f->leaf); i < n; i++)
        if (f->wrong[i]) {
            error = fmax(error, fabs(naive[i] - s->numeric[i]));
            others = fmax(others, fabs(other[i] - s->numeric[i]));
        }
    return !(others > error / 4);
}

static const char *naive_text(subject *s, const culprit *c, int is_forward)
{
    const testimony *other = &c->votes.other;
    if (is_forward)
        return gradcheck_text(s->report,
                              "naive's forward kernel for %s is wrong, and so are the differences: "
                              "%s (%s) gives other values, which fit both gradients",
                              c->node->op->name, other->backend, other->impl);
    return gradcheck_text(s->report,
                          "naive's kernel for %s is wrong: differences and %s (%s) agree",
                          c->node->op->name, other->backend, other->impl);
}

/* What naive makes wrong on the way from the leaf to the gradient, if anything. */
static adj_status search_reference(subject *s, int leaf, char *forward, culprit *found)
{
    trail t = {0};
    adj_status status = open_trail(s, &s->reference, leaf, 1, &t);
    if (status == ADJ_OK)
        status = find_culprit(s, &t, forward, found);
    adj_exec_free(t.exec);
    return status;
}

const char *wrong_reference(subject *s, int leaf)
{
    culprit c = {.node = NULL};
    char *forward = region_alloc(&s->region, (size_t)s->reference.graph->n_node, 1);
    adj_status status = forward != NULL ? search_reference(s, leaf, forward, &c) : ADJ_ENOMEM;
    if (status == ADJ_ENOMEM)
        gradcheck_fail(s->report, ADJ_ENOMEM, "gradcheck: out of memory");
    if (c.node == NULL)
        return NULL;
    return gradcheck_text(s->report, "naive's kernel for %s is wrong: %s (%s) gives other values",
                          c.node->op->name, c.votes.other.backend, c.votes.other.impl);
}

/* Differences and naive's backward pass disagree. */
static const char *blame_disagreement(subject *s, const failure *f, adj_gradcheck_fault *fault)
{
    culprit c = {.node = NULL};
    char *forward = region_alloc(&s->region, (size_t)s->reference.graph->n_node, 1);
    adj_status status = forward != NULL ? search_reference(s, f->leaf, forward, &c) : ADJ_ENOMEM;
    if (status == ADJ_ENOMEM)
        gradcheck_fail(s->report, ADJ_ENOMEM, "gradcheck: out of memory");
    if (c.node != NULL && is_confirmed(s, f, &c)) {
        *fault = ADJ_FAULT_REFERENCE;
        return naive_text(s, &c, forward[c.node->id]);
    }
    *fault = ADJ_FAULT_RULE;
    return gradcheck_text(s->report,
                          "%s backward disagrees with numeric as well -> fault is in "
                          "the gradient rule of %s%s",
                          reference_name(s), s->order == 2 ? "the gradient of " : "",
                          s->node->op->name);
}

/* ---- is the kernel wrong? ---- */

/* The node of the reference's graph that is the tested graph's n; NULL: there is none. */
static const adj_node *reference_of(const subject *s, const adj_node *n)
{
    const adj_graph *g = s->reference.graph;
    const adj_node *same = (int)n->id < g->n_node ? g->node[n->id] : NULL;
    return same != NULL && same->op == n->op && adj_shape_equal(same->type.shape, n->type.shape)
               ? same
               : NULL;
}

/* A part of a value, or the same elements elsewhere: where it is wrong, the value is. */
static int only_moves(const adj_node *n)
{
    return (n->op->flags & ADJ_OP_VIEW) || n->op == &adj_op_slice || n->op == &adj_op_transpose;
}

/* The first node at which the backend under test and naive part; dx, if there is none. */
static const adj_node *first_apart(subject *s, const trail *tested, const trail *naive,
                                   const adj_node *dx)
{
    const adj_node *first = dx;
    for (int i = tested->n - 1; i >= 0; i--)
        if (agree(s, tested, naive, tested->node[i]) == 0)
            first = tested->node[i];
    while (only_moves(first) && !(first->in[0]->op->flags & ADJ_OP_LEAF))
        first = first->in[0];
    return first;
}

/* With respect to another leaf, do differences and naive's backward pass disagree, on the values of
 * this draw? */
static int is_inconsistent(subject *s, int leaf)
{
    const leaf_check c = {.s = s, .leaf = leaf};
    const int64_t n = leaf_elems(s, leaf);
    estimate e;
    double size;
    if (s->reference.dx[leaf] == NULL || s->kinks[leaf])
        return 0;
    draw_direction(s, leaf, 0, 0);
    if (check_differentiate(&c, &e) != ADJ_OK)
        return 0;
    double sum = check_projection(s->dx_ref[leaf], s->v, n, &size);
    return check_excess(fabs(sum - e.value), check_rule_tolerance(&c, e, size)) > 1;
}

/* A kernel that only naive and the backend under test have: it is naive's that is wrong if its
 * gradient with respect to another leaf shows it. */
static adj_status ask_other_leaves(subject *s, int leaf, const adj_node *node, culprit *found)
{
    char *forward = region_alloc(&s->region, (size_t)s->reference.graph->n_node, 1);
    adj_status status = forward != NULL ? ADJ_OK : ADJ_ENOMEM;
    for (int other = 0; other < s->n_leaf && status == ADJ_OK && found->node == NULL; other++) {
        culprit c = {.node = NULL};
        if (other == leaf || !is_inconsistent(s, other))
            continue;
        status = search_reference(s, other, forward, &c);
        if (c.node != NULL && c.node->op == node->op)
            *found = c;
    }
    return status;
}

/* Differences and naive's backward pass agree, the gradient under test does not. Naive's kernels
 * can still be wrong, all in the same way. */
static const char *blame_kernel(subject *s, const failure *f, adj_gradcheck_fault *fault)
{
    const adj_node *faulty = s->tested.dx[f->leaf];
    trail tested = {0}, naive = {0}, reference = {0};
    culprit c = {.node = NULL};
    adj_status status = open_trail(s, &s->tested, f->leaf, 0, &tested);
    if (status == ADJ_OK)
        status = open_trail(s, &s->tested, f->leaf, 1, &naive);
    if (status == ADJ_OK)
        status = open_trail(s, &s->reference, f->leaf, 1, &reference);
    if (status == ADJ_OK)
        faulty = first_apart(s, &tested, &naive, faulty);
    const adj_step_info step = step_of(s->tested.backward, faulty);
    const adj_node *same = reference_of(s, faulty);
    if (status == ADJ_OK && same != NULL)
        status = suspect_node(s, &reference, same, step.backend, &c);
    adj_exec_free(tested.exec);
    adj_exec_free(naive.exec);
    adj_exec_free(reference.exec);
    const int is_alike = c.node != NULL;
    if (status == ADJ_OK && same != NULL && !is_alike)
        status = ask_other_leaves(s, f->leaf, same, &c);
    if (status == ADJ_ENOMEM)
        gradcheck_fail(s->report, ADJ_ENOMEM, "gradcheck: out of memory");
    *fault = c.node != NULL ? ADJ_FAULT_REFERENCE : ADJ_FAULT_KERNEL;
    if (c.node != NULL && !is_alike)
        return gradcheck_text(s->report,
                              "naive's kernel for %s is wrong, and its gradient with respect to "
                              "another operand shows it: %s (%s) gives other values",
                              c.node->op->name, c.votes.other.backend, c.votes.other.impl);
    if (c.node != NULL)
        return gradcheck_text(s->report,
                              "naive's kernels for %s and what it is the gradient of are wrong "
                              "alike: %s (%s) and %s (%s) agree with each other",
                              faulty->op->name, step.backend, step.impl, c.votes.other.backend,
                              c.votes.other.impl);
    return gradcheck_text(s->report,
                          "%s backward agrees with numeric -> fault is in backend %s's "
                          "kernel for %s (%s)",
                          reference_name(s), step.backend, faulty->op->name, step.impl);
}

const char *blame_text(subject *s, const failure *f, adj_gradcheck_fault *fault)
{
    const char *text =
        f->rule_is_wrong ? blame_disagreement(s, f, fault) : blame_kernel(s, f, fault);
    if (!s->wrong_forward || *fault == ADJ_FAULT_REFERENCE)
        return text;
    *fault = ADJ_FAULT_REFERENCE;
    return gradcheck_text(s->report, "naive's forward kernel for %s is wrong, as its value shows",
                          s->node->op->name);
}
