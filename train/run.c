/* run.c - runs all epochs of a training, with its files and callbacks; adj_fit. */
#include <stdlib.h>

#include "io/io.h"
#include "trainer.h"

static int call(int (*callback)(void *user, const adj_fit_progress *progress), const adj_trainer *t)
{
    const adj_fit_progress now = adj_trainer_progress(t);
    return callback != NULL && callback(t->o.on.user, &now) != 0;
}

adj_status trainer_check_contents(adj_trainer *t, adj_error *error)
{
    adj_status status = ADJ_OK;
    if (ranks_rank(&t->ranks) == 0)
        status = adj_predictor_save(t->predictor, NULL, 0, NULL, error);
    status = ranks_share_status(&t->ranks, status, error);
    return status == ADJ_OK && t->o.checkpoint.path != NULL ? adj_trainer_save(t, NULL, error)
                                                            : status;
}

/* Fails if a file could not be written now. */
static adj_status check_paths(const adj_trainer *t, adj_error *error)
{
    const char *const paths[] = {t->o.checkpoint.best, t->o.checkpoint.path};
    adj_status status = ADJ_OK;
    for (int i = 0; i < 2 && status == ADJ_OK && ranks_rank(&t->ranks) == 0; i++)
        if (paths[i] != NULL)
            status = adj_file_check(paths[i], 0, error);
    return ranks_share_status(&t->ranks, status, error);
}

static adj_status save(adj_trainer *t, adj_error *error)
{
    adj_status status = ADJ_OK;
    if (t->o.checkpoint.path != NULL)
        status = adj_trainer_save(t, t->o.checkpoint.path, error);
    t->unsaved = status != ADJ_OK;
    return status;
}

/* True if training should stop; the request is sent with the next step, so that all ranks stop
 * after the same one. */
static int should_stop(adj_trainer *t, int wants)
{
    if (ranks_size(&t->ranks) == 1)
        return wants;
    t->ranks.wants_stop |= wants;
    return t->ranks.is_stopped;
}

/* Runs the remaining steps of the epoch, until a callback stops it. */
static adj_status run_steps(adj_trainer *t, int *stopped, adj_error *error)
{
    const int64_t every = t->o.checkpoint.every;
    adj_status status = ADJ_OK;

    while (t->at.step < t->steps && status == ADJ_OK && !*stopped) {
        status = adj_trainer_step(t, error);
        if (status != ADJ_OK)
            return status;
        *stopped = should_stop(t, call(t->o.on.step, t));
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
                status = ranks_want_stop(&t->ranks, call(t->o.on.epoch, t) | t->ranks.wants_stop,
                                         &stopped, error);
            else if (t->last.epoch > 0) /* ended: only the best weights could not be saved */
                (void)call(t->o.on.epoch, t);
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
        if (status == ADJ_OK || t->done != before)
            *p = adj_trainer_predictor(t, status == ADJ_OK ? error : NULL);
        if (*p == NULL && status == ADJ_OK)
            status = ADJ_ENOMEM;
        if (*p != NULL)
            t->predictor = NULL; /* the caller's from now on */
    }
    adj_trainer_free(t);
    return status;
}
