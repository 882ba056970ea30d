/* test_loader.c - batches prepared ahead are adj_batch's, for any number of threads, in any order
 * of time, from any place on; readers that fail, threads that end. */
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "io/data/origin.h"
#include "loading.h"
#include "tests/io/scoped.h"

enum { N = 23, H = 7, W = 5, C = 3, BATCH = 4, STEPS = 6 };

static const adj_augment everything = {
    .flip = 1, .shift = 2, .cutout = 3, .jitter = 0.3, .mixup = 0.4};

static void pause_for(long microseconds)
{
    nanosleep(&(struct timespec){.tv_nsec = microseconds * 1000}, NULL);
}

static adj_loader *new_part(const adj_dataset *d, const adj_loader_opts *o, loader_shards shards)
{
    adj_loader *l = NULL;
    adj_error error = {0};
    cr_assert_eq(adj_loader_new_shards(d, o, shards, &l, &error), ADJ_OK, "%s", error.message);
    return l;
}

/* ---- what is in a batch ---- */

static void expect_adj_batch(const adj_dataset *d, const adj_loader_opts *o, int64_t h, int64_t w,
                             int64_t c)
{
    adj_shape shape = {4, {o->batch, h, w, c}};
    size_t elems = (size_t)adj_shape_elems(shape);
    scoped(release) float *x = malloc(elems * sizeof *x);
    scoped(release) int32_t *labels = malloc((size_t)o->batch * sizeof *labels);
    scoped(release) int64_t *order = malloc((size_t)d->n * sizeof *order);
    scoped(release_loader) adj_loader *l = new_loader(d, o);

    cr_assert(x != NULL && labels != NULL && order != NULL);
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        adj_shuffle(d->n, o->seed, (uint64_t)epoch, order);
        for (int64_t step = 0; step < adj_loader_steps(l); step++) {
            adj_loader_batch b = next_batch(l);
            int64_t count =
                adj_batch(d, o->shuffle ? order : NULL, step * o->batch, shape, x, labels, NULL);
            cr_assert(b.epoch == epoch && b.step == step && b.count == count && b.mix == 1);
            cr_assert_eq(memcmp(b.x, x, elems * sizeof *x), 0);
            cr_assert_eq(memcmp(b.labels, labels, (size_t)o->batch * sizeof *labels), 0);
        }
    }
}

Test(loader, is_adj_batch)
{
    scoped(release_dataset) adj_dataset *d = new_dataset(N, H, W, C),
                                        *gray = new_dataset(N, H, W, 1);

    for (int threads = 0; threads < 3; threads++) {
        adj_loader_opts o = {.batch = BATCH, .threads = threads, .seed = 9, .shuffle = 1};
        expect_adj_batch(d, &o, H, W, C);
        o.shuffle = 0;
        expect_adj_batch(d, &o, H, W, C);
        o.size.h = 16, o.size.w = 4;
        expect_adj_batch(d, &o, 16, 4, C);
        o.size.c = 3;
        expect_adj_batch(gray, &o, 16, 4, 3);
        o.batch = N; /* an epoch in one batch, and in less than one */
        expect_adj_batch(gray, &o, 16, 4, 3);
        o.batch = 2 * N + 1;
        expect_adj_batch(d, &o, 16, 4, C);
    }
}

/* ---- threads and places ---- */

/* A source whose images take 0 to 3 tenths of a millisecond, and fail from failing on. */
typedef struct {
    int64_t failing; /* N: none */
    int is_silent;   /* fails without a message */
    int slow;        /* each takes so many milliseconds */
    int signals;     /* reads in threads that let a signal through */
    int reads;       /* started */
    adj_dataset *d;
} uneven;

static adj_status read_uneven(void *user, int64_t i, float *pixels, adj_error *error)
{
    uneven *u = user;
    sigset_t blocked;
    __atomic_add_fetch(&u->reads, 1, __ATOMIC_RELAXED);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    if (!sigismember(&blocked, SIGINT) || !sigismember(&blocked, SIGTERM))
        __atomic_add_fetch(&u->signals, 1, __ATOMIC_RELAXED);
    pause_for(u->slow > 0 ? u->slow * 1000L : i * 7 % 4 * 100);
    if (i >= u->failing)
        return u->is_silent ? ADJ_EBACKEND
                            : adj_error_set(error, ADJ_EIO, "image %lld is torn", (long long)i);
    return adj_dataset_read(u->d, i, pixels, error);
}

static void free_uneven(void *user) { adj_dataset_free(((uneven *)user)->d); }

static adj_dataset *new_uneven(uneven *u)
{
    adj_dataset *d = NULL;
    const adj_source source = {.read = read_uneven, .free = free_uneven, .user = u};
    u->d = new_dataset(N, H, W, C);
    cr_assert_eq(adj_dataset_from_source(u->d, &source, &d), ADJ_OK, "%s", d->message);
    return d;
}

static void expect_same(const adj_loader_batch *a, const adj_loader_batch *b, int64_t batch)
{
    const size_t labels = (size_t)batch * sizeof *a->labels;
    cr_assert(a->epoch == b->epoch && a->step == b->step && a->count == b->count);
    cr_assert_eq(memcmp(&a->mix, &b->mix, sizeof a->mix), 0);
    cr_assert_eq(memcmp(a->x, b->x, (size_t)(batch * H * W * C) * sizeof *a->x), 0);
    cr_assert_eq(memcmp(a->labels, b->labels, labels), 0);
    cr_assert_eq(memcmp(a->other_labels, b->other_labels, labels), 0);
}

/* The first n batches are those of a loader without threads. */
static void expect_as_alone(const adj_dataset *d, int64_t batch, int threads, int n)
{
    adj_loader_opts o = {.batch = batch, .seed = 4, .shuffle = 1, .augment = everything};
    scoped(release_loader) adj_loader *alone = new_loader(d, &o);
    o.threads = threads;
    scoped(release_loader) adj_loader *l = new_loader(d, &o);
    for (int i = 0; i < n; i++) {
        adj_loader_batch a = next_batch(alone), b = next_batch(l);
        expect_same(&a, &b, batch);
        if (i % 5 == 0) /* sometimes the ring is full, sometimes empty */
            pause_for(3000);
    }
}

Test(loader, threads_change_nothing)
{
    uneven u = {.failing = N};
    scoped(release_dataset) adj_dataset *d = new_uneven(&u);
    for (int threads = 1; threads <= 3; threads++)
        expect_as_alone(d, BATCH, threads, 4 * STEPS);
    expect_as_alone(d, N, 5, 12); /* epochs of one batch */
}

Test(loader, seek)
{
    static const struct {
        int64_t epoch, step;
    } places[] = {{0, 3}, {0, 0}, {2, 5}, {1, 1}, {1, 6}, {2, 2}, {100, 4}, {100, 5}, {0, 1}};
    uneven u = {.failing = N};
    scoped(release_dataset) adj_dataset *d = new_uneven(&u);

    for (int threads = 0; threads <= 2; threads++) {
        adj_loader_opts o = {.batch = BATCH, .seed = 4, .shuffle = 1, .augment = everything};
        adj_loader *fresh = NULL;
        o.threads = threads;
        scoped(release_loader) adj_loader *l = new_loader(d, &o);
        o.threads = 0;
        cr_assert_eq(adj_loader_steps(l), STEPS);
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
            fresh = new_loader(d, &o);
            if (places[i].epoch < 3) /* all that is before it */
                for (int64_t k = 0; k < places[i].epoch * STEPS + places[i].step; k++)
                    next_batch(fresh);
            else
                seek(fresh, places[i].epoch, places[i].step);
            seek(l, places[i].epoch, places[i].step);
            for (int k = 0; k < 3; k++) {
                adj_loader_batch a = next_batch(fresh), b = next_batch(l);
                expect_same(&a, &b, BATCH);
            }
            adj_loader_free(fresh);
        }
    }
}

Test(loader, a_batch_stays_until_the_next)
{
    scoped(release_dataset) adj_dataset *d = new_dataset(N, H, W, C);
    scoped(release_loader) adj_loader *l =
        new_loader(d, &(adj_loader_opts){.batch = BATCH, .threads = 3});
    for (int i = 0; i < 2 * STEPS; i++) {
        adj_loader_batch b = next_batch(l);
        float first = b.x[0];
        for (int k = 0; k < BATCH * H * W * C; k++)
            b.x[k] = 7;
        pause_for(2000);
        for (int k = 0; k < BATCH * H * W * C; k++)
            cr_assert_eq(b.x[k], 7);
        b.x[0] = first;
    }
}

Test(loader, threads_handle_no_signals)
{
    uneven u = {.failing = N};
    scoped(release_dataset) adj_dataset *d = new_uneven(&u);
    sigset_t mine;
    adj_loader *l = new_loader(d, &(adj_loader_opts){.batch = BATCH, .threads = 2});
    for (int i = 0; i < STEPS; i++)
        next_batch(l);
    adj_loader_free(l);
    cr_expect_eq(u.signals, 0);
    pthread_sigmask(SIG_SETMASK, NULL, &mine);
    cr_expect(!sigismember(&mine, SIGINT), "the caller's signals are as before");
}

/* ---- failures and ends ---- */

Test(loader, a_reader_fails)
{
    uneven u = {.failing = N};
    scoped(release_dataset) adj_dataset *d = new_uneven(&u);

    for (int threads = 0; threads <= 3; threads++) {
        u.failing = 10; /* in the batch of images 8 to 11 */
        adj_loader *l = new_loader(d, &(adj_loader_opts){.batch = BATCH, .threads = threads});
        adj_loader_batch b;
        adj_error error = {0};
        next_batch(l);
        next_batch(l);
        for (int i = 0; i < 3; i++) {
            cr_expect_eq(adj_loader_next(l, &b, &error), ADJ_EIO);
            cr_expect_str_eq(error.message, "image 10 is torn");
        }
        seek(l, 0, 1); /* the batch before the torn image can be read */
        cr_expect_eq(next_batch(l).labels[0], d->labels[BATCH]);
        cr_expect_eq(adj_loader_next(l, &b, NULL), ADJ_EIO);
        adj_loader_free(l);

        l = new_loader(d, &(adj_loader_opts){.batch = BATCH, .threads = threads});
        seek(l, 0, 2);
        cr_expect_eq(adj_loader_next(l, &b, &error), ADJ_EIO);
        pause_for(20000); /* the threads are done with what they can do */
        u.failing = N;
        seek(l, 0, 2);
        for (int i = 2; i < STEPS; i++)
            cr_expect_eq(next_batch(l).step, i);
        adj_loader_free(l);
    }
}

Test(loader, a_reader_fails_silently)
{
    uneven u = {.is_silent = 1};
    scoped(release_dataset) adj_dataset *d = new_uneven(&u);
    for (int threads = 0; threads < 2; threads++) {
        scoped(release_loader) adj_loader *l =
            new_loader(d, &(adj_loader_opts){.batch = 1, .threads = threads});
        adj_loader_batch b;
        adj_error error = {0};
        cr_expect_eq(adj_loader_next(l, &b, &error), ADJ_EBACKEND);
        cr_expect_eq(error.status, ADJ_EBACKEND);
        cr_expect_str_eq(error.message, "loader: an image cannot be read");
    }
}

static int reads_of(uneven *u) { return __atomic_load_n(&u->reads, __ATOMIC_RELAXED); }

/* A loader that is freed within a batch of 23 images ends every thread with its current image. One
 * of the cases has to show it: this thread may lose its processor before the loader is stopped. */
Test(loader, free_in_the_middle)
{
    uneven u = {.failing = N, .slow = 20};
    scoped(release_dataset) adj_dataset *d = new_uneven(&u);
    int stopped = 0;

    for (int i = 0; i < 7; i++) {
        const int threads = 1 + i % 3;
        adj_loader *l = new_loader(d, &(adj_loader_opts){.batch = N, .threads = threads});
        const int begun = reads_of(&u);
        while (reads_of(&u) == begun)
            pause_for(1000);
        if (i % 2 == 0)
            seek(l, 3, 0);
        const int before = reads_of(&u);
        adj_loader_free(l);
        stopped += reads_of(&u) - before <= 2 * threads;
    }
    cr_expect_gt(stopped, 0, "a loader that is freed fills its batches");
    adj_loader_free(NULL);
}

Test(loader, waited)
{
    uneven u = {.failing = N, .slow = 2};
    scoped(release_dataset) adj_dataset *d = new_uneven(&u);

    for (int threads = 0; threads < 2; threads++) {
        scoped(release_loader) adj_loader *l =
            new_loader(d, &(adj_loader_opts){.batch = BATCH, .threads = threads});
        cr_expect_eq(adj_loader_waited(l), 0);
        for (int i = 0; i < 3; i++)
            next_batch(l);
        double busy = adj_loader_waited(l);
        cr_expect_gt(busy, 3 * BATCH * 0.002 - 0.001); /* images after another, by one reader */
        next_batch(l);
        cr_expect(threads > 0 || adj_loader_waited(l) - busy > BATCH * 0.002);
    }
}

Test(loader, refused)
{
    static const struct {
        adj_loader_opts o;
        adj_status status;
        const char *says;
        loader_shards shards;
    } cases[] = {
        {{0}, ADJ_EARG, "batch is out of range (got 0, expected 1 or more)", {0}},
        {{.batch = -1}, ADJ_EARG, "batch is out of range (got -1", {0}},
        {{.batch = INT64_MAX}, ADJ_EARG, "batch is out of range (got 9223372036854775807", {0}},
        {{.batch = 1, .threads = -1},
         ADJ_EARG,
         "threads is out of range (got -1, expected 0 to 64)",
         {0}},
        {{.batch = 1, .threads = 65}, ADJ_EARG, "threads is out of range (got 65", {0}},
        {{.batch = 1, .size.h = -1},
         ADJ_ESHAPE,
         "image size in a batch is out of range (got -1x5x3, expected",
         {0}},
        {{.batch = 1, .size.w = 1 << 16}, ADJ_ESHAPE, "got 7x65536x3", {0}},
        {{.batch = 1, .size.c = 1},
         ADJ_ESHAPE,
         "images of 7x5x3 cannot become 7x5x1: mean and",
         {0}},
        {{.batch = 1, .size.c = 5}, ADJ_ESHAPE, "got 7x5x5", {0}},
        {{.batch = 2, .augment.shift = 9},
         ADJ_EARG,
         "shift is out of range (got 9, expected 0 to 8)",
         {0}},
        {{.batch = 2, .augment.shift = -1},
         ADJ_EARG,
         "shift is out of range (got -1, expected 0 to 8)",
         {0}},
        {{.batch = 2, .augment.cutout = -1}, ADJ_EARG, "cutout is out of range (got -1", {0}},
        {{.batch = 2, .augment.jitter = -0.1}, ADJ_EARG, "jitter is out of range (got -0.1", {0}},
        {{.batch = 2, .augment.jitter = NAN}, ADJ_EARG, "jitter is out of range (got nan", {0}},
        {{.batch = 2, .augment.mixup = NAN}, ADJ_EARG, "mixup is out of range (got nan", {0}},
        {{.batch = 2, .augment.mixup = 1e-9}, ADJ_EARG, "mixup is out of range (got 1e-09", {0}},
        {{.batch = 2, .augment.mixup = -1}, ADJ_EARG, "mixup is out of range (got -1", {0}},
        {{.batch = 8}, ADJ_EARG, "cannot be divided into 3", {3, 0, 0}},
        {{.batch = 8}, ADJ_EARG, "cannot be divided", {-1, 0, 0}},
        {{.batch = 8}, ADJ_EARG, "shards are out of range", {4, 4, 0}},
        {{.batch = 8}, ADJ_EARG, "got 3 from 2 on, expected within 4", {4, 2, 3}},
        {{.batch = 8}, ADJ_EARG, "shards are out of range", {4, -1, 1}},
        {{.batch = 8}, ADJ_EARG, "shards are out of range", {4, 0, -1}},
    };
    scoped(release_dataset) adj_dataset *d = new_dataset(N, H, W, C);
    scoped(release_loader) adj_loader *l = NULL;
    adj_loader_batch b;
    adj_error error = {0};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_expect_eq(adj_loader_new_shards(d, &cases[i].o, cases[i].shards, &l, &error),
                     cases[i].status);
        cr_expect(l == NULL && strstr(error.message, cases[i].says) != NULL, "%s", error.message);
    }
    const adj_loader_opts o = {.batch = BATCH};
    cr_expect_eq(adj_loader_new(d, &(adj_loader_opts){0}, &l, NULL), ADJ_EARG);
    cr_expect_eq(adj_loader_new(NULL, &o, &l, NULL), ADJ_EARG);
    cr_expect_eq(adj_loader_new(d, NULL, &l, NULL), ADJ_EARG);
    cr_expect_eq(adj_loader_new(d, &o, NULL, NULL), ADJ_EARG);
    cr_expect_eq(adj_loader_next(NULL, &b, NULL), ADJ_EARG);
    cr_expect_eq(adj_loader_seek(NULL, 0, 0, NULL), ADJ_EARG);
    l = new_loader(d, &o);
    cr_expect_eq(adj_loader_next(l, NULL, NULL), ADJ_EARG);
    cr_expect_eq(adj_loader_seek(l, -1, 0, NULL), ADJ_EARG);
    cr_expect_eq(adj_loader_seek(l, 0, -1, NULL), ADJ_EARG);
    cr_expect_eq(adj_loader_seek(l, INT64_MAX / 2, 0, NULL), ADJ_EARG);
    cr_expect_eq(adj_loader_seek(l, 2, STEPS + 1, &error), ADJ_EARG);
    cr_expect_str_eq(error.message, "loader: position is out of range (got epoch 2, step 7, "
                                    "expected 0 or more and at most 6 steps)");
}

/* ---- parts of a batch ---- */

/* Shards first .. first + n - 1 of four are those rows of the whole batch, fillers included; the
 * last batch of 23 images has 7 of them, which 8 rows in shards of 2 hold as 2 2 2 1. */
static void expect_part(const adj_dataset *d, int64_t first, int64_t n, int threads)
{
    enum { WHOLE = 8, SHARDS = 4, PER = 2, ELEMS = H * W * C };
    const adj_augment alone = {.flip = 1, .shift = 2, .cutout = 3, .jitter = 0.3};
    adj_loader_opts o = {.batch = WHOLE, .shuffle = 1, .seed = 4, .augment = alone};
    scoped(release_loader) adj_loader *whole = new_loader(d, &o);
    o.threads = threads;
    scoped(release_loader) adj_loader *part = new_part(d, &o, (loader_shards){SHARDS, first, n});
    cr_assert_eq(adj_loader_steps(part), adj_loader_steps(whole));
    for (int64_t i = 0; i < 2 * adj_loader_steps(whole); i++) {
        const adj_loader_batch a = next_batch(whole), b = next_batch(part);
        const int64_t rows = n * PER, from = first * PER, left = a.count - from;
        cr_expect_eq(adj_loader_step_count(part, b.step), a.count);
        cr_expect_eq(b.count, left < 0 ? 0 : left < rows ? left : rows);
        cr_expect_arr_eq(b.x, a.x + from * ELEMS, (size_t)(rows * ELEMS) * sizeof *a.x);
        cr_expect_arr_eq(b.labels, a.labels + from, (size_t)rows * sizeof *a.labels);
    }
}

Test(loader, parts)
{
    scoped(release_dataset) adj_dataset *d = new_dataset(N, H, W, C);
    for (int64_t first = 0; first < 4; first++)
        for (int64_t n = 1; n <= 4 - first; n++)
            expect_part(d, first, n, (int)n % 2);
}

/* Within a shard, whoever prepares it. */
Test(loader, parts_are_mixed_by_themselves)
{
    scoped(release_dataset) adj_dataset *d = new_dataset(N, H, W, C);
    const adj_loader_opts o = {.batch = 8, .seed = 4, .augment.mixup = 0.4};
    scoped(release_loader) adj_loader *both = new_part(d, &o, (loader_shards){.shards = 2});
    scoped(release_loader) adj_loader *second =
        new_part(d, &o, (loader_shards){.shards = 2, .first = 1});
    for (int64_t i = 0; i < adj_loader_steps(both); i++) {
        const adj_loader_batch a = next_batch(both), b = next_batch(second);
        cr_expect_eq(a.mix, b.mix);
        cr_expect_arr_eq(b.x, a.x + 4 * H * W * C, 4 * H * W * C * sizeof *a.x);
        cr_expect_arr_eq(b.other_labels, a.other_labels + 4, 4 * sizeof *a.labels);
        for (int64_t k = 0; k < 4; k++)
            cr_expect_eq(a.other_labels[k], a.labels[3 - k]);
    }
}
