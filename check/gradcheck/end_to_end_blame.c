/* end_to_end_blame.c - attributes a failure of the whole gradient graph.
 *
 * In order: a node whose own check failed; the passes, if the graph is right without them; the
 * merging of equal nodes, if it is right without merging. Otherwise the first node from y on whose
 * gradient contradicts the differences: either one user's contribution is wrong, which blames that
 * user's rule, or all contributions are right and adj_grad's sum is wrong. */
#include <math.h>

#include "end_to_end.h"

/* The first row of a node that shows the rule or the reference wrong. */
static const gradcheck_detail *failed_alone(const whole *w)
{
    for (int i = 0; i < w->r->n_row; i++) {
        const gradcheck_detail *row = &w->r->row[i];
        if (row->order == 1 && row->result == ADJ_GRADCHECK_FAIL &&
            row->fault != ADJ_FAULT_KERNEL && row->fault != ADJ_FAULT_NONE && w->need[row->node])
            return row;
    }
    return NULL;
}

/* True if a copy built in this mode has the right gradient. */
static int is_right_as(whole *w, int id, const estimate *e, unsigned mode)
{
    copy c = {.as_built = 1};
    double scale = 0;
    open_gradient(w, &c, mode);
    copy_run(w, &c, 0, ALL);
    copy_get(w, &c, w->slope[id], w->dx[id]);
    const int is_right = w->status == ADJ_OK && !is_apart(along(w, id, &scale), e, scale);
    copy_close(&c);
    if (w->status != ADJ_ENOMEM) /* another error says nothing of the graph */
        w->status = ADJ_OK;
    return is_right;
}

static int is_wrong_moved(whole *w, int moved, int id)
{
    double scale;
    estimate e;
    const double analytic = along(w, id, &scale);
    differentiate(w, moved, scale, &e);
    return w->status == ADJ_OK && is_apart(analytic, &e, scale);
}

/* ---- the first node that is wrong ---- */

/* Returns the first wrong node; NULL if none is wrong. */
static const adj_node *find_first(whole *w)
{
    copy_close(&w->gradient);
    open_gradient(w, &w->gradient, COPY_ALL);
    copy_run(w, &w->gradient, 0, ALL);
    for (int id = 0; id <= (int)w->y->id; id++)
        if (w->moves[id])
            copy_get(w, &w->gradient, w->slope[id], w->dx[id]);
    open_forward(w, NULL, COPY_NUDGED);
    for (int id = (int)w->y->id - 1; id >= 0 && w->status == ADJ_OK; id--) {
        const adj_node *n = w->y->graph->node[id];
        if (answering(w, n) != n || !w->moves[id])
            continue;
        if (w->v[id] == NULL)
            draw_along(w, id, 0);
        if (w->status == ADJ_OK && is_wrong_moved(w, id, id))
            return n;
    }
    return NULL;
}

/* ---- the user whose contribution is wrong ---- */

/* Returns u's contribution to n's gradient, or NULL. */
static adj_node *contribution_of(whole *w, const adj_node *u, const adj_node *n)
{
    adj_node **dx = region_alloc(&w->region, (size_t)u->n_in + 1, sizeof *dx), *sum = NULL;
    if (dx == NULL || w->slope[u->id] == NULL || u->op->grad == NULL)
        return NULL;
    u->op->grad(w->gradient.image[u->id], w->slope[u->id], dx);
    for (int k = 0; k < u->n_in; k++)
        if (u->in[k] == n && dx[k] != NULL)
            sum = sum != NULL ? adj_add(sum, dx[k]) : dx[k];
    return sum;
}

static int is_contribution_wrong(whole *w, const adj_node *u, const adj_node *n)
{
    adj_node *contribution = contribution_of(w, u, n);
    double *kept = w->v[u->id];
    if (contribution != NULL) {
        copy_plan(w, &w->gradient, 1, &contribution);
        copy_run(w, &w->gradient, 0, ALL);
        copy_get(w, &w->gradient, contribution, w->dx[n->id]);
    }
    for (int64_t i = 0; contribution == NULL && i < node_elems(n); i++)
        w->dx[n->id][i] = 0;
    w->v[u->id] = w->v[n->id];
    const int is_wrong = is_wrong_moved(w, (int)u->id, (int)n->id);
    w->v[u->id] = kept;
    return is_wrong;
}

/* Returns the user whose contribution is wrong, or NULL if all are right. */
static const adj_node *find_user(whole *w, const adj_node *n)
{
    const adj_node *held = NULL;
    open_forward(w, n, COPY_NUDGED);
    for (uint32_t id = n->id + 1; id <= w->y->id && w->status == ADJ_OK; id++) {
        const adj_node *u = w->y->graph->node[id];
        if (!w->need[id] || adj_operand_position(u, n) < 0 || answering(w, u) != u)
            continue;
        if (stops_gradient(u))
            held = u->op->grad != NULL ? u : held;
        else if (is_contribution_wrong(w, u, n))
            return u;
    }
    return held;
}

static void blame_rule_or_sum(whole *w, adj_gradcheck_fault *fault, const char **sentence)
{
    const adj_node *n = find_first(w), *user = n != NULL ? find_user(w, n) : NULL;
    if (w->status != ADJ_OK || n == NULL)
        return;
    *fault = user != NULL ? ADJ_FAULT_RULE : ADJ_FAULT_GRAPH;
    if (user != NULL)
        *sentence = log_text(&w->r->log,
                             "from the result down, the gradient of %%%d %s is the first "
                             "that differences contradict "
                             "-> fault is in the gradient rule of %s (%%%d)%s",
                             (int)n->id, n->op->name, user->op->name, (int)user->id,
                             stops_gradient(user) ? ", which passes none by definition" : "");
    else
        *sentence = log_text(&w->r->log,
                             "each user of %%%d %s gives it the right gradient, but their "
                             "sum is wrong -> fault is in "
                             "the gradient graph (adj_grad)",
                             (int)n->id, n->op->name);
}

/* Copies without one mechanism each, which is at fault if the copy is right. */
static const struct {
    unsigned mode;
    adj_gradcheck_fault fault;
    const char *sentence;
} copies[] = {
    {0, ADJ_FAULT_PLAN,
     "the graph as it was built, without passes, is right -> fault is in a pass; adj_compare names "
     "it"},
    {COPY_UNMERGED, ADJ_FAULT_GRAPH,
     "right where equal nodes are not merged -> fault is in the " MERGED},
};

void whole_blame(whole *w, int id, adj_gradcheck_fault *fault, const char **sentence)
{
    const gradcheck_detail *alone = failed_alone(w);
    double scale;
    estimate e;
    *fault = ADJ_FAULT_NONE;
    *sentence = "the gradient graph is wrong; where is unknown";
    if (alone != NULL) {
        *fault = alone->fault;
        *sentence =
            log_text(&w->r->log, "%s %s fails alone: %s", alone->name, alone->op, alone->blame);
        return;
    }
    along(w, id, &scale);
    differentiate(w, id, scale, &e);
    for (size_t i = 0; i < sizeof copies / sizeof *copies && w->status == ADJ_OK; i++)
        if (is_right_as(w, id, &e, copies[i].mode)) {
            *fault = copies[i].fault;
            *sentence = copies[i].sentence;
            return;
        }
    if (w->status == ADJ_OK)
        blame_rule_or_sum(w, fault, sentence);
}
