/* subject.c - builds a subject: leaves for the operands of a node or of its closure, its gradient,
 * and executors. */
#include <string.h>

#include "base/backend_option.h"
#include "check/compare/compare.h"
#include "exec/exec.h"
#include "gradcheck.h"

static int is_float_leaf(const adj_node *leaf)
{
    return leaf != NULL && adj_is_float(leaf->type.dtype);
}

/* dx of y with respect to every float leaf; first all of these side by side. */
static void build_gradient(twin *t, int n_leaf)
{
    int n = 0;
    for (int i = 0; i < n_leaf; i++)
        if (is_float_leaf(t->leaf[i]))
            t->dx[n++] = t->leaf[i];
    adj_grad(t->y, t->dy, n, t->dx, t->dx);
    for (int i = n_leaf - 1; i >= 0; i--)
        t->dx[i] = is_float_leaf(t->leaf[i]) ? t->dx[--n] : NULL;
}

/* Raises to order 2: y becomes dx[of], and dy one more leaf. */
static void raise_order(twin *t, int n_leaf, int of)
{
    t->leaf[n_leaf] = t->dy;
    t->y = t->dx[of];
    if (t->y == NULL)
        return;
    t->dy = adj_input(t->graph, "ddx", t->y->type.dtype, t->y->type.shape);
    build_gradient(t, n_leaf + 1);
}

/* Builds a copy of the node and its closure over leaves. Every float type becomes `to`; ADJ_I32
 * keeps the node's own types. */
static adj_status build_twin(subject *s, twin *t, adj_dtype to)
{
    const adj_compare_config c = {.has_dtype = adj_is_float(to), .dtype = to};
    const adj_node *n = s->node;
    const int n_first = s->n_leaf - (s->order == 2);
    const size_t places = (size_t)s->n_leaf + 1;
    adj_graph_opts opts = {.allocator = &s->report->log.region.allocator};
    adj_node **image = region_alloc(&s->region, (size_t)n->id + 1, sizeof *image);
    t->leaf = region_alloc(&s->region, places, sizeof *t->leaf);
    t->dx = region_alloc(&s->region, places, sizeof *t->dx);
    t->graph = adj_graph_new_with(ADJ_VERSION, &opts);
    if (image == NULL || t->leaf == NULL || t->dx == NULL || t->graph == NULL)
        return ADJ_ENOMEM;
    t->graph->is_unmerged = s->report->is_unmerged;
    const adj_status status = copy_closure(&s->closure, t->graph, &c, &s->region, image);
    if (status != ADJ_OK)
        return status;
    for (int i = 0; i < n_first; i++)
        t->leaf[i] = image[s->closure.leaf[i].node->id];
    t->y = image[n->id];
    t->dy = adj_input(t->graph, "dy", t->y->type.dtype, t->y->type.shape);
    if (t->graph->status == ADJ_OK)
        build_gradient(t, n_first);
    if (t->graph->status == ADJ_OK && s->order == 2)
        raise_order(t, n_first, s->of);
    return t->graph->status;
}

/* ---- executors and memory ---- */

/* An executor of t's graph under test, or of the reference. On failure the report has the message,
 * or s has one: for ADJ_ENOKERNEL s->unchecked, for a plan that is refused s->wrong_plan. */
static adj_status open_exec(subject *s, const twin *t, int is_reference, int n,
                            adj_node *const fetch[], adj_exec **e)
{
    const adj_gradcheck_opts *o = &s->report->opts;
    /* Without passes and shared memory: a fault of these appears only in the other executor. */
    adj_exec_debug as_built = {
        .no_passes = 1, .no_fusion = 1, .no_sharing = 1, .internal = s->report->debug.internal};
    const adj_exec_opts opts = {.threads = s->report->conditions.threads,
                                .n_fetch = n,
                                .fetch = fetch,
                                .backend = is_reference ? "naive" : o->exec.backend,
                                .backends = is_reference ? s->backends : o->exec.backends,
                                .debug = is_reference ? &as_built : o->exec.debug};
    adj_status status = adj_exec_new(t->graph, &opts, e);
    if (status == ADJ_ENOKERNEL && is_reference) { /* a pass makes other ops of the caller's own */
        adj_exec_free(*e);
        as_built.no_passes = 0;
        status = adj_exec_new(t->graph, &opts, e);
    }
    const char *message = adj_exec_message(*e), *colon = strstr(message, ": ");
    if (status == ADJ_ENOKERNEL) {
        s->unchecked = log_text(&s->report->log, "%s", colon != NULL ? colon + 2 : message);
    } else if (is_plan_wrong(*e)) {
        s->wrong_plan = log_text(&s->report->log, "%s -> fault is in the plan of backend %s",
                                 colon != NULL ? colon + 2 : message,
                                 is_reference ? "naive" : s->report->conditions.backend);
    } else if (status != ADJ_OK) {
        log_fail(&s->report->log, status, "gradcheck of %s: %s", s->node->op->name,
                 *e != NULL ? adj_exec_message(*e) : "out of memory");
    }
    return status;
}

/* Fetches every gradient, of the reference every node that they or y need. */
static adj_status open_backward(subject *s, twin *t, int is_reference)
{
    adj_graph *g = t->graph;
    const size_t places = (size_t)(s->n_leaf + g->n_node);
    adj_node **fetch = region_alloc(&s->region, places + 1, sizeof *fetch);
    char *need = region_alloc(&s->region, (size_t)g->n_node, 1);
    int n = 0;
    if (fetch == NULL || need == NULL)
        return ADJ_ENOMEM;
    for (int i = 0; i < s->n_leaf; i++)
        if (t->dx[i] != NULL)
            fetch[n++] = t->dx[i];
    if (is_reference) {
        fetch[n++] = t->y;
        mark_needed(g, n, (const adj_node *const *)fetch, need);
    }
    for (int id = 0, n_root = n; id < g->n_node; id++)
        if (need[id] && !(g->node[id]->op->flags & ADJ_OP_LEAF) &&
            adj_position(n_root, (const adj_node *const *)fetch, g->node[id]) < 0)
            fetch[n++] = g->node[id];
    return open_exec(s, t, is_reference, n, fetch, &t->backward);
}

static void close_twin(twin *t)
{
    adj_exec_free(t->forward);
    adj_exec_free(t->backward);
    adj_graph_free(t->graph);
    *t = (twin){0};
}

/* Opens the reference in float64, or in float32 if the caller's backends do not compute the
 * caller's op in float64. */
static adj_status open_reference(subject *s)
{
    adj_status status = open_backward(s, &s->reference, 1);
    if (status == ADJ_OK)
        status = open_exec(s, &s->reference, 1, 1, &s->reference.y, &s->reference.forward);
    if (status != ADJ_ENOKERNEL || s->wide == ADJ_F32)
        return status;
    close_twin(&s->reference);
    s->wide = ADJ_F32;
    const char *why = s->unchecked;
    status = build_twin(s, &s->reference, s->wide);
    if (status == ADJ_OK)
        status = open_reference(s);
    s->unchecked = status == ADJ_OK ? NULL : why;
    return status;
}

static adj_status check_reorders(subject *s)
{
    char text[200];
    const int found = find_wrong_reorder(s->tested.backward, text, sizeof text);
    if (found > 0)
        s->wrong_plan = log_text(&s->report->log, "%s", text);
    return found < 0 ? ADJ_ENOMEM : ADJ_OK;
}

/* Opens all executors. Returns ADJ_OK with s->unchecked set if a kernel is missing, with
 * s->wrong_plan if a plan is refused or one of its reorders is wrong. */
static adj_status open_execs(subject *s)
{
    adj_status status = open_backward(s, &s->tested, 0);
    if (status == ADJ_OK)
        status = check_reorders(s);
    if (status == ADJ_OK)
        status = open_reference(s);
    return status == ADJ_ENOKERNEL || s->wrong_plan != NULL ? ADJ_OK : status;
}

static int has_op(const adj_group *g, const adj_op *op)
{
    for (int i = 0; g != NULL && i < g->n_node; i++)
        if (g->node[i]->op == op)
            return 1;
    return 0;
}

/* A node within a group, or one that is computed in another layout, is no step's by its name. */
adj_step_info step_of(const adj_exec *e, const adj_node *n)
{
    adj_step_info last = {.op = "", .impl = "", .backend = ""};
    int is_found = 0;
    for (int i = 0; i < adj_exec_step_count(e); i++) {
        adj_step_info step = adj_exec_step_at(e, i);
        const int has = has_op(adj_exec_step_group(e, i), n->op);
        if (has) /* a group's is its first node's */
            step.op = n->op->name;
        if (has || (step.impl[0] != '\0' && !is_found))
            last = step;
        if (step.node == n && has)
            break;
        is_found |= has;
    }
    return last;
}

double reference_eps(const subject *s) { return s->wide == ADJ_F64 ? 0x1p-52 : 0x1p-23; }

const char *reference_name(const subject *s)
{
    if (!is_own_op(s->node->op))
        return "naive float64";
    return s->wide == ADJ_F32 ? "the reference's float32" : "the reference's float64";
}

double *reals(subject *s, int64_t n)
{
    return region_alloc(&s->region, (size_t)n + 1, sizeof(double));
}

static adj_status open_memory(subject *s)
{
    const adj_graph *const graphs[] = {s->tested.graph, s->reference.graph};
    s->n_y = adj_shape_elems(s->tested.y->type.shape);
    for (int g = 0; g < 2; g++)
        for (int i = 0; i < graphs[g]->n_node; i++) {
            const int64_t elems = node_elems(graphs[g]->node[i]);
            s->max = elems > s->max ? elems : s->max;
        }
    double **const of_max[] = {&s->v, &s->moved, &s->numeric, &s->raw};
    double **const of_y[] = {&s->y_mid, &s->y_low, &s->y_high, &s->bends};
    int missing = 0;
    for (size_t i = 0; i < sizeof of_max / sizeof *of_max; i++)
        missing += (*of_max[i] = reals(s, s->max)) == NULL;
    for (size_t i = 0; i < sizeof of_y / sizeof *of_y; i++)
        missing += (*of_y[i] = reals(s, s->n_y)) == NULL;
    missing += (s->mask = region_alloc(&s->region, (size_t)s->n_y + 1, 1)) == NULL;
    missing += (s->repeats = region_alloc(&s->region, (size_t)s->n_leaf + 1, 1)) == NULL;
    if (missing == 0)
        memset(s->repeats, 1, (size_t)s->n_leaf);
    return missing > 0 ? ADJ_ENOMEM : ADJ_OK;
}

/* By node: constant in a leaf, linear, or neither. A node is linear in the leaf if one operand
 * alone depends on it, linearly, and the op is linear in that operand. A kink counts where the leaf
 * leads to it by an operand that the op is not linear in. */
typedef enum { CONSTANT, LINEAR, NEITHER } dependence;

static dependence depends(const adj_node *n, const char *below, char *kinks)
{
    dependence d = CONSTANT;
    for (int k = 0; k < n->n_in; k++) {
        int linear = is_linear_in(n, k);
        dependence in = (dependence)below[n->in[k]->id];
        if (in == CONSTANT)
            continue;
        d = d == CONSTANT && in == LINEAR && linear ? LINEAR : NEITHER;
        if (!linear && (n->op->flags & ADJ_OP_KINKS))
            *kinks = 1;
    }
    return d;
}

static adj_status analyze(subject *s)
{
    const adj_node *y = s->tested.y;
    char *by_node = region_alloc(&s->region, (size_t)y->id + 1, 1);
    s->linear = region_alloc(&s->region, (size_t)s->n_leaf + 1, 1);
    s->kinks = region_alloc(&s->region, (size_t)s->n_leaf + 1, 1);
    if (by_node == NULL || s->linear == NULL || s->kinks == NULL)
        return ADJ_ENOMEM;
    for (int leaf = 0; leaf < s->n_leaf; leaf++) {
        for (uint32_t id = 0; id <= y->id; id++) {
            const adj_node *n = y->graph->node[id];
            by_node[id] =
                n == s->tested.leaf[leaf] ? LINEAR : (char)depends(n, by_node, &s->kinks[leaf]);
        }
        s->linear[leaf] = by_node[y->id] != NEITHER;
    }
    return ADJ_OK;
}

adj_status subject_open(subject *s, gradcheck_report *r, const adj_node *node, int order, int of)
{
    *s = (subject){.report = r, .node = node, .order = order, .of = of, .wide = ADJ_F64};
    s->region.allocator = r->log.region.allocator;
    int depth = 0;
    adj_status status = closure_depth(node, &depth);
    if (status == ADJ_OK)
        status = open_closure(node, depth, &s->region, &s->closure);
    s->n_leaf = s->closure.n_leaf + (order == 2);
    if (status == ADJ_OK)
        status = reference_backends(r->opts.exec.backends, &s->region, &s->backends);
    if (status == ADJ_OK)
        status = build_twin(s, &s->tested, ADJ_I32);
    if (status == ADJ_OK)
        status = build_twin(s, &s->reference, s->wide);
    if (status == ADJ_ENOGRAD || (status == ADJ_OK && s->tested.y == NULL))
        return ADJ_ENOGRAD;
    const adj_graph *failed = s->tested.graph != NULL && s->tested.graph->status != ADJ_OK
                                  ? s->tested.graph
                                  : s->reference.graph;
    const int has_values =
        s->tested.dy != NULL && (failed == s->tested.graph || s->reference.dy != NULL);
    if (status != ADJ_OK && status != ADJ_ENOMEM && has_values) { /* gradients cannot be built */
        s->wrong_type = log_text(&r->log, "%s", adj_graph_message(failed));
        return ADJ_OK;
    }
    if (status != ADJ_OK && status != ADJ_ENOMEM)
        return log_fail(&r->log, status, "gradcheck of %s: %s", node->op->name,
                        adj_graph_message(failed));
    if (status == ADJ_OK)
        status = open_memory(s);
    if (status == ADJ_OK)
        status = analyze(s);
    if (status == ADJ_OK)
        status = open_execs(s);
    if (status != ADJ_OK)
        return log_fail(&r->log, status, "gradcheck of %s: %s", node->op->name,
                        adj_status_name(status));
    return ADJ_OK;
}

void subject_close(subject *s)
{
    close_twin(&s->tested);
    close_twin(&s->reference);
    region_free(&s->region);
}

int64_t leaf_elems(const subject *s, int leaf)
{
    return adj_shape_elems(s->tested.leaf[leaf]->type.shape);
}

int leaf_is_float(const subject *s, int leaf)
{
    return adj_is_float(s->tested.leaf[leaf]->type.dtype);
}

int leaf_is_linear(const subject *s, int leaf) { return s->linear[leaf]; }
