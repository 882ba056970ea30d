/* run.c - steps and epochs of a training, and all of them with its files and callbacks; adj_fit. A
 * step depends only on the settings, the position and the parameters, so a resumed training repeats
 * the uninterrupted one bit for bit. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/ranks_meter.h"
#include "io/data/origin.h"
#include "io/io.h"
#include "trainer.h"

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
    if (t == NULL)
        return adj_error_set(error, ADJ_EARG, "fit: expected a trainer");
    const double began = seconds_now();
    position *at = &t->at;
    rank_seconds own = {0};
    adj_loader_batch b;
    double loss;
    int64_t right;

    if (at->step >= t->steps || at->epoch >= t->set.o.epochs)
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
    if (t->set.o.distributed.compare_every > 0 &&
        at->step % t->set.o.distributed.compare_every == 0)
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
    adj_predictor *p;
    adj_status status = trainer_predictor(t, &p, error);
    if (status != ADJ_OK)
        return status;
    p->ranks = ranks_size(t->ranks.ranks) > 1 ? t->set.o.distributed.ranks
                                              : NULL; /* other callers evaluate in one process */
    status = adj_predictor_evaluate(p, t->held_out, score, NULL, error);
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
    if (t == NULL)
        return adj_error_set(error, ADJ_EARG, "fit: expected a trainer");
    position *at = &t->at;
    adj_score score = {0};
    int is_best;

    if (at->step < t->steps || at->epoch >= t->set.o.epochs)
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
    if (!is_best || t->set.o.checkpoint.best == NULL)
        return ADJ_OK;
    if (ranks_rank(t->ranks.ranks) == 0)
        status = adj_predictor_save(t->predictor, t->set.o.checkpoint.best, 0, NULL, error);
    return ranks_share_status(&t->ranks, status, error);
}

/* ---- all epochs ---- */

static int call(int (*callback)(void *user, const adj_fit_progress *progress), const adj_trainer *t)
{
    const adj_fit_progress now = adj_trainer_progress(t);
    return callback != NULL && callback(t->set.o.on.user, &now) != 0;
}

/* Fails if a file could not be written now, or would replace the other. */
static adj_status check_paths(const adj_trainer *t, adj_error *error)
{
    const char *const paths[] = {t->set.o.checkpoint.best, t->set.o.checkpoint.path};
    adj_file_id best, checkpoint;
    adj_status status = ADJ_OK;
    if (ranks_rank(t->ranks.ranks) == 0 && paths[0] != NULL && paths[1] != NULL &&
        adj_file_identify(paths[0], &best, NULL) == ADJ_OK &&
        adj_file_identify(paths[1], &checkpoint, NULL) == ADJ_OK &&
        memcmp(&best, &checkpoint, sizeof best) == 0)
        status = adj_error_set(error, ADJ_EARG,
                               "fit: checkpoint.best and checkpoint.path are the same file (got "
                               "%s)",
                               paths[0]);
    for (int i = 0; i < 2 && status == ADJ_OK && ranks_rank(t->ranks.ranks) == 0; i++)
        if (paths[i] != NULL)
            status = adj_file_check(paths[i], 0, error);
    return ranks_share_status(&t->ranks, status, error);
}

static adj_status save(adj_trainer *t, adj_error *error)
{
    adj_status status = ADJ_OK;
    if (t->set.o.checkpoint.path != NULL)
        status = adj_trainer_save(t, t->set.o.checkpoint.path, error);
    t->unsaved = status != ADJ_OK;
    return status;
}

/* True if training should stop; the request is sent with the next step, so that all ranks stop
 * after the same one. */
static int should_stop(adj_trainer *t, int wants)
{
    if (ranks_size(t->ranks.ranks) == 1)
        return wants;
    t->ranks.wants_stop |= wants;
    return t->ranks.is_stopped;
}

/* Runs the remaining steps of the epoch, until a callback stops it. */
static adj_status run_steps(adj_trainer *t, int *stopped, adj_error *error)
{
    const int64_t every = t->set.o.checkpoint.every;
    adj_status status = ADJ_OK;

    while (t->at.step < t->steps && status == ADJ_OK && !*stopped) {
        status = adj_trainer_step(t, error);
        if (status != ADJ_OK)
            return status;
        *stopped = should_stop(t, call(t->set.o.on.step, t));
        if (every > 0 && t->at.step % every == 0 && t->at.step < t->steps)
            status = save(t, error);
    }
    return status;
}

adj_status adj_trainer_run(adj_trainer *t, adj_error *error)
{
    int stopped = 0;

    if (t == NULL)
        return adj_error_set(error, ADJ_EARG, "fit: expected a trainer");
    adj_status status = ranks_begin(t, error);
    if (status == ADJ_OK)
        status = check_paths(t, error);
    while (!adj_trainer_is_done(t) && status == ADJ_OK && !stopped) {
        status = run_steps(t, &stopped, error);
        if (status == ADJ_OK && !stopped) {
            status = adj_trainer_end_epoch(t, error);
            if (status == ADJ_OK)
                status = ranks_want_stop(
                    &t->ranks, call(t->set.o.on.epoch, t) | t->ranks.wants_stop, &stopped, error);
            else if (t->last.epoch > 0) /* ended: only the best weights could not be saved */
                (void)call(t->set.o.on.epoch, t);
        }
        if (status == ADJ_OK)
            status = save(t, error);
    }
    return status;
}

adj_status adj_fit(const adj_net *net, const adj_dataset *train, const adj_dataset *held_out,
                   const adj_fit_opts *options, adj_predictor **p, adj_error *error)
{
    adj_trainer *t = NULL;

    if (p == NULL)
        return adj_error_set(error, ADJ_EARG, "fit: result pointer is NULL");
    *p = NULL;
    adj_status status = adj_trainer_new(net, train, held_out, options, &t, error);
    if (status == ADJ_OK) {
        const uint64_t before = t->done;
        status = adj_trainer_run(t, error);
        if (status == ADJ_OK)
            status = trainer_predictor(t, p, error);
        else if (t->done != before)
            (void)trainer_predictor(t, p, NULL);
        if (*p != NULL)
            t->predictor = NULL; /* the caller's from now on */
    }
    adj_trainer_free(t);
    return status;
}
