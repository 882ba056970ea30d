/* failure.c - after a failure: which elements are wrong, and by how much; blame.c says whose fault
 * it is. */
#include <math.h>
#include <string.h>

#include "gradcheck.h"

static void diagnose(subject *s, const failure *f, gradcheck_detail *row)
{
    adj_gradcheck_fault fault;
    const char *blame = blame_text(s, f->leaf, f->rule_is_wrong, &fault);
    if (fault == ADJ_FAULT_KERNEL)
        blame = log_text(&s->report->log, "%s backward agrees with numeric -> %s",
                         reference_name(s), blame);
    if (s->wrong_plan != NULL) { /* of an executor that was to say whose fault it is */
        fault = ADJ_FAULT_PLAN;
        blame = s->wrong_plan;
    }
    gradcheck_blame(fault, blame, row);
    if (row->wrong > 0)
        describe_wrong(s, f, row);
}

/* ---- which elements ---- */

enum { MAX_LOOKED_AT = 1024 };

/* An element's comparison: the gradient under test with the reference; or, where the rule is wrong,
 * the reference with differences. */
static int judge_element(leaf_check *c, failure *f, int64_t i)
{
    subject *s = c->s;
    estimate e;
    int kink;
    f->looked_at++;
    if (!f->rule_is_wrong)
        return check_element(c, i, &s->numeric[i]);
    if (check_differentiate_element(c, i, &e, &kink) != ADJ_OK)
        return 0;
    s->numeric[i] = e.value;
    return !kink && check_record(c, i, s->dx_ref[c->leaf][i], e,
                                 check_rule_tolerance(c, e, c->bound.magnitude));
}

/* One wrong element of a rule among many: the half whose projection is wrong, again and again. */
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
        double sum = check_projection(s->dx_ref[c->leaf], s->v, leaf_elems(s, c->leaf), &size);
        if (check_excess(fabs(sum - e.value), check_rule_tolerance(c, e, size)) > 1)
            high = middle;
        else
            low = middle;
    }
    return low;
}

/* Finds which elements are wrong; where only differences can tell, as many are looked at as the
 * forward pass is cheap. */
static void locate(leaf_check *c, failure *f)
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

    memcpy(s->numeric, s->dx_ref[c->leaf], (size_t)n * sizeof(double));
    c->worst = 0;
    c->compared = 0;
    for (int64_t i = 0; i < n && s->report->log.status == ADJ_OK; i += stride) {
        wrong[i] = (char)judge_element(c, f, i);
        c->row->wrong += wrong[i] != 0;
    }
    if (stride > 1 && c->row->wrong == 0) {
        const int64_t one = bisect(c);
        c->row->wrong = judge_element(c, f, one);
        wrong[one] = c->row->wrong != 0;
    }
    if (f->rule_is_wrong)
        c->row->origin = "uncertainty of the differences, and rounding in the reference";
    else if (!c->exact)
        c->row->origin = c->bound.origin;
    f->wrong = wrong;
}

/* The worst element's numeric value with its uncertainty, where only the reference was asked. */
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
    locate(c, &f);
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
