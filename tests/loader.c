/* loader.c - a loader of drawn digits whose threads race with seeks and with its end: the batches
 * are those of one without threads.
 *
 * A program, not a Criterion test, so that ThreadSanitizer can run it. Prints "N passed, M failed".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adjoint_data.h"

enum { N = 50, SIDE = 28, BATCH = 6, ELEMS = BATCH * SIDE * SIDE, ROUNDS = 40, MAX_THREADS = 4 };

static int passed, failed;

static int same(const adj_loader_batch *a, const adj_loader_batch *b)
{
    return a->epoch == b->epoch && a->step == b->step && a->count == b->count && a->mix == b->mix &&
           memcmp(a->x, b->x, ELEMS * sizeof *a->x) == 0 &&
           memcmp(a->labels, b->labels, BATCH * sizeof *a->labels) == 0;
}

/* Some batches, then a seek, again and again; whether all were the same. */
static int follow(adj_loader *l, adj_loader *alone)
{
    adj_loader_batch a, b;
    int is_same = 1;

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < round % 7; i++)
            is_same &= adj_loader_next(alone, &a, NULL) == ADJ_OK &&
                       adj_loader_next(l, &b, NULL) == ADJ_OK && same(&a, &b);
        int64_t epoch = round * 5 % 4, step = round * 11 % adj_loader_steps(l);
        is_same &= adj_loader_seek(alone, epoch, step, NULL) == ADJ_OK &&
                   adj_loader_seek(l, epoch, step, NULL) == ADJ_OK;
    }
    return is_same;
}

static void check(const adj_dataset *d, int threads)
{
    adj_loader_opts o = {.batch = BATCH,
                         .shuffle = 1,
                         .seed = 1,
                         .augment = {.flip = 1, .shift = 1, .jitter = 0.2, .mixup = 0.3}};
    adj_loader *alone = NULL, *l = NULL;
    int is_same = adj_loader_new(d, &o, &alone, NULL) == ADJ_OK;

    o.threads = threads;
    is_same = is_same && adj_loader_new(d, &o, &l, NULL) == ADJ_OK && follow(l, alone);
    adj_loader_free(l); /* while its threads are at work */
    adj_loader_free(alone);
    if (!is_same)
        printf("FAIL %d threads\n", threads);
    passed += is_same;
    failed += !is_same;
}

int main(void)
{
    adj_dataset *d = NULL;
    if (adj_dataset_digits(ADJ_TRAIN, N, 1, &d) != ADJ_OK)
        return 1;
    for (int threads = 1; threads <= MAX_THREADS; threads++)
        check(d, threads);
    adj_dataset_free(d);
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
