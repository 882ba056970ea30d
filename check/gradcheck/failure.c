/* failure.c - describes a failed row: the wrong elements, their errors, and a common property:
 * indices along an axis, or the ratio to the right values. blame.c attributes the failure. */
#include <math.h>
#include <string.h>

#include "gradcheck.h"

/* The elements of a leaf's gradient that are wrong. */
typedef struct {
    int leaf;
    int rule_is_wrong; /* reference and numeric differ */
    const char *wrong; /* by element */
    int64_t looked_at; /* elements; fewer than all where there are many */
    int64_t stride;    /* between these */
} failure;

enum { TEXT = 256 };

/* ---- where ---- */

/* Appends ", all with h=2" or ", all with h=2..3" if the wrong elements have indices in at most
 * half of the axis, and an element that was found right has another one. */
static void describe_along(const subject *s, const failure *f, int axis, char text[TEXT])
{
    const adj_shape shape = s->tested.leaf[f->leaf]->type.shape;
    const int64_t n = adj_shape_elems(shape), dim = shape.dim[axis];
    const char name = axis_name(s, f->leaf, axis);
    const size_t used = strlen(text);
    int64_t first = dim, last = 0;
    int is_alone = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = index_at(shape, i, axis);
        first = f->wrong[i] && at < first ? at : first;
        last = f->wrong[i] && at > last ? at : last;
    }
    for (int64_t i = 0; i < n; i += f->stride)
        is_alone |= index_at(shape, i, axis) < first || index_at(shape, i, axis) > last;
    if (!is_alone || 2 * (last - first + 1) > dim)
        return;
    if (first == last)
        snprintf(text + used, TEXT - used, ", all with %c=%lld", name, (long long)first);
    else
        snprintf(text + used, TEXT - used, ", all with %c=%lld..%lld", name, (long long)first,
                 (long long)last);
}

/* ---- by which factor ---- */

/* Ratios of wrong elements to the right values that are not 0. */
typedef struct {
    double min, max;
    int64_t n, zeros;
    int is_finite;
} ratios;

static ratios ratios_of(const subject *s, const failure *f, const double *dx)
{
    ratios r = {.min = INFINITY, .max = -INFINITY, .is_finite = 1};
    for (int64_t i = 0, n = leaf_elems(s, f->leaf); i < n; i++) {
        if (!f->wrong[i] || s->numeric[i] == 0)
            continue;
        const double ratio = dx[i] / s->numeric[i];
        r.min = fmin(r.min, ratio);
        r.max = fmax(r.max, ratio);
        r.n++;
        r.zeros += dx[i] == 0;
        r.is_finite &= isfinite(ratio) != 0;
    }
    return r;
}

/* unit: rounding unit of the wrong elements. */
static const char *hint_text(gradcheck_report *report, const ratios *r, double unit)
{
    const double mean = (r->min + r->max) / 2, width = r->max - r->min;
    const int is_common = width <= 0.02 * fmax(fabs(r->min), fabs(r->max)) + 1e-3;
    if (!r->is_finite)
        return "not finite";
    if (r->n == 0)
        return "should be 0";
    if (r->zeros == r->n)
        return "missing: 0 where there is a gradient";
    if (is_common && fabs(mean - 1) < fmin(1e-4, 2048 * unit))
        return "rounding, by its size";
    if (is_common && fabs(mean - 1) < 1e-3)
        return width > fabs(mean - 1) / 2 ? "" /* errors of different sizes */
                                          : log_text(&report->log, "scaled by 1 %c %.2g",
                                                     mean < 1 ? '-' : '+', fabs(mean - 1));
    if (is_common && !(fabs(mean + 1) < 0.01))
        return log_text(&report->log, "scaled by %.4g", mean);
    return is_common || r->max < 0 ? "sign is flipped" : "";
}

static void describe_wrong(subject *s, const failure *f, gradcheck_detail *row)
{
    const ratios r =
        ratios_of(s, f, f->rule_is_wrong ? s->at->dx_ref[f->leaf] : s->at->dx[f->leaf]);
    const int rank = (int)s->tested.leaf[f->leaf]->type.shape.rank;
    const long long n = leaf_elems(s, f->leaf), wrong = row->wrong, looked_at = f->looked_at;
    char shared[TEXT] = "";
    for (int a = 0; a < rank && wrong > 1; a++)
        describe_along(s, f, a, shared);
    row->pattern = looked_at < n
                       ? log_text(&s->report->log, "%lld wrong of the %lld looked at (of %lld)%s",
                                  wrong, looked_at, n, shared)
                       : log_text(&s->report->log, "%lld of %lld wrong%s", wrong, n, shared);
    const adj_dtype dtype = f->rule_is_wrong ? s->wide : s->tested.dx[f->leaf]->type.dtype;
    row->hint = hint_text(s->report, &r, adj_traits_of(dtype)->unit);
}

static void diagnose(subject *s, const failure *f, gradcheck_detail *row)
{
    adj_gradcheck_fault fault;
    const char *blame = blame_text(s, f->leaf, f->rule_is_wrong, &fault);
    if (fault == ADJ_FAULT_KERNEL)
        blame = log_text(&s->report->log, "%s backward agrees with numeric -> %s",
                         reference_name(s), blame);
    if (s->wrong_plan != NULL) { /* the executor for the attribution has a wrong plan */
        fault = ADJ_FAULT_PLAN;
        blame = s->wrong_plan;
    }
    gradcheck_blame(fault, blame, row);
    if (row->wrong > 0)
        describe_wrong(s, f, row);
}

/* ---- which elements ---- */

enum { MAX_LOOKED_AT = 1024 };

/* Compares an element of the gradient under test with the reference; for a wrong rule, the
 * reference with differences. */
static int is_wrong_element(leaf_check *c, failure *f, int64_t i)
{
    int kink;
    f->looked_at++;
    return f->rule_is_wrong ? check_rule_element(c, i, &kink)
                            : check_element(c, i, &c->s->numeric[i]);
}

/* Finds one wrong element of a rule by bisecting on projections. */
static int64_t bisect(leaf_check *c)
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
        if (check_differentiate(c, &e) != ADJ_OK)
            break;
        double sum = check_projection(s->at->dx_ref[c->leaf], s->v, leaf_elems(s, c->leaf), &size);
        if (check_excess(fabs(sum - e.value), check_rule_tolerance(c, e, size)) > 1)
            high = middle;
        else
            low = middle;
    }
    return low;
}

/* Finds wrong elements; for a wrong rule as many as the cost of the forward pass allows. */
static void find_wrong_elements(leaf_check *c, failure *f)
{
    subject *s = c->s;
    int64_t n = leaf_elems(s, c->leaf);
    char *wrong = region_alloc(&s->region, (size_t)n + 1, 1);
    if (wrong == NULL)
        log_no_memory(&s->report->log);
    if (c->bound.origin == NULL && bound_open(s, c->leaf, &c->bound) != ADJ_OK)
        return;
    double each = 1; /* a forward pass */
    for (uint32_t id = 0; id <= s->reference.y->id; id++) {
        const adj_node *x = s->reference.graph->node[id];
        each += x->n_in > 0 ? terms_of(x) * (double)node_elems(x) : 0;
    }
    int64_t max = (int64_t)fmin(fmax(0x1p30 / each, 16), MAX_LOOKED_AT);
    int64_t stride = f->stride = f->rule_is_wrong && n > max ? (n + max - 1) / max : 1;

    memcpy(s->numeric, s->at->dx_ref[c->leaf], (size_t)n * sizeof(double));
    c->worst = 0;
    c->compared = 0;
    for (int64_t i = 0; i < n && s->report->log.status == ADJ_OK; i += stride) {
        wrong[i] = (char)is_wrong_element(c, f, i);
        c->row->wrong += wrong[i] != 0;
    }
    if (stride > 1 && c->row->wrong == 0) {
        const int64_t one = bisect(c);
        c->row->wrong = is_wrong_element(c, f, one);
        wrong[one] = c->row->wrong != 0;
    }
    if (f->rule_is_wrong)
        c->row->origin = "uncertainty of the differences, and rounding in the reference";
    else if (!c->exact)
        c->row->origin = c->bound.origin;
    f->wrong = wrong;
}

/* Adds the worst element's numeric value, if only the reference was compared so far. */
static void confirm_worst(leaf_check *c)
{
    estimate e;
    int kink;
    if (check_differentiate_element(c, c->element, &e, &kink) == ADJ_OK && !kink) {
        c->row->numeric = e.value;
        c->row->uncertainty = e.uncertainty;
    }
}

adj_status check_fail(leaf_check *c)
{
    failure f = {.leaf = c->leaf, .rule_is_wrong = c->rule_wrong};
    leaf_check before = *c;
    gradcheck_detail row = *c->row;
    c->row->result = ADJ_GRADCHECK_FAIL;
    find_wrong_elements(c, &f);
    if (c->row->wrong == 0) { /* too little for any single element: the projection stands */
        *c = before;
        *c->row = row;
        c->row->result = ADJ_GRADCHECK_FAIL;
    } else if (!f.rule_is_wrong)
        confirm_worst(c);
    if (c->s->report->log.status == ADJ_OK)
        diagnose(c->s, &f, c->row);
    return c->s->report->log.status;
}
