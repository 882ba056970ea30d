/* group_norm.c - functions of group norm and its gradients. Mean and scale = 1 / sqrt(variance +
 * epsilon) are those of a group: all pixels of an image in neighboring channels. */
#include "emit.h"

/* Images, pixels of one, groups, and channels of a group. */
typedef struct {
    int64_t images, pixels, groups, channels;
    int is_nchw;
    expression at, channel, last; /* index of an element, of its channel, and on the last axis */
    double epsilon;
} grouped;

static grouped grouped_of(const adj_node *n)
{
    const adj_group_norm_attrs *a = n->attrs;
    const adj_shape s = n->in[0]->type.shape;
    const int64_t all = s.dim[a->format == ADJ_NCHW ? 1 : s.rank - 1];
    grouped g = {.images = s.dim[0],
                 .pixels = adj_shape_elems(s) / s.dim[0] / all,
                 .groups = a->groups,
                 .channels = all / a->groups,
                 .is_nchw = a->format == ADJ_NCHW && s.rank > 2,
                 .epsilon = a->epsilon};
    const axis image = {"n", g.images}, pixel = {"i", g.pixels};
    const axis group = {"g", g.groups}, channel = {"c", g.channels};
    g.channel = index_of(2, (axis[]){group, channel});
    g.last = g.is_nchw ? expr("i %% %lld", (long long)s.dim[s.rank - 1]) : g.channel;
    g.at = g.is_nchw ? index_of(4, (axis[]){image, group, channel, pixel})
                     : index_of(4, (axis[]){image, pixel, group, channel});
    return g;
}

/* Opens the two loops over the elements of a group, contiguous ones innermost. */
static void put_elements_loop(text *t, const grouped *g)
{
    if (!g->is_nchw)
        put_loop(t, "i", g->pixels);
    put_loop(t, "c", g->channels);
    if (g->is_nchw)
        put_loop(t, "i", g->pixels);
}

/* Opens the loops over groups and computes mean and scale of one. The variance is computed in a
 * second pass, so that nothing cancels. Returns the braces. */
static int put_groups(text *t, const grouped *g, const char *x)
{
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
    put(t, "const float scale = 1.0f / sqrtf(variance / %s + %s);", count.s, literal(g->epsilon).s);
    return braces;
}

/* y = (x - mean) * scale * gamma + beta */
void write_group_norm(function *f)
{
    text *t = &f->t;
    const grouped g = grouped_of(f->root);
    const char *x = operand_name(f, 0), *gamma = operand_name(f, 1), *beta = operand_name(f, 2);
    const int braces = put_groups(t, &g, x);
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
    const grouped g = grouped_of(f->root);
    const char *x = operand_name(f, 0), *dy = operand_name(f, 1), *y = f->result;
    const int64_t all = g.groups * g.channels;
    put_zeros(f, 2 * all);
    const int braces = put_groups(t, &g, x);
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
    const grouped g = grouped_of(f->root);
    const expression count = literal((double)(g.pixels * g.channels));
    const char *x = operand_name(f, 0), *gamma = operand_name(f, 1), *dy = operand_name(f, 2);
    const expression w = expr("%s[%s] * %s[%s]", gamma, g.channel.s, dy, g.at.s);
    const int braces = put_groups(t, &g, x);
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
