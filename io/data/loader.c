/* loader.c - batches prepared ahead of the training step, by threads.
 *
 * Batches are numbered through the epochs. The ring has room for depth of them: one is lent to the
 * caller, the others are being filled, each by one thread, or wait. A thread takes the next number
 * as soon as its place is free, so batches may get ready in another order than they are handed out.
 * What is in a batch depends on its number alone (prepare.h), never on who fills it when.
 *
 * All fields but those of a batch being filled, which is its thread's, are guarded by the lock. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "prepare.h"

/* A place in the ring. */
typedef struct {
    adj_loader_batch batch;
    int is_ready;
    adj_error error; /* error of the preparation */
} place;

/* The images of an epoch in its order. Two: while the last batches of an epoch are filled, the next
 * epoch begins. */
typedef struct {
    int64_t *images;
    int64_t epoch;
    int readers; /* batches of it being filled */
} epoch_order;

enum { NO_EPOCH = -1 };

typedef struct {
    adj_loader *loader;
    pthread_t thread;
    float *room; /* an image of the data set */
} worker;

struct adj_loader {
    preparation p;
    place *ring;
    int64_t depth;
    epoch_order order[2];  /* orders of even and odd epochs */
    int64_t taken, handed; /* the next batch to be filled; to be handed out */
    worker *workers;       /* the first's room is the caller's where there are no threads */
    int started;           /* threads */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    atomic_int is_stopped; /* 1: filling is aborted and no batch is taken */
    int is_ending;         /* threads return */
    double waited;
};

/* ---- filling one batch ---- */

/* Fills a batch; stops with the batch incomplete when the loader is stopped. */
static void fill_images(adj_loader *l, const int64_t *order, float *room, place *to)
{
    adj_loader_batch *b = &to->batch;

    to->error = (adj_error){0};
    for (int64_t i = 0; i < l->p.n && to->error.status == ADJ_OK; i++) {
        if (atomic_load(&l->is_stopped))
            return;
        adj_status status = io_prepare_image(&l->p, order, b, i, room, &to->error);
        if (status != to->error.status) /* a source that gave no sentence */
            adj_error_set(&to->error, status, "loader: an image cannot be read");
    }
    io_prepare_rest(&l->p, b);
}

static int64_t epoch_of(const adj_loader *l, int64_t number) { return number / l->p.steps; }

/* True if the place of the next batch is free and the order of its epoch exists or may be made. */
static int can_take(const adj_loader *l)
{
    int64_t epoch = epoch_of(l, l->taken);
    const epoch_order *o = &l->order[epoch % 2];
    return !atomic_load(&l->is_stopped) && l->taken < l->handed - 1 + l->depth &&
           (o->epoch == epoch || o->readers == 0);
}

/* Takes the next batch and fills it. The caller holds the lock, which is released while the batch
 * is filled. */
static void fill_next(adj_loader *l, float *room)
{
    int64_t number = l->taken++, epoch = epoch_of(l, number);
    place *to = &l->ring[number % l->depth];
    epoch_order *o = &l->order[epoch % 2];

    if (o->images != NULL && o->epoch != epoch)
        adj_shuffle(l->p.d->n, l->p.o.seed, (uint64_t)epoch, o->images);
    o->epoch = epoch;
    o->readers++;
    to->batch.epoch = epoch;
    to->batch.step = number % l->p.steps;
    to->batch.count = io_part_count(io_step_count(&l->p, to->batch.step), l->p.first, l->p.n);
    pthread_mutex_unlock(&l->lock);
    fill_images(l, o->images, room, to);
    pthread_mutex_lock(&l->lock);
    o->readers--;
    to->is_ready = !atomic_load(&l->is_stopped);
    pthread_cond_broadcast(&l->changed);
}

static void *work(void *of)
{
    worker *w = of;
    adj_loader *l = w->loader;

    pthread_mutex_lock(&l->lock);
    while (!l->is_ending)
        if (can_take(l))
            fill_next(l, w->room);
        else
            pthread_cond_wait(&l->changed, &l->lock);
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* Stops the filling of batches until is_stopped is 0 again, and waits for those in progress. The
 * caller holds the lock. */
static void stop(adj_loader *l)
{
    atomic_store(&l->is_stopped, 1);
    while (l->order[0].readers + l->order[1].readers > 0)
        pthread_cond_wait(&l->changed, &l->lock);
}

/* ---- new and free ---- */

static int alloc_place(const preparation *p, place *to)
{
    size_t batch = (size_t)p->n;
    adj_loader_batch *b = &to->batch;

    b->x = malloc(batch * (size_t)p->elems * sizeof *b->x);
    b->labels = malloc(batch * sizeof *b->labels);
    b->other_labels = malloc(batch * sizeof *b->other_labels);
    if (p->d->targets != NULL)
        b->targets = malloc(batch * (size_t)p->d->classes * sizeof *b->targets);
    return b->x != NULL && b->labels != NULL && b->other_labels != NULL &&
           (b->targets != NULL || p->d->targets == NULL);
}

/* Allocates all memory; what cannot be allocated stays NULL, and the caller calls adj_loader_free
 * in any case. */
static int alloc_all(adj_loader *l)
{
    int threads = l->p.o.threads, n = threads > 0 ? threads : 1, is_complete = 1;

    l->depth = threads > 0 ? threads + 2 : 1; /* one lent, one ready, one for each thread */
    l->ring = calloc((size_t)l->depth, sizeof *l->ring);
    l->workers = calloc((size_t)n, sizeof *l->workers);
    if (l->ring == NULL || l->workers == NULL)
        return 0;
    for (int64_t i = 0; i < l->depth; i++)
        is_complete &= alloc_place(&l->p, &l->ring[i]);
    for (int i = 0; i < 2; i++) {
        epoch_order *o = &l->order[i];
        o->epoch = NO_EPOCH;
        o->images = l->p.o.shuffle ? malloc((size_t)l->p.d->n * sizeof *o->images) : NULL;
        is_complete &= !l->p.o.shuffle || o->images != NULL;
    }
    for (int i = 0; i < n; i++) {
        l->workers[i].loader = l;
        l->workers[i].room = malloc((size_t)size_elems(l->p.fit.from) * sizeof(float));
        is_complete &= l->workers[i].room != NULL;
    }
    return is_complete;
}

/* Starts the threads with all signals blocked, so that the program's own threads handle them. */
static int start_threads(adj_loader *l)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (l->started < l->p.o.threads &&
           pthread_create(&l->workers[l->started].thread, NULL, work, &l->workers[l->started]) == 0)
        l->started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return l->started == l->p.o.threads;
}

adj_status adj_loader_new(const adj_dataset *d, const adj_loader_opts *options, adj_loader **out,
                          adj_error *error)
{
    return adj_loader_new_shards(d, options, (loader_shards){0}, out, error);
}

adj_status adj_loader_new_shards(const adj_dataset *d, const adj_loader_opts *options,
                                 loader_shards shards, adj_loader **out, adj_error *error)
{
    preparation p;

    if (out == NULL)
        return adj_error_set(error, ADJ_EARG, "loader: result pointer is NULL");
    *out = NULL;
    adj_status status = io_preparation(d, options, shards, &p, error);
    if (status != ADJ_OK)
        return status;
    adj_loader *l = calloc(1, sizeof *l);
    if (l == NULL) {
        io_fitting_close(&p.fit);
        return adj_error_set(error, ADJ_ENOMEM, "loader: out of memory");
    }
    l->p = p;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
    if (!alloc_all(l))
        status = adj_error_set(error, ADJ_ENOMEM, "loader: out of memory for batches of %lld",
                               (long long)p.o.batch);
    else if (!start_threads(l))
        status = adj_error_set(error, ADJ_ENOMEM, "loader: only %d of %d threads could be started",
                               l->started, p.o.threads);
    if (status == ADJ_OK)
        *out = l;
    else
        adj_loader_free(l);
    return status;
}

static void join_threads(adj_loader *l)
{
    pthread_mutex_lock(&l->lock);
    atomic_store(&l->is_stopped, 1);
    l->is_ending = 1;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->started; i++)
        pthread_join(l->workers[i].thread, NULL);
}

void adj_loader_free(adj_loader *l)
{
    if (l == NULL)
        return;
    join_threads(l);
    for (int64_t i = 0; l->ring != NULL && i < l->depth; i++) {
        free(l->ring[i].batch.x);
        free(l->ring[i].batch.labels);
        free(l->ring[i].batch.other_labels);
        free(l->ring[i].batch.targets);
    }
    for (int i = 0; l->workers != NULL && (i == 0 || i < l->p.o.threads); i++)
        free(l->workers[i].room);
    io_fitting_close(&l->p.fit);
    free(l->order[0].images);
    free(l->order[1].images);
    free(l->ring);
    free(l->workers);
    pthread_cond_destroy(&l->changed);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

/* ---- use ---- */

int64_t adj_loader_steps(const adj_loader *l) { return l != NULL ? l->p.steps : 0; }
int64_t adj_loader_step_count(const adj_loader *l, int64_t step)
{
    return io_step_count(&l->p, step);
}

double adj_loader_waited(const adj_loader *l) { return l != NULL ? l->waited : 0; }

adj_status adj_loader_next(adj_loader *l, adj_loader_batch *batch, adj_error *error)
{
    if (l == NULL || batch == NULL)
        return adj_error_set(error, ADJ_EARG, "loader: expected a loader and a batch");
    double began = seconds_now();
    pthread_mutex_lock(&l->lock);
    place *next = &l->ring[l->handed % l->depth];
    if (l->started == 0 && !next->is_ready)
        fill_next(l, l->workers[0].room);
    while (!next->is_ready)
        pthread_cond_wait(&l->changed, &l->lock);
    adj_status status = next->error.status;
    if (status == ADJ_OK) {
        *batch = next->batch;
        next->is_ready = 0;
        l->handed++; /* the previously lent batch may be overwritten */
        pthread_cond_broadcast(&l->changed);
    } else
        adj_error_set(error, status, "%s", next->error.message);
    l->waited += seconds_now() - began;
    pthread_mutex_unlock(&l->lock);
    return status;
}

/* True if the position is valid and image numbers up to there fit in 64 bits. */
static int is_position(const preparation *p, int64_t epoch, int64_t step)
{
    int64_t images;
    return epoch >= 0 && step >= 0 && step <= p->steps &&
           !__builtin_mul_overflow(epoch, 2 * p->steps * p->o.batch, &images);
}

adj_status adj_loader_seek(adj_loader *l, int64_t epoch, int64_t step, adj_error *error)
{
    if (l == NULL || !is_position(&l->p, epoch, step))
        return adj_error_set(error, ADJ_EARG,
                             "loader: position is out of range (got epoch %lld, step %lld, "
                             "expected 0 or more and at most %lld steps)",
                             (long long)epoch, (long long)step, (long long)adj_loader_steps(l));
    int64_t number = epoch * l->p.steps + step;
    pthread_mutex_lock(&l->lock);
    const place *next = &l->ring[l->handed % l->depth];
    if (number != l->handed || (next->is_ready && next->error.status != ADJ_OK)) {
        stop(l);
        for (int64_t i = 0; i < l->depth; i++)
            l->ring[i].is_ready = 0;
        l->taken = l->handed = number;
        atomic_store(&l->is_stopped, 0);
        pthread_cond_broadcast(&l->changed);
    }
    pthread_mutex_unlock(&l->lock);
    return ADJ_OK;
}
