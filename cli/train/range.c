/* range.c - see range.h. */
#include <math.h>

#include "cli/command.h"
#include "range.h"

/* One step of the test; its mean loss. */
static adj_status range_step(network *n, const train_opts *o, const adj_dataset *d, int64_t *order,
                             const adj_range_test *t, double *loss)
{
    int64_t steps = (d->n + o->batch - 1) / o->batch, epoch = t->n / steps, at = t->n % steps;
    const training_step s = {.order = order,
                             .lr = adj_range_test_rate(t),
                             .shift = o->shift,
                             .seed = (uint64_t)o->seed,
                             .drawn = (uint64_t)(epoch * steps * o->batch)};
    tally sum = {0};

    if (at == 0)
        adj_shuffle(d->n, (uint64_t)o->seed, (uint64_t)epoch, order);
    adj_status status = network_step(n, d, at * o->batch, &s, &sum);
    *loss = mean_loss(sum);
    return status;
}

static int run_test(network *n, const train_opts *o, const adj_dataset *d, int64_t *order,
                    adj_range_test *t)
{
    double loss = NAN;
    do {
        if (range_step(n, o, d, order, t, &loss) != ADJ_OK)
            return complain("train", EXIT_FAILED, "--lr auto: %s", n->m.error.message);
    } while (adj_range_test_add(t, loss));
    return CONTINUE;
}

int find_rate(const train_opts *o, const network_opts *options, const adj_dataset *d,
              int64_t *order, adj_range_test *t, double *lr)
{
    network n;
    int status = CONTINUE;

    *t = (adj_range_test){0};
    if (network_open(&n, options) != ADJ_OK)
        status = complain("train", n.m.model == NULL ? EXIT_USAGE : EXIT_FAILED, "%s",
                          n.m.error.message);
    else
        status = run_test(&n, o, d, order, t);
    network_close(&n);
    if (status != CONTINUE)
        return status;
    *lr = adj_range_test_choose(t);
    if (*lr > 0)
        return CONTINUE;
    return complain("train", EXIT_FAILED,
                    "--lr auto: the loss did not fall in %d steps with rates from %.1e to %.1e: "
                    "give --lr a number",
                    t->n, t->lr[0], t->lr[t->n - 1]);
}

void say_range(const adj_range_test *t, double lr)
{
    say("lr %.4g is from a range test: %d steps with rates from %.1e to %.1e", lr, t->n, t->lr[0],
        t->lr[t->n - 1]);
}

/* JSON has no infinity: null. */
static json_t *numbers(int n, const double value[])
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, isfinite(value[i]) ? json_real(value[i]) : json_null());
    return list;
}

json_t *json_range(const adj_range_test *t, double lr)
{
    return json_pack("{s:s, s:f, s:o, s:o, s:o}", "event", "range_test", "lr", lr, "rates",
                     numbers(t->n, t->lr), "losses", numbers(t->n, t->loss), "smooth",
                     numbers(t->n, t->smooth));
}
