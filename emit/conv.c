/* conv.c - functions of convolutions: dense, grouped and depthwise, with their gradients; of matrix
 * products, which are convolutions of 1 x 1.
 *
 * Bounds of the window are found once for each row and pixel, so that the inner loops have no
 * branch. In NHWC the row of a window is contiguous: without dilation one loop runs over its pixels
 * and channels. */
#include "conv.h"

#include <stdlib.h>
#include <string.h>

expression window_at(const char *out, const char *tap, window w)
{
    const expression a = w.outs > 1 && out[0] != '0' ? times(out, w.stride) : expr("0");
    const expression b = w.taps > 1 && tap[0] != '0' ? times(tap, w.dilation) : expr("0");
    const expression sum = plus(a.s, b.s);
    if (w.pad > 0 && strcmp(sum.s, "0") == 0)
        return expr("-%lld", (long long)w.pad);
    return w.pad > 0 ? expr("%s - %lld", sum.s, (long long)w.pad) : sum;
}

/* Bounds for one result, which are numbers. */
static span known_span(window w)
{
    const int64_t d = w.dilation, in = w.in + w.pad;
    const int64_t from = w.pad > 0 ? (w.pad + d - 1) / d : 0;
    const int64_t to = (w.taps - 1) * d >= in ? (in + d - 1) / d : w.taps;
    return (span){expr("%lld", (long long)from), expr("%lld", (long long)to),
                  from == 0 && to == w.taps};
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

span put_window(text *t, const char *tap, const char *out, window w)
{
    if (w.outs == 1)
        return known_span(w);
    span s = {expr("0"), expr("%lld", (long long)w.taps), 1};
    const int64_t in = w.in + w.pad, d = w.dilation, last = in - (w.taps - 1) * d - 1;
    const expression start = times(out, w.stride);
    if (w.pad > 0)
        s.from = put_bound(t, expr("%s_from", tap).s, start.s, "<", w.pad, w.pad + d - 1, d, 0);
    if ((w.outs - 1) * w.stride > last)
        s.to = put_bound(t, expr("%s_to", tap).s, start.s, ">", last, in + d - 1, d, w.taps);
    s.is_whole = w.pad <= 0 && s.to.s[0] != tap[0];
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

int put_taps(text *t, const char *tap, window w, const span *s)
{
    if (w.taps == 1 && s->is_whole)
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
static products put_products(text *t, const adj_conv_geom *g, const pixels *all, const char *group)
{
    const span *w = &all->w;
    const int64_t channels = g->ic / g->groups;
    const int is_merged = group == NULL && g->dw == 1 && g->iw > 1 && (g->kw > 1 || !w->is_whole);
    products p = {0};
    expression first;
    if (is_merged) {
        const expression ih = window_at("oh", "kh", window_h(g));
        const expression iw = window_at("ow", "0", window_w(g));
        p.braces = put_taps(t, "kh", window_h(g), &all->h) + 1;
        put(t, "const int row = %s;",
            index_of(4, (axis[]){{"n", g->n}, {ih.s, g->ih}, {iw.s, g->iw}, {"0", channels}}).s);
        put(t, "for (int k = %s; k < %s; k++) {", scaled(&w->from, channels).s,
            scaled(&w->to, channels).s);
        p.x_at = expr("row + k");
        p.w_at = index_of(3, (axis[]){{"kh", g->kh}, {"k", g->kw * channels}, {"0", g->oc}});
        return p;
    }
    p.braces = put_window_loops(t, g, all, "0", &first);
    put(t, "const int pixel = %s;",
        group != NULL ? plus(first.s, times(group, channels).s).s : first.s);
    p.braces += put_loop_unless_one(t, "c", channels);
    p.x_at = plus("pixel", channels > 1 ? "c" : "0");
    p.w_at = index_of(4, (axis[]){{"kh", g->kh}, {"kw", g->kw}, {"c", channels}, {"0", g->oc}});
    return p;
}

int is_depthwise(const adj_conv_geom *g)
{
    return g->groups > 1 && g->groups == g->ic && g->ic == g->oc;
}

pixels put_result_pixels(text *t, const adj_conv_geom *g)
{
    pixels p;
    p.braces = put_loop_unless_one(t, "n", g->n);
    p.braces += put_loop_unless_one(t, "oh", g->oh);
    p.h = put_window(t, "kh", "oh", window_h(g));
    p.braces += put_loop_unless_one(t, "ow", g->ow);
    p.w = put_window(t, "kw", "ow", window_w(g));
    return p;
}

int put_window_loops(text *t, const adj_conv_geom *g, const pixels *p, const char *first,
                     expression *pixel)
{
    int braces = put_taps(t, "kh", window_h(g), &p->h);
    braces += put_taps(t, "kw", window_w(g), &p->w);
    const expression ih = window_at("oh", "kh", window_h(g));
    const expression iw = window_at("ow", "kw", window_w(g));
    *pixel = index_of(4, (axis[]){{"n", g->n}, {ih.s, g->ih}, {iw.s, g->iw}, {first, g->ic}});
    return braces;
}

expression result_at(const adj_conv_geom *g, const char *first)
{
    return index_of(4, (axis[]){{"n", g->n}, {"oh", g->oh}, {"ow", g->ow}, {first, g->oc}});
}

void write_conv2d(function *f)
{
    adj_conv_geom g = *adj_node_geom(f->root);
    const int is_flat = g.kh == 1 && g.kw == 1 && g.sh == 1 && g.sw == 1 && g.oh == g.ih &&
                        g.ow == g.iw; /* pixels of all rows and images are one row */
    if (is_flat) {
        g.ow = g.iw = g.n * g.ih * g.iw;
        g.n = g.ih = g.oh = 1;
        g.pt = g.pl = 0;
    }
    put_convolution(f, &(convolution){g, .pixel = g.ic, .channel = 1,
                                      .variable = is_flat ? "i" : "ow", .inner = "c", .lane = "o"});
}

/* ---- gradients ---- */

/* For each result, tap and channels, adds a product to an element of dw, or of dx:
 * dw[kh][kw][c][o] is the sum of x[n][ih][iw][c] * dy[n][oh][ow][o] over n, oh, ow;
 * dx[n][ih][iw][c] that of dy[n][oh][ow][o] * w[kh][kw][c][o] over the windows with that pixel. */
static void put_gradient(function *f, int is_of_filter)
{
    text *t = &f->t;
    const adj_conv_geom *g = adj_node_geom(f->root);
    const char *other = operand_name(f, 0), *dy = operand_name(f, 1); /* other: x or w */
    const int64_t of_group = g->oc / g->groups;
    put_filled(f, 0);
    const pixels all = put_result_pixels(t, g);
    if (is_depthwise(g)) {
        expression pixel;
        put(t, "const int at = %s;", result_at(g, "0").s);
        const int taps = put_window_loops(t, g, &all, "0", &pixel);
        put(t, "const int pixel = %s;", pixel.s);
        put(t, "const int tap = %s;",
            index_of(3, (axis[]){{"kh", g->kh}, {"kw", g->kw}, {"0", g->oc}}).s);
        put_loop(t, "c", g->ic);
        if (is_of_filter)
            put(t, "%s[tap + c] += %s[pixel + c] * %s[at + c];", f->result, other, dy);
        else
            put(t, "%s[pixel + c] += %s[at + c] * %s[tap + c];", f->result, dy, other);
        put_end(t, all.braces + taps + 1);
        return;
    }
    const char *group = g->groups > 1 ? "g" : NULL;
    const int groups = put_loop_unless_one(t, "g", g->groups);
    const expression first = group != NULL ? times("g", of_group) : expr("0");
    put(t, "const int at = %s;", result_at(g, first.s).s);
    const products p = put_products(t, g, &all, group);
    const expression w_at = plus(plus(p.w_at.s, first.s).s, "o");
    if (!is_of_filter)
        put(t, "float sum = 0.0f;");
    put_loop(t, "o", of_group);
    if (is_of_filter)
        put(t, "%s[%s] += %s[%s] * %s[at + o];", f->result, w_at.s, other, p.x_at.s, dy);
    else
        put(t, "sum += %s[at + o] * %s[%s];", dy, other, w_at.s);
    put_end(t, 1);
    if (!is_of_filter)
        put(t, "%s[%s] += sum;", f->result, p.x_at.s);
    put_end(t, all.braces + groups + p.braces);
}

void write_conv2d_backprop_filter(function *f) { put_gradient(f, 1); }
void write_conv2d_backprop_input(function *f) { put_gradient(f, 0); }

/* ---- matrix products ---- */

/* y[i][j] = sum of a(i, k) * b(k, j) over k, where a and b may be transposed. */
void write_matmul(function *f)
{
    text *t = &f->t;
    const adj_matmul_attrs *m = f->root->attrs;
    const adj_shape s = f->root->type.shape, a = f->root->in[0]->type.shape;
    const int64_t rows = s.dim[0], columns = s.dim[1], inner = a.dim[m->transpose_a ? 0 : 1];
    const expression a_at = m->transpose_a ? index_of(2, (axis[]){{"k", inner}, {"i", rows}})
                                           : index_of(2, (axis[]){{"i", rows}, {"k", inner}});
    if (m->transpose_b) { /* rows of both are contiguous */
        const int braces = put_loop_unless_one(t, "i", rows);
        put_loop(t, "j", columns);
        put_sum(f, "sum");
        const int sums = put_loop_unless_one(t, "k", inner);
        const expression a_of = expr("%s[%s]", operand_name(f, 0), a_at.s);
        const expression b_of = weight_at(f, index_of(2, (axis[]){{"j", columns}, {"k", inner}}).s);
        put(t, "sum += %s;", product_of(f, a_of.s, b_of.s).s);
        put_end(t, sums);
        put_result(f, with_scale(f, "sum", "j").s,
                   index_of(2, (axis[]){{"i", rows}, {"j", columns}}).s, "j");
        put_end(t, braces + 1);
        return;
    }
    adj_conv_geom g = {.iw = rows, .ow = rows, .ic = inner, .oc = columns};
    g.n = g.ih = g.oh = g.kh = g.kw = g.sh = g.sw = g.dh = g.dw = g.groups = 1;
    put_convolution(f, &(convolution){g, .pixel = m->transpose_a ? 1 : inner,
                                      .channel = m->transpose_a ? rows : 1, .variable = "i",
                                      .inner = "k", .lane = "j"});
}
