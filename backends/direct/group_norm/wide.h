/* wide.h - group norm of one group in double, for values whose squares or sums overflow float.
 * It is slow: rows.c and image.c use it only where s is 0 (group_norm_stats_of) or a sum is not
 * finite. Both include it after element.h. */
#ifndef DIRECT_GROUP_NORM_WIDE_H
#define DIRECT_GROUP_NORM_WIDE_H

#include <math.h>

#include "group_norm.h"

typedef struct {
    double mean, s; /* s = 1 / sqrt(var + epsilon) */
} wide_stats;

/* Returns the sum of (x - shift)^power, power 1 or 2. */
static double wide_powers(const group_norm *p, const T *x, double shift, int power)
{
    double sum = 0;
    for (ptrdiff_t pixel = 0; pixel < p->pixels; pixel++)
        for (ptrdiff_t i = 0; i < p->rest; i++) {
            const double d = (double)ld(x[pixel * p->channels + i]) - shift;
            sum += power == 1 ? d : d * d;
        }
    return sum;
}

static wide_stats wide_stats_of(const group_norm *p, const T *x)
{
    const double m = (double)(p->rest * p->pixels), mean = wide_powers(p, x, 0, 1) / m;
    return (wide_stats){mean, 1 / sqrt(wide_powers(p, x, mean, 2) / m + p->epsilon)};
}

static void wide_forward(const group_norm *p, const T *x, const float *gamma, const float *beta,
                         T *y)
{
    const wide_stats t = wide_stats_of(p, x);
    for (ptrdiff_t pixel = 0; pixel < p->pixels; pixel++)
        for (ptrdiff_t i = 0; i < p->rest; i++) {
            const ptrdiff_t at = pixel * p->channels + i;
            const double xhat = ((double)ld(x[at]) - t.mean) * t.s;
            y[at] = st((float)(xhat * (double)gamma[i] + (double)beta[i]));
        }
}

static void wide_dx(const group_norm *p, const T *x, const float *gamma, const T *dy, T *dx)
{
    const wide_stats t = wide_stats_of(p, x);
    const double m = (double)(p->rest * p->pixels);
    double sum = 0, product = 0;
    for (ptrdiff_t pixel = 0; pixel < p->pixels; pixel++)
        for (ptrdiff_t i = 0; i < p->rest; i++) {
            const ptrdiff_t at = pixel * p->channels + i;
            const double w = (double)gamma[i] * (double)ld(dy[at]);
            sum += w;
            product += w * ((double)ld(x[at]) - t.mean) * t.s;
        }
    for (ptrdiff_t pixel = 0; pixel < p->pixels; pixel++)
        for (ptrdiff_t i = 0; i < p->rest; i++) {
            const ptrdiff_t at = pixel * p->channels + i;
            const double w = (double)gamma[i] * (double)ld(dy[at]);
            const double xhat = ((double)ld(x[at]) - t.mean) * t.s;
            dx[at] = st((float)(t.s * (w - sum / m - xhat * product / m)));
        }
}

/* Adds the sums of dy * xhat and of dy over the pixels. */
static void wide_sums(const group_norm *p, const T *x, const T *dy, double *dgamma, double *dbeta)
{
    const wide_stats t = wide_stats_of(p, x);
    for (ptrdiff_t pixel = 0; pixel < p->pixels; pixel++)
        for (ptrdiff_t i = 0; i < p->rest; i++) {
            const ptrdiff_t at = pixel * p->channels + i;
            const double d = (double)ld(dy[at]);
            dgamma[i] += d * (((double)ld(x[at]) - t.mean) * t.s);
            dbeta[i] += d;
        }
}

#endif
