/* witness.c - other implementations of a node of the reference's graph, alone on the same operands.
 *
 * Differences and naive's backward pass disagree where the gradient rule is wrong, but where one of
 * naive's own kernels is wrong as well: then those of other backends give something else. They are
 * asked in float32, which all have, so the operands are rounded to it first; how much float32 costs
 * beyond the rounding of sums is measured by naive in float32. */
#include <math.h>
#include <string.h>

#include "check/formula.h"
#include "gradcheck.h"

enum { MARGIN = 64, MARGIN_MEASURED = 16, MAX_SOURCES = 16 };

/* ---- a node alone ---- */

/* The node's attributes; a float type among them becomes dtype. */
static const void *typed_attrs(const adj_node *n, adj_dtype dtype, char attrs[MAX_ATTR])
{
    int64_t *type = (int64_t *)(void *)attrs;
    if (n->op->schema == NULL)
        return NULL;
    memcpy(attrs, n->attrs, adj_attr_size(n->op));
    if ((n->op->flags & ADJ_OP_TYPED) && adj_is_float((adj_dtype)*type))
        *type = dtype;
    return attrs;
}

/* The node over inputs of that float type. leaf: by operand; one that is there twice is one. */
static adj_node *build_alone(adj_graph *g, const lone_node *n, adj_dtype dtype, adj_node *leaf[])
{
    _Alignas(16) char attrs[MAX_ATTR];
    const adj_node *node = n->node;
    for (int k = 0; k < node->n_in; k++) {
        char name[16];
        const int first = adj_operand_position(node, node->in[k]);
        const adj_type type = {node->in[k]->type.dtype,
                               n->shape != NULL ? n->shape[1 + k] : node->in[k]->type.shape};
        const adj_dtype as = adj_is_float(type.dtype) ? dtype : type.dtype;
        snprintf(name, sizeof name, "in%d", k);
        leaf[k] = first < k ? leaf[first] : adj_input(g, name, as, type.shape);
    }
    const void *a = n->attrs != NULL ? n->attrs : typed_attrs(node, dtype, attrs);
    return adj_node_new(g, node->op, node->n_in, leaf, a);
}

static adj_status give_operands(subject *s, const lone_node *n, adj_exec *e, adj_node *const leaf[])
{
    adj_status status = ADJ_OK;
    for (int k = 0; k < n->node->n_in && status == ADJ_OK; k++) {
        const adj_type type = leaf[k]->type;
        double *raw = reals(s, node_elems(leaf[k]));
        if (raw == NULL)
            return ADJ_ENOMEM;
        adj_convert(ADJ_F64, n->operand[k], type.dtype, raw, node_elems(leaf[k]));
        status = adj_set(e, leaf[k], raw, adj_type_bytes(type));
    }
    return status;
}

/* What computes the node: the step of most work, be it between transposes. */
static void name_kernel(const adj_exec *e, const source *by, testimony *t)
{
    double max = -1;
    const adj_backend *const *last = by->list != NULL ? by->list : adj_backends;
    while (last[1] != NULL)
        last++;
    for (int i = 0; i < adj_exec_step_count(e); i++) {
        const adj_step_info step = adj_exec_step_at(e, i);
        if (step.n_node == 0 || step.flop <= max)
            continue;
        max = step.flop;
        snprintf(t->backend, sizeof t->backend, "%s", step.backend);
        snprintf(t->impl, sizeof t->impl, "%s", step.impl);
        t->is_there = strcmp(step.backend, (*last)->name) != 0 ||
                      (by->backend != NULL && strcmp(by->backend, (*last)->name) == 0);
    }
}

static adj_status run_graph(subject *s, const lone_node *n, const source *by, adj_node *y,
                            adj_node *const leaf[], testimony *t)
{
    const adj_exec_opts o = {.n_fetch = 1,
                             .fetch = &y,
                             .backend = by->backend,
                             .threads = s->report->about.threads,
                             .debug.backends = by->list,
                             .debug.impl = by->impl,
                             .debug.quarantine = s->report->opts.debug.quarantine};
    adj_exec *e = NULL;
    double *raw = reals(s, node_elems(y));
    t->value = reals(s, node_elems(y));
    adj_status status =
        raw != NULL && t->value != NULL ? adj_exec_new(y->graph, &o, &e) : ADJ_ENOMEM;
    if (status == ADJ_OK)
        status = give_operands(s, n, e, leaf);
    if (status == ADJ_OK)
        status = adj_run(e);
    if (status == ADJ_OK)
        status = adj_get(e, y, raw, adj_type_bytes(y->type));
    if (status == ADJ_OK) {
        adj_convert(y->type.dtype, raw, ADJ_F64, t->value, node_elems(y));
        name_kernel(e, by, t);
    }
    adj_exec_free(e);
    return status;
}

adj_status run_alone(subject *s, const lone_node *n, const source *by, adj_dtype dtype,
                     testimony *t)
{
    const adj_graph_opts opts = {.allocator = &s->report->region.allocator};
    adj_node **leaf = region_alloc(&s->region, (size_t)n->node->n_in + 1, sizeof *leaf);
    adj_graph *g = adj_graph_new_with(ADJ_VERSION, &opts);
    adj_status status = leaf != NULL && g != NULL ? ADJ_OK : ADJ_ENOMEM;
    *t = (testimony){0};
    if (status == ADJ_OK) {
        adj_node *y = build_alone(g, n, dtype, leaf);
        status = adj_graph_status(g);
        const adj_shape expected = n->shape != NULL ? n->shape[0] : n->node->type.shape;
        if (status == ADJ_OK && adj_shape_equal(y->type.shape, expected))
            status = run_graph(s, n, by, y, leaf, t);
    }
    adj_graph_free(g);
    return status == ADJ_ENOMEM ? ADJ_ENOMEM : ADJ_OK;
}

/* ---- who agrees with whom ---- */

int are_close(const double *a, const double *b, int64_t n, double tolerance)
{
    for (int64_t i = 0; i < n; i++)
        if (!(a[i] == b[i]) && !(fabs(a[i] - b[i]) <= tolerance) && !(isnan(a[i]) && isnan(b[i])))
            return 0;
    return 1;
}

/* Each backend with nothing but the list's last one behind it: of all lists' but their last. */
static adj_status list_sources(subject *s, source list[MAX_SOURCES], int *n)
{
    const adj_backend *const *const lists[] = {s->report->opts.debug.backends, adj_backends};
    *n = 0;
    for (int i = 0; i < 2; i++) {
        const adj_backend *const *last = lists[i];
        while (last != NULL && last[0] != NULL && last[1] != NULL)
            last++;
        for (const adj_backend *const *b = lists[i]; b != last && *n < MAX_SOURCES; b++) {
            const adj_backend **pair = region_alloc(&s->region, 3, sizeof *pair);
            if (pair == NULL)
                return ADJ_ENOMEM;
            pair[0] = *b;
            pair[1] = *last;
            list[(*n)++] = (source){pair, (*b)->name, NULL};
        }
    }
    return ADJ_OK;
}

/* How far float32 may be from naive's float64 value of the node. */
static double tolerance_of(const lone_node *n, const testimony *wide, const testimony *narrow)
{
    const int64_t elems = node_elems(n->node);
    double max = max_magnitude(wide->value, elems), measured = 0;
    for (int64_t i = 0; narrow->is_there && i < elems; i++)
        measured = fmax(measured, fabs(narrow->value[i] - wide->value[i]));
    return MARGIN * terms_of(n->node) * 0x1p-24 * max + MARGIN_MEASURED * measured;
}

static void count_vote(const lone_node *n, const testimony *t, votes *v)
{
    const int agrees = are_close(v->naive.value, t->value, node_elems(n->node), v->tolerance);
    v->with += agrees;
    v->against += !agrees;
    if (!agrees && v->against == 1)
        v->other = *t;
}

/* The op's formula, where it has one. */
static adj_status ask_formula(subject *s, const lone_node *n, votes *v)
{
    const int64_t elems = node_elems(n->node);
    testimony t = {.backend = "its formula", .impl = "float64"};
    if (!formula_exists(n->node))
        return ADJ_OK;
    if ((t.value = reals(s, elems)) == NULL)
        return ADJ_ENOMEM;
    formula_value(n->node, n->operand, t.value, NULL);
    const double max = max_magnitude(t.value, elems);
    v->is_refuted = !are_close(v->naive.value, t.value, elems, formula_tolerance(n->node, max));
    v->against += v->is_refuted;
    v->with += !v->is_refuted;
    if (v->is_refuted && v->against == 1)
        v->other = t;
    return ADJ_OK;
}

adj_status hear_witnesses(subject *s, const lone_node *n, const char *but, votes *v)
{
    const source naive = {NULL, "naive", NULL};
    source list[MAX_SOURCES];
    testimony narrow, t;
    int n_source;
    *v = (votes){0};
    adj_status status = list_sources(s, list, &n_source);
    if (status == ADJ_OK)
        status = run_alone(s, n, &naive, ADJ_F64, &v->naive);
    if (status == ADJ_OK)
        status = run_alone(s, n, &naive, ADJ_F32, &narrow);
    if (status != ADJ_OK || !v->naive.is_there)
        return status;
    v->tolerance = tolerance_of(n, &v->naive, &narrow);
    for (int i = 0; i < n_source; i++) {
        if ((status = run_alone(s, n, &list[i], ADJ_F32, &t)) != ADJ_OK)
            return status;
        if (t.is_there && (but == NULL || strcmp(t.backend, but) != 0))
            count_vote(n, &t, v);
    }
    return ask_formula(s, n, v);
}
