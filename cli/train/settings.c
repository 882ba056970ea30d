/* settings.c - defaults of a training from the model's recipe (ops/nn/models.c); --class-weights;
 * --lr auto. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/terminal.h"
#include "data.h"
#include "ops/nn/names.h"
#include "train.h"

enum { SCALE_INTERVAL = 2000 }; /* PyTorch's */

/* The tool's own entries come first; the others are adj_trainer_save's. */
void list_settings(train_opts *o, setting list[SETTINGS])
{
    const setting all[SETTINGS] = {
        {"data.size", "model", .o = {"size", .text = &o->data.size}},
        {"data.resize", "auto",
         .o = {"size resize", .text = &o->data.resize, .words = RESIZE_WORDS}},
        {"data.channels", "0",
         .o = {"size channels", .integer = &o->data.channels, .range = {0, 4}}},
        {"data.limit", "0", .o = {"limit", .integer = &o->data.limit, .range = {0, 1e9}}},
        {"data.val-split", "0", .o = {"val-split", .real = &o->data.val_split, .range = {0, 0.9}}},
        {"train.schedule", NULL, .o = {"schedule", .text = &o->schedule, .words = SCHEDULE_WORDS}},
        {"train.warmup", NULL, .o = {"schedule warmup", .real = &o->warmup, .range = {0, 100000}}},
        {"train.weight-decay", NULL,
         .o = {"optimizer weight-decay", .real = &o->weight_decay, .range = {0, 1}}},
        {"train.clip", NULL, .o = {"optimizer clip", .real = &o->clip, .range = {0, 1e6}}},
        {"train.smoothing", NULL, .o = {"smoothing", .real = &o->smoothing, .range = {0, 0.999}}},
        {"train.class-weights", "none", .o = {"class-weights", .text = &o->class_weights}},
        {"train.patience", "0", .o = {"patience", .integer = &o->patience, .range = {0, 100000}},
         .may_change = ALWAYS},
        {"model", "lenet", .o = {"model", .text = &o->model}},
        {"optimizer", NULL, .o = {"optimizer", .text = &o->optimizer}},
        {"backend", "onednn", .o = {"backend", .text = &o->backend}},
        {"precision", "f32", .o = {"precision", .text = &o->precision, .words = PRECISION_WORDS}},
        {"loss_scale", "0", .o = {"loss-scale", .real = &o->loss_scale, .range = {0, 1e9}}},
        {"loss_scale_interval", NULL,
         .o = {"loss-scale-interval", .integer = &o->scale_interval, .range = {0, 1e6}}},
        {"math", "exact", .o = {"math", .text = &o->math, .words = MATH_WORDS}},
        {"freeze", "none", .o = {"freeze", .text = &o->freeze}},
        {"batch", NULL, .o = {"batch", .integer = &o->batch, .range = {1, 100000}}},
        {"accumulate", "1",
         .o = {"batch accumulate", .integer = &o->accumulate, .range = {1, 10000}}, .before = "1"},
        {"shards", "0",
         .o = {"parallel shards", .integer = &o->shards, .range = {1, ADJ_MAX_SHARDS}},
         .before = "1"},
        {"same_bits", NULL, .o = {"same-bits", .integer = &o->same_bits, .range = {0, 1}},
         .before = "0"},
        {"sync_batch_norm", "0",
         .o = {"parallel sync-batch-norm", .integer = &o->sync_batch_norm, .range = {0, 1}},
         .before = "0"},
        {"flip", "0", .o = {"augment flip", .integer = &o->flip, .range = {0, 1}}},
        {"shift", NULL, .o = {"augment shift", .integer = &o->shift, .range = {0, ADJ_MAX_SHIFT}}},
        {"cutout", "0", .o = {"augment cutout", .integer = &o->cutout, .range = {0, ADJ_MAX_SIDE}}},
        {"jitter", "0", .o = {"augment jitter", .real = &o->jitter, .range = {0, 100}}},
        {"mixup", "0", .o = {"augment mixup", .real = &o->mixup, .range = {0, 1000}}},
        {"warmup", NULL, .o = {"warmup", .integer = &o->begun_warmup, .range = {0, 9e15}}},
        {"period", NULL, .o = {"period", .integer = &o->begun_period, .range = {0, 9e15}}},
        {"seed", "1", .o = {"seed", .integer = &o->seed, .range = {0, 9e15}}},
        {"lr", NULL, .o = {"lr", .real = &o->lr, .range = {1e-12, 1e6}}, .may_change = TO_PROLONG},
        {"epochs", "10", .o = {"epochs", .integer = &o->epochs, .range = {1, 100000}},
         .may_change = TO_PROLONG},
        {"threads", "0", .o = {"threads", .integer = &o->threads, .range = {0, MAX_THREADS}},
         .may_change = ALWAYS},
    };
    memcpy(list, all, sizeof all);
}

static void set_default(int64_t *option, int64_t value)
{
    if (*option == UNSET)
        *option = value;
}

static void set_default_real(double *option, double value)
{
    if (*option < 0)
        *option = value;
}

/* Sets rate and decay to the optimizer's defaults if it is not the recipe's optimizer. */
static void set_optimizer_defaults(train_opts *o, adj_recipe *r)
{
    const char *own = adj_optimizer_name(&r->optimizer);
    adj_optimizer_opts given;

    if (o->optimizer == NULL)
        o->optimizer = own;
    if (strcmp(o->optimizer, own) != 0 && adj_optimizer_from_name(o->optimizer, &given) == ADJ_OK) {
        given.clip_norm = r->optimizer.clip_norm;
        r->optimizer = given;
        r->lr = adj_optimizer_rate(&given);
    }
    set_default_real(&o->lr, r->lr);
    set_default_real(&o->weight_decay, r->optimizer.weight_decay);
    set_default_real(&o->clip, r->optimizer.clip_norm);
}

int is_set(const option *o)
{
    if (o->text != NULL)
        return *o->text != NULL;
    return o->integer != NULL ? *o->integer != UNSET : *o->real >= 0;
}

train_opts unset_train_opts(void)
{
    train_opts o = {.begun_epochs = UNSET};
    setting list[SETTINGS];
    list_settings(&o, list);
    for (int i = 0; i < SETTINGS; i++) {
        if (list[i].o.integer != NULL)
            *list[i].o.integer = UNSET;
        if (list[i].o.real != NULL)
            *list[i].o.real = UNSET;
    }
    return o;
}

void set_train_defaults(train_opts *o)
{
    setting list[SETTINGS];
    list_settings(o, list);
    set_default(&o->same_bits, o->shards > 0);
    for (int i = 0; i < SETTINGS; i++) {
        const setting *s = &list[i];
        if (s->usual == NULL || is_set(&s->o))
            continue;
        if (s->o.text != NULL)
            *s->o.text = s->usual;
        else if (s->o.integer != NULL)
            *s->o.integer = strtoll(s->usual, NULL, 10);
        else
            *s->o.real = strtod(s->usual, NULL);
    }
    set_default(&o->scale_interval,
                strcmp(o->precision, "f16") == 0 && o->loss_scale == 0 ? SCALE_INTERVAL : 0);

    adj_recipe recipe = adj_recipe_for(adj_model_find(o->model, NULL), o->epochs);
    set_optimizer_defaults(o, &recipe);
    o->schedule = o->schedule != NULL ? o->schedule : adj_schedule_name_at(recipe.schedule);
    set_default_real(&o->warmup, recipe.warmup);
    set_default_real(&o->smoothing, recipe.smoothing);
    set_default(&o->batch, recipe.batch);
    set_default(&o->shift, recipe.shift);
}

adj_recipe recipe_of(const train_opts *o)
{
    adj_recipe r = {.lr = o->lr,
                    .warmup = o->warmup,
                    .smoothing = o->smoothing,
                    .batch = o->batch,
                    .shift = o->shift};
    (void)adj_optimizer_from_name(o->optimizer, &r.optimizer);
    (void)adj_schedule_from_name(o->schedule, &r.schedule);
    r.optimizer.weight_decay = o->weight_decay;
    r.optimizer.clip_norm = o->clip;
    return r;
}

/* value 0: the item is omitted; "flip" has no value to print. */
static void append(char text[AUGMENTATION_TEXT], const char *name, double value, int is_flag)
{
    const char *between = text[0] != '\0' ? ", " : "";
    if (value > 0 && is_flag)
        c_append(text, AUGMENTATION_TEXT, "%s%s", between, name);
    else if (value > 0)
        c_append(text, AUGMENTATION_TEXT, "%s%s %.4g", between, name, value);
}

const char *augmentation_text(const train_opts *o, char text[AUGMENTATION_TEXT])
{
    text[0] = '\0';
    append(text, "shift", (double)o->shift, 0);
    append(text, "flip", (double)o->flip, 1);
    append(text, "cutout", (double)o->cutout, 0);
    append(text, "jitter", o->jitter, 0);
    append(text, "mixup", o->mixup, 0);
    return text[0] != '\0' ? text : "none";
}

/* ---- --class-weights ---- */

static const double max_weight = 1e6;

/* Reads a list of numbers, the first n into weights. Returns their count; -1 if a number is invalid
 * or negative, or all are 0. */
static int64_t read_list(const char *text, int64_t n, float *weights)
{
    int64_t count = 0;
    double sum = 0;
    for (;; count++, text++) {
        char *end;
        double value = strtod(text, &end);
        if (end == text || isspace((unsigned char)*text) || !(value >= 0 && value <= max_weight) ||
            (*end != ',' && *end != '\0'))
            return -1;
        if (count < n)
            weights[count] = (float)value;
        sum += value;
        text = end;
        if (*text == '\0')
            break;
    }
    return sum > 0 ? count + 1 : -1;
}

static int refuse_weights(const char *text, const adj_dataset *d, int64_t count)
{
    if (count >= 0)
        return complain(EXIT_USAGE,
                        "--class-weights: expected a number for each of %d classes (got %lld)",
                        d->classes, (long long)count);
    return complain(EXIT_USAGE,
                    "--class-weights: expected none, balanced or numbers from 0 to %g with commas, "
                    "not all 0 (got \"%s\")",
                    max_weight, text);
}

int read_class_weights(const char *text, const adj_dataset *d, float **weights)
{
    *weights = NULL;
    if (strcmp(text, "none") == 0)
        return CONTINUE;
    *weights = allocate(d->classes, sizeof **weights);
    if (strcmp(text, "balanced") == 0) {
        int64_t *images = count_classes(d);
        for (int k = 0; k < d->classes; k++)
            if (images[k] > 0)
                (*weights)[k] = (float)((double)d->n / ((double)d->classes * (double)images[k]));
        free(images);
        return CONTINUE;
    }
    const int64_t count = read_list(text, d->classes, *weights);
    return count == d->classes ? CONTINUE : refuse_weights(text, d, count);
}

/* ---- --lr auto ---- */

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

    say_wrapped("learning-rate range test: up to %d steps", ADJ_RANGE_STEPS);
    fflush(stdout);
    *t = (adj_range_test){0};
    o.schedule = &schedule;
    o.exec.tune = 0;            /* no tuning, so that the rate does not depend on timing */
    o.epochs = ADJ_RANGE_STEPS; /* an epoch has at least one step */
    o.checkpoint.best = o.checkpoint.path = NULL;
    o.checkpoint.every = 0;
    o.on.step = on_step;
    o.on.epoch = NULL;
    o.on.user = t;
    if (adj_trainer_new(net, d, NULL, &o, &trainer, &error) != ADJ_OK)
        return complain(EXIT_FAILED, "%s", error.message);
    adj_status status = adj_trainer_run(trainer, &error);
    const double last = adj_trainer_progress(trainer).step_loss;
    adj_trainer_free(trainer);
    const double found = adj_range_test_choose(t);
    if (status != ADJ_OK && (isfinite(last) || t->n < 2))
        return complain(EXIT_FAILED, "--lr auto: %s", error.message);
    const int is_repeated = d->n < t->n * options->batch * options->accumulate;
    if (found > 0) {
        *lr = is_repeated ? fmin(fmax(found, *lr / 10), *lr) : found;
        return CONTINUE;
    }
    return complain(EXIT_FAILED,
                    "--lr auto: the loss did not fall in %d steps with rates from %.1e to %.1e; "
                    "set --lr to a number (without --lr: %g)",
                    t->n, t->lr[0], t->lr[t->n - 1], *lr);
}

void say_range(const adj_range_test *t, double lr)
{
    const double found = adj_range_test_choose(t);
    say_wrapped("lr %.4g from a range test: %d steps with rates from %.1e to %.1e", lr, t->n,
                t->lr[0], t->lr[t->n - 1]);
    if (found != lr)
        say_wrapped("note: the test went through the few images repeatedly and found %.4g; the "
                    "rate is limited to %s",
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
