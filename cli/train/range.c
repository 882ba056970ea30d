/* range.c - train --lr auto: see train.h. */
#include <math.h>

#include "cli/command.h"
#include "cli/json.h"
#include "cli/terminal.h"
#include "train.h"

static int on_step(void *user, const adj_fit_progress *now)
{
    return !adj_range_test_add(user, now->step_loss);
}

/* Returns the test's rates as a schedule. */
static adj_schedule rising(void)
{
    adj_range_test first = {0}, last = {.n = ADJ_RANGE_STEPS - 1};
    const double base = adj_range_test_rate(&first);
    return (adj_schedule){.kind = ADJ_SCHEDULE_EXPONENTIAL,
                          .base = base,
                          .period = 1,
                          .factor =
                              pow(adj_range_test_rate(&last) / base, 1.0 / (ADJ_RANGE_STEPS - 1))};
}

int find_rate(const adj_net *net, const adj_dataset *d, const adj_fit_opts *options,
              adj_range_test *t, double *lr)
{
    const adj_schedule schedule = rising();
    adj_fit_opts o = *options;
    adj_trainer *trainer = NULL;
    adj_error error = {0};

    say_wrapped(NULL, "learning-rate range test: up to %d steps", ADJ_RANGE_STEPS);
    fflush(stdout);
    *t = (adj_range_test){0};
    o.schedule = &schedule;
    o.exec.tune = 0;            /* no tuning, so that the rate does not depend on timing */
    o.epochs = ADJ_RANGE_STEPS; /* of a step at least */
    o.checkpoint.best = o.checkpoint.path = NULL;
    o.checkpoint.every = 0;
    o.on.step = on_step;
    o.on.epoch = NULL;
    o.on.user = t;
    if (adj_trainer_new(net, d, NULL, &o, &trainer, &error) != ADJ_OK)
        return complain("train", EXIT_FAILED, "%s", error.message);
    adj_status status = adj_trainer_run(trainer, &error);
    const double last = adj_trainer_progress(trainer).step_loss;
    adj_trainer_free(trainer);
    const double found = adj_range_test_choose(t);
    if (status != ADJ_OK && (isfinite(last) || t->n < 2))
        return complain("train", EXIT_FAILED, "--lr auto: %s", error.message);
    const int is_repeated = d->n < t->n * options->batch * options->accumulate;
    if (found > 0) {
        *lr = is_repeated ? fmin(fmax(found, *lr / 10), *lr) : found;
        return CONTINUE;
    }
    return complain("train", EXIT_FAILED,
                    "--lr auto: the loss did not fall in %d steps with rates from %.1e to %.1e; "
                    "set --lr to a number (without --lr: %g)",
                    t->n, t->lr[0], t->lr[t->n - 1], *lr);
}

void say_range(const adj_range_test *t, double lr)
{
    const double found = adj_range_test_choose(t);
    say_wrapped(NULL, "lr %.4g from a range test: %d steps with rates from %.1e to %.1e", lr, t->n,
                t->lr[0], t->lr[t->n - 1]);
    if (found != lr)
        say_wrapped(
            NULL,
            "note: the test went through the few images repeatedly and found %.4g; the rate "
            "is limited to %s",
            found, found > lr ? "the default" : "a tenth of the default");
}

static json_t *numbers(int n, const double value[])
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_number(value[i]));
    return list;
}

json_t *json_range(const adj_range_test *t, double lr)
{
    return json_pack("{s:s, s:f, s:o, s:o, s:o}", "event", "range_test", "lr", lr, "rates",
                     numbers(t->n, t->lr), "losses", numbers(t->n, t->loss), "smooth",
                     numbers(t->n, t->smooth));
}
