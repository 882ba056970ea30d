/* mixup.c - batches whose images are mixed in pairs, i with n-1-i, and how much of each there is.
 *
 * The share is drawn from Beta(alpha, alpha) as g / (g + h) for two draws from Gamma(alpha), by
 * Marsaglia and Tsang (A simple method for generating gamma variables, 2000). Since both images of
 * a pair are in the batch, mix and 1 - mix make the same batch in another order; the larger one
 * leaves to each image its own label as the weightier. */
#include <math.h>

#include "augment.h"

uint64_t io_mixup_key(uint64_t seed, int64_t epoch, int64_t step)
{
    return io_key(io_key(seed, 0x6d69787570u, (uint64_t)epoch), 1, (uint64_t)step);
}

typedef struct {
    uint64_t key, used;
} draws;

/* Uniform in (0, 1): its logarithm is finite and negative. */
static double uniform(draws *d) { return io_unit(io_mix(d->key + d->used++)) + 0x1p-54; }

/* Box and Muller's first. */
static double normal(draws *d)
{
    double radius = sqrt(-2 * log(uniform(d)));
    return radius * cos(6.283185307179586 * uniform(d));
}

/* The logarithm of a draw from Gamma(alpha): for small alpha the draw itself underflows. Below 1 it
 * is one from Gamma(alpha + 1) times u^(1 / alpha). */
static double log_gamma_draw(double alpha, draws *d)
{
    double boost = alpha < 1 ? log(uniform(d)) / alpha : 0;
    double shape = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3, scale = 1 / sqrt(9 * shape);

    for (;;) {
        double z = normal(d), v = 1 + scale * z, u = uniform(d);
        if (v <= 0)
            continue;
        v = v * v * v;
        if (log(u) < 0.5 * z * z + shape * (1 - v + log(v)))
            return log(shape * v) + boost;
    }
}

double io_mixup_share(double alpha, uint64_t key)
{
    draws d = {key, 0};
    double g = log_gamma_draw(alpha, &d), h = log_gamma_draw(alpha, &d);
    return 1 / (1 + exp(-fabs(g - h)));
}

void io_mixup(float *x, int64_t n, int64_t elems, float mix)
{
    for (int64_t i = 0; i < n / 2; i++) {
        float *a = x + i * elems, *b = x + (n - 1 - i) * elems;
        for (int64_t k = 0; k < elems; k++) {
            float kept = a[k];
            a[k] = mix * kept + (1 - mix) * b[k];
            b[k] = mix * b[k] + (1 - mix) * kept;
        }
    }
}
