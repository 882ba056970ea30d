/* ties.c - one more draw, with ties: multiples of 1/2, many equal, many 0, and values at kinks.
 *
 * No derivative exists at a kink, so differences do not apply. Ops define where the gradient goes
 * (to the first maximum of a window; equally to all maxima of reduce_max): kernels under test must
 * match the reference, and the reference the op's formula. Two cases have a derivative. Equal
 * elements of a window stay equal if all elements move alike, so their gradients must sum to that
 * derivative. Elementwise ops have one wherever they are smooth, even where the rule divides by 0
 * or takes the logarithm of 0. */
#include <math.h>

#include "gradcheck.h"

enum { EVERY = 3 }; /* a value at a kink among so many */

static void draw_ties(subject *s)
{
    draw_values(s, 0, 0);
    forget_draw(s);
    for (int leaf = 0; leaf < s->n_leaf; leaf++)
        for (int64_t i = 0; i < leaf_elems(s, leaf) && leaf_is_float(s, leaf); i++) {
            const adj_dtype dtype = s->tested.leaf[leaf]->type.dtype;
            const double v = rounded(dtype, special_value(s->node, i / EVERY, 0));
            double *x = &s->at->x[leaf][i];
            *x = i % EVERY == leaf % EVERY && isfinite(v) ? v : nearbyint(2 * *x) / 2;
        }
}

static void fail_at_ties(const leaf_check *c, int rule_is_wrong, const char *index)
{
    subject *s = c->s;
    adj_gradcheck_fault fault;
    const char *blame = blame_text(s, c->leaf, rule_is_wrong, &fault);
    c->row->index = index;
    c->row->origin = c->bound.origin;
    gradcheck_blame(fault, log_text(&s->report->log, "on ties: %s", blame), c->row);
}

/* Compares each element with the reference's. */
static adj_status compare_at_ties(leaf_check *c)
{
    subject *s = c->s;
    const int64_t n = leaf_elems(s, c->leaf);
    double expected;
    for (int64_t i = 0; i < n; i++)
        c->row->wrong += check_element(c, i, &expected);
    if (c->row->wrong == 0)
        return ADJ_OK;
    c->row->pattern =
        log_text(&s->report->log, "%lld of %lld wrong", (long long)c->row->wrong, (long long)n);
    fail_at_ties(c, 0, index_text(s, c->leaf, c->element));
    return s->report->log.status;
}

/* True if element i of the result depends only on element i of the leaf. */
static int goes_by_element(const subject *s, int leaf)
{
    const closure *c = &s->closure;
    const int is_operand = leaf >= c->n_leaf || c->leaf[leaf].reader == s->node;
    return (s->node->op->flags & ADJ_OP_ELEMENTWISE) && s->order == 1 && is_operand &&
           leaf_elems(s, leaf) == s->n_y;
}

/* Tolerance for cancellation in the tails of an op. */
static const double in_tails = 1e-6;

/* True if the gradient is a NaN, or further than that from the numeric one. */
static int is_far(const gradcheck_detail *row)
{
    return !(fabs(row->analytic - row->numeric) <= in_tails * (1 + fabs(row->numeric)));
}

/* Compares the reference with differences along equal steps of all elements, at outputs without a
 * kink. Elements outside an op's domain, where the gradient is not finite, are left out of
 * elementwise ops; other ops are then not compared. */
static adj_status differentiate_at_ties(leaf_check *c)
{
    subject *s = c->s;
    const int64_t n = leaf_elems(s, c->leaf);
    const int by_element = goes_by_element(s, c->leaf);
    int64_t kinks;
    for (int64_t i = 0; i < n; i++)
        s->v[i] = 1;
    adj_status status = mask_kinks(s, c->leaf, step_for(s, c->leaf, 0), &kinks);
    for (int64_t i = 0; i < s->n_y; i++)
        s->at->dy[i] = s->mask[i] ? 0 : s->at->dy[i];
    forget_draw(s);
    if (status != ADJ_OK || (status = backward(s)) != ADJ_OK)
        return status;
    for (int64_t i = 0; i < n && by_element; i++)
        if (s->mask[i])
            s->v[i] = s->at->dx_ref[c->leaf][i] = 0;
    status = check_along(c);
    forget_draw(s); /* dx_ref was changed */
    if (status != ADJ_OK)
        return status;
    if (c->rule_wrong && (by_element ? is_far(c->row) : isfinite(c->row->analytic)))
        fail_at_ties(c, 1, " along equal steps of all elements");
    return s->report->log.status;
}

adj_status check_ties(subject *s, int leaf, gradcheck_detail *row)
{
    gradcheck_detail found = *row;
    leaf_check c = {.s = s, .leaf = leaf, .row = &found};
    if ((!s->kinks[leaf] && !(s->node->op->flags & ADJ_OP_ELEMENTWISE)) ||
        s->tested.dx[leaf] == NULL || row->result != ADJ_GRADCHECK_PASS)
        return ADJ_OK;
    draw_ties(s);
    adj_status status = backward(s);
    const char *refuted = status == ADJ_OK ? check_reference(s) : NULL;
    if (refuted != NULL) {
        gradcheck_blame(ADJ_FAULT_REFERENCE, log_text(&s->report->log, "on ties: %s", refuted),
                        row);
        return status;
    }
    if (status == ADJ_OK)
        status = bound_open(s, leaf, &c.bound);
    if (status == ADJ_OK)
        status = compare_at_ties(&c);
    const int has_derivative =
        !leaf_is_linear(s, leaf) &&
        (s->node->op->flags & ADJ_OP_ELEMENTWISE ? goes_by_element(s, leaf) : s->kinks[leaf] != 0);
    if (status == ADJ_OK && found.result == ADJ_GRADCHECK_PASS && has_derivative) {
        c = (leaf_check){.s = s, .leaf = leaf, .row = &found};
        status = differentiate_at_ties(&c);
    }
    if (status == ADJ_OK && found.result != ADJ_GRADCHECK_PASS)
        *row = found;
    return status;
}
