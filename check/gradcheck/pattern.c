/* pattern.c - what the wrong elements of a gradient share, in words.
 *
 * Along each axis the indices that have a wrong element are looked at: one, a run, both ends, every
 * s-th. A statement is made only if an element that was found right contradicts it, so it never
 * follows from what was looked at alone. */
#include <math.h>
#include <string.h>

#include "base/c_locale.h"
#include "pattern.h"

enum { TEXT = 256 };

/* The indices' common distance; 0: there is none. */
static int64_t step_of_indices(const along *x)
{
    int64_t step = 0, before = x->first;
    for (int64_t i = x->first + 1; i <= x->last; i++) {
        if (!x->seen[i])
            continue;
        if (step > 0 && i - before != step)
            return 0;
        step = i - before;
        before = i;
    }
    return step;
}

/* All but one run in the middle? */
static int is_ends(const along *x)
{
    int changes = 0;
    for (int64_t i = 1; i < x->dim; i++)
        changes += x->seen[i] != x->seen[i - 1];
    return x->seen[0] && x->seen[x->dim - 1] && changes == 2;
}

static spread spread_of(along *x)
{
    int64_t run = x->last - x->first + 1;
    x->step = step_of_indices(x);
    if (x->n == 0 || x->n == x->dim)
        return ALL;
    if (x->n == 1)
        return ONE;
    if (run == x->n)
        return x->first == 0 ? FIRST : x->last == x->dim - 1 ? LAST : RUN;
    if (is_ends(x) && (x->n == 2 || x->step != 2))
        return ENDS;
    /* as many as there can be from the first on */
    return x->step > 1 && (x->first < x->step && x->last + x->step >= x->dim) ? STEP : SCATTERED;
}

static adj_status look_along(subject *s, const failure *f, int axis, along *x)
{
    adj_shape shape = s->tested.leaf[f->leaf]->type.shape;
    int64_t n = adj_shape_elems(shape), contradicted = 0;
    *x = (along){.dim = shape.dim[axis], .name = axis_name(s, f->leaf, axis), .first = -1};
    char *seen = region_alloc(&s->region, (size_t)x->dim + 1, 1);
    if (seen == NULL)
        return gradcheck_fail(s->report, ADJ_ENOMEM, "gradcheck: out of memory");
    for (int64_t i = 0; i < n; i++)
        if (f->wrong[i])
            seen[index_at(shape, i, axis)] = 1;
    for (int64_t i = 0; i < n; i += f->stride)
        contradicted += !seen[index_at(shape, i, axis)];
    for (int64_t i = 0; i < x->dim; i++)
        if (seen[i]) {
            x->first = x->first < 0 ? i : x->first;
            x->last = i;
            x->n++;
        }
    x->seen = seen;
    x->kind = contradicted > 0 ? spread_of(x) : ALL;
    return ADJ_OK;
}

/* ---- where ---- */

static const char *axis_word(const subject *s, int leaf, char name)
{
    int filter = leaf_is_filter(s, leaf);
    switch (name) {
    case 'h': return filter ? "kernel row" : "row";
    case 'w': return filter ? "kernel column" : "column";
    case 'n': return "image";
    case 'c': return filter ? "input channel" : "channel";
    case 'o': return "output channel";
    case 'm': return "multiple";
    }
    return "index";
}

static void append(char text[TEXT], const char *format, ...) __attribute__((format(printf, 2, 3)));
static void append(char text[TEXT], const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    c_vsnprintf(text + used, TEXT - used, format, args);
    va_end(args);
}

static void describe_along(const subject *s, int leaf, const along *x, char text[TEXT])
{
    const char *word = axis_word(s, leaf, x->name);
    char words[32] = "indices";
    long long first = x->first, last = x->last, n = x->n;
    if (strcmp(word, "index") != 0)
        snprintf(words, sizeof words, "%ss", word);
    switch (x->kind) {
    case ONE:
        append(text, ", all with %c=%lld -> %s %s", x->name, first,
               first == x->dim - 1 ? "last"
               : first == 0        ? "first"
                                   : "one",
               word);
        break;
    case FIRST:
        append(text, ", all with %c<=%lld -> first %lld %s", x->name, last, n, words);
        break;
    case LAST: append(text, ", all with %c>=%lld -> last %lld %s", x->name, first, n, words); break;
    case RUN:
        append(text, ", all with %c=%lld..%lld -> %lld %s", x->name, first, last, n, words);
        break;
    case ENDS: append(text, ", all at both ends of %c -> border %s", x->name, words); break;
    case STEP:
        append(text, ", all with %c=%lld mod %lld -> every %lld%s %s", x->name, first,
               (long long)x->step, (long long)x->step,
               x->step == 2   ? "nd"
               : x->step == 3 ? "rd"
                              : "th",
               word);
        break;
    case ALL:
    case SCATTERED: break;
    }
}

/* Is every wrong element at an end of h or of w, and no axis tells? */
static int is_frame(const subject *s, const failure *f, const along x[])
{
    adj_shape shape = s->tested.leaf[f->leaf]->type.shape;
    int h = -1, w = -1, inner = 0;
    for (int a = 0; a < shape.rank; a++) {
        h = x[a].name == 'h' ? a : h;
        w = x[a].name == 'w' ? a : w;
    }
    if (h < 0 || w < 0 || x[h].kind != ALL || x[w].kind != ALL)
        return 0;
    for (int64_t i = 0, n = adj_shape_elems(shape); i < n; i += f->stride) {
        int64_t ih = index_at(shape, i, h), iw = index_at(shape, i, w);
        int border = ih == 0 || iw == 0 || ih == shape.dim[h] - 1 || iw == shape.dim[w] - 1;
        if (f->wrong[i] && !border)
            return 0;
        inner += !border;
    }
    return inner > 0;
}

adj_status describe_wrong(subject *s, const failure *f, adj_gradcheck_row *row)
{
    const double *dx = f->rule_is_wrong ? s->dx_ref[f->leaf] : s->dx[f->leaf];
    adj_gradcheck_report *r = s->report;
    adj_shape shape = s->tested.leaf[f->leaf]->type.shape;
    int64_t n = adj_shape_elems(shape);
    along x[ADJ_MAX_RANK] = {0};
    char shared[TEXT] = "";

    for (int a = 0; a < shape.rank; a++)
        if (look_along(s, f, a, &x[a]) != ADJ_OK)
            return r->status;
    for (int a = 0; a < shape.rank && row->wrong > 1; a++)
        describe_along(s, f->leaf, &x[a], shared);
    if (row->wrong > 1 && is_frame(s, f, x))
        append(shared, ", all on the border of h and w");
    if (row->wrong == f->looked_at && row->wrong > 1)
        append(shared, ", every element");
    row->pattern =
        f->looked_at < n
            ? gradcheck_text(r, "%lld wrong of the %lld looked at (of %lld)%s",
                             (long long)row->wrong, (long long)f->looked_at, (long long)n, shared)
            : gradcheck_text(r, "%lld of %lld wrong%s", (long long)row->wrong, (long long)n,
                             shared);
    const char *like = likeness(s, f, dx, x, row->wrong);
    row->hint = gradcheck_text(r, "%s%s%s", ratio_text(s, f, dx),
                               like != NULL ? ";  looks like: " : "", like != NULL ? like : "");
    return r->status;
}
