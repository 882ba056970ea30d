/* likeness.c - what a wrong gradient looks like: by how much it is off, and which fault gives just
 * that. Nothing is said that the evidence leaves in doubt. */
#include <math.h>
#include <string.h>

#include "pattern.h"

/* ---- how ---- */

/* dx[.., i, .., j, ..] against the right value at [.., j, .., i, ..]. */
static int is_swapped(const subject *s, const failure *f, const double *dx, int a, int b)
{
    adj_shape shape = s->tested.leaf[f->leaf]->type.shape;
    int64_t unit[ADJ_MAX_RANK], n = adj_shape_elems(shape);
    double max = max_magnitude(s->numeric, n);
    unit[shape.rank - 1] = 1;
    for (int64_t k = shape.rank - 1; k > 0; k--)
        unit[k - 1] = unit[k] * shape.dim[k];
    for (int64_t i = 0; i < n; i++) {
        int64_t ia = index_at(shape, i, a), ib = index_at(shape, i, b);
        int64_t j = i + (ib - ia) * unit[a] + (ia - ib) * unit[b];
        if (!(fabs(dx[i] - s->numeric[j]) <= 0.02 * max))
            return 0;
    }
    return 1;
}

/* dx[.., i, ..] against the right value at [.., i + by, ..], which has to be another than at i. */
static int is_shifted(const subject *s, const failure *f, const double *dx, int axis, int by)
{
    const adj_shape shape = s->tested.leaf[f->leaf]->type.shape;
    const double max = max_magnitude(s->numeric, adj_shape_elems(shape));
    int64_t unit = 1, compared = 0, different = 0;
    for (int64_t a = shape.rank - 1; a > axis; a--)
        unit *= shape.dim[a];
    for (int64_t i = 0; i < adj_shape_elems(shape); i++) {
        const int64_t at = index_at(shape, i, axis) + by;
        if (at < 0 || at >= shape.dim[axis])
            continue;
        const double right = s->numeric[i + by * unit];
        if (!(fabs(dx[i] - right) <= 0.01 * max))
            return 0;
        compared++;
        different += fabs(s->numeric[i] - right) > 0.05 * max;
    }
    return compared >= 8 && 2 * different > compared;
}

/* The right values in other places. */
static const char *arrangement_text(const subject *s, const failure *f, const double *dx)
{
    const adj_shape shape = s->tested.leaf[f->leaf]->type.shape;
    for (int a = 0; a < shape.rank && f->stride == 1; a++)
        for (int b = a + 1; b < shape.rank; b++)
            if (shape.dim[a] == shape.dim[b] && shape.dim[a] > 1 && is_swapped(s, f, dx, a, b))
                return gradcheck_text(s->report, "transposed, %c and %c swapped",
                                      axis_name(s, f->leaf, a), axis_name(s, f->leaf, b));
    for (int a = 0; a < shape.rank && f->stride == 1; a++)
        for (int by = -1; by <= 1; by += 2)
            if (shape.dim[a] > 2 && is_shifted(s, f, dx, a, by))
                return gradcheck_text(s->report, "off by one in %c", axis_name(s, f->leaf, a));
    return NULL;
}

/* What all wrong elements are of the right ones; NAN: not the same. */
static double common_ratio(const subject *s, const failure *f, const double *dx)
{
    double min = INFINITY, max = -INFINITY;
    for (int64_t i = 0, n = leaf_elems(s, f->leaf); i < n; i++)
        if (f->wrong[i] && s->numeric[i] != 0) {
            min = fmin(min, dx[i] / s->numeric[i]);
            max = fmax(max, dx[i] / s->numeric[i]);
        }
    return max - min <= 0.02 * fabs(max) ? (max + min) / 2 : NAN;
}

const char *ratio_text(const subject *s, const failure *f, const double *dx)
{
    double min = INFINITY, max = -INFINITY;
    int zeros = 0, signs = 0, counted = 0;
    for (int64_t i = 0, n = leaf_elems(s, f->leaf); i < n; i++) {
        if (!f->wrong[i] || s->numeric[i] == 0)
            continue;
        double ratio = dx[i] / s->numeric[i];
        if (isnan(ratio) || isinf(ratio))
            return "not finite";
        min = fmin(min, ratio);
        max = fmax(max, ratio);
        zeros += dx[i] == 0;
        signs += ratio < 0;
        counted++;
    }
    if (counted == 0)
        return "should be 0";
    if (zeros == counted)
        return "missing: 0 where there is a gradient";
    if (max - min <= 0.02 * fabs(max) + 1e-3) {
        double ratio = (max + min) / 2;
        if (fabs(ratio + 1) < 0.01)
            return "sign is flipped";
        if (fabs(ratio - 1) < 1e-4)
            return "rounding, by its size";
        return gradcheck_text(s->report, "%s, scaled by %.4g",
                              ratio > 0 ? "sign ok" : "sign is flipped", ratio);
    }
    return signs == 0         ? "sign ok"
           : signs == counted ? "sign is flipped"
                              : "signs differ here and there";
}

/* ---- what it looks like: only what the evidence leaves no doubt of ---- */

/* Does the run of indices begin and end where a thread's share does, of as many as there are? */
static int is_share(const along *x, int threads)
{
    const int64_t each = x->dim / threads, rest = x->dim % threads;
    const int64_t round_up = (x->dim + threads - 1) / threads;
    if (x->n == 0 || x->last - x->first + 1 != x->n)
        return 0;
    for (int64_t t = 0; t < threads; t++) {
        const int64_t even = t * each + (t < rest ? t : rest), size = each + (t < rest);
        if ((x->first == even && x->n == size) ||
            (x->first == t * round_up && (x->n == round_up || x->last == x->dim - 1)))
            return 1;
    }
    return 0;
}

/* Exactly one group of several channels each, or all but the first. */
static int is_group(const along *x, const adj_conv_geom *g)
{
    if (g->groups < 2 || x->dim % g->groups != 0 || x->dim / g->groups < 2 || x->kind == ALL)
        return 0;
    const int64_t each = x->dim / g->groups;
    const int is_run = x->last - x->first + 1 == x->n;
    return is_run &&
           ((x->n == each && x->first % each == 0) || (x->first == each && x->last == x->dim - 1));
}

/* Numbers that a mean divides by. */
typedef struct {
    double n;
    const char *name;
} divisor;

static int list_divisors(const subject *s, int leaf, divisor list[])
{
    const adj_shape x = s->tested.leaf[leaf]->type.shape;
    const adj_shape first = s->tested.leaf[0]->type.shape;
    const adj_conv_geom *g = adj_node_geom(s->node);
    int n = 0;
    list[n++] = (divisor){(double)adj_shape_elems(x) / fmax(1, (double)s->n_y), "elements reduced"};
    list[n++] = (divisor){(double)s->n_y / fmax(1, (double)adj_shape_elems(x)), "elements summed"};
    if (first.rank == 4) {
        const int nchw = adj_format_of(s->node) == ADJ_NCHW;
        const double hw = (double)(first.dim[1 + nchw] * first.dim[2 + nchw]);
        list[n++] = (divisor){hw, "height times width"};
        list[n++] = (divisor){(double)first.dim[0] * hw, "batch times height and width"};
        list[n++] = (divisor){(double)first.dim[nchw ? 1 : 3], "channels"};
    }
    if (g != NULL)
        list[n++] = (divisor){(double)(g->kh * g->kw), "elements of a window"};
    if (first.rank > 1)
        list[n++] = (divisor){(double)first.dim[0], "batch"};
    list[n++] = (divisor){(double)adj_shape_elems(first), "all elements"};
    return n;
}

/* Is every element wrong by the same factor, and is that a number that a mean divides by? A factor
 * of 2 says too little. */
static const char *divisor_text(const subject *s, const failure *f, const double *dx)
{
    divisor list[8];
    const int n = list_divisors(s, f->leaf, list);
    const double ratio = fabs(common_ratio(s, f, dx));
    for (int i = 0; i < n; i++) {
        if (!(list[i].n > 2) || list[i].n != floor(list[i].n))
            continue;
        if (fabs(ratio / list[i].n - 1) < 2e-3)
            return gradcheck_text(s->report, "1/n missing, n = %g (%s)", list[i].n, list[i].name);
        if (fabs(ratio * list[i].n - 1) < 2e-3)
            return gradcheck_text(s->report, "1/n once too often, n = %g (%s)", list[i].n,
                                  list[i].name);
    }
    return NULL;
}

/* By the axes. */
static const char *region_text(const subject *s, const failure *f, const along x[])
{
    const adj_conv_geom *g = adj_node_geom(s->node);
    const int rank = (int)s->tested.leaf[f->leaf]->type.shape.rank;
    const char channels = leaf_is_filter(s, f->leaf) ? 'o' : 'c';
    for (int a = 0; a < rank; a++)
        if (f->needs_threads && x[a].kind != ALL && is_share(&x[a], s->report->about.threads))
            return "one thread's share";
    if (f->needs_threads)
        return "right by one thread";
    for (int a = 0; a < rank && g != NULL; a++) {
        const int64_t stride = x[a].name == 'h' ? g->sh : x[a].name == 'w' ? g->sw : 1;
        const int64_t dilation = x[a].name == 'h' ? g->dh : g->dw;
        if (x[a].name == channels && is_group(&x[a], g))
            return "group";
        if (x[a].kind == STEP && stride > 1 && x[a].step == stride && dilation == 1)
            return "stride";
    }
    return NULL;
}

const char *likeness(const subject *s, const failure *f, const double *dx, const along x[],
                     int64_t wrong)
{
    const char *like = f->feature[0] != '\0' ? f->feature : NULL;
    if (like == NULL && wrong > 1)
        like = arrangement_text(s, f, dx);
    if (like == NULL && wrong > 1)
        like = region_text(s, f, x);
    return like == NULL && wrong == f->looked_at ? divisor_text(s, f, dx) : like;
}
