/* block.c - results of convolutions and of matrix products, a block at a time.
 *
 * The block is a few pixels of a row by a few channels. Its sums are local arrays, one for each
 * pixel, which compilers keep in vector registers: each weight is read once for all pixels, and
 * each element of x once for all channels. A tap of the window is outside the image for some of
 * the first or last pixels of a row: blocks there have loops of their own, over the pixels that
 * the tap has. Inner loops have no branch. */
#include "conv.h"

#include <string.h>

enum {
    SUMS = 96, /* sums of a block; with fewer, compilers unroll instead of vectorizing */
    CHANNELS = 24,
    SINGLE = 128 /* channels of a block of one pixel */
};

/* A convolution's loops around the blocks. */
typedef struct {
    function *f;
    const convolution *p;
    const adj_conv_geom *g;
    const char *x, *lane; /* names of the operand, and of the variable for channels */
    const char *group;    /* expression of the group; NULL: one */
    const char *at;       /* the column of the first pixel */
    int64_t n;            /* pixels of a block */
    blocks channels;      /* blocks of channels */
    span h, w_span;       /* taps; w_span: of blocks of one pixel */
} loops;

/* ---- pixels of a block ---- */

/* Returns the pixels at the begin of a row, or at its end, whose windows leave the image. */
static int64_t outside(const adj_conv_geom *g, int at_end)
{
    /* Largest offset of a window whose last tap is inside. */
    const int64_t room = g->iw + g->pl - 1 - (g->kw - 1) * g->dw;
    const int64_t inside = room < 0 ? 0 : room / g->sw + 1;
    const int64_t n = at_end ? g->ow - inside : g->pl > 0 ? (g->pl + g->sw - 1) / g->sw : 0;
    return n < 0 ? 0 : n > g->ow ? g->ow : n;
}

/* Returns the pixels of a block: windows of all blocks but the first and the last lie inside the
 * image. Otherwise one, whose bounds are found for each pixel. */
static int64_t pixels_of(const adj_conv_geom *g, int64_t n_sum)
{
    const int64_t most = SUMS / n_sum, left = outside(g, 0), right = outside(g, 1);
    int64_t best = 1, best_last = 0;
    if (g->ow <= most)
        return g->ow;
    for (int64_t n = most; n > most / 2; n--) {
        const int64_t last = g->ow % n == 0 ? n : g->ow % n;
        const int64_t rank = last == n ? most + 1 : last;
        if (left <= n && right <= last && rank > best_last) {
            best = n;
            best_last = rank;
        }
    }
    return best;
}

/* ---- a block ---- */

/* Returns the name of a pixel's sums. */
static expression sums_of(const loops *l, int64_t pixel)
{
    return l->n == 1 ? expr("sum") : expr("sum%lld", (long long)pixel);
}

/* Returns the index of x at a pixel of the block. */
static expression x_of(const loops *l, const char *index, int64_t pixel, const char *lane)
{
    const int64_t step = l->g->iw > 1 ? pixel * l->g->sw * l->p->pixel : 0;
    return plus(plus(index, expr("%lld", (long long)step).s).s, lane);
}

/* Writes the products of a tap and channel for some pixels: x at index, the weights at tap. */
static void put_sums(const loops *l, const char *index, const char *tap, int64_t from, int64_t to)
{
    text *t = &l->f->t;
    const int is_each = is_depthwise(l->g);
    const expression weight = weight_at(l->f, plus(tap, l->lane).s);
    for (int64_t i = from; i < to && !is_each && l->n > 1; i++)
        put(t, "const float in%lld = %s[%s];", (long long)i, l->x, x_of(l, index, i, "0").s);
    put_loop_to(t, l->lane, l->channels.count.s);
    if (l->n > 1)
        put(t, "const float weight = %s;", weight.s);
    for (int64_t i = from; i < to; i++) {
        const expression x =
            is_each || l->n == 1
                ? expr("%s[%s]", l->x, x_of(l, index, i, is_each ? l->lane : "0").s)
                : expr("in%lld", (long long)i);
        put(t, "%s[%s] += %s;", sums_of(l, i).s, l->lane,
            product_of(l->f, x.s, l->n > 1 ? "weight" : weight.s).s);
    }
    put_end(t, 1);
}

/* True if columns and channels of the window are one loop: they are contiguous. */
static int is_merged(const loops *l)
{
    const adj_conv_geom *g = l->g;
    return l->group == NULL && !is_depthwise(g) && g->dw == 1 && g->iw > 1 && g->kw > 1;
}

/* Writes the loop over columns and channels of the window that the pixels from, ..., to - 1 have.
 */
static void put_merged(const loops *l, const span *w, int64_t from, int64_t to)
{
    text *t = &l->f->t;
    const adj_conv_geom *g = l->g;
    put(t, "for (int k = %s; k < %s; k++) {", scaled(&w->from, g->ic).s, scaled(&w->to, g->ic).s);
    const expression tap =
        index_of(3, (axis[]){{"kh", g->kh}, {"k", g->kw * g->ic}, {l->channels.first.s, g->oc}});
    put_sums(l, "row + k", tap.s, from, to);
    put_end(t, 1);
}

/* Writes the loops over columns and over channels. */
static void put_separate(const loops *l, const span *w, int64_t from, int64_t to)
{
    text *t = &l->f->t;
    const adj_conv_geom *g = l->g;
    const int is_each = is_depthwise(g);
    const int64_t channels = is_each ? 1 : g->ic / g->groups;
    int braces = put_taps(t, "kw", window_w(g), w);
    const char *kw = braces > 0 ? "kw" : "0";
    const expression ih = window_at("oh", "kh", window_h(g));
    const expression iw = window_at(l->at, kw, window_w(g));
    const expression at = index_of(3, (axis[]){{"n", g->n}, {ih.s, g->ih}, {iw.s, g->iw}});
    expression index = index_of(2, (axis[]){{at.s, g->n * g->ih * g->iw}, {"0", l->p->pixel}});
    if (is_each)
        index = plus(index.s, l->channels.first.s);
    else if (l->group != NULL)
        index = plus(index.s, times(l->group, channels).s);
    if (strcmp(index.s, "0") != 0) {
        put(t, "const int pixel = %s;", index.s);
        index = expr("pixel");
    }
    braces += put_loop_unless_one(t, l->p->inner, channels);
    if (channels > 1)
        index = plus(index.s, times(l->p->inner, l->p->channel).s);
    const expression tap = index_of(
        4, (axis[]){
               {"kh", g->kh}, {kw, g->kw}, {l->p->inner, channels}, {l->channels.first.s, g->oc}});
    put_sums(l, index.s, tap.s, from, to);
    put_end(t, braces);
}

static void put_columns(const loops *l, const span *w, int64_t from, int64_t to)
{
    (is_merged(l) ? put_merged : put_separate)(l, w, from, to);
}

/* Writes the columns of the window of a block that begins at a pixel, those with the same pixels
 * together. */
static void put_known_columns(const loops *l, int64_t begin, int64_t n)
{
    const adj_conv_geom *g = l->g;
    int64_t from[2] = {0}, to[2] = {0}, start = 0;
    for (int64_t kw = 0; kw <= g->kw; kw++) {
        const int64_t shift = kw * g->dw - g->pl;
        from[1] = to[1] = 0;
        for (int64_t i = 0; i < n && kw < g->kw; i++) {
            const int64_t iw = (begin + i) * g->sw + shift;
            from[1] += iw < 0;
            to[1] += iw < g->iw;
        }
        if (kw > 0 && (kw == g->kw || from[0] != from[1] || to[0] != to[1])) {
            const span s = {expr("%lld", (long long)start), expr("%lld", (long long)kw),
                            start == 0 && kw == g->kw};
            if (from[0] < to[0])
                put_columns(l, &s, from[0], to[0]);
            start = kw;
        }
        from[0] = from[1];
        to[0] = to[1];
    }
}

/* Writes the results of n pixels, the first of which is `begin`. */
static void put_block(loops *l, int64_t begin, int64_t n)
{
    text *t = &l->f->t;
    const adj_conv_geom *g = l->g;
    for (int64_t i = 0; i < n; i++)
        put(t, "%s %s[%lld] = {0};", l->f->has_double ? "double" : "float", sums_of(l, i).s,
            (long long)l->channels.size);
    const int taps = put_taps(t, "kh", window_h(g), &l->h);
    if (is_merged(l)) {
        const expression ih = window_at("oh", "kh", window_h(g));
        const expression iw = window_at(l->at, "0", window_w(g));
        put(t, "const int row = %s;",
            index_of(4, (axis[]){{"n", g->n}, {ih.s, g->ih}, {iw.s, g->iw}, {"0", g->ic}}).s);
    }
    if (l->n == 1)
        put_columns(l, &l->w_span, 0, 1);
    else
        put_known_columns(l, begin, n);
    put_end(t, taps);
    expression to = index_of(
        4, (axis[]){{"n", g->n}, {"oh", g->oh}, {l->at, g->ow}, {l->channels.first.s, g->oc}});
    if (strcmp(to.s, "0") != 0) {
        put(t, "const int to = %s;", to.s);
        to = expr("to");
    }
    put_loop_to(t, l->lane, l->channels.count.s);
    const expression channel = plus(l->channels.first.s, l->lane);
    for (int64_t i = 0; i < n; i++) {
        const expression sum = expr("%s[%s]", sums_of(l, i).s, l->lane);
        (i == 0 ? put_result : put_next_result)(
            l->f, with_scale(l->f, sum.s, channel.s).s,
            plus(plus(to.s, expr("%lld", (long long)(i * g->oc)).s).s, l->lane).s, channel.s);
    }
    put_end(t, 1);
}

/* Opens the loop over the blocks from one pixel to another. */
static void put_pixels(loops *l, const char *variable, int64_t from, int64_t to, int64_t n)
{
    l->at = n == l->g->ow ? "0" : variable;
    if (n < l->g->ow)
        put(&l->f->t, "for (int %s = %lld; %s < %lld; %s += %lld) {", variable, (long long)from,
            variable, (long long)to, variable, (long long)n);
    put_block(l, from, n);
    put_end(&l->f->t, n < l->g->ow);
}

static void put_row(loops *l, const char *variable)
{
    const adj_conv_geom *g = l->g;
    const int64_t last = g->ow % l->n == 0 ? l->n : g->ow % l->n;
    if (l->n == 1) {
        const int braces = put_loop_unless_one(&l->f->t, variable, g->ow);
        l->at = braces > 0 ? variable : "0";
        l->w_span = put_window(&l->f->t, "kw", l->at, window_w(g));
        put_block(l, 0, 1);
        put_end(&l->f->t, braces);
        return;
    }
    if (l->n == g->ow) {
        put_pixels(l, variable, 0, l->n, l->n);
        return;
    }
    const int64_t from = outside(g, 0) > 0 ? l->n : 0;
    const int64_t to = outside(g, 1) > 0 || last < l->n ? g->ow - last : g->ow;
    if (from > 0)
        put_pixels(l, variable, 0, l->n, l->n);
    if (from < to)
        put_pixels(l, variable, from, to, l->n);
    if (to < g->ow)
        put_pixels(l, variable, to, g->ow, last);
}

void put_convolution(function *f, const convolution *p)
{
    text *t = &f->t;
    const adj_conv_geom *g = &p->geom;
    const int is_each = is_depthwise(g), is_grouped = g->groups > 1 && !is_each;
    const int64_t channels = is_grouped ? g->oc / g->groups : g->oc;
    loops l = {.f = f, .p = p, .g = g, .group = is_grouped ? "g" : NULL};
    l.x = operand_name(f, 0);
    l.lane = is_each ? "c" : p->lane;
    const int64_t most = g->ow == 1 ? SINGLE : SUMS / g->ow > CHANNELS ? SUMS / g->ow : CHANNELS;
    int braces = put_loop_unless_one(t, "g", is_grouped ? g->groups : 1);
    l.channels = put_blocks(t, expr("%s0", l.lane).s, channels, most);
    braces += l.channels.braces;
    if (is_grouped)
        l.channels.first = index_of(2, (axis[]){{"g", g->groups}, {l.channels.first.s, channels}});
    l.n = pixels_of(g, l.channels.size);
    braces += put_loop_unless_one(t, "n", g->n);
    braces += put_loop_unless_one(t, "oh", g->oh);
    l.h = put_window(t, "kh", "oh", window_h(g));
    put_row(&l, p->variable);
    put_end(t, braces);
}
