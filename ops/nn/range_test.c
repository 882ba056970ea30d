/* range_test.c - a learning-rate range test: the net is trained for a few hundred steps while
 * the rate rises exponentially, and the loss curve shows which rates are large enough to learn
 * with and which are too large.
 *
 * The method is L. N. Smith's, "Cyclical Learning Rates for Training Neural Networks" (2015),
 * section 3.3. The exponential rise, the end at four times the least loss, and the choice of a
 * tenth of the rate of the least loss are fastai's (lr_find, suggestion "minimum"). */
#include <math.h>

#include "range_test.h"

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
