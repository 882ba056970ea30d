/* result_error.c - error measures of a result: the worst element relative to its bound, since a
 * mean hides a single wrong element, and the RMS error relative to the expected rounding error. */
#include <math.h>
#include <string.h>

#include "compare.h"

enum { SEEN = 256, MIN_BIASED = 128 };

typedef struct {
    double error, noise, signal; /* noise and signal: sums of squares */
    double seen[SEEN];           /* expected values */
} sums;

static void add_error(adj_dtype dtype, const expectation *x, int64_t i, double got, double expected,
                      adj_compare_error *e, sums *s)
{
    double error = fabs(got - expected);
    double bound = x->exact || x->bound == NULL ? 0 : x->bound[i];
    s->noise += error * error;
    s->signal += expected * expected;
    const double relative = expected != 0 ? error / fabs(expected) : 0;
    const double ulps = error / ulp_of(dtype, expected);
    e->max_abs = error > e->max_abs ? error : e->max_abs;
    e->max_rel = relative > e->max_rel ? relative : e->max_rel;
    e->max_ulp = ulps > e->max_ulp ? ulps : e->max_ulp;
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

/* ---- the whole result ---- */

/* True if v was seen before: equal stored values have equal errors and add nothing. */
static int was_seen(double seen[SEEN], double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    double *place = &seen[(bits * UINT64_C(0x9e3779b97f4a7c15)) >> 56];
    const int same = *place == v;
    *place = v;
    return same;
}

/* Adds an error, in units of the expected rounding error. bias: distance from `stored`, the
 * expected value rounded to the type, which is 0 for a correctly rounded result. */
static void add_noise(double noise, double got, double expected, double stored,
                      adj_compare_error *e, sums *s)
{
    const double error = got - expected;
    if (!(noise > 0) || !isfinite(noise) || was_seen(s->seen, stored))
        return;
    e->distinct++;
    e->rms += error * error;
    e->noise += error / noise * (error / noise);
    e->bias += (expected < 0 ? stored - got : got - stored) / noise;
}

/* The limit is twice as wide where few values make the mean uncertain. */
static void finish_noise(adj_dtype dtype, adj_compare_error *e)
{
    const double n = (double)e->distinct;
    const int is_measured = e->distinct > 0;
    e->rms = is_measured ? sqrt(e->rms / n) : NAN;
    e->noise = is_measured ? sqrt(e->noise / n) : NAN;
    e->noise_limit = is_measured ? 1.75 * (1 + 4 / sqrt(n)) : NAN;
    e->bias = adj_is_half(dtype) && e->noise > 0 ? e->bias / n / e->noise : 0;
}

int is_noisy(const adj_compare_error *e) { return e->noise > e->noise_limit; }

int rounds_one_way(const adj_compare_error *e)
{
    return e->distinct >= MIN_BIASED && fabs(e->bias) > 0.5;
}

int is_wrong(const adj_compare_error *e)
{
    return e->wrong > 0 || is_noisy(e) || rounds_one_way(e);
}

static int is_other_zero(const expectation *x, double got, double expected)
{
    return x->signs && got == 0 && expected == 0 && (signbit(got) != 0) != (signbit(expected) != 0);
}

adj_compare_error measure_error(adj_type type, const void *value, const expectation *x)
{
    adj_compare_error e = {.n = adj_shape_elems(type.shape), .at = -1};
    sums s = {0};
    for (int64_t i = 0; i < e.n; i++) {
        double got = adj_load(type.dtype, value, i);
        double expected = adj_load(x->dtype, x->expected, i);
        if (x->overflows != NULL && x->overflows[i])
            continue;
        const double stored = rounded(type.dtype, expected);
        if (x->exact || !isfinite(stored))
            expected = stored;
        e.zeros += got == 0;
        e.zeros_expected += expected == 0;
        if (x->noise != NULL && !x->exact && isfinite(got) && isfinite(expected))
            add_noise(x->noise[i], got, expected, stored, &e, &s);
        if (is_other_zero(x, got, expected)) {
            e.wrong++;
            e.at = i;
            e.got = got;
            e.expected = expected;
            e.worst = INFINITY;
        } else if (got == expected || (isnan(got) && isnan(expected)))
            s.signal += isfinite(expected) ? expected * expected : 0;
        else if (isfinite(got) && isfinite(expected))
            add_error(type.dtype, x, i, got, expected, &e, &s);
        else { /* one of them is no number: no bound rule_of that */
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
    finish_noise(type.dtype, &e);
    if (e.nan + e.inf > 0)
        s.noise = INFINITY;
    e.nmse = s.noise == 0 ? 0 : s.noise / s.signal;
    e.sqnr = s.noise == 0 ? INFINITY : 10 * log10(s.signal / s.noise);
    if (x->bound == NULL && !x->exact)
        e.worst = NAN;
    return e;
}

double norm_apart(adj_type type, const void *value, adj_dtype dtype, const void *expected)
{
    const expectation x = {.dtype = dtype, .expected = expected};
    return sqrt(measure_error(type, value, &x).nmse);
}
