/* trainer.c - a training: its networks, steps and epochs. A step depends only on the settings, the
 * position and the parameters, so a resumed training repeats the uninterrupted one bit for bit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/ranks_meter.h"
#include "exec/internal.h"
#include "exec/report.h"
#include "io/data/origin.h"
#include "trainer.h"

/* ---- made ---- */

static adj_status open_loader(adj_trainer *t, adj_error *error)
{
    const adj_shape s = t->steps_net.shape;
    const int threads = t->o.loaders, n_shard = t->steps_net.n_shard;
    const adj_loader_opts o = {.batch = step_images(&t->set),
                               .size = {s.dim[1], s.dim[2], s.dim[3]},
                               .threads = threads == 0  ? 1
                                          : threads < 0 ? 0
                                                        : threads,
                               .shuffle = 1,
                               .seed = (uint64_t)t->set.seed,
                               .augment = t->o.augment};
    const loader_shards shards = {.shards = step_shards(&t->set),
                                  .first = (int64_t)ranks_rank(&t->ranks) * n_shard,
                                  .n = n_shard};
    adj_status status = adj_loader_new_shards(t->train, &o, shards, &t->loader, error);
    if (status == ADJ_OK)
        t->steps = adj_loader_steps(t->loader);
    return status;
}

/* Returns the options of a plan; a resumed training uses the kernels of the checkpoint. spent:
 * seconds of the tuning time already used. */
static plan_opts plan_of(const adj_trainer *t, double spent)
{
    const adj_fit_opts *o = &t->o;
    const double none = 1e-9, limit = o->exec.tune_seconds;
    plan_opts plan = {.exec = o->exec,
                      .ranks = ranks_size(&t->ranks) > 1 ? o->distributed.ranks : NULL};
    plan.exec.backend = t->set.backend;
    plan.exec.threads = (int)t->set.threads;
    plan.exec.tune = o->exec.tune && !o->checkpoint.resume && o->distributed.parallel.shards == 0;
    if (limit > 0)
        plan.exec.tune_seconds = limit > spent ? limit - spent : none;
    return plan;
}

static adj_status make_steps(adj_trainer *t, const adj_net *net, const plan_opts *plan,
                             adj_error *error)
{
    const adj_fit_opts *o = &t->o;
    const training_opts training = {.optimizer = &t->o.optimizer,
                                    .smoothing = o->loss.smoothing,
                                    .class_weights = o->loss.class_weights,
                                    .mixes = o->augment.mixup > 0,
                                    .freeze =
                                        strcmp(t->set.freeze, "none") != 0 ? t->set.freeze : NULL,
                                    .scale = t->set.scale_follows ? &t->set.scale : NULL,
                                    .shards = step_shards(&t->set),
                                    .bucket_bytes = o->distributed.parallel.bucket_bytes,
                                    .sync_batch_norm = (int)t->set.sync_batch_norm};
    const int64_t images = step_images(&t->set);

    return network_open(&t->steps_net, FOR_TRAINING, net, images / step_shards(&t->set),
                        t->set.epochs * batches(t->train->n, images), plan, &training, error);
}

/* Plans the steps: rank 0 measures kernels, the others use its selection. */
static adj_status make_same_steps(adj_trainer *t, const adj_net *net, adj_error *error)
{
    plan_opts plan = plan_of(t, 0);
    char *selection = NULL;
    adj_status status = ADJ_OK;
    if (ranks_rank(&t->ranks) == 0)
        status = make_steps(t, net, &plan, error);
    status = ranks_share_status(&t->ranks, status, error);
    if (status != ADJ_OK || ranks_size(&t->ranks) == 1)
        return status;
    const adj_exec *first = t->steps_net.exec;
    status = ranks_share_text(&t->ranks, adj_exec_selection(first), &selection, error);
    plan.exec.tune = 0;
    plan.selection = selection;
    if (status == ADJ_OK && ranks_rank(&t->ranks) > 0)
        status = make_steps(t, net, &plan, error);
    free(selection);
    return status;
}

static adj_status make_predictor(adj_trainer *t, const adj_net *net, adj_error *error)
{
    const adj_dataset *d = t->train;
    plan_opts plan = plan_of(t, adj_exec_details(t->steps_net.exec).timed_seconds);

    plan.exec.tune &= ranks_size(&t->ranks) == 1; /* each would select others */
    plan.ranks = NULL;                            /* it may be used when their group is closed */
    plan.exec.seed = 0;
    plan.exec.recompute = 0;
    plan.exec.loss_scale = 0;
    adj_status status = predictor_new(net, &plan, &t->predictor, error);
    if (status != ADJ_OK)
        return status;
    if (t->held_out != NULL)
        t->predictor->evaluations = t->set.epochs;
    t->predictor->card.seed = t->set.seed;
    t->predictor->card.normalized = d->normalized;
    t->predictor->card.low = (double)origin_of(d)->low;
    t->predictor->card.high = (double)origin_of(d)->high;
    t->predictor->card.resize = resize_word(d->resize);
    predictor_normalize(t->predictor, d->mean, d->deviation, d->size.c);
    return predictor_name_classes(t->predictor, d->classes, d->class_names, error);
}

static int has_truth(const adj_dataset *d) { return d->labels != NULL || d->targets != NULL; }

static adj_status check_data(const adj_dataset *train, const adj_dataset *held_out,
                             adj_error *error)
{
    if (train == NULL || train->n < 1 || !has_truth(train) ||
        (held_out != NULL && (held_out->n < 1 || !has_truth(held_out))))
        return adj_error_set(error, ADJ_EARG, "fit: expected data sets with images and labels%s%s",
                             train != NULL && train->message[0] != '\0' ? ": " : "",
                             train != NULL ? train->message : "");
    if (held_out != NULL && held_out->classes != train->classes)
        return adj_error_set(
            error, ADJ_ESHAPE,
            "fit: number of classes differs in the held-out data (got %d, expected %d)",
            held_out->classes, train->classes);
    if (held_out != NULL && (held_out->targets != NULL) != (train->targets != NULL))
        return adj_error_set(error, ADJ_ESHAPE,
                             "fit: only the %s data have float targets (expected both or neither)",
                             train->targets != NULL ? "training" : "held-out");
    if (held_out != NULL && !held_out->normalized != !train->normalized)
        return adj_error_set(error, ADJ_ESHAPE,
                             "fit: only the %s data are already normalized (expected both or "
                             "neither)",
                             train->normalized ? "training" : "held-out");
    return ADJ_OK;
}

/* Completes the net for the data, and fails if they do not match. */
static adj_status fit_net(adj_net *net, const adj_dataset *d, adj_error *error)
{
    adj_status status = net_complete(net, d->size, d->classes, error);
    if (status == ADJ_OK && net->options.classes < d->classes)
        status = adj_error_set(error, ADJ_ESHAPE,
                               "net %.80s: fewer classes than in the data (got %lld, expected %d)",
                               net_name(net), (long long)net->options.classes, d->classes);
    return status;
}

/* Fails if the net's loss, the data and the options do not go together. */
static adj_status check_loss(const adj_net *net, const adj_dataset *d, const adj_fit_opts *o,
                             adj_error *error)
{
    if ((net->loss != NULL) != (d->targets != NULL))
        return adj_error_set(error, ADJ_EARG,
                             d->targets != NULL
                                 ? "net %.80s: loss is missing (the data have float targets)"
                                 : "net %.80s: its loss requires data with float targets (got "
                                   "labels)",
                             net_name(net));
    if (net->loss != NULL && net->options.classes != d->classes)
        return adj_error_set(error, ADJ_ESHAPE,
                             "net %.80s: number of outputs (got %lld, expected the data's %d "
                             "targets)",
                             net_name(net), (long long)net->options.classes, d->classes);
    if (net->loss == NULL || (o->loss.smoothing == 0 && o->loss.class_weights == NULL))
        return ADJ_OK;
    return adj_error_set(error, ADJ_EARG,
                         "fit: %s requires labels (expected none with a loss of the net)",
                         o->loss.smoothing != 0 ? "smoothing" : "class_weights");
}

static adj_status open_trainer(adj_trainer *t, const adj_net *given, adj_error *error)
{
    const adj_ranks *ranks = t->o.distributed.ranks;
    const int size = ranks != NULL ? ranks->size : 1;
    adj_net net = *given;

    adj_status status = check_data(t->train, t->held_out, error);
    if (status == ADJ_OK)
        status = fit_net(&net, t->train, error);
    if (status == ADJ_OK)
        status = check_loss(&net, t->train, &t->o, error);
    if (status == ADJ_OK)
        status = settings_complete(&t->set, &net, &t->o, t->train->n, error);
    if (status != ADJ_OK)
        return status;
    t->done = 1;
    status = ranks_open(&t->ranks, ranks, (int)(step_shards(&t->set) / size), error);
    if (status == ADJ_OK)
        status = ranks_agree(t, error);
    if (status == ADJ_OK)
        status = make_same_steps(t, &net, error);
    if (status == ADJ_OK)
        status = open_loader(t, error);
    if (status == ADJ_OK)
        status = make_predictor(t, &net, error);
    /* Planned at once, with or without held-out data: a long training must not fail at its end. */
    if (status == ADJ_OK && adj_trainer_predictor(t, error) == NULL)
        status = ADJ_ENOMEM;
    if (status == ADJ_OK)
        status = trainer_check_contents(t, error);
    return status == ADJ_OK ? ranks_agree_on_kernels(t, error) : status;
}

uint64_t trainer_data_sum(adj_trainer *t)
{
    if (t->data_sum == 0)
        t->data_sum = data_sum(t->train);
    return t->data_sum;
}

adj_status adj_trainer_new(const adj_net *net, const adj_dataset *train,
                           const adj_dataset *held_out, const adj_fit_opts *options,
                           adj_trainer **out, adj_error *error)
{
    if (net == NULL || out == NULL)
        return adj_error_set(error, ADJ_EARG, "fit: net or result pointer is NULL");
    adj_trainer *t = *out = calloc(1, sizeof *t);
    if (t == NULL)
        return adj_error_set(error, ADJ_ENOMEM, "fit: out of memory");
    t->train = train;
    t->held_out = held_out;
    if (options != NULL)
        t->o = *options;
    if (t->o.optimizer.kind == ADJ_OPTIMIZER_DEFAULT) {
        t->o.optimizer.kind = ADJ_SGD;
        if (t->o.optimizer.momentum == 0)
            t->o.optimizer.momentum = 0.9;
    }
    adj_status status = open_trainer(t, net, error);
    if (status == ADJ_OK && t->o.checkpoint.resume)
        status = adj_trainer_resume(t, t->o.checkpoint.path, error);
    if (status != ADJ_OK) {
        adj_trainer_free(t);
        *out = NULL;
    }
    return status;
}

void adj_trainer_free(adj_trainer *t)
{
    if (t == NULL)
        return;
    adj_predictor_free(t->predictor);
    adj_loader_free(t->loader);
    network_close(&t->steps_net);
    ranks_close(&t->ranks);
    free(t);
}

adj_status adj_trainer_load(adj_trainer *t, const char *path, const adj_weights_opts *options,
                            adj_error *error)
{
    if (t == NULL || path == NULL)
        return adj_error_set(error, ADJ_EARG, "fit: expected a trainer and a file's name");
    t->done++;
    t->at.accuracy = 0;
    return adj_weights_load(t->steps_net.exec, path, options, error);
}

adj_status trainer_select(adj_trainer *t, const char *steps, const char *evaluation,
                          adj_error *error)
{
    plan_opts plan = plan_of(t, 0);
    plan.exec.tune = 0;
    plan.selection = steps;
    if (!predictor_select(t->predictor, evaluation))
        return adj_error_set(error, ADJ_ENOMEM, "fit: out of memory");
    t->taken = 0;
    if (strcmp(adj_exec_selection(t->steps_net.exec), steps) == 0)
        return ADJ_OK;
    network_close(&t->steps_net);
    return make_steps(t, &t->predictor->net, &plan, error);
}

/* ---- looked at ---- */

adj_exec *adj_trainer_exec(const adj_trainer *t) { return t->steps_net.exec; }
adj_node *adj_trainer_loss(const adj_trainer *t) { return t->steps_net.loss; }
int adj_trainer_frozen(const adj_trainer *t) { return t->steps_net.frozen; }

const char *adj_trainer_warning(const adj_trainer *t)
{
    const adj_predictor *p = t->predictor;
    const char *warning = adj_exec_warning(t->steps_net.exec);
    if (warning[0] == '\0' && p != NULL && p->planned[EVALUATION].w.n > 0)
        warning = adj_exec_warning(p->planned[EVALUATION].w.exec[0]);
    return warning;
}

adj_predictor *adj_trainer_predictor(adj_trainer *t, adj_error *error)
{
    const int64_t images = t->held_out != NULL ? t->held_out->n : WHOLE_BATCH;

    if (t->taken != t->done) {
        if (predictor_take(t->predictor, t->steps_net.exec, images, error) != ADJ_OK)
            return NULL;
        t->taken = t->done;
        t->predictor->card.accuracy = t->at.step == 0 ? 100 * t->at.accuracy : 0; /* 0: unknown */
    }
    return t->predictor;
}

adj_fit_progress adj_trainer_progress(const adj_trainer *t)
{
    const position *at = &t->at;
    adj_fit_progress ended = t->last;
    if (ended.epoch > 0)
        return ended;
    return (adj_fit_progress){
        .epoch = at->epoch + 1,
        .epochs = t->set.epochs,
        .step = at->step,
        .steps = t->steps,
        .lr = t->step_rate,
        .step_loss = t->step_loss,
        .train = {.loss = at->count > 0 ? at->loss / (double)at->count : 0,
                  .accuracy = at->count > 0 ? (double)at->right / (double)at->count : 0,
                  .right = at->right,
                  .count = at->count},
        .seconds = t->seconds,
        .best_epoch = at->best_epoch,
        .best = at->best,
        .loss_scale = t->set.scale_follows ? network_state(&t->steps_net, t->steps_net.loss_scale)
                                           : t->set.loss_scale,
        .skipped = (int64_t)network_state(&t->steps_net, t->steps_net.skipped),
    };
}

trainer_details adj_trainer_details(const adj_trainer *t)
{
    return (trainer_details){.batch = t->set.batch,
                             .accumulate = t->set.accumulate,
                             .images_per_second =
                                 t->seconds > 0 ? (double)t->images / t->seconds : 0,
                             .waited = t->waited,
                             .unsaved = t->unsaved,
                             .n_rank = ranks_size(&t->ranks),
                             .rank_times = t->ranks.times};
}

int adj_trainer_is_done(const adj_trainer *t)
{
    const position *at = &t->at;
    const int64_t begun = t->set.begun;
    const int64_t since = at->epoch - (at->best_epoch > begun ? at->best_epoch : begun);
    return at->epoch >= t->set.epochs || (t->o.checkpoint.patience > 0 && at->best_epoch > 0 &&
                                          at->step == 0 && since >= t->o.checkpoint.patience);
}

/* ---- steps and epochs ---- */

static adj_status not_finite(const adj_trainer *t, adj_error *error)
{
    if (t->at.epoch == 0 && t->at.step == 0) /* no rate was used yet */
        return adj_error_set(error, ADJ_EARG,
                             "the loss is not finite in the first step: the weights or the images "
                             "hold NaN, infinities or too large values");
    return adj_error_set(error, ADJ_EARG,
                         "the loss is not finite in step %lld of epoch %lld: try a smaller "
                         "learning rate (now %g)",
                         (long long)t->at.step + 1, (long long)t->at.epoch + 1, t->step_rate);
}

/* Updates the count of skipped steps, of which there were `before`, and fails if too many in a row
 * were skipped, since then the loss scale is not the cause. */
static adj_status check_skipped(adj_trainer *t, double before, adj_error *error)
{
    enum { MAX_SKIPPED = 50 }; /* from 65536 down to the least scale it takes 40 */
    const double now = network_state(&t->steps_net, t->steps_net.skipped);

    t->skipped = now != before ? t->skipped + 1 : 0;
    if (t->skipped < MAX_SKIPPED)
        return ADJ_OK;
    return adj_error_set(error, ADJ_EARG,
                         "%d steps up to step %lld of epoch %lld were skipped: their gradients are "
                         "not finite, whatever the loss scale (now %g)",
                         t->skipped, (long long)t->at.step + 1, (long long)t->at.epoch + 1,
                         network_state(&t->steps_net, t->steps_net.loss_scale));
}

/* Returns the total seconds that this process waited for others. */
static double waited_for_others(const adj_trainer *t)
{
    const adj_ranks *r = t->ranks.ranks;
    return r != NULL && r->meter != NULL ? r->meter->waited(r->group) : 0;
}

/* *own: of this process. */
static adj_status run_step(adj_trainer *t, adj_loader_batch *b, rank_seconds *own, adj_error *error)
{
    const double began = seconds_now(), waited = adj_loader_waited(t->loader);
    const double others = waited_for_others(t);
    const step_inputs inputs = {.lr = t->step_rate, .share = t->ranks.share};
    adj_status status = adj_loader_next(t->loader, b, error);
    own->data = adj_loader_waited(t->loader) - waited;
    if (status == ADJ_OK)
        status = ranks_share(t, b, error);
    if (status == ADJ_OK)
        status = network_run(&t->steps_net, b, &inputs, error);
    own->others = waited_for_others(t) - others;
    own->seconds = seconds_now() - began;
    return status;
}

adj_status adj_trainer_step(adj_trainer *t, adj_error *error)
{
    const double began = seconds_now();
    position *at = &t->at;
    rank_seconds own = {0};
    adj_loader_batch b;
    double loss;
    int64_t right;

    if (at->step >= t->steps || at->epoch >= t->set.epochs)
        return adj_error_set(error, ADJ_EARG, "fit: no step is left in this epoch");
    t->last = (adj_fit_progress){0};
    if (at->step == 0) {
        t->waited = t->seconds = 0;
        t->images = 0;
    }
    t->step_rate = settings_rate(&t->set, at->epoch, at->step, t->steps);
    const double skipped = network_state(&t->steps_net, t->steps_net.skipped);
    adj_status status = run_step(t, &b, &own, error);
    t->waited += own.data;
    if (status == ADJ_OK)
        status = ranks_report(t, &b, own, &loss, &right, error);
    if (status != ADJ_OK)
        return status;
    const int64_t count = adj_loader_step_count(t->loader, b.step);
    t->done++;
    t->step_loss = loss / (double)count;
    at->loss += loss;
    at->right += right;
    at->count += count;
    if (!isfinite(at->loss))
        return not_finite(t, error);
    if (check_skipped(t, skipped, error) != ADJ_OK)
        return ADJ_EARG;
    at->step++;
    t->images += count;
    t->seconds += seconds_now() - began;
    if (t->o.distributed.compare_every > 0 && at->step % t->o.distributed.compare_every == 0)
        status = ranks_compare_params(t, error);
    return status;
}

/* Evaluates the held-out data and tells in *is_best whether this epoch is the best so far. */
static adj_status evaluate(adj_trainer *t, adj_score *score, int *is_best, adj_error *error)
{
    position *at = &t->at;
    *is_best = 0;
    if (t->held_out == NULL)
        return ADJ_OK;
    adj_predictor *p = adj_trainer_predictor(t, error);
    if (p == NULL)
        return ADJ_ENOMEM;
    p->ranks = ranks_size(&t->ranks) > 1 ? t->o.distributed.ranks
                                         : NULL; /* other callers evaluate in one process */
    adj_status status = adj_predictor_evaluate(p, t->held_out, score, NULL, error);
    p->ranks = NULL;
    if (status != ADJ_OK)
        return status;
    at->accuracy = score->accuracy;
    p->card.accuracy = 100 * score->accuracy;
    const double reached = p->net.loss != NULL ? score->loss : score->accuracy;
    *is_best =
        at->best_epoch == 0 || (p->net.loss != NULL ? reached < at->best : reached > at->best);
    if (*is_best) {
        at->best_epoch = at->epoch + 1;
        at->best = reached;
    }
    return ADJ_OK;
}

adj_status adj_trainer_end_epoch(adj_trainer *t, adj_error *error)
{
    position *at = &t->at;
    adj_score score = {0};
    int is_best;

    if (at->step < t->steps || at->epoch >= t->set.epochs)
        return adj_error_set(error, ADJ_EARG, "fit: the epoch is not at its end");
    adj_status status = ranks_compare_params(t, error);
    if (status == ADJ_OK)
        status = evaluate(t, &score, &is_best, error);
    if (status != ADJ_OK)
        return status;
    t->step_rate = settings_rate(&t->set, at->epoch, t->steps - 1, t->steps);
    t->last = adj_trainer_progress(t);
    t->last.held_out = score;
    *at = (position){.epoch = at->epoch + 1,
                     .best_epoch = at->best_epoch,
                     .best = at->best,
                     .accuracy = at->accuracy};
    if (!is_best || t->o.checkpoint.best == NULL)
        return ADJ_OK;
    if (ranks_rank(&t->ranks) == 0)
        status = adj_predictor_save(t->predictor, t->o.checkpoint.best, 0, NULL, error);
    return ranks_share_status(&t->ranks, status, error);
}
