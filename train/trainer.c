/* trainer.c - makes a training with its networks and data, and answers questions about it. */
#include <stdlib.h>
#include <string.h>

#include "exec/internal.h"
#include "exec/report.h"
#include "io/data/origin.h"
#include "trainer.h"

/* ---- made ---- */

static adj_status open_loader(adj_trainer *t, adj_error *error)
{
    const adj_shape s = t->steps_net.shape;
    const int threads = t->set.o.loaders, n_shard = t->steps_net.n_shard;
    const adj_loader_opts o = {.batch = step_images(&t->set),
                               .size = {s.dim[1], s.dim[2], s.dim[3]},
                               .threads = threads == 0  ? 1
                                          : threads < 0 ? 0
                                                        : threads,
                               .shuffle = 1,
                               .seed = t->set.o.exec.seed,
                               .augment = t->set.o.augment};
    const loader_shards shards = {.shards = step_shards(&t->set),
                                  .first = (int64_t)ranks_rank(t->ranks.ranks) * n_shard,
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
    const adj_fit_opts *o = &t->set.o;
    const double none = 1e-9, limit = o->exec.tune_seconds;
    plan_opts plan = {.exec = o->exec,
                      .ranks = ranks_size(t->ranks.ranks) > 1 ? o->distributed.ranks : NULL};
    plan.exec.tune = o->exec.tune && !o->checkpoint.resume && o->distributed.parallel.shards == 0;
    if (limit > 0)
        plan.exec.tune_seconds = limit > spent ? limit - spent : none;
    return plan;
}

static adj_status make_steps(adj_trainer *t, const adj_net *net, const plan_opts *plan,
                             adj_error *error)
{
    const int64_t images = step_images(&t->set);
    return network_open(&t->steps_net, FOR_TRAINING, net, images / step_shards(&t->set),
                        t->set.o.epochs * batches(t->train->n, images), plan, &t->set, error);
}

/* Plans the steps: rank 0 measures kernels, the others use its selection. */
static adj_status make_same_steps(adj_trainer *t, const adj_net *net, adj_error *error)
{
    plan_opts plan = plan_of(t, 0);
    char *selection = NULL;
    adj_status status = ADJ_OK;
    if (ranks_rank(t->ranks.ranks) == 0)
        status = make_steps(t, net, &plan, error);
    status = ranks_share_status(&t->ranks, status, error);
    if (status != ADJ_OK || ranks_size(t->ranks.ranks) == 1)
        return status;
    const adj_exec *first = t->steps_net.exec;
    status = ranks_share_text(&t->ranks, adj_exec_selection(first), &selection, error);
    plan.exec.tune = 0;
    plan.selection = selection;
    if (status == ADJ_OK && ranks_rank(t->ranks.ranks) > 0)
        status = make_steps(t, net, &plan, error);
    free(selection);
    return status;
}

/* Makes the predictor, without plans, and fails if it could not evaluate the held-out data. */
static adj_status make_predictor(adj_trainer *t, const adj_net *net, adj_error *error)
{
    const adj_dataset *d = t->train;
    plan_opts plan = plan_of(t, 0);

    plan.exec.tune &= ranks_size(t->ranks.ranks) == 1; /* each would select others */
    plan.ranks = NULL; /* it may be used when their group is closed */
    plan.exec.seed = 0;
    plan.exec.recompute = 0;
    plan.exec.loss_scale = 0;
    adj_status status = predictor_new(net, &plan, &t->predictor, error);
    if (status != ADJ_OK)
        return status;
    if (t->held_out != NULL)
        t->predictor->evaluations = t->set.o.epochs;
    t->predictor->card.seed = (int64_t)t->set.o.exec.seed;
    t->predictor->card.normalized = d->normalized;
    t->predictor->card.low = (double)origin_of(d)->low;
    t->predictor->card.high = (double)origin_of(d)->high;
    t->predictor->card.resize = resize_word(d->resize);
    predictor_normalize(t->predictor, d->mean, d->deviation, d->size.c);
    status = predictor_name_classes(t->predictor, d->classes, d->class_names, error);
    if (status != ADJ_OK || t->held_out == NULL)
        return status;
    adj_error why = {0};
    status = predictor_check_data(t->predictor, t->held_out, NULL, &why);
    return status == ADJ_OK
               ? ADJ_OK
               : adj_error_set(error, status, "fit: held-out data: %.480s", why.message);
}

static int has_truth(const adj_dataset *d) { return d->labels != NULL || d->targets != NULL; }

static adj_status check_ranks(const adj_ranks *r, adj_error *error)
{
    if (r == NULL || (r->size >= 1 && r->rank >= 0 && r->rank < r->size && r->all_gather != NULL &&
                      r->broadcast != NULL))
        return ADJ_OK;
    return adj_error_set(error, ADJ_EARG,
                         "fit: ranks are incomplete (got rank %d of %d, expected a rank below the "
                         "size, all_gather and broadcast)",
                         r->rank, r->size);
}

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
    adj_error why;
    const adj_status status = io_check_labels(train, &why);
    return status == ADJ_OK ? ADJ_OK : adj_error_set(error, status, "fit: %s", why.message);
}

/* Completes the net for the data, and fails if they do not match. */
static adj_status fit_net(adj_net *net, const adj_dataset *d, adj_error *error)
{
    adj_status status = net_complete(net, d->size, d->classes, error);
    if (status == ADJ_OK && net->options.classes < d->classes)
        status = adj_error_set(error, ADJ_ESHAPE,
                               "net %.80s: fewer classes than in the data (got %lld, expected %d)",
                               net_name(net), (long long)net->options.classes, d->classes);
    if (status != ADJ_OK)
        return status;
    adj_error why = {0};
    if (io_check_fit(d, net->options.size, 0, &why) != ADJ_OK)
        status = adj_error_set(error, why.status, "net %.80s: %.400s", net_name(net), why.message);
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

/* Fails before the first step if a name, a word or metadata cannot be written to the weights file
 * or the checkpoint. */
static adj_status check_contents(adj_trainer *t, adj_error *error)
{
    adj_status status = ADJ_OK;
    if (ranks_rank(t->ranks.ranks) == 0)
        status = adj_predictor_save(t->predictor, NULL, 0, NULL, error);
    status = ranks_share_status(&t->ranks, status, error);
    return status == ADJ_OK && t->set.o.checkpoint.path != NULL ? adj_trainer_save(t, NULL, error)
                                                                : status;
}

/* Plans the evaluation in what the steps left of the tuning time: at once, with or without held-out
 * data, since a long training must not fail at its end. */
static adj_status plan_evaluation(adj_trainer *t, adj_error *error)
{
    const double spent = adj_exec_details(t->steps_net.exec).timed_seconds;
    adj_predictor *p = t->predictor;
    p->plan.exec.tune_seconds = plan_of(t, spent).exec.tune_seconds;
    return trainer_predictor(t, &p, error);
}

static adj_status open_trainer(adj_trainer *t, const adj_net *given, adj_error *error)
{
    const adj_ranks *ranks = t->set.o.distributed.ranks;
    adj_net net = *given;

    adj_status status = check_ranks(ranks, error);
    if (status == ADJ_OK)
        status = check_data(t->train, t->held_out, error);
    if (status == ADJ_OK)
        status = fit_net(&net, t->train, error);
    if (status == ADJ_OK)
        status = check_loss(&net, t->train, &t->set.o, error);
    if (status == ADJ_OK)
        status = settings_complete(&t->set, &net, t->train->n, error);
    if (status != ADJ_OK)
        return status;
    t->done = 1;
    status = ranks_open(&t->ranks, ranks, (int)(step_shards(&t->set) / ranks_size(ranks)), error);
    if (status == ADJ_OK)
        status = ranks_agree(t, error);
    if (status == ADJ_OK)
        status = make_predictor(t, &net, error);
    if (status == ADJ_OK)
        status = make_same_steps(t, &net, error);
    if (status == ADJ_OK)
        status = open_loader(t, error);
    if (status == ADJ_OK)
        status = plan_evaluation(t, error);
    if (status == ADJ_OK)
        status = check_contents(t, error);
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
        t->set.o = *options;
    adj_status status = open_trainer(t, net, error);
    if (status == ADJ_OK && t->set.o.checkpoint.resume)
        status = adj_trainer_resume(t, t->set.o.checkpoint.path, error);
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

adj_status trainer_predictor(adj_trainer *t, adj_predictor **p, adj_error *error)
{
    const int64_t images = t->held_out != NULL ? t->held_out->n : WHOLE_BATCH;

    *p = NULL;
    if (t->taken != t->done) {
        adj_status status = predictor_take(t->predictor, t->steps_net.exec, images, error);
        if (status != ADJ_OK)
            return status;
        t->taken = t->done;
        t->predictor->card.accuracy = t->at.step == 0 ? 100 * t->at.accuracy : 0; /* 0: unknown */
    }
    *p = t->predictor;
    return ADJ_OK;
}

adj_predictor *adj_trainer_predictor(adj_trainer *t, adj_error *error)
{
    adj_predictor *p = NULL;
    if (t == NULL)
        adj_error_set(error, ADJ_EARG, "fit: expected a trainer");
    else
        (void)trainer_predictor(t, &p, error);
    return p;
}

adj_fit_progress adj_trainer_progress(const adj_trainer *t)
{
    if (t == NULL)
        return (adj_fit_progress){0};
    const position *at = &t->at;
    adj_fit_progress ended = t->last;
    if (ended.epoch > 0)
        return ended;
    return (adj_fit_progress){
        .epoch = at->epoch + 1,
        .epochs = t->set.o.epochs,
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
                                           : t->set.o.exec.loss_scale,
        .skipped = (int64_t)network_state(&t->steps_net, t->steps_net.skipped),
    };
}

trainer_details adj_trainer_details(const adj_trainer *t)
{
    const adj_predictor *p = t->predictor;
    const char *warning = adj_exec_warning(t->steps_net.exec);
    if (warning[0] == '\0' && p != NULL && p->planned[EVALUATION].w.n > 0)
        warning = adj_exec_warning(p->planned[EVALUATION].w.exec[0]);
    return (trainer_details){.batch = t->set.o.batch,
                             .accumulate = t->set.o.accumulate,
                             .frozen = t->steps_net.frozen,
                             .warning = warning,
                             .images_per_second =
                                 t->seconds > 0 ? (double)t->images / t->seconds : 0,
                             .waited = t->waited,
                             .unsaved = t->unsaved,
                             .n_rank = ranks_size(t->ranks.ranks),
                             .rank_times = t->ranks.times};
}

int adj_trainer_is_done(const adj_trainer *t)
{
    const position *at = &t->at;
    const int64_t begun = t->set.begun;
    const int64_t since = at->epoch - (at->best_epoch > begun ? at->best_epoch : begun);
    return at->epoch >= t->set.o.epochs ||
           (t->set.o.checkpoint.patience > 0 && at->best_epoch > 0 && at->step == 0 &&
            since >= t->set.o.checkpoint.patience);
}
