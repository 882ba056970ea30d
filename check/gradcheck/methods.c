/* methods.c - checks one operand of one node by the method that fits it.
 *
 * Every method makes two comparisons. The reference's gradient against differences of its forward
 * value: a mismatch means that the rule is wrong. The gradient under test against the reference,
 * element by element: a mismatch means that a kernel is wrong. One wrong element among thousands
 * fails the second directly; it fails the first too, since its error exceeds the small tolerance
 * of a projection. */
#include <math.h>
#include <string.h>

#include "check/compare/compare.h"
#include "gradcheck.h"

enum { DRAWS = 3, REDRAWS = 4, REDRAW_STRIDE = 64, SMALL = 64 };

static const double kink_limit = 0.05;

double check_excess(double error, double tolerance)
{
    if (error == 0)
        return 0;
    return tolerance > 0 && !isnan(error) ? error / tolerance : INFINITY;
}

int check_record(leaf_check *c, int64_t element, double analytic, estimate numeric,
                 double tolerance)
{
    gradcheck_detail *row = c->row;
    double error = fabs(analytic - numeric.value), excess = check_excess(error, tolerance);
    double size = fmax(fabs(analytic), fabs(numeric.value));
    if (excess > c->worst || c->compared == 0) {
        c->worst = excess;
        c->element = element;
        row->worst_abs = error;
        row->worst_rel = size > 0 ? error / size : error;
        row->analytic = analytic;
        row->numeric = numeric.value;
        row->uncertainty = numeric.uncertainty;
        row->tolerance = tolerance;
    }
    c->compared++;
    return excess > 1;
}

/* Multiples of 1/16 that float32 can add up without rounding. */
static int all_exact(const double *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(v[i]) <= 0x1p20) || v[i] * 16 != floor(v[i] * 16))
            return 0;
    return 1;
}

double check_projection(const double *a, const double *v, int64_t n, double *size)
{
    long double sum = 0; /* thousands of terms at random sides */
    *size = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += a[i] * v[i];
        *size += fabs(a[i] * v[i]);
    }
    return (double)sum;
}

/* On integers, compares with the rounded reference; a rule of several kernels may round a half type
 * more than once. Overflowed values are not compared. */
int check_element(leaf_check *c, int64_t element, double *expected)
{
    const subject *s = c->s;
    const adj_dtype dtype = s->tested.leaf[c->leaf]->type.dtype;
    const double dx_ref = s->at->dx_ref[c->leaf][element], dx = s->at->dx[c->leaf][element];
    const double stored = rounded(dtype, dx_ref);
    const int is_bit_exact = c->exact && (!adj_is_half(dtype) || c->bound.kernels == 1);
    *expected = c->exact || !isfinite(stored) ? stored : dx_ref;
    if (!isfinite(stored) && (dx == stored || (isnan(dx) && isnan(stored))))
        return 0;
    if (c->bound.overflows != NULL && c->bound.overflows[element])
        return 0;
    return check_record(c, element, dx, (estimate){.value = *expected},
                        is_bit_exact ? 0 : bound_at(&c->bound, element, dx_ref));
}

/* Compares each element, and the whole gradient with the effect of rounding. */
static void compare_kernels(leaf_check *c)
{
    const subject *s = c->s;
    const adj_gradcheck_opts *o = &s->report->opts;
    double expected;
    for (int64_t i = 0, n = leaf_elems(s, c->leaf); i < n; i++)
        c->kernel_wrong |= check_element(c, i, &expected);
    if (c->exact || o->rtol > 0 || o->atol > 0)
        return;
    const adj_type type = {ADJ_F64, s->tested.leaf[c->leaf]->type.shape};
    const expectation x = {.dtype = ADJ_F64,
                           .expected = s->at->dx_ref[c->leaf],
                           .noise = (double *)c->bound.noise,
                           .overflows = c->bound.overflows};
    const adj_compare_error e = measure_error(type, s->at->dx[c->leaf], &x);
    if (e.noise > 0)
        c->kernel_wrong |=
            check_record(c, WHOLE, e.rms, (estimate){0}, e.rms / e.noise * e.noise_limit);
    if (c->element == WHOLE)
        c->row->worst_rel = sqrt(e.nmse);
}

/* Returns the tolerance of the reference: its own rounding, and that of perturbed operands. */
double check_rule_tolerance(const leaf_check *c, estimate e, double size)
{
    const subject *s = c->s;
    const bound *b = &c->bound;
    const adj_gradcheck_opts *o = &s->report->opts;
    double square = 0;
    if (o->rtol > 0 || o->atol > 0)
        return o->atol + o->rtol * size + 2 * e.uncertainty;
    if (s->wide == ADJ_F32)
        return 2 * e.uncertainty + 1e-4 * size;
    const double h = step_for(s, c->leaf, o->method == ADJ_GRADCHECK_RICHARDSON);
    for (int64_t i = 0, n = leaf_elems(s, c->leaf); i < n; i++) { /* errors at random sides */
        const double moved = s->v[i] != 0 ? 2 * reference_eps(s) * s->at->x[c->leaf][i] / h : 0;
        square += pow(b->magnitude * b->reference * s->v[i], 2) +
                  pow(s->at->dx_ref[c->leaf][i] * moved, 2);
    }
    return 2 * e.uncertainty + sqrt(square);
}

adj_status check_differentiate(const leaf_check *c, estimate *e)
{
    int richardson = c->s->report->opts.method == ADJ_GRADCHECK_RICHARDSON;
    double h = step_for(c->s, c->leaf, richardson);
    return richardson && h != 1 ? richardson_estimate(c->s, c->leaf, h, e)
                                : central_estimate(c->s, c->leaf, h, e);
}

/* Draws values with few outputs near a kink, which are removed from dy; redraws otherwise. */
static adj_status draw_smooth(leaf_check *c, int draw)
{
    subject *s = c->s;
    int64_t kinks = 0;
    int has_kinks = s->kinks[c->leaf] && !leaf_is_linear(s, c->leaf);
    for (int redraw = 0; redraw < REDRAWS; redraw++) {
        c->drawn = draw + redraw * REDRAW_STRIDE;
        draw_values(s, c->drawn, 0);
        draw_direction(s, c->leaf, c->drawn, 0);
        memset(s->mask, 0, (size_t)s->n_y);
        int richardson = s->report->opts.method == ADJ_GRADCHECK_RICHARDSON;
        adj_status status =
            has_kinks ? mask_kinks(s, c->leaf, step_for(s, c->leaf, richardson), &kinks) : ADJ_OK;
        if (status != ADJ_OK)
            return status;
        if ((double)kinks <= kink_limit * (double)s->n_y)
            break;
    }
    c->row->kinks += kinks;
    c->row->considered += s->n_y;
    if (has_kinks)
        forget_draw(s);
    for (int64_t i = 0; i < s->n_y; i++)
        if (s->mask[i])
            s->at->dy[i] = 0;
    return ADJ_OK;
}

static void draw_integers(leaf_check *c, int draw)
{
    subject *s = c->s;
    c->drawn = draw;
    memset(s->mask, 0, (size_t)s->n_y);
    draw_values(s, draw, 1);
    draw_direction(s, c->leaf, draw, 1);
}

adj_status check_along(leaf_check *c)
{
    subject *s = c->s;
    const int64_t n = leaf_elems(s, c->leaf);
    const int is_half = adj_is_half(s->tested.leaf[c->leaf]->type.dtype), asked = c->exact;
    estimate e;
    double size;
    if (check_differentiate(c, &e) != ADJ_OK || backward(s) != ADJ_OK)
        return s->report->log.status;
    c->exact &= all_exact(s->y_low, s->n_y) && all_exact(s->y_high, s->n_y) &&
                all_exact(s->at->dx_ref[c->leaf], n);
    c->bound = (bound){.kernels = 1};
    if (asked && !c->exact)
        return ADJ_OK;
    if ((!c->exact || is_half) && bound_open(s, c->leaf, &c->bound) != ADJ_OK)
        return s->report->log.status;
    const double sum = check_projection(s->at->dx_ref[c->leaf], s->v, n, &size);
    const double tolerance = c->exact ? 0 : check_rule_tolerance(c, e, size);
    e.uncertainty *= !c->exact;
    c->rule_wrong = check_record(c, ALONG_V, sum, e, tolerance);
    return ADJ_OK;
}

/* integer: bit by bit on integers; sets c->exact to 0 if an intermediate value is inexact. */
static adj_status check_directional(leaf_check *c, int draw, int integer)
{
    if (integer)
        draw_integers(c, draw);
    else if (draw_smooth(c, draw) != ADJ_OK)
        return c->s->report->log.status;
    c->exact = integer;
    if (check_along(c) != ADJ_OK || c->exact != integer)
        return c->s->report->log.status;
    compare_kernels(c);
    c->row->origin = !integer                  ? c->bound.origin
                     : c->bound.origin != NULL ? "exact on integers, rounded once"
                                               : "exact on integers";
    return ADJ_OK;
}

/* The numeric derivative with respect to one element; *kink: there is none. */
adj_status check_differentiate_element(leaf_check *c, int64_t element, estimate *e, int *kink)
{
    subject *s = c->s;
    int64_t kinks = 0;
    adj_status status = ADJ_OK;
    memset(s->v, 0, (size_t)leaf_elems(s, c->leaf) * sizeof *s->v);
    s->v[element] = 1;
    if (s->kinks[c->leaf] && !leaf_is_linear(s, c->leaf)) {
        status = mask_kinks(s, c->leaf, step_for(s, c->leaf, 0), &kinks);
        memset(s->mask, 0, (size_t)s->n_y);
    }
    *kink = kinks > 0;
    return status == ADJ_OK ? check_differentiate(c, e) : status;
}

int check_rule_element(leaf_check *c, int64_t element, int *kink)
{
    subject *s = c->s;
    estimate e;
    if (check_differentiate_element(c, element, &e, kink) != ADJ_OK)
        return 0;
    s->numeric[element] = e.value;
    return !*kink && check_record(c, element, s->at->dx_ref[c->leaf][element], e,
                                  check_rule_tolerance(c, e, c->bound.magnitude));
}

static adj_status check_elements(leaf_check *c, int draw)
{
    subject *s = c->s;
    draw_values(s, draw, 0);
    memset(s->mask, 0, (size_t)s->n_y);
    adj_status status = backward(s);
    if (status == ADJ_OK)
        status = bound_open(s, c->leaf, &c->bound);
    if (status == ADJ_OK)
        compare_kernels(c);
    for (int64_t i = 0, n = leaf_elems(s, c->leaf); i < n && status == ADJ_OK; i++) {
        int kink = 0;
        c->rule_wrong |= check_rule_element(c, i, &kink);
        c->row->considered++;
        c->row->kinks += kink;
        status = s->report->log.status;
    }
    c->row->origin = c->bound.origin;
    return status;
}

/* ---- which method ---- */

static int is_small(const subject *s, int leaf)
{
    int64_t n = leaf_elems(s, leaf);
    return n <= SMALL && (double)n * terms_of(s->reference.y) * (double)s->n_y <= 0x1p18;
}

static adj_gradcheck_method select_method(const subject *s, int leaf)
{
    adj_gradcheck_method method = s->report->opts.method;
    if (method == ADJ_GRADCHECK_AUTO || method == ADJ_GRADCHECK_ADJOINT) {
        if (leaf_is_linear(s, leaf))
            return ADJ_GRADCHECK_ADJOINT;
        return is_small(s, leaf) ? ADJ_GRADCHECK_ELEMENTWISE : ADJ_GRADCHECK_DIRECTIONAL;
    }
    return method;
}

static adj_status check_draw(leaf_check *c, adj_gradcheck_method *method, int draw)
{
    if (*method == ADJ_GRADCHECK_ADJOINT) {
        const adj_status status = check_directional(c, draw, 1);
        if (status != ADJ_OK || c->exact)
            return status;
        *method = is_small(c->s, c->leaf) ? ADJ_GRADCHECK_ELEMENTWISE : ADJ_GRADCHECK_DIRECTIONAL;
    }
    return *method == ADJ_GRADCHECK_ELEMENTWISE ? check_elements(c, draw)
                                                : check_directional(c, draw, 0);
}

static const char *const method_names[] = {[ADJ_GRADCHECK_ADJOINT] = "adjoint-int",
                                           [ADJ_GRADCHECK_DIRECTIONAL] = "directional",
                                           [ADJ_GRADCHECK_ELEMENTWISE] = "element-wise",
                                           [ADJ_GRADCHECK_RICHARDSON] = "richardson"};

adj_status check_leaf(subject *s, int leaf, gradcheck_detail *row)
{
    adj_gradcheck_method method = select_method(s, leaf);
    int draws = s->report->opts.draws > 0 ? s->report->opts.draws : DRAWS, draw = 0;
    leaf_check c = {.s = s, .leaf = leaf, .row = row};
    adj_status status = ADJ_OK;

    row->elems = leaf_elems(s, leaf);
    for (; draw < draws && status == ADJ_OK && row->result == ADJ_GRADCHECK_PASS; draw++) {
        c.rule_wrong = c.kernel_wrong = c.exact = 0;
        status = check_draw(&c, &method, draw);
        row->method = method_names[method];
        if (status == ADJ_OK && (c.rule_wrong || c.kernel_wrong))
            status = check_fail(&c);
    }
    row->index = c.element >= 0       ? index_text(s, leaf, c.element)
                 : c.element == WHOLE ? " as a whole: the RMS error"
                                      : " along a random direction";
    if (row->result == ADJ_GRADCHECK_PASS &&
        (double)row->kinks > kink_limit * (double)row->considered) {
        row->result = ADJ_GRADCHECK_INCONCLUSIVE;
        row->reason = log_text(&s->report->log, "more than %g %% are at a kink", 100 * kink_limit);
    }
    if (status == ADJ_OK)
        check_repeat(s, leaf, row);
    return status;
}
