/* resize.c - functions of resize and its gradient. Coordinates are fractions of integers, so that
 * none is rounded: HALF_PIXEL ((2 o + 1) in - out) / (2 out), ALIGN_CORNERS o (in - 1) / (out - 1),
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

/* Declares the positions NAME_0 and NAME_1 around the coordinate, the second one's weight, and the
 * rest, the first one's: 1 - weight would lose digits near 1. */
static void put_neighbors(text *t, const char *name, const char *o, int64_t in, int64_t out,
                          int64_t kind)
{
    const coordinate c = coordinate_of(o, in, out, kind);
    if (in == 1) /* all of the weight is the rest */
        return;
    put(t, "const int %s_at = %s > 0 ? %s : 0;", name, c.numerator.s, c.numerator.s);
    put(t, "const int %s_0 = %s_at / %lld;", name, name, c.denominator);
    put(t, "const int %s_1 = %s_0 < %lld ? %s_0 + 1 : %s_0;", name, name, (long long)in - 1, name,
        name);
    put(t, "const int %s_over = %s_at %% %lld;", name, name, c.denominator);
    put(t, "const float %s_weight = (float)%s_over / %s;", name, name,
        literal((double)c.denominator).s);
    put(t, "const float %s_rest = (float)(%lld - %s_over) / %s;", name, c.denominator, name,
        literal((double)c.denominator).s);
}

/* Returns element c of the image before resizing, x or dx, at the positions. */
static expression pixel_at(const function *f, const char *image, const char *ih, const char *iw)
{
    const adj_resize_attrs *a = f->root->attrs;
    const adj_shape s = f->root->type.shape;
    return expr(
        "%s[%s]", image,
        index_of(4, (axis[]){{"n", s.dim[0]}, {ih, a->ih}, {iw, a->iw}, {"c", s.dim[3]}}).s);
}

/* Declares the value between two of `in` positions: the first one where the weight is 0, whatever
 * the other one is. */
static void put_between(text *t, const char *name, const char *axis, int64_t in, const char *a,
                        const char *b)
{
    if (in == 1) {
        put(t, "const float %s = %s;", name, a);
        return;
    }
    put(t, "const float %s =", name);
    put(t, "    %s_weight > 0.0f ? %s_rest * %s + %s_weight * %s : %s;", axis, axis, a, axis, b, a);
}

/* Opens the loops over the pixels of the resized image, with their positions in the other one;
 * *at: the index of the resized one. */
static int put_resized_pixels(function *f, expression *at)
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
    *at = index_of(4, (axis[]){{"n", s.dim[0]}, {"oh", a->oh}, {"ow", a->ow}, {"c", s.dim[3]}});
    return braces;
}

void write_resize(function *f)
{
    text *t = &f->t;
    const adj_resize_attrs *a = f->root->attrs;
    const char *x = operand_name(f, 0);
    expression at;
    const int braces = put_resized_pixels(f, &at);
    if (a->mode == ADJ_NEAREST) {
        put_result(f, pixel_at(f, x, "ih", "iw").s, at.s, "c");
    } else {
        put_between(t, "top", "iw", a->iw, pixel_at(f, x, "ih_0", "iw_0").s,
                    pixel_at(f, x, "ih_0", "iw_1").s);
        if (a->ih > 1) {
            put_between(t, "bottom", "iw", a->iw, pixel_at(f, x, "ih_1", "iw_0").s,
                        pixel_at(f, x, "ih_1", "iw_1").s);
            put_between(t, "between", "ih", a->ih, "top", "bottom");
        }
        put_result(f, a->ih > 1 ? "between" : "top", at.s, "c");
    }
    put_end(t, braces);
}

/* Each pixel of dy is added to those of dx that the resized pixel is a sum of. A position without
 * weight gets nothing, whatever dy is. */
void write_resize_grad(function *f)
{
    text *t = &f->t;
    const adj_resize_attrs *a = f->root->attrs;
    const char *dy = operand_name(f, 0), *dx = f->result;
    expression at;
    put_filled(f, 0);
    int braces = put_resized_pixels(f, &at);
    if (a->mode == ADJ_NEAREST) {
        put(t, "%s += %s[%s];", pixel_at(f, dx, "ih", "iw").s, dy, at.s);
        put_end(t, braces);
        return;
    }
    for (int h = 0; h < (a->ih > 1 ? 2 : 1); h++)
        for (int w = 0; w < (a->iw > 1 ? 2 : 1); w++) {
            const expression weight = expr("%s%s",
                                           a->ih == 1 ? ""
                                           : h        ? "ih_weight * "
                                                      : "ih_rest * ",
                                           a->iw == 1 ? ""
                                           : w        ? "iw_weight * "
                                                      : "iw_rest * ");
            if (h || w)
                put(t, "if (%s%s%s)", h ? "ih_weight > 0.0f" : "", h && w ? " && " : "",
                    w ? "iw_weight > 0.0f" : "");
            put(t, "%s%s += %s%s[%s];", h || w ? "    " : "",
                pixel_at(f, dx, h ? "ih_1" : "ih_0", w ? "iw_1" : "iw_0").s, weight.s, dy, at.s);
        }
    put_end(t, braces);
}
