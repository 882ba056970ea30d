/* finite_difference.c - directional derivatives from forward values of the reference.
 *
 * D(h) = <dy, (f(x + h v) - f(x - h v)) / 2h>. The truncation error is O(h^2), and 0 if f is
 * linear. The rounding error is about eps |dy f| / h with the Euclidean norm, as signs are random.
 * |D(h) - D(h/2)| estimates the truncation error of D(h/2): it is three times as large, or equal
 * where the second derivative jumps. */
#include <math.h>

#include "check/compare/compare.h"
#include "gradcheck.h"

/* Returns the step h: 1 if linear; short if there are kinks, which a long step would cross. */
double step_for(const subject *s, int leaf, int richardson)
{
    if (leaf_is_linear(s, leaf))
        return 1;
    return (richardson && !s->kinks[leaf] ? 0x1p-6 : cbrt(reference_eps(s))) *
           fmax(1, max_magnitude(s->at->x[leaf], leaf_elems(s, leaf)));
}

/* Returns the unit roundoff of forward values, with a margin for several roundings and for
 * cancellation; smaller in float32, where a margin would hide wrong rules. */
static double value_unit(const subject *s)
{
    return (s->wide == ADJ_F64 ? 3 * sqrt(terms_of(s->reference.y)) : 2) * reference_eps(s);
}

/* Computes D(h) over unmasked outputs, and its rounding error. The terms of a normalization's
 * gradient cancel: it is rounded like its dy, the last leaf of order 2. */
static adj_status difference(subject *s, int leaf, double h, estimate *e)
{
    const int last = s->n_leaf - 1;
    const double least = s->order == 2 && may_be_any_kind(s->reference.y)
                             ? max_magnitude(s->at->x[last], leaf_elems(s, last))
                             : 0;
    forward_at(s, leaf, h, s->y_high);
    const adj_status status = forward_at(s, leaf, -h, s->y_low);
    if (status != ADJ_OK)
        return status;
    long double sum = 0; /* thousands of terms at random sides */
    double size = 0;
    for (int64_t i = 0; i < s->n_y; i++) {
        if (s->mask[i])
            continue;
        const double high = fmax(fabs(s->y_high[i]), least), low = fmax(fabs(s->y_low[i]), least);
        sum += s->at->dy[i] * (s->y_high[i] - s->y_low[i]);
        size += s->at->dy[i] * s->at->dy[i] * (high * high + low * low);
    }
    *e = (estimate){.value = (double)sum / (2 * h),
                    .uncertainty = value_unit(s) * sqrt(size) / (2 * h)};
    return ADJ_OK;
}

adj_status central_estimate(subject *s, int leaf, double h, estimate *e)
{
    estimate half;
    adj_status status = difference(s, leaf, h, e);
    if (status != ADJ_OK || leaf_is_linear(s, leaf))
        return status;
    status = difference(s, leaf, h / 2, &half);
    half.uncertainty += e->uncertainty + fabs(e->value - half.value);
    *e = half;
    return status;
}

enum { LEVELS = 8 };

/* Row k of Romberg's table: t[0] = D(h / 2^k), t[j] = t[j-1] + (t[j-1] - old[j-1]) / (4^j - 1). */
adj_status richardson_estimate(subject *s, int leaf, double h, estimate *e)
{
    double old[LEVELS] = {0}, t[LEVELS];
    estimate d;
    *e = (estimate){.uncertainty = INFINITY};
    for (int k = 0; k < LEVELS; k++) {
        adj_status status = difference(s, leaf, ldexp(h, -k), &d);
        if (status != ADJ_OK)
            return status;
        t[0] = d.value;
        for (int j = 1; j <= k; j++)
            t[j] = t[j - 1] + (t[j - 1] - old[j - 1]) / (ldexp(1, 2 * j) - 1);
        double change = k > 0 ? fabs(t[k] - old[k - 1]) : INFINITY;
        if (k > 0 && change + d.uncertainty < e->uncertainty)
            *e = (estimate){.value = t[k], .uncertainty = change + d.uncertainty};
        else if (k > 1)
            break; /* it has settled: from here on rounding grows */
        for (int j = 0; j <= k; j++)
            old[j] = t[j];
    }
    return ADJ_OK;
}

/* Masks outputs whose slopes on both sides differ at step h. */
static adj_status mask_bends(subject *s, int leaf, double h, double bends[])
{
    const double eps = reference_eps(s), bend = 1.65 * cbrt(eps); /* 1e-5 in float64 */
    forward_at(s, leaf, 0, s->y_mid);
    forward_at(s, leaf, h, s->y_high);
    const adj_status status = forward_at(s, leaf, -h, s->y_low);
    for (int64_t i = 0; i < s->n_y && status == ADJ_OK; i++) {
        double up = (s->y_high[i] - s->y_mid[i]) / h, down = (s->y_mid[i] - s->y_low[i]) / h;
        double rounding = 256 * eps * (fabs(s->y_mid[i]) + 1) / h;
        const double limit = bend * (fabs(up) + fabs(down)) + rounding;
        s->mask[i] = !(isfinite(up - down) && fabs(up - down) <= limit);
        bends[i] = up - down;
    }
    return status;
}

/* Unmasks outputs without a kink: the slopes' difference is proportional to the step. */
static adj_status unmask_curves(subject *s, int leaf, double h, const double bends[])
{
    adj_status status = ADJ_OK;
    for (int halvings = 1; halvings <= 2 && status == ADJ_OK; halvings++) {
        const double factor = ldexp(1, -halvings);
        forward_at(s, leaf, factor * h, s->y_high);
        status = forward_at(s, leaf, -factor * h, s->y_low);
        for (int64_t i = 0; i < s->n_y && status == ADJ_OK; i++) {
            const double bent = (s->y_high[i] - 2 * s->y_mid[i] + s->y_low[i]) / (factor * h);
            if (s->mask[i] && !(fabs(bent - factor * bends[i]) <= 0.02 * factor * fabs(bends[i])))
                s->mask[i] = 2;
        }
    }
    for (int64_t i = 0; i < s->n_y; i++)
        s->mask[i] = s->mask[i] == 2;
    return status;
}

adj_status mask_kinks(subject *s, int leaf, double h, int64_t *n)
{
    adj_status status = mask_bends(s, leaf, h, s->bends);
    int64_t bent = 0;
    for (int64_t i = 0; i < s->n_y && status == ADJ_OK; i++)
        bent += s->mask[i];
    if (bent > 0 && status == ADJ_OK)
        status = unmask_curves(s, leaf, h, s->bends);
    *n = 0;
    for (int64_t i = 0; i < s->n_y && status == ADJ_OK; i++)
        *n += s->mask[i] && isfinite(s->y_mid[i]);
    return status;
}
