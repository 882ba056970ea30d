/* loss_scale.c - a dynamic loss scale, built of nodes. The scale and the number of steps since
 * it changed are states; a step that overflows selects other next values (adj_select). The rule
 * is PyTorch's torch.cuda.amp.GradScaler (its update() and _amp_update_scale_); the idea is in
 * Micikevicius et al., "Mixed Precision Training" (2018), sections 3.2 and 3.3. */
#include <math.h>
#include <stdlib.h>

#include "nn.h"
#include "ops/grad.h"

/* Both limits and their inverses are normal numbers. If f16 gradients overflow even at MIN, no
 * scale helps. */
static const double MIN_SCALE = 0x1p-24, MAX_SCALE = 0x1p126;
enum { MAX_INTERVAL = 1 << 24 }; /* steps that f32 counts exactly */

adj_status nn_check_loss_scale(adj_graph *g, const adj_loss_scale *o)
{
    if (!(o->initial == 0 || (o->initial >= MIN_SCALE && o->initial <= MAX_SCALE)))
        return adj_fail(g, ADJ_EARG,
                        "adj_optimizer: loss_scale: initial is out of range (got %g, expected %g "
                        "to %g)",
                        o->initial, MIN_SCALE, MAX_SCALE);
    if (!(o->growth == 0 || (o->growth >= 1 && isfinite(o->growth))) ||
        !(o->backoff >= 0 && o->backoff < 1))
        return adj_fail(g, ADJ_EARG,
                        "adj_optimizer: loss_scale: growth or backoff is out of range (got %g and "
                        "%g, expected at least 1, and below 1)",
                        o->growth, o->backoff);
    if (o->interval < 0 || o->interval > MAX_INTERVAL)
        return adj_fail(g, ADJ_EARG,
                        "adj_optimizer: loss_scale: interval is out of range (got %lld, expected 0 "
                        "to %d)",
                        (long long)o->interval, (int)MAX_INTERVAL);
    return ADJ_OK;
}

nn_loss_scale nn_loss_scale_new(adj_graph *g, adj_dtype dtype, const adj_loss_scale *options)
{
    nn_loss_scale s = {.o = *options};

    s.o.initial = nn_or_default(s.o.initial, 65536);
    s.o.growth = nn_or_default(s.o.growth, 2);
    s.o.backoff = nn_or_default(s.o.backoff, 0.5);
    s.o.interval = s.o.interval != 0 ? s.o.interval : 2000;
    s.scale = nn_state(g, "loss_scale", dtype, (adj_shape){0}, s.o.initial);
    s.good_steps = nn_state(g, "loss_scale/good_steps", dtype, (adj_shape){0}, 0);
    s.skipped = nn_state(g, "loss_scale/skipped", dtype, (adj_shape){0}, 0);
    return s;
}

/* Tests the gradients before dividing, as PyTorch does: an overflow is not finite either way. */
void nn_unscale(nn_loss_scale *s, int n, adj_node *dx[])
{
    adj_graph *g = adj_node_graph(dx[0]);
    adj_node **all = calloc((size_t)n, sizeof(adj_node *));
    if (all == NULL) {
        adj_fail(g, ADJ_ENOMEM, "adj_optimizer: out of memory");
        return;
    }
    for (int i = 0; i < n; i++)
        all[i] = adj_in_dtype(dx[i], adj_node_type(s->scale).dtype);
    s->finite = adj_label(adj_all_finite(n, all), "gradients_finite");
    free(all);
    adj_node *one = adj_scalar_like(s->scale, 1), *inverse = adj_div(one, s->scale);
    for (int i = 0; i < n; i++) {
        adj_node *factor = adj_in_dtype(inverse, adj_node_type(dx[i]).dtype);
        dx[i] = adj_mul(dx[i], factor);
    }
}

/* Returns x clamped to the limits of a scale. */
static adj_node *within(const nn_loss_scale *s, adj_node *x)
{
    adj_node *low = adj_scalar_like(s->scale, MIN_SCALE),
             *high = adj_scalar_like(s->scale, MAX_SCALE);
    adj_node *above = adj_maximum(x, low);
    return adj_minimum(above, high);
}

void nn_update_loss_scale(const nn_loss_scale *s, adj_updates *u)
{
    adj_node *zero = adj_scalar_like(s->scale, 0), *one = adj_scalar_like(s->scale, 1);
    adj_node *interval = adj_scalar_like(s->scale, (double)s->o.interval);
    adj_node *count = adj_add(s->good_steps, one);
    adj_node *grows = adj_greater_equal(count, interval);
    adj_node *grown = within(s, adj_scale(s->scale, s->o.growth));
    adj_node *shrunk = within(s, adj_scale(s->scale, s->o.backoff));
    adj_node *after_good = adj_select(grows, grown, s->scale);
    adj_node *counted = adj_select(grows, zero, count);
    adj_node *failed = adj_sub(one, s->finite);

    adj_updates_add(u, s->scale, adj_select(s->finite, after_good, shrunk));
    adj_updates_add(u, s->good_steps, adj_select(s->finite, counted, zero));
    adj_updates_add(u, s->skipped, adj_add(s->skipped, failed));
}
