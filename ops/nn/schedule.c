/* schedule.c - the learning rate as a function of the step alone, so that training resumed from a
 * checkpoint has the same rates; and a test that finds the rate to begin with. */
#include <math.h>
#include <string.h>

#include "model_list.h"
#include "names.h"
#include "nn.h"
#include "range_test.h"

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

/* ---- a learning-rate range test ----
 *
 * The net is trained for a few hundred steps while the rate rises exponentially, and the loss curve
 * shows which rates are large enough to learn with and which are too large.
 *
 * The method is L. N. Smith's, "Cyclical Learning Rates for Training Neural Networks" (2015),
 * section 3.3. The exponential rise, the end at four times the least loss, and the choice of a
 * tenth of the rate of the least loss are fastai's (lr_find, suggestion "minimum"). */

static const double FIRST = 1e-6, LAST = 10;
static const double NEW = 0.1; /* weight of a new loss in the average, which lags by 9 steps */

double adj_range_test_rate(const adj_range_test *t)
{
    return FIRST * pow(LAST / FIRST, (double)t->n / (ADJ_RANGE_STEPS - 1));
}

/* Returns the step of the minimum smoothed loss; -1 if there is none. */
static int argmin(const adj_range_test *t)
{
    int best = -1;
    for (int i = 0; i < t->n; i++)
        if (isfinite(t->smooth[i]) && (best < 0 || t->smooth[i] < t->smooth[best]))
            best = i;
    return best;
}

int adj_range_test_add(adj_range_test *t, double loss)
{
    if (t->n < 0 || t->n >= ADJ_RANGE_STEPS)
        return 0;
    int i = t->n;
    t->lr[i] = adj_range_test_rate(t);
    t->loss[i] = loss;
    t->smooth[i] = i == 0 ? loss : t->smooth[i - 1] + NEW * (loss - t->smooth[i - 1]);
    t->n++;
    int best = argmin(t);
    return t->n < ADJ_RANGE_STEPS && isfinite(loss) && best >= 0 &&
           t->smooth[i] - t->smooth[best] <= 3 * fabs(t->smooth[best]);
}

double adj_range_test_choose(const adj_range_test *t)
{
    int best = argmin(t);
    return best > 0 ? t->lr[best] / 10 : 0;
}
