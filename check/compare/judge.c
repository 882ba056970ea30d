/* judge.c - values against expected ones: every measure at once, the verdict from the worst
 * element alone. A mean hides one wrong element among ten thousand. */
#include <math.h>
#include <string.h>

#include "compare.h"

/* The values' type, and what they should be. */
typedef struct {
    adj_dtype dtype;
    const adj_dtype_traits *of;
    const expectation *x;
} scale;

/* The distance to the next number of this type: below the normal ones the same for all. */
static double ulp_of(const scale *t, double v)
{
    if (t->of->unit == 0)
        return 1;
    const double normal = fmax(fabs(v), ldexp(1, (int)t->of->min_exponent));
    return ldexp(2 * t->of->unit, ilogb(normal));
}

typedef struct {
    double error, noise, signal; /* noise and signal: sums of squares */
} sums;

static void judge_number(const scale *t, int64_t i, double got, double expected,
                         adj_compare_error *e, sums *s)
{
    const expectation *x = t->x;
    double error = fabs(got - expected);
    double bound = x->exact || x->bound == NULL ? 0 : x->bound[i];
    s->noise += error * error;
    s->signal += expected * expected;
    e->max_abs = fmax(e->max_abs, error);
    if (expected != 0)
        e->max_rel = fmax(e->max_rel, error / fabs(expected));
    e->max_ulp = fmax(e->max_ulp, error / ulp_of(t, expected));
    double ratio = error == 0 ? 0 : bound > 0 ? error / bound : INFINITY;
    e->wrong += ratio > 1 && (x->bound != NULL || x->exact);
    if (error > 0 && (e->at < 0 || ratio > e->worst || (x->bound == NULL && error > s->error))) {
        s->error = error;
        e->worst = ratio;
        e->at = i;
        e->got = got;
        e->expected = expected;
        e->bound = bound;
    }
}

/* ---- which way it rounds ---- */

enum { SEEN = 256, MIN_OFF = 64 };

/* True if the expected value was seen before: equal ones err alike and say nothing more. */
static int was_seen(double seen[SEEN], double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    double *place = &seen[(bits * UINT64_C(0x9e3779b97f4a7c15)) >> 56];
    const int same = *place == v;
    *place = v;
    return same;
}

/* Counts values that are not the nearest, by side: rounding more than once errs to both sides. */
static void judge_side(const scale *t, double got, double expected, double seen[SEEN],
                       adj_compare_error *e)
{
    if (!adj_is_half(t->dtype) || fabs(got - expected) <= 0.51 * ulp_of(t, expected) ||
        was_seen(seen, expected))
        return;
    e->off++;
    e->inward += fabs(got) < fabs(expected);
}

int rounds_one_way(const adj_compare_error *e)
{
    return e->off >= MIN_OFF && (10 * e->inward > 9 * e->off || 10 * e->inward < e->off);
}

static int is_other_zero(const expectation *x, double got, double expected)
{
    return x->signs && got == 0 && expected == 0 && (signbit(got) != 0) != (signbit(expected) != 0);
}

adj_compare_error judge(adj_type type, const void *value, const expectation *x)
{
    adj_compare_error e = {.n = adj_shape_elems(type.shape), .at = -1};
    const scale t = {type.dtype, adj_traits_of(type.dtype), x};
    sums s = {0};
    double seen[SEEN] = {0};
    for (int64_t i = 0; i < e.n; i++) {
        double got = adj_load(type.dtype, value, i);
        double expected = adj_load(x->dtype, x->expected, i);
        if (x->exact || !isfinite(rounded(type.dtype, expected)))
            expected = rounded(type.dtype, expected);
        e.zeros += got == 0;
        e.zeros_expected += expected == 0;
        if (is_other_zero(x, got, expected)) {
            e.wrong++;
            e.at = i;
            e.got = got;
            e.expected = expected;
            e.worst = INFINITY;
        } else if (got == expected || (isnan(got) && isnan(expected)))
            s.signal += isfinite(expected) ? expected * expected : 0;
        else if (isfinite(got) && isfinite(expected)) {
            judge_number(&t, i, got, expected, &e, &s);
            judge_side(&t, got, expected, seen, &e);
        } else { /* one of them is no number: no bound forgives that */
            e.nan += isnan(got) != 0;
            e.inf += isinf(got) != 0;
            e.wrong += x->bound != NULL || x->exact;
            if (!isinf(e.worst) || e.at < 0) {
                e.at = i;
                e.got = got;
                e.expected = expected;
            }
            e.worst = e.max_abs = e.max_rel = e.max_ulp = INFINITY;
        }
    }
    if (e.nan + e.inf > 0)
        s.noise = INFINITY;
    e.nmse = s.noise == 0 ? 0 : s.noise / s.signal;
    e.sqnr = s.noise == 0 ? INFINITY : 10 * log10(s.signal / s.noise);
    if (x->bound == NULL && !x->exact)
        e.worst = NAN;
    return e;
}
