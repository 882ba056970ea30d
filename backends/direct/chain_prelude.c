/* chain_prelude.c - what a chain does once, before its pass (periods and constants, from small
 * operands) and after it (segments' sums, in order, in double). */
#include <math.h>

#include "chain.h"

void chain_bounds(const chain *p, int segment, int64_t *from, int64_t *to)
{
    int64_t chunks = (p->n + p->chunk - 1) / p->chunk;
    *from = chunks * segment / p->segments * p->chunk;
    *to = chunks * (segment + 1) / p->segments * p->chunk;
    *to = *to < p->n ? *to : p->n;
}

static float *period(const chain *p, const adj_call *c, int i)
{
    return (float *)((char *)c->scratch + p->periods) + i * p->row;
}

/* The first `channels` elements, repeated. */
static void repeat(const chain *p, float *v)
{
    for (int64_t i = p->channels; i < p->row; i++)
        v[i] = v[i - p->channels];
}

/* Operand i of node n. */
static const void *operand(const adj_call *c, const adj_node *n, int i)
{
    return c->in[direct_in(c->group, n->in[i])];
}

static double load(const adj_call *c, const adj_node *n, int i, int64_t at)
{
    return adj_load(n->in[i]->type.dtype, operand(c, n, i), at);
}

static double inverse_deviation(const adj_call *c, const adj_node *n, int64_t k, int64_t channels)
{
    const adj_batch_norm_attrs *a = n->attrs;
    return 1 / sqrt(load(c, n, 1, channels + k) + a->epsilon);
}

static void norm_periods(const chain *p, const adj_call *c, const chain_node *d)
{
    for (int64_t k = 0; k < p->channels; k++) {
        double s = inverse_deviation(c, d->node, k, p->channels);
        period(p, c, d->period)[k] = (float)load(c, d->node, 1, k);
        period(p, c, d->period + 1)[k] = (float)(load(c, d->node, 2, k) * s);
        period(p, c, d->period + 2)[k] = (float)load(c, d->node, 3, k);
    }
}

/* See ops/batch_norm.c: dx = gamma s (dy - dbeta / m - (x - mean) s dgamma / m). */
static void norm_grad_periods(const chain *p, const adj_call *c, const chain_node *d)
{
    double m = (double)(p->n / p->channels);
    for (int64_t k = 0; k < p->channels; k++) {
        double s = inverse_deviation(c, d->node, k, p->channels);
        period(p, c, d->period)[k] = (float)load(c, d->node, 1, k);
        period(p, c, d->period + 1)[k] = (float)(load(c, d->node, 2, k) * s);
        period(p, c, d->period + 2)[k] = (float)(load(c, d->node, 4, k) / m * s);
        period(p, c, d->period + 3)[k] = (float)(load(c, d->node, 4, p->channels + k) / m);
    }
}

static void own_periods(const chain *p, const adj_call *c, const chain_node *d)
{
    int n = chain_kind_of(d->node->op)->periods;
    if (d->code == CHAIN_NORM)
        norm_periods(p, c, d);
    if (d->code == CHAIN_NORM_GRAD)
        norm_grad_periods(p, c, d);
    for (int64_t k = 0; d->code == CHAIN_NORM_SUMS && k < p->channels; k++)
        period(p, c, d->period)[k] = (float)load(c, d->node, 1, k);
    for (int i = 0; i < n; i++)
        repeat(p, period(p, c, d->period + i));
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

static void constants(const adj_call *c, const chain_node *d, float *k)
{
    const adj_node *n = d->node;
    if (n->op == &adj_op_neg)
        k[0] = -1;
    else if (n->op == &adj_op_scale || d->code == CHAIN_LEAKY_RELU ||
             d->code == CHAIN_LEAKY_RELU_GRAD)
        k[0] = (float)((const adj_value_attrs *)n->attrs)->value;
    else if (d->code == CHAIN_EMA) {
        double beta = ((const adj_value_attrs *)n->attrs)->value;
        k[0] = (float)beta;
        k[1] = (float)(1 - beta);
    } else if (d->code == CHAIN_MOMENTUM) {
        const adj_decay_attrs *a = n->attrs;
        k[0] = (float)a->mu;
        k[1] = (float)a->decay;
    } else if (d->code == CHAIN_SGD_STEP) {
        k[0] = (float)load(c, n, 2, 0);
        k[1] = (float)((const adj_decay_attrs *)n->attrs)->decay;
    } else if (d->code == CHAIN_ADAM_STEP)
        adam_constants(c, n, k);
}

/* A broadcast operand: a scalar or a vector along the last axis. */
static void broadcast(const chain *p, const adj_call *c, const chain_value *v)
{
    const adj_node *x = c->group->in[v->in];
    int64_t n = adj_shape_elems(x->type.shape);
    float *y = period(p, c, v->where);
    for (int64_t k = 0; k < p->channels; k++)
        y[k] = (float)adj_load(x->type.dtype, c->in[v->in], n > 1 ? k : 0);
    repeat(p, y);
}

void chain_prelude(const chain *p, const adj_call *c)
{
    float *k = (float *)((char *)c->scratch + p->constants);
    for (int i = 0; i < p->n_value; i++)
        if (p->value[i].at == AT_PERIOD)
            broadcast(p, c, &p->value[i]);
    for (int i = 0; i < p->n_node; i++) {
        own_periods(p, c, &p->node[i]);
        constants(c, &p->node[i], k + (ptrdiff_t)i * CHAIN_CONSTANTS);
    }
}

/* ---- after the pass ---- */

typedef struct { /* of one channel, so far */
    double n, mean, m2;
} moments;

/* Chan, Golub, LeVeque: joining the moments of two sets. */
static moments join(moments a, moments b)
{
    double n = a.n + b.n, delta = b.mean - a.mean;
    if (b.n == 0)
        return a;
    return (moments){n, a.mean + delta * b.n / n, a.m2 + b.m2 + delta * delta * a.n * b.n / n};
}

static const double *partial(const chain *p, const adj_call *c, int segment, const chain_node *d)
{
    return (const double *)((char *)c->scratch + p->partials +
                            p->partials_each * (size_t)(segment * p->n_sum + d->sum));
}

/* A segment has the sums of x - shift and of its square, and the shift. */
static void finish_stats(const chain *p, const adj_call *c, const chain_node *d, int64_t k)
{
    moments all = {0};
    float *stats = c->out[direct_out(c->group, d->node)];
    for (int s = 0; s < p->segments; s++) {
        const double *sum = partial(p, c, s, d);
        int64_t from, to;
        chain_bounds(p, s, &from, &to);
        double n = (double)((to - from) / p->channels), first = sum[k];
        double m2 = sum[p->channels + k] - first * first / n;
        all = join(all, (moments){n, sum[2 * p->channels + k] + first / n, m2 > 0 ? m2 : 0});
    }
    stats[k] = (float)all.mean;
    stats[p->channels + k] = (float)(all.m2 / all.n);
}

static double total(const chain *p, const adj_call *c, const chain_node *d, int which, int64_t k)
{
    double sum = 0;
    for (int s = 0; s < p->segments; s++)
        sum += partial(p, c, s, d)[which * p->channels + k];
    return sum;
}

void chain_finish(const chain *p, const adj_call *c)
{
    for (int i = 0; i < p->n_node; i++) {
        const chain_node *d = &p->node[i];
        int out = d->sum >= 0 ? direct_out(c->group, d->node) : -1;
        for (int64_t k = 0; out >= 0 && k < p->channels; k++) {
            if (d->code == CHAIN_STATS)
                finish_stats(p, c, d, k);
            else if (d->code == CHAIN_SUM)
                adj_store(d->node->type.dtype, c->out[out], k, total(p, c, d, 0, k));
            else {
                double s = inverse_deviation(c, d->node, k, p->channels);
                ((float *)c->out[out])[k] = (float)(total(p, c, d, 0, k) * s);
                ((float *)c->out[out])[p->channels + k] = (float)total(p, c, d, 1, k);
            }
        }
    }
}
