/* norm.c - functions of batch norm, group norm and their gradients. Mean and scale = 1 /
 * sqrt(variance + epsilon) are those of a channel of all images, or of a group: all pixels of an
 * image in neighboring channels. */
#include "emit.h"

/* Images, pixels of one, groups, and channels of a group. In NHWC all images of a batch norm are
 * one; it has one group. */
typedef struct {
    int64_t images, pixels, groups, channels;
    int is_nchw;
    expression at, channel, last; /* index of an element, of its channel, and on the last axis */
} layout;

static layout layout_of(const adj_node *n, int64_t groups, int is_batch)
{
    const adj_shape s = n->in[0]->type.shape;
    const int is_nchw = adj_format_of(n) == ADJ_NCHW && s.rank > 2;
    const int64_t all = s.dim[is_nchw ? 1 : s.rank - 1];
    const int64_t images = is_batch && !is_nchw ? 1 : s.dim[0];
    layout l = {.images = images,
                .pixels = adj_shape_elems(s) / images / all,
                .groups = groups,
                .channels = all / groups,
                .is_nchw = is_nchw};
    const axis image = {"n", l.images}, pixel = {"i", l.pixels};
    const axis group = {"g", l.groups}, channel = {"c", l.channels};
    l.channel = index_of(2, (axis[]){group, channel});
    l.last = is_nchw ? expr("i %% %lld", (long long)s.dim[s.rank - 1]) : l.channel;
    l.at = is_nchw ? index_of(4, (axis[]){image, group, channel, pixel})
                   : index_of(4, (axis[]){image, pixel, group, channel});
    return l;
}

/* Opens the two loops over the elements of a group, contiguous ones innermost. */
static void put_elements_loop(text *t, const layout *l)
{
    if (!l->is_nchw)
        put_loop(t, "i", l->pixels);
    put_loop(t, "c", l->channels);
    if (l->is_nchw)
        put_loop(t, "i", l->pixels);
}

/* ---- batch norm ---- */

static double epsilon_of(const adj_node *n)
{
    return ((const adj_batch_norm_attrs *)n->attrs)->epsilon;
}

static layout batch_of(const adj_node *n) { return layout_of(n, 1, 1); }

/* Opens the loops over all elements, those of an image inside. Returns the braces. */
static int put_batch_loop(text *t, const layout *l)
{
    if (l->is_nchw)
        put_loop(t, "n", l->images);
    put_elements_loop(t, l);
    return l->is_nchw ? 3 : 2;
}

size_t batch_norm_scratch(const adj_node *n)
{
    return (size_t)batch_of(n).channels * sizeof(float);
}
size_t batch_norm_grad_scratch(const adj_node *n) { return 2 * batch_norm_scratch(n); }

/* scale = gamma / sqrt(variance + epsilon) of each channel. */
static void put_scale(function *f, const layout *l, const char *stats, const char *gamma)
{
    f->has_scratch = 1;
    put_loop(&f->t, "c", l->channels);
    put(&f->t, "scratch[c] = %s[c] / sqrtf(%s[%lld + c] + %s);", gamma, stats,
        (long long)l->channels, literal(epsilon_of(f->root)).s);
}

/* y = (x - mean) * scale + beta */
void write_batch_norm(function *f)
{
    text *t = &f->t;
    const layout l = batch_of(f->root);
    const char *x = operand_name(f, 0), *stats = operand_name(f, 1);
    const char *gamma = operand_name(f, 2), *beta = operand_name(f, 3);
    put_scale(f, &l, stats, gamma);
    put_end(t, 1);
    const int braces = put_batch_loop(t, &l);
    put_result(f, expr("(%s[%s] - %s[c]) * scratch[c] + %s[c]", x, l.at.s, stats, beta).s, l.at.s,
               l.last.s);
    put_end(t, braces);
}

/* Mean and variance of each channel; the variance in a second pass, so that nothing cancels. */
void write_batch_norm_stats(function *f)
{
    text *t = &f->t;
    const layout l = batch_of(f->root);
    const char *x = operand_name(f, 0), *y = f->result;
    const long long c = l.channels;
    const expression m = literal((double)(l.images * l.pixels));
    put_filled(f, 0);
    const int braces = put_batch_loop(t, &l);
    put(t, "%s[c] += %s[%s];", y, x, l.at.s);
    put_end(t, braces);
    put_loop(t, "c", c);
    put(t, "%s[c] /= %s;", y, m.s);
    put_end(t, 1);
    put_batch_loop(t, &l);
    put(t, "const float distance = %s[%s] - %s[c];", x, l.at.s, y);
    put(t, "%s[%lld + c] += distance * distance;", y, c);
    put_end(t, braces);
    put_loop(t, "c", c);
    put(t, "%s[%lld + c] /= %s;", y, c, m.s);
    put_end(t, 1);
}

/* dgamma = sum of dy * (x - mean) / sqrt(variance + epsilon), dbeta = sum of dy. */
void write_batch_norm_grad_sums(function *f)
{
    text *t = &f->t;
    const layout l = batch_of(f->root);
    const char *x = operand_name(f, 0), *stats = operand_name(f, 1), *dy = operand_name(f, 2);
    const char *y = f->result;
    const long long c = l.channels;
    put_filled(f, 0);
    const int braces = put_batch_loop(t, &l);
    put(t, "%s[c] += %s[%s] * (%s[%s] - %s[c]);", y, dy, l.at.s, x, l.at.s, stats);
    put(t, "%s[%lld + c] += %s[%s];", y, c, dy, l.at.s);
    put_end(t, braces);
    put_loop(t, "c", c);
    put(t, "%s[c] /= sqrtf(%s[%lld + c] + %s);", y, stats, c, literal(epsilon_of(f->root)).s);
    put_end(t, 1);
}

/* dx = scale * (dy - dbeta / m - (x - mean) * q), q = dgamma / m / sqrt(variance + epsilon) */
void write_batch_norm_grad(function *f)
{
    text *t = &f->t;
    const layout l = batch_of(f->root);
    const char *x = operand_name(f, 0), *stats = operand_name(f, 1), *gamma = operand_name(f, 2);
    const char *dy = operand_name(f, 3), *sums = operand_name(f, 4);
    const long long c = l.channels;
    const expression m = literal((double)(l.images * l.pixels));
    put_scale(f, &l, stats, gamma);
    put(t, "scratch[%lld + c] = %s[c] / (%s * sqrtf(%s[%lld + c] + %s));", c, sums, m.s, stats, c,
        literal(epsilon_of(f->root)).s);
    put_end(t, 1);
    const int braces = put_batch_loop(t, &l);
    put(t, "const float distance = %s[%s] - %s[c];", x, l.at.s, stats);
    put_result(f,
               expr("scratch[c] * (%s[%s] - %s[%lld + c] / %s - distance * scratch[%lld + c])", dy,
                    l.at.s, sums, c, m.s, c)
                   .s,
               l.at.s, l.last.s);
    put_end(t, braces);
}

/* ---- group norm ---- */

static layout grouped_of(const adj_node *n)
{
    return layout_of(n, ((const adj_group_norm_attrs *)n->attrs)->groups, 0);
}

/* Opens the loops over groups and computes mean and scale of one. The variance is computed in a
 * second pass, so that nothing cancels. Returns the braces. */
static int put_groups(function *f, const layout *g, const char *x)
{
    text *t = &f->t;
    const double epsilon = ((const adj_group_norm_attrs *)f->root->attrs)->epsilon;
    const expression count = literal((double)(g->pixels * g->channels));
    int braces = put_loop_unless_one(t, "n", g->images);
    braces += put_loop_unless_one(t, "g", g->groups);
    put(t, "float mean = 0.0f, variance = 0.0f;");
    put_elements_loop(t, g);
    put(t, "mean += %s[%s];", x, g->at.s);
    put_end(t, 2);
    put(t, "mean /= %s;", count.s);
    put_elements_loop(t, g);
    put(t, "const float distance = %s[%s] - mean;", x, g->at.s);
    put(t, "variance += distance * distance;");
    put_end(t, 2);
    put(t, "const float scale = 1.0f / sqrtf(variance / %s + %s);", count.s, literal(epsilon).s);
    return braces;
}

/* y = (x - mean) * scale * gamma + beta */
void write_group_norm(function *f)
{
    text *t = &f->t;
    const layout g = grouped_of(f->root);
    const char *x = operand_name(f, 0), *gamma = operand_name(f, 1), *beta = operand_name(f, 2);
    const int braces = put_groups(f, &g, x);
    put_elements_loop(t, &g);
    put_result(f,
               expr("(%s[%s] - mean) * scale * %s[%s] + %s[%s]", x, g.at.s, gamma, g.channel.s,
                    beta, g.channel.s)
                   .s,
               g.at.s, g.last.s);
    put_end(t, braces + 2);
}

/* dgamma = sum of dy * (x - mean) * scale, dbeta = sum of dy. */
void write_group_norm_grad_sums(function *f)
{
    text *t = &f->t;
    const layout g = grouped_of(f->root);
    const char *x = operand_name(f, 0), *dy = operand_name(f, 1), *y = f->result;
    const int64_t all = g.groups * g.channels;
    put_filled(f, 0);
    const int braces = put_groups(f, &g, x);
    put_elements_loop(t, &g);
    put(t, "%s[%s] += %s[%s] * (%s[%s] - mean) * scale;", y, g.channel.s, dy, g.at.s, x, g.at.s);
    put(t, "%s[%s] += %s[%s];", y, plus(expr("%lld", (long long)all).s, g.channel.s).s, dy, g.at.s);
    put_end(t, braces + 2);
}

/* dx = scale * (w - mean of w - (x - mean) * product), w = gamma * dy, product = scale^2 * mean of
 * w * (x - mean). */
void write_group_norm_grad(function *f)
{
    text *t = &f->t;
    const layout g = grouped_of(f->root);
    const expression count = literal((double)(g.pixels * g.channels));
    const char *x = operand_name(f, 0), *gamma = operand_name(f, 1), *dy = operand_name(f, 2);
    const expression w = expr("%s[%s] * %s[%s]", gamma, g.channel.s, dy, g.at.s);
    const int braces = put_groups(f, &g, x);
    put(t, "float sum = 0.0f, product = 0.0f;");
    put_elements_loop(t, &g);
    put(t, "const float w = %s;", w.s);
    put(t, "sum += w;");
    put(t, "product += w * (%s[%s] - mean);", x, g.at.s);
    put_end(t, 2);
    put(t, "sum /= %s;", count.s);
    put(t, "product *= scale * scale / %s;", count.s);
    put_elements_loop(t, &g);
    put(t, "const float w = %s;", w.s);
    put_result(f, expr("scale * (w - sum - (%s[%s] - mean) * product)", x, g.at.s).s, g.at.s,
               g.last.s);
    put_end(t, braces + 2);
}
