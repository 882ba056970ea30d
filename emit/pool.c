/* pool.c - functions of pools over height and width, and of their gradients. */
#include "conv.h"

enum { CHANNELS = 32 }; /* channels of a block */

/* Returns the number of the window's elements inside the image, a float. */
static expression elements_of(const pixels *p, const adj_conv_geom *g)
{
    if (p->h.is_whole && p->w.is_whole)
        return literal((double)(g->kh * g->kw));
    return expr("(float)((%s - %s) * (%s - %s))", p->h.to.s, p->h.from.s, p->w.to.s, p->w.from.s);
}

/* Writes the sum of each window's elements divided by their number, or their maximum. A NaN is
 * larger than any number. */
static void put_pool(function *f, int is_maximum)
{
    text *t = &f->t;
    const adj_conv_geom *g = adj_node_geom(f->root);
    const pixels p = put_result_pixels(t, g);
    const blocks b = put_blocks(t, "c0", g->oc, CHANNELS);
    expression pixel;
    if (is_maximum) {
        put(t, "float best[%lld];", (long long)b.size);
        put_loop_to(t, "c", b.count.s);
        put(t, "best[c] = -INFINITY;");
        put_end(t, 1);
    } else
        put(t, "%s sum[%lld] = {0};", f->has_double ? "double" : "float", (long long)b.size);
    const int taps = put_window_loops(t, g, &p, b.first.s, &pixel);
    const expression x = expr("%s[%s]", operand_name(f, 0), plus(pixel.s, "c").s);
    put_loop_to(t, "c", b.count.s);
    if (is_maximum) {
        put(t, "const float value = %s;", x.s);
        put(t, "best[c] = value > best[c] || value != value ? value : best[c];");
    } else
        put_term(f, "sum[c]", x.s);
    put_end(t, taps + 1);
    const expression mean = expr("%s / %s", sum_of(f, "sum[c]").s, elements_of(&p, g).s);
    put_loop_to(t, "c", b.count.s);
    put_result(f, is_maximum ? "best[c]" : mean.s, plus(result_at(g, b.first.s).s, "c").s,
               plus(b.first.s, "c").s);
    put_end(t, b.braces + p.braces + 1);
}

void write_max_pool(function *f) { put_pool(f, 1); }
void write_avg_pool(function *f) { put_pool(f, 0); }

/* ---- gradients ---- */

/* dx: each dy divided equally among the elements of its window. */
void write_avg_pool_grad(function *f)
{
    text *t = &f->t;
    const adj_conv_geom *g = adj_node_geom(f->root);
    expression pixel;
    put_filled(f, 0);
    const pixels p = put_result_pixels(t, g);
    const int taps = put_window_loops(t, g, &p, "0", &pixel);
    const int open = put_loop_unless_one(t, "c", g->ic);
    const char *c = open ? "c" : "0";
    put(t, "%s[%s] += %s[%s] / %s;", f->result, plus(pixel.s, c).s, operand_name(f, 0),
        plus(result_at(g, "0").s, c).s, elements_of(&p, g).s);
    put_end(t, open + taps + p.braces);
}

/* dx: each dy at the first maximum of its window. */
void write_max_pool_grad(function *f)
{
    text *t = &f->t;
    const adj_conv_geom *g = adj_node_geom(f->root);
    const char *x = operand_name(f, 0), *y = operand_name(f, 1), *dy = operand_name(f, 2);
    expression pixel;
    put_filled(f, 0);
    const pixels p = put_result_pixels(t, g);
    const int open = put_loop_unless_one(t, "c", g->ic);
    put(t, "const int at = %s;", plus(result_at(g, "0").s, open ? "c" : "0").s);
    put(t, "int best = -1;");
    const int taps = put_window_loops(t, g, &p, "0", &pixel);
    put(t, "const int pixel = %s;", plus(pixel.s, open ? "c" : "0").s);
    put(t, "if (best < 0 && (%s[pixel] == %s[at] || %s[pixel] != %s[pixel])) {", x, y, x, x);
    put(t, "best = pixel;");
    put_end(t, taps + 1);
    put(t, "%s[best] += %s[at];", f->result, dy);
    put_end(t, open + p.braces);
}
