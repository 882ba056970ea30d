/* hints.c - what the wrong elements of a gradient share: indices along an axis, and the ratio to
 * the right values. */
#include <math.h>
#include <string.h>

#include "gradcheck.h"

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
        return width > fabs(mean - 1) / 2 ? "" /* of different sizes */
                                          : log_text(&report->log, "scaled by 1 %c %.2g",
                                                     mean < 1 ? '-' : '+', fabs(mean - 1));
    if (is_common && !(fabs(mean + 1) < 0.01))
        return log_text(&report->log, "scaled by %.4g", mean);
    return is_common || r->max < 0 ? "sign is flipped" : "";
}

void describe_wrong(subject *s, const failure *f, gradcheck_detail *row)
{
    const ratios r = ratios_of(s, f, f->rule_is_wrong ? s->dx_ref[f->leaf] : s->dx[f->leaf]);
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
