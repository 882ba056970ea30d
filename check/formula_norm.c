/* formula_norm.c - bias and normalization by their definitions in float64. Batch norm: Ioffe and
 * Szegedy, arXiv:1502.03167; group norm: Wu and He, arXiv:1803.08494; both with the biased
 * variance, as PyTorch has them. Gradients are in ops/batch_norm.c's and ops/group_norm.c's
 * notation. See formula.h. */
#include <math.h>

#include "formula.h"

static adj_shape shape_of(const adj_node *n) { return n->type.shape; }

static void clear(double *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = 0;
}

/* ---- bias ---- */

static void bias_add(const adj_node *n, double *const in[], double *y)
{
    const int64_t format = ((const adj_format_attrs *)n->attrs)->format;
    for (int64_t i = 0; i < node_elems(n); i++)
        y[i] = in[0][i] + in[1][formula_channel(shape_of(n), format, i)];
}

static void bias_add_grad(const adj_node *n, double *const in[], double *y)
{
    const int64_t format = ((const adj_format_attrs *)n->attrs)->format;
    clear(y, node_elems(n));
    for (int64_t i = 0; i < node_elems(n->in[0]); i++)
        y[formula_channel(shape_of(n->in[0]), format, i)] += in[0][i];
}

/* ---- batch norm: statistics are [mean; variance], sums [sum(dy xhat); sum(dy)] ---- */

static int64_t format_of(const adj_node *n)
{
    return ((const adj_batch_norm_attrs *)n->attrs)->format;
}

/* (x - mean) / sqrt(var + epsilon) of element i of channel ch of c. */
static double normalised(const adj_node *n, double *const in[], int64_t i, int64_t ch, int64_t c)
{
    const double epsilon = ((const adj_batch_norm_attrs *)n->attrs)->epsilon;
    return (in[0][i] - in[1][ch]) / sqrt(in[1][c + ch] + epsilon);
}

static void batch_norm_stats(const adj_node *n, double *const in[], double *y)
{
    const int64_t format = ((const adj_format_attrs *)n->attrs)->format;
    const int64_t c = shape_of(n).dim[1], elems = node_elems(n->in[0]);
    const double m = (double)elems / (double)c;
    clear(y, 2 * c);
    for (int64_t i = 0; i < elems; i++)
        y[formula_channel(shape_of(n->in[0]), format, i)] += in[0][i] / m;
    for (int64_t i = 0; i < elems; i++) {
        const int64_t ch = formula_channel(shape_of(n->in[0]), format, i);
        y[c + ch] += (in[0][i] - y[ch]) * (in[0][i] - y[ch]) / m;
    }
}

static void batch_norm(const adj_node *n, double *const in[], double *y)
{
    const int64_t c = node_elems(n->in[2]);
    for (int64_t i = 0; i < node_elems(n); i++) {
        const int64_t ch = formula_channel(shape_of(n), format_of(n), i);
        y[i] = normalised(n, in, i, ch, c) * in[2][ch] + in[3][ch];
    }
}

static void batch_norm_grad_sums(const adj_node *n, double *const in[], double *y)
{
    const int64_t c = shape_of(n).dim[1];
    clear(y, 2 * c);
    for (int64_t i = 0; i < node_elems(n->in[0]); i++) {
        const int64_t ch = formula_channel(shape_of(n->in[0]), format_of(n), i);
        y[ch] += in[2][i] * normalised(n, in, i, ch, c);
        y[c + ch] += in[2][i];
    }
}

static void batch_norm_grad(const adj_node *n, double *const in[], double *y)
{
    const int64_t c = node_elems(n->in[2]);
    const double m = (double)node_elems(n) / (double)c;
    const double epsilon = ((const adj_batch_norm_attrs *)n->attrs)->epsilon;
    const double *gamma = in[2], *dy = in[3], *sums = in[4];
    for (int64_t i = 0; i < node_elems(n); i++) {
        const int64_t ch = formula_channel(shape_of(n), format_of(n), i);
        const double mean = (sums[c + ch] + normalised(n, in, i, ch, c) * sums[ch]) / m;
        y[i] = gamma[ch] / sqrt(in[1][c + ch] + epsilon) * (dy[i] - mean);
    }
}

/* ---- group norm ---- */

/* One group of the channels of one image. */
typedef struct {
    adj_shape shape;
    int64_t format, begin, end; /* elements of the image */
    int64_t first, last;        /* channels: last is the first that is not in it */
    double mean, s;             /* s = 1 / sqrt(var + epsilon) */
    double m;                   /* elements */
} group;

static int64_t channel(const group *g, int64_t i)
{
    return formula_channel(g->shape, g->format, i);
}

/* Returns the first of the group's elements from i on, or end if there is none. */
static int64_t next(const group *g, int64_t i)
{
    const int64_t channels = g->shape.dim[g->format == ADJ_NCHW ? 1 : g->shape.rank - 1];
    const int64_t inner = g->format == ADJ_NCHW ? (g->end - g->begin) / channels : 1;
    if (i >= g->end || (channel(g, i) >= g->first && channel(g, i) < g->last))
        return i;
    if (channel(g, i) < g->first)
        return i + (g->first - channel(g, i)) * inner - (i - g->begin) % inner;
    i += channels - channel(g, i) + g->first; /* the group's first channel of the next pixel */
    return g->format == ADJ_NHWC && i < g->end ? i : g->end;
}

static group group_at(const adj_node *n, const double *x, int64_t image, int64_t number)
{
    const adj_group_norm_attrs *a = n->attrs;
    const adj_shape s = shape_of(n->in[0]);
    const int64_t size = adj_shape_elems(s) / s.dim[0];
    const int64_t c = s.dim[a->format == ADJ_NCHW ? 1 : s.rank - 1] / a->groups;
    group g = {.shape = s,
               .format = a->format,
               .begin = image * size,
               .end = (image + 1) * size,
               .first = number * c,
               .last = (number + 1) * c,
               .m = (double)size / (double)a->groups};
    double var = 0;
    for (int64_t i = next(&g, g.begin); i < g.end; i = next(&g, i + 1))
        g.mean += x[i] / g.m;
    for (int64_t i = next(&g, g.begin); i < g.end; i = next(&g, i + 1))
        var += (x[i] - g.mean) * (x[i] - g.mean) / g.m;
    g.s = 1 / sqrt(var + a->epsilon);
    return g;
}

typedef void over_group(const group *g, double *const in[], double *y);

static void over_groups(const adj_node *n, double *const in[], double *y, over_group *f)
{
    const int64_t groups = ((const adj_group_norm_attrs *)n->attrs)->groups;
    clear(y, node_elems(n));
    for (int64_t image = 0; image < shape_of(n->in[0]).dim[0]; image++)
        for (int64_t k = 0; k < groups; k++) {
            const group g = group_at(n, in[0], image, k);
            f(&g, in, y);
        }
}

static void norm_of_group(const group *g, double *const in[], double *y)
{
    for (int64_t i = next(g, g->begin); i < g->end; i = next(g, i + 1))
        y[i] = (in[0][i] - g->mean) * g->s * in[1][channel(g, i)] + in[2][channel(g, i)];
}

static void sums_of_group(const group *g, double *const in[], double *y)
{
    const int64_t c = g->shape.dim[g->format == ADJ_NCHW ? 1 : g->shape.rank - 1];
    for (int64_t i = next(g, g->begin); i < g->end; i = next(g, i + 1)) {
        y[channel(g, i)] += in[1][i] * (in[0][i] - g->mean) * g->s;
        y[c + channel(g, i)] += in[1][i];
    }
}

static void grad_of_group(const group *g, double *const in[], double *y)
{
    double mean = 0, mean_xhat = 0;
    for (int64_t i = next(g, g->begin); i < g->end; i = next(g, i + 1)) {
        const double w = in[1][channel(g, i)] * in[2][i];
        mean += w / g->m;
        mean_xhat += w * (in[0][i] - g->mean) * g->s / g->m;
    }
    for (int64_t i = next(g, g->begin); i < g->end; i = next(g, i + 1)) {
        const double xhat = (in[0][i] - g->mean) * g->s;
        y[i] = g->s * (in[1][channel(g, i)] * in[2][i] - mean - xhat * mean_xhat);
    }
}

/* Writes the sums of the magnitudes of grad_of_group's terms. */
static void terms_of_group(const group *g, double *const in[], double *y)
{
    double mean = 0, mean_xhat = 0;
    for (int64_t i = next(g, g->begin); i < g->end; i = next(g, i + 1)) {
        const double w = fabs(in[1][channel(g, i)] * in[2][i]);
        mean += w / g->m;
        mean_xhat += w * fabs(in[0][i] - g->mean) * g->s / g->m;
    }
    for (int64_t i = next(g, g->begin); i < g->end; i = next(g, i + 1)) {
        const double xhat = fabs(in[0][i] - g->mean) * g->s;
        y[i] = g->s * (fabs(in[1][channel(g, i)] * in[2][i]) + mean + xhat * mean_xhat);
    }
}

int formula_terms(const adj_node *n, double *const operand[], double *size)
{
    if (n->op != &adj_op_group_norm_grad)
        return 0;
    over_groups(n, operand, size, terms_of_group);
    return 1;
}

static void group_norm(const adj_node *n, double *const in[], double *y)
{
    over_groups(n, in, y, norm_of_group);
}

static void group_norm_grad_sums(const adj_node *n, double *const in[], double *y)
{
    over_groups(n, in, y, sums_of_group);
}

static void group_norm_grad(const adj_node *n, double *const in[], double *y)
{
    over_groups(n, in, y, grad_of_group);
}

static const struct {
    const adj_op *op;
    definition *of;
} definitions[] = {
    {&adj_op_bias_add, bias_add},
    {&adj_op_bias_add_grad, bias_add_grad},
    {&adj_op_batch_norm_stats, batch_norm_stats},
    {&adj_op_batch_norm, batch_norm},
    {&adj_op_batch_norm_grad_sums, batch_norm_grad_sums},
    {&adj_op_batch_norm_grad, batch_norm_grad},
    {&adj_op_group_norm, group_norm},
    {&adj_op_group_norm_grad_sums, group_norm_grad_sums},
    {&adj_op_group_norm_grad, group_norm_grad},
};

definition *norm_definition_of(const adj_op *op)
{
    for (size_t i = 0; i < sizeof definitions / sizeof *definitions; i++)
        if (definitions[i].op == op)
            return definitions[i].of;
    return NULL;
}
