/* resize.c - the function of resize. Coordinates are fractions of integers, so that none is
 * rounded: HALF_PIXEL ((2 o + 1) in - out) / (2 out), ALIGN_CORNERS o (in - 1) / (out - 1),
 * ASYMMETRIC o in / out. */
#include "emit.h"

/* A coordinate as a fraction. */
typedef struct {
    expression numerator;
    long long denominator;
} coordinate;

static coordinate coordinate_of(const char *o, int64_t in, int64_t out, int64_t kind)
{
    if (out == 1 && kind == ADJ_ALIGN_CORNERS)
        return (coordinate){expr("0"), 1};
    if (kind == ADJ_ALIGN_CORNERS)
        return (coordinate){expr("%s * %lld", o, (long long)in - 1), (long long)out - 1};
    if (kind == ADJ_ASYMMETRIC)
        return (coordinate){expr("%s * %lld", o, (long long)in), (long long)out};
    return (coordinate){expr("(2 * %s + 1) * %lld - %lld", o, (long long)in, (long long)out),
                        2 * (long long)out};
}

/* Declares the nearest position: halfway between two the later one; with ASYMMETRIC the one before.
 */
static void put_nearest(text *t, const char *name, const char *o, int64_t in, int64_t out,
                        int64_t kind)
{
    const coordinate c = coordinate_of(o, in, out, kind);
    if (in == 1) /* no index has it */
        return;
    if (kind == ADJ_ASYMMETRIC)
        put(t, "const int %s = %s / %lld;", name, c.numerator.s, c.denominator);
    else
        put(t, "const int %s = (2 * (%s) + %lld) / %lld;", name, c.numerator.s, c.denominator,
            2 * c.denominator);
}

/* Declares the positions NAME_0 and NAME_1 around the coordinate, and the second one's weight. */
static void put_neighbors(text *t, const char *name, const char *o, int64_t in, int64_t out,
                          int64_t kind)
{
    const coordinate c = coordinate_of(o, in, out, kind);
    if (in == 1) {
        put(t, "const float %s_weight = 0.0f;", name);
        return;
    }
    put(t, "const int %s_at = %s > 0 ? %s : 0;", name, c.numerator.s, c.numerator.s);
    put(t, "const int %s_0 = %s_at / %lld;", name, name, c.denominator);
    put(t, "const int %s_1 = %s_0 < %lld ? %s_0 + 1 : %s_0;", name, name, (long long)in - 1, name,
        name);
    put(t, "const float %s_weight = (float)(%s_at %% %lld) / %s;", name, name, c.denominator,
        literal((double)c.denominator).s);
}

/* Returns element c of x at the positions. */
static expression pixel_at(function *f, const adj_resize_attrs *a, const char *ih, const char *iw)
{
    const adj_shape s = f->root->type.shape;
    return expr(
        "%s[%s]", operand_name(f, 0),
        index_of(4, (axis[]){{"n", s.dim[0]}, {ih, a->ih}, {iw, a->iw}, {"c", s.dim[3]}}).s);
}

/* Declares the value between two: the first one where the weight is 0, whatever the other one is.
 */
static void put_between(text *t, const char *name, const char *axis, const char *a, const char *b)
{
    put(t, "const float %s =", name);
    put(t, "    %s_weight > 0.0f ? (1.0f - %s_weight) * %s + %s_weight * %s : %s;", axis, axis, a,
        axis, b, a);
}

void write_resize(function *f)
{
    text *t = &f->t;
    const adj_resize_attrs *a = f->root->attrs;
    const adj_shape s = f->root->type.shape;
    void (*const declare)(text *, const char *, const char *, int64_t, int64_t, int64_t) =
        a->mode == ADJ_NEAREST ? put_nearest : put_neighbors;
    int braces = put_loop_unless_one(t, "n", s.dim[0]) + 2;
    put_loop(t, "oh", a->oh);
    declare(t, "ih", "oh", a->ih, a->oh, a->coordinates);
    put_loop(t, "ow", a->ow);
    declare(t, "iw", "ow", a->iw, a->ow, a->coordinates);
    braces += put_loop_unless_one(t, "c", s.dim[3]);
    const expression at =
        index_of(4, (axis[]){{"n", s.dim[0]}, {"oh", a->oh}, {"ow", a->ow}, {"c", s.dim[3]}});
    if (a->mode == ADJ_NEAREST) {
        put_result(f, pixel_at(f, a, "ih", "iw").s, at.s, "c");
    } else {
        put_between(t, "top", "iw", pixel_at(f, a, "ih_0", "iw_0").s,
                    pixel_at(f, a, "ih_0", "iw_1").s);
        put_between(t, "bottom", "iw", pixel_at(f, a, "ih_1", "iw_0").s,
                    pixel_at(f, a, "ih_1", "iw_1").s);
        put_between(t, "between", "ih", "top", "bottom");
        put_result(f, "between", at.s, "c");
    }
    put_end(t, braces);
}
