/* gradcheck_diagnose.c - whose fault a wrong gradient is. */
#include <math.h>
#include <string.h>

#include "gradcheck.h"

typedef struct {
    adj_exec *tested, *naive;
    int n;
    adj_node **node; /* what dx is computed from, and dx */
} trail;

static adj_status open_trail(subject *s, const adj_node *dx, trail *t)
{
    adj_graph *g = s->tested.graph;
    char *need = pool_alloc(&s->pool, (size_t)dx->id + 1, 1);
    t->node = pool_alloc(&s->pool, (size_t)dx->id + 1, sizeof *t->node);
    if (need == NULL || t->node == NULL)
        return ADJ_ENOMEM;
    need[dx->id] = 1;
    for (int id = (int)dx->id; id >= 0; id--)
        for (int k = 0; need[id] && k < g->node[id]->n_in; k++)
            need[g->node[id]->in[k]->id] = 1;
    for (int id = 0; id <= (int)dx->id; id++)
        if (need[id] && g->node[id]->n_in > 0)
            t->node[t->n++] = g->node[id];
    const adj_gradcheck_opts *o = &s->report->opts;
    adj_exec_opts opts = {.n_fetch = t->n, .fetch = t->node, .threads = o->threads};
    opts.backend = "naive";
    adj_status status = adj_exec_new(g, &opts, &t->naive);
    opts.backend = o->backend;
    opts.backends = o->backends;
    opts.impl = o->impl;
    opts.quarantine = o->quarantine;
    return status == ADJ_OK ? adj_exec_new(g, &opts, &t->tested) : status;
}

static adj_status run_trail(subject *s, adj_exec *e)
{
    const twin *t = &s->tested;
    for (int i = 0; i <= s->n_leaf; i++) {
        const adj_node *leaf = i < s->n_leaf ? t->leaf[i] : t->dy;
        const double *v = i < s->n_leaf ? s->x[i] : s->dy;
        int64_t n = adj_shape_elems(leaf->type.shape);
        for (int64_t k = 0; k < n; k++)
            adj_store(leaf->type.dtype, s->raw, k, v[k]);
        adj_set(e, leaf, s->raw, (size_t)n * adj_dtype_size(leaf->type.dtype));
    }
    return adj_run(e);
}

/* Do both give the node's value to within rounding? */
static int agree(subject *s, const trail *t, const adj_node *n)
{
    int64_t count = adj_shape_elems(n->type.shape);
    size_t size = (size_t)count * adj_dtype_size(n->type.dtype);
    double largest = 0, tolerance = 64 * terms_of(n) * unit_roundoff(n->type.dtype);
    void *a = pool_alloc(&s->pool, size + 1, 1), *b = pool_alloc(&s->pool, size + 1, 1);
    if (a == NULL || b == NULL || adj_get(t->tested, n, a, size) != ADJ_OK ||
        adj_get(t->naive, n, b, size) != ADJ_OK)
        return 1;
    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(adj_load(n->type.dtype, b, i)));
    for (int64_t i = 0; i < count; i++) {
        double x = adj_load(n->type.dtype, a, i), y = adj_load(n->type.dtype, b, i);
        if (!(x == y) && !(fabs(x - y) <= tolerance * largest))
            return 0;
    }
    return 1;
}

adj_step_info step_of(const adj_exec *e, const adj_node *n)
{
    adj_step_info last = {.op = "", .impl = "", .backend = ""};
    for (int i = 0; i < adj_exec_n_steps(e); i++) {
        adj_step_info step = adj_exec_step(e, i);
        if (step.node == n)
            return step;
        if (step.impl[0] != '\0')
            last = step;
    }
    return last;
}

static const char *kernel_text(subject *s, int leaf)
{
    const adj_node *dx = s->tested.dx[leaf], *guilty = dx;
    trail t = {0};
    adj_status status = open_trail(s, dx, &t);
    if (status == ADJ_OK)
        status = run_trail(s, t.naive);
    if (status == ADJ_OK)
        status = run_trail(s, t.tested);
    for (int i = 0; i < t.n && status == ADJ_OK; i++)
        if (!agree(s, &t, t.node[i])) {
            guilty = t.node[i];
            break;
        }
    adj_step_info step = step_of(s->tested.backward, guilty);
    const char *text = gradcheck_text(
        s->report,
        "naive float64 backward agrees with numeric -> fault is in backend %s's kernel "
        "for %s (%s)",
        step.backend, guilty->op->name, step.impl);
    adj_exec_free(t.naive);
    adj_exec_free(t.tested);
    return text;
}

const char *gradcheck_repro(const subject *s)
{
    const adj_gradcheck_opts *o = &s->report->opts;
    char line[1024] = "";
    if (o->repro != NULL)
        o->repro(o->user, s->node, line, sizeof line);
    return gradcheck_text(s->report, "%s", line);
}

adj_status diagnose(subject *s, const failure *f, adj_gradcheck_row *row)
{
    adj_gradcheck_report *r = s->report;
    if (row->wrong > 0)
        describe_wrong(s, f, row);
    row->blame =
        f->rule_is_wrong
            ? gradcheck_text(r,
                             "naive float64 backward disagrees with numeric as well -> fault is in "
                             "the gradient rule of %s%s",
                             s->order == 2 ? "the gradient of " : "", s->node->op->name)
            : kernel_text(s, f->leaf);
    row->repro = gradcheck_repro(s);
    return r->status;
}
