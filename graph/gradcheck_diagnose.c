/* gradcheck_diagnose.c - what the wrong elements of a gradient share, and whose fault they are. */
#include <math.h>
#include <string.h>

#include "gradcheck.h"

/* ---- where: axes along which all wrong elements have one index ---- */

enum { UNSEEN = -1, SEVERAL = -2 };

static void common_indices(const adj_shape *shape, const failure *f, int64_t common[])
{
    int64_t n = adj_shape_elems(*shape);
    for (int64_t a = 0; a < shape->rank; a++)
        common[a] = UNSEEN;
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i;
        for (int64_t a = shape->rank - 1; a >= 0 && f->wrong[i]; a--) {
            int64_t at = rest % shape->dim[a];
            rest /= shape->dim[a];
            common[a] = common[a] == UNSEEN || common[a] == at ? at : SEVERAL;
        }
    }
}

static const char *axis_word(char name)
{
    switch (name) {
    case 'h': return "row";
    case 'w': return "column";
    case 'n': return "image";
    case 'c': return "channel";
    case 'o': return "output channel";
    }
    return "index";
}

static const char *pattern_text(const subject *s, const failure *f, int64_t wrong)
{
    adj_shape shape = s->tested.leaf[f->leaf]->type.shape;
    int64_t common[ADJ_MAX_RANK], n = adj_shape_elems(shape);
    char shared[256] = "";

    common_indices(&shape, f, common);
    for (int a = 0; a < shape.rank && wrong > 1; a++) {
        size_t used = strlen(shared);
        char name = axis_name(s, f->leaf, a);
        if (common[a] >= 0 && shape.dim[a] > 1)
            snprintf(shared + used, sizeof shared - used, ", all with %c=%lld -> %s%s", name,
                     (long long)common[a],
                     common[a] == shape.dim[a] - 1 ? "last "
                     : common[a] == 0              ? "first "
                                                   : "one ",
                     axis_word(name));
    }
    if (wrong == f->looked_at && wrong > 1)
        snprintf(shared, sizeof shared, ", every element");
    if (f->looked_at < n)
        return gradcheck_text(s->report, "%lld wrong of the %lld looked at (of %lld)%s",
                              (long long)wrong, (long long)f->looked_at, (long long)n, shared);
    return gradcheck_text(s->report, "%lld of %lld wrong%s", (long long)wrong, (long long)n,
                          shared);
}

/* ---- how: one ratio for all wrong elements? ---- */

static const char *hint_text(const subject *s, const failure *f)
{
    const double *dx = f->rule_is_wrong ? s->dx_ref[f->leaf] : s->dx[f->leaf];
    double least = INFINITY, most = -INFINITY;
    int zeros = 0, signs = 0, counted = 0;
    for (int64_t i = 0, n = leaf_elems(s, f->leaf); i < n; i++) {
        if (!f->wrong[i] || s->numeric[i] == 0)
            continue;
        double ratio = dx[i] / s->numeric[i];
        if (isnan(ratio) || isinf(ratio))
            return "not finite";
        least = fmin(least, ratio);
        most = fmax(most, ratio);
        zeros += dx[i] == 0;
        signs += ratio < 0;
        counted++;
    }
    if (counted == 0)
        return "should be 0";
    if (zeros == counted)
        return "missing: 0 where there is a gradient";
    if (most - least <= 0.02 * fabs(most) + 1e-3) {
        double ratio = (most + least) / 2;
        if (fabs(ratio + 1) < 0.01)
            return "sign is flipped";
        if (fabs(ratio - 1) < 1e-4)
            return "rounding, by its size";
        return gradcheck_text(s->report, "scaled by %.4g", ratio);
    }
    return signs == 0 ? "sign ok" : "signs differ here and there";
}

/* ---- who ---- */

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

/* The step that computes n in the plan under test; else the last one that computes anything. */
static adj_step_info step_of(const adj_exec *e, const adj_node *n)
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
    if (row->wrong > 0) {
        row->pattern = pattern_text(s, f, row->wrong);
        row->hint = hint_text(s, f);
    }
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
