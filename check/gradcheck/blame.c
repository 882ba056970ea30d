/* blame.c - whose fault a wrong gradient is: the reference's, the rule's, or a kernel's.
 *
 * The reference is wrong if naive's value of a node on the way, forward or backward, contradicts
 * the op's formula. Else the rule is, if differences and naive's backward pass disagree. Else the
 * first node at which the backend under test and naive part has the faulty kernel. */
#include <math.h>

#include "check/compare/compare.h"
#include "gradcheck.h"

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
    adj_status status = open_exec(s, t, is_naive, made->n, made->node, &made->exec);
    return status == ADJ_OK ? run_exec(s, made->exec, t, 0) : status;
}

/* The node's value in float64; NULL: no memory, which the report then says, or it has none. */
static double *value_in(subject *s, const trail *t, const adj_node *n)
{
    double *value = reals(s, node_elems(n));
    if (value == NULL)
        gradcheck_no_memory(s->report);
    if (value == NULL || adj_get(t->exec, n, s->raw, adj_type_bytes(n->type)) != ADJ_OK)
        return NULL;
    adj_convert(n->type.dtype, s->raw, ADJ_F64, value, node_elems(n));
    return value;
}

/* ---- the reference ---- */

/* True if naive's value of n contradicts the formula. */
static int is_refuted(subject *s, const trail *t, const adj_node *n)
{
    double *operand[MAX_IN] = {NULL};
    adj_compare_error error = {0};
    if (n->type.dtype != ADJ_F64 || (n->op->flags & ADJ_OP_VIEW) || n->n_in > MAX_IN)
        return 0;
    for (int k = 0; k < n->n_in; k++)
        if ((operand[k] = value_in(s, t, n->in[k])) == NULL)
            return 0;
    const claim c = {.node = n, .operand = operand, .type = n->type, .value = value_in(s, t, n)};
    if (c.value != NULL && ask_formula(&c, &s->region, &error) != ADJ_OK)
        gradcheck_no_memory(s->report);
    return error.wrong > 0;
}

/* The first node on the way that naive computes wrongly on the values of this draw; NULL: none. */
static const adj_node *find_wrong_node(subject *s, int leaf)
{
    const adj_node *found = NULL;
    trail t = {0};
    const adj_status status = open_trail(s, &s->reference, leaf, 1, &t);
    if (status == ADJ_ENOMEM)
        gradcheck_no_memory(s->report);
    for (int i = 0; i < t.n && found == NULL && status == ADJ_OK; i++)
        found = is_refuted(s, &t, t.node[i]) ? t.node[i] : NULL;
    adj_exec_free(t.exec);
    return found;
}

/* ---- the kernel ---- */

/* True if both values agree within rounding. */
static int agree(subject *s, const trail *a, const trail *b, const adj_node *n)
{
    const double *x = value_in(s, a, n), *y = value_in(s, b, n);
    if (x == NULL || y == NULL)
        return 1;
    const double tolerance =
        64 * terms_of(n) * adj_traits_of(n->type.dtype)->unit * max_magnitude(y, node_elems(n));
    for (int64_t i = 0; i < node_elems(n); i++)
        if (!(fabs(x[i] - y[i]) <= tolerance) && !(isnan(x[i]) && isnan(y[i])))
            return 0;
    return 1;
}

/* A part of a value, or the same elements elsewhere: where it is wrong, the value is. */
static int only_moves(const adj_node *n)
{
    return (n->op->flags & ADJ_OP_VIEW) || n->op == &adj_op_slice || n->op == &adj_op_transpose;
}

/* The first node at which the backend under test and naive part; dx, if there is none. */
static const adj_node *first_apart(subject *s, int leaf)
{
    const adj_node *first = s->tested.dx[leaf];
    trail tested = {0}, naive = {0};
    adj_status status = open_trail(s, &s->tested, leaf, 0, &tested);
    if (status == ADJ_OK)
        status = open_trail(s, &s->tested, leaf, 1, &naive);
    if (status == ADJ_ENOMEM)
        gradcheck_no_memory(s->report);
    for (int i = tested.n - 1; i >= 0 && status == ADJ_OK; i--)
        if (!agree(s, &tested, &naive, tested.node[i]))
            first = tested.node[i];
    while (only_moves(first) && !(first->in[0]->op->flags & ADJ_OP_LEAF))
        first = first->in[0];
    adj_exec_free(tested.exec);
    adj_exec_free(naive.exec);
    return first;
}

const char *blame_text(subject *s, int leaf, int rule_is_wrong, adj_gradcheck_fault *fault)
{
    const adj_node *wrong = find_wrong_node(s, leaf);
    if (wrong == NULL && s->wrong_forward) /* on other values than these */
        wrong = s->reference.y;
    if (wrong != NULL) {
        *fault = ADJ_FAULT_REFERENCE;
        return gradcheck_text(s->report, WRONG_REFERENCE, wrong->op->name);
    }
    if (rule_is_wrong) {
        *fault = ADJ_FAULT_RULE;
        return gradcheck_text(s->report,
                              "%s backward disagrees with numeric as well -> fault is in "
                              "the gradient rule of %s%s",
                              reference_name(s), s->order == 2 ? "the gradient of " : "",
                              s->node->op->name);
    }
    const adj_node *faulty = first_apart(s, leaf);
    const adj_step_info step = step_of(s->tested.backward, faulty);
    *fault = ADJ_FAULT_KERNEL;
    return gradcheck_text(s->report, "fault is in backend %s's kernel for %s (%s)", step.backend,
                          faulty->op->name, step.impl);
}
