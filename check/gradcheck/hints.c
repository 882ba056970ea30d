/* hints.c - what the wrong elements of a gradient share: indices along an axis, and the ratio to
 * the right values. */
#include <math.h>
#include <string.h>

#include "gradcheck.h"

enum { TEXT = 256 };

/* ---- where ---- */

static int64_t index_at(adj_shape shape, int64_t element, int axis)
{
    for (int64_t a = shape.rank - 1; a > axis; a--)
        element /= shape.dim[a];
    return element % shape.dim[axis];
}

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

static double mean(const ratios *r) { return (r->min + r->max) / 2; }
static int is_common(const ratios *r)
{
    return r->max - r->min <= 0.02 * fmax(fabs(r->min), fabs(r->max)) + 1e-3;
}

static int is_not_finite(const ratios *r) { return !r->is_finite; }
static int is_extra(const ratios *r) { return r->n == 0; }
static int is_missing(const ratios *r) { return r->zeros == r->n; }
static int is_negated(const ratios *r) { return is_common(r) && fabs(mean(r) + 1) < 0.01; }
static int is_rounding(const ratios *r) { return is_common(r) && fabs(mean(r) - 1) < 1e-4; }
static int is_scaled(const ratios *r) { return is_common(r); }
static int is_negative(const ratios *r) { return r->max < 0; }

/* Hints in order; the first that applies is printed. */
static const struct {
    const char *name;
    int (*is_true)(const ratios *r);
    int has_factor; /* the common ratio is printed, too */
} hints[] = {
    {"not finite", is_not_finite, 0},
    {"should be 0", is_extra, 0},
    {"missing: 0 where there is a gradient", is_missing, 0},
    {"sign is flipped", is_negated, 0},
    {"rounding, by its size", is_rounding, 0},
    {"scaled by", is_scaled, 1},
    {"sign is flipped", is_negative, 0},
};

static const char *hint_text(gradcheck_report *report, const ratios *r)
{
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (hints[i].is_true(r))
            return hints[i].has_factor ? gradcheck_text(report, "%s %.4g", hints[i].name, mean(r))
                                       : hints[i].name;
    return "";
}

void describe_wrong(subject *s, const failure *f, adj_gradcheck_row *row)
{
    const ratios r = ratios_of(s, f, f->rule_is_wrong ? s->dx_ref[f->leaf] : s->dx[f->leaf]);
    const int rank = (int)s->tested.leaf[f->leaf]->type.shape.rank;
    const long long n = leaf_elems(s, f->leaf), wrong = row->wrong, looked_at = f->looked_at;
    char shared[TEXT] = "";
    for (int a = 0; a < rank && wrong > 1; a++)
        describe_along(s, f, a, shared);
    row->pattern = looked_at < n
                       ? gradcheck_text(s->report, "%lld wrong of the %lld looked at (of %lld)%s",
                                        wrong, looked_at, n, shared)
                       : gradcheck_text(s->report, "%lld of %lld wrong%s", wrong, n, shared);
    row->hint = hint_text(s->report, &r);
}
