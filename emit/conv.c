/* conv.c - functions of convolutions: dense, grouped and depthwise, with their gradients.
 *
 * Bounds of the window are found once for each row and pixel, so that the inner loops have no
 * branch. In NHWC the row of a window is contiguous: without dilation one loop runs over its pixels
 * and channels. */
#include "conv.h"

#include <stdlib.h>
#include <string.h>

#include "block.h"
#include "emit.h"

static const adj_conv_geom *geom(const function *f)
{
    return &((const adj_conv_attrs *)f->root->attrs)->geom;
}

expression window_at(const char *out, int64_t outs, int64_t stride, const char *tap, int64_t taps,
                     int64_t dilation, int64_t pad)
{
    const expression a = outs > 1 ? times(out, stride) : expr("0");
    const expression b = taps > 1 ? times(tap, dilation) : expr("0");
    const expression sum = plus(a.s, b.s);
    if (pad > 0 && strcmp(sum.s, "0") == 0)
        return expr("-%lld", (long long)pad);
    return pad > 0 ? expr("%s - %lld", sum.s, (long long)pad) : sum;
}

/* Bounds for one result, which are numbers. */
static span known_span(const window *w)
{
    const int64_t d = w->dilation, in = w->in + w->pad;
    const int64_t from = w->pad > 0 ? (w->pad + d - 1) / d : 0;
    const int64_t to = (w->taps - 1) * d >= in ? (in + d - 1) / d : w->taps;
    return (span){expr("%lld", (long long)from), expr("%lld", (long long)to),
                  from == 0 && to == w->taps};
}

/* Declares a bound: limit where the window's start is there, else (number - start) / dilation. */
static expression put_bound(text *t, const char *name, const char *start, const char *relation,
                            int64_t there, int64_t number, int64_t dilation, int64_t otherwise)
{
    const expression rest = expr("%lld - %s", (long long)number, start);
    put(t, "const int %s = %s %s %lld ? %s : %lld;", name, start, relation, (long long)there,
        dilation == 1 ? rest.s : expr("(%s) / %lld", rest.s, (long long)dilation).s,
        (long long)otherwise);
    return expr("%s", name);
}

span put_window(text *t, const char *tap, const char *out, const window *w)
{
    if (w->outs == 1)
        return known_span(w);
    span s = {expr("0"), expr("%lld", (long long)w->taps), 1};
    const int64_t in = w->in + w->pad, d = w->dilation, last = in - (w->taps - 1) * d - 1;
    const expression start = times(out, w->stride);
    if (w->pad > 0)
        s.from = put_bound(t, expr("%s_from", tap).s, start.s, "<", w->pad, w->pad + d - 1, d, 0);
    if ((w->outs - 1) * w->stride > last)
        s.to = put_bound(t, expr("%s_to", tap).s, start.s, ">", last, in + d - 1, d, w->taps);
    s.is_whole = w->pad <= 0 && s.to.s[0] != tap[0];
    return s;
}

window window_h(const adj_conv_geom *g)
{
    return (window){g->oh, g->sh, g->kh, g->dh, g->pt, g->ih};
}

window window_w(const adj_conv_geom *g)
{
    return (window){g->ow, g->sw, g->kw, g->dw, g->pl, g->iw};
}

int put_taps(text *t, const char *tap, const window *w, const span *s)
{
    if (w->taps == 1 && s->is_whole)
        return 0;
    put(t, "for (int %s = %s; %s < %s; %s++) {", tap, s->from.s, tap, s->to.s, tap);
    return 1;
}

/* The loops around the products of a pixel's block, and the indices of operands there. */
typedef struct {
    int braces;            /* to close */
    expression x_at, w_at; /* indices of x, and of the filter's first result of the block */
} products;

expression scaled(const expression *bound, int64_t factor)
{
    const long long number = strtoll(bound->s, NULL, 10);
    return bound->s[0] == 'k' ? times(bound->s, factor) : expr("%lld", number * (long long)factor);
}

/* Opens the loops over the window: kh; kw and c, or both as k. group: expression of the group, or
 * NULL for one. */
static products put_products(text *t, const adj_conv_geom *g, const span *h, const span *w,
                             const char *group)
{
    const window rows = window_h(g), columns = window_w(g);
    const int64_t channels = g->ic / g->groups;
    const int is_merged = group == NULL && g->dw == 1 && g->iw > 1 && (g->kw > 1 || !w->is_whole);
    products p = {0};
    p.braces = put_taps(t, "kh", &rows, h);
    const expression ih = window_at("oh", g->oh, g->sh, "kh", g->kh, g->dh, g->pt);
    if (is_merged) {
        const expression iw = window_at("ow", g->ow, g->sw, "0", 1, 1, g->pl);
        put(t, "const int row = %s;",
            index_of(4, (axis[]){{"n", g->n}, {ih.s, g->ih}, {iw.s, g->iw}, {"0", channels}}).s);
        put(t, "for (int k = %s; k < %s; k++) {", scaled(&w->from, channels).s,
            scaled(&w->to, channels).s);
        p.braces++;
        p.x_at = expr("row + k");
        p.w_at = index_of(3, (axis[]){{"kh", g->kh}, {"k", g->kw * channels}, {"0", g->oc}});
        return p;
    }
    p.braces += put_taps(t, "kw", &columns, w);
    const expression iw = window_at("ow", g->ow, g->sw, "kw", g->kw, g->dw, g->pl);
    const expression first =
        index_of(4, (axis[]){{"n", g->n}, {ih.s, g->ih}, {iw.s, g->iw}, {"0", g->ic}});
    put(t, "const int pixel = %s;",
        group != NULL ? plus(first.s, times(group, channels).s).s : first.s);
    p.braces += put_loop_unless_one(t, "c", channels);
    p.x_at = plus("pixel", channels > 1 ? "c" : "0");
    p.w_at = index_of(4, (axis[]){{"kh", g->kh}, {"kw", g->kw}, {"c", channels}, {"0", g->oc}});
    return p;
}

/* Opens the loops over the pixels of the result; *h and *w: the bounds of their windows. */
static int put_pixels(text *t, const adj_conv_geom *g, span *h, span *w)
{
    const window rows = window_h(g), columns = window_w(g);
    int braces = put_loop_unless_one(t, "n", g->n);
    braces += put_loop_unless_one(t, "oh", g->oh);
    *h = put_window(t, "kh", "oh", &rows);
    braces += put_loop_unless_one(t, "ow", g->ow);
    *w = put_window(t, "kw", "ow", &columns);
    return braces;
}

int is_depthwise(const adj_conv_geom *g)
{
    return g->groups > 1 && g->groups == g->ic && g->ic == g->oc;
}

/* Opens the loops over the window of a depthwise convolution, with the indices of the first of the
 * channels side by side: pixel in x, tap in the filter. */
static int put_depthwise_taps(text *t, const adj_conv_geom *g, const span *h, const span *w,
                              const char *first)
{
    const window rows = window_h(g), columns = window_w(g);
    int braces = put_taps(t, "kh", &rows, h);
    braces += put_taps(t, "kw", &columns, w);
    const expression ih = window_at("oh", g->oh, g->sh, "kh", g->kh, g->dh, g->pt);
    const expression iw = window_at("ow", g->ow, g->sw, "kw", g->kw, g->dw, g->pl);
    put(t, "const int pixel = %s;",
        index_of(4, (axis[]){{"n", g->n}, {ih.s, g->ih}, {iw.s, g->iw}, {first, g->ic}}).s);
    put(t, "const int tap = %s;",
        index_of(3, (axis[]){{"kh", g->kh}, {"kw", g->kw}, {first, g->oc}}).s);
    return braces;
}

/* Returns the index of the pixel's result `first`. */
static expression result_at(const adj_conv_geom *g, const char *first)
{
    return index_of(4, (axis[]){{"n", g->n}, {"oh", g->oh}, {"ow", g->ow}, {first, g->oc}});
}

void write_conv2d(function *f)
{
    adj_conv_geom g = *geom(f);
    const int is_flat = g.kh == 1 && g.kw == 1 && g.sh == 1 && g.sw == 1 && g.oh == g.ih &&
                        g.ow == g.iw; /* pixels of all rows and images are one row */
    if (is_flat) {
        g.ow = g.iw = g.n * g.ih * g.iw;
        g.n = g.ih = g.oh = 1;
        g.pt = g.pl = 0;
    }
    put_convolution(f, &(convolution){.geom = g,
                                      .pixel = g.ic,
                                      .channel = 1,
                                      .variable = is_flat ? "i" : "ow",
                                      .inner = "c",
                                      .lane = "o"});
}

/* ---- gradients ---- */

void put_zeros(function *f, int64_t n)
{
    put_loop(&f->t, "i", n);
    put(&f->t, "%s[i] = 0.0f;", f->result);
    put_end(&f->t, 1);
}

/* dw[kh][kw][c][o] = sum of x[n][ih][iw][c] * dy[n][oh][ow][o] over n, oh, ow. */
void write_conv2d_backprop_filter(function *f)
{
    text *t = &f->t;
    const adj_conv_geom *g = geom(f);
    const char *x = operand_name(f, 0), *dy = operand_name(f, 1);
    const int64_t of_group = g->oc / g->groups;
    span h, w;
    put_zeros(f, adj_shape_elems(f->root->type.shape));
    int braces = put_pixels(t, g, &h, &w);
    if (is_depthwise(g)) {
        put(t, "const int at = %s;", result_at(g, "0").s);
        braces += put_depthwise_taps(t, g, &h, &w, "0");
        put_loop(t, "c", g->ic);
        put(t, "%s[tap + c] += %s[pixel + c] * %s[at + c];", f->result, x, dy);
    } else {
        const char *group = g->groups > 1 ? "g" : NULL;
        braces += put_loop_unless_one(t, "g", g->groups);
        const expression first = group != NULL ? times("g", of_group) : expr("0");
        put(t, "const int at = %s;", result_at(g, first.s).s);
        const products p = put_products(t, g, &h, &w, group);
        braces += p.braces;
        put_loop(t, "o", of_group);
        put(t, "%s[%s] += %s[%s] * %s[at + o];", f->result, plus(plus(p.w_at.s, first.s).s, "o").s,
            x, p.x_at.s, dy);
    }
    put_end(t, braces + 1);
}

/* dx[n][ih][iw][c] = sum of dy[n][oh][ow][o] * w[kh][kw][c][o] over the windows with that pixel. */
void write_conv2d_backprop_input(function *f)
{
    text *t = &f->t;
    const adj_conv_geom *g = geom(f);
    const char *w_name = operand_name(f, 0), *dy = operand_name(f, 1);
    const int64_t of_group = g->oc / g->groups;
    span h, w;
    put_zeros(f, adj_shape_elems(f->root->type.shape));
    int braces = put_pixels(t, g, &h, &w);
    if (is_depthwise(g)) {
        put(t, "const int at = %s;", result_at(g, "0").s);
        braces += put_depthwise_taps(t, g, &h, &w, "0") + 1;
        put_loop(t, "c", g->ic);
        put(t, "%s[pixel + c] += %s[at + c] * %s[tap + c];", f->result, dy, w_name);
    } else {
        const char *group = g->groups > 1 ? "g" : NULL;
        braces += put_loop_unless_one(t, "g", g->groups);
        const expression first = group != NULL ? times("g", of_group) : expr("0");
        put(t, "const int at = %s;", result_at(g, first.s).s);
        const products p = put_products(t, g, &h, &w, group);
        braces += p.braces;
        put(t, "float sum = 0.0f;");
        put_loop(t, "o", of_group);
        put(t, "sum += %s[at + o] * %s[%s];", dy, w_name, plus(plus(p.w_at.s, first.s).s, "o").s);
        put_end(t, 1);
        put(t, "%s[%s] += sum;", f->result, p.x_at.s);
    }
    put_end(t, braces);
}
