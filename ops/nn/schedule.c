/* schedule.c - the learning rate as a function of the step alone: training resumed from a
 * checkpoint has the same rates. */
#include <math.h>
#include <string.h>

#include "model_list.h"
#include "names.h"
#include "nn.h"

/* Returns the rate after s of n steps: base at 0, last from n on. */
static double cosine(double base, double last, int64_t s, int64_t n)
{
    const double pi = 3.14159265358979323846;

    if (s >= n)
        return last;
    return last + (base - last) * (1 + cos(pi * (double)s / (double)n)) / 2;
}

double adj_schedule_rate(const adj_schedule *schedule, int64_t step)
{
    if (schedule == NULL)
        return 0;
    int64_t warmup = schedule->warmup > 0 ? schedule->warmup : 0, s = step > 0 ? step : 0;
    int64_t period = schedule->period > 0 ? schedule->period : 1;
    double base = schedule->base, factor = nn_or_default(schedule->factor, 0.1);

    if (s < warmup)
        return base * ((double)s + 1) / (double)warmup;
    s -= warmup;
    switch (schedule->kind) {
    case ADJ_SCHEDULE_STEP: return base * pow(factor, (double)(s / period));
    case ADJ_SCHEDULE_EXPONENTIAL: return base * pow(factor, (double)s / (double)period);
    case ADJ_SCHEDULE_COSINE: {
        int64_t total = schedule->total > warmup ? schedule->total - warmup : 0;
        return cosine(base, schedule->last, s, total);
    }
    default: return base;
    }
}

adj_schedule adj_recipe_schedule(const adj_recipe *recipe, int64_t epochs, int64_t steps)
{
    int64_t total;

    if (recipe == NULL || epochs < 0 || steps < 0 || __builtin_mul_overflow(epochs, steps, &total))
        return (adj_schedule){0};
    int64_t warmup = (int64_t)fmin(recipe->warmup * (double)steps, (double)total);
    adj_schedule s = {
        .kind = recipe->schedule, .base = recipe->lr, .warmup = warmup, .total = total};
    if (s.kind == ADJ_SCHEDULE_STEP || s.kind == ADJ_SCHEDULE_EXPONENTIAL)
        s.period = (total - warmup) / 3;
    return s;
}

static const char *const names[] = {"constant", "step", "exponential", "cosine"}; /* by kind */
enum { N_NAME = sizeof names / sizeof *names };

const char *adj_schedule_name_at(int i) { return i >= 0 && i < N_NAME ? names[i] : NULL; }

adj_status adj_schedule_from_name(const char *name, adj_schedule_kind *kind)
{
    for (int i = 0; name != NULL && kind != NULL && i < N_NAME; i++) {
        if (strcmp(name, names[i]) == 0) {
            *kind = (adj_schedule_kind)i;
            return ADJ_OK;
        }
    }
    return ADJ_EARG;
}
