/* formula_norm.c - bias and normalization by their definitions in float64. Batch norm: Ioffe and
 * Szegedy, arXiv:1502.03167; group norm: Wu and He, arXiv:1803.08494; both with the biased
 * variance, as PyTorch has them. Gradients are in ops/batch_norm.c's and ops/group_norm.c's
 * notation. See formula.h. */
#include <math.h>
#include <string.h>

#include "formula.h"

/* ---- bias ---- */

static void bias_add(const adj_node *n, double *const in[], double *y)
{
    const int64_t format = ((const adj_format_attrs *)n->attrs)->format;
    for (int64_t i = 0; i < node_elems(n); i++)
        y[i] = in[0][i] + in[1][formula_channel(n->type.shape, format, i)];
}

static void bias_add_grad(const adj_node *n, double *const in[], double *y)
{
    const int64_t format = ((const adj_format_attrs *)n->attrs)->format;
    for (int64_t i = 0; i < node_elems(n->in[0]); i++)
        y[formula_channel(n->in[0]->type.shape, format, i)] += in[0][i];
}

/* ---- batch norm: statistics are [mean; variance], sums [sum(dy xhat); sum(dy)] ---- */

static int64_t format_of(const adj_node *n)
{
    return ((const adj_batch_norm_attrs *)n->attrs)->format;
}

/* (x - mean) / sqrt(var + epsilon) of element i of channel ch of c. */
static double normalized(const adj_node *n, double *const in[], int64_t i, int64_t ch, int64_t c)
{
    const double epsilon = ((const adj_batch_norm_attrs *)n->attrs)->epsilon;
    return (in[0][i] - in[1][ch]) / sqrt(in[1][c + ch] + epsilon);
}

static void batch_norm_stats(const adj_node *n, double *const in[], double *y)
{
    const int64_t format = ((const adj_format_attrs *)n->attrs)->format;
    const int64_t c = n->type.shape.dim[1], elems = node_elems(n->in[0]);
    const double m = (double)elems / (double)c;
    for (int64_t i = 0; i < elems; i++)
        y[formula_channel(n->in[0]->type.shape, format, i)] += in[0][i] / m;
    for (int64_t i = 0; i < elems; i++) {
        const int64_t ch = formula_channel(n->in[0]->type.shape, format, i);
        y[c + ch] += (in[0][i] - y[ch]) * (in[0][i] - y[ch]) / m;
    }
}

static void batch_norm(const adj_node *n, double *const in[], double *y)
{
    const int64_t c = node_elems(n->in[2]);
    for (int64_t i = 0; i < node_elems(n); i++) {
        const int64_t ch = formula_channel(n->type.shape, format_of(n), i);
        y[i] = normalized(n, in, i, ch, c) * in[2][ch] + in[3][ch];
    }
}

static void batch_norm_grad_sums(const adj_node *n, double *const in[], double *y)
{
    const int64_t c = n->type.shape.dim[1];
    for (int64_t i = 0; i < node_elems(n->in[0]); i++) {
        const int64_t ch = formula_channel(n->in[0]->type.shape, format_of(n), i);
        y[ch] += in[2][i] * normalized(n, in, i, ch, c);
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
        const int64_t ch = formula_channel(n->type.shape, format_of(n), i);
        const double mean = (sums[c + ch] + normalized(n, in, i, ch, c) * sums[ch]) / m;
        y[i] = gamma[ch] / sqrt(in[1][c + ch] + epsilon) * (dy[i] - mean);
    }
}

/* ---- group norm ---- */

/* One group of the channels of one image. */
typedef struct {
    int64_t format, begin;        /* begin: the image's first element */
    int64_t first, channels, all; /* the first channel and how many, of all */
    int64_t pixels, elems;
    double mean, s; /* s = 1 / sqrt(var + epsilon) */
} group;

/* Returns the channel of the group's k-th element. */
static int64_t channel(const group *g, int64_t k)
{
    return g->first + (g->format == ADJ_NCHW ? k / g->pixels : k % g->channels);
}

static int64_t element_of(const group *g, int64_t k)
{
    return g->begin + (g->format == ADJ_NCHW ? g->first * g->pixels + k
                                             : k / g->channels * g->all + channel(g, k));
}

static group group_at(const adj_node *n, const double *x, int64_t image, int64_t number)
{
    const adj_group_norm_attrs *a = n->attrs;
    const adj_shape s = n->in[0]->type.shape;
    const int64_t all = s.dim[a->format == ADJ_NCHW ? 1 : s.rank - 1], c = all / a->groups;
    const int64_t pixels = adj_shape_elems(s) / s.dim[0] / all;
    group g = {.format = a->format,
               .begin = image * pixels * all,
               .first = number * c,
               .channels = c,
               .all = all,
               .pixels = pixels,
               .elems = pixels * c};
    double var = 0;
    for (int64_t k = 0; k < g.elems; k++)
        g.mean += x[element_of(&g, k)] / (double)g.elems;
    for (int64_t k = 0; k < g.elems; k++)
        var += (x[element_of(&g, k)] - g.mean) * (x[element_of(&g, k)] - g.mean) / (double)g.elems;
    g.s = 1 / sqrt(var + a->epsilon);
    return g;
}

typedef void over_group(const group *g, double *const in[], double *y);

static void over_groups(const adj_node *n, double *const in[], double *y, over_group *f)
{
    const int64_t groups = ((const adj_group_norm_attrs *)n->attrs)->groups;
    for (int64_t image = 0; image < n->in[0]->type.shape.dim[0]; image++)
        for (int64_t k = 0; k < groups; k++) {
            const group g = group_at(n, in[0], image, k);
            f(&g, in, y);
        }
}

static double xhat(const group *g, double *const in[], int64_t k)
{
    return (in[0][element_of(g, k)] - g->mean) * g->s;
}

static void norm_of_group(const group *g, double *const in[], double *y)
{
    for (int64_t k = 0; k < g->elems; k++)
        y[element_of(g, k)] = xhat(g, in, k) * in[1][channel(g, k)] + in[2][channel(g, k)];
}

static void sums_of_group(const group *g, double *const in[], double *y)
{
    for (int64_t k = 0; k < g->elems; k++) {
        y[channel(g, k)] += in[1][element_of(g, k)] * xhat(g, in, k);
        y[g->all + channel(g, k)] += in[1][element_of(g, k)];
    }
}

/* dy times its channel's factor. */
static double scaled(const group *g, double *const in[], int64_t k)
{
    return in[1][channel(g, k)] * in[2][element_of(g, k)];
}

static void grad_of_group(const group *g, double *const in[], double *y)
{
    double mean = 0, mean_xhat = 0;
    for (int64_t k = 0; k < g->elems; k++) {
        mean += scaled(g, in, k) / (double)g->elems;
        mean_xhat += scaled(g, in, k) * xhat(g, in, k) / (double)g->elems;
    }
    for (int64_t k = 0; k < g->elems; k++)
        y[element_of(g, k)] = g->s * (scaled(g, in, k) - mean - xhat(g, in, k) * mean_xhat);
}

/* Writes the sums of the magnitudes of grad_of_group's terms. */
static void terms_of_group(const group *g, double *const in[], double *y)
{
    double mean = 0, mean_xhat = 0;
    for (int64_t k = 0; k < g->elems; k++) {
        mean += fabs(scaled(g, in, k)) / (double)g->elems;
        mean_xhat += fabs(scaled(g, in, k) * xhat(g, in, k)) / (double)g->elems;
    }
    for (int64_t k = 0; k < g->elems; k++)
        y[element_of(g, k)] =
            g->s * (fabs(scaled(g, in, k)) + mean + fabs(xhat(g, in, k)) * mean_xhat);
}

void group_norm_grad_terms(const adj_node *n, double *const operand[], double *size)
{
    memset(size, 0, (size_t)node_elems(n) * sizeof *size);
    over_groups(n, operand, size, terms_of_group);
}

static void group_norm(const adj_node *n, double *const in[], double *y)
{
    over_groups(n, in, y,
                n->op == &adj_op_group_norm        ? norm_of_group
                : n->op == &adj_op_group_norm_grad ? grad_of_group
                                                   : sums_of_group);
}

const formula norm_formulas[] = {
    {&adj_op_bias_add, .whole = bias_add},
    {&adj_op_bias_add_grad, .whole = bias_add_grad},
    {&adj_op_batch_norm_stats, .whole = batch_norm_stats},
    {&adj_op_batch_norm, .whole = batch_norm},
    {&adj_op_batch_norm_grad_sums, .whole = batch_norm_grad_sums},
    {&adj_op_batch_norm_grad, .whole = batch_norm_grad},
    {&adj_op_group_norm, .whole = group_norm},
    {&adj_op_group_norm_grad_sums, .whole = group_norm},
    {&adj_op_group_norm_grad, .whole = group_norm},
    {.op = NULL},
};
