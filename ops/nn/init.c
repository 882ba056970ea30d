/* init.c - initial values whose variance keeps activations at about one size from layer to
 * layer: he for layers followed by a relu; glorot balances gradients as well. */
#include <math.h>

#include "adjoint_nn.h"

static double fan(int64_t n) { return n < 1 ? 1 : (double)n; }

adj_init adj_init_uniform(double low, double high)
{
    return (adj_init){ADJ_INIT_UNIFORM, low, high};
}

adj_init adj_init_normal(double mean, double deviation)
{
    return (adj_init){ADJ_INIT_NORMAL, mean, deviation};
}

adj_init adj_init_constant(double value) { return (adj_init){ADJ_INIT_CONSTANT, value, 0}; }

adj_init adj_init_he_normal(int64_t fan_in) { return adj_init_normal(0, sqrt(2 / fan(fan_in))); }

/* A uniform in [-r, r) has variance r*r/3. */
adj_init adj_init_he_uniform(int64_t fan_in)
{
    double r = sqrt(6 / fan(fan_in));
    return adj_init_uniform(-r, r);
}

adj_init adj_init_glorot_normal(int64_t fan_in, int64_t fan_out)
{
    return adj_init_normal(0, sqrt(2 / (fan(fan_in) + fan(fan_out))));
}

adj_init adj_init_glorot_uniform(int64_t fan_in, int64_t fan_out)
{
    double r = sqrt(6 / (fan(fan_in) + fan(fan_out)));
    return adj_init_uniform(-r, r);
}
