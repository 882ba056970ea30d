/* failure.c - after a failure: which elements are wrong, and by how much; blame.c says whose fault
 * it is. */
#include <math.h>
#include <string.h>

#include "gradcheck.h"

static adj_status diagnose(subject *s, const failure *f, adj_gradcheck_row *row)
{
    adj_gradcheck_fault fault;
    const char *blame = blame_text(s, f->leaf, f->rule_is_wrong, &fault);
    if (fault == ADJ_FAULT_KERNEL)
        blame = gradcheck_text(s->report, "%s backward agrees with numeric -> %s",
                               reference_name(s), blame);
    if (s->wrong_plan != NULL) { /* of an executor that was to say whose fault it is */
        fault = ADJ_FAULT_PLAN;
        blame = s->wrong_plan;
    }
    gradcheck_blame(fault, blame, row);
    if (row->wrong > 0)
        describe_wrong(s, f, row);
    return s->report->status;
}

/* ---- which elements ---- */

enum { MAX_LOOKED_AT = 1024 };

/* An element's comparison: the gradient under test with the reference; or, where the rule is wrong,
 * the reference with differences. */
static adj_status judge_element(leaf_check *c, const failure *f, const bound *b, int64_t i,
                                char *wrong)
{
    subject *s = c->s;
    const double dx_ref = s->dx_ref[c->leaf][i];
    estimate e;
    int kink;
    if (!f->rule_is_wrong) {
        *wrong = (char)check_element(c, b, i, &s->numeric[i]);
        return ADJ_OK;
    }
    adj_status status = check_differentiate_element(c, i, &e, &kink);
    if (status != ADJ_OK)
        return status;
    s->numeric[i] = e.value;
    *wrong = (char)(!kink &&
                    check_record(c, i, dx_ref, e, check_rule_tolerance(c, b, e, b->magnitude[i])));
    return ADJ_OK;
}

/* One wrong element of a rule among many: the half whose projection is wrong, again and again. */
static adj_status bisect(leaf_check *c, const bound *b, int64_t *found)
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
        if (check_excess(fabs(sum - e.value), check_rule_tolerance(c, b, e, size)) > 1)
            high = middle;
        else
            low = middle;
    }
    *found = low;
    return ADJ_OK;
}

/* Finds which elements are wrong; where only differences can tell, as many are looked at as the
 * forward pass is cheap. */
static adj_status locate(leaf_check *c, failure *f)
{
    subject *s = c->s;
    int64_t n = leaf_elems(s, c->leaf);
    char *wrong = region_alloc(&s->region, (size_t)n + 1, 1);
    bound b;
    adj_status status = bound_open(s, c->leaf, &b);
    if (status != ADJ_OK || wrong == NULL)
        return gradcheck_no_memory(s->report);
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
    for (int64_t i = 0; i < n && status == ADJ_OK; i += stride) {
        status = judge_element(c, f, &b, i, &wrong[i]);
        f->looked_at++;
        c->row->wrong += wrong[i] != 0;
    }
    int64_t one = 0;
    if (status == ADJ_OK && stride > 1 && c->row->wrong == 0 &&
        (status = bisect(c, &b, &one)) == ADJ_OK) {
        status = judge_element(c, f, &b, one, &wrong[one]);
        f->looked_at++;
        c->row->wrong = wrong[one] != 0;
    }
    if (f->rule_is_wrong)
        c->row->origin = "uncertainty of the differences, and rounding in the reference";
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
