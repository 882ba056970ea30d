/* blame.c - whose fault a wrong gradient is: the reference's, the rule's, or a kernel's.
 *
 * The reference is wrong if a formula has refuted one of its values. Else the rule is, if
 * differences and naive's backward pass disagree. Else the first node at which the backend under
 * test and naive part has the faulty kernel. */
#include <math.h>

#include "exec/inspect.h"
#include "gradcheck.h"

/* An executor that keeps what the gradient is made of. */
typedef struct {
    adj_exec *exec;
    int n;
    adj_node **node; /* in id order, leaves left out */
} trail;

static adj_status open_trail(subject *s, int leaf, int is_naive, trail *made)
{
    const adj_node *dx = s->tested.dx[leaf];
    made->node = nodes_behind(s, &s->tested, 1, &dx, &made->n);
    if (made->node == NULL)
        return ADJ_ENOMEM;
    adj_status status = open_exec(s, &s->tested, is_naive, made->n, made->node, &made->exec);
    return status == ADJ_OK ? run_exec(s, made->exec, &s->tested, 0) : status;
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

/* True if both values agree within rounding. */
static int agree(subject *s, const trail *a, const trail *b, const adj_node *n)
{
    const double *x = value_in(s, a, n), *y = value_in(s, b, n);
    if (x == NULL || y == NULL)
        return 1;
    const double rounding = adj_traits_of(n->type.dtype)->unit * max_magnitude(y, node_elems(n)),
                 terms = terms_of(n), count = (double)node_elems(n);
    double square = 0;
    for (int64_t i = 0; i < node_elems(n); i++) {
        if (!(fabs(x[i] - y[i]) <= 64 * terms * rounding) && !(isnan(x[i]) && isnan(y[i])))
            return 0;
        square += (x[i] - y[i]) * (x[i] - y[i]);
    }
    return !(sqrt(square / count) > 4 * sqrt(terms) * rounding);
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
    adj_status status = open_trail(s, leaf, 0, &tested);
    if (status == ADJ_OK)
        status = open_trail(s, leaf, 1, &naive);
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
    const adj_status again = run_exec(s, s->reference.backward, &s->reference, 0);
    const char *wrong = again == ADJ_OK ? check_reference(s) : NULL;
    if (wrong != NULL) {
        *fault = ADJ_FAULT_REFERENCE;
        return wrong;
    }
    if (rule_is_wrong) {
        *fault = ADJ_FAULT_RULE;
        return gradcheck_text(s->report,
                              "%s backward disagrees with numeric as well -> fault is in "
                              "the gradient rule of %s%s",
                              reference_name(s), s->order == 2 ? "the gradient of " : "",
                              s->node->op->name);
    }
    char reorder[200];
    *fault = ADJ_FAULT_KERNEL;
    if (exec_find_wrong_reorder(s->tested.backward, reorder, sizeof reorder) > 0)
        return gradcheck_text(s->report, "%s", reorder);
    const adj_node *faulty = first_apart(s, leaf);
    const adj_step_info step = step_of(s->tested.backward, faulty);
    return gradcheck_text(s->report, "fault is in backend %s's kernel for %s (%s)", step.backend,
                          faulty->op->name, step.impl);
}
