/* prologue.c - prologue and epilogue of a fused group: work done once, before its pass (tiled
 * vectors and constants, from small operands) and after it (sums of the segments, in order, in
 * f64). */
#include <math.h>
#include <string.h>

#include "backends/direct/arith.h"
#include "fused_pointwise.h"
#include "ops/grad.h"

void fused_bounds(const fused_group *p, int segment, int64_t *begin, int64_t *end)
{
    int64_t chunks = (p->n + p->chunk - 1) / p->chunk;
    *begin = chunks * segment / p->work.jobs * p->chunk;
    *end = chunks * (segment + 1) / p->work.jobs * p->chunk;
    *end = *end < p->n ? *end : p->n;
}

/* Repeats the first `channels` elements; NaN becomes the canonical one (see row_kernel.c). */
static void repeat(const fused_group *p, float *v)
{
    for (int64_t i = 0; i < p->channels; i++)
        v[i] = isnan(v[i]) ? NAN : v[i];
    for (int64_t i = p->channels; i < p->row; i++)
        v[i] = v[i - p->channels];
}

/* Returns operand i of node n. */
static const void *operand(const adj_call *c, const adj_node *n, int i)
{
    return c->in[adj_group_in(c->group, n->in[i])];
}

static double load(const adj_call *c, const adj_node *n, int i, int64_t at)
{
    return adj_load(n->in[i]->type.dtype, operand(c, n, i), at);
}

/* Loads elements first .. first + n of operand i. */
static void load_all(const adj_call *c, const adj_node *n, int i, int64_t first, int64_t count,
                     float *dst)
{
    const void *data = operand(c, n, i);
    adj_dtype dtype = n->in[i]->type.dtype;
    if (dtype == ADJ_F32)
        memcpy(dst, (const float *)data + first, (size_t)count * sizeof *dst);
    else
        for (int64_t k = 0; k < count; k++)
            dst[k] = (float)adj_load(dtype, data, first + k);
}

static double inverse_deviation(const adj_node *n, float variance)
{
    return 1 / sqrt((double)variance + ((const adj_batch_norm_attrs *)n->attrs)->epsilon);
}

/* mean, gamma s, beta */
static void tile_norm(const fused_group *p, const adj_call *c, const fused_node *d)
{
    float *mean = fused_tiled(p, c, d->tiled), *scale = fused_tiled(p, c, d->tiled + 1);
    float *beta = fused_tiled(p, c, d->tiled + 2);
    load_all(c, d->node, 1, 0, p->channels, mean);
    load_all(c, d->node, 1, p->channels, p->channels, scale);
    load_all(c, d->node, 2, 0, p->channels, beta);
    for (int64_t k = 0; k < p->channels; k++)
        scale[k] = (float)((double)beta[k] * inverse_deviation(d->node, scale[k]));
    load_all(c, d->node, 3, 0, p->channels, beta);
}

/* See ops/batch_norm.c: dx = gamma s (dy - dbeta / m - (x - mean) s dgamma / m). */
static void tile_norm_grad(const fused_group *p, const adj_call *c, const fused_node *d)
{
    double m = (double)(p->n / p->channels);
    float *mean = fused_tiled(p, c, d->tiled), *scale = fused_tiled(p, c, d->tiled + 1);
    float *q0 = fused_tiled(p, c, d->tiled + 2), *q1 = fused_tiled(p, c, d->tiled + 3);
    load_all(c, d->node, 1, 0, p->channels, mean);
    load_all(c, d->node, 1, p->channels, p->channels, scale);
    load_all(c, d->node, 2, 0, p->channels, q1);
    load_all(c, d->node, 4, 0, p->channels, q0);
    for (int64_t k = 0; k < p->channels; k++) {
        double s = inverse_deviation(d->node, scale[k]);
        scale[k] = (float)((double)q1[k] * s);
        q0[k] = (float)((double)q0[k] / m * s);
    }
    load_all(c, d->node, 4, p->channels, p->channels, q1);
    for (int64_t k = 0; k < p->channels; k++)
        q1[k] = (float)((double)q1[k] / m);
}

static void tile_own(const fused_group *p, const adj_call *c, const fused_node *d)
{
    int n = fused_kind_of(d->node->op)->tiled;
    if (d->code == FUSED_NORM)
        tile_norm(p, c, d);
    if (d->code == FUSED_NORM_GRAD)
        tile_norm_grad(p, c, d);
    if (d->code == FUSED_NORM_SUMS)
        load_all(c, d->node, 1, 0, p->channels, fused_tiled(p, c, d->tiled));
    for (int i = 0; i < n; i++)
        repeat(p, fused_tiled(p, c, d->tiled + i));
}

static void adam_constants(const adj_call *c, const adj_node *n, float *k)
{
    const adj_adam_attrs *a = n->attrs;
    int32_t t = *(const int32_t *)operand(c, n, 3);
    k[0] = (float)load(c, n, 4, 0);
    k[1] = (float)(1 / (1 - pow(a->beta1, t)));
    k[2] = (float)(1 / (1 - pow(a->beta2, t)));
    k[3] = (float)a->epsilon;
    k[4] = (float)a->decay;
}

/* Sets the constants of clip. Comparing with a bound that no float equals is the same as
 * comparing with the next float on its inner side. If min is larger than max, every x is beyond
 * one of them, and max is the result. */
static void clip_constants(const adj_clip_attrs *a, float *k)
{
    const float min = (float)a->min, max = (float)a->max;
    k[0] = (double)min < a->min ? nextafterf(min, INFINITY) : min;
    k[1] = a->min > a->max ? max : min;
    k[2] = (double)max > a->max ? nextafterf(max, -INFINITY) : max;
    k[3] = max;
}

static void constants(const adj_call *c, const fused_node *d, float *k)
{
    const adj_node *n = d->node;
    if (n->op == &adj_op_neg)
        k[0] = -1;
    else if (n->op == &adj_op_scale || d->code == FUSED_LEAKY_RELU ||
             d->code == FUSED_LEAKY_RELU_GRAD)
        k[0] = (float)((const adj_value_attrs *)n->attrs)->value;
    else if (d->code == FUSED_ELU || d->code == FUSED_ELU_GRAD)
        memcpy(k, &((const adj_value_attrs *)n->attrs)->value, sizeof(double));
    else if (d->code == FUSED_CLIP || d->code == FUSED_CLIP_GRAD)
        clip_constants(n->attrs, k);
    else if (d->code == FUSED_SELECT)
        k[0] = load(c, n, 0, 0) != 0;
    else if (d->code == FUSED_EMA) {
        double beta = ((const adj_value_attrs *)n->attrs)->value;
        k[0] = (float)beta;
        k[1] = (float)(1 - beta);
    } else if (d->code == FUSED_MOMENTUM) {
        const adj_decay_attrs *a = n->attrs;
        k[0] = (float)a->mu;
        k[1] = (float)a->decay;
    } else if (d->code == FUSED_SGD_STEP) {
        k[0] = (float)load(c, n, 2, 0);
        k[1] = (float)((const adj_decay_attrs *)n->attrs)->decay;
    } else if (d->code == FUSED_ADAM_STEP)
        adam_constants(c, n, k);
}

/* Tiles a broadcast operand: a scalar or a vector along the last axis. */
static void broadcast(const fused_group *p, const adj_call *c, const fused_value *v)
{
    const adj_node *x = c->group->in[v->in];
    int64_t n = adj_shape_elems(x->type.shape);
    float *y = fused_tiled(p, c, v->where);
    for (int64_t k = 0; k < p->channels; k++)
        y[k] = (float)adj_load(x->type.dtype, c->in[v->in], n > 1 ? k : 0);
    repeat(p, y);
}

void fused_prologue(const adj_call *c)
{
    const fused_group *p = c->state;
    for (int i = 0; i < p->n_value; i++)
        if (p->value[i].at == AT_TILED)
            broadcast(p, c, &p->value[i]);
    for (int i = 0; i < p->n_node; i++) {
        tile_own(p, c, &p->node[i]);
        constants(c, &p->node[i], fused_constants(p, c, &p->node[i]));
    }
}

/* ---- epilogue ---- */

/* Replaces a segment's sums of x - shift and of its square by its mean and the sum of the
 * squared deviations from it. */
static void set_moments(const fused_group *p, double *partial, double n)
{
    double *mean = partial, *m2 = partial + p->channels, *shift = m2 + p->channels, share = 1 / n;
#pragma omp simd
    for (int64_t k = 0; k < p->channels; k++) {
        double rest = m2[k] - mean[k] * mean[k] * share;
        mean[k] = shift[k] + mean[k] * share;
        m2[k] = rest < 0 ? 0 : rest;
    }
}

/* Joins the moments of two sets (Chan, Golub, LeVeque); the second has this fraction of the
 * elements. An infinite mean stays, unless the other is the opposite infinity. */
static void join_moments(const fused_group *p, double *all, const double *partial, double n,
                         double share)
{
    const int64_t c = p->channels;
    const double *m2_partial = partial + c;
    double *m2 = all + c;
#pragma omp simd
    for (int64_t k = 0; k < c; k++) {
        double delta = partial[k] - all[k];
        all[k] += delta - delta == 0 ? delta * share : partial[k];
        m2[k] += m2_partial[k] + delta * delta * n * share;
    }
}

static void store_stats(const fused_group *p, const adj_call *c, const fused_node *d, float *stats)
{
    double *all = fused_partial(p, c, 0, d), n = 0;
    for (int s = 0; s < p->work.jobs; s++) {
        int64_t begin, end;
        fused_bounds(p, s, &begin, &end);
        double *partial = fused_partial(p, c, s, d), more = (double)((end - begin) / p->channels);
        set_moments(p, partial, more);
        if (s > 0)
            join_moments(p, all, partial, n, more / (n + more));
        n += more;
    }
    for (int64_t k = 0; k < p->channels; k++) {
        stats[k] = (float)all[k];
        stats[p->channels + k] = (float)(all[p->channels + k] / n);
    }
}

/* Adds the sums of all segments, in order, to the first segment's. */
static const double *total(const fused_group *p, const adj_call *c, const fused_node *d)
{
    double *all = fused_partial(p, c, 0, d);
    const ptrdiff_t each = (ptrdiff_t)(p->partials_each / sizeof *all);
    add_segments(all, 2 * p->channels, p->n_sum * each, p->work.jobs);
    return all;
}

static void store_norm_sums(const fused_group *p, const adj_call *c, const fused_node *d,
                            float *sums)
{
    const double *all = total(p, c, d);
    float *variance = sums + p->channels;
    load_all(c, d->node, 1, p->channels, p->channels, variance);
    for (int64_t k = 0; k < p->channels; k++)
        sums[k] = (float)(all[k] * inverse_deviation(d->node, variance[k]));
    for (int64_t k = 0; k < p->channels; k++)
        sums[p->channels + k] = (float)all[p->channels + k];
}

/* Stores a sum for each channel, or one for all if there is one slope. */
static void store_sum(const fused_group *p, const adj_call *c, const fused_node *d, void *sum)
{
    const double *all = total(p, c, d);
    const int64_t n = adj_shape_elems(d->node->type.shape), channels = n == 1 ? p->channels : 1;
    for (int64_t i = 0; i < n; i++) {
        double each = 0;
        for (int64_t k = 0; k < channels; k++)
            each += all[i + k];
        adj_store(d->node->type.dtype, sum, i, each);
    }
}

void fused_epilogue(const adj_call *c, ptrdiff_t job)
{
    const fused_group *p = c->state;
    (void)job;
    for (int i = 0; i < p->n_node; i++) {
        const fused_node *d = &p->node[i];
        int out = d->sum >= 0 ? adj_group_out(c->group, d->node) : -1;
        if (out < 0)
            continue;
        if (d->code == FUSED_STATS)
            store_stats(p, c, d, c->out[out]);
        else if (d->code == FUSED_NORM_SUMS)
            store_norm_sums(p, c, d, c->out[out]);
        else
            store_sum(p, c, d, c->out[out]);
    }
}
