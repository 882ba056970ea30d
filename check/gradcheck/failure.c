/* failure.c - after a failure: which elements are wrong, by how much, and whose fault it is. */
#include <math.h>
#include <string.h>

#include "gradcheck.h"

/* ---- whose fault ---- */

typedef struct {
    adj_exec *tested, *naive;
    int n;
    adj_node **node; /* what dx is computed from, and dx */
} trail;

static adj_status open_trail(subject *s, const adj_node *dx, trail *t)
{
    adj_graph *g = s->tested.graph;
    char *need = region_alloc(&s->region, (size_t)g->n_node, 1);
    t->node = region_alloc(&s->region, (size_t)dx->id + 1, sizeof *t->node);
    if (need == NULL || t->node == NULL)
        return ADJ_ENOMEM;
    mark_needed(g, 1, &dx, need);
    for (int id = 0; id <= (int)dx->id; id++)
        if (need[id] && g->node[id]->n_in > 0)
            t->node[t->n++] = g->node[id];
    const adj_gradcheck_opts *o = &s->report->opts;
    adj_exec_opts opts = {.n_fetch = t->n, .fetch = t->node, .threads = o->threads};
    opts.backend = "naive";
    adj_status status = adj_exec_new(g, &opts, &t->naive);
    opts.backend = o->backend;
    opts.debug = o->debug;
    return status == ADJ_OK ? adj_exec_new(g, &opts, &t->tested) : status;
}

static adj_status run_trail(subject *s, adj_exec *e)
{
    adj_status status = set_values(s, e, &s->tested, 0);
    return status == ADJ_OK ? adj_run(e) : status;
}

/* Do both give the node's value to within rounding? */
static int agree(subject *s, const trail *t, const adj_node *n)
{
    int64_t count = adj_shape_elems(n->type.shape);
    size_t size = adj_type_bytes(n->type);
    double max = 0, tolerance = 64 * terms_of(n) * adj_traits_of(n->type.dtype)->unit;
    void *a = region_alloc(&s->region, size + 1, 1), *b = region_alloc(&s->region, size + 1, 1);
    if (a == NULL || b == NULL || adj_get(t->tested, n, a, size) != ADJ_OK ||
        adj_get(t->naive, n, b, size) != ADJ_OK)
        return 1;
    for (int64_t i = 0; i < count; i++)
        max = fmax(max, fabs(adj_load(n->type.dtype, b, i)));
    for (int64_t i = 0; i < count; i++) {
        double x = adj_load(n->type.dtype, a, i), y = adj_load(n->type.dtype, b, i);
        if (!(x == y) && !(fabs(x - y) <= tolerance * max))
            return 0;
    }
    return 1;
}

adj_step_info step_of(const adj_exec *e, const adj_node *n)
{
    adj_step_info last = {.op = "", .impl = "", .backend = ""};
    for (int i = 0; i < adj_exec_step_count(e); i++) {
        adj_step_info step = adj_exec_step_at(e, i);
        if (step.node == n)
            return step;
        if (step.impl[0] != '\0')
            last = step;
    }
    return last;
}

static const char *kernel_text(subject *s, int leaf)
{
    const adj_node *dx = s->tested.dx[leaf], *faulty = dx;
    trail t = {0};
    adj_status status = open_trail(s, dx, &t);
    if (status == ADJ_OK)
        status = run_trail(s, t.naive);
    if (status == ADJ_OK)
        status = run_trail(s, t.tested);
    for (int i = 0; i < t.n && status == ADJ_OK; i++)
        if (!agree(s, &t, t.node[i])) {
            faulty = t.node[i];
            break;
        }
    adj_step_info step = step_of(s->tested.backward, faulty);
    const char *text = gradcheck_text(
        s->report,
        "naive float64 backward agrees with numeric -> fault is in backend %s's kernel "
        "for %s (%s)",
        step.backend, faulty->op->name, step.impl);
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

static adj_status diagnose(subject *s, const failure *f, adj_gradcheck_row *row)
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

/* ---- which elements ---- */

enum { MAX_LOOKED_AT = 1024 };

/* An element's comparison: the gradient under test with the reference; or, where the rule is wrong,
 * the reference with differences. */
static adj_status judge_element(leaf_check *c, const failure *f, const bound *b, int64_t i,
                                char *wrong)
{
    subject *s = c->s;
    double dx = s->dx[c->leaf][i], dx_ref = s->dx_ref[c->leaf][i];
    adj_dtype dtype = s->tested.leaf[c->leaf]->type.dtype;
    estimate e = {.value = dx_ref};
    double tolerance = bound_at(b, i, dx_ref);
    int kink = 0;

    if (f->rule_is_wrong) {
        adj_status status = check_differentiate_element(c, i, &e, &kink);
        if (status != ADJ_OK)
            return status;
        dx = dx_ref;
        tolerance = check_rule_tolerance(c, e, b->magnitude[i]);
    } else if (c->exact) {
        e.value = rounded(dtype, dx_ref);
        if (!adj_is_half(dtype) || b->kernels == 1)
            tolerance = 0;
    }
    s->numeric[i] = e.value;
    *wrong = (char)(!kink && check_record(c, i, dx, e, tolerance));
    return ADJ_OK;
}

/* One wrong element of a rule among many: the half whose projection is wrong, again and again. */
static adj_status bisect(leaf_check *c, int64_t *found)
{
    subject *s = c->s;
    int64_t low = 0, high = leaf_elems(s, c->leaf);
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        estimate e;
        double size;
        draw_direction(s, c->leaf, c->drawn, c->exact);
        for (int64_t i = 0, n = leaf_elems(s, c->leaf); i < n; i++)
            s->v[i] = i >= low && i < middle ? s->v[i] : 0;
        adj_status status = check_differentiate(c, &e);
        if (status != ADJ_OK)
            return status;
        double sum = check_projection(s->dx_ref[c->leaf], s->v, leaf_elems(s, c->leaf), &size);
        if (check_excess(fabs(sum - e.value), check_rule_tolerance(c, e, size)) > 1)
            high = middle;
        else
            low = middle;
    }
    *found = low;
    return ADJ_OK;
}

/* Which elements are wrong; where only differences can tell, as many are looked at as the forward
 * pass is cheap. */
static adj_status locate(leaf_check *c, failure *f)
{
    subject *s = c->s;
    int64_t n = leaf_elems(s, c->leaf);
    char *wrong = region_alloc(&s->region, (size_t)n + 1, 1);
    bound b;
    adj_status status = bound_open(s, c->leaf, &b);
    if (status != ADJ_OK || wrong == NULL)
        return gradcheck_fail(s->report, ADJ_ENOMEM, "gradcheck: out of memory");
    double each = terms_of(s->reference.y) * (double)s->n_y + 1;
    int64_t max = (int64_t)fmin(fmax(0x1p30 / each, 64), MAX_LOOKED_AT);
    int64_t stride = f->stride = f->rule_is_wrong && n > max ? (n + max - 1) / max : 1;

    memcpy(s->numeric, s->dx_ref[c->leaf], (size_t)n * sizeof(double));
    c->worst = 0;
    c->compared = 0;
    for (int64_t i = 0; i < n && status == ADJ_OK; i += stride) {
        status = judge_element(c, f, &b, i, &wrong[i]);
        f->looked_at++;
        c->row->wrong += wrong[i] != 0;
    }
    int64_t one = 0;
    if (status == ADJ_OK && stride > 1 && c->row->wrong == 0 &&
        (status = bisect(c, &one)) == ADJ_OK) {
        status = judge_element(c, f, &b, one, &wrong[one]);
        f->looked_at++;
        c->row->wrong = wrong[one] != 0;
    }
    if (f->rule_is_wrong)
        c->row->origin = "uncertainty of the differences, and 1e-7 of what they are made of";
    else if (!c->exact)
        c->row->origin = b.origin;
    f->wrong = wrong;
    return status;
}

/* The worst element's numeric value with its uncertainty, where only the reference was asked. */
static adj_status confirm_worst(leaf_check *c)
{
    estimate e;
    int kink;
    adj_status status = check_differentiate_element(c, c->element, &e, &kink);
    if (status == ADJ_OK && !kink) {
        c->row->numeric = e.value;
        c->row->uncertainty = e.uncertainty;
    }
    return status;
}

adj_status check_fail(leaf_check *c)
{
    failure f = {.leaf = c->leaf, .rule_is_wrong = c->rule_wrong};
    leaf_check before = *c;
    adj_gradcheck_row row = *c->row;
    c->row->result = ADJ_GRADCHECK_FAIL;
    adj_status status = locate(c, &f);
    if (c->row->wrong == 0) { /* too little for any single element: the projection stands */
        *c = before;
        *c->row = row;
        c->row->result = ADJ_GRADCHECK_FAIL;
    } else if (status == ADJ_OK && !f.rule_is_wrong)
        status = confirm_worst(c);
    return status == ADJ_OK ? diagnose(c->s, &f, c->row) : status;
}
