/* settings.c - fills in the defaults of a training's settings, and converts settings to text. Reals
 * are written in hexadecimal, so that they are read back bit for bit. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/limits.h"
#include "graph/op.h"
#include "ops/nn/names.h"
#include "trainer.h"

enum { MAX_THREADS = 1024 };
static const double huge = 9e15; /* limit of a whole number in a file */

/* ---- completing ---- */

/* Returns the name of the optimizer, independent of decay and clipping. */
static const char *optimizer_name(const adj_optimizer_opts *o)
{
    const char *name = adj_optimizer_name(o);
    const int has_defaults = o->beta1 == 0 && o->beta2 == 0 && o->epsilon == 0;
    return name != NULL && has_defaults ? name : "other";
}

/* Sets s->groups to a checksum of the parameter groups. */
static void set_groups(settings *s, const adj_optimizer_opts *o)
{
    uint64_t sum = HASH_START;
    for (int i = 0; i < o->n_groups && o->groups != NULL; i++) {
        const adj_param_group *group = &o->groups[i];
        const double decay = group->weight_decay, rate = group->rate != 0 ? group->rate : 1;
        if (group->pattern != NULL)
            sum = hash_text(sum, group->pattern);
        sum = hash_bytes(hash_bytes(sum, &decay, sizeof decay), &rate, sizeof rate);
    }
    snprintf(s->groups_sum, sizeof s->groups_sum, "%016llx", (unsigned long long)sum);
    s->groups = o->n_groups > 0 ? s->groups_sum : "none";
}

static void set_optimizer(settings *s, adj_optimizer_opts *o)
{
    if (o->kind == ADJ_OPTIMIZER_DEFAULT) {
        o->kind = ADJ_SGD;
        o->momentum = o->momentum != 0 ? o->momentum : 0.9;
    }
    s->optimizer = optimizer_name(o);
    o->nesterov = o->nesterov != 0;
    o->lr = o->lr != 0 ? o->lr : adj_optimizer_rate(o);
    set_groups(s, o);
}

/* f16 has a scale that follows the gradients unless a fixed one is given; others if the optimizer
 * asks for one. */
static adj_status set_loss_scale(settings *s, adj_error *error)
{
    const adj_fit_opts *o = &s->o;
    const adj_loss_scale *given = o->optimizer.loss_scale;
    const int is_f16 = o->exec.precision == ADJ_PRECISION_F16;

    if (o->exec.loss_scale != 0 && (given != NULL || !is_f16))
        return adj_error_set(error, ADJ_EARG, "fit: loss_scale (got %g) %s", o->exec.loss_scale,
                             is_f16 ? "cannot be combined with the optimizer's loss scale"
                                    : "requires precision f16");
    s->scale_follows = given != NULL || (is_f16 && o->exec.loss_scale == 0);
    if (given != NULL)
        s->scale = *given;
    return ADJ_OK;
}

/* Fails if a class weight is negative or not finite, or if all are 0. */
static adj_status check_weights(const float *weights, int64_t classes, adj_error *error)
{
    int is_any = weights == NULL;
    for (int64_t i = 0; i < classes && weights != NULL; i++) {
        if (!(weights[i] >= 0) || !isfinite(weights[i]))
            return adj_error_set(error, ADJ_EARG,
                                 "fit: class_weights[%lld] is out of range (got %g, expected a "
                                 "finite number from 0 on)",
                                 (long long)i, (double)weights[i]);
        is_any |= weights[i] > 0;
    }
    return is_any ? ADJ_OK
                  : adj_error_set(error, ADJ_EARG,
                                  "fit: class_weights are all 0 (expected one above 0)");
}

static void set_weighting(settings *s, const float *weights)
{
    const size_t bytes = weights != NULL ? (size_t)s->classes * sizeof *weights : 0;
    const uint64_t sum = hash_bytes(HASH_START, weights, bytes);
    snprintf(s->weights_sum, sizeof s->weights_sum, "%016llx", (unsigned long long)sum);
    s->weighting = weights != NULL ? s->weights_sum : "none";
}

static int is_word(const char *text) { return is_entry_text(text) && strlen(text) < 200; }

static int64_t whole_of(const entry *e) { return e->integer != NULL ? *e->integer : *e->small; }

/* Fails if a number or a word is one that a checkpoint cannot have. */
static adj_status check(settings *s, adj_error *error)
{
    entry list[MAX_ENTRIES];
    char text[ENTRY_TEXT];
    int n = settings_entries(s, list);

    for (int i = 0; i < n; i++) {
        if (list[i].text != NULL && !is_word(*list[i].text))
            return adj_error_set(error, ADJ_EARG,
                                 "fit: %s is invalid (got \"%.80s\", expected 1 to 199 bytes "
                                 "without control characters)",
                                 list[i].key, *list[i].text);
        if (list[i].text != NULL)
            continue;
        double v = list[i].real != NULL ? *list[i].real : (double)whole_of(&list[i]);
        if (!(v >= list[i].low && v <= list[i].high)) {
            c_snprintf(text, sizeof text, "%g", v);
            return adj_error_set(error, ADJ_EARG,
                                 "fit: %s is out of range (got %s, expected %g to %g)", list[i].key,
                                 text, list[i].low, list[i].high);
        }
    }
    return ADJ_OK;
}

/* Checks that every rank gets the same number of shards, and every shard the same number of images.
 */
static adj_status check_shards(const settings *s, int ranks, adj_error *error)
{
    if (s->shards % ranks != 0)
        return adj_error_set(
            error, ADJ_EARG,
            "fit: shards cannot be divided among the ranks (got %lld, expected a multiple of %d)",
            (long long)s->shards, ranks);
    if (s->o.batch % s->shards != 0)
        return adj_error_set(
            error, ADJ_EARG,
            "fit: batch cannot be divided into shards (got %lld, expected a multiple of %lld)",
            (long long)s->o.batch, (long long)s->shards);
    return ADJ_OK;
}

/* Cuts batch and accumulation to the n training images: a larger step would compute fillers. */
static void cut_batch(settings *s, int64_t n)
{
    const int64_t all = batches(n, s->shards) * s->shards;
    if (s->o.batch > all)
        s->o.batch = all;
    if (s->o.accumulate > batches(n, s->o.batch))
        s->o.accumulate = batches(n, s->o.batch);
}

/* Fills in the defaults. Options that are true have the value 1. */
static void set_defaults(adj_fit_opts *o)
{
    o->epochs = o->epochs != 0 ? o->epochs : 10;
    o->batch = o->batch != 0 ? o->batch : 64;
    o->accumulate = o->accumulate != 0 ? o->accumulate : 1;
    const adj_backend *const *own = o->distributed.ranks == NULL ? o->exec.backends : NULL;
    if (o->exec.backend == NULL)
        o->exec.backend = own != NULL && own[0] != NULL ? own[0]->name : "onednn";
    if (o->exec.threads == 0) {
        const int n = adj_default_threads();
        o->exec.threads = n < MAX_THREADS ? n : MAX_THREADS;
    }
    o->exec.same_bits = o->exec.same_bits != 0;
    o->augment.flip = o->augment.flip != 0;
    o->distributed.parallel.sync_batch_norm = o->distributed.parallel.sync_batch_norm != 0;
}

adj_status settings_complete(settings *s, const adj_net *net, int64_t n, adj_error *error)
{
    static const adj_schedule cosine = {.kind = ADJ_SCHEDULE_COSINE};
    const int ranks = ranks_size(s->o.distributed.ranks), shards = s->o.distributed.parallel.shards;

    set_defaults(&s->o);
    s->model = net_name(net);
    s->freeze = net->options.freeze != NULL ? net->options.freeze : "none";
    s->loss = net_loss_name(net);
    s->size = net->options.size;
    s->classes = net->options.classes;
    s->shards = shards != 0 ? shards : ranks;
    s->rate = s->o.schedule != NULL ? *s->o.schedule : cosine;
    set_weighting(s, s->o.loss.class_weights);
    set_optimizer(s, &s->o.optimizer);
    adj_status status = set_loss_scale(s, error);
    if (status == ADJ_OK)
        status = check_weights(s->o.loss.class_weights, s->classes, error);
    if (status == ADJ_OK)
        status = check(s, error);
    if (status == ADJ_OK)
        status = check_shards(s, ranks, error);
    if (status == ADJ_OK)
        cut_batch(s, n);
    return status;
}

double settings_rate(const settings *s, int64_t epoch, int64_t step, int64_t steps)
{
    adj_schedule c = s->rate;
    c.base = c.base != 0 ? c.base : s->o.optimizer.lr;
    c.total = c.total != 0 ? c.total : (s->o.epochs - s->begun) * steps;
    return adj_schedule_rate(&c, (epoch - s->begun) * steps + step);
}

/* ---- as text ---- */

static const char *const precisions[] = {"f32", "bf16", "f16", NULL};
static const char *const maths[] = {"exact", "fast", NULL};
static const char *const schedules[] = {"constant", "step", "exponential", "cosine", NULL};
static const char *const kinds[] = {"default", "sgd", "adam", "adamw", "rmsprop", NULL};

/* Lists the settings in the order in which they are compared. */
int settings_entries(settings *s, entry list[MAX_ENTRIES])
{
    adj_fit_opts *o = &s->o;
    const entry all[] = {
        {"model", .text = &s->model},
        {"optimizer", .text = &s->optimizer},
        {"backend", .text = &o->exec.backend},
        {"precision", .small = (int *)&o->exec.precision, .high = 2, .words = precisions},
        {"math", .small = (int *)&o->exec.math, .high = 1, .words = maths},
        {"freeze", .text = &s->freeze},
        {"epochs", .integer = &o->epochs, .low = 1, .high = 100000, .may_change = ALWAYS},
        {"batch", .integer = &o->batch, .low = 1, .high = 100000},
        {"accumulate", .integer = &o->accumulate, .low = 1, .high = 10000, .before = "1"},
        {"shards", .integer = &s->shards, .low = 1, .high = ADJ_MAX_SHARDS, .before = "1"},
        {"same_bits", .small = &o->exec.same_bits, .high = 1, .before = "0"},
        {"sync_batch_norm", .small = &o->distributed.parallel.sync_batch_norm, .high = 1,
         .before = "0"},
        {"shift", .integer = &o->augment.shift, .high = ADJ_MAX_SHIFT},
        {"seed", .integer = (int64_t *)&o->exec.seed, .high = huge},
        {"lr", .real = &o->optimizer.lr, .low = 1e-12, .high = 1e6, .may_change = TO_PROLONG},
        {"threads", .small = &o->exec.threads, .high = MAX_THREADS, .may_change = ALWAYS},
        {"begun", .integer = &s->begun, .high = 100000, .may_change = ALWAYS},
        {"classes", .integer = &s->classes, .low = 1, .high = ADJ_MAX_CLASSES},
        {"height", .integer = &s->size.h, .low = 1, .high = ADJ_MAX_SIDE},
        {"width", .integer = &s->size.w, .low = 1, .high = ADJ_MAX_SIDE},
        {"channels", .integer = &s->size.c, .low = 1, .high = ADJ_MAX_CHANNELS},
        {"schedule", .small = (int *)&s->rate.kind, .high = 3, .words = schedules},
        {"warmup", .integer = &s->rate.warmup, .high = huge},
        {"total", .integer = &s->rate.total, .high = huge},
        {"period", .integer = &s->rate.period, .high = huge},
        {"base", .real = &s->rate.base, .high = 1e6},
        {"factor", .real = &s->rate.factor, .high = 1e6},
        {"last", .real = &s->rate.last, .high = 1e6},
        {"kind", .small = (int *)&o->optimizer.kind, .high = 4, .words = kinds},
        {"momentum", .real = &o->optimizer.momentum, .high = 1},
        {"nesterov", .small = &o->optimizer.nesterov, .high = 1},
        {"beta1", .real = &o->optimizer.beta1, .high = 1},
        {"beta2", .real = &o->optimizer.beta2, .high = 1},
        {"epsilon", .real = &o->optimizer.epsilon, .high = 1},
        {"weight_decay", .real = &o->optimizer.weight_decay, .high = 1e6},
        {"clip_norm", .real = &o->optimizer.clip_norm, .high = 1e30},
        {"groups", .text = &s->groups, .before = "none"},
        {"net_loss", .text = &s->loss, .before = "softmax"},
        {"weighting", .text = &s->weighting},
        {"smoothing", .real = &o->loss.smoothing, .high = 1},
        {"flip", .small = &o->augment.flip, .high = 1},
        {"cutout", .integer = &o->augment.cutout, .high = ADJ_MAX_SIDE},
        {"jitter", .real = &o->augment.jitter, .high = 100},
        {"mixup", .real = &o->augment.mixup, .high = 1e6},
        {"loss_scale", .real = &o->exec.loss_scale, .high = 0x1p126},
        {"loss_scale_follows", .small = &s->scale_follows, .high = 1},
        {"loss_scale_initial", .real = &s->scale.initial, .high = 0x1p126},
        {"loss_scale_growth", .real = &s->scale.growth, .high = 0x1p126},
        {"loss_scale_backoff", .real = &s->scale.backoff, .high = 1},
        {"loss_scale_interval", .integer = &s->scale.interval, .high = 1 << 24},
    };
    memcpy(list, all, sizeof all);
    return (int)(sizeof all / sizeof *all);
}

const char *entry_text(const entry *e, char number[ENTRY_TEXT])
{
    if (e->text != NULL)
        return *e->text;
    if (e->words != NULL)
        return e->words[whole_of(e)];
    if (e->real == NULL)
        snprintf(number, ENTRY_TEXT, "%lld", (long long)whole_of(e));
    else
        c_snprintf(number, ENTRY_TEXT, "%a", *e->real);
    return number;
}

static void store_whole(const entry *e, int64_t value)
{
    if (e->integer != NULL)
        *e->integer = value;
    else
        *e->small = (int)value;
}

static int store_number(const entry *e, const char *text)
{
    char *end = NULL;
    errno = 0;
    const long long whole = e->real == NULL ? strtoll(text, &end, 10) : 0;
    const double real = e->real == NULL ? (double)whole : c_strtod(text, &end);
    if (end == text || *end != '\0' || errno != 0 || !isfinite(real) || real < e->low ||
        real > e->high)
        return 0;
    if (e->real == NULL)
        store_whole(e, whole);
    else
        *e->real = real;
    return 1;
}

int entry_store(const entry *e, const char *text)
{
    if (!is_word(text))
        return 0;
    for (int64_t i = 0; e->words != NULL && e->words[i] != NULL; i++)
        if (strcmp(e->words[i], text) == 0) {
            store_whole(e, i);
            return 1;
        }
    if (e->words != NULL || e->text == NULL)
        return e->words == NULL && store_number(e, text);
    *e->text = text;
    return 1;
}
