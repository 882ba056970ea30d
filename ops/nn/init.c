/* init.c - initial values whose variance keeps activations at about one size from layer to
 * layer: he for layers followed by a relu; glorot balances gradients as well. */
#include <math.h>

#include "adjoint_nn.h"

static double fan(int64_t n) { return n < 1 ? 1 : (double)n; }

adj_init adj_init_uniform(double low, double high)
{
    return (adj_init){.kind = ADJ_INIT_UNIFORM, .a = low, .b = high};
}

adj_init adj_init_normal(double mean, double deviation)
{
    return (adj_init){.kind = ADJ_INIT_NORMAL, .a = mean, .b = deviation};
}

adj_init adj_init_constant(double value)
{
    return (adj_init){.kind = ADJ_INIT_CONSTANT, .a = value};
}

/* A uniform in [-r, r) has variance r*r/3. */
adj_init adj_init_from_fans(adj_weight_init init, int64_t fan_in, int64_t fan_out)
{
    const int is_glorot = init == ADJ_GLOROT_NORMAL || init == ADJ_GLOROT_UNIFORM;
    const double fans = is_glorot ? fan(fan_in) + fan(fan_out) : fan(fan_in);

    if (init == ADJ_HE_UNIFORM || init == ADJ_GLOROT_UNIFORM)
        return adj_init_uniform(-sqrt(6 / fans), sqrt(6 / fans));
    return adj_init_normal(0, sqrt(2 / fans));
}
