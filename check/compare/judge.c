/* judge.c - values against expected ones: every measure at once, the verdict from the worst
 * element alone. A mean hides one wrong element among ten thousand. */
#include <math.h>
#include <string.h>

#include "compare.h"

/* Rounding to nearest errs by at most unit * |v|. Sums are made in float or better; a kernel may
 * take numbers below floor as 0. */
precision precision_of(adj_dtype dtype)
{
    switch (dtype) {
    case ADJ_F64: return (precision){0x1p-53, 0x1p-53, 0x1p-1022};
    case ADJ_F32: return (precision){0x1p-24, 0x1p-24, 0x1p-126};
    case ADJ_BF16: return (precision){0x1p-8, 0x1p-24, 0x1p-126};
    case ADJ_F16: return (precision){0x1p-11, 0x1p-24, 0x1p-24};
    default: return (precision){0, 0, 0};
    }
}

/* The distance to the next number of this type. */
static double ulp_of(adj_dtype dtype, double v)
{
    precision p = precision_of(dtype);
    int exponent;
    if (p.unit == 0)
        return 1;
    frexp(fmax(fabs(v), p.floor), &exponent); /* |v| = m * 2^exponent, 0.5 <= m < 1 */
    return ldexp(p.unit, exponent);
}

/* The expected value as the type holds it. */
static double rounded(adj_dtype dtype, double v)
{
    double room = 0;
    if (!adj_is_float(dtype))
        return v;
    adj_store(dtype, &room, 0, v);
    return adj_load(dtype, &room, 0);
}

typedef struct {
    double error, noise, signal; /* noise and signal: sums of squares */
} sums;

static void judge_number(const judged *j, int64_t i, double got, double expected,
                         adj_compare_error *e, sums *s)
{
    double error = fabs(got - expected);
    double bound = j->exact || j->bound == NULL ? 0 : j->bound[i];
    s->noise += error * error;
    s->signal += expected * expected;
    e->max_abs = fmax(e->max_abs, error);
    if (expected != 0)
        e->max_rel = fmax(e->max_rel, error / fabs(expected));
    e->max_ulp = fmax(e->max_ulp, error / ulp_of(j->type.dtype, expected));
    double ratio = error == 0 ? 0 : bound > 0 ? error / bound : INFINITY;
    e->wrong += ratio > 1 && (j->bound != NULL || j->exact);
    if (error > 0 && (e->at < 0 || ratio > e->worst || (j->bound == NULL && error > s->error))) {
        s->error = error;
        e->worst = ratio;
        e->at = i;
        e->got = got;
        e->expected = expected;
        e->bound = bound;
    }
}

/* Zero-trust: rounding to the type makes no zero of what sums resolve. */
static void judge_zero(const judged *j, int64_t i, double got, double expected,
                       adj_compare_error *e)
{
    e->zeros += got == 0;
    e->zeros_expected += expected == 0;
    if (j->bound == NULL || !isfinite(expected) || rounded(j->type.dtype, expected) == 0 ||
        !(fabs(expected) > j->resolve * j->bound[i]))
        return;
    e->solid++;
    e->lost += got == 0;
}

int mostly_lost(const adj_compare_error *e) { return 2 * e->lost > e->solid; }

adj_compare_error judge(const judged *j)
{
    adj_compare_error e = {.n = adj_shape_elems(j->type.shape), .at = -1};
    sums s = {0};
    for (int64_t i = 0; i < e.n; i++) {
        double got = adj_load(j->type.dtype, j->value, i);
        double expected = adj_load(j->expected_dtype, j->expected, i);
        if (j->exact || !isfinite(rounded(j->type.dtype, expected)))
            expected = rounded(j->type.dtype, expected);
        judge_zero(j, i, got, expected, &e);
        if (got == expected || (isnan(got) && isnan(expected)))
            s.signal += isfinite(expected) ? expected * expected : 0;
        else if (isfinite(got) && isfinite(expected))
            judge_number(j, i, got, expected, &e, &s);
        else { /* one of them is no number: no bound forgives that */
            e.nan += isnan(got) != 0;
            e.inf += isinf(got) != 0;
            e.wrong += j->bound != NULL || j->exact;
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
    if (j->bound == NULL && !j->exact)
        e.worst = NAN;
    return e;
}
